/* SPDX-License-Identifier: Apache-2.0 */
/* tests/bench/file_work.c - everyday file work, timed where it runs
 *
 * file_work DIR WORK runs one job below DIR and prints its nanoseconds. It is started once outside
 * and once inside the sandbox; because the clock is read here, the start of the sandbox is not in
 * the figure. Temporary files are sent to DIR so that both sides write to the same kind of file
 * system, and git reads no settings but the repository's own. Short jobs are repeated and
 * averaged: one run of a few milliseconds says little.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* grep ends at its first match when its output is /dev/null, so the word it looks for is not in the
 * tree. */
static const struct work {
	const char *name;
	int status;
	unsigned repeat;
	const char *argv[10];
} works[] = {
	{ "unpack", 0, 1, { "tar", "-xf", "files.tar", "-C", "out" } },
	{ "grep", 1, 3, { "grep", "-r", "absent-word-4711", "tree" } },
	{ "git-status", 0, 5, { "git", "-C", "repo", "status", "--porcelain" } },
	{ "compile", 0, 1, { "gcc", "-O1", "-c", "unit.c", "-o", "unit.o" } },
};

static _Noreturn void die(const char *what)
{
	(void)fprintf(stderr, "file_work: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void clear_out(void)
{
	if (nftw("out", remove_one, 16, FTW_DEPTH | FTW_PHYS) && errno != ENOENT)
		die("out");
}

static int64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t run(const struct work *w)
{
	char *argv[10];
	posix_spawn_file_actions_t fa;
	siginfo_t si = { 0 };
	pid_t pid;

	for (size_t i = 0; i < 10; i++)
		argv[i] = w->argv[i] ? strdup(w->argv[i]) : NULL;
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&fa, 1, "/dev/null", O_WRONLY, 0);

	int64_t begin = now_ns();
	int r = posix_spawnp(&pid, argv[0], &fa, NULL, argv, environ);

	if (r) {
		errno = r;
		die(w->argv[0]);
	}
	if (waitid(P_PID, (id_t)pid, &si, WEXITED))
		die("waitid");

	int64_t end = now_ns();

	if (si.si_code != CLD_EXITED || si.si_status != w->status) {
		(void)fprintf(stderr, "file_work: %s ended with %d, not %d\n", w->name,
			      si.si_status, w->status);
		exit(1);
	}
	return end - begin;
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		(void)fprintf(stderr, "usage: file_work DIR WORK\n");
		return 2;
	}
	if (chdir(argv[1]))
		die(argv[1]);
	setenv("TMPDIR", argv[1], 1);
	setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1);
	setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
	for (size_t i = 0; i < sizeof(works) / sizeof(*works); i++) {
		if (strcmp(works[i].name, argv[2]) != 0)
			continue;
		clear_out();
		if (mkdir("out", 0755))
			die("out");

		int64_t ns = 0;
		unsigned runs = 0;

		do {
			ns += run(&works[i]);
			runs++;
		} while (runs < works[i].repeat);
		clear_out();
		(void)printf("%lld\n", (long long)(ns / runs));
		return 0;
	}
	(void)fprintf(stderr, "file_work: no such work: %s\n", argv[2]);
	return 2;
}
