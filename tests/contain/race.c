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
 *   race bare HOW TEXT DIR NAME   until there is a file "stop": get TEXT into DIR/NAME, which is masked, in the moments in
 *                                 which it is not. HOW is one of the ways below.
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

/* ---- bare ---- */

#define HELD_MAX 64

struct bare {
	const char *text, *dir, *name;
	char path[PATH_MAX], mine[PATH_MAX];
	int held[HELD_MAX];
	unsigned n_held;
};

static int put(int fd, const char *text)
{
	int ok = fd >= 0 && write(fd, text, strlen(text)) > 0;

	if (fd >= 0)
		close(fd);
	return ok;
}

static int open_with(struct bare *b, int flags)
{
	return put(open(b->path, O_WRONLY | flags), b->text);
}

static int by_append(struct bare *b)
{
	return open_with(b, O_APPEND);
}

static int by_truncate(struct bare *b)
{
	return open_with(b, O_TRUNC);
}

static int by_create(struct bare *b)
{
	return put(open(b->path, O_WRONLY | O_CREAT | O_EXCL, 0755), b->text);
}

static int by_mode(struct bare *b)
{
	return chmod(b->path, 0777) == 0 && by_append(b);
}

static int by_map(struct bare *b)
{
	int fd = open(b->path, O_RDWR), ok = 0;
	size_t n = strlen(b->text);
	void *p;

	if (fd >= 0 && ftruncate(fd, (off_t)n) == 0) {
		p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (p != MAP_FAILED) {
			memcpy(p, b->text, n); /* it stays mapped */
			ok = 1;
		}
	}
	if (fd >= 0)
		close(fd);
	return ok;
}

static void make_mine(const struct bare *b)
{
	(void)put(open(b->mine, O_WRONLY | O_CREAT | O_TRUNC, 0755), b->text);
}

static int by_rename(struct bare *b)
{
	make_mine(b);
	return rename(b->mine, b->path) == 0;
}

static int by_exchange(struct bare *b)
{
	make_mine(b);
	return renameat2(AT_FDCWD, b->mine, AT_FDCWD, b->path, RENAME_EXCHANGE) == 0;
}

static int by_link(struct bare *b)
{
	make_mine(b);
	return unlink(b->path) == 0 && link(b->mine, b->path) == 0;
}

static int by_symlink(struct bare *b)
{
	make_mine(b);
	return unlink(b->path) == 0 && symlink(b->mine + strlen(b->dir) + 1, b->path) == 0;
}

/* An alias that outlives the moment. */
static int by_alias(struct bare *b)
{
	(void)unlink(b->mine);
	return link(b->path, b->mine) == 0 && put(open(b->mine, O_WRONLY | O_APPEND), b->text);
}

/* Descriptors of what the host is still writing, and of the name itself, used for ever after. */
static int by_held(struct bare *b)
{
	static const char *const also[] = { "", ".lock", ".new", "~" };
	int ok = 0;

	for (unsigned i = 0; i < sizeof(also) / sizeof(*also) && b->n_held < HELD_MAX; i++) {
		char path[PATH_MAX];
		int fd;

		if (snprintf(path, sizeof(path), "%s%s", b->path, also[i]) >= (int)sizeof(path))
			continue;
		fd = open(path, O_WRONLY | O_APPEND);
		if (fd >= 0)
			b->held[b->n_held++] = fd;
	}
	for (unsigned i = 0; i < b->n_held; i++)
		ok |= write(b->held[i], b->text, strlen(b->text)) > 0;
	return ok;
}

/* The same for a directory: what is made below the descriptor. */
static int by_inside(struct bare *b)
{
	int ok = 0;

	if (b->n_held < HELD_MAX) {
		int fd = open(b->path, O_PATH | O_DIRECTORY);

		if (fd >= 0)
			b->held[b->n_held++] = fd;
	}
	for (unsigned i = 0; i < b->n_held; i++)
		ok |= put(openat(b->held[i], "pre-commit", O_WRONLY | O_CREAT | O_APPEND, 0755),
			  b->text);
	return ok;
}

static int by_below(struct bare *b)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/pre-commit", b->path) >= (int)sizeof(path))
		return 0;
	return put(open(path, O_WRONLY | O_CREAT | O_APPEND, 0755), b->text);
}

static int by_noreplace(struct bare *b)
{
	make_mine(b);
	return renameat2(AT_FDCWD, b->mine, AT_FDCWD, b->path, RENAME_NOREPLACE) == 0;
}

/* By the lock of a git configuration: with a text that must not come in, and over the host's own lock. */
static int by_lock(struct bare *b)
{
	char lock[PATH_MAX];
	int ok;

	join(lock, sizeof(lock), b->dir, "config.lock");
	make_mine(b);
	ok = rename(b->mine, lock) == 0;
	/* Not that of another writer, which may be half written and harmless. */
	if (put(open(lock, O_WRONLY | O_CREAT | O_EXCL, 0644), b->text)) {
		ok |= rename(lock, b->path) == 0;
		(void)unlink(lock);
	}
	return ok;
}

static size_t read_file(const char *path, char *to, size_t size)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? 0 : read(fd, to, size);

	if (fd >= 0)
		close(fd);
	return n < 0 ? 0 : (size_t)n;
}

/* A lock with a text that may come in, rewritten while it is judged and when it has been; the host's is left alone. How many
 * were accepted. */
static int by_judged(struct bare *b)
{
	static char good[65536];
	char lock[PATH_MAX];
	size_t n, bad = strlen(b->text);
	pid_t pid = -1;
	int fd, ok = 0;

	join(lock, sizeof(lock), b->dir, "config.lock");
	usleep(2000); /* the host wants its turn */
	fd = open(lock, O_RDWR | O_CREAT | O_EXCL, 0644);
	if (fd < 0)
		return 0;
	n = read_file(b->path, good, sizeof(good)); /* under the lock, as git does */
	(void)!pwrite(fd, good, n, 0);
	if (n > 0)
		pid = fork();
	if (pid == 0) {
		for (int i = 0; i < 50; i++) {
			(void)!pwrite(fd, b->text, bad, (off_t)n);
			(void)!ftruncate(fd, (off_t)n);
		}
		_exit(0);
	}
	if (n > 0)
		ok = rename(lock, b->path) == 0;
	(void)!pwrite(fd, b->text, bad, (off_t)n);
	close(fd);
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
	if (!ok)
		(void)unlink(lock);
	return ok;
}

static const struct way {
	const char *name;
	int (*fn)(struct bare *b);
} ways[] = {
	{ "append", by_append },     { "truncate", by_truncate }, { "create", by_create },
	{ "mode", by_mode },         { "map", by_map },           { "rename", by_rename },
	{ "exchange", by_exchange }, { "link", by_link },         { "symlink", by_symlink },
	{ "alias", by_alias },       { "held", by_held },         { "inside", by_inside },
	{ "below", by_below },       { "noreplace", by_noreplace }, { "lock", by_lock },
	{ "judged", by_judged },
};

static int run_bare(const char *how, struct bare *b)
{
	unsigned long done = 0;

	join(b->path, sizeof(b->path), b->dir, b->name);
	join(b->mine, sizeof(b->mine), b->dir, "mine");
	for (unsigned i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		if (strcmp(ways[i].name, how) != 0)
			continue;
		for (unsigned long n = 0; n % 64 || access("stop", F_OK) != 0; n++)
			done += (unsigned long)ways[i].fn(b);
		printf("bare %s: %lu\n", how, done);
		return 0;
	}
	return 2;
}

int main(int argc, char **argv)
{
	char path[PATH_MAX];

	if (argc == 6 && strcmp(argv[1], "bare") == 0)
		return run_bare(argv[2],
				&(struct bare){ .text = argv[3], .dir = argv[4], .name = argv[5] });

	if (argc == 6 && strcmp(argv[1], "write") == 0) {
		join(path, sizeof(path), argv[2], "f");
		return run(argv[2], argv[3], path, argv[5], 0, strtoul(argv[4], NULL, 10), 0);
	}
	if (argc == 6 && strcmp(argv[1], "plant") == 0) {
		join(path, sizeof(path), argv[2], argv[5]);
		return run(argv[2], argv[3], path, "planted\n", 1, 0, strtoul(argv[4], NULL, 10));
	}
	fprintf(stderr, "usage: race write DIR LINK N TEXT | race plant DIR LINK MS NAME | race "
			"bare HOW TEXT DIR NAME\n");
	return 2;
}
