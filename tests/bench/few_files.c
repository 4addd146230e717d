/* SPDX-License-Identifier: Apache-2.0 */
/* tests/bench/few_files.c - the four things that are done to files, one figure each
 *
 * few_files DIR N makes N files of 4 KiB below DIR, looks at each, reads each and removes each; it prints the
 * microseconds a file took for each of the four. Small on purpose: it also runs where a system call takes a hundred
 * times as long.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char block[4096];

static int make(const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	int r = fd < 0 || write(fd, block, sizeof(block)) != (ssize_t)sizeof(block);

	return r | (fd >= 0 && close(fd) < 0);
}

static int look(const char *name)
{
	struct stat st;

	return lstat(name, &st) < 0;
}

static int read_all(const char *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	int r = fd < 0 || read(fd, block, sizeof(block)) != (ssize_t)sizeof(block);

	return r | (fd >= 0 && close(fd) < 0);
}

static double now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*fn)(const char *name);
	} works[] = {
		{ "make", make }, { "look", look }, { "read", read_all }, { "remove", unlink }
	};
	int n = argc == 3 ? (int)strtol(argv[2], NULL, 10) : 0;

	if (n <= 0 || chdir(argv[1]) < 0) {
		(void)fprintf(stderr, "few_files: DIR N\n");
		return 2;
	}
	for (size_t w = 0; w < sizeof(works) / sizeof(works[0]); w++) {
		double before = now_us();

		for (int i = 0; i < n; i++) {
			char name[32];

			(void)snprintf(name, sizeof(name), "f%d", i);
			if (works[w].fn(name) != 0) {
				perror(works[w].name);
				return 1;
			}
		}
		(void)printf("%s %.1f\n", works[w].name, (now_us() - before) / n);
	}
	return 0;
}
