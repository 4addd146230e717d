/* SPDX-License-Identifier: Apache-2.0 */
/* keep/msg.c - what clients and keepers say to each other, and how a client finds a keeper */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/path.h"
#include "base/sabotage.h"
#include "keep/keep.h"

const char *end_reason_name(enum end_reason r)
{
	static const char *const names[END_REASON_COUNT_] = {
		[END_EXIT] = "exit",         [END_SIGNAL] = "signal",   [END_TIME] = "time",
		[END_IDLE] = "idle",         [END_MEMORY] = "memory",   [END_OUTPUT] = "output",
		[END_CPU_TIME] = "cpu_time", [END_STOPPED] = "stopped", [END_ERROR] = "error",
		[END_CLOSING] = "closing",   [END_DISK] = "disk",
	};

	return r < END_REASON_COUNT_ ? names[r] : "unknown";
}

int keep_send(int fd, const struct keep_msg *m, const int *fds, size_t n_fds)
{
	return packet_send(fd, m, sizeof(*m), fds, n_fds);
}

int keep_recv(int fd, struct keep_msg *m, int fds[PACKET_FDS])
{
	int r = packet_recv(fd, m, sizeof(*m), fds);

	m->err.msg[sizeof(m->err.msg) - 1] = '\0';
	return r;
}

/* Somebody owns the folder: a keeper that is coming or going, if there is no socket. */
static bool is_locked(int dir)
{
	_close_ int lock = openat(dir, "lock", O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	return lock >= 0 && flock(lock, LOCK_SH | LOCK_NB) < 0;
}

/* A socket's name may be 107 bytes; the state directory's path may be longer. So we go through a descriptor. */
static int connect_in(int dir)
{
	_close_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un sa = { .sun_family = AF_UNIX };

	if (fd < 0)
		return -errno;
	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "/proc/self/fd/%d/control", dir);
	if (connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0)
		return errno == ECONNREFUSED ? -ENOENT : -errno;
	return take_fd(fd);
}

int keep_connect(const char *state_dir, const char *name, struct err *e)
{
	_free_ char *dir = mem_fmt("%s/sandboxes/%s", state_dir, name);
	_close_ int at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = -ENOENT;

	if (at < 0)
		return err_set(e, ERR_NOTFOUND, ENOENT, "there is no sandbox '%s'", name);
	/* Its door opens a moment after it stands, and closes a moment before it is gone. */
	for (int i = 0; i < 2000; i++) {
		fd = connect_in(at);
		if (fd != -ENOENT || !is_locked(at))
			break;
		(void)usleep(1000);
	}
	if (fd == -ENOENT)
		return err_set(e, ERR_NOTFOUND, ENOENT, "the sandbox '%s' is not running", name);
	return fd < 0 ? err_set(e, ERR_SYSTEM, -fd, "sandbox '%s': %s", name, strerrordesc_np(-fd))
		      : fd;
}
