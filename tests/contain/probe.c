/* SPDX-License-Identifier: Apache-2.0 */
/* tests/contain/probe.c - one forbidden act per word; says how far each got
 *
 * Built static and without sanitizers, so that it runs in any root and brings no system calls of
 * its own. The checks run the same words outside (control: must get through) and inside (must not),
 * and judge by what they see from outside; what is printed here only tells them which attempt to
 * look at.
 *
 * Output is a line "word ok", "word ENAME" or "word SIGSYS" per act. Exit status: 0 the act got
 * through (a breach, when inside), 1 it was refused the way walls refuse, 2 cannot say.
 *
 * Most system calls are made with pointers and descriptors that cannot be good. A filter answers
 * before the kernel looks at them (EPERM, ENOSYS, SIGSYS); the kernel proper answers EFAULT, EBADF
 * or EINVAL. So "did it reach the kernel" is decided without any effect on the host, even if every
 * wall is gone. Where the kernel asks for a capability first, the prefix "asroot" makes the control
 * in a user namespace of its own.
 *
 *   probe WORD [ARGS...]          one act
 *   probe each WORD[,ARG...]...   many acts, each in a child of its own; after the lines of an act
 *                                 comes "= WORD STATUS"
 *   probe asroot ...              the rest of the line as root of fresh namespaces (controls only)
 *   probe words                   the list
 *
 * Everything that grows (processes, memory, files) takes its bound as an argument and stops there.
 *
 * The words lie in the headers below, one for each kind; one plain cc line builds the whole.
 */
#define _GNU_SOURCE
#include "probe.h"
#include "probe_calls.h"
#include "probe_grow.h"
#include "probe_ipc.h"
#include "probe_net.h"
#include "probe_pools.h"
#include "probe_proc.h"
#include "probe_wake.h"

struct word {
	const char *word;
	int (*fn)(int argc, char **argv);
};

static const struct word words[] = {
	{ "adjtimex", w_adjtimex },
	{ "vhangup", w_vhangup },
	{ "personality", w_personality },
	{ "chroot", w_chroot },
	{ "chroot_walk", w_chroot_walk },
	{ "sethostname_real", w_sethostname_real },
	{ "newuser", w_newuser },
	{ "newuser_clone", w_newuser_clone },
	{ "newuser_clone3", w_newuser_clone3 },
	{ "write", w_write },
	{ "open", w_open },
	{ "setids", w_setids },
	{ "signal", w_signal },
	{ "signal_all", w_signal_all },
	{ "ptrace", w_ptrace },
	{ "readmem", w_readmem },
	{ "writemem", w_writemem },
	{ "kcmp", w_kcmp },
	{ "pidfd_getfd", w_pidfd_getfd },
	{ "process_madvise", w_process_madvise },
	{ "limits", w_limits },
	{ "status", w_status },
	{ "look", w_look },
	{ "ids", w_ids },
	{ "nsids", w_nsids },
	{ "setns_all", w_setns_all },
	{ "tiocsti", w_tiocsti },
	{ "tiocsti_high", w_tiocsti_high },
	{ "steal_tty", w_steal_tty },
	{ "ttymess", w_ttymess },
	{ "fgsteal", w_fgsteal },
	{ "ctty", w_ctty },
	{ "key_add", w_key_add },
	{ "key_read", w_key_read },
	{ "shm_read", w_shm_read },
	{ "shm_hold", w_shm_hold },
	{ "mq_read", w_mq_read },
	{ "mq_hold", w_mq_hold },
	{ "handle", w_handle },
	{ "unix", w_unix },
	{ "abstract", w_abstract },
	{ "tcp", w_tcp },
	{ "udp", w_udp },
	{ "fastopen", w_fastopen },
	{ "mptcp", w_mptcp },
	{ "ping", w_ping },
	{ "unspec", w_unspec },
	{ "nladdr", w_nladdr },
	{ "ifup", w_ifup },
	{ "memexec", w_memexec },
	{ "goneexec", w_goneexec },
	{ "layers", w_layers },
	{ "dispatch", w_dispatch },
	{ "crash", w_crash },
	{ "argv", w_argv },
	{ "env", w_env },
	{ "fds", w_fds },
	{ "forkloop", w_forkloop },
	{ "touchmem", w_touchmem },
	{ "fill", w_fill },
	{ "inodes", w_inodes },
	{ "openfiles", w_openfiles },
	{ "spin", w_spin },
	{ "ptys", w_ptys },
	{ "inotify", w_inotify },
	{ "timers", w_timers },
	{ "wake", w_wake },
	{ "pool", w_pool },
	{ "stubborn", w_stubborn },
	{ "orphans", w_orphans },
	{ "out", w_out },
	{ "exit", w_exit },
	{ "sleep", w_sleep },
	{ "sentinel", w_sentinel },
	{ "asroot", w_asroot },
#ifdef __x86_64__
	{ "int80_socket_vsock", w_int80_socket_vsock },
	{ "socketcall_inet", w_socketcall_inet },
	{ "socketcall_vsock", w_socketcall_vsock },
	{ "socketcall_alg", w_socketcall_alg },
#endif
};

static int list_words(void)
{
	for (size_t i = 0; i < COUNT(calls); i++)
		printf("%s\n", calls[i].word);
	for (size_t i = 0; i < COUNT(families); i++)
		printf("%s\n", families[i].word);
	for (size_t i = 0; i < COUNT(words); i++)
		printf("%s\n", words[i].word);
#ifdef __x86_64__
	for (size_t i = 0; i < COUNT(calls32); i++)
		printf("%s\n", calls32[i].word);
#endif
	return 0;
}

/* A filter may kill: a call that may be the last one runs in a child. */
static int in_child(const char *word, int (*fn)(const void *), const void *what)
{
	int status;
	pid_t pid;

	(void)fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(fn(what));
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return UNSURE;
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	if (WTERMSIG(status) == SIGSYS) {
		put(word, "SIGSYS");
		return REFUSED;
	}
	printf("%s signal%d\n", word, WTERMSIG(status));
	(void)fflush(stdout);
	return UNSURE;
}

static int fn_call(const void *c)
{
	return do_call(c);
}

static int fn_family(const void *f)
{
	return do_family(f);
}

#ifdef __x86_64__
static int fn_call32(const void *c)
{
	return do_call32(c);
}
#endif

struct line {
	int argc;
	char **argv;
};

static int fn_run(const void *l)
{
	const struct line *line = l;
	int r = run(line->argc, line->argv);

	(void)fflush(stdout);
	return r;
}

/* WORD,ARG,ARG is taken apart; arguments with a comma in them cannot be said this way. */
static int one_of_each(char *text)
{
	char *argv[9], *save = NULL;
	int argc = 0;
	struct line l = { .argv = argv };

	for (char *p = strtok_r(text, ",", &save); p && argc < 8; p = strtok_r(NULL, ",", &save))
		argv[argc++] = p;
	argv[argc] = NULL;
	l.argc = argc;
	return argc ? in_child(argv[0], fn_run, &l) : UNSURE;
}

static int each(int argc, char **argv)
{
	bool through = false, unsure = false;

	for (int i = 1; i < argc; i++) {
		char *text = strdup(argv[i]);
		int r = text ? one_of_each(text) : UNSURE;

		free(text);
		printf("= %s %d\n", argv[i], r);
		(void)fflush(stdout);
		through = through || r == GOT_THROUGH;
		unsure = unsure || r == UNSURE;
	}
	return through ? GOT_THROUGH : unsure ? UNSURE : REFUSED;
}

static int run(int argc, char **argv)
{
	if (argc < 1)
		return UNSURE;
	if (strcmp(argv[0], "words") == 0)
		return list_words();
	if (strcmp(argv[0], "each") == 0)
		return each(argc, argv);
	for (size_t i = 0; i < COUNT(calls); i++)
		if (strcmp(calls[i].word, argv[0]) == 0)
			return in_child(argv[0], fn_call, &calls[i]);
	for (size_t i = 0; i < COUNT(families); i++)
		if (strcmp(families[i].word, argv[0]) == 0)
			return in_child(argv[0], fn_family, &families[i]);
#ifdef __x86_64__
	for (size_t i = 0; i < COUNT(calls32); i++)
		if (strcmp(calls32[i].word, argv[0]) == 0)
			return in_child(argv[0], fn_call32, &calls32[i]);
#endif
	for (size_t i = 0; i < COUNT(words); i++)
		if (strcmp(words[i].word, argv[0]) == 0)
			return words[i].fn(argc, argv);
	printf("%s unknown\n", argv[0]);
	return UNSURE;
}

int main(int argc, char **argv)
{
	int r = run(argc - 1, argv + 1);

	(void)fflush(stdout);
	return r;
}
