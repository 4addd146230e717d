/* SPDX-License-Identifier: Apache-2.0 */
/* tests/contain/race.c - swap a directory and a symbolic link under somebody's feet
 *
 * A path that is checked and then opened can be changed in between. One process exchanges a directory and a
 * link without pause, atomically (RENAME_EXCHANGE), so that at any moment the name is one or the other. Where a
 * file system knows no exchange it takes three renames, and the name is nobody's for a moment.
 *
 *   race write DIR LINK N TEXT    meanwhile a second process writes TEXT to DIR/f. Through the link it goes
 *                                 to wherever the link points: the host looks whether it arrived.
 *   race plant DIR LINK MS NAME   meanwhile a second process makes DIR/NAME again and again: a name that the
 *                                 supervisor takes away. The host looks whether it took the link's one.
 *
 * Printed at the end: how many exchanges and writes succeeded, and how many of the former in three steps. A race that
 * never ran proves nothing.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct shared {
	volatile int stop;
	volatile unsigned long written;
	volatile unsigned long failed;
};

static struct shared *shared_new(void)
{
	void *p = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		perror("mmap");
		exit(3);
	}
	return p;
}

static unsigned long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (unsigned long)t.tv_sec * 1000UL + (unsigned long)t.tv_nsec / 1000000UL;
}

static void join(char *out, size_t size, const char *dir, const char *name)
{
	int n = snprintf(out, size, "%s/%s", dir, name);

	if (n < 0 || (size_t)n >= size) {
		fprintf(stderr, "path too long\n");
		exit(3);
	}
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = write(fd, text, strlen(text));
	close(fd);
	return n < 0 ? -1 : 0;
}

/* The parent directories of `path` below the name that is being swapped. */
static void make_parents(const char *path)
{
	char copy[PATH_MAX];
	char *slash;

	join(copy, sizeof(copy), path, "");
	copy[strlen(copy) - 1] = '\0';
	slash = strchr(copy + 1, '/'); /* never the name itself, which may be nobody's just now */
	while (slash && (slash = strchr(slash + 1, '/'))) {
		*slash = '\0';
		(void)mkdir(copy, 0755); /* it may exist, and it may just now be the link */
		*slash = '/';
	}
}

static void writer(struct shared *sh, const char *path, const char *text, int parents)
{
	while (!sh->stop) {
		if (parents)
			make_parents(path);
		if (write_file(path, text) == 0)
			sh->written++;
		else
			sh->failed++;
	}
	_exit(0);
}

/* 1: at once, 3: in three steps, 0: not at all. */
static int exchange(const char *dir, const char *link)
{
	static const char aside[] = "race.aside";

	if (renameat2(AT_FDCWD, dir, AT_FDCWD, link, RENAME_EXCHANGE) == 0)
		return 1;
	if (errno != EINVAL && errno != ENOSYS)
		return 0;
	if (rename(dir, aside) != 0 || rename(link, dir) != 0 || rename(aside, link) != 0)
		return 0;
	return 3;
}

static int run(const char *dir, const char *link, const char *path, const char *text, int parents,
	       unsigned long count, unsigned long ms)
{
	struct shared *sh = shared_new();
	unsigned long done = 0, slowly = 0, failed = 0, end = now_ms() + (count ? 20000 : ms);
	pid_t pid = fork();

	if (pid < 0) {
		perror("fork");
		return 3;
	}
	if (pid == 0)
		writer(sh, path, text, parents);
	while (sh->written + sh->failed == 0)
		sched_yield(); /* a race with a process that does not run yet is none */
	/* Both sides must have had their turns: a rename holds locks that can starve the writer. */
	while ((!count || done + failed < count || sh->written < count / 40) && now_ms() < end) {
		int steps = exchange(dir, link);

		if (steps)
			done++;
		else
			failed++;
		if (steps == 3)
			slowly++;
		if (done % 8 == 0)
			sched_yield();
	}
	sh->stop = 1;
	waitpid(pid, NULL, 0);
	printf("exchanged=%lu refused=%lu written=%lu unwritten=%lu slowly=%lu\n", done, failed,
	       sh->written, sh->failed, slowly);
	return 0;
}

int main(int argc, char **argv)
{
	char path[PATH_MAX];

	if (argc == 6 && strcmp(argv[1], "write") == 0) {
		join(path, sizeof(path), argv[2], "f");
		return run(argv[2], argv[3], path, argv[5], 0, strtoul(argv[4], NULL, 10), 0);
	}
	if (argc == 6 && strcmp(argv[1], "plant") == 0) {
		join(path, sizeof(path), argv[2], argv[5]);
		return run(argv[2], argv[3], path, "planted\n", 1, 0, strtoul(argv[4], NULL, 10));
	}
	fprintf(stderr, "usage: race write DIR LINK N TEXT | race plant DIR LINK MS NAME\n");
	return 2;
}
