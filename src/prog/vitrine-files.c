/* SPDX-License-Identifier: Apache-2.0 */
/* prog/vitrine-files.c - vitrine-files: the files of a virtual machine that can be saved while it works
 *
 * For: serving one directory tree to the guest's kernel over 9P. The table of open files is in this process and not in
 *     QEMU, so it can be saved with the machine. One process for each share, started in the mount namespace that holds
 *     the view, as the user; it ends with the machine.
 * Links: libc alone, statically.
 * Talks to: the guest over FILES_FD_GUEST and the keeper over FILES_FD_KEEPER (files/wire.h).
 * Must not: leave its tree; make a socket, a process or a mount.
 * Promises: files beneath its tree and the system calls listed in files/confine.c, given in files_start() before the
 *     first request. Any other call ends it.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "files/serve.h"
#include "files/wire.h"

int main(int argc, char **argv)
{
	static struct files f;
	struct err e = ERR_INIT;
	bool is_again = argc == 3 && str_eq(argv[2], FILES_AGAIN);

	if (argc == 2 && str_eq(argv[1], "--version")) {
		(void)printf("vitrine-files %s\n", VITRINE_VERSION);
		return 0;
	}
	if ((argc != 2 && !is_again) || fcntl(FILES_FD_GUEST, F_GETFD) < 0 ||
	    fcntl(FILES_FD_KEEPER, F_GETFD) < 0) {
		(void)fprintf(stderr, "vitrine-files: started by a keeper, not by hand\n");
		return 2;
	}
	(void)signal(SIGPIPE, SIG_IGN);
	(void)prctl(PR_SET_NAME, "vitrine-files");
	(void)umask(0);
	(void)setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
	if (files_start(&f, argv[1], is_again, &e) < 0) {
		(void)fprintf(stderr, "vitrine-files: %s\n", e.msg);
		return 125;
	}
	files_loop(&f);
	return 0;
}
