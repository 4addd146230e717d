/* SPDX-License-Identifier: Apache-2.0 */
/* engine/link/main.c - vitrine-link: started by a keeper, with the keeper on descriptor 3 and the stream on 4 and 5 */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "engine/link/outer.h"

static bool is_ours(void)
{
	struct stat st;
	int type = 0;
	socklen_t n = sizeof(type);

	return getsockopt(3, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && type == SOCK_SEQPACKET &&
	       fstat(4, &st) == 0 && fstat(5, &st) == 0;
}

/* Connections to the gate take two files each. */
static size_t most_files(void)
{
	struct rlimit l = { .rlim_cur = 1024, .rlim_max = 1024 };

	if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
		l.rlim_cur = l.rlim_max > 65536 ? 65536 : l.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &l); /* what we have will do otherwise */
		(void)getrlimit(RLIMIT_NOFILE, &l);
	}
	return l.rlim_cur;
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
	files = most_files();
	if (link_confine() < 0) {
		(void)fprintf(stderr, "vitrine-link: cannot confine itself\n");
		return 125;
	}
	return outer_run(3, 4, 5, files);
}
