/* SPDX-License-Identifier: Apache-2.0 */
/* prog/vitrine-link.c - vitrine-link: the outer end of the link, for every engine but native
 *
 * For: standing in for init. The keeper sends it the packets that it would send to the native engine's init, and
 *     vitrine-link carries them over one byte stream to vitrine-init, behind the walls of another engine.
 * Links: libc and nghttp2, statically.
 * Talks to: the keeper on descriptor 3, vitrine-init over the stream on descriptors 4 and 5, and the gate's front, to
 *     which it gives connections from inside as socket pairs.
 * Must not: open a file, connect, start a process or send a signal.
 * Promises: the list of system calls in link_confine(), before the first byte from inside. Any other call ends it.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/io.h"
#include "remote/outer.h"

static bool is_ours(void)
{
	struct stat st;
	int type = 0;
	socklen_t n = sizeof(type);

	return getsockopt(3, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && type == SOCK_SEQPACKET &&
	       fstat(4, &st) == 0 && fstat(5, &st) == 0;
}

int main(int argc, char **argv)
{
	size_t files;

	if (argc == 2 && str_eq(argv[1], "--version")) {
		(void)printf("vitrine-link %s\n", VITRINE_VERSION);
		return 0;
	}
	if (argc != 1 || !is_ours()) {
		(void)fprintf(stderr, "vitrine-link: started by a keeper, not by hand\n");
		return 2;
	}
	(void)signal(SIGPIPE, SIG_IGN);
	(void)prctl(PR_SET_NAME, "vitrine-link");
	(void)fcntl(3, F_SETFL, O_NONBLOCK);
	/* Connections to the gate take two each. */
	files = io_most_files(65536);
	if (link_confine() < 0) {
		(void)fprintf(stderr, "vitrine-link: cannot confine itself\n");
		return 125;
	}
	return outer_run(3, 4, 5, files);
}
