/* SPDX-License-Identifier: Apache-2.0 */
/* tests/bench/syscalls.c - what single system calls cost where this program runs
 *
 * Each row is a loop sized to about a millisecond, run many times; the best loop counts, because
 * everything that can happen to a loop on a shared machine makes it slower, never faster. Linked
 * statically, so that the same bytes run inside and outside. Prints "NAME NANOSECONDS" per row. No
 * call here may fail in a way the row did not intend: a refused call returns early and would look
 * fast.
 *
 * syscalls FILE HOME [LOOPS]: FILE is a readable file in the workspace.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOOP_NS 1000000
#define USR_FILE "/usr/bin/env"
#define MAP_BYTES ((size_t)16 * 4096)

struct world {
	const char *file;
	char missing_ws[4096];
	char missing_home[4096];
	int fd;
	int null;
	int pipe[2];
	int pair[2];
};

typedef void (*call_fn)(struct world *w);

static _Noreturn void die(const char *what)
{
	(void)fprintf(stderr, "syscalls: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void open_close(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || close(fd))
		die(path);
}

static void stat_there(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		die(path);
}

static void stat_missing(const char *path)
{
	struct stat st;

	if (!stat(path, &st) || errno != ENOENT)
		die(path);
}

static void call_getpid(struct world *w)
{
	(void)w;
	syscall(SYS_getpid);
}

static void call_open_ws(struct world *w)
{
	open_close(w->file);
}

static void call_open_usr(struct world *w)
{
	(void)w;
	open_close(USR_FILE);
}

static void call_stat_ws(struct world *w)
{
	stat_there(w->file);
}

static void call_stat_usr(struct world *w)
{
	(void)w;
	stat_there(USR_FILE);
}

static void call_missing_root(struct world *w)
{
	(void)w;
	stat_missing("/nonexistent-4711/foo");
}

static void call_missing_usr(struct world *w)
{
	(void)w;
	stat_missing("/usr/lib/nonexistent-4711");
}

static void call_missing_ws(struct world *w)
{
	stat_missing(w->missing_ws);
}

static void call_missing_home(struct world *w)
{
	stat_missing(w->missing_home);
}

static void call_pread(struct world *w)
{
	char buf[64];

	if (pread(w->fd, buf, sizeof(buf), 0) != sizeof(buf))
		die("pread");
}

static void call_write_null(struct world *w)
{
	if (write(w->null, "x", 1) != 1)
		die("write");
}

static void ping(int to, int from)
{
	char c = 'x';

	if (write(to, &c, 1) != 1 || read(from, &c, 1) != 1)
		die("ping");
}

static void call_pipe(struct world *w)
{
	ping(w->pipe[1], w->pipe[0]);
}

static void call_socketpair(struct world *w)
{
	ping(w->pair[0], w->pair[1]);
}

static void call_mmap(struct world *w)
{
	(void)w;

	char *p = mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	for (size_t i = 0; i < MAP_BYTES; i += 4096)
		((volatile char *)p)[i] = 1;
	if (munmap(p, MAP_BYTES))
		die("munmap");
}

static void call_fork(struct world *w)
{
	int status;

	(void)w;

	pid_t pid = fork();

	if (!pid)
		_exit(0);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		die("fork");
}

static const struct {
	const char *name;
	call_fn call;
} rows[] = {
	{ "getpid", call_getpid },
	{ "open+close-workspace", call_open_ws },
	{ "open+close-usr", call_open_usr },
	{ "stat-workspace", call_stat_ws },
	{ "stat-usr", call_stat_usr },
	{ "stat-missing-root", call_missing_root },
	{ "stat-missing-usr", call_missing_usr },
	{ "stat-missing-workspace", call_missing_ws },
	{ "stat-missing-home", call_missing_home },
	{ "pread", call_pread },
	{ "write-null", call_write_null },
	{ "pipe-round-trip", call_pipe },
	{ "socketpair-ping", call_socketpair },
	{ "mmap+touch+munmap", call_mmap },
	{ "fork+wait", call_fork },
};

static int64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t loop_ns(call_fn call, struct world *w, int64_t n)
{
	int64_t begin = now_ns();

	for (int64_t i = 0; i < n; i++)
		call(w);
	return now_ns() - begin;
}

static double best(call_fn call, struct world *w, unsigned loops)
{
	int64_t n = 4;
	int64_t ns;

	while ((ns = loop_ns(call, w, n)) < LOOP_NS / 4)
		n *= 2;
	n = n * LOOP_NS / ns + 1;

	double least = (double)loop_ns(call, w, n) / (double)n;

	for (unsigned i = 1; i < loops; i++) {
		double v = (double)loop_ns(call, w, n) / (double)n;

		if (v < least)
			least = v;
	}
	return least;
}

static struct world set_up(const char *file, const char *home)
{
	struct world w = { .file = file };
	int n = snprintf(w.missing_ws, sizeof(w.missing_ws), "%s.missing", file);
	int m = snprintf(w.missing_home, sizeof(w.missing_home), "%s/.nonexistent-4711", home);

	if (n >= (int)sizeof(w.missing_ws) || m >= (int)sizeof(w.missing_home)) {
		errno = ENAMETOOLONG;
		die(file);
	}
	w.fd = open(file, O_RDONLY | O_CLOEXEC);
	w.null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (w.fd < 0 || w.null < 0)
		die(file);
	if (pipe2(w.pipe, O_CLOEXEC) || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, w.pair))
		die("pipes");
	return w;
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		(void)fprintf(stderr, "usage: syscalls FILE HOME [LOOPS]\n");
		return 2;
	}

	unsigned loops = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 30;
	struct world w = set_up(argv[1], argv[2]);

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		(void)printf("%s %.1f\n", rows[i].name, best(rows[i].call, &w, loops ? loops : 1));
	return 0;
}
