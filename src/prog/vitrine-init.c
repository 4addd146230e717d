/* SPDX-License-Identifier: Apache-2.0 */
/* prog/vitrine-init.c - vitrine-init: pid 1 behind the walls of every engine but native
 *
 * For: starting the commands of a sandbox whose walls another program built. It receives the guest half of the plan,
 *     locks itself in, proves the lock, and then starts the commands that it is asked for: all of them inherit the lock.
 * Links: libc and nghttp2, statically: it requires nothing of the file system around it but /dev/null and, for
 *     terminals, /dev/ptmx.
 * Talks to: vitrine-link, over its standard input and output (remote/link.h) or the port of a virtual machine.
 * Must not: start a command before it is locked in, or leave the link's descriptors open in a command.
 * Promises: the inner locks of the plan, as in the native engine: capabilities, no_new_privs, Landlock, system calls
 *     (remote/inner_lock.c).
 *
 * One process, one loop. When the link ends, init ends, and the kernel ends every other process of its pid namespace.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "engine/vm/wake.h"
#include "remote/inner.h"

static void on_child(void *arg)
{
	session_reap(arg);
	server_check_over(arg);
}

/* By openat() here and elsewhere: musl's open() asks for O_CLOEXEC a second time, and a call can be dear where we are. */
static bool null_stdio(int *ret_null)
{
	int null = openat(AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0)
		return false;
	for (int fd = 0; fd < 3; fd++)
		if (dup2(null, fd) < 0)
			return false;
	*ret_null = null;
	return null > 2;
}

/* The link's descriptors out of the reach of commands, /dev/null in their place. */
static bool move_stdio(int *in, int *out, int *null)
{
	/* Not musl's fcntl(), for the same reason. */
	*in = (int)syscall(SYS_fcntl, 0, F_DUPFD_CLOEXEC, 3);
	*out = (int)syscall(SYS_fcntl, 1, F_DUPFD_CLOEXEC, 3);
	return *in >= 0 && *out >= 0 && null_stdio(null);
}

static _Noreturn void serve(struct server *sv, int in, int out)
{
	(void)signal(SIGPIPE, SIG_IGN);
	(void)prctl(PR_SET_NAME, "vitrine-init");
	sv->loop = loop_new();
	(void)watch_signal(sv->loop, SIGCHLD, on_child, sv);
	sv->link = link_new(LINK_INNER, sv->loop, in, out, &server_ops, sv);
	loop_run(sv->loop);
	_exit(0);
}

int main(int argc, char **argv)
{
	static struct server sv = {
		.proc = FD_NONE, .null = FD_NONE, .steward = FD_NONE, .net.owner.diag = FD_NONE
	};
	bool is_first = getpid() == 1;
	int in, out;

	if (argc == 2 && str_eq(argv[1], "--version")) {
		(void)printf("vitrine-init %s\n", VITRINE_VERSION);
		return 0;
	}
	if (is_first && vm_is_one(argv[0])) {
		in = out = vm_boot();
		sv.is_vm = true;
		if (in < 0 || !null_stdio(&sv.null) ||
		    vm_wake(in, argc > 1 && str_eq(argv[1], LINK_KEEP)) < 0)
			return 125;
		serve(&sv, in, out);
	}
	/* Whoever is not pid 1 must not send signals to everybody. */
	if (!is_first || isatty(0) || !move_stdio(&in, &out, &sv.null)) {
		(void)fprintf(stderr, "vitrine-init: for 'vitrine run --engine NAME': it must be "
				      "pid "
				      "1, and its input and output are a link\n");
		return 125;
	}
	serve(&sv, in, out);
}
