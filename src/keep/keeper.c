/* SPDX-License-Identifier: Apache-2.0 */
/* keep/keeper.c - one sandbox from start to end
 *
 * Forked from the client that starts the sandbox, usually before there is a plan: the client makes it in memory that
 * we share, and we make init and its namespaces meanwhile. Order of a life:
 *
 * part     leave the client's session, descriptors, directory and environment behind
 * begin    clone init, then wait for the plan (unless we have it already)
 * start    hand init the plan; while it builds, make the sandbox's directory, lock and control socket
 * serve    one loop: init's messages, clients, relays, timers, the workspace's watch
 * end      init is dead and with it every process inside; drain, sweep, clean up, tell the clients
 *
 * Nothing but init (inside.c) and the clients (clients.c) is listened to. Both are foreign: whatever is not a
 * permitted message ends the sandbox (init) or the connection (client).
 */
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "base/io.h"
#include "base/sabotage.h"
#include "base/title.h"
#include "core/def.h"
#include "core/worktree.h"
#include "engine/engine.h"
#include "keep/keeper.h"
#include "sys/spread.h"

#define DOOR_AFTER (20 * NS_PER_MS)

void keeper_end(struct keeper *k, enum end_reason why)
{
	if (k->why == END_EXIT)
		k->why = why;
	k->is_ending = true;
	engine_kill(&k->native);
	freeze_drop(k);
}

void keeper_fail(struct keeper *k, const struct err *e)
{
	k->err = *e;
	keeper_end(k, END_ERROR);
}

void keeper_end_if_idle(struct keeper *k)
{
	if (!keeper_is_named(k) || sessions_live(k) > 0)
		return;
	/* A client that has not yet asked for anything is about to. */
	if (!k->is_ending && (k->in->is_kept || clients_any(k)))
		return;
	keeper_end(k, END_EXIT);
}

void keeper_moved(void *keeper)
{
	limits_check_output(keeper);
}

/* ---- a life ---- */

static bool is_among(int fd, const int *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (v[i] == fd)
			return true;
	return false;
}

/* Leave everything of the client behind but its stdio and what is still needed. */
static void part(const int needed[4])
{
	int keep[] = { needed[0], needed[1], needed[2], needed[3], mem_share_fd() };
	int max = 3;

	(void)setsid(); /* we were just forked, so this cannot fail */
	if (chdir("/") < 0)
		_exit(125);
	for (size_t i = 0; i < ARRAY_LEN(keep); i++)
		max = keep[i] >= max ? keep[i] + 1 : max;
	for (int fd = 3; fd < max && !sabotaged("fds"); fd++)
		if (!is_among(fd, keep, ARRAY_LEN(keep)))
			(void)close(fd);
	if (!sabotaged("fds"))
		(void)syscall(SYS_close_range, max, ~0U, 0);
	title_set("vitrine keeper");
	/* Where root was dropped the kernel made us undumpable, and our children's files in /proc root's: their ids could
	 * not be mapped. Only here, where root's arguments and environment have been wiped: the client stays closed. */
	(void)prctl(PR_SET_DUMPABLE,
		    1); /* if it fails, so does mapping the ids, and that is reported */
	(void)signal(SIGHUP, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGINT, SIG_DFL);
	(void)signal(SIGTERM, SIG_DFL);
	(void)prctl(PR_SET_NAME, "vitrine-keeper");
	/* No core of ours may lie about: it would hold the policy and the environment. */
	(void)setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
}

static void on_term(void *arg)
{
	keeper_end(arg, END_STOPPED);
}

static void on_dead(void *arg)
{
	struct keeper *k = arg;

	loop_stop(k->loop);
}

static void on_init(void *arg)
{
	inside_message(arg);
}

static void note_command(struct session *s, char *const *argv)
{
	size_t at = 0;

	for (; *argv && at < sizeof(s->command) - 1; argv++)
		at += (size_t)snprintf(s->command + at, sizeof(s->command) - at, "%s%s",
				       at ? " " : "", *argv);
}

/* The first command's session; a sandbox that only stands ready has none. */
static int open_first(struct keeper *k, struct stdio *io, struct err *e)
{
	struct keeper_in *in = k->in;
	struct session *s = &k->sessions[0];
	unsigned flags = in->flags;

	if (in->plan->limits[LIMIT_OUTPUT].is_set || in->plan->limits[LIMIT_IDLE].is_set)
		in->flags |= KEEP_SEE_OUTPUT;
	/* Nothing to hand over, where there is no command. */
	*io = (struct stdio){ .fd = { FD_NONE, FD_NONE, FD_NONE },
			      .flags = INIT_PTY_IN | INIT_PTY_OUT | INIT_PTY_ERR };
	if (in->plan->argv[0] == NULL)
		return 0;
	*io = (struct stdio){ .fd = { FD_NONE, FD_NONE, FD_NONE } };
	if (flags & (KEEP_RECORD | KEEP_BEHIND))
		flags |= KEEP_SEE_OUTPUT;
	*s = SESSION_NONE;
	s->is_used = true;
	note_command(s, in->plan->argv);
	return session_open(s, in->stdio, flags | (in->flags & KEEP_SEE_OUTPUT), io, e);
}

/* The first client may go long before we do; what it gave us must then not stay open here. */
static void forget_stdio(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC | O_NOCTTY);

	for (int fd = 0; fd < 3 && null >= 0; fd++)
		(void)dup2(null, fd); /* NOLINT(android-cloexec-dup): nothing is executed here */
	fd_close(null);
}

static void add_first_client(struct keeper *k)
{
	struct keeper_in *in = k->in;
	struct client *c = client_add(k, in->client);
	struct keep_msg m = { .flags = KEEP_JOBS,
			      .rows = k->sessions[0].rows,
			      .cols = k->sessions[0].cols };

	memcpy(m.keys, in->keys, KEEP_KEYS);
	if (c && k->sessions[0].is_used)
		client_enter(c, &k->sessions[0], &m);
}

/* Most commands are over before anybody could ask for them: only a sandbox that stays gets a door. Until then who looks
 * for it sees that its lock is held and waits; a generated name nobody knows yet. */
static void open_door(void *keeper)
{
	struct keeper *k = keeper;
	struct err e = ERR_INIT;

	watch_set(k->on_claim, false);
	if (k->listener >= 0)
		return;
	if ((k->dir < 0 && place_claim(k, &e) < 0) || place_listen(k, &e) < 0)
		keeper_note(k, e.msg); /* it runs on, but cannot be joined */
}

/* The plan mounts something that the keeper makes in the sandbox's place first. */
static bool needs_place(const struct plan *p)
{
	return p->is_named || p->n_sockets > 0 || p->net.has_seal || p->broker.is_on;
}

/* What has to be there before the sandbox is. */
static int make_ready(struct keeper *k, struct stdio *io, struct err *e)
{
	int r = needs_place(k->in->plan) ? place_claim(k, e) : 0;

	if (r == 0)
		r = sockets_open(k, e);
	if (r == 0)
		r = broker_open(k, e);
	if (r == 0)
		r = keeper_claim_layers(k, e);
	if (r == 0)
		r = seal_start(k, e);
	if (r == 0)
		r = open_first(k, io, e);
	return r == 0 && k->in->plan->has_cgroup ? limits_open(k, e) : r;
}

/* Init is building; this is ours to do meanwhile. Whoever wants our processor for it gets it at each step. */
static void settle(struct keeper *k)
{
	struct keeper_in *in = k->in;

	(void)sched_yield();
	k->on_ctl = watch_fd(k->loop, k->native.ctl, WATCH_READ, on_init, k);
	k->on_pidfd = watch_fd(k->loop, k->native.pidfd, WATCH_READ, on_dead, k);
	k->on_term = watch_signal(k->loop, SIGTERM, on_term, k);
	k->journal = journal_new(in->plan->state_dir, in->plan->name, in->plan->is_named, k->loop);
	journal_ready(k->journal);
	(void)sched_yield();
	receiver_open(k);
	add_first_client(k);
	if (in->flags & KEEP_BEHIND || in->plan->argv[0] == NULL)
		open_door(k);
	else
		k->on_claim = watch_timer(k->loop, DOOR_AFTER, false, open_door, k);
	if (in->plan->is_named || in->flags & KEEP_BEHIND)
		forget_stdio();
	if (in->plan->is_named)
		story_numbers(k);
	k->started = (uint64_t)time(NULL);
	limits_start(k);
	setid_start(k);
	(void)sched_yield();
	masks_start(k);
	(void)sched_yield();
	seal_watch(k);
	gate_start(k);
	listening_start(k);
	spread_behind(false);
	if (in->plan->is_live)
		machine_watch(k);
}

static int start(struct keeper *k, struct err *e)
{
	struct keeper_in *in = k->in;
	bool has_cgroup = in->plan->has_cgroup;
	struct stdio io = { 0 };
	int r = make_ready(k, &io, e);

	if (r < 0)
		return r;
	r = engine_start(in->plan, &io, has_cgroup ? &k->cgroup : NULL, in->again, &k->native, e);
	for (int i = 0; i < 3; i++)
		fd_close(io.fd[i]);
	if (r == 0)
		r = served_start(k, e);
	if (r < 0)
		return r;
	settle(k);
	r = has_cgroup ? limits_attach(k, e) : 0;
	return r == 0 && in->again ? machine_adopt(k, e) : r;
}

/* Messages that init sent before it died are still in the socket. */
static void last_messages(struct keeper *k)
{
	struct pollfd p = { .fd = k->native.ctl, .events = POLLIN };

	while (poll(&p, 1, 0) > 0 && p.revents & POLLIN) {
		uint64_t before = k->n_messages;

		inside_message(k);
		if (k->n_messages == before)
			break;
	}
}

/* A sandbox that did not come up: the engine's own words say more than that its init is not there. */
static void engine_complains(struct keeper *k)
{
	_cleanup_(buf_done) struct buf b = BUF(8 * KIB);

	if (k->is_ready || k->sessions[0].has_begun || k->sessions[0].has_ended ||
	    (k->why != END_EXIT && k->why != END_ERROR))
		return;
	engine_words(&k->native, &b);
	if (b.n > 0)
		err_put_(&k->err, ERR_SYSTEM, ECHILD, "engine '%s': %.380s%s", k->in->plan->engine,
			 buf_cstr(&b), engine_advice(k->in->plan->engine, buf_cstr(&b)));
}

/* Where the kernel inside is a process of the host's, a limit on memory ends that, and with it the link: not a failure. */
static void cut_by_memory(struct keeper *k)
{
	if (!k->is_cut || k->why != END_ERROR || limits_reason(k, 137, END_EXIT) != END_MEMORY)
		return;
	k->why = END_MEMORY;
	k->err = ERR_INIT;
}

/* What git did to the copies of a linked worktree's refs. */
static void carry_worktree(struct keeper *k)
{
	_cleanup_(buf_done) struct buf notes = BUF(16 * KIB);

	if (k->in->plan->worktree == NULL)
		return;
	worktree_carry(k->in->plan->worktree, &notes);
	for (char *p = notes.p; p && *p;) {
		size_t n = strcspn(p, "\n");
		_free_ char *line = mem_strn(p, n);

		keeper_note(k, line);
		p += n + (p[n] == '\n');
	}
}

static void finish(struct keeper *k)
{
	struct session *s = &k->sessions[0];
	bool is_its_own = !keeper_is_named(k); /* the sandbox ends with its first command */

	k->is_ending = true;
	disk_finish(k);
	k->has_left = k->is_empty || engine_reap(&k->native, k->in->plan);
	last_messages(k);
	engine_complains(k);
	for (size_t i = 0; i < INIT_SESSIONS; i++)
		if (k->sessions[i].is_used)
			(void)session_drain(&k->sessions[i], clock_now() + DRAIN_NS);
	cut_by_memory(k);
	if (k->why == END_EXIT && is_its_own && !s->has_ended)
		k->why = limits_reason(k, 137, END_EXIT);
	if (k->why == END_EXIT && is_its_own && !s->has_ended) {
		k->why = END_ERROR;
		if (k->err.kind == ERR_NONE)
			err_put_(&k->err, ERR_SYSTEM, ECHILD,
				 "the sandbox died before the command did");
		k->status = 125;
	}
	served_finish(k);
	keeper_give_back(k); /* else nobody could move it away */
	masks_finish(k);
	carry_worktree(k);
	setid_finish(k);
	seal_settle(k);
	gate_finish(k);
	receiver_finish(k);
	refuser_finish(k);
	notice_finish(k);
	broker_finish(k);
	keeper_look(k);
	seal_finish(k);
}

static int status_for(const struct keeper *k)
{
	switch (k->why) {
	case END_EXIT:
	case END_SIGNAL:
	case END_CLOSING:
		return 0;
	case END_TIME:
	case END_IDLE:
	case END_CPU_TIME:
		return 124;
	case END_MEMORY:
	case END_OUTPUT:
	case END_DISK:
		return 137;
	case END_STOPPED:
		return 143;
	case END_ERROR:
	case END_REASON_COUNT_:
		break;
	}
	return k->status ? k->status : 125;
}

/* RLIMIT_CPU kills a process that does not end by SIGXCPU, a second later. */
static bool is_killed_by_cpu(const struct keeper *k, const struct session *s)
{
	const struct plan_limit *l = &k->in->plan->limits[LIMIT_CPU_TIME];

	return l->is_set && s->status == 137 && s->cpu_ns > l->max;
}

void keeper_verdict(struct keeper *k, struct session *s)
{
	s->why = limits_reason(k, s->status, s->why);
	if (is_killed_by_cpu(k, s) && s->why != END_MEMORY)
		s->why = END_CPU_TIME;
	if (s->why == END_CPU_TIME)
		s->status = 124;
}

/* How a session ended that is still there when the sandbox ends. */
static void judge(struct keeper *k, struct session *s)
{
	bool was_over = s->has_ended && s->has_begun;

	if (was_over && (k->why == END_EXIT || k->why == END_STOPPED)) {
		keeper_verdict(k, s);
		return;
	}
	s->why = k->why;
	s->status = status_for(k);
	if (k->why != END_EXIT)
		return;
	/* Asked for after init had left in order: it was never begun. Had init been killed, it might have been. */
	if (!s->has_begun && k->has_left && s->id != 0) {
		s->why = END_CLOSING;
		s->status = 125;
		return;
	}
	s->why = END_STOPPED;
	s->status = 137;
	/* Init is dead and nobody told it to die. */
	if (keeper_is_named(k)) {
		err_put_(&k->err, ERR_SYSTEM, ECHILD, "the sandbox died before the command did");
		s->why = END_ERROR;
		s->status = 125;
	}
}

static void judge_all(struct keeper *k)
{
	for (size_t i = 0; i < INIT_SESSIONS; i++)
		if (k->sessions[i].is_used)
			judge(k, &k->sessions[i]);
}

/* The clients are told first: what is written here is not on their way. The name is free when this is over. */
static void write_down(struct keeper *k)
{
	keeper_seal(k);
	for (size_t i = 0; i < INIT_SESSIONS; i++) {
		struct session *s = &k->sessions[i];

		if (!s->is_used || !s->has_begun)
			continue;
		story_end(k, s, s->status, s->why);
		tell_session_ended(k, s, s->status, s->why);
	}
	tell_stopped(k, status_for(k));
	if (keeper_is_named(k) && k->dir >= 0)
		story_prune(k);
}

static void say_goodbye(struct keeper *k, bool is_failed)
{
	if (!k->clients[0].is_used && is_failed)
		add_first_client(k);
	for (size_t i = INIT_SESSIONS; i-- > 0;)
		if (k->sessions[i].is_used)
			clients_end(k, &k->sessions[i], k->sessions[i].status, k->sessions[i].why);
	place_shut(k);
	clients_end_all(k, status_for(k), k->why);
}

static void name_self(const struct keeper_in *in)
{
	_free_ char *title = mem_fmt("vitrine keeper %s", in->plan->name);

	title_set(title);
}

/* From the plan to the end. r: how it went so far, with the story in e. */
static _Noreturn void live(struct keeper *k, int r, struct err *e)
{
	struct keeper_in *in = k->in;

	name_self(in);
	spread_end();
	if (r == 0)
		r = start(k, e);
	if (r < 0) {
		engine_done(&k->native);
		k->err = *e;
		k->why = END_ERROR;
		k->status = err_exit_code(e);
	} else {
		loop_run(k->loop);
		finish(k);
	}
	judge_all(k);
	story_leave(k);
	if (k->dir >= 0)
		place_hide(k);
	/* Whoever asked for its removal finds it removed. */
	if (k->dir >= 0 && k->lock >= 0 && in->is_rm)
		place_release(k);
	if (in->plan->has_cgroup)
		cgroup_remove(&k->cgroup);
	journal_closing(k->journal);
	say_goodbye(k, r < 0);
	/* Whom that woke was put on our processor, where it would wait for all that follows. */
	(void)sched_yield();
	if (k->is_empty)
		(void)engine_reap(&k->native, in->plan);
	engine_tidy(in->plan);
	write_down(k);
	if (k->dir >= 0 && k->lock >= 0)
		place_release(k);
	journal_end(k->journal);
	def_clean(in->plan->state_dir, in->plan->name);
	masks_leave(k);
	/* Nothing is left to be put away, but what the kernel takes back of one who watched files takes it a while: whoever
	 * reads the command's output to its end need not wait for that. */
	forget_stdio();
	_exit(0);
}

static struct keeper *keeper_new(void)
{
	struct keeper *k = mem_new(1, sizeof(*k));

	*k = (struct keeper){ .native = NATIVE_NONE,
			      .loop = loop_new(),
			      .dir = FD_NONE,
			      .lock = FD_NONE,
			      .listener = FD_NONE,
			      .sessions_dir = FD_NONE,
			      .proc = FD_NONE,
			      .shared = SHARED_NONE };
	return k;
}

/* What we have to do until the command begins nobody waits for, or only init, and only when it has built its view; it is
 * done while init waits for its network. Sooner only if init needs something of us before, which the client tells.
 * If either is gone there is no point in waiting. */
static void await_turn(const struct native *n, int client, int take_turn)
{
	_close_ int turn = take_turn;
	struct pollfd p[] = { { .fd = turn, .events = POLLIN },
			      { .fd = client, .events = POLLRDHUP },
			      { .fd = n->pidfd, .events = POLLIN } };

	while (poll(p, ARRAY_LEN(p), -1) < 0 && errno == EINTR)
		;
}

/* The client plans meanwhile. If it has nothing for us there never was a sandbox. */
static struct keeper_in *await_plan(struct keeper *k, int client)
{
	struct keeper_in *in = mem_new(1, sizeof(*in));
	int fds[PACKET_FDS];
	struct keep_msg m;

	if (keep_recv(client, &m, fds) != 1 || m.type != KEEP_PLAN || fds[0] < 0 ||
	    mem_share_take() < 0) {
		engine_done(&k->native);
		_exit(0);
	}
	*in = *(struct keeper_in *)mem_share_root();
	in->client = client;
	in->ws_fd = fds[0];
	k->native.skel = fds[1];
	return in;
}

static _Noreturn void begin(const struct ids *ids, int client, const int ctl[2], int turn)
{
	struct native n = NATIVE_NONE;
	struct err e = ERR_INIT;
	struct keeper *k;
	int r;

	mem_share_end();
	part((int[]){ client, ctl[0], ctl[1], turn });
	r = native_begin(ids, NULL, ctl, turn, &n, &e);
	spread_behind(true);
	k = keeper_new();
	k->native = n;
	if (r == 0)
		await_turn(&n, client, turn);
	k->in = await_plan(k, client);
	live(k, r, &e);
}

static _Noreturn void begin_with_plan(struct keeper_in *in)
{
	struct err e = ERR_INIT;
	struct keeper *k = keeper_new();

	part((int[]){ in->client, in->ws_fd, FD_NONE, FD_NONE });
	k->in = in;
	live(k, 0, &e);
}

/* The client's end of a connection; in the child the other one is in *ret_end and 0 is returned. */
static int fork_connected(int *ret_end, pid_t *ret_pid, struct err *e)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "socketpair");
	pid = fork();
	if (pid < 0) {
		fd_close(pair[0]);
		fd_close(pair[1]);
		return err_sys(e, "fork");
	}
	if (pid > 0)
		spread_child(pid);
	fd_close(pair[pid == 0 ? 0 : 1]);
	*ret_end = pair[1];
	*ret_pid = pid;
	return pid == 0 ? 0 : pair[0];
}

int keeper_spawn(struct keeper_in *in, struct err *e)
{
	pid_t pid;
	int end = FD_NONE, r = fork_connected(&end, &pid, e);

	if (r == 0) {
		mem_share_end();
		if (mem_share_take() < 0)
			_exit(125);
		in->client = end;
		begin_with_plan(in);
	}
	return r;
}

int keeper_begin(const struct ids *ids, struct early *ret, struct err *e)
{
	int end = FD_NONE, ctl[2], r = native_pair(ctl, e);
	int turn = r < 0 ? FD_NONE : eventfd(0, EFD_CLOEXEC);
	pid_t pid = -1;

	if (r < 0)
		return r;
	spread_begin();
	r = turn < 0 ? err_sys(e, "eventfd") : fork_connected(&end, &pid, e);
	if (r == 0)
		begin(ids, end, ctl, turn);
	fd_close(ctl[1]);
	*ret = (struct early){ .conn = r, .keeper = pid, .init = ctl[0], .turn = turn };
	if (r < 0) {
		fd_close(take_fd(ret->init));
		fd_close(take_fd(ret->turn));
	}
	return r < 0 ? r : 0;
}

int keeper_give(struct early *early, struct keeper_in *in, struct err *e)
{
	struct keep_msg m = { .type = KEEP_PLAN };
	int fds[2] = { in->ws_fd };
	_close_ int init = take_fd(early->init); /* they lie in what is given away */
	_close_ int turn = take_fd(early->turn);
	_close_ int skel = FD_NONE;
	bool has_plan;
	int r;

	if (!needs_place(in->plan)) {
		skel = fds[1] = skel_open(in->plan, e);
		if (skel < 0)
			return skel;
	}
	mem_share_give(in);
	/* If there is no init the keeper knows why, and says so when it has the plan. */
	has_plan = skel >= 0 && native_plan(init, in->plan) == 0;
	r = keep_send(early->conn, &m, fds, has_plan ? 2 : 1);
	spread_back(early->keeper);
	/* Init needs the keeper first: for its plan, for root's trees, or for the server of .git. */
	if ((!has_plan || in->plan->ids.is_root || in->plan->serves_git) &&
	    eventfd_write(turn, 1) < 0 && r >= 0)
		r = -errno; /* nobody waits for a keeper that waits for us */
	spread_end();
	return r < 0 ? err_set(e, ERR_SYSTEM, -r,
			       "the sandbox ended while it was being started: its keeper ended "
			       "before it had the plan")
		     : 0;
}

void keeper_drop(struct early *early)
{
	char end;

	spread_end();
	fd_close(take_fd(early->init));
	fd_close(take_fd(early->turn));
	if (early->conn < 0)
		return;
	(void)shutdown(early->conn, SHUT_WR);
	(void)io_read(early->conn, &end, 1); /* its end is the answer */
	fd_close(take_fd(early->conn));
}
