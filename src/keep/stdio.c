/* SPDX-License-Identifier: Apache-2.0 */
/* keep/stdio.c - which of the client's descriptors may go inside, and as what
 *
 * Pipes and /dev/null pass as they are. A terminal is replaced by the sandbox's own. Everything else is relayed, also
 * a pipe with a name: it could be opened anew, in the other direction.
 * A terminal on stdin is read only when stdout is one too or the user said -i: `vitrine run -- ls | less` must not
 * take less's keys away.
 */
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "base/sabotage.h"
#include "keep/keep.h"

static bool is_null_device(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3);
}

static bool is_pipe(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == PIPEFS_MAGIC;
}

/* stdout and stderr that are one and the same must stay one, or their order is lost. */
bool is_same_file(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

static enum stdio_kind kind_of(int fd)
{
	struct stat st;

	if (sabotaged("stdio"))
		return STDIO_PASS;
	if (fstat(fd, &st) < 0)
		return STDIO_NULL;
	if (is_pipe(fd) || is_null_device(&st))
		return STDIO_PASS;
	if (isatty(fd))
		return sabotaged("pty") ? STDIO_PASS : STDIO_PTY;
	return STDIO_RELAY;
}

void stdio_decide(const int fd[3], unsigned flags, enum stdio_kind ret[3])
{
	for (int i = 0; i < 3; i++)
		ret[i] = kind_of(fd[i]);
	if (flags & KEEP_WANT_TTY)
		for (int i = 0; i < 3; i++)
			ret[i] = STDIO_PTY;
	else if (ret[0] == STDIO_PTY && ret[1] != STDIO_PTY)
		ret[0] = flags & KEEP_WANT_STDIN ? STDIO_RELAY : STDIO_NULL;
	/* Errors on a pipe of their own go through us: their last words tell which wall was hit. */
	if (ret[2] == STDIO_PASS && is_pipe(fd[2]) && !is_same_file(fd[1], fd[2]) &&
	    !sabotaged("stdio"))
		ret[2] = STDIO_RELAY;
	for (int i = 1; i < 3; i++)
		if (flags & KEEP_SEE_OUTPUT && ret[i] == STDIO_PASS)
			ret[i] = STDIO_RELAY;
}
