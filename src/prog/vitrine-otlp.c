/* SPDX-License-Identifier: Apache-2.0 */
/* prog/vitrine-otlp.c - vitrine-otlp: the receiver of the agent's own telemetry, one process per sandbox
 *
 * For: turning OTLP requests, reports of tool calls and structured output into events (watch/receiver.h).
 * Links: libc alone, statically.
 * Talks to: the inside, over descriptor 3, which listens in the sandbox's network namespace or delivers connections from
 *     behind other walls; its keeper, over descriptor 4.
 * Must not: open a file, make a socket of its own, or start a process.
 * Promises: CONFINE_ACCEPT, given and proved in receiver_run() before the first foreign byte.
 */
#include <sys/socket.h>

#include "watch/receiver.h"

static bool is_socket(int fd, int type)
{
	int got = 0;
	socklen_t n = sizeof(got);

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &got, &n) == 0 && got == type;
}

int main(void)
{
	struct err e = ERR_INIT;

	if (!(is_socket(3, SOCK_STREAM) || is_socket(3, SOCK_SEQPACKET)) ||
	    !is_socket(4, SOCK_SEQPACKET)) {
		(void)fputs("vitrine-otlp is started by the keeper of a sandbox\n", stderr);
		return 2;
	}
	if (receiver_run(3, 4, &e) == 0)
		return 0;
	(void)fprintf(stderr, "vitrine-otlp: %s\n", e.msg);
	return err_exit_code(&e);
}
