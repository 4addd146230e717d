/* SPDX-License-Identifier: Apache-2.0 */
/* tests/contain/probe_pools.h - what the kernel counts for a user or for the whole machine, used up
 *
 * pool KIND WAY N SECONDS PROCESSES - takes N of KIND in each of so many processes, or as many as there are to be had; says how
 * many together and keeps them for so long. With N = 1: does somebody who needs just one get it? */
#ifndef PROBE_POOLS_H
#define PROBE_POOLS_H

#include <linux/aio_abi.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/msg.h>

#include "probe.h"

/* Each takes one more; -1: no more to be had, as errno says. */

/* Descriptors in flight, up to 253 in one message; a socket pair holds some hundred messages. */
static long pool_inflight(const char *way, long n)
{
	static int pair[2] = { -1, -1 };
	int type = !strcmp(way, "dgram")       ? SOCK_DGRAM
		   : !strcmp(way, "seqpacket") ? SOCK_SEQPACKET
					       : SOCK_STREAM;
	int many = !strcmp(way, "single") || n < 253 ? 1 : 253;
	union {
		char bytes[CMSG_SPACE(253 * sizeof(int))];
		struct cmsghdr align;
	} control = { .bytes = { 0 } };
	struct iovec iov = { .iov_base = control.bytes, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = CMSG_SPACE((size_t)many * sizeof(int)) };
	struct cmsghdr *h = CMSG_FIRSTHDR(&msg);

	for (int tries = 0; tries < 2; tries++) {
		if (pair[0] < 0 &&
		    socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
			return -1;
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN((size_t)many * sizeof(int));
		for (int i = 0; i < many; i++)
			memcpy(CMSG_DATA(h) + (size_t)i * sizeof(int),
			       !strcmp(way, "nested") ? &pair[1] : &pair[0], sizeof(int));
		if (sendmsg(pair[0], &msg, MSG_DONTWAIT) >= 0)
			return many;
		if (errno != EAGAIN && errno != ENOBUFS)
			return -1;
		pair[0] = -1; /* full: another pair, this one stays */
	}
	return -1;
}

static long pool_pipes(const char *way, long n)
{
	int p[2];

	(void)n;
	if (pipe2(p, O_CLOEXEC) < 0)
		return -1;
	if (!strcmp(way, "big"))
		(void)fcntl(p[0], F_SETPIPE_SZ, 1 << 20);
	if (!strcmp(way, "whole") && fcntl(p[0], F_GETPIPE_SZ) < 65536) {
		errno = EDQUOT; /* what the kernel makes of it when the user has too many */
		return -1;
	}
	return fcntl(p[0], F_GETPIPE_SZ) / 4096;
}

static long pool_aio(const char *way, long n)
{
	aio_context_t ctx = 0;
	long each = !strcmp(way, "small") || n == 1 ? 64 : 16384;

	return syscall(SYS_io_setup, each, &ctx) < 0 ? -1 : each;
}

static long pool_ptys(const char *way, long n)
{
	(void)n;
	return open(!strcmp(way, "pts") ? "/dev/pts/ptmx" : "/dev/ptmx",
		    O_RDWR | O_NOCTTY | O_CLOEXEC) < 0
		       ? -1
		       : 1;
}

static long pool_mqueues(const char *way, long n)
{
	static int number;
	struct mq_attr big = { .mq_maxmsg = 10, .mq_msgsize = 8192 },
		       small = { .mq_maxmsg = 1, .mq_msgsize = 16 };
	char name[64];

	(void)snprintf(name, sizeof(name), "/probe-%d-%d", getpid(), number++);
	if (mq_open(name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600,
		    !strcmp(way, "small") || n == 1 ? &small : &big) < 0)
		return -1;
	(void)mq_unlink(name);
	return 1;
}

static long pool_signals(const char *way, long n)
{
	union sigval value = { 0 };
	sigset_t set;
	timer_t t;

	(void)n;
	if (!strcmp(way, "timers"))
		return timer_create(CLOCK_MONOTONIC, NULL, &t) < 0 ? -1 : 1;
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGRTMIN);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	return sigqueue(getpid(), SIGRTMIN, value) < 0 ? -1 : 1;
}

static long pool_locked(const char *way, long n)
{
	const size_t size = 65536;
	int id = shmget(IPC_PRIVATE, size, IPC_CREAT | 0600);
	long r;

	(void)way;
	(void)n;
	if (id < 0)
		return -1;
	r = shmctl(id, SHM_LOCK, NULL);
	if (shmat(id, NULL, 0) == (void *)-1)
		r = -1;
	(void)shmctl(id, IPC_RMID, NULL);
	return r < 0 ? -1 : 1;
}

static long pool_inotify(const char *way, long n)
{
	static int fd = -1, number;
	char name[64];

	(void)n;
	if (fd < 0 || strcmp(way, "watches"))
		fd = inotify_init1(IN_CLOEXEC);
	if (fd < 0 || strcmp(way, "watches"))
		return fd < 0 ? -1 : 1;
	(void)snprintf(name, sizeof(name), "/tmp/w%d.%d", getpid(), number++);
	return mkdir(name, 0700) < 0 || inotify_add_watch(fd, name, IN_CREATE) < 0 ? -1 : 1;
}

/* Memory, a MiB at a time, that is not a process's own. */
static long pool_memory(const char *way, long n)
{
	static int number, shared = -1;
	static char block[1 << 20];
	char name[64];
	char *p = NULL;
	int fd = -1;

	(void)n;
	memset(block, 0x5a, sizeof(block));
	(void)snprintf(name, sizeof(name), "%s/m%d.%d", !strcmp(way, "tmp") ? "/tmp" : "/dev/shm",
		       getpid(), number++);
	if (!strcmp(way, "sysv") || !strcmp(way, "sysv_left")) {
		int id = shmget(IPC_PRIVATE, sizeof(block), IPC_CREAT | 0600);

		p = id < 0 ? (void *)-1 : shmat(id, NULL, 0);
		if (p == (void *)-1)
			return -1;
		memcpy(p, block, sizeof(block));
		return !strcmp(way, "sysv_left") && shmdt(p) < 0 ? -1 : 1;
	}
	if (!strcmp(way, "anonymous")) {
		p = mmap(NULL, sizeof(block), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			 -1, 0);
		return p == MAP_FAILED ? -1 : (memcpy(p, block, sizeof(block)), 1);
	}
	if (!strcmp(way, "memfd_one")) {
		if (shared < 0)
			shared = memfd_create("probe", MFD_CLOEXEC);
		fd = shared;
	} else if (!strcmp(way, "memfd") || !strcmp(way, "memfd_map")) {
		fd = memfd_create("probe", MFD_CLOEXEC);
	} else {
		fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		if (!strcmp(way, "shm_deleted"))
			(void)unlink(name);
	}
	if (fd < 0 || write(fd, block, sizeof(block)) != (ssize_t)sizeof(block))
		return -1;
	if (!strcmp(way, "memfd_map")) { /* nobody has it open, and it is mapped nowhere else */
		p = mmap(NULL, sizeof(block), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		(void)close(fd);
		return p == MAP_FAILED ? -1 : (memcpy(p, block, sizeof(block)), 1);
	}
	if (fd != shared && strcmp(way, "memfd"))
		(void)close(!strcmp(way, "shm_deleted") ? dup(fd) : fd);
	return 1;
}

static const struct {
	const char *kind;
	long (*take)(const char *way, long n);
} pools[] = {
	{ "inflight", pool_inflight }, { "pipes", pool_pipes },     { "aio", pool_aio },
	{ "ptys", pool_ptys },         { "mqueues", pool_mqueues }, { "signals", pool_signals },
	{ "locked", pool_locked },     { "inotify", pool_inotify }, { "memory", pool_memory },
};

static int w_pool(int argc, char **argv)
{
	const char *kind = arg(argc, argv, 1, "pipes"), *way = arg(argc, argv, 2, "");
	long want = num(argc, argv, 3, 1), processes = num(argc, argv, 5, 1);
	volatile long *sum =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct rlimit files = { 0 };
	long got = 0, one = 0;

	(void)getrlimit(RLIMIT_NOFILE, &files);
	if (want > 1)
		files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files);
	for (; processes > 1; processes--)
		if (fork() == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			break;
		}
	for (size_t i = 0; i < COUNT(pools); i++)
		while (!strcmp(pools[i].kind, kind) && got < want &&
		       (one = pools[i].take(way, want)) > 0)
			got += one;
	__atomic_add_fetch(sum, got, __ATOMIC_RELAXED);
	__atomic_add_fetch(sum + 1, 1, __ATOMIC_RELAXED);
	if (processes > 1) {
		nap(60);
		_exit(0);
	}
	for (long i = 0; sum[1] < num(argc, argv, 5, 1) && i < 1000; i++)
		(void)usleep(10000);
	printf("made %ld %s\n", *sum, one <= 0 ? strerrorname_np(errno) : "enough");
	put(argv[0], got > 0 ? "ok" : "none");
	nap(num(argc, argv, 4, 0));
	return got >= want ? GOT_THROUGH : REFUSED;
}

#endif
