/* SPDX-License-Identifier: Apache-2.0 */
/* tests/contain/probe.h - what all words of the probe share: refusals, printing, arguments
 *
 * The probe is one program of one translation unit; its parts are headers only so that each can be
 * read by itself. probe.c says what the whole is for. */
#ifndef PROBE_H
#define PROBE_H

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/keyctl.h>
#include <linux/landlock.h>
#include <linux/netlink.h>
#include <linux/nsfs.h>
#include <linux/prctl.h>
#include <linux/rtnetlink.h>
#include <mqueue.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { GOT_THROUGH = 0, REFUSED = 1, UNSURE = 2 };

#define BAD 1L /* an address in the page that is never mapped */
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define PATH_ROOM 4096
#define NOBODY 0x3fffffff /* no process has this id: the default target harms none */

/* The answers that walls give. Everything else, success included, means that the kernel proper
 * was reached. */
static const int by_filter[] = { EPERM, ENOSYS, 0 };
static const int by_pid[] = { EPERM, ENOSYS, EACCES, ESRCH, ENOENT, 0 };
static const int by_file[] = { EPERM, ENOSYS, EACCES, EROFS, ENOENT, ENXIO, ENOTDIR, ENODEV, 0 };
static const int by_tty[] = { EPERM, ENOSYS, EACCES, ENOTTY, ENXIO, EIO, 0 };
static const int by_family[] = { EPERM,           ENOSYS,          EACCES, EAFNOSUPPORT,
				 EPROTONOSUPPORT, ESOCKTNOSUPPORT, 0 };
static const int by_net[] = {
	EPERM,         ENOSYS,       EACCES,    ENOENT,   ECONNREFUSED, ENETUNREACH, EHOSTUNREACH,
	EADDRNOTAVAIL, EAFNOSUPPORT, ETIMEDOUT, ENETDOWN, EINPROGRESS,  ENOTDIR,     0
};
static const int by_limit[] = { EAGAIN, ENOMEM, ENOSPC, EMFILE, ENFILE, EDQUOT,
				EFBIG,  EPERM,  ENOSYS, EACCES, 0 };

static void put(const char *word, const char *text)
{
	printf("%s %s\n", word, text);
	(void)fflush(stdout);
}

/* r is a result in the kernel's way: negative errno or success. */
static int say(const char *word, long r, const int *refusals)
{
	const char *name;

	if (r >= 0) {
		put(word, "ok");
		return GOT_THROUGH;
	}
	name = strerrorname_np((int)-r);
	put(word, name ? name : "E?");
	for (size_t i = 0; refusals[i]; i++)
		if (-r == refusals[i])
			return REFUSED;
	return GOT_THROUGH;
}

static long res(long r)
{
	return r < 0 ? -(long)errno : r;
}

static long num(int argc, char **argv, int i, long otherwise)
{
	return argc > i ? strtol(argv[i], NULL, 0) : otherwise;
}

static const char *arg(int argc, char **argv, int i, const char *otherwise)
{
	return argc > i ? argv[i] : otherwise;
}

static void nap(long seconds)
{
	struct timespec t = { .tv_sec = seconds };

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

static size_t slurp(const char *path, char *buf, size_t room)
{
	size_t n = 0;
	ssize_t r;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0) {
		buf[0] = 0;
		return 0;
	}
	while (n < room - 1 && (r = read(fd, buf + n, room - 1 - n)) > 0)
		n += (size_t)r;
	(void)close(fd);
	buf[n] = 0;
	return n;
}

static bool all_digits(const char *s)
{
	return *s && strspn(s, "0123456789") == strlen(s);
}

static void show(const char *p, size_t n)
{
	(void)fwrite(p, 1, n, stdout);
	(void)fputc('\n', stdout);
}

/* probe.c: one line of words, from within another word. */
static int run(int argc, char **argv);

#endif
