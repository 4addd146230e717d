/* SPDX-License-Identifier: Apache-2.0 */
/* engine/native/child.c - from clone3() to a locked pid 1, inside the new namespaces
 *
 * Runs child_steps[] in order and stops at the first failure. Nothing here allocates or logs, so the file can be
 * read as a list of system calls. Failure leaves through the control socket as one struct err.
 *
 * network  Begun early by a helper, entered before the lock.
 * ids      Must: map the ids, so that files made from here on have an owner.
 * open     Must: open every source while the host is visible.      Must not: change what others see.
 * become   Must: take the sandbox's ids (root only).
 * build    Must: assemble the tree and pivot into it.              Must not: drop CAP_SYS_ADMIN (mounts need it).
 * settle   Must: hostname, namespace limits, rlimits: the last things that need capabilities.
 * lock     Must: caps, no_new_privs, landlock, seccomp, in that order.  Must not: open anything of the host.
 * prove    Must: find each closed door closed.
 */
#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/path.h"
#include "base/sabotage.h"
#include "engine/native/native.h"

static int write_text(const char *path, const char *text)
{
	_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return io_write_all(fd, text, strlen(text));
}

/* An ordinary user maps the one id they have. For root the keeper writes the map (it is not our own id) and says
 * so with a byte on the control socket. */
static int step_ids(struct child *c)
{
	const struct plan *p = c->plan;
	char map[64];
	char go;
	int r;

	if (p->is_root) {
		ssize_t n = io_read(c->ctl, &go, 1);

		return n == 1 ? 0 : n < 0 ? (int)n : -EPIPE;
	}
	r = write_text("/proc/self/setgroups", "deny");
	if (r < 0)
		return r;
	(void)snprintf(map, sizeof(map), "%u %u 1\n", p->uid_in, p->uid_out);
	r = write_text("/proc/self/uid_map", map);
	if (r < 0)
		return r;
	(void)snprintf(map, sizeof(map), "%u %u 1\n", p->gid_in, p->gid_out);
	return write_text("/proc/self/gid_map", map);
}

static int step_open(struct child *c)
{
	/* Later mounts of the host must not appear inside. */
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -errno;
	c->umask = umask(0);
	return mounts_open(c);
}

/* Hands descriptors to the keeper and closes ours: the helper shares the table with init. */
static int hand_out(struct child *c, const struct init_msg *m, const int *take_fds, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n; i++)
		r = take_fds[i] < 0 ? take_fds[i] : r;
	if (r == 0)
		r = init_send(c->ctl, m, take_fds, n);
	for (size_t i = 0; i < n; i++)
		fd_close(take_fds[i]);
	return r;
}

/* The sockets by which the gate, outside, serves this namespace. */
static int open_gate(struct child *c)
{
	const struct plan_net *p = &c->plan->net;
	struct init_msg m = { .type = INIT_NET };
	struct netns n;
	int r = netns_open(&n);

	if (r < 0)
		return r;
	m.a = n.has_v6;
	m.b = n.has_redirect;
	r = hand_out(c, &m, n.fd, NETNS_SOCKET_COUNT_);
	for (size_t i = 0; r == 0 && i < p->n_host_ports; i++) {
		uint16_t port = 0;
		int fd;

		for (const char *d = p->host_ports[i]; *d; d++)
			port = (uint16_t)(port * 10 + (*d - '0'));
		fd = netns_listen(port);
		m = (struct init_msg){ .type = INIT_NET_MORE, .session = port };
		r = hand_out(c, &m, &fd, 1);
	}
	if (r == 0 && p->n_ports > 0) {
		int pair[2] = { netns_socket(), netns_listen(0) };

		m = (struct init_msg){ .type = INIT_NET_MORE };
		r = hand_out(c, &m, pair, 2);
	}
	return r;
}

/* In the helper: its exit status is the descriptor, which it shares with us. 0 is no descriptor of ours. */
static _Noreturn void make_net(struct child *c)
{
	int fd = FD_NONE;

	if (unshare(CLONE_NEWNET) == 0 && netns_loopback() == 0 &&
	    (!c->plan->net.has_gate || open_gate(c) == 0))
		fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	_exit(fd > 2 && fd < 256 ? fd : 0);
}

/* A network namespace is the dearest of all (half of what the others and the view cost together), and nothing of the
 * view depends on it. So a helper makes it meanwhile, on another processor where there is one. */
static int step_net_begin(struct child *c)
{
	struct clone_args args = { .flags = CLONE_FILES, .exit_signal = SIGCHLD };

	if (!(c->plan->ns & NS_NET) || sabotaged("netns"))
		return 0;
	c->net_maker = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (c->net_maker == 0)
		make_net(c);
	return c->net_maker < 0 ? -errno : 0;
}

static int step_net_enter(struct child *c)
{
	_close_ int fd = FD_NONE;
	int status;

	if (c->net_maker == 0)
		return 0;
	if (waitpid(c->net_maker, &status, 0) < 0)
		return -errno;
	if (!WIFEXITED(status) || WEXITSTATUS(status) == 0)
		return -EIO;
	fd = WEXITSTATUS(status);
	return setns(fd, CLONE_NEWNET) < 0 ? -errno : 0;
}

/* Root is not mapped, so this is no loss of root's powers inside: there never were any outside the namespace, and
 * the capabilities inside stay until the lock. */
static int step_become(struct child *c)
{
	const struct plan *p = c->plan;

	if (!p->is_root)
		return 0;
	if (!sabotaged("groups") && setgroups(0, NULL) < 0)
		return -errno;
	if (setresgid(p->gid_in, p->gid_in, p->gid_in) < 0 ||
	    setresuid(p->uid_in, p->uid_in, p->uid_in) < 0)
		return -errno;
	return 0;
}

static int step_build(struct child *c)
{
	return mounts_attach(c);
}

static int step_pivot(struct child *c)
{
	if (sabotaged("pivot"))
		return 0;
	if (fchdir(c->root) < 0)
		return -errno;
	if (syscall(SYS_pivot_root, ".", ".") < 0)
		return -errno;
	/* The old root now lies over the new one, and "." is the old. */
	if (umount2(".", MNT_DETACH) < 0)
		return -errno;
	return chdir("/") < 0 ? -errno : 0;
}

/* A sysctl of one of our own namespaces. */
static int set_sysctl(struct child *c, const char *name, uint64_t value)
{
	char path[80], text[24];

	(void)snprintf(path, sizeof(path), "/proc/sys/%s", name);
	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	(void)snprintf(c->where, sizeof(c->where), "%s", path);
	return write_text(path, text);
}

static int step_settle(struct child *c)
{
	const struct plan *p = c->plan;
	int r = 0;

	if (!sabotaged("utsns") && sethostname(p->hostname, strlen(p->hostname)) < 0)
		r = -errno;
	/* The filter already refuses new user namespaces; this holds even where a filter would not. */
	if (r == 0 && !sabotaged("userns"))
		r = set_sysctl(c, "user/max_user_namespaces", 0);
	/* inotify objects are counted for each user of the host, whatever the namespace: half of the kernel's usual
	 * bound must do for what runs inside. */
	if (r == 0)
		r = set_sysctl(c, "user/max_inotify_instances", 64);
	if (r == 0)
		r = set_sysctl(c, "user/max_inotify_watches", 65536);
	/* When memory runs out, what is inside goes first. */
	(void)write_text("/proc/self/oom_score_adj", "300");
	return r;
}

static int set_rlimit(int which, uint64_t value)
{
	struct rlimit old, new = { .rlim_cur = value, .rlim_max = value };

	if (getrlimit(which, &old) < 0)
		return -errno;
	if (old.rlim_max != RLIM_INFINITY && new.rlim_max > old.rlim_max)
		new.rlim_cur = new.rlim_max = old.rlim_max;
	return setrlimit(which, &new) < 0 ? -errno : 0;
}

static int step_rlimits(struct child *c)
{
	const struct plan_limit *l = c->plan->limits;
	int r = set_rlimit(RLIMIT_CORE, 0);

	if (r == 0 && l[LIMIT_PIDS].is_set && !sabotaged("pids"))
		r = set_rlimit(RLIMIT_NPROC, l[LIMIT_PIDS].max + 1); /* init is one of them */
	if (r == 0 && l[LIMIT_OPEN_FILES].is_set)
		r = set_rlimit(RLIMIT_NOFILE, l[LIMIT_OPEN_FILES].max);
	if (r == 0 && l[LIMIT_CPU_TIME].is_set)
		r = set_rlimit(RLIMIT_CPU, (l[LIMIT_CPU_TIME].max + NS_PER_SEC - 1) / NS_PER_SEC);
	/* Per-user kernel objects that no namespace counts: the user must keep some for themselves. */
	if (r == 0)
		r = set_rlimit(RLIMIT_MSGQUEUE, 819200);
	if (r == 0)
		r = set_rlimit(RLIMIT_SIGPENDING, 4096);
	return r;
}

static int step_lock(struct child *c)
{
	return lock_all(c);
}

static int step_prove(struct child *c)
{
	return sabotaged("verify") ? 0 : lock_prove(c->where, sizeof(c->where));
}

static const struct {
	const char *name;
	int (*fn)(struct child *c);
} child_steps[] = {
	{ "map ids", step_ids },
	{ "begin the network", step_net_begin },
	{ "open sources", step_open },
	{ "take ids", step_become },
	{ "build the view", step_build },
	{ "enter the view", step_pivot },
	{ "enter the network", step_net_enter },
	{ "settle", step_settle },
	{ "set limits", step_rlimits },
	{ "lock", step_lock },
	{ "prove the lock", step_prove },
};

static enum err_kind kind_of(const char *step, int r)
{
	if (str_eq(step, "prove the lock"))
		return ERR_BUG;
	return r == -ENOSYS || r == -EOPNOTSUPP ? ERR_UNSUPPORTED : ERR_SYSTEM;
}

static _Noreturn void fail(struct child *c, const char *step, int r)
{
	struct init_msg m = { .type = INIT_FAILED };
	const char *what = strerrordesc_np(-r);

	err_put_(&m.err, kind_of(step, r), -r, "%s: %s%s%s", step, c->where,
		 c->where[0] ? ": " : "", what ? what : "failed");
	(void)init_send(c->ctl, &m, NULL, 0); /* the keeper sees our death otherwise */
	_exit(125);
}

static void wait_for_go(struct child *c)
{
	struct init_msg m;
	int fds[PACKET_FDS];

	if (init_recv(c->ctl, &m, fds) != 1 || m.type != INIT_GO)
		_exit(125);
}

static void send_proc(struct child *c)
{
	struct init_msg m = { .type = INIT_PROC };
	_close_ int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || init_send(c->ctl, &m, &fd, 1) < 0)
		fail(c, "hand out /proc", -errno);
}

_Noreturn void child_main(struct child *c)
{
	for (size_t i = 0; i < ARRAY_LEN(child_steps); i++) {
		int r;

		c->where[0] = '\0';
		r = child_steps[i].fn(c);
		if (r < 0)
			fail(c, child_steps[i].name, r);
	}
	if (c->needs_proc)
		send_proc(c);
	(void)umask(c->umask);
	if (c->needs_go)
		wait_for_go(c);
	init_main(c);
}
