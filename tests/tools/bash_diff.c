/* SPDX-License-Identifier: Apache-2.0 */
/* tests/tools/bash_diff.c - does bash run a command that our reader did not see?
 *
 *     bash_diff [--runs N] [--seed N] [--show]       (inside a sandbox; see tests/run)
 *
 * Random texts are given to the real bash, whose PATH leads nowhere: each command that it would run is reported by
 * command_not_found_handle. Every reported name must be among those that our reader found in the same text, unless
 * the reader refused the text or said that it runs something it cannot name. A text that was refused is not run and
 * does not count. Exit status 0 when nothing was missed.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "base/num.h"
#include "guard/seen.h"
#include "tests/tools/bash_gen.h"

#define REPORT_FD 9
#define WAIT_MS 1500

struct totals {
	uint64_t tried, refused, runs, probes, open, late, missed;
};

static char *const bash_env[] = {
	/* NOLINTNEXTLINE(cppcoreguidelines-interfaces-global-init) */
	(char[]){ "PATH=/nonexistent" },
	(char[]){ "FUNCNEST=40" },
	(char[]){ "BASH_FUNC_command_not_found_handle%%=() { printf '%s\\0' \"${1//$'\\n'/ }\" "
		  ">&9; return "
		  "127; }" },
	NULL,
};

static pid_t start_bash(const char *text, int report)
{
	char *argv[] = { (char[]){ "bash" }, (char[]){ "--norc" }, (char[]){ "-c" },
			 (char *)(uintptr_t)text, NULL };
	struct rlimit cpu = { 1, 1 };
	/* NOLINTNEXTLINE(clang-analyzer-security.insecureAPI.vfork): the child only makes system calls */
	pid_t pid = vfork();

	bug_on(pid < 0); /* NOLINT(clang-analyzer-unix.Vfork): the parent's */
	if (pid == 0) {
		(void)setpgid(0, 0);
		(void)setrlimit(RLIMIT_CPU, &cpu);
		(void)dup2(0, 1);
		(void)dup2(report, REPORT_FD);
		(void)execve("/bin/bash", argv, bash_env);
		_exit(126);
	}
	return pid;
}

/* Gives back what bash reported, NUL after each name; false when it had to be stopped. */
static bool run_bash(const char *text, struct buf *ret)
{
	int fds[2], status;
	uint64_t waited = 0;
	bool is_done = false;
	pid_t pid;

	ret->n = 0;
	bug_on(pipe2(fds, O_CLOEXEC) < 0);
	pid = start_bash(text, fds[1]);
	(void)close(fds[1]);
	while (!is_done && waited < WAIT_MS) {
		struct pollfd p = { .fd = fds[0], .events = POLLIN };
		char got[4096];
		ssize_t n;

		if (poll(&p, 1, 100) == 0) {
			waited += 100;
			continue;
		}
		n = read(fds[0], got, sizeof(got));
		is_done = n <= 0;
		if (n > 0)
			buf_add(ret, got, (size_t)n);
	}
	(void)kill(-pid, SIGKILL);
	(void)waitpid(pid, &status, 0);
	(void)close(fds[0]);
	return is_done;
}

static void complain(const char *text, const char *name, uint64_t seed)
{
	_cleanup_(buf_done) struct buf b = BUF(MIB);

	buf_esc(&b, text, strlen(text));
	(void)printf("MISSED '%s' (seed %llu) in: %s\n", name, (unsigned long long)seed,
		     buf_cstr(&b));
}

static void compare(struct totals *t, const char *text, const struct seen *seen, uint64_t seed)
{
	_cleanup_(buf_done) struct buf names = BUF(16 * MIB);

	if (!run_bash(text, &names))
		t->late++;
	t->runs++;
	t->open += seen->is_open;
	for (size_t i = 0; i < names.n; i += strlen(names.p + i) + 1) {
		t->probes++;
		if (!seen->is_open && !seen_has(seen, names.p + i)) {
			t->missed++;
			complain(text, names.p + i, seed);
		}
	}
}

static void one(struct gen *g, struct totals *t, bool is_shown)
{
	_cleanup_(buf_done) struct buf text = BUF(MIB);
	_cleanup_(arena_done) struct arena mem = ARENA(16 * MIB);
	struct seen seen = { .mem = &mem };
	uint64_t seed = g->state;

	gen_text(g, &text);
	t->tried++;
	if (!seen_text(&seen, buf_cstr(&text), text.n)) {
		t->refused++;
		if (is_shown)
			(void)printf("refused (%s): %s\n----\n", seen.why, buf_cstr(&text));
		return;
	}
	compare(t, buf_cstr(&text), &seen, seed);
}

static void silence(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	bug_on(fd < 0);
	(void)dup2(fd, 0);
	(void)dup2(fd, 2);
	/* No file can be made here, and no pattern of ours names one. */
	bug_on(chdir("/proc/sys") < 0);
}

int main(int argc, char **argv)
{
	struct gen g = { .state = 0x9e3779b97f4a7c15ULL };
	struct totals t = { 0 };
	uint64_t runs = 2000;
	bool is_shown = false;
	struct err e;

	for (int i = 1; i < argc; i++) {
		if (str_eq(argv[i], "--show"))
			is_shown = true;
		else if (i + 1 < argc && str_eq(argv[i], "--runs"))
			bug_on(num_parse(argv[++i], 1, UINT32_MAX, &runs, &e) < 0);
		else if (i + 1 < argc && str_eq(argv[i], "--seed"))
			bug_on(num_parse(argv[++i], 1, UINT64_MAX, &g.state, &e) < 0);
		else
			return 2;
	}
	/* What the texts write to stdout is theirs; ours is printed by the parent, so bash gets none. */
	silence();
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	while (t.runs < runs && t.missed < 20)
		one(&g, &t, is_shown);
	(void)printf("%llu texts, %llu refused, %llu run by bash, %llu commands reported, %llu "
		     "texts "
		     "with commands we cannot name, %llu stopped, %llu missed\n",
		     (unsigned long long)t.tried, (unsigned long long)t.refused,
		     (unsigned long long)t.runs, (unsigned long long)t.probes,
		     (unsigned long long)t.open, (unsigned long long)t.late,
		     (unsigned long long)t.missed);
	(void)printf("%d passed, %d failed, 0 skipped\n", t.missed == 0, t.missed != 0);
	return t.missed != 0;
}
