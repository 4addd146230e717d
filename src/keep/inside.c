/* SPDX-License-Identifier: Apache-2.0 */
/* keep/inside.c - what init says, and what follows from it
 *
 * Init is locked in and ours, yet it is what stands nearest to the foreign: every message is looked up in one table
 * that says which descriptors may come with it; anything that is not a message ends the sandbox.
 */
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "engine/engine.h"
#include "keep/keeper.h"
#include "keep/origin.h"

struct session *session_find(struct keeper *k, uint32_t id)
{
	for (size_t i = 0; i < INIT_SESSIONS; i++)
		if (k->sessions[i].is_used && k->sessions[i].id == id)
			return &k->sessions[i];
	return NULL;
}

struct session *session_live(struct keeper *k, uint32_t number)
{
	struct session *newest = NULL;

	for (size_t i = 0; i < INIT_SESSIONS; i++) {
		struct session *s = &k->sessions[i];

		if (!s->is_used || !s->has_begun || s->has_ended)
			continue;
		if (number && s->number == number)
			return s;
		/* Who names none means the one with a terminal, and the last of them. */
		if (!number && (newest == NULL || (s->pty && !newest->pty) ||
				(!s->pty == !newest->pty && s->id > newest->id)))
			newest = s;
	}
	return newest;
}

size_t sessions_live(const struct keeper *k)
{
	size_t n = 0;

	for (size_t i = 0; i < INIT_SESSIONS; i++)
		n += k->sessions[i].is_used && !k->sessions[i].has_ended;
	return n;
}

/* ---- one function for each message ---- */

/* The one descriptor that may come with a session is the master side of a terminal; anything else is not kept. */
static int checked_master(const struct keeper *k, int fd)
{
	struct stat st;
	unsigned n;

	/* Behind other walls, vitrine-link's end of a socket pair stands for it. */
	if (fd >= 0 && fstat(fd, &st) == 0 &&
	    (k->native.tool > 0 ? S_ISSOCK(st.st_mode)
				: S_ISCHR(st.st_mode) && ioctl(fd, TIOCGPTN, &n) == 0))
		return fd;
	fd_close(fd);
	return FD_NONE;
}

/* While the client is there, its pipe is the command's: `vitrine run ... | head` ends as `... | head` does. A session
 * that was left goes on, and what it prints is kept or lost. */
static bool has_reader_gone(void *session)
{
	struct session *s = session;

	return client_sits(s->owner, s);
}

static void on_started(struct keeper *k, const struct init_msg *m, int take_fd)
{
	struct session *s = session_find(k, m->session);

	if (s == NULL || s->has_begun) {
		fd_close(take_fd);
		return;
	}
	s->pid = m->a;
	s->started = (uint64_t)time(NULL);
	s->began_ns = clock_now();
	if (s == &k->sessions[0])
		limits_begin(k);
	s->owner = k;
	s->sizer = k->native.tool > 0 ? k->native.ctl : FD_NONE;
	session_begin(s, k->loop, checked_master(k, take_fd), keeper_moved, k);
	receiver_look(k, s);
	for (size_t i = 0; i < s->n_relays; i++) {
		s->relays[i]->on_broken = has_reader_gone;
		s->relays[i]->broken_arg = s;
	}
	/* Nothing of the record is on the way of somebody who waits; who does not wait may look for it at once. */
	if (s->flags & KEEP_BEHIND)
		story_begin(k, s);
	clients_started(k, s);
	tell_session_started(k, s);
	story_soon(k);
	usage_start(k);
	disk_start(k);
}

/* Who waits is told first: what is written here is not on their way. Who asks for the record asks us first, and is
 * answered when it is there. */
static void close_session(struct keeper *k, struct session *s)
{
	receiver_looked(s);
	clients_end(k, s, s->status, s->why);
	story_end(k, s, s->status, s->why);
	tell_session_ended(k, s, s->status, s->why);
	session_close(s);
}

/* A slow reader of one session must not hold up the others: looked at now and then, and let go in time. */
static void on_drain(void *arg)
{
	struct keeper *k = arg;
	bool is_any = false;

	for (size_t i = 0; i < INIT_SESSIONS; i++) {
		struct session *s = &k->sessions[i];

		if (!s->is_used || !s->drain_until)
			continue;
		if (session_drain(s, 0) || clock_now() > s->drain_until)
			close_session(k, s);
		else
			is_any = true;
	}
	watch_set(k->on_drain, is_any);
	keeper_end_if_idle(k);
}

static void drain_and_close(struct keeper *k, struct session *s)
{
	if (session_drain(s, 0)) {
		close_session(k, s);
		return;
	}
	s->drain_until = clock_now() + DRAIN_NS;
	if (k->on_drain == NULL)
		k->on_drain = watch_timer(k->loop, 10 * NS_PER_MS, true, on_drain, k);
	watch_set(k->on_drain, true);
}

static void on_not_started(struct keeper *k, const struct init_msg *m, int take_fd)
{
	struct session *s = session_find(k, m->session);
	int status = m->a == ENOENT && !m->b ? 127 : 126;
	const char *why = strerrordesc_np(m->a);

	(void)take_fd;
	if (s == NULL || s->has_begun)
		return;
	why = why ? why : "unknown error";
	if (m->b)
		err_put_(&k->err, ERR_NOTFOUND, m->a,
			 "cannot start in the working directory '%s': %s", k->in->plan->cwd, why);
	else
		err_put_(&k->err, ERR_NOTFOUND, m->a, "cannot run '%s': %s", s->command, why);
	s->has_ended = true;
	if (s->id == 0 && !keeper_is_named(k)) {
		k->status = status;
		k->why = END_ERROR;
		return; /* init ends by itself */
	}
	clients_end(k, s, status, END_ERROR);
	k->err = ERR_INIT;
	session_close(s);
	keeper_end_if_idle(k);
}

static int status_of(int wait_status, enum end_reason *why)
{
	*why = WIFSIGNALED(wait_status) ? END_SIGNAL : END_EXIT;
	return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

static void on_exited(struct keeper *k, const struct init_msg *m, int take_fd)
{
	struct session *s = session_find(k, m->session);

	(void)take_fd;
	if (s == NULL || !s->has_begun || s->has_ended)
		return;
	s->status = status_of(m->a, &s->why);
	s->cpu_ns = m->cpu_ns;
	s->max_rss = m->max_rss;
	s->written = m->written;
	s->has_ended = true;
	if (s->id == 0 && !keeper_is_named(k)) {
		/* Init ends by itself. Only a native one's word is ours, of others the kernel's; and a control group cannot
		 * be removed before. */
		k->is_empty = !k->in->plan->has_cgroup &&
			      (k->native.tool == 0 ? m->b == 1
						   : engine_is_empty(&k->native, k->in->plan));
		if (k->is_empty)
			loop_stop(k->loop);
		return;
	}
	keeper_end_if_idle(k);
	/* Whoever waits for the last one is told when all is cleaned up. */
	if (k->is_ending)
		return;
	keeper_verdict(k, s);
	drain_and_close(k, s);
}

static void on_failed(struct keeper *k, const struct init_msg *m, int take_fd)
{
	(void)take_fd;
	k->is_cut = k->native.tool > 0 && k->sessions[0].has_begun;
	keeper_fail(k, &m->err);
}

static void on_ready(struct keeper *k, const struct init_msg *m, int take_fd)
{
	(void)m;
	(void)take_fd;
	if (k->is_ready)
		return;
	k->is_ready = true;
	clients_ready(k);
	tell_started(k);
}

static void on_proc(struct keeper *k, const struct init_msg *m, int take_fd)
{
	(void)m;
	limits_proc(k, take_fd);
}

static void on_shared(struct keeper *k, const struct init_msg *m, int take_fd)
{
	(void)m;
	if (take_fd >= 0 && !k->sessions[0].has_begun && plan_watches_memory(k->in->plan))
		shared_add(&k->shared, take_fd);
	else
		fd_close(take_fd);
	if (k->in->plan->ids.root != ROOT_NONE) /* its processes are not the caller's to look at */
		k->shared.user_ns = k->native.user_ns;
}

static void on_frozen(struct keeper *k, const struct init_msg *m, int take_fd)
{
	(void)take_fd;
	freeze_on_init(k, m->a);
}

static void on_sample(struct keeper *k, const struct init_msg *m, int take_fd)
{
	(void)take_fd;
	if (k->native.tool > 0)
		usage_told(k, m);
}

static void on_file_done(struct keeper *k, const struct init_msg *m, int take_fd)
{
	clients_file_done(k, m, take_fd);
}

static void on_receiver(struct keeper *k, const struct init_msg *m, int take_fd)
{
	(void)m;
	receiver_take(k, take_fd);
}

static void on_resolver(struct keeper *k, const struct init_msg *m, int take_fd)
{
	(void)m;
	refuser_take(k, take_fd);
}

static void on_notices(struct keeper *k, const struct init_msg *m, int take_fd)
{
	(void)m;
	notice_take(k, take_fd);
}

static void on_served(struct keeper *k, const struct init_msg *m, int take_fd)
{
	served_take(k, take_fd, m->a);
}

static void on_origin(struct keeper *k, const struct init_msg *m, int take_fd)
{
	(void)take_fd;
	if (k->native.tool > 0)
		origin_told(k, m);
}

static void on_parked(struct keeper *k, const struct init_msg *m, int take_fd)
{
	(void)take_fd;
	clients_on_parked(k, m->a);
}

static const struct {
	enum init_msg_type type;
	bool may_have_fd;
	void (*fn)(struct keeper *k, const struct init_msg *m, int take_fd);
} table[] = {
	{ INIT_FAILED, false, on_failed },
	{ INIT_STARTED, true, on_started },
	{ INIT_NOT_STARTED, false, on_not_started },
	{ INIT_EXITED, false, on_exited },
	{ INIT_PROC, true, on_proc },
	{ INIT_SERVED, true, on_served },
	{ INIT_SHARED, true, on_shared },
	{ INIT_FROZEN, false, on_frozen },
	{ INIT_READY, false, on_ready },
	{ INIT_SAMPLE, false, on_sample },
	{ INIT_ORIGIN, false, on_origin },
	{ INIT_FILE_DONE, true, on_file_done },
	{ INIT_RECEIVER, true, on_receiver },
	{ INIT_RESOLVER, true, on_resolver },
	{ INIT_NOTICES, true, on_notices },
	{ INIT_PARKED, false, on_parked },
};

static void dispatch(struct keeper *k, const struct init_msg *m, int take_fd)
{
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		if (table[i].type != m->type || (take_fd >= 0 && !table[i].may_have_fd))
			continue;
		table[i].fn(k, m, take_fd);
		return;
	}
	fd_close(take_fd);
}

void inside_message(struct keeper *k)
{
	int fds[PACKET_FDS];
	struct init_msg m;
	int r = init_recv(k->native.ctl, &m, fds);

	k->n_messages += r == 1;
	if (r == 1 && (gate_take(k, &m, fds) || served_parts(k, &m, fds)))
		return;
	for (int i = 1; i < PACKET_FDS; i++)
		fd_close(fds[i]);
	if (r <= 0) {
		watch_set(k->on_ctl, false);
		if (r < 0)
			keeper_end(k, END_ERROR);
		fd_close(fds[0]);
		return;
	}
	dispatch(k, &m, fds[0]);
}

void inside_origins(struct keeper *k)
{
	uint32_t type;

	while (recv(k->native.ctl, &type, sizeof(type), MSG_PEEK | MSG_DONTWAIT) ==
		       (ssize_t)sizeof(type) &&
	       type == INIT_ORIGIN)
		inside_message(k);
}
