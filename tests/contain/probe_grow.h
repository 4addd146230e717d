/* SPDX-License-Identifier: Apache-2.0 */
/* tests/contain/probe_grow.h - growing until something says stop; outputs and ends */
#ifndef PROBE_GROW_H
#define PROBE_GROW_H

#include "probe.h"

/* ---- Growing until something says stop ------------------------------------------------------- */

/* forkloop N [SECONDS] - children that only wait. They end with us: the last line kills the
 * whole group. */
static int w_forkloop(int argc, char **argv)
{
	long n = num(argc, argv, 1, 10), made = 0, err = 0;
	pid_t *pids = calloc((size_t)n + 1, sizeof(*pids));

	while (pids && made < n) {
		pid_t pid = fork();

		if (pid == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			nap(20);
			_exit(0);
		}
		if (pid < 0) {
			err = errno;
			break;
		}
		pids[made++] = pid;
	}
	printf("made %ld\n", made);
	(void)say(argv[0], err ? -err : 0, by_limit);
	nap(num(argc, argv, 2, 0));
	for (long i = 0; i < made; i++)
		(void)kill(pids[i], SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		;
	free(pids);
	return err ? REFUSED : GOT_THROUGH;
}

/* touchmem MB [SECONDS] - in steps of 4 MiB, each page written; then hold. */
static int w_touchmem(int argc, char **argv)
{
	long want = num(argc, argv, 1, 16), got = 0;
	const size_t step = (size_t)4 << 20;

	while (got < want) {
		char *p = mmap(NULL, step, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			       0);

		if (p == MAP_FAILED) {
			printf("touched %ld\n", got);
			return say(argv[0], -(long)errno, by_limit);
		}
		memset(p, 0x5a, step);
		got += 4;
	}
	printf("touched %ld\n", got);
	put(argv[0], "ok");
	nap(num(argc, argv, 2, 0));
	return GOT_THROUGH;
}

/* fill FILE MB - by writing; fallocate first, as it asks for the room at once. */
static int w_fill(int argc, char **argv)
{
	static char block[1 << 20];
	long want = num(argc, argv, 2, 1), got = 0, err = 0;
	int fd = open(arg(argc, argv, 1, "fill"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0)
		return say(argv[0], -(long)errno, by_limit);
	(void)signal(SIGXFSZ, SIG_IGN);
	if (fallocate(fd, 0, 0, (off_t)want << 20) == 0)
		printf("fallocate ok\n");
	else
		printf("fallocate %s\n", strerrorname_np(errno));
	(void)fflush(stdout);
	if (ftruncate(fd, 0) < 0)
		perror("ftruncate");
	memset(block, 0x5a, sizeof(block));
	for (; got < want; got++) {
		if (write(fd, block, sizeof(block)) != (ssize_t)sizeof(block)) {
			err = errno ? errno : ENOSPC;
			break;
		}
	}
	printf("filled %ld\n", got);
	return say(argv[0], err ? -err : 0, by_limit);
}

/* inodes DIR N */
static int w_inodes(int argc, char **argv)
{
	long want = num(argc, argv, 2, 10), got = 0;
	char path[PATH_ROOM];

	for (; got < want; got++) {
		int fd;

		(void)snprintf(path, sizeof(path), "%s/i%ld", arg(argc, argv, 1, "."), got);
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0) {
			printf("made %ld\n", got);
			return say(argv[0], -(long)errno, by_limit);
		}
		(void)close(fd);
	}
	printf("made %ld\n", got);
	put(argv[0], "ok");
	return GOT_THROUGH;
}

static int w_openfiles(int argc, char **argv)
{
	long want = num(argc, argv, 1, 10), got = 0;

	for (; got < want; got++) {
		if (open("/dev/null", O_RDONLY | O_CLOEXEC) < 0) {
			printf("made %ld\n", got);
			return say(argv[0], -(long)errno, by_limit);
		}
	}
	printf("made %ld\n", got);
	put(argv[0], "ok");
	return GOT_THROUGH;
}

static long now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void *spinner(void *until)
{
	while (now_ms() < *(const long *)until)
		;
	return NULL;
}

/* spin THREADS MILLISECONDS - prints the processor time it got, in milliseconds. */
static int w_spin(int argc, char **argv)
{
	static long until;
	long n = num(argc, argv, 1, 1);
	struct rusage u;
	pthread_t t[256];
	long made = 0;

	until = now_ms() + num(argc, argv, 2, 500);
	for (; made < n && made < (long)COUNT(t); made++)
		if (pthread_create(&t[made], NULL, spinner, &until) != 0)
			break;
	for (long i = 0; i < made; i++)
		(void)pthread_join(t[i], NULL);
	(void)getrusage(RUSAGE_SELF, &u);
	printf("threads %ld\ncpu_ms %ld\n", made,
	       (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000 +
		       (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000);
	put(argv[0], "ok");
	return GOT_THROUGH;
}

/* ptys N SECONDS, inotify N SECONDS, timers N SECONDS: hold what is counted for each user. */
static int hold(const char *word, long got, long err, long seconds)
{
	printf("made %ld\n", got);
	(void)say(word, err ? -err : 0, by_limit);
	nap(seconds);
	return err ? REFUSED : GOT_THROUGH;
}

static int w_ptys(int argc, char **argv)
{
	long got = 0, err = 0;

	for (; got < num(argc, argv, 1, 10); got++) {
		if (open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC) < 0) {
			err = errno;
			break;
		}
	}
	return hold(argv[0], got, err, num(argc, argv, 2, 0));
}

static int w_inotify(int argc, char **argv)
{
	long got = 0, err = 0;

	for (; got < num(argc, argv, 1, 10); got++) {
		int fd = inotify_init1(IN_CLOEXEC);

		if (fd < 0 || inotify_add_watch(fd, "/", IN_CREATE) < 0) {
			err = errno;
			break;
		}
	}
	return hold(argv[0], got, err, num(argc, argv, 2, 0));
}

static int w_timers(int argc, char **argv)
{
	long got = 0, err = 0;

	for (; got < num(argc, argv, 1, 10); got++) {
		timer_t t;

		if (timer_create(CLOCK_MONOTONIC, NULL, &t) < 0) {
			err = errno;
			break;
		}
	}
	return hold(argv[0], got, err, num(argc, argv, 2, 0));
}

/* stubborn SECONDS [TAG] - ignores every signal that can be ignored, and so does a grandchild in
 * its own session. */
static int w_stubborn(int argc, char **argv)
{
	for (int s = 1; s < NSIG; s++)
		if (s != SIGCHLD)
			(void)signal(s, SIG_IGN);
	if (fork() == 0) {
		(void)setsid();
		if (fork() == 0) {
			nap(num(argc, argv, 1, 10));
			_exit(0);
		}
		_exit(0);
	}
	put(argv[0], "ok");
	nap(num(argc, argv, 1, 10));
	return GOT_THROUGH;
}

/* orphans N SECONDS - daemons in sessions of their own; we leave at once and they stay. */
static int w_orphans(int argc, char **argv)
{
	for (long i = 0; i < num(argc, argv, 1, 1); i++) {
		if (fork() == 0) {
			(void)setsid();
			if (fork() == 0) {
				nap(num(argc, argv, 2, 10));
				_exit(0);
			}
			_exit(0);
		}
	}
	while (waitpid(-1, NULL, 0) > 0)
		;
	put(argv[0], "ok");
	return GOT_THROUGH;
}

/* out BYTES [FD] - a fixed pattern with every byte value, made so that a lost or doubled block
 * shows. */
static int w_out(int argc, char **argv)
{
	static unsigned char block[65536];
	long left = num(argc, argv, 1, 65536), at = 0;
	int fd = (int)num(argc, argv, 2, 1);

	while (left > 0) {
		size_t n = left < (long)sizeof(block) ? (size_t)left : sizeof(block);
		size_t done = 0;

		for (size_t i = 0; i < n; i++)
			block[i] = (unsigned char)(((unsigned long)at + i) * 2654435761UL >> 13);
		while (done < n) {
			ssize_t w = write(fd, block + done, n - done);

			if (w <= 0)
				return REFUSED;
			done += (size_t)w;
		}
		at += (long)n;
		left -= (long)n;
	}
	return GOT_THROUGH;
}

static int w_exit(int argc, char **argv)
{
	return (int)num(argc, argv, 1, 0);
}

static int w_sleep(int argc, char **argv)
{
	nap(num(argc, argv, 1, 1));
	return GOT_THROUGH;
}

/* sentinel TEXT - a process with TEXT in its memory, for the other side of readmem: prints where,
 * waits for the end. */
static int w_sentinel(int argc, char **argv)
{
	static char text[256];

	(void)snprintf(text, sizeof(text), "%s", arg(argc, argv, 1, "text"));
	printf("pid %d addr %lu\n", getpid(), (unsigned long)text);
	(void)fflush(stdout);
	while (getchar() != EOF)
		;
	return GOT_THROUGH;
}

#endif
