/* SPDX-License-Identifier: Apache-2.0 */
/* watch/spawn.c - how a keeper gets its receiver; see receiver.h
 *
 * A program of its own and not a fork of the keeper: it inherits no memory, no descriptor but the two it serves, and
 * no environment.
 */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/program.h"
#include "watch/receiver.h"

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
		program_become(path, "vitrine-otlp", NULL, (const int[]){ listener, theirs }, 2);
	*ret_pid = pid;
	*ret_events = take_fd(ours);
	return 0;
}

bool receiver_say(int events, uint32_t session, enum receiver_show how, const char *p, size_t n)
{
	struct receiver_packet m = { .session = session, .how = how };

	do {
		size_t part = n < RECEIVER_SHOW_BYTES ? n : RECEIVER_SHOW_BYTES;

		if (part > 0)
			memcpy(m.bytes, p, part);
		if (send(events, &m, offsetof(struct receiver_packet, bytes) + part,
			 MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			return false;
		p += part;
		n -= part;
		m.how = SHOW_MORE;
	} while (n > 0);
	return true;
}
