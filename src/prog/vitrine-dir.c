/* SPDX-License-Identifier: Apache-2.0 */
/* prog/vitrine-dir.c - vitrine-dir: the top level of a workspace's .git, served by name
 *
 * For: protecting names in .git. A mask is a mount on a file and goes when the host replaces the file; a rule in a server
 *     of names does not. So .git is a FUSE mount inside, and this process, outside, answers the kernel's requests. The
 *     keeper starts it with the host's .git and the mount's /dev/fuse; it ends with the mount or with the keeper.
 * Links: libc alone, statically.
 * Talks to: the kernel over DIR_FD_FUSE and the keeper over DIR_FD_KEEPER (dir/wire.h).
 * Must not: leave its directory; accept a protected name; write a configuration that can execute something.
 * Promises: files beneath the one directory, no capability, and the system calls listed in dir/confine.c: no network, no
 *     process, no mount. Given before the first request; any other call ends it.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/io.h"
#include "dir/serve.h"
#include "dir/wire.h"

#define FILES_WANTED 4096

/* Nobody else would end us: the mount goes with the last process inside, and that goes with the keeper. */
static bool keeper_lives(void)
{
	struct pollfd p = { .fd = DIR_FD_KEEPER, .events = POLLIN };

	return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && poll(&p, 1, 0) == 0;
}

int main(int argc, char **argv)
{
	static struct dir dir;
	struct err e = ERR_INIT;
	int r;

	if (argc == 2 && str_eq(argv[1], "--version")) {
		(void)printf("vitrine-dir %s\n", VITRINE_VERSION);
		return 0;
	}
	if (argc != 1 || fcntl(DIR_FD_FUSE, F_GETFD) < 0 || fcntl(DIR_FD_KEEPER, F_GETFD) < 0) {
		(void)fprintf(stderr, "vitrine-dir: started by a keeper, not by hand\n");
		return 2;
	}
	(void)umask(0);
	(void)setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
	(void)io_most_files(FILES_WANTED);
	if (!keeper_lives())
		return 125;
	r = dir_init(&dir, DIR_FD_GIT);
	if (r == 0)
		r = dir_take_settings(&dir, &e);
	if (r == 0)
		r = dir_confine(DIR_FD_GIT, &e);
	if (r < 0)
		return 125;
	dir_loop(&dir);
	return 0;
}
