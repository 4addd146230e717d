/* SPDX-License-Identifier: Apache-2.0 */
/* watch/spawn.c - how a keeper gets its receiver; see receiver.h
 *
 * A program of its own and not a fork of the keeper: it inherits no memory, no descriptor but the two it serves, and
 * no environment.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/program.h"
#include "watch/receiver.h"

int receiver_listen(uint16_t port, struct err *e)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1;

	if (fd < 0)
		return err_sys(e, "socket of the OTLP receiver");
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(fd, 64) < 0)
		return err_sys(e, "listen on 127.0.0.1:%u for OTLP", port);
	return take_fd(fd);
}

/* Between fork and exec: both descriptors to 3 and 4, everything else closed. */
static _Noreturn void become(const char *path, int listener, int events)
{
	char *const argv[] = { (char[]){ "vitrine-otlp" }, NULL }, *const env[] = { NULL };
	int a = fcntl(listener, F_DUPFD_CLOEXEC, 5), b = fcntl(events, F_DUPFD_CLOEXEC, 5);

	/* NOLINTNEXTLINE(android-cloexec-dup): these two are what it is for */
	if (a >= 0 && b >= 0 && dup2(a, 3) == 3 && dup2(b, 4) == 4 &&
	    syscall(SYS_close_range, 5U, ~0U, 0U) == 0)
		(void)execve(path, argv, env);
	_exit(127);
}

int receiver_spawn(int take_listener, pid_t *ret_pid, int *ret_events, struct err *e)
{
	_close_ int listener = take_listener, ours = FD_NONE, theirs = FD_NONE;
	_free_ char *path = NULL;
	int pair[2], r = program_find("vitrine-otlp", &path, e);
	pid_t pid;

	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return err_sys(e, "socketpair");
	ours = pair[0];
	theirs = pair[1];
	pid = fork();
	if (pid < 0)
		return err_sys(e, "fork");
	if (pid == 0)
		become(path, listener, theirs);
	*ret_pid = pid;
	*ret_events = take_fd(ours);
	return 0;
}
