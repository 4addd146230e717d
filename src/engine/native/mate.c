/* SPDX-License-Identifier: Apache-2.0 */
/* engine/native/mate.c - a helper of init's for two things that take long and that the view does not wait for
 *
 * The network namespace is the dearest of all, half of what the others and the view cost together; and when the old root
 * goes, the kernel waits until no processor can be looking at it any more. The mate does both on another processor.
 * It shares init's memory and descriptors, so that making it costs little and a number is all it has to say, and
 * shares no other namespace that it changes but the mounts'. It is dead before the first command begins.
 *
 * The two speak through words in that memory: `says` and `hears`. Errno is init's: nothing in the mate may call libc.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/raw.h"
#include "base/sabotage.h"
#include "engine/native/native.h"
#include "sys/spread.h"

#define MATE_STACK (16 * KIB)
#define MATE_SPINS 300   /* some 0.1 ms: to be put to sleep and woken would take as long */
#define MATE_FAILED (-1) /* in `says`; 0: no word yet; else the network's descriptor and one */

static _Alignas(16) char stack[MATE_STACK];

/* ---- words ---- */

static void word_put(int *word, int value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
	(void)raw_call(SYS_futex, (long)word, FUTEX_WAKE, 1, 0);
}

static int word_await(int *word, const struct timespec *longest)
{
	if (__atomic_load_n(word, __ATOMIC_ACQUIRE) == 0)
		(void)raw_call(SYS_futex, (long)word, FUTEX_WAIT, 0, (long)longest);
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* ---- the mate ---- */

static bool raise_loopback(void)
{
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	long fd = raw_call(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0, 0);
	long r = fd < 0 ? fd : raw_call(SYS_ioctl, fd, SIOCSIFFLAGS, (long)&ifr, 0);

	if (fd >= 0)
		(void)raw_call(SYS_close, fd, 0, 0, 0);
	return r == 0;
}

static long make_network(void)
{
	static const char path[] = "/proc/self/ns/net";

	if (!sabotaged("netns") &&
	    (raw_call(SYS_unshare, CLONE_NEWNET, 0, 0, 0) < 0 || !raise_loopback()))
		return FD_NONE;
	return raw_call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0);
}

/* Everything in it goes, for good. */
static bool drop_old_root(const struct child *c)
{
	return sabotaged("pivot") || (raw_call(SYS_fchdir, c->old_root, 0, 0, 0) == 0 &&
				      raw_call(SYS_umount2, (long)".", MNT_DETACH, 0, 0) == 0);
}

static int mate_main(void *child)
{
	struct child *c = child;
	long net = make_network();

	word_put(&c->mate_says, net < 0 ? MATE_FAILED : (int)net + 1);
	while (net >= 0 && word_await(&c->mate_hears, NULL) == 0)
		;
	return net >= 0 && drop_old_root(c) ? 0 : 1;
}

/* ---- init ---- */

int mate_begin(struct child *c)
{
	c->mate_says = 0;
	c->mate_hears = 0;
	c->old_root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (c->old_root < 0)
		return -errno;
	c->mate = clone(mate_main, stack + sizeof(stack), CLONE_VM | CLONE_FILES | SIGCHLD, c);
	if (c->mate < 0)
		return -errno;
	spread_child(c->mate); /* it makes nobody, so it need not say spread_end() */
	return 0;
}

static bool is_dead(pid_t pid)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
	       info.si_pid == pid;
}

/* The descriptor is in the table that we share, so its number will do. Where memory runs out the mate may be killed
 * before it has said anything. */
int mate_network(struct child *c)
{
	static const struct timespec a_second = { .tv_sec = 1 };
	int net;

	for (int i = 0; i < MATE_SPINS && __atomic_load_n(&c->mate_says, __ATOMIC_ACQUIRE) == 0;
	     i++)
		(void)sched_yield();
	while ((net = word_await(&c->mate_says, &a_second)) == 0)
		if (is_dead(c->mate))
			return -EIO;
	if (net < 0)
		return -EIO;
	return sabotaged("netns") || setns(net - 1, CLONE_NEWNET) == 0 ? 0 : -errno;
}

void mate_drop_root(struct child *c)
{
	word_put(&c->mate_hears, 1);
}

int mate_end(struct child *c)
{
	int status;

	if (waitpid(c->mate, &status, 0) < 0)
		return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}
