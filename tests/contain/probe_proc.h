/* SPDX-License-Identifier: Apache-2.0 */
/* tests/contain/probe_proc.h - other processes, namespaces, nameless programs, what we have */
#ifndef PROBE_PROC_H
#define PROBE_PROC_H

#include "probe.h"

/* ---- Other processes ------------------------------------------------------------------------- */

static int w_signal(int argc, char **argv)
{
	int sig = (int)num(argc, argv, 1, 0);
	long best = -ESRCH;

	for (int i = 2; i < argc; i++) {
		pid_t pid = (pid_t)num(argc, argv, i, 0);
		int fd = (int)syscall(__NR_pidfd_open, pid, 0);

		if (kill(pid, sig) == 0)
			best = 0;
		if (fd >= 0 && syscall(__NR_pidfd_send_signal, fd, sig, NULL, 0) == 0)
			best = 0;
		if (fd >= 0)
			(void)close(fd);
	}
	return say(argv[0], best, by_pid);
}

/* Everything that may be signalled, but not this process: what "kill -9 -1" does. */
static int w_signal_all(int argc, char **argv)
{
	return say(argv[0], res(kill(-1, (int)num(argc, argv, 1, SIGKILL))), by_pid);
}

static int w_ptrace(int argc, char **argv)
{
	pid_t pid = (pid_t)num(argc, argv, 1, NOBODY);
	long r = res(ptrace(PTRACE_SEIZE, pid, 0, 0));

	if (r < 0)
		r = res(ptrace(PTRACE_ATTACH, pid, 0, 0));
	if (r >= 0)
		(void)ptrace(PTRACE_DETACH, pid, 0, 0);
	return say(argv[0], r, by_pid);
}

/* readmem PID ADDR LEN - by process_vm_readv and by /proc/PID/mem; prints what it got. */
static int w_readmem(int argc, char **argv)
{
	pid_t pid = (pid_t)num(argc, argv, 1, NOBODY);
	unsigned long addr = strtoul(arg(argc, argv, 2, "0"), NULL, 0);
	char buf[256], path[64];
	size_t n = (size_t)num(argc, argv, 3, 64);
	struct iovec to = { .iov_base = buf, .iov_len = n < sizeof(buf) ? n : sizeof(buf) };
	struct iovec from = { .iov_base = (void *)addr, .iov_len = to.iov_len };
	long r = res(syscall(__NR_process_vm_readv, pid, &to, 1UL, &from, 1UL, 0UL)), r2;
	int fd;

	if (r > 0)
		show(buf, (size_t)r);
	(void)snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	r2 = fd < 0 ? -(long)errno : res(pread(fd, buf, to.iov_len, (off_t)addr));
	if (r2 > 0)
		show(buf, (size_t)r2);
	return say(argv[0], r > r2 ? r : r2, by_pid);
}

static int w_writemem(int argc, char **argv)
{
	pid_t pid = (pid_t)num(argc, argv, 1, NOBODY);
	unsigned long addr = strtoul(arg(argc, argv, 2, "0"), NULL, 0);
	char text[] = "OVERWRITTEN";
	struct iovec from = { .iov_base = text, .iov_len = sizeof(text) - 1 };
	struct iovec to = { .iov_base = (void *)addr, .iov_len = sizeof(text) - 1 };

	return say(argv[0], res(syscall(__NR_process_vm_writev, pid, &from, 1UL, &to, 1UL, 0UL)),
		   by_pid);
}

static int w_kcmp(int argc, char **argv)
{
	long pid = num(argc, argv, 1, NOBODY);

	return say(argv[0], res(syscall(__NR_kcmp, pid, pid, 1, 0, 0)), by_pid);
}

static int w_pidfd_getfd(int argc, char **argv)
{
	int fd = (int)syscall(__NR_pidfd_open, num(argc, argv, 1, NOBODY), 0);

	if (fd < 0)
		return say(argv[0], -(long)errno, by_pid);
	return say(argv[0], res(syscall(438, fd, num(argc, argv, 2, 0), 0)), by_pid);
}

static int w_process_madvise(int argc, char **argv)
{
	int fd = (int)syscall(__NR_pidfd_open, num(argc, argv, 1, NOBODY), 0);
	struct iovec v = { .iov_base = (void *)4096, .iov_len = 4096 };

	if (fd < 0)
		return say(argv[0], -(long)errno, by_pid);
	return say(argv[0], res(syscall(440, fd, &v, 1UL, 20 /* MADV_COLD */, 0)), by_pid);
}

/* limits PID - four ways to change how another process is treated. */
static int w_limits(int argc, char **argv)
{
	pid_t pid = (pid_t)num(argc, argv, 1, NOBODY);
	struct rlimit64 low = { .rlim_cur = 77, .rlim_max = 77 };
	cpu_set_t one;
	long best;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	best = res(syscall(__NR_prlimit64, pid, RLIMIT_NOFILE, &low, NULL));
	if (best < 0)
		best = res(setpriority(PRIO_PROCESS, (id_t)pid, 17));
	if (best < 0)
		best = res(sched_setaffinity(pid, sizeof(one), &one));
	if (best < 0)
		best = res(syscall(__NR_ioprio_set, 1, pid, (3 << 13)));
	return say(argv[0], best, by_pid);
}

/* status - the walls as the kernel states them, of every task that can be seen. */
static void status_of(const char *pid, const char *tid)
{
	static const char *const keys[] = { "Name",   "Uid",        "Gid",    "Groups",
					    "CapInh", "CapPrm",     "CapEff", "CapBnd",
					    "CapAmb", "NoNewPrivs", "Seccomp" };
	char path[128], text[8192], *line, *save = NULL;

	(void)snprintf(path, sizeof(path), "/proc/%s/task/%s/status", pid, tid);
	if (!slurp(path, text, sizeof(text)))
		return;
	printf("task pid=%s tid=%s", pid, tid);
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		for (size_t i = 0; i < COUNT(keys); i++) {
			size_t n = strlen(keys[i]);

			if (strncmp(line, keys[i], n) != 0 || line[n] != ':')
				continue;
			for (char *p = line; *p; p++)
				if (*p == '\t' || *p == ' ')
					*p = ',';
			printf(" %s=%s", keys[i], line + n + 2);
		}
	}
	printf("\n");
}

static int w_status(int argc, char **argv)
{
	DIR *proc = opendir("/proc");
	struct dirent *p, *t;
	char path[300];

	(void)argc;
	if (!proc)
		return say(argv[0], -(long)errno, by_file);
	while ((p = readdir(proc))) {
		DIR *tasks;

		if (!all_digits(p->d_name))
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%s/task", p->d_name);
		tasks = opendir(path);
		while (tasks && (t = readdir(tasks)))
			if (all_digits(t->d_name))
				status_of(p->d_name, t->d_name);
		if (tasks)
			(void)closedir(tasks);
	}
	(void)closedir(proc);
	put(argv[0], "ok");
	return GOT_THROUGH;
}

/* look PID... - what /proc tells of processes that should not be there. Prints the text it could
 * read. */
static int w_look(int argc, char **argv)
{
	static const char *const files[] = { "environ", "cmdline", "maps", "status", "mountinfo" };
	static const char *const links[] = { "cwd", "root", "exe", "fd/0", "fd/1", "fd/2", "fd/3" };
	static char text[65536];
	char path[64], to[PATH_ROOM];
	int seen = 0;

	for (int i = 1; i < argc; i++) {
		for (size_t f = 0; f < COUNT(files); f++) {
			size_t n;

			(void)snprintf(path, sizeof(path), "/proc/%s/%s", argv[i], files[f]);
			n = slurp(path, text, sizeof(text));
			if (n) {
				show(text, n);
				seen = 1;
			}
		}
		for (size_t f = 0; f < COUNT(links); f++) {
			ssize_t n;

			(void)snprintf(path, sizeof(path), "/proc/%s/%s", argv[i], links[f]);
			n = readlink(path, to, sizeof(to));
			if (n > 0) {
				show(to, (size_t)n);
				seen = 1;
			}
		}
	}
	return say(argv[0], seen ? 0 : -ENOENT, by_pid);
}

static int w_ids(int argc, char **argv)
{
	uid_t r, e, s;
	gid_t gr, ge, gs, groups[256];
	int n = getgroups((int)COUNT(groups), groups);

	(void)argc;
	if (getresuid(&r, &e, &s) < 0 || getresgid(&gr, &ge, &gs) < 0)
		return UNSURE;
	printf("uid %u %u %u\ngid %u %u %u\ngroups", r, e, s, gr, ge, gs);
	for (int i = 0; i < n; i++)
		printf(" %u", groups[i]);
	printf("\n");
	status_of("self", "self");
	{
		char pid[32];

		(void)snprintf(pid, sizeof(pid), "%d", getpid());
		status_of(pid, pid);
	}
	put(argv[0], "ok");
	return GOT_THROUGH;
}

/* ---- Namespaces ------------------------------------------------------------------------------ */

static const char *const ns_names[] = { "user", "mnt", "pid", "ipc", "uts", "cgroup", "net" };

static int w_nsids(int argc, char **argv)
{
	char path[64], to[128];

	for (size_t i = 0; i < COUNT(ns_names); i++) {
		ssize_t n;

		(void)snprintf(path, sizeof(path), "/proc/%s/ns/%s", arg(argc, argv, 1, "self"),
			       ns_names[i]);
		n = readlink(path, to, sizeof(to) - 1);
		if (n < 0)
			return say(argv[0], -(long)errno, by_pid);
		to[n] = 0;
		printf("ns %s\n", to);
	}
	put(argv[0], "ok");
	return GOT_THROUGH;
}

static long try_ns(int fd)
{
	long best = res(setns(fd, 0));
	static const unsigned long asks[] = { NS_GET_USERNS, NS_GET_PARENT };

	for (size_t i = 0; i < COUNT(asks); i++) {
		int up = ioctl(fd, asks[i]);

		if (up < 0)
			continue;
		/* A handle of an outer namespace is only a breach if it can be entered. */
		if (setns(up, 0) == 0)
			best = 0;
		(void)close(up);
	}
	return best;
}

/* setns_all - every namespace that any visible process shows. EINVAL is "you are in it already". */
static int w_setns_all(int argc, char **argv)
{
	static const int refusals[] = { EPERM, ENOSYS, EACCES, ENOENT, ESRCH, EINVAL, EUSERS, 0 };
	DIR *proc = opendir("/proc");
	struct dirent *p;
	char path[300];
	long best = -ENOENT;

	(void)argc;
	while (proc && (p = readdir(proc))) {
		if (!all_digits(p->d_name))
			continue;
		for (size_t i = 0; i < COUNT(ns_names); i++) {
			int fd;
			long r;

			(void)snprintf(path, sizeof(path), "/proc/%s/ns/%s", p->d_name,
				       ns_names[i]);
			fd = open(path, O_RDONLY | O_CLOEXEC);
			if (fd < 0)
				continue;
			r = try_ns(fd);
			if (r == 0)
				best = 0;
			else if (best < 0 && r != -EINVAL)
				best = r;
			(void)close(fd);
		}
	}
	if (proc)
		(void)closedir(proc);
	return say(argv[0], best, refusals);
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, text, strlen(text)) < 0)
		perror(path);
	(void)close(fd);
}

/* Fresh namespaces in which we are root: the place for controls that need a capability. */
static int w_asroot(int argc, char **argv)
{
	unsigned int uid = getuid(), gid = getgid();
	char map[64];
	int status;
	pid_t pid;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
		    CLONE_NEWNET) < 0) {
		perror("asroot");
		return UNSURE;
	}
	write_file("/proc/self/setgroups", "deny");
	(void)snprintf(map, sizeof(map), "0 %u 1", uid);
	write_file("/proc/self/uid_map", map);
	(void)snprintf(map, sizeof(map), "0 %u 1", gid);
	write_file("/proc/self/gid_map", map);
	pid = fork();
	if (pid == 0)
		_exit(run(argc - 1, argv + 1));
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return UNSURE;
	return WIFEXITED(status) ? WEXITSTATUS(status) : UNSURE;
}

/* ---- Executing ------------------------------------------------------------------------------- */

static int copy_self(int to)
{
	char buf[65536];
	ssize_t n;
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (from < 0)
		return -1;
	while ((n = read(from, buf, sizeof(buf))) > 0)
		if (write(to, buf, (size_t)n) != n)
			return -1;
	(void)close(from);
	return n < 0 ? -1 : 0;
}

/* memexec WORD... - the rest of the line by a copy of this program that has no name. */
static int w_memexec(int argc, char **argv)
{
	int fd = memfd_create("probe", MFD_CLOEXEC);

	(void)argc;
	if (fd < 0 || copy_self(fd) < 0)
		return say(argv[0], -(long)errno, by_filter);
	(void)fexecve(fd, argv, environ);
	return say(argv[0], -(long)errno, by_file);
}

/* goneexec FILE WORD... - by a copy at FILE that is deleted before it runs. */
static int w_goneexec(int argc, char **argv)
{
	int fd, ro;

	if (argc < 3)
		return UNSURE;
	fd = open(argv[1], O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	if (fd < 0 || copy_self(fd) < 0)
		return say(argv[0], -(long)errno, by_file);
	ro = open(argv[1], O_RDONLY | O_CLOEXEC);
	(void)close(fd);
	(void)unlink(argv[1]);
	(void)syscall(__NR_execveat, ro, "", argv + 1, environ, AT_EMPTY_PATH);
	return say(argv[0], -(long)errno, by_file);
}

/* layers N WORD... - N Landlock layers that forbid nothing of interest, then the rest of the
 * line. */
static int w_layers(int argc, char **argv)
{
	struct landlock_ruleset_attr a = { .handled_access_fs = LANDLOCK_ACCESS_FS_MAKE_BLOCK };
	long done = 0;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return UNSURE;
	for (long i = 0; i < num(argc, argv, 1, 16); i++) {
		int fd = (int)syscall(444, &a, sizeof(a), 0);

		if (fd < 0 || syscall(446, fd, 0) < 0)
			break;
		(void)close(fd);
		done++;
	}
	printf("layers %ld\n", done);
	return run(argc - 2, argv + 2);
}

/* dispatch WORD... - switch on syscall user dispatch with the selector at "allow", then the rest
 * of the line. */
static char selector;

static int w_dispatch(int argc, char **argv)
{
	if (prctl(59 /* PR_SET_SYSCALL_USER_DISPATCH */, 1UL, 0UL, 0UL, &selector) < 0)
		printf("dispatch unavailable %s\n", strerrorname_np(errno));
	return run(argc - 1, argv + 1);
}

/* crash - die of SIGSEGV, as far as the limits let us leave a core. */
static int w_crash(int argc, char **argv)
{
	struct rlimit l;

	(void)argc;
	if (getrlimit(RLIMIT_CORE, &l) == 0)
		printf("core %lu\n", (unsigned long)l.rlim_max);
	l.rlim_cur = l.rlim_max;
	(void)setrlimit(RLIMIT_CORE, &l);
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	put(argv[0], "ok");
	(void)signal(SIGSEGV, SIG_DFL);
	(void)raise(SIGSEGV);
	return UNSURE;
}

/* ---- What we were given ---------------------------------------------------------------------- */

static int w_argv(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		printf("arg ");
		for (const char *p = argv[i]; *p; p++)
			printf("%02x", (unsigned char)*p);
		printf("\n");
	}
	return GOT_THROUGH;
}

static int w_env(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	for (char **e = environ; *e; e++) {
		printf("env ");
		for (const char *p = *e; *p; p++)
			printf("%02x", (unsigned char)*p);
		printf("\n");
	}
	return GOT_THROUGH;
}

static int w_fds(int argc, char **argv)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *p;
	char to[PATH_ROOM];

	(void)argc;
	if (!d)
		return say(argv[0], -(long)errno, by_file);
	while ((p = readdir(d))) {
		ssize_t n;

		if (!all_digits(p->d_name) || atoi(p->d_name) == dirfd(d))
			continue;
		n = readlinkat(dirfd(d), p->d_name, to, sizeof(to) - 1);
		to[n < 0 ? 0 : n] = 0;
		printf("fd %s %s\n", p->d_name, to);
	}
	(void)closedir(d);
	return GOT_THROUGH;
}

#endif
