/* SPDX-License-Identifier: Apache-2.0 */
/* engine/native/child.c - from clone3() to a locked pid 1, inside the new namespaces
 *
 * Runs init_steps[] in order and stops at the first failure. Nothing here allocates or logs, so the file can be
 * read as a list of system calls. Failure leaves through the control socket as one struct err.
 *
 * mate     Starts a helper, who builds the view meanwhile. See mate.c, also for why all calls are raw until it stands.
 * network  Must: be in a network of our own.                       Need not: know the plan.
 * plan     Waits until the mate has it.
 * become   Must: take the sandbox's ids, where they are not our own.
 * limits   Must: rlimits, while we have capabilities.
 * gate     Must: make its sockets and hand them out. Waits for the view, if there is a gate.
 * lock     Must: bounding set, no_new_privs, seccomp.
 * view     Waits for it.
 * restrict Must: landlock, whose rules name the view.
 * stdio    Takes what the first command gets. Then the keeper has opened what it will need of us, which it cannot once
 *          nobody may look into us.
 * finish   Must: no capability left, and nobody may look into us.
 * alone    Must: the old root gone, and the mate, who was never locked in, dead.
 * prove    Must: find each closed door closed.
 */
#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/raw.h"
#include "base/sabotage.h"
#include "engine/native/native.h"

/* Waits for one message. The plan may come before it is asked for, from another process. -ECANCELED: the keeper or its
 * client gave up, and said why to whom it concerns. */
int child_receive(struct child *c, uint32_t type, struct init_msg *m, int fds[PACKET_FDS])
{
	do {
		if (init_recv(c->ctl, m, fds) != 1 || (m->type != type && m->type != INIT_PLAN))
			return -ECANCELED;
		if (m->type == INIT_PLAN)
			c->given = m->plan;
	} while (m->type != type);
	return 0;
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
 * them. */
static int hand_out_ports(struct child *c, bool has_v6)
{
	uint16_t ports[PLAN_PORTS_MAX];
	size_t n = plan_net_ports(&c->plan->net, ports);
	int r = 0;

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

/* Where names are asked for when there is no gate: the keeper answers that none exists (keep/refuser.c). Raw calls:
 * nothing here waits for the view. */
static int open_resolver(struct child *c)
{
	const struct sockaddr_in a = { .sin_family = AF_INET,
				       .sin_port = htons(53),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	long fd = raw_call(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, 0);
	long r = fd < 0 ? fd : raw_call(SYS_bind, fd, (long)&a, sizeof(a), 0);

	if (r < 0)
		return (int)r;
	c->resolver = (int)fd;
	return 0;
}

static int step_gate(struct child *c)
{
	const struct plan_net *p = &c->plan->net;
	struct init_msg m = { .type = INIT_NET };
	struct netns n;
	int r = 0;

	if (sabotaged("netns"))
		return 0;
	if (!p->has_gate)
		r = open_resolver(c);
	if (r < 0 || !(p->has_gate || p->has_receiver))
		return r;
	r = mate_view(c); /* libc is the mate's until then */
	if (r == 0 && p->has_receiver)
		r = hand_out_receiver(c);
	if (r < 0 || !p->has_gate)
		return r;
	r = netns_open(&n);
	if (r < 0)
		return r;
	m.a = n.has_v6;
	m.b = n.has_redirect ? NET_REDIRECT : NET_PORTS;
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

static int raise_loopback(void)
{
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	long fd = raw_call(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0, 0);
	long r = fd < 0 ? fd : raw_call(SYS_ioctl, fd, SIOCSIFFLAGS, (long)&ifr, 0);

	if (fd >= 0)
		(void)raw_call(SYS_close, fd, 0, 0, 0);
	return (int)r;
}

/* A server inside may listen on port 80: the ports of this namespace are nobody else's. Where the kernel refuses that
 * (an outer container whose /proc/sys is read-only), ports from 1024 on work, as everywhere. */
static void open_low_ports(void)
{
	long fd = raw_call(SYS_openat, AT_FDCWD, (long)NETNS_LOW_PORTS, O_WRONLY | O_CLOEXEC, 0);

	if (fd < 0)
		return;
	(void)raw_call(SYS_write, fd, (long)"0", 1, 0);
	(void)raw_call(SYS_close, fd, 0, 0, 0);
}

static int step_network(struct child *c)
{
	long r;

	(void)c;
	if (sabotaged("netns"))
		return 0;
	r = raw_call(SYS_unshare, CLONE_NEWNET, 0, 0, 0);
	if (r == 0)
		open_low_ports();
	return r < 0 ? (int)r : raise_loopback();
}

/* Root is not mapped, so this is no loss of root's powers inside: there never were any outside the namespace, and
 * the capabilities inside stay until the lock. */
int child_become(struct child *c)
{
	const struct ids *ids = &c->ids;
	long r = 0;

	if (!ids_are_given(ids))
		return 0;
	if (!sabotaged("groups"))
		r = raw_call(SYS_setgroups, 0, 0, 0, 0);
	if (r == 0)
		r = raw_call(SYS_setresgid, ids->gid_in, ids->gid_in, ids->gid_in, 0);
	if (r == 0)
		r = raw_call(SYS_setresuid, ids->uid_in, ids->uid_in, ids->uid_in, 0);
	return (int)r;
}

static int step_rlimits(struct child *c)
{
	return rlimits_set(c->plan, true);
}

static int step_lock(struct child *c)
{
	c->wants_notices = c->plan->wants_notices;
	return lock_begin(c);
}

static int step_stdio(struct child *c)
{
	struct init_msg m;
	int fds[PACKET_FDS];
	size_t at = 0;
	int r = child_receive(c, INIT_STDIO, &m, fds);

	if (r < 0)
		return r;
	c->io = (struct stdio){ .flags = m.flags, .rows = m.rows, .cols = m.cols };
	for (int i = 0; i < 3; i++)
		c->io.fd[i] = m.flags & BIT(i) ? FD_NONE : fds[at++];
	return 0;
}

static int step_restrict(struct child *c)
{
	return lock_files(c);
}

static int step_finish(struct child *c)
{
	return lock_end(c);
}

static int step_prove(struct child *c)
{
	return sabotaged("verify") ? 0 : lock_prove(c->plan, c->where, sizeof(c->where));
}

static const struct step init_steps[] = {
	/* One below the other, they are a list. */
	/* clang-format off */
	{ "call the mate", mate_begin },
	{ "make the network", step_network },
	{ "take the plan", mate_plan },
	{ "take ids", child_become },
	{ "set limits", step_rlimits },
	{ "open the gate", step_gate },
	{ "lock", step_lock },
	{ "enter the view", mate_view },
	{ "restrict", step_restrict },
	{ "take stdio", step_stdio },
	{ "drop capabilities", step_finish },
	{ "leave the old root", mate_end },
	{ "prove the lock", step_prove },
	/* clang-format on */
};

static enum err_kind kind_of(const char *step, int r)
{
	if (str_eq(step, "prove the lock"))
		return ERR_BUG;
	return r == -ENOSYS || r == -EOPNOTSUPP ? ERR_UNSUPPORTED : ERR_SYSTEM;
}

void child_tell(struct child *c, const char *step, int r)
{
	struct init_msg m = { .type = INIT_FAILED };
	const char *what = strerrordesc_np(-r);

	if (r == -ECANCELED)
		return; /* nobody is there to be told */
	err_put_(&m.err, kind_of(step, r), -r, "%s: %s%s%s", step, c->where,
		 c->where[0] ? ": " : "", what ? what : "failed");
	(void)init_send(c->ctl, &m, NULL, 0); /* the keeper sees our death otherwise */
}

static _Noreturn void fail(struct child *c, const char *step, int r)
{
	child_tell(c, step, r);
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

static void send_resolver(struct child *c)
{
	struct init_msg m = { .type = INIT_RESOLVER };

	if (hand_out(c, &m, &c->resolver, 1) < 0)
		fail(c, "hand out the resolver", -errno);
}

/* From here on such a call of ours would wait for the keeper too, which has it from now on. */
static void send_notices(struct child *c)
{
	struct init_msg m = { .type = INIT_NOTICES };

	if (hand_out(c, &m, &c->notices, 1) < 0)
		fail(c, "hand out the filter's listener", -errno);
}

/* Where memory lies that is no process's own. */
static void send_shared(struct child *c)
{
	static const char *const places[] = { "/dev/shm", "/proc/sysvipc/shm" };

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		struct init_msg m = { .type = INIT_SHARED };
		_close_ int fd = open(places[i], O_RDONLY | O_CLOEXEC);

		if (fd >= 0 && init_send(c->ctl, &m, &fd, 1) < 0)
			fail(c, "hand out shared memory", -errno);
	}
}

_Noreturn void child_main(struct child *c)
{
	for (size_t i = 0; i < ARRAY_LEN(init_steps); i++) {
		int r;

		c->where[0] = '\0';
		r = init_steps[i].fn(c);
		if (r < 0)
			fail(c, init_steps[i].name, r);
	}
	if (c->notices >= 0)
		send_notices(c);
	if (c->resolver >= 0)
		send_resolver(c);
	if (plan_needs_samples(c->plan))
		send_proc(c);
	if (plan_watches_memory(c->plan))
		send_shared(c);
	if (c->needs_go)
		wait_for_go(c);
	init_main(c);
}
