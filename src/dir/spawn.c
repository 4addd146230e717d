/* SPDX-License-Identifier: Apache-2.0 */
/* dir/spawn.c - how a keeper gets the server of a git dir; see wire.h
 *
 * A program of its own and not a fork of the keeper: it inherits no memory, four descriptors, and no environment.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/io.h"
#include "base/program.h"
#include "dir/fuse.h"
#include "dir/wire.h"
#include "sys/spread.h"

#define HELLO_MS 10000

static int settings_file(const struct buf *settings, struct err *e)
{
	_close_ int fd = memfd_create("vitrine-dir", MFD_CLOEXEC);
	int r = fd < 0 ? -errno : io_write_all(fd, buf_cstr(settings), settings->n);

	if (r < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return err_sys(e, "settings for vitrine-dir");
	return take_fd(fd);
}

_Static_assert(DIR_FD_FUSE == 3 && DIR_FD_SETTINGS == 6, "as program_become() places them");

static __attribute__((noinline)) pid_t spawn(const char *path, const int fds[4])
{
	/* NOLINTNEXTLINE(clang-analyzer-security.insecureAPI.vfork): the child only makes system calls */
	pid_t pid = vfork();

	if (pid == 0) {
		spread_before_exec(); /* NOLINT(clang-analyzer-unix.Vfork): it makes system calls only */
		/* NOLINTNEXTLINE(clang-analyzer-unix.Vfork): it makes system calls only */
		program_become(path, "vitrine-dir", NULL, fds, 4);
	}
	return pid;
}

int dir_hello(int fuse, struct err *e)
{
	struct {
		struct fuse_out_header head;
		struct fuse_init_out init;
	} out = { .head.len = sizeof(out) };
	char request[16 * KIB]; /* the kernel wants room for more than it sends */
	struct pollfd p = { .fd = fuse, .events = POLLIN };
	struct fuse_request q;
	ssize_t n = -ETIMEDOUT;

	if (poll(&p, 1, HELLO_MS) > 0) /* it lies there since the mount was made */
		n = io_read(fuse, request, sizeof(request));
	if (n < 0)
		return err_set(e, ERR_SYSTEM, (int)-n, "the first request of /dev/fuse");
	if (fuse_parse(request, (size_t)n, &q) < 0 || q.head.opcode != FUSE_INIT ||
	    !fuse_hello(&q.arg.init, &out.init))
		return err_set(e, ERR_UNSUPPORTED, EPROTO, "this kernel's FUSE is another one");
	out.head.unique = q.head.unique;
	return write(fuse, &out, sizeof(out)) < 0 ? err_sys(e, "/dev/fuse") : 0;
}

int dir_spawn(int fuse, int git, const struct buf *settings, pid_t *ret_pid, int *ret_socket,
	      struct err *e)
{
	_close_ int ours = FD_NONE, theirs = FD_NONE, file = FD_NONE;
	_free_ char *path = NULL;
	int pair[2], r = program_find("vitrine-dir", &path, e);
	pid_t pid;

	if (r < 0)
		return r;
	file = settings_file(settings, e);
	if (file < 0)
		return file;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return err_sys(e, "socketpair");
	ours = pair[0];
	theirs = pair[1];
	pid = spawn(path, (const int[]){ fuse, git, theirs, file });
	if (pid < 0)
		return err_sys(e, "vfork");
	*ret_pid = pid;
	*ret_socket = take_fd(ours);
	return 0;
}
