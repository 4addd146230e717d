/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cli/killstep.c - kill -9 one process of a tree at its N-th system call
 *
 *     killstep FILE client|keeper|init|TEXT N COMMAND [ARGS...]
 *
 * Follows every process the command makes. The client is the command itself, the keeper its first child, init the
 * keeper's first; any other TEXT is the beginning of the command line of the first that executes it ("vitrine-gate
 * front"). When that one enters its N-th system call (counted from its birth, or from its execve) it is killed
 * and the others are let go. FILE then says "killed WHO at N in NUMBER", or else "not reached N", so that nobody can take
 * silence for success. Exit status: that of the command, 128+n by a signal.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX 512

enum { CLIENT, KEEPER, INIT, OTHER, NAMED };

static struct {
	pid_t pid;
	int role;
	long calls;
	bool is_inside; /* between entry and exit of a call */
	bool has_child;
} v[MAX];
static int n;

static int find(pid_t pid)
{
	for (int i = 0; i < n; i++)
		if (v[i].pid == pid)
			return i;
	if (n == MAX)
		exit(3);
	memset(&v[n], 0, sizeof(v[n]));
	v[n].pid = pid;
	v[n].role = OTHER;
	return n++;
}

static long number_of(pid_t pid)
{
	struct user_regs_struct r;

	return ptrace(PTRACE_GETREGS, pid, 0, &r) < 0 ? -1 : (long)r.orig_rax;
}

/* Does its command line begin so? Words of it are apart by a space. */
static bool is_called(pid_t pid, const char *text)
{
	char path[40], line[256];
	FILE *f;
	size_t got;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	f = fopen(path, "re");
	if (f == NULL)
		return false;
	got = fread(line, 1, sizeof(line) - 1, f);
	fclose(f);
	for (size_t i = 0; i < got; i++)
		if (line[i] == '\0')
			line[i] = ' ';
	line[got] = '\0';
	return strncmp(line, text, strlen(text)) == 0;
}

static void let_go(void)
{
	for (int i = 0; i < n; i++) {
		/* Those that run must stand still to be let go. */
		if (ptrace(PTRACE_DETACH, v[i].pid, 0, 0) == 0 || errno != ESRCH)
			continue;
		(void)syscall(62 /* kill */, v[i].pid, 0);
	}
}

int main(int argc, char **argv)
{
	static const char *const roles[] = { "client", "keeper", "init" };
	int want = NAMED, status, result = 0;
	bool is_done = false, is_found = false;
	long step;
	pid_t child;

	FILE *out;

	if (argc < 5 || (out = fopen(argv[1], "we")) == NULL)
		return 2;
	argv++;
	for (int i = 0; i < 3; i++)
		if (strcmp(argv[1], roles[i]) == 0)
			want = i;
	step = strtol(argv[2], NULL, 10);
	child = fork();
	if (child == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		execv(argv[3], argv + 3);
		_exit(127);
	}
	waitpid(child, &status, 0);
	ptrace(PTRACE_SETOPTIONS, child, 0,
	       PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
		       PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC);
	v[find(child)].role = 0;
	ptrace(PTRACE_SYSCALL, child, 0, 0);
	for (;;) {
		pid_t pid = waitpid(-1, &status, __WALL);
		int i, sig = 0;

		if (pid < 0)
			break;
		i = find(pid);
		if (WIFEXITED(status) || WIFSIGNALED(status)) {
			if (pid == child)
				result = WIFEXITED(status) ? WEXITSTATUS(status)
							   : 128 + WTERMSIG(status);
			v[i] = v[--n];
			continue;
		}
		if (status >> 16) {
			unsigned long born = 0;
			int event = status >> 16;

			if (event == PTRACE_EVENT_EXEC) {
				v[i].calls = 0;
				if (want == NAMED && !is_found && is_called(pid, argv[1])) {
					v[i].role = NAMED;
					is_found = true;
				}
			} else if (ptrace(PTRACE_GETEVENTMSG, pid, 0, &born) == 0) {
				int c = find((pid_t)born);

				if (v[i].role < INIT && !v[i].has_child)
					v[c].role = v[i].role + 1;
				v[i].has_child = true;
			}
		} else if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
			v[i].is_inside = !v[i].is_inside;
			v[i].calls += v[i].is_inside;
			if (!is_done && v[i].is_inside && v[i].role == want && v[i].calls == step) {
				fprintf(out, "killed %s at %ld in %ld\n", argv[1], step,
					number_of(pid));
				is_done = true;
				kill(pid, SIGKILL);
				continue;
			}
		} else if (WSTOPSIG(status) != SIGSTOP && WSTOPSIG(status) != SIGTRAP) {
			sig = WSTOPSIG(status);
		} else if (WSTOPSIG(status) == SIGSTOP && v[i].calls > 0) {
			siginfo_t info;

			/* A stop of its own, not the one a new process begins with. */
			if (ptrace(PTRACE_GETSIGINFO, pid, 0, &info) == 0 && info.si_code <= 0)
				sig = SIGSTOP;
		}
		/* Once it is done nobody is followed any more. */
		if (is_done)
			ptrace(PTRACE_DETACH, pid, 0, sig);
		else
			ptrace(PTRACE_SYSCALL, pid, 0, sig);
		if (is_done && pid != child) {
			/* Not our child: nothing more will be heard of it. */
			v[i] = v[--n];
		}
	}
	if (!is_done)
		fprintf(out, "not reached %ld\n", step);
	let_go();
	return fclose(out) == 0 ? result : 2;
}
