/* SPDX-License-Identifier: Apache-2.0 */
/* broker/self.c - vitrine-checkpoint: who is inside asks for a way back
 *
 * The one thing that needs no rule: it saves, and can neither read nor remove what was saved. What could be done with it
 * is to fill the disk, so it is bounded twice: in time, and in how many one sandbox may ask for.
 */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "base/io.h"
#include "base/path.h"
#include "broker/broker.h"

#define EVERY_SECONDS 10
#define AT_MOST 200
#define MESSAGE_MAX 200

/* One byte for each that was asked for; the time of the last is the file's. */
static int take_turn(const struct broker *b, struct err *e)
{
	_free_ char *path = mem_fmt("%s/checkpoints", b->dir);
	_close_ int fd = FD_NONE;
	struct stat st;

	if (path_make(b->dir, 0700) < 0)
		return err_sys(e, "'%s'", b->dir);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || flock(fd, LOCK_EX) < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "'%s'", path);
	if (st.st_size >= AT_MOST)
		return err_set(e, ERR_DENIED, EDQUOT,
			       "%d checkpoints were asked for from inside, which is the bound; "
			       "outside, 'vitrine checkpoint %s' makes more",
			       AT_MOST, b->name);
	if (st.st_size > 0 && time(NULL) < st.st_mtime + EVERY_SECONDS)
		return err_set(e, ERR_DENIED, EAGAIN,
			       "the last one is less than %d seconds old; try again",
			       EVERY_SECONDS);
	return io_write_all(fd, "x", 1) < 0 ? err_sys(e, "'%s'", path) : 0;
}

int serve_checkpoint(struct broker *b, struct err *e)
{
	_free_ char *parent = path_parent(b->state_dir);
	_free_ char *state_var = mem_fmt("XDG_STATE_HOME=%s", parent);
	_free_ char *said = mem_strn(b->req.n > 1 ? b->req.words[1] : "",
				     b->req.n > 1 ? strnlen(b->req.words[1], MESSAGE_MAX) : 0);
	_free_ char *message = mem_fmt("asked for inside%s%s", said[0] ? ": " : "", said);
	const char *argv[] = { "vitrine", "checkpoint", b->name, "--inside", "-m", message, NULL };
	const char *env[] = { state_var, NULL };
	struct task j = TASK_NONE;
	int r = take_turn(b, e);

	if (r < 0)
		return r;
	j.program = b->vitrine;
	j.argv = argv;
	j.env = env;
	j.reads_all = true;
	j.net = CONFINE_FREE;
	j.write[0] = b->state_dir;
	j.seconds = 600;
	return run_and_tell(b, &j, "self", e);
}
