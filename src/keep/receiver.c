/* SPDX-License-Identifier: Apache-2.0 */
/* keep/receiver.c - what the inside says of itself: its telemetry and its tool calls, put on record
 *
 * Init hands out a listening socket of the sandbox's loopback; behind other walls, where it has none to give, the
 * connections come one by one through a socket that vitrine-link has the other end of. vitrine-otlp (watch/receiver.h) is started when first
 * somebody connects to it or prints structured output, so a sandbox that says nothing pays nothing. What that process
 * sends is foreign twice over: only the three types below are taken, tool calls and decisions only when they are marked
 * as said by the inside, and no more than a share of what the policy keeps of events. Anything else ends it; it is
 * started again a few times, then the port stays closed.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "keep/keeper.h"
#include "watch/receiver.h"

#define STARTS_MAX 4
#define FRAMES_AT_ONCE 256
#define FINISH_NS (500 * NS_PER_MS)
/* One eighth of what may be kept; so much where everything is. */
#define HEARD_MAX (128 * MIB)

struct hearing {
	struct keeper *k;
	int listener, events;
	struct watch *on_listener, *on_events;
	pid_t pid;
	unsigned n_starts;
	uint64_t heard, max; /* bytes of frames */
	uint32_t shown[64];  /* sessions whose output was shown, the last ones */
	size_t n_shown;
	bool has_noted;
};

static void note(struct hearing *h, const char *text)
{
	const struct event_field f = EVENT_STR(MESSAGE, text);

	if (h->k->journal)
		journal_event(h->k->journal, EVENT_NO_SESSION, EV_NOTE, &f, 1);
}

static void forget(struct hearing *h)
{
	watch_free(h->on_events);
	h->on_events = NULL;
	fd_close(h->events);
	h->events = FD_NONE;
	if (h->pid > 0) {
		(void)kill(h->pid, SIGKILL); /* it has nothing to finish */
		(void)waitpid(h->pid, NULL, 0);
	}
	h->pid = 0;
}

static void close_ear(struct hearing *h, const char *why)
{
	forget(h);
	watch_free(h->on_listener);
	h->on_listener = NULL;
	fd_close(h->listener);
	h->listener = FD_NONE;
	note(h, why);
}

static void on_gone(struct hearing *h)
{
	if (h->n_starts >= STARTS_MAX) {
		close_ear(h, "telemetry: the receiver ended too often; its port is closed");
		return;
	}
	forget(h);
	note(h, "telemetry: the receiver ended; it is started again when it is needed");
	watch_set(h->on_listener, true);
}

/* ---- frames ---- */

static bool may_say(const struct event *ev)
{
	const struct event_field *inside = event_get(ev, EK_IS_INSIDE);

	if (ev->head.type == EV_OTEL)
		return true;
	return (ev->head.type == EV_TOOL_CALL || ev->head.type == EV_GUARD_DECISION) && inside &&
	       inside->num;
}

/* Structured output belongs to the session that printed it; whatever else claims one does not. */
static uint32_t session_of(const struct hearing *h, const struct event *ev)
{
	for (size_t i = 0; i < ARRAY_LEN(h->shown) && i < h->n_shown; i++)
		if (h->shown[i] == ev->head.session)
			return ev->head.session;
	return EVENT_NO_SESSION;
}

static bool take_frame(struct hearing *h, const char *p, size_t n)
{
	struct err ignored = ERR_INIT;
	struct event ev;

	if (event_decode(p, n, &ev) != (ssize_t)n || !may_say(&ev))
		return false;
	h->heard += n;
	if (h->heard > h->max)
		return false;
	/* A full disk is the journal's to count. */
	return h->k->journal == NULL ||
	       journal_frame(h->k->journal, session_of(h, &ev), p, n, &ignored) != -EBADMSG;
}

/* 1: all that was there has been taken; 0: there may be more; -1: it is over. */
static int take_frames(struct hearing *h)
{
	char packet[EVENT_MAX_BYTES];

	for (int i = 0; i < FRAMES_AT_ONCE; i++) {
		ssize_t n = recv(h->events, packet, sizeof(packet), MSG_DONTWAIT | MSG_TRUNC);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 1;
		if (n <= 0 || n > (ssize_t)sizeof(packet) || !take_frame(h, packet, (size_t)n))
			return -1;
	}
	return 0;
}

static void on_events(void *arg)
{
	struct hearing *h = arg;

	if (take_frames(h) >= 0)
		return;
	if (h->heard > h->max)
		close_ear(h, "telemetry: the inside has said more than may be kept of one run; the "
			     "rest is not heard");
	else
		on_gone(h);
}

/* ---- start and end ---- */

static void launch(struct hearing *h)
{
	struct err e = ERR_INIT;
	int fd = fcntl(h->listener, F_DUPFD_CLOEXEC, 3);

	watch_set(h->on_listener, false);
	h->n_starts++;
	if (fd < 0 || receiver_spawn(fd, &h->pid, &h->events, &e) < 0) {
		close_ear(h, fd < 0 ? "telemetry: no descriptor left for its receiver" : e.msg);
		return;
	}
	h->on_events = watch_fd(h->k->loop, h->events, WATCH_READ, on_events, h);
}

/* The end of vitrine-link is no connection. */
static bool is_over(int listener)
{
	char c;

	return recv(listener, &c, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void on_listener(void *arg)
{
	struct hearing *h = arg;

	if (is_over(h->listener))
		watch_set(h->on_listener, false);
	else if (h->pid == 0)
		launch(h);
}

static uint64_t share(const struct policy *p)
{
	const struct limit *l = &p->limits[LIMIT_EVENTS_SIZE];

	return l->is_set ? l->max / 8 : HEARD_MAX;
}

void receiver_take(struct keeper *k, int take_listener)
{
	struct hearing *h = k->hearing;

	if (h || !k->in->plan->net.has_receiver || take_listener < 0) {
		fd_close(take_listener);
		return;
	}
	h = k->hearing = mem_new(1, sizeof(*h));
	*h = (struct hearing){
		.k = k, .listener = take_listener, .events = FD_NONE, .max = share(k->in->policy)
	};
	h->on_listener = watch_fd(k->loop, h->listener, WATCH_READ, on_listener, h);
}

void receiver_open(struct keeper *k)
{
	struct init_msg m = { .type = INIT_EAR };
	int pair[2];

	if (k->native.tool <= 0 || !k->in->plan->net.has_receiver ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return;
	(void)init_send(k->native.ctl, &m, &pair[1], 1); /* a dead one is seen by its watch */
	fd_close(pair[1]);
	receiver_take(k, pair[0]);
}

/* Everything inside is dead. What it was answered lies in the socket already; what it printed is still looked through,
 * which takes the receiver a moment, and its own end tells that it is done. */
void receiver_finish(struct keeper *k)
{
	struct hearing *h = k->hearing;
	uint64_t until = clock_now() + FINISH_NS;

	if (h == NULL)
		return;
	for (size_t i = 0; i < INIT_SESSIONS; i++)
		if (k->sessions[i].is_used)
			receiver_looked(&k->sessions[i]);
	if (h->events >= 0)
		(void)shutdown(h->events, SHUT_WR);
	while (h->events >= 0 && take_frames(h) >= 0 && wait_readable(h->events, until))
		;
	forget(h);
}

/* ---- structured output ---- */

static void show(struct hearing *h, struct session *s, enum receiver_show how, const char *p,
		 size_t n)
{
	if (h->listener >= 0 && h->pid == 0)
		launch(h);
	if (h->events < 0)
		return;
	if (s->has_gap && how == SHOW_MORE)
		how = SHOW_GAP;
	s->has_gap = !receiver_say(h->events, session_number(s), how, p, n);
	if (s->has_gap && !h->has_noted) {
		h->has_noted = true;
		note(h, "telemetry: structured output came too fast; some tool calls may be "
			"missing");
	}
}

/* The first byte decides: an agent that was asked for JSON lines prints nothing before them. */
static bool look(void *arg, char *p, size_t *n)
{
	struct session *s = arg;
	struct hearing *h = s->hearing;
	size_t skip = 0;

	while (s->look == LOOK_UNSURE && skip < *n && (p[skip] == '\n' || p[skip] == ' '))
		skip++;
	if (s->look == LOOK_UNSURE && skip < *n) {
		s->look = p[skip] == '{' ? LOOK_YES : LOOK_NO;
		if (s->look == LOOK_YES)
			h->shown[h->n_shown++ % ARRAY_LEN(h->shown)] = session_number(s);
	}
	if (s->look == LOOK_YES)
		show(h, s, SHOW_MORE, p, *n);
	return true;
}

void receiver_look(struct keeper *k, struct session *s)
{
	if (k->hearing == NULL || s->out == NULL)
		return;
	s->hearing = k->hearing;
	s->out->filter = look;
	s->out->filter_arg = s;
}

void receiver_looked(struct session *s)
{
	if (s->hearing && s->look == LOOK_YES)
		show(s->hearing, s, SHOW_END, NULL, 0);
	s->look = LOOK_NO;
}
