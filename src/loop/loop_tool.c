/* SPDX-License-Identifier: Apache-2.0 */
/* loop/loop_tool.c - run vitrine, keep what it says
 *
 * The child is told to end when we die, whatever kills us; a signal to us is handed on to it, and again as SIGKILL when
 * it has not ended some seconds later.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/loop.h"
#include "loop/loop.h"

#define GRACE_S 10

volatile sig_atomic_t loop_signal;

static void on_signal(int sig)
{
	loop_signal = sig;
}

void loop_signals(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction sa = { .sa_handler = on_signal };

	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		(void)sigaction(signals[i], &sa, NULL);
	sa.sa_handler = SIG_IGN;
	(void)sigaction(SIGPIPE, &sa, NULL);
}

struct stream {
	int from, to;
	struct buf *text;
	uint64_t n;
};

static _Noreturn void child(const struct loop *l, const struct tool *t, const int *pipes,
			    pid_t parent)
{
	size_t n = 0;
	char **argv;
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	while (t->argv[n])
		n++;
	argv = mem_new(n + 2, sizeof(*argv));
	argv[0] = l->program;
	memcpy(argv + 1, t->argv, n * sizeof(*argv));
	(void)signal(SIGPIPE, SIG_DFL);
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent || null < 0 ||
	    dup2(null, 0) < 0 || dup2(pipes[0], 1) < 0 || dup2(pipes[1], 2) < 0)
		_exit(125);
	(void)execv(l->program, argv);
	_exit(125);
}

/* One piece. false: it has ended. */
static bool pump(struct stream *s)
{
	char piece[16 * KIB];
	ssize_t n = io_read(s->from, piece, sizeof(piece));

	if (n <= 0)
		return false;
	/* What is over the limit is read and dropped, so that the agent does not hang on a full pipe. */
	if (s->to >= 0 && s->n + (uint64_t)n <= TOOL_OUTPUT_MAX)
		(void)io_write_all(s->to, piece, (size_t)n);
	if (s->text && s->text->n + (size_t)n < s->text->max)
		buf_add(s->text, piece, (size_t)n);
	s->n += (uint64_t)n;
	return true;
}

/* Forward the signal every 200 ms, because a session that is still starting ignores it; after GRACE_S send SIGKILL. */
static void hand_on(pid_t pid, uint64_t *told)
{
	if (loop_signal == 0)
		return;
	if (*told == 0)
		*told = clock_now();
	(void)kill(pid, clock_now() - *told > GRACE_S * NS_PER_SEC ? SIGKILL : SIGTERM);
}

/* Ended by the signal while what it had started inside still holds the pipes. */
static bool is_gone(pid_t pid)
{
	siginfo_t si = { 0 };

	return waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG | WNOWAIT) == 0 && si.si_pid == pid;
}

static void relay(const struct loop *l, const struct tool *t, struct stream *s, pid_t pid)
{
	uint64_t told = 0;

	for (int open = 2; open > 0 && !(told && is_gone(pid));) {
		struct pollfd p[2] = { { .fd = s[0].from, .events = POLLIN },
				       { .fd = s[1].from, .events = POLLIN } };

		if (!t->is_last)
			hand_on(pid, &told);
		if (t->may_ask)
			loop_look_for_questions(l);
		/* A signal that comes between the two lines is seen a second later. */
		if (poll(p, 2, loop_signal ? 200 : 1000) < 0)
			continue; /* a signal */
		for (int i = 0; i < 2; i++)
			if (p[i].revents && !pump(&s[i])) {
				fd_close(s[i].from);
				s[i].from = FD_NONE;
				open--;
			}
	}
	fd_close(s[0].from);
	fd_close(s[1].from);
}

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return 125;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int loop_tool(const struct loop *l, const struct tool *t, struct err *e)
{
	int out[2] = { FD_NONE, FD_NONE }, err[2] = { FD_NONE, FD_NONE };
	pid_t parent = getpid(), pid;

	if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)
		return err_sys(e, "pipe");
	pid = fork();
	if (pid == 0)
		child(l, t, (int[]){ out[1], err[1] }, parent);
	fd_close(out[1]);
	fd_close(err[1]);
	if (pid < 0) {
		fd_close(out[0]);
		fd_close(err[0]);
		return err_sys(e, "fork");
	}
	relay(l, t,
	      (struct stream[]){ { out[0], t->out, t->text, 0 }, { err[0], t->err, t->errors, 0 } },
	      pid);
	return wait_for(pid);
}
