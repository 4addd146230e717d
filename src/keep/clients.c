/* SPDX-License-Identifier: Apache-2.0 */
/* keep/clients.c - the control socket's other ends: one table says what each may ask for, and when
 *
 * A client is a process of this user (SO_PEERCRED, see place.c), yet its bytes are foreign: a message that is not in
 * the table for the state its connection is in, or comes with other descriptors than it should, ends the connection
 * and nothing else. Connections never end a session; they end only the looking at it.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>

#include "base/io.h"
#include "base/sabotage.h"
#include "engine/engine.h"
#include "keep/keeper.h"

#define WORDS_MAX ((size_t)4096)
#define LOOK_NS (300 * NS_PER_MS) /* for a look by somebody behind other walls */

/* ---- coming and going ---- */

static void on_readable(void *arg);

struct client *client_add(struct keeper *k, int take_fd)
{
	for (size_t i = 0; i < KEEPER_CLIENTS; i++) {
		struct client *c = &k->clients[i];

		if (c->is_used)
			continue;
		*c = (struct client){ .k = k, .is_used = true, .state = CLIENT_NEW, .fd = take_fd };
		c->watch = watch_fd(k->loop, c->fd, WATCH_READ, on_readable, c);
		return c;
	}
	fd_close(take_fd);
	return NULL;
}

/* Stops looking; the session goes on. */
static void leave_seat(struct client *c)
{
	suspend_leave(c);
	if (c->view && c->s)
		tell_viewer(c->k, c->s, false, c->wants_detach ? "keys" : "gone");
	relay_free(c->input);
	c->input = NULL;
	if (c->view && c->s && c->s->feed)
		feed_leave(c->s->feed, c->view);
	c->view = NULL;
	question_leave(c);
}

bool clients_pause(const struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_CLIENTS; i++)
		if (k->clients[i].is_used && k->clients[i].state & (CLIENT_PAUSING | CLIENT_PAUSED))
			return true;
	return false;
}

/* With the last one that made them stand still they go on. */
void client_drop(struct client *c)
{
	bool has_paused = c->state & (CLIENT_PAUSING | CLIENT_PAUSED);
	bool has_parked = c->state == CLIENT_PARKED;

	leave_seat(c);
	watch_free(c->watch);
	watch_free(c->on_look);
	fd_close(c->fd);
	*c = (struct client){ .k = c->k, .fd = FD_NONE };
	if (has_paused)
		freeze_release(c->k);
	if (has_parked)
		machine_go_on(c->k);
}

/* A client that does not read has lost its claim to be told. */
void client_say(struct client *c, const struct keep_msg *m)
{
	(void)keep_send(c->fd, m, NULL, 0);
}

bool clients_any(const struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_CLIENTS; i++)
		if (k->clients[i].is_used &&
		    k->clients[i].state & (CLIENT_NEW | CLIENT_FILE | CLIENT_PAUSING |
					   CLIENT_PAUSED | CLIENT_PARKING | CLIENT_PARKED))
			return true;
	return false;
}

bool client_sits(const struct keeper *k, const struct session *s)
{
	for (size_t i = 0; i < KEEPER_CLIENTS; i++)
		if (k->clients[i].is_used && k->clients[i].state == CLIENT_SESSION &&
		    k->clients[i].s == s)
			return true;
	return false;
}

/* ---- telling ---- */

static void note(struct keeper *k, const char *text, bool is_now)
{
	struct keep_msg m = { .type = KEEP_NOTE };

	(void)snprintf(m.err.msg, sizeof(m.err.msg), "%s", text);
	for (size_t i = 0; i < KEEPER_CLIENTS; i++) {
		const struct session *s = k->clients[i].s;

		if (!k->clients[i].is_used || k->clients[i].state != CLIENT_SESSION)
			continue;
		/* A program that draws the whole screen would not draw over the line: it is printed at the end. */
		m.a = is_now && !(s && s->feed && screen_is_alternate(&s->feed->screen));
		client_say(&k->clients[i], &m);
	}
}

void keeper_note(struct keeper *k, const char *text)
{
	note(k, text, false);
}

void keeper_note_now(struct keeper *k, const char *text)
{
	note(k, text, true);
}

static void last_words(const struct session *s, struct err *ret)
{
	const char *tail = NULL;
	size_t n = session_tail(s, &tail), max = sizeof(ret->msg) - 1;

	if (n > max) {
		tail += n - max;
		n = max;
	}
	for (size_t i = 0; i < n; i++)
		ret->msg[i] = (char)(tail[i] ? tail[i] : ' ');
}

/* What the client has to undo on its terminal. */
static void add_screen(struct keep_msg *m, const struct session *s)
{
	uint64_t bits = s && s->feed ? screen_bits(&s->feed->screen) : 0;

	_Static_assert(sizeof(m->keys) == sizeof(bits), "the sequence's place holds it");
	if (s == NULL || s->feed == NULL)
		return;
	memcpy(m->keys, &bits, sizeof(bits));
	m->flags |= STATE_SCREEN;
}

static void tell_end(struct client *c, const struct session *s, int status, enum end_reason why)
{
	struct keeper *k = c->k;
	struct keep_msg m = { .type = KEEP_ENDED, .a = status, .b = (int32_t)why };

	if (sabotaged("closing"))
		return;
	if (why == END_ERROR || k->err.kind != ERR_NONE)
		m.err = k->err;
	else if (s && status != 0)
		last_words(s, &m.err);
	usage_fill(k, m.v);
	add_screen(&m, s);
	if (k->why == END_STOPPED)
		m.flags |= STATE_STOPPED;
	if (s) {
		m.session = s->number;
		m.v[VALUE_STARTED] = s->started;
		m.v[VALUE_OUTPUT] = session_output(s);
		m.v[VALUE_WALL_NS] = s->began_ns ? clock_now() - s->began_ns : 0;
		m.v[VALUE_CPU_NS] = s->cpu_ns ? s->cpu_ns : s->live_cpu_ns;
		m.v[VALUE_MEMORY] = s->max_rss;
	}
	client_say(c, &m);
}

void clients_started(struct keeper *k, struct session *s)
{
	struct keep_msg m = { .type = KEEP_STARTED, .session = s->number };
	int out = s->pty & INIT_PTY_OUT ? 1 : 2;

	for (size_t i = 0; i < KEEPER_CLIENTS; i++) {
		struct client *c = &k->clients[i];

		if (!c->is_used || c->state != CLIENT_SESSION || c->s != s)
			continue;
		client_say(c, &m);
		/* Who asked for the command sits before its terminal. */
		if (s->pty && s->feed && !(s->flags & KEEP_BEHIND))
			client_seat(c, s->pty & INIT_PTY_IN ? take_fd(s->user[0]) : FD_NONE,
				    s->pty & (INIT_PTY_OUT | INIT_PTY_ERR) ? take_fd(s->user[out])
									   : FD_NONE,
				    false);
		if (s->flags & KEEP_BEHIND)
			client_drop(c);
	}
	/* Nobody was left to take them. */
	if (s->pty)
		for (int i = 0; i < 3; i++)
			fd_close(take_fd(s->user[i]));
}

void clients_ready(struct keeper *k)
{
	struct keep_msg m = { .type = KEEP_STARTED };

	for (size_t i = 0; i < KEEPER_CLIENTS; i++)
		if (k->clients[i].is_used && k->clients[i].state == CLIENT_NEW)
			client_say(&k->clients[i], &m);
}

void clients_end(struct keeper *k, struct session *s, int status, enum end_reason why)
{
	for (size_t i = 0; i < KEEPER_CLIENTS; i++) {
		struct client *c = &k->clients[i];

		if (!c->is_used || c->s != s || !(c->state & (CLIENT_SESSION | CLIENT_WAITING)))
			continue;
		tell_end(c, s, status, why);
		client_drop(c);
	}
}

void clients_end_all(struct keeper *k, int status, enum end_reason why)
{
	for (size_t i = 0; i < KEEPER_CLIENTS; i++) {
		struct client *c = &k->clients[i];

		if (!c->is_used)
			continue;
		/* Who has not asked for anything yet does better to come again. */
		if (why == END_EXIT && c->state & (CLIENT_NEW | CLIENT_FILE))
			tell_end(c, NULL, 125, END_CLOSING);
		else
			tell_end(c, NULL, status, why);
		client_drop(c);
	}
}

/* ---- before the terminal ---- */

static void detach(struct client *c)
{
	struct keep_msg m = { .type = KEEP_DETACHED, .session = c->s->number };
	struct keeper *k = c->k;

	add_screen(&m, c->s);
	k->was_left = true;
	client_say(c, &m);
	client_drop(c);
	keeper_end_if_idle(k);
}

/* Last one who does something sets the size, before what was typed is read by whom it may concern. */
static void use_size(struct client *c)
{
	if (c->rows && c->cols && (c->s->rows != c->rows || c->s->cols != c->cols))
		session_resize(c->s, c->rows, c->cols);
}

static void on_typed(void *arg)
{
	struct client *c = arg;

	if (c->wants_detach) {
		detach(c);
		return;
	}
	use_size(c);
}

static bool filter_keys(void *arg, char *p, size_t *n)
{
	struct client *c = arg;
	_free_ char *out = NULL;

	if (question_typed(c, p, *n)) {
		*n = 0;
		return true;
	}
	suspend_typed(c, p, *n);
	if (c->keys.n == 0) {
		use_size(c);
		return true;
	}
	/* Room for what was held back: the relay's buffer is read up to its end, its copy may be longer. */
	out = mem_new(*n + KEYS_HELD, 1);
	c->wants_detach = keys_feed(&c->keys, p, *n, out, n);
	if (*n > RELAY_BUF)
		*n = RELAY_BUF; /* 64 KiB typed at once, and the last of them cut: nobody types so */
	memcpy(p, out, *n);
	if (!c->wants_detach)
		use_size(c);
	return !c->wants_detach;
}

void client_seat(struct client *c, int take_in, int take_out, bool sees_past)
{
	struct session *s = c->s;

	if (take_out >= 0 && s->feed)
		c->view = feed_view(s->feed, take_out, sees_past);
	else
		fd_close(take_out);
	if (take_in >= 0 && s->master >= 0) {
		c->input = relay_new(c->k->loop, take_in, fcntl(s->master, F_DUPFD_CLOEXEC, 3),
				     on_typed, c);
		c->input->is_input = true;
		c->input->filter = filter_keys;
		c->input->filter_arg = c;
	} else {
		fd_close(take_in);
	}
	if (c->view)
		tell_viewer(c->k, s, true, NULL);
}

void client_enter(struct client *c, struct session *s, const struct keep_msg *m)
{
	c->state = CLIENT_SESSION;
	c->s = s;
	c->rows = m->rows;
	c->cols = m->cols;
	c->can_suspend = m->flags & KEEP_JOBS;
	keys_set(&c->keys, m->keys);
}

/* ---- requests ---- */

static struct session *free_session(struct keeper *k)
{
	for (size_t i = 1; i < INIT_SESSIONS; i++)
		if (!k->sessions[i].is_used)
			return &k->sessions[i];
	return NULL;
}

/* A request must be what a client of ours makes: a sealed memfd that nobody changes while init reads it. */
bool request_is_sealed(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 &&
	       (seals & (F_SEAL_WRITE | F_SEAL_SHRINK)) == (F_SEAL_WRITE | F_SEAL_SHRINK);
}

/* The request's words, as many as are worth keeping, and the same with blanks between them for `ps`. */
static void note_command(struct session *s, int request)
{
	char text[sizeof(struct request_head) + WORDS_MAX];
	struct request_head head;
	ssize_t n = pread(request, text, sizeof(text), 0);
	const char *p = text + sizeof(head);
	size_t at = 0, words = 0, left;

	if (n < (ssize_t)sizeof(head))
		return;
	memcpy(&head, text, sizeof(head));
	left = (size_t)n - sizeof(head);
	while (at < left && words < head.argc)
		words += p[at++] == '\0';
	if (at == 0)
		return;
	s->words = mem_new(at + 1, 1);
	s->n_words = at;
	memcpy(s->words, p, at);
	s->words[at - 1] = '\0'; /* the last one may be cut */
	for (size_t i = 0; i + 1 < at && i < sizeof(s->command) - 1; i++)
		s->command[i] = (char)(p[i] ? p[i] : ' ');
}

void client_refuse(struct client *c, enum end_reason why, const char *text)
{
	struct keep_msg m = { .type = KEEP_ENDED, .a = 125, .b = (int32_t)why };

	err_put_(&m.err, ERR_CONFLICT, EBUSY, "%s", text);
	client_say(c, &m);
	client_drop(c);
}

static void give_to_init(struct keeper *k, struct session *s, int request, const struct stdio *io)
{
	struct init_msg start = { .type = INIT_START,
				  .session = s->id,
				  .flags = io->flags,
				  .rows = io->rows,
				  .cols = io->cols };

	/* If init is gone we are ending, and who waits for this session is told to come again. */
	if (engine_exec(&k->native, &start, request, io->fd) < 0)
		k->is_ending = true;
}

static void on_exec(struct client *c, const struct keep_msg *m, int fds[PACKET_FDS])
{
	struct keeper *k = c->k;
	struct session *s = free_session(k);
	unsigned allowed = KEEP_WANT_TTY | KEEP_WANT_STDIN | KEEP_BEHIND | KEEP_RECORD;
	unsigned flags = (m->flags & allowed) | (k->in->flags & KEEP_SEE_OUTPUT);
	struct stdio io = { 0 };
	struct err e = ERR_INIT;

	if (machine_is_parked(k)) {
		client_refuse(c, END_ERROR, "the machine is being saved; ask again in a moment");
		return;
	}
	if (k->is_ending || s == NULL || !request_is_sealed(fds[0])) {
		client_refuse(c, k->is_ending ? END_CLOSING : END_ERROR,
			      s ? "the sandbox is ending"
				: "the sandbox runs as many commands as it can");
		return;
	}
	if (!keeper_is_named(k))
		flags &= ~(unsigned)KEEP_RECORD;
	if (flags & (KEEP_RECORD | KEEP_BEHIND))
		flags |= KEEP_SEE_OUTPUT;
	*s = SESSION_NONE;
	s->is_used = true;
	s->id = ++k->last_id;
	s->number = keeper_is_named(k) ? ++k->last_number : 0;
	note_command(s, fds[0]);
	client_enter(c, s, m);
	if (session_open(s, fds + 1, flags, &io, &e) < 0) {
		k->err = e;
		clients_end(k, s, 125, END_ERROR);
		k->err = ERR_INIT;
		session_close(s);
	} else {
		give_to_init(k, s, fds[0], &io);
	}
	for (int i = 0; i < 3; i++)
		fd_close(io.fd[i]);
}

static void on_attach(struct client *c, const struct keep_msg *m, int fds[PACKET_FDS])
{
	struct keep_msg yes = { .type = KEEP_STARTED };
	struct session *s = session_live(c->k, m->session);
	bool has_screen = s && s->pty && s->feed;

	if (s == NULL || s->feed == NULL || feed_n_viewers(s->feed) == FEED_VIEWERS) {
		client_refuse(c, END_ERROR,
			      s == NULL         ? "no such session is running"
			      : s->feed == NULL ? "this session has neither a terminal nor a "
						  "record; "
						  "its output goes where it was started"
						: "as many look at this session as can");
		return;
	}
	client_enter(c, s, m);
	yes.session = s->number;
	yes.flags = has_screen ? STATE_TTY : 0;
	client_say(c, &yes);
	client_seat(c, has_screen && !(m->flags & KEEP_VIEW_ONLY) ? take_fd(fds[0]) : FD_NONE,
		    take_fd(fds[1]), true);
	if (has_screen) {
		use_size(c);
		session_repaint(s);
	}
}

static void on_signal(struct client *c, const struct keep_msg *m, int fds[PACKET_FDS])
{
	struct init_msg sig = { .type = INIT_SIGNAL, .session = c->s->id, .a = m->a };

	(void)fds;
	if (m->a == SIGCONT && c->is_suspended)
		suspend_end(c);
	else if (m->a > 0 && m->a < 32)
		(void)init_send(c->k->native.ctl, &sig, NULL, 0); /* init's end is seen elsewhere */
}

static void on_resize(struct client *c, const struct keep_msg *m, int fds[PACKET_FDS])
{
	(void)fds;
	c->rows = m->rows;
	c->cols = m->cols;
	use_size(c);
}

static void on_detach(struct client *c, const struct keep_msg *m, int fds[PACKET_FDS])
{
	(void)m;
	(void)fds;
	detach(c);
}

static void on_grace_over(void *arg)
{
	keeper_end(arg, END_STOPPED);
}

static void on_stop(struct client *c, const struct keep_msg *m, int fds[PACKET_FDS])
{
	struct keeper *k = c->k;
	struct init_msg sig = { .type = INIT_SIGNAL };

	(void)fds;
	c->state = CLIENT_WAITING;
	k->is_ending = true;
	if (k->why == END_EXIT)
		k->why = END_STOPPED;
	if (m->a <= 0 || sessions_live(k) == 0) {
		keeper_end(k, END_STOPPED);
		return;
	}
	/* A shell that talks to a person ignores SIGTERM and understands a hang-up. */
	for (size_t i = 0; i < INIT_SESSIONS; i++) {
		struct session *s = &k->sessions[i];

		if (!s->is_used || s->has_ended)
			continue;
		sig.session = s->id;
		sig.a = 15;
		(void)init_send(k->native.ctl, &sig, NULL, 0);
		sig.a = 1;
		if (s->pty)
			(void)init_send(k->native.ctl, &sig, NULL, 0);
		sig.a = 18;
		(void)init_send(k->native.ctl, &sig, NULL, 0); /* a stopped one must hear it */
	}
	if (k->on_grace == NULL)
		k->on_grace =
			watch_timer(k->loop, (uint64_t)m->a * NS_PER_SEC, false, on_grace_over, k);
}

/* Also one that has ended and whose output is still being read: its record is not complete yet. So for a session that is
 * refused here, the record on the disk is final. */
static struct session *unrecorded_session(struct keeper *k, uint32_t number)
{
	for (size_t i = 0; i < INIT_SESSIONS; i++)
		if (k->sessions[i].is_used && k->sessions[i].has_begun &&
		    k->sessions[i].number == number)
			return &k->sessions[i];
	return NULL;
}

static void on_wait(struct client *c, const struct keep_msg *m, int fds[PACKET_FDS])
{
	struct keeper *k = c->k;
	struct session *s = m->session ? unrecorded_session(k, m->session) : NULL;

	(void)fds;
	/* A sandbox without a name is its one command. */
	if (m->session == 0 && !keeper_is_named(k) && k->sessions[0].is_used)
		s = &k->sessions[0];
	if (m->session && s == NULL) {
		client_refuse(c, END_ERROR, "no such session is running");
		return;
	}
	c->state = CLIENT_WAITING;
	c->s = s;
	keeper_end_if_idle(c->k);
}

static void tell_session(struct client *c, const struct session *s)
{
	struct keep_msg m = { .type = KEEP_SESSION, .session = s->number, .a = s->pid };

	m.flags = (s->pty ? STATE_TTY : 0U) | (s->flags & KEEP_RECORD ? STATE_RECORDED : 0U);
	m.v[VALUE_STARTED] = s->started;
	m.v[VALUE_CPU_NS] = s->live_cpu_ns;
	m.v[VALUE_MEMORY] = s->live_memory;
	m.v[VALUE_PROCESSES] = s->live_processes;
	m.v[VALUE_OUTPUT] = session_output(s);
	m.v[VALUE_VIEWERS] = s->feed ? feed_n_viewers(s->feed) : 0;
	m.rows = s->rows;
	m.cols = s->cols;
	(void)snprintf(m.err.msg, sizeof(m.err.msg), "%s", s->command);
	client_say(c, &m);
}

static void tell_status(struct client *c)
{
	struct keeper *k = c->k;
	struct keep_msg state = { .type = KEEP_STATE }, done = { .type = KEEP_DONE };

	if (k->is_ending) {
		client_refuse(c, END_CLOSING, "the sandbox is ending");
		return;
	}
	state.flags = (k->in->is_kept ? STATE_KEPT : 0U) | (keeper_is_named(k) ? STATE_NAMED : 0U) |
		      (k->gate ? STATE_NET : 0U);
	usage_fill(k, state.v);
	state.v[VALUE_SESSIONS] = sessions_live(k);
	client_say(c, &state);
	for (size_t i = 0; i < INIT_SESSIONS; i++)
		if (k->sessions[i].is_used && k->sessions[i].has_begun && !k->sessions[i].has_ended)
			tell_session(c, &k->sessions[i]);
	client_say(c, &done);
}

/* It has come, or does not come in time: then what is known is told. */
static void on_look(void *arg)
{
	struct client *c = arg;

	watch_free(c->on_look);
	c->on_look = NULL;
	tell_status(c);
}

void clients_on_look(struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_CLIENTS; i++)
		if (k->clients[i].is_used && k->clients[i].on_look)
			on_look(&k->clients[i]);
}

static bool is_looked_for(const struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_CLIENTS; i++)
		if (k->clients[i].is_used && k->clients[i].on_look)
			return true;
	return false;
}

/* Our own look is there at once. An init behind other walls is asked for one, when there is something to see. */
static void on_status(struct client *c, const struct keep_msg *m, int fds[PACKET_FDS])
{
	struct init_msg want = { .type = INIT_WANT_PROC };
	struct keeper *k = c->k;

	(void)m;
	(void)fds;
	if (k->native.tool <= 0 || (sessions_live(k) == 0 && !k->is_ready) || k->is_ending) {
		usage_take(k);
		tell_status(c);
		return;
	}
	if (!is_looked_for(k))
		(void)init_send(k->native.ctl, &want, NULL, 0); /* init's end is seen elsewhere */
	k->wants_proc = true;
	if (c->on_look == NULL)
		c->on_look = watch_timer(k->loop, LOOK_NS, false, on_look, c);
}

static void on_stay(struct client *c, const struct keep_msg *m, int fds[PACKET_FDS])
{
	struct keep_msg done = { .type = KEEP_DONE };

	(void)m;
	(void)fds;
	if (c->k->is_ending) {
		client_refuse(c, END_CLOSING, "the sandbox is ending");
		return;
	}
	c->k->in->is_kept = true;
	client_say(c, &done);
}

static void on_pause(struct client *c, const struct keep_msg *m, int fds[PACKET_FDS])
{
	(void)m;
	(void)fds;
	if (c->k->is_ending) {
		client_refuse(c, END_CLOSING, "the sandbox is ending");
		return;
	}
	c->state = CLIENT_PAUSING;
	freeze_ask(c->k);
}

void clients_on_frozen(struct keeper *k)
{
	struct keep_msg done = { .type = KEEP_DONE };

	for (size_t i = 0; i < KEEPER_CLIENTS; i++) {
		struct client *c = &k->clients[i];

		if (!c->is_used || c->state != CLIENT_PAUSING)
			continue;
		c->state = CLIENT_PAUSED;
		client_say(c, &done);
	}
}

void clients_not_frozen(struct keeper *k, const char *why)
{
	for (size_t i = 0; i < KEEPER_CLIENTS; i++)
		if (k->clients[i].is_used && k->clients[i].state == CLIENT_PAUSING)
			client_refuse(&k->clients[i], END_ERROR, why);
}

static void on_net(struct client *c, const struct keep_msg *m, int fds[PACKET_FDS])
{
	struct keep_msg done = { .type = KEEP_NET_DONE };
	_close_ int fd = FD_NONE;
	int r;

	(void)fds;
	if (m->a == NET_SHOW)
		r = fd = gate_show(c->k, &done.err);
	else if (m->a == NET_OPEN || m->a == NET_SHUT)
		r = gate_open(c->k, m->a == NET_OPEN, &done.err);
	else
		r = strchr(m->err.msg, ' ')
			    ? seal_change(c->k, m->err.msg, m->a == NET_DENY, &done.err)
			    : gate_change(c->k, m->err.msg, m->a == NET_DENY, &done.err);
	done.a = r < 0 ? -r : 0;
	(void)keep_send(c->fd, &done, &fd, fd >= 0 ? 1 : 0);
}

/* ---- the table ---- */

static const struct {
	enum keep_msg_type type;
	unsigned from; /* enum client_state */
	int fds;       /* exactly so many come along */
	void (*fn)(struct client *c, const struct keep_msg *m, int fds[PACKET_FDS]);
} table[] = {
	{ KEEP_EXEC, CLIENT_NEW, 4, on_exec },
	{ KEEP_ATTACH, CLIENT_NEW, 2, on_attach },
	{ KEEP_SIGNAL, CLIENT_SESSION, 0, on_signal },
	{ KEEP_RESIZE, CLIENT_SESSION, 0, on_resize },
	{ KEEP_DETACH, CLIENT_SESSION, 0, on_detach },
	{ KEEP_STOP, CLIENT_NEW, 0, on_stop },
	{ KEEP_WAIT, CLIENT_NEW, 0, on_wait },
	{ KEEP_STATUS, CLIENT_NEW, 0, on_status },
	{ KEEP_STAY, CLIENT_NEW, 0, on_stay },
	{ KEEP_PAUSE, CLIENT_NEW, 0, on_pause },
	{ KEEP_PARK, CLIENT_NEW, 0, client_park },
	{ KEEP_NET, CLIENT_NEW, 0, on_net },
	{ KEEP_FILE, CLIENT_NEW, 1, client_file },
};

static int count_fds(const int fds[PACKET_FDS])
{
	int n = 0;

	while (n < PACKET_FDS && fds[n] >= 0)
		n++;
	return n;
}

void client_message(struct client *c, const struct keep_msg *m, int fds[PACKET_FDS])
{
	int n = count_fds(fds);

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (table[i].type == m->type && table[i].from & c->state && table[i].fds == n) {
			table[i].fn(c, m, fds);
			return;
		}
	client_drop(c);
}

/* The client's process is gone, or ended the connection. The first one of all has the first place. */
static void lose(struct client *c)
{
	struct keeper *k = c->k;
	bool is_over = c == &k->clients[0] && k->in->flags & KEEP_TIED && !sabotaged("tied");

	client_drop(c);
	if (is_over && !k->is_ending)
		keeper_end(k, END_STOPPED);
}

static void on_readable(void *arg)
{
	struct client *c = arg;
	struct keeper *k = c->k;
	int fds[PACKET_FDS];
	struct keep_msg m;
	int r = keep_recv(c->fd, &m, fds);

	if (r == 1)
		client_message(c, &m, fds);
	else if (r != -EAGAIN)
		lose(c);
	for (int i = 0; i < PACKET_FDS; i++)
		fd_close(fds[i]);
	keeper_end_if_idle(k);
}
