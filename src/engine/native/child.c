/* SPDX-License-Identifier: Apache-2.0 */
/* engine/native/child.c - from clone3() to a locked pid 1, inside the new namespaces
 *
 * Runs child_steps[] in order and stops at the first failure. Nothing here allocates or logs, so the file can be
 * read as a list of system calls. Failure leaves through the control socket as one struct err.
 *
 * mate     Starts a helper for the two things that take long and that nothing here waits for: the network namespace
 *          and, when we have left it, the old root. See mate.c.
 * ids      Must: map the ids, so that files made from here on have an owner.
 * part     Must: let no later mount of the host in.                Need not: know the plan.
 * plan     Waits until there is one. What came before was done meanwhile.
 * trees    Waits for root's, which the keeper makes.
 * open     Must: open every source while the host is visible.      Must not: change what others see.
 * become   Must: take the sandbox's ids, where they are not our own.
 * build    Must: assemble the tree and pivot into it.              Must not: drop CAP_SYS_ADMIN (mounts need it).
 * settle   Must: hostname, namespace limits, rlimits: the last things that need capabilities.
 * restrict Must: lock all that entering the network can do without: bounding set, no_new_privs, landlock.
 * network  Must: be in the new network while we still may.
 * gate     Must: make its sockets and hand them out.
 * stdio    Takes what the first command gets. Not before the keeper has opened what it will need of us, which it cannot
 *          once we are locked.
 * lock     Must: caps, then seccomp.                               Must not: open anything of the host.
 * prove    Must: find each closed door closed.
 * alone    Must: the old root gone, and the mate, who was never locked in, dead.
 */
#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
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

/* Waits for one message. The plan may come before it is asked for, from another process. No message, no sandbox: the
 * keeper or its client gave up, and said why to whom it concerns. */
static void receive(struct child *c, uint32_t type, struct init_msg *m, int fds[PACKET_FDS])
{
	do {
		if (init_recv(c->ctl, m, fds) != 1 || (m->type != type && m->type != INIT_PLAN))
			_exit(125);
		if (m->type == INIT_PLAN)
			c->given = m->plan;
	} while (m->type != type);
}

/* An ordinary user maps the one id they have. Ids that are not our own the keeper maps, and says so. */
static int step_ids(struct child *c)
{
	const struct ids *ids = &c->ids;
	struct init_msg m;
	int fds[PACKET_FDS];
	char map[64];
	int r;

	if (ids_are_given(ids)) {
		receive(c, INIT_MAPPED, &m, fds);
		return 0;
	}
	r = write_text("/proc/self/setgroups", "deny");
	if (r < 0)
		return r;
	(void)snprintf(map, sizeof(map), "%u %u 1\n", ids->uid_in, ids->uid_out);
	r = write_text("/proc/self/uid_map", map);
	if (r < 0)
		return r;
	(void)snprintf(map, sizeof(map), "%u %u 1\n", ids->gid_in, ids->gid_out);
	return write_text("/proc/self/gid_map", map);
}

/* ---- the sockets by which the gate, outside, serves this namespace ---- */

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

static int hand_out_host_port(struct child *c, const char *text)
{
	struct init_msg m = { .type = INIT_NET_MORE };
	int fd;

	for (; *text; text++)
		m.session = m.session * 10 + (uint32_t)(*text - '0');
	fd = netns_listen((uint16_t)m.session);
	return hand_out(c, &m, &fd, 1);
}

/* Where nothing redirects: every address is ours all the same, so a listener on the port gets what goes to any of
 * them. The ports that rules name, and the usual ones. */
static int hand_out_ports(struct child *c, bool has_v6)
{
	uint16_t ports[32] = { 22, 80, 443 };
	size_t n = 3;
	int r = 0;

	for (char *const *v = c->plan->net.rules; v && *v; v++) {
		const char *colon = strrchr(*v, ':');
		uint32_t port = 0;
		bool is_new = colon && strncmp(*v, "allow ", 6) == 0;

		for (const char *d = colon ? colon + 1 : ""; is_new && *d; d++) {
			is_new = *d >= '0' && *d <= '9' && port < 65536;
			port = port * 10 + (uint32_t)(*d - '0');
		}
		for (size_t i = 0; i < n; i++)
			is_new = is_new && ports[i] != port;
		if (is_new && port > 0 && port < 65536 && port != 53 && port != NETNS_PROXY_PORT &&
		    n < ARRAY_LEN(ports))
			ports[n++] = (uint16_t)port;
	}
	for (size_t i = 0; r == 0 && i < n; i++) {
		struct init_msg m = { .type = INIT_NET_MORE, .session = ports[i], .a = 1 };
		int fd = netns_listen_any(has_v6, ports[i]);

		/* One that a port of the host has taken stays that one's. */
		if (fd != -EADDRINUSE)
			r = hand_out(c, &m, &fd, 1);
	}
	return r;
}

static int hand_out_receiver(struct child *c)
{
	struct init_msg m = { .type = INIT_RECEIVER };
	int fd = netns_listen(NETNS_TELEMETRY_PORT);

	return hand_out(c, &m, &fd, 1);
}

static int step_gate(struct child *c)
{
	const struct plan_net *p = &c->plan->net;
	struct init_msg m = { .type = INIT_NET };
	struct netns n;
	int r = 0;

	if (sabotaged("netns"))
		return 0;
	if (p->has_receiver)
		r = hand_out_receiver(c);
	if (r < 0 || !p->has_gate)
		return r;
	r = netns_open(&n);
	if (r < 0)
		return r;
	m.a = n.has_v6;
	m.b = n.has_redirect;
	r = hand_out(c, &m, n.fd, n.fd[NETNS_DIAG] < 0 ? NETNS_LISTENERS_ : NETNS_SOCKET_COUNT_);
	for (size_t i = 0; r == 0 && i < p->n_host_ports; i++)
		r = hand_out_host_port(c, p->host_ports[i]);
	if (r == 0 && !n.has_redirect)
		r = hand_out_ports(c, n.has_v6);
	if (r == 0 && p->n_ports > 0) {
		int pair[2] = { netns_socket(), netns_listen(0) };

		m = (struct init_msg){ .type = INIT_NET_MORE };
		r = hand_out(c, &m, pair, 2);
	}
	return r;
}

/* ---- init ---- */

static int step_part(struct child *c)
{
	/* Later mounts of the host must not appear inside. */
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -errno;
	c->umask = umask(0);
	return 0;
}

static int step_plan(struct child *c)
{
	struct init_msg m;
	int fds[PACKET_FDS];

	if (c->given == NULL)
		receive(c, INIT_PLAN, &m, fds);
	if (mem_share_take() < 0)
		return -errno;
	c->plan = c->given;
	return 0;
}

/* Root's only: ids are mapped on them, which only root can do. */
static int step_trees(struct child *c)
{
	struct init_msg m;
	int fds[PACKET_FDS];
	void *trees = mmap(NULL, (c->plan->n_mounts + 1) * sizeof(int), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (trees == MAP_FAILED)
		return -errno;
	c->trees = trees;
	for (size_t i = 0; i < c->plan->n_mounts; i++)
		c->trees[i] = FD_NONE;
	for (size_t i = 0; c->ids.is_root && i < c->plan->n_mounts; i++) {
		if (!(c->plan->mounts[i].flags & MOUNT_IDMAP))
			continue;
		receive(c, INIT_TREE, &m, fds);
		c->trees[m.a] = fds[0];
	}
	return 0;
}

static int step_stdio(struct child *c)
{
	struct init_msg m;
	int fds[PACKET_FDS];
	size_t at = 0;

	receive(c, INIT_STDIO, &m, fds);
	c->io = (struct stdio){ .flags = m.flags, .rows = m.rows, .cols = m.cols };
	for (int i = 0; i < 3; i++)
		c->io.fd[i] = m.flags & BIT(i) ? FD_NONE : fds[at++];
	return 0;
}

static int step_open(struct child *c)
{
	return mounts_open(c);
}

/* Root is not mapped, so this is no loss of root's powers inside: there never were any outside the namespace, and
 * the capabilities inside stay until the lock. */
static int step_become(struct child *c)
{
	const struct ids *ids = &c->ids;

	if (!ids_are_given(ids))
		return 0;
	if (!sabotaged("groups") && setgroups(0, NULL) < 0)
		return -errno;
	if (setresgid(ids->gid_in, ids->gid_in, ids->gid_in) < 0 ||
	    setresuid(ids->uid_in, ids->uid_in, ids->uid_in) < 0)
		return -errno;
	/* The keeper, which is not root, must still be able to open our namespaces. The lock closes us again. */
	if (!ids->is_root && prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		return -errno;
	return 0;
}

static int step_build(struct child *c)
{
	return mounts_attach(c);
}

static int step_pivot(struct child *c)
{
	if (!sabotaged("pivot") && (fchdir(c->root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0))
		return -errno;
	/* The old root now lies over the new one; what "/" is for us is the new. */
	if (!sabotaged("pivot") && chdir("/") < 0)
		return -errno;
	mate_drop_root(c);
	return 0;
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
	static char sys_dir[] = "/proc/sys";
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
	/* Some of these files belong to a root inside. */
	if (r == 0 && p->ids.root != ROOT_NONE && !sabotaged("sysctl"))
		r = mounts_cover(c->root, &(struct mount){ .kind = MOUNT_PROTECT,
							   .flags = MOUNT_RO | MOUNT_DIR,
							   .dst = sys_dir });
	/* When memory runs out, what is inside goes first. */
	(void)write_text("/proc/self/oom_score_adj", "300");
	return r;
}

static int step_rlimits(struct child *c)
{
	return rlimits_set(c->plan, true);
}

static int step_restrict(struct child *c)
{
	return lock_begin(c);
}

static int step_lock(struct child *c)
{
	return lock_end(c);
}

static int step_prove(struct child *c)
{
	return sabotaged("verify") ? 0 : lock_prove(c->plan, c->where, sizeof(c->where));
}

static const struct {
	const char *name;
	int (*fn)(struct child *c);
} child_steps[] = {
	/* clang-format off: one below the other, they are a list */
	{ "call the mate", mate_begin },       { "map ids", step_ids },
	{ "part from the host", step_part },   { "take the plan", step_plan },
	{ "take trees", step_trees },          { "open sources", step_open },
	{ "take ids", step_become },           { "build the view", step_build },
	{ "enter the view", step_pivot },      { "settle", step_settle },
	{ "set limits", step_rlimits },        { "restrict", step_restrict },
	{ "enter the network", mate_network }, { "open the gate", step_gate },
	{ "take stdio", step_stdio },          { "lock", step_lock },
	{ "prove the lock", step_prove },      { "leave the old root", mate_end },
	/* clang-format on */
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
	if (plan_needs_samples(c->plan))
		send_proc(c);
	(void)umask(c->umask);
	if (c->needs_go)
		wait_for_go(c);
	init_main(c);
}
