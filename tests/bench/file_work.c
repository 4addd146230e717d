/* SPDX-License-Identifier: Apache-2.0 */
/* tests/bench/file_work.c - everyday file work, timed where it runs
 *
 * file_work DIR runs every job below DIR and prints "NAME NANOSECONDS" for each. It is started once
 * outside and once inside the sandbox; the clock is read here, and only after a while, so that the
 * start of the sandbox is not in the figures, nor what the keeper does right after it. Temporary
 * files are sent to DIR so that both sides write to the same kind of file system, and git reads no
 * settings but the repository's own. Short jobs are repeated and averaged: one run of a few
 * milliseconds says little.
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

#define SETTLE_US 200000

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

static int64_t measure(const struct work *w)
{
	int64_t ns = 0;
	unsigned runs = 0;

	clear_out();
	if (mkdir("out", 0755))
		die("out");
	do {
		ns += run(w);
		runs++;
	} while (runs < w->repeat);
	clear_out();
	return ns / runs;
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		(void)fprintf(stderr, "usage: file_work DIR\n");
		return 2;
	}
	if (chdir(argv[1]))
		die(argv[1]);
	setenv("TMPDIR", argv[1], 1);
	setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1);
	setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
	(void)usleep(SETTLE_US);
	for (size_t i = 0; i < sizeof(works) / sizeof(*works); i++)
		(void)printf("%s %lld\n", works[i].name, (long long)measure(&works[i]));
	return 0;
}
