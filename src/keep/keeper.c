/* SPDX-License-Identifier: Apache-2.0 */
/* keep/keeper.c - one sandbox from start to end
 *
 * Forked from the client that starts the sandbox, so the plan is already in memory. Order of a life:
 *
 * part     leave the client's session, descriptors, directory and environment behind
 * start    clone init; while it builds, make the sandbox's directory, lock and control socket
 * serve    one loop: init's messages, clients, relays, timers, the workspace's watch
 * end      init is dead and with it every process inside; drain, sweep, clean up, tell the clients
 *
 * Nothing but init (inside.c) and the clients (clients.c) is listened to. Both are foreign: whatever is not a
 * permitted message ends the sandbox (init) or the connection (client).
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
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
#include "keep/keeper.h"

void keeper_end(struct keeper *k, enum end_reason why)
{
	if (k->why == END_EXIT)
		k->why = why;
	k->is_ending = true;
	/* The namespace's first process takes every other one with it. */
	(void)syscall(SYS_pidfd_send_signal, k->native.pidfd, SIGKILL, NULL, 0);
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

/* Leave everything of the client behind but the connection, the workspace and its stdio. */
static void part(struct keeper_in *in)
{
	int keep[] = { in->client, in->ws_fd };
	_free_ char *title = NULL;
	int max = 3;

	(void)setsid(); /* we were just forked, so this cannot fail */
	if (chdir("/") < 0)
		_exit(125);
	for (size_t i = 0; i < ARRAY_LEN(keep); i++)
		max = keep[i] >= max ? keep[i] + 1 : max;
	for (int fd = 3; fd < max && !sabotaged("fds"); fd++)
		if (fd != in->client && fd != in->ws_fd)
			(void)close(fd);
	if (!sabotaged("fds"))
		(void)syscall(SYS_close_range, max, ~0U, 0);
	title = mem_fmt("vitrine keeper %s", in->plan->name);
	title_set(title);
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
	*io = (struct stdio){ .fd = { FD_NONE, FD_NONE, FD_NONE } };
	if (in->plan->argv[0] == NULL)
		return 0;
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
	struct keep_msg m = { .rows = k->sessions[0].rows, .cols = k->sessions[0].cols };

	memcpy(m.keys, in->keys, KEEP_KEYS);
	if (c && k->sessions[0].is_used)
		client_enter(c, &k->sessions[0], &m);
}

static int start(struct keeper *k, struct err *e)
{
	struct keeper_in *in = k->in;
	struct stdio io;
	int r = in->plan->is_named ? place_claim(k, e) : 0;

	if (r == 0)
		r = open_first(k, &io, e);
	if (r < 0)
		return r;
	if (in->plan->has_cgroup) {
		r = limits_open(k, e);
		if (r < 0)
			return r;
	}
	r = native_start(in->plan, &io, in->plan->has_cgroup ? &k->cgroup : NULL, &k->native, e);
	for (int i = 0; i < 3; i++)
		fd_close(io.fd[i]);
	if (r < 0)
		return r;
	/* Init is building; the rest is ours to do meanwhile. */
	k->on_ctl = watch_fd(k->loop, k->native.ctl, WATCH_READ, on_init, k);
	k->on_pidfd = watch_fd(k->loop, k->native.pidfd, WATCH_READ, on_dead, k);
	k->on_term = watch_signal(k->loop, SIGTERM, on_term, k);
	add_first_client(k);
	r = in->plan->is_named ? 0 : place_claim(k, e);
	if (r == 0)
		r = place_listen(k, e);
	if (r < 0)
		return r;
	if (in->plan->is_named || in->flags & KEEP_BEHIND)
		forget_stdio();
	if (in->plan->is_named)
		story_numbers(k);
	def_clean(in->plan->state_dir, in->plan->name);
	k->started = (uint64_t)time(NULL);
	limits_start(k);
	masks_start(k);
	return in->plan->has_cgroup ? limits_attach(k, e) : 0;
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

static void finish(struct keeper *k)
{
	struct session *s = &k->sessions[0];
	bool is_its_own = !keeper_is_named(k); /* the sandbox ends with its first command */

	k->is_ending = true;
	(void)waitpid(k->native.pid, NULL, 0);
	last_messages(k);
	for (size_t i = 0; i < INIT_SESSIONS; i++)
		if (k->sessions[i].is_used)
			session_drain(&k->sessions[i]);
	if (k->why == END_EXIT && is_its_own && !s->has_ended)
		k->why = limits_reason(k, 137, END_EXIT);
	if (k->why == END_EXIT && is_its_own && !s->has_ended) {
		k->why = END_ERROR;
		if (k->err.kind == ERR_NONE)
			err_put_(&k->err, ERR_SYSTEM, ECHILD,
				 "the sandbox died before the command did");
		k->status = 125;
	}
	masks_finish(k);
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
		return 137;
	case END_STOPPED:
		return 143;
	case END_ERROR:
	case END_REASON_COUNT_:
		break;
	}
	return k->status ? k->status : 125;
}

void keeper_verdict(struct keeper *k, struct session *s)
{
	s->why = limits_reason(k, s->status, s->why);
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
	for (size_t i = 0; i < INIT_SESSIONS; i++) {
		struct session *s = &k->sessions[i];

		if (!s->is_used)
			continue;
		judge(k, s);
		story_end(k, s, s->status, s->why);
	}
}

static _Noreturn void keeper_main(struct keeper_in *in)
{
	struct keeper *k = mem_new(1, sizeof(*k));
	struct err e = ERR_INIT;
	int r;

	part(in);
	*k = (struct keeper){ .in = in,
			      .native = NATIVE_NONE,
			      .loop = loop_new(),
			      .dir = FD_NONE,
			      .lock = FD_NONE,
			      .listener = FD_NONE,
			      .sessions_dir = FD_NONE,
			      .proc = FD_NONE };
	r = start(k, &e);
	if (r < 0) {
		native_done(&k->native);
		k->err = e;
		k->why = END_ERROR;
		k->status = err_exit_code(&e);
	} else {
		loop_run(k->loop);
		finish(k);
	}
	judge_all(k);
	if (k->dir >= 0 && k->lock >= 0)
		place_release(k);
	if (in->plan->has_cgroup)
		cgroup_remove(&k->cgroup);
	if (!k->clients[0].is_used && r < 0)
		add_first_client(k);
	for (size_t i = INIT_SESSIONS; i-- > 0;)
		if (k->sessions[i].is_used)
			clients_end(k, &k->sessions[i], k->sessions[i].status, k->sessions[i].why);
	clients_end_all(k, status_for(k), k->why);
	_exit(0);
}

int keeper_spawn(struct keeper_in *in, struct err *e)
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
	if (pid == 0) {
		fd_close(pair[0]);
		in->client = pair[1];
		keeper_main(in);
	}
	fd_close(pair[1]);
	return pair[0];
}
