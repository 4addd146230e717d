/* SPDX-License-Identifier: Apache-2.0 */
/* sys/freeze.c - see freeze.h
 *
 * The helper runs outside the sandbox's pid namespace, where nothing inside can see or signal it, and in its user
 * namespace, where it may trace every process that was executed there, dumpable or not. Each thread is seized and
 * interrupted: that is a stop which SIGCONT does not end, and a stop by job control that was there before is there
 * afterwards. Children of a seized thread are seized by the kernel.
 *
 * When is everything stopped? A stopped thread stays stopped, so the set of stopped threads only grows, and a pass over all
 * threads in which each is found stopped is the proof, if the pass saw them all. Lists in /proc may leave something out
 * while others come and go. So they are compared with counts that do not: a process has as many threads as its
 * `stat` says, and as many processes were found as the sandbox's own /proc shows.
 *
 * What is not in the simple case:
 *
 * asleep    A thread that the kernel keeps waiting (state D: a slow disk, the parent in vfork) cannot report its stop.
 *           Its next instruction comes after the stop, so it counts as stopped; the system call it is in may end.
 * traced    Under a debugger inside (features.debug) a thread has a tracer already. It gets SIGSTOP, which stops it for that
 *           tracer, and counts when the tracer was stopped first. Two that trace each other never count.
 * refused   A process that may not be traced: init's own memory until its child has executed its program, which takes
 *           a moment; a program that its user may run but not read.
 *
 * What does not stop in time is killed: a protection that is put back late is worse than an ended process.
 */
#include "sys/freeze.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/loop.h"
#include "base/sabotage.h"
#include "base/title.h"

#define CALM_MS 10             /* without a report: who is asleep? */
#define PATIENCE_NS NS_PER_SEC /* then what refuses to be stopped is killed */
#define GIVE_UP_NS (10 * NS_PER_SEC)
#define CHANNEL 0 /* the helper's own numbers */
#define USER_NS 1
#define MNT_NS 2
#define EVENTS (PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE)

enum task_state { TASK_NONE, TASK_SEIZED, TASK_STOPPED, TASK_ASLEEP, TASK_TRACED };

struct task {
	pid_t tid;
	enum task_state state;
	int signo;   /* it was stopped on the way to this signal, which it gets later */
	pid_t inner; /* TASK_TRACED: its process, as the sandbox's /proc calls it */
};

struct freezer {
	int host, inner;  /* /proc of the host and of the sandbox */
	int signals;      /* SIGCHLD: a thread has stopped or ended */
	bool is_over;     /* the freeze is; */
	bool is_released; /* because the keeper says so, and not because it is dead */
	pid_t root;
	struct task *tasks; /* by tid, open addressing */
	size_t n, cap;
	pid_t *todo;
	size_t n_todo, cap_todo;
	uint64_t began;
	bool kills;
	bool may_trace, is_forbidden; /* known once somebody refuses */
	struct freeze_result result;
	bool has_gone; /* the last pass met something that had ended */
};

/* ---- the table ---- */

static struct task *slot(struct task *v, size_t cap, pid_t tid)
{
	size_t i = (size_t)tid & (cap - 1);

	while (v[i].tid != 0 && v[i].tid != tid)
		i = (i + 1) & (cap - 1);
	return &v[i];
}

/* A task that has ended stays in the table as TASK_NONE: its number may be another's soon. */
static struct task *task_of(struct freezer *f, pid_t tid)
{
	struct task *t = f->cap ? slot(f->tasks, f->cap, tid) : NULL;

	if (t && t->tid == tid)
		return t;
	if (2 * f->n >= f->cap) {
		size_t cap = f->cap ? 2 * f->cap : 1024;
		struct task *v = mem_new(cap, sizeof(*v));

		for (size_t i = 0; i < f->cap; i++)
			if (f->tasks[i].tid)
				*slot(v, cap, f->tasks[i].tid) = f->tasks[i];
		free(f->tasks);
		f->tasks = v;
		f->cap = cap;
	}
	t = slot(f->tasks, f->cap, tid);
	*t = (struct task){ .tid = tid };
	f->n++;
	return t;
}

static bool is_stopped(const struct task *t)
{
	return t->state == TASK_STOPPED || t->state == TASK_ASLEEP || t->state == TASK_TRACED;
}

/* ---- /proc ---- */

static bool read_proc(int dir, pid_t tid, const char *file, char *ret, size_t size)
{
	char name[48];
	_close_ int fd = FD_NONE;
	ssize_t n;

	(void)snprintf(name, sizeof(name), "%d/%s", (int)tid, file);
	fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : io_read(fd, ret, size - 1);
	ret[n > 0 ? n : 0] = '\0';
	return n > 0;
}

static long number_at(const char *p)
{
	long v = 0;

	for (; *p >= '0' && *p <= '9' && v < INT32_MAX; p++)
		v = v * 10 + (*p - '0');
	return v;
}

/* The state of a thread and how many its process has; 'X': it is gone. */
static char look(const struct freezer *f, pid_t tid, long *ret_threads)
{
	char text[1024];
	const char *p =
		read_proc(f->host, tid, "stat", text, sizeof(text)) ? strrchr(text, ')') : NULL;
	char state = 'X';

	if (p && p[1])
		state = p[2];
	*ret_threads = 0;
	for (int field = 2; p && *p; p++)
		if (*p == ' ' && ++field == 20)
			*ret_threads = number_at(p + 1);
	return state;
}

static bool is_dead(char state)
{
	return state == 'X' || state == 'Z';
}

/* A line of `status`: the last number in it. 0: there is none. */
static pid_t status_number(const struct freezer *f, pid_t tid, const char *key)
{
	char text[4096];
	const char *p =
		read_proc(f->host, tid, "status", text, sizeof(text)) ? strstr(text, key) : NULL;
	const char *last = NULL;

	for (p = p ? p + strlen(key) : NULL; p && *p && *p != '\n'; p++)
		if ((p[0] == '\t' || p[0] == ' ') && p[1] >= '0' && p[1] <= '9')
			last = p + 1;
	return last ? (pid_t)number_at(last) : 0;
}

/* By a descriptor of the sandbox's own /proc: whatever number this is, no process outside can be meant. */
static void signal_inside(const struct freezer *f, pid_t inner, int signo)
{
	char name[24];
	_close_ int fd = FD_NONE;

	(void)snprintf(name, sizeof(name), "%d", (int)inner);
	fd = inner > 1 ? openat(f->inner, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : FD_NONE;
	if (fd >= 0) /* it may have ended */
		(void)syscall(SYS_pidfd_send_signal, fd, signo, NULL, 0);
}

/* ---- stopping ---- */

/* A thread of a debugger inside: is that tracer stopped, and then the thread for it? */
static bool stop_traced(struct freezer *f, pid_t tid, pid_t tracer)
{
	pid_t inner = status_number(f, tid, "\nNStgid:");
	bool is_last = is_stopped(task_of(f, tracer)); /* before we look at the thread */
	long ignored;

	if (look(f, tid, &ignored) != 't')
		signal_inside(f, inner, SIGSTOP);
	else if (is_last)
		*task_of(f, tid) =
			(struct task){ .tid = tid, .state = TASK_TRACED, .inner = inner };
	return is_stopped(task_of(f, tid));
}

/* Does this host let anybody be traced (kernel.yama.ptrace_scope, a container's filter)? A child of ours may be if anybody may. */
static bool may_trace(void)
{
	pid_t pid = fork();
	bool may;

	if (pid == 0)
		for (;;)
			(void)pause();
	may = pid > 0 && ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0;
	if (pid > 0) {
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, __WALL);
	}
	return may;
}

/* It could not be seized, and is not dead. */
static bool stop_refused(struct freezer *f, pid_t tid)
{
	pid_t tracer = status_number(f, tid, "\nTracerPid:");

	if (tracer != 0 && stop_traced(f, tid, tracer))
		return true;
	f->is_forbidden = !f->may_trace && !(f->may_trace = may_trace());
	if (f->kills && !f->is_forbidden) {
		signal_inside(f, status_number(f, tid, "\nNStgid:"), SIGKILL);
		f->result.killed++;
	}
	return false;
}

/* True: this thread executes nothing any more. */
/* True: it does not move. *ret_gone: because it has ended. */
static bool stop(struct freezer *f, pid_t tid, bool *ret_gone)
{
	struct task *t = task_of(f, tid);
	long ignored;

	*ret_gone = false;
	if (is_stopped(t))
		return true;
	if (t->state == TASK_SEIZED)
		return false;
	if (ptrace(PTRACE_SEIZE, tid, NULL, (void *)(uintptr_t)EVENTS) == 0) {
		t->state = TASK_SEIZED;
		(void)ptrace(PTRACE_INTERRUPT, tid, NULL, NULL); /* if it ended, that is reported */
		return false;
	}
	if (errno == ESRCH || is_dead(look(f, tid, &ignored))) {
		*ret_gone = f->has_gone = true;
		return true;
	}
	return stop_refused(f, tid);
}

/* The children of a thread are to be looked at too. */
static int add_children(struct freezer *f, int task_dir, const char *tid)
{
	char name[32], text[4096];
	_close_ int fd = FD_NONE;
	pid_t at = 0;
	ssize_t n;

	(void)snprintf(name, sizeof(name), "%.16s/children", tid);
	fd = openat(task_dir, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while ((n = read(fd, text, sizeof(text))) > 0)
		for (ssize_t i = 0; i < n; i++) {
			if (text[i] != ' ') {
				at = at * 10 + (text[i] - '0');
				continue;
			}
			vec_reserve(f->todo, f->n_todo, f->cap_todo);
			f->todo[f->n_todo++] = at;
			at = 0;
		}
	return 0;
}

/* How many threads of it are not known to be stopped; -ENOENT: it is gone. */
static int pass_process(struct freezer *f, pid_t pid)
{
	char name[32];
	DIR *d;
	const struct dirent *en;
	long has = 0, seen = 0;
	int fd, left = 0, r = 0;
	bool is_gone = false;
	pid_t tid;

	(void)snprintf(name, sizeof(name), "%d/task", (int)pid);
	fd = openat(f->host, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d = fd < 0 ? NULL : fdopendir(fd);
	if (d == NULL)
		return -ENOENT;
	while ((en = readdir(d)) != NULL) {
		if (en->d_name[0] < '1' || en->d_name[0] > '9')
			continue;
		r = add_children(f, fd, en->d_name);
		if (r < 0 && pid == f->root)
			break;
		tid = (pid_t)number_at(en->d_name);
		if (pid != f->root && !stop(f, tid, &is_gone))
			left++;
		/* A thread that has ended may have begun another that the list left out: it must not stand for that one. The
		 * first thread is counted until the last has ended. */
		seen += !is_gone || tid == pid;
	}
	(void)closedir(d);
	if (pid == f->root)
		return r < 0 ? -ENOSYS : 0;
	(void)look(f, pid, &has);
	return left + (has > seen);
}

static size_t count_inside(const struct freezer *f)
{
	int fd = openat(f->inner, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *en;
	size_t n = 0;

	while (d && (en = readdir(d)) != NULL)
		n += en->d_name[0] >= '1' && en->d_name[0] <= '9';
	if (d)
		(void)closedir(d);
	return n;
}

/* One look at every thread: how many are not known to be stopped. 0: nothing inside moves. */
static int pass(struct freezer *f)
{
	size_t n = 0;
	int left = 0;

	f->todo[0] = f->root;
	f->n_todo = 1;
	f->has_gone = false;
	while (f->n_todo > 0) {
		int r = pass_process(f, f->todo[--f->n_todo]);

		if (r == -ENOSYS)
			return r;
		n += r != -ENOENT;
		left += r > 0 ? r : 0;
	}
	return left + (count_inside(f) != n);
}

/* ---- reports ---- */

/* How many threads have reported since. */
static size_t reap(struct freezer *f)
{
	size_t n = 0;
	int status;
	pid_t tid;

	while ((tid = waitpid(-1, &status, __WALL | WNOHANG)) > 0) {
		struct task *t = task_of(f, tid);

		n++;
		/* From here on it dies with us: nobody else could keep it stopped. */
		if (WIFSTOPPED(status) && !sabotaged("exitkill"))
			(void)ptrace(PTRACE_SETOPTIONS, tid, NULL,
				     (void *)(uintptr_t)(EVENTS | PTRACE_O_EXITKILL));
		t->state = WIFSTOPPED(status) ? TASK_STOPPED : TASK_NONE;
		t->signo = WIFSTOPPED(status) && status >> 16 == 0 ? WSTOPSIG(status) : 0;
	}
	return n;
}

static bool is_awaited(const struct freezer *f)
{
	for (size_t i = 0; i < f->cap; i++)
		if (f->tasks[i].state == TASK_SEIZED)
			return true;
	return false;
}

static void find_asleep(struct freezer *f)
{
	long ignored;

	for (size_t i = 0; i < f->cap; i++)
		if (f->tasks[i].state == TASK_SEIZED) {
			char state = look(f, f->tasks[i].tid, &ignored);

			f->tasks[i].state = state == 'D'     ? TASK_ASLEEP
					    : is_dead(state) ? TASK_NONE
							     : TASK_SEIZED;
		}
}

/* For reports of threads, or the end of the freeze. False: none of them in so many milliseconds. */
static bool wait_for_word(struct freezer *f, int ms)
{
	struct pollfd p[2] = { { .fd = CHANNEL, .events = POLLIN },
			       { .fd = f->signals, .events = POLLIN } };
	struct signalfd_siginfo info;
	char word;
	int n = poll(p, 2, ms);

	if (p[0].revents) {
		f->is_over = true;
		f->is_released = io_read(CHANNEL, &word, 1) == 1;
	}
	if (p[1].revents)
		(void)io_read(f->signals, &info, sizeof(info));
	return n != 0;
}

/* Until all that were seized have reported, or none does for a while. */
static void wait_for_reports(struct freezer *f)
{
	do {
		if (reap(f) == 0 && !wait_for_word(f, CALM_MS)) {
			find_asleep(f);
			return;
		}
	} while (is_awaited(f) && !f->is_over);
}

static int stop_all(struct freezer *f)
{
	bool is_again = false;

	f->began = clock_now();
	while (!f->is_over) {
		uint64_t took;
		int left = pass(f);

		/* A process that ended during the pass may have been counted for its child: once more, then. */
		if (left < 0 || (left == 0 && (!f->has_gone || is_again)))
			return left;
		is_again = left == 0;
		if (is_again)
			continue;
		if (f->is_forbidden)
			return -EPERM;
		took = clock_now() - f->began;
		if (took > GIVE_UP_NS)
			return -ETIMEDOUT;
		f->kills = took > PATIENCE_NS;
		if (is_awaited(f))
			wait_for_reports(f);
		else
			(void)wait_for_word(f, 1);
	}
	return -ECANCELED;
}

/* Those that are asleep are let go by the kernel when we end. */
static void let_go(struct freezer *f)
{
	(void)reap(f);
	for (size_t i = 0; i < f->cap; i++) {
		const struct task *t = &f->tasks[i];

		if (t->state == TASK_STOPPED)
			(void)ptrace(PTRACE_DETACH, t->tid, NULL, (void *)(uintptr_t)t->signo);
		else if (t->state == TASK_TRACED)
			signal_inside(f, t->inner, SIGCONT);
	}
}

/* ---- the helper ---- */

/* A copy of the keeper holds what the keeper held: its clients, locks and journal. */
static void drop_descriptors(int channel, int user_ns, int mnt_ns)
{
	int keep[3] = { channel, user_ns, mnt_ns };

	for (int i = 0; i < 3; i++)
		keep[i] = fcntl(keep[i], F_DUPFD_CLOEXEC, 3);
	for (int i = 0; i < 3; i++)
		if (dup2(keep[i], i) <
		    0) /* NOLINT(android-cloexec-dup): nothing is executed here */
			_exit(125);
	(void)syscall(SYS_close_range, 3, ~0U, 0);
}

static int enter(struct freezer *f, int user_ns, int mnt_ns)
{
	f->host = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f->host < 0 || setns(user_ns, CLONE_NEWUSER) < 0 || setns(mnt_ns, CLONE_NEWNS) < 0)
		return -errno;
	f->inner = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return f->inner < 0 ? -errno : 0;
}

static _Noreturn void helper(pid_t root, int channel, int user_ns, int mnt_ns)
{
	struct freezer f = { .root = root, .host = FD_NONE, .inner = FD_NONE };
	sigset_t set;

	drop_descriptors(channel, user_ns, mnt_ns);
	title_set("vitrine freezer");
	(void)prctl(PR_SET_NAME, "vitrine-freezer");
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	f.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	vec_reserve(f.todo, f.n_todo, f.cap_todo);
	f.result.error = f.signals < 0 ? -errno : enter(&f, USER_NS, MNT_NS);
	if (f.result.error == 0)
		f.result.error = stop_all(&f);
	for (size_t i = 0; i < f.cap; i++)
		f.result.threads += is_stopped(&f.tasks[i]);
	(void)io_write_all(CHANNEL, &f.result,
			   sizeof(f.result)); /* a keeper that is gone ends us too */
	/* Who dies meanwhile is taken note of: its namespace cannot end before. */
	while (!f.is_over)
		if (wait_for_word(&f, -1))
			(void)reap(&f);
	/* A keeper that died takes all inside with it, and what is stopped must not run until that has happened. */
	if (f.is_released)
		let_go(&f);
	_exit(0);
}

int freeze_begin(struct freeze *f, pid_t root, int user_ns, int mnt_ns, struct err *e)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "socketpair");
	f->pid = fork();
	if (f->pid == 0)
		helper(root, pair[1], user_ns, mnt_ns);
	fd_close(pair[1]);
	if (f->pid < 0) {
		fd_close(pair[0]);
		f->pid = 0;
		return err_sys(e, "fork");
	}
	f->fd = pair[0];
	return 0;
}

int freeze_result(const struct freeze *f, struct freeze_result *ret)
{
	return io_read(f->fd, ret, sizeof(*ret)) == (ssize_t)sizeof(*ret);
}

void freeze_end(struct freeze *f)
{
	if (f->pid <= 0)
		return;
	(void)io_write_all(f->fd, "", 1); /* it may be dead */
	fd_close(f->fd);
	(void)waitpid(f->pid, NULL, 0);
	*f = FREEZE_NONE;
}
