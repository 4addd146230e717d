/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_main.c - vitrine-otlp: the OTLP receiver of one sandbox, started by its keeper
 *
 * Descriptor 3 listens inside the sandbox, or brings connections from behind other walls; descriptor 4 leads to the keeper. Links libc and nothing else.
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
