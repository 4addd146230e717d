/* SPDX-License-Identifier: Apache-2.0 */
/* tests/contain/probe_wake.h - processes that want to go on although they were stopped
 *
 * wake FILE SLOT DIR WAY MANNER SHAPE - counts in FILE[SLOT], which the host reads, a thousand times a second. WAY is how SIGCONT
 * comes to be sent, MANNER what the process does with that signal, SHAPE what kind of process it is. What needs the
 * host's own act (a reader, a writer, a death at a moment of the host's choice) waits at a name with the number SLOT in DIR. */
#ifndef PROBE_WAKE_H
#define PROBE_WAKE_H

#include "probe.h"

static struct {
	volatile uint64_t *slot;
	const char *dir, *way, *manner, *number;
} wake;

static void wake_nothing(int signo)
{
	(void)signo;
}

/* A descriptor of DIR/PREFIX.SLOT whose readiness, or whatever else, is told by this signal. */
static int wake_signalled(int fd, int signo, bool is_async)
{
	if (fd < 0 || fcntl(fd, F_SETOWN, getpid()) < 0 || fcntl(fd, F_SETSIG, signo) < 0)
		return -1;
	return is_async ? fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK) : 0;
}

static char *wake_name(const char *prefix)
{
	static char name[PATH_ROOM];

	(void)snprintf(name, sizeof(name), "%s/%s.%s", wake.dir, prefix, wake.number);
	return name;
}

static int wake_fifo(const char *prefix, int signo)
{
	const char *name = wake_name(prefix);

	if (mkfifo(name, 0666) < 0 || chmod(name, 0666) < 0)
		return -1;
	return wake_signalled(open(name, O_RDWR | O_NONBLOCK | O_CLOEXEC), signo, true);
}

static int wake_timer(int kind)
{
	struct sigevent ev = { .sigev_notify = kind, .sigev_signo = SIGCONT };
	struct itimerspec every = { .it_interval.tv_nsec = 3000000, .it_value.tv_nsec = 3000000 };
	timer_t t;

	if (kind == SIGEV_THREAD_ID)
		ev._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	return timer_create(CLOCK_MONOTONIC, &ev, &t) < 0 ? -1 : timer_settime(t, 0, &every, NULL);
}

static int wake_lease(void)
{
	int fd = open(wake_name("lease"), O_RDWR | O_CREAT | O_CLOEXEC, 0666);

	return wake_signalled(fd, SIGCONT, false) < 0 ? -1 : fcntl(fd, F_SETLEASE, F_WRLCK);
}

static int wake_dnotify(void)
{
	const char *name = wake_name("dir");
	int fd;

	if (mkdir(name, 0777) < 0)
		return -1;
	fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return wake_signalled(fd, SIGCONT, false) < 0
		       ? -1
		       : fcntl(fd, F_NOTIFY, DN_CREATE | DN_MODIFY | (int)DN_MULTISHOT);
}

/* A child whose death says SIGCONT; the host decides when. */
static int wake_kid(void)
{
	long pid = syscall(SYS_clone, SIGCONT, NULL, NULL, NULL, NULL);

	if (pid == 0) {
		(void)wake_fifo("fifo", SIGKILL);
		for (;;)
			(void)pause();
	}
	return pid < 0 ? -1 : 0;
}

/* A parent whose death does, or whose terminal goes with it. We are the child then. */
static int wake_parent(bool has_terminal)
{
	int master = -1, slave = -1;
	pid_t pid;

	if (has_terminal) {
		if (setsid() < 0 && fork() > 0)
			for (;;)
				(void)pause();
		(void)setsid();
		master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
		if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
			return -1;
		slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
		if (slave < 0 || ioctl(slave, TIOCSCTTY, 0) < 0)
			return -1;
	}
	pid = fork();
	if (pid > 0) {
		(void)wake_fifo("fifo", SIGKILL);
		for (;;)
			(void)pause();
	}
	(void)signal(SIGHUP, SIG_IGN);
	if (!has_terminal)
		(void)setpgid(0, 0); /* orphaned when the parent dies */
	return pid < 0 ? -1 : prctl(PR_SET_PDEATHSIG, has_terminal ? 0 : SIGCONT);
}

/* Another process that says it all the time. */
static int wake_peer(void)
{
	pid_t me = getpid(), pid = fork();

	if (pid == 0) {
		const struct timespec ms = { .tv_nsec = 1000000 };

		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (kill(me, SIGCONT) == 0)
			(void)nanosleep(&ms, NULL);
		_exit(0);
	}
	return pid < 0 ? -1 : 0;
}

/* A tracer that lets us go on whatever stops us; `mutual`: we do the same for it. */
static int wake_traced(bool is_mutual)
{
	pid_t me = getpid(), pid = fork();
	int status;

	(void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	if (pid == 0) {
		(void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
		if (ptrace(PTRACE_SEIZE, me, NULL, NULL) < 0)
			_exit(1);
		for (;;)
			if (waitpid(me, &status, __WALL) == me && WIFSTOPPED(status))
				(void)ptrace(PTRACE_CONT, me, NULL, NULL);
	}
	if (pid > 0 && is_mutual) {
		const struct timespec moment = { .tv_nsec = 50000000 };

		(void)nanosleep(&moment, NULL);
		if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0)
			return -1;
	}
	wake.slot[1] = (uint64_t)pid;
	return pid < 0 ? -1 : 0;
}

static int wake_set(void)
{
	const char *w = wake.way;

	return !strcmp(w, "none")        ? 0
	       : !strcmp(w, "timer")     ? wake_timer(SIGEV_SIGNAL)
	       : !strcmp(w, "timer_tid") ? wake_timer(SIGEV_THREAD_ID)
	       : !strcmp(w, "lease")     ? wake_lease()
	       : !strcmp(w, "dnotify")   ? wake_dnotify()
	       : !strcmp(w, "fifo")      ? wake_fifo("fifo", SIGCONT)
	       : !strcmp(w, "kid")       ? wake_kid()
	       : !strcmp(w, "orphan")    ? wake_parent(false)
	       : !strcmp(w, "tty")       ? wake_parent(true)
	       : !strcmp(w, "peer")      ? wake_peer()
	       : !strcmp(w, "traced")    ? wake_traced(false)
	       : !strcmp(w, "mutual")    ? wake_traced(true)
					 : -1;
}

/* One that traces us back must wait for it, too. */
static void wake_let_go_on(void)
{
	int status;
	pid_t pid = (pid_t)wake.slot[1];

	if (!strcmp(wake.way, "mutual") && waitpid(pid, &status, __WALL | WNOHANG) == pid)
		(void)ptrace(PTRACE_CONT, pid, NULL, NULL);
}

static void *wake_count(void *arg)
{
	const struct timespec ms = { .tv_nsec = 1000000 };

	for (;;) {
		__atomic_add_fetch(wake.slot, 1, __ATOMIC_RELAXED);
		wake_let_go_on();
		(void)nanosleep(&ms, NULL);
	}
	return arg;
}

/* Never where it was just seen: each generation makes the next one and ends. */
static void wake_run_away(unsigned long flags)
{
	for (;;) {
		long pid = syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);

		if (pid > 0)
			_exit(0);
		__atomic_add_fetch(wake.slot, 1, __ATOMIC_RELAXED);
	}
}

static void *wake_next_thread(void *arg)
{
	pthread_t t;

	(void)pthread_detach(pthread_self());
	__atomic_add_fetch(wake.slot, 1, __ATOMIC_RELAXED);
	while (pthread_create(&t, NULL, wake_next_thread, arg) != 0)
		;
	return NULL;
}

static void *wake_main(void *arg)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCONT);
	if (!strcmp(wake.manner, "blocked"))
		(void)pthread_sigmask(SIG_BLOCK, &set, NULL);
	else if (!strcmp(wake.manner, "ignored"))
		(void)signal(SIGCONT, SIG_IGN);
	else if (!strcmp(wake.manner, "handled"))
		(void)signal(SIGCONT, wake_nothing);
	if (!strcmp(wake.way, "fork"))
		wake_run_away(0);
	if (!strcmp(wake.way, "sibling"))
		wake_run_away(CLONE_PARENT);
	if (!strcmp(wake.way, "thread"))
		return wake_next_thread(arg);
	if (!strcmp(wake.way, "exec")) {
		__atomic_add_fetch(wake.slot, 1, __ATOMIC_RELAXED);
		(void)execv("/proc/self/exe", (char **)arg - 1); /* with the program's name */
	}
	if (wake_set() < 0) {
		printf("wake %s %s: %s\n", wake.number, wake.way, strerrorname_np(errno));
		(void)fflush(stdout);
		wake.slot[2] = 1; /* it counts, but nothing wakes it */
	}
	return wake_count(arg);
}

static int w_wake(int argc, char **argv)
{
	long slot = num(argc, argv, 2, 0);
	const char *shape = arg(argc, argv, 6, "plain");
	int fd = open(arg(argc, argv, 1, "slots"), O_RDWR | O_CLOEXEC);
	char *base = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	pthread_t t;

	if (base == MAP_FAILED)
		return say(argv[0], -(long)errno, by_file);
	wake.slot = (volatile uint64_t *)(void *)(base + 64 * slot);
	wake.number = arg(argc, argv, 2, "0");
	wake.dir = arg(argc, argv, 3, ".");
	wake.way = arg(argc, argv, 4, "none");
	wake.manner = arg(argc, argv, 5, "default");
	if (!strcmp(shape, "undumpable"))
		(void)prctl(PR_SET_DUMPABLE, 0);
	for (int i = 0; i < 8 && !strcmp(shape, "threads"); i++)
		(void)pthread_create(&t, NULL, wake_count, NULL);
	if (!strcmp(shape, "thread"))
		(void)pthread_create(&t, NULL, wake_main, argv);
	/* The parent of vfork waits in the kernel; the memory is its own too. */
	else if ((strcmp(shape, "child") || fork() == 0) &&
		 (strcmp(shape, "vfork") || syscall(SYS_vfork) == 0))
		(void)wake_main(argv);
	for (;;)
		(void)pause();
}

#endif
