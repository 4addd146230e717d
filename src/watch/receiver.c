/* SPDX-License-Identifier: Apache-2.0 */
/* watch/receiver.c - see receiver.h
 *
 * Promises: CONFINE_ACCEPT. It reads hostile bytes (HTTP, JSON, protobuf) and writes frames; that is all it can do.
 *
 * One request at a time from a connection, at most OTLP_MAX_BYTES, at most CONNECTIONS of them; when all are taken the
 * one that has been silent longest gives way. A keeper that does not read makes us answer 503, which exporters take as
 * "try again": telemetry is slowed down, the sandbox is not. Output that is shown is cut into lines, for a few sessions at
 * a time; a line longer than SAID_MAX_BYTES is skipped.
 */
#include "watch/receiver.h"

#include <poll.h>
#include <sys/socket.h>

#include "base/loop.h"
#include "http/body.h"
#include "sys/confine.h"
#include "sys/packet.h"
#include "watch/otlp.h"
#include "watch/said.h"

#define CONNECTIONS 16
#define SHOWN 8
#define IDLE_NS (60 * NS_PER_SEC)
#define KEEPER_WAIT_MS 2000

struct receiver;

struct connection {
	struct receiver *of;
	int fd;
	struct watch *watch;
	uint64_t last_ns;
	struct buf in, body;
	bool has_head, is_json, is_last, is_report;
	enum otlp_signal signal;
	struct http_body decoder;
};

/* The unfinished line of a session. */
struct shown {
	uint32_t session;
	bool is_used, is_skipping;
	struct buf line;
};

struct receiver {
	struct loop *loop;
	int listener, events;
	bool is_handed; /* no listener: connections come through it, ready made */
	struct watch *on_accept;
	struct connection v[CONNECTIONS];
	struct shown shown[SHOWN];
	size_t next_shown;
	struct buf frame;
};

static void hang_up(struct connection *c)
{
	if (c->fd < 0)
		return;
	watch_free(c->watch);
	fd_close(take_fd(c->fd));
	buf_done(&c->in);
	buf_done(&c->body);
	*c = (struct connection){ .of = c->of, .fd = FD_NONE };
}

/* ---- to the keeper ---- */

/* Waits a moment for a keeper that is busy. */
static int hand_over(struct receiver *r, enum event_type type, uint32_t session,
		     const struct event_field *f, size_t n)
{
	struct event_head h = { .type = (uint16_t)type, .session = session };
	struct pollfd p = { .fd = r->events, .events = POLLOUT };

	r->frame.n = 0;
	event_encode(&h, f, n, &r->frame);
	while (send(r->events, r->frame.p, r->frame.n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return -EPIPE;
		if (poll(&p, 1, KEEPER_WAIT_MS) == 0)
			return -EAGAIN;
	}
	return 0;
}

static int on_record(void *arg, const struct event_field *f, size_t n)
{
	return hand_over(arg, EV_OTEL, EVENT_NO_SESSION, f, n);
}

static int on_report(void *arg, enum event_type type, const struct event_field *f, size_t n)
{
	return hand_over(arg, type, EVENT_NO_SESSION, f, n);
}

/* ---- answers ---- */

/* It fits into the socket's buffer, or the peer has not read the answers before it: then it is not worth keeping. */
static void send_all(struct connection *c, const struct buf *b)
{
	if (send(c->fd, b->p, b->n, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)b->n)
		c->is_last = true;
}

static void refuse(struct connection *c, unsigned status, const char *why)
{
	_cleanup_(buf_done) struct buf b = BUF(8 * KIB);

	http_put_answer(&b, status, "text/plain", why, true);
	send_all(c, &b);
	hang_up(c);
}

/* An empty message of the kind that was sent. */
static void accept_it(struct connection *c)
{
	_cleanup_(buf_done) struct buf b = BUF(8 * KIB);

	http_put_status(&b, 200, STR("OK"));
	http_put_field(&b, STR("Content-Type"),
		       c->is_json ? STR("application/json") : STR("application/x-protobuf"));
	http_put_field(&b, STR("Content-Length"), c->is_json ? STR("2") : STR("0"));
	if (c->is_last)
		http_put_field(&b, STR("Connection"), STR("close"));
	http_put_end(&b);
	if (c->is_json)
		buf_puts(&b, "{}");
	send_all(c, &b);
}

/* ---- requests ---- */

static bool find_signal(struct str target, enum otlp_signal *ret)
{
	for (enum otlp_signal s = 0; s < OTLP_SIGNAL_COUNT_; s++) {
		char path[24];

		(void)snprintf(path, sizeof(path), "/v1/%s", otlp_signal_name(s));
		if (str_is(target, path)) {
			*ret = s;
			return true;
		}
	}
	return false;
}

/* "application/json; charset=utf-8" is application/json. */
static bool is_type(struct str value, const char *type)
{
	size_t n = strlen(type);

	return value.n >= n && strncasecmp(value.p, type, n) == 0 &&
	       (value.n == n || value.p[n] == ';' || value.p[n] == ' ');
}

/* 0, or the status to refuse it with. */
static unsigned judge(struct connection *c, const struct http_head *h, struct http_framing *framing)
{
	struct str type = { 0 }, coding = { 0 };
	struct err ignored = ERR_INIT;

	c->is_report = str_is(h->target, "/vitrine/v1/calls");
	if (!c->is_report && !find_signal(h->target, &c->signal))
		return 404;
	if (!str_is(h->method, "POST"))
		return 405;
	if (http_request_framing(h, framing, &ignored) < 0 ||
	    http_field_one(h, "Content-Type", &type) < 0 ||
	    http_field_one(h, "Content-Encoding", &coding) < 0)
		return 400;
	c->is_json = is_type(type, "application/json");
	if ((!c->is_json && (c->is_report || !is_type(type, "application/x-protobuf"))) ||
	    (coding.n > 0 && !str_is_nocase(coding, "identity")))
		return 415;
	return framing->kind == HTTP_LENGTH && framing->length > OTLP_MAX_BYTES ? 413 : 0;
}

/* The head, once it is there. 1, 0: more must come, -1: the connection is over. */
static int take_head(struct connection *c)
{
	struct http_head *h;
	struct http_framing framing = { 0 };
	struct err e = ERR_INIT;
	ssize_t used;
	unsigned status;
	_free_ struct http_head *memory = mem_new(1, sizeof(*memory));

	h = memory;
	used = http_parse_request(buf_cstr(&c->in), c->in.n, h, &e);
	if (used == 0)
		return 0;
	status = used < 0 ? 400 : judge(c, h, &framing);
	if (status) {
		refuse(c, status, used < 0 ? e.msg : http_reason(status));
		return -1;
	}
	c->is_last = !http_is_persistent(h);
	c->has_head = true;
	http_body_init(&c->decoder, &framing);
	memmove(c->in.p, c->in.p + used, c->in.n - (size_t)used);
	c->in.n -= (size_t)used;
	return 1;
}

static int deliver(struct connection *c)
{
	struct err e = ERR_INIT;
	struct otlp_request q = {
		.signal = c->signal, .is_json = c->is_json, .p = buf_cstr(&c->body), .n = c->body.n
	};
	int r = c->is_report ? said_report(q.p, q.n, on_report, c->of, &e)
			     : otlp_read(&q, on_record, c->of, &e);

	if (r == -EPIPE) {
		loop_stop(c->of->loop);
		return -1;
	}
	if (r < 0) {
		refuse(c,
		       r == -EAGAIN  ? 503
		       : r == -E2BIG ? 413
				     : 400,
		       r == -EAGAIN ? "try again" : e.msg);
		return -1;
	}
	accept_it(c);
	c->body.n = 0;
	c->has_head = false;
	if (c->is_last) {
		hang_up(c);
		return -1;
	}
	return 1;
}

/* 1: a request was dealt with; 0: more must come; -1: the connection is over. */
static int take_body(struct connection *c)
{
	struct err e = ERR_INIT;
	size_t at = 0;
	int r = 0;

	while (r == 0) {
		struct str data = { 0 };
		size_t used = 0;

		r = http_body_next(&c->decoder, buf_cstr(&c->in) + at, c->in.n - at, &used, &data,
				   &e);
		buf_add(&c->body, data.p, data.n);
		at += used;
		if (r == 0 && used == 0)
			break;
	}
	if (r < 0 || c->body.is_over) {
		refuse(c, r < 0 ? 400 : 413, r < 0 ? e.msg : "too large");
		return -1;
	}
	if (at > 0)
		memmove(c->in.p, c->in.p + at, c->in.n - at);
	c->in.n -= at;
	return r == 1 ? deliver(c) : 0;
}

static void on_bytes(void *arg)
{
	struct connection *c = arg;
	char text[16384];
	ssize_t n = recv(c->fd, text, sizeof(text), MSG_DONTWAIT);
	int r = 1;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		hang_up(c);
		return;
	}
	c->last_ns = clock_now();
	buf_add(&c->in, text, (size_t)n);
	while (r == 1)
		r = c->has_head ? take_body(c) : take_head(c);
	if (r == 0 && c->in.is_over)
		hang_up(c);
}

/* ---- connections ---- */

static struct connection *place(struct receiver *r)
{
	struct connection *oldest = &r->v[0];

	for (size_t i = 0; i < CONNECTIONS; i++) {
		if (r->v[i].fd < 0)
			return &r->v[i];
		if (r->v[i].last_ns < oldest->last_ns)
			oldest = &r->v[i];
	}
	hang_up(oldest);
	return oldest;
}

/* From vitrine-link, which made it to be waited for by nobody. */
static int take_handed(struct receiver *r)
{
	int fds[PACKET_FDS];
	char c;
	int got = packet_recv(r->listener, &c, 1, fds);

	for (int i = 1; i < PACKET_FDS; i++)
		fd_close(fds[i]);
	if (got == 0)
		watch_set(r->on_accept, false); /* the sandbox is over */
	return fds[0];
}

static void on_accept(void *arg)
{
	struct receiver *r = arg;
	int fd = r->is_handed ? take_handed(r)
			      : accept4(r->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct connection *c;

	if (fd < 0)
		return; /* gone again, or the sandbox is over */
	c = place(r);
	*c = (struct connection){ .of = r,
				  .fd = fd,
				  .last_ns = clock_now(),
				  .in = BUF(HTTP_HEAD_MAX + 64 * KIB),
				  .body = BUF(OTLP_MAX_BYTES) };
	c->watch = watch_fd(r->loop, fd, WATCH_READ, on_bytes, c);
}

static void on_idle(void *arg)
{
	struct receiver *r = arg;

	for (size_t i = 0; i < CONNECTIONS; i++)
		if (r->v[i].fd >= 0 && clock_now() - r->v[i].last_ns > IDLE_NS)
			hang_up(&r->v[i]);
}

/* ---- structured output ---- */

struct told {
	struct receiver *of;
	uint32_t session;
};

static int on_call(void *arg, enum event_type type, const struct event_field *f, size_t n)
{
	const struct told *t = arg;

	return hand_over(t->of, type, t->session, f, n);
}

/* Where all places are taken, the oldest gives way. */
static struct shown *shown_of(struct receiver *r, uint32_t session)
{
	struct shown *s;

	for (size_t i = 0; i < SHOWN; i++)
		if (r->shown[i].is_used && r->shown[i].session == session)
			return &r->shown[i];
	s = &r->shown[r->next_shown++ % SHOWN];
	buf_done(&s->line);
	*s = (struct shown){ .session = session, .is_used = true, .line = BUF(SAID_MAX_BYTES) };
	return s;
}

/* A keeper that is gone is seen by the watch. */
static void take_line(struct receiver *r, struct shown *s)
{
	struct told t = { r, s->session };

	if (!s->is_skipping && !s->line.is_over)
		(void)said_line(buf_cstr(&s->line), s->line.n, on_call, &t);
	s->is_skipping = false;
	buf_done(&s->line);
	s->line = BUF(SAID_MAX_BYTES);
}

static void take_output(struct receiver *r, const struct receiver_packet *m, size_t n)
{
	struct shown *s = shown_of(r, m->session);
	const char *p = m->bytes, *end = p + n, *eol;

	if (m->how == SHOW_GAP)
		s->is_skipping = true;
	for (; p < end && (eol = memchr(p, '\n', (size_t)(end - p))) != NULL; p = eol + 1) {
		if (!s->is_skipping)
			buf_add(&s->line, p, (size_t)(eol - p));
		take_line(r, s);
	}
	if (!s->is_skipping)
		buf_add(&s->line, p, (size_t)(end - p));
	if (m->how == SHOW_END) {
		take_line(r, s);
		s->is_used = false;
	}
}

static void on_keeper(void *arg)
{
	struct receiver *r = arg;
	struct receiver_packet m;
	ssize_t n = recv(r->events, &m, sizeof(m), MSG_DONTWAIT);
	size_t head = offsetof(struct receiver_packet, bytes);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < (ssize_t)head)
		loop_stop(r->loop);
	else
		take_output(r, &m, (size_t)n - head);
}

static bool is_packets(int fd)
{
	int type = 0;
	socklen_t n = sizeof(type);

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && type == SOCK_SEQPACKET;
}

int receiver_run(int listener, int events, struct err *e)
{
	struct receiver *r = mem_new(1, sizeof(*r));
	bool is_handed = is_packets(listener);
	int rc = confine(CONFINE_ACCEPT, e);

	if (rc == 0)
		rc = confine_prove(CONFINE_ACCEPT, e);
	if (rc < 0) {
		free(r);
		return rc;
	}
	*r = (struct receiver){ .loop = loop_new(),
				.listener = listener,
				.events = events,
				.is_handed = is_handed,
				.frame = BUF(2 * EVENT_MAX_BYTES) };
	for (size_t i = 0; i < CONNECTIONS; i++)
		r->v[i] = (struct connection){ .of = r, .fd = FD_NONE };
	r->on_accept = watch_fd(r->loop, listener, WATCH_READ, on_accept, r);
	(void)watch_fd(r->loop, events, WATCH_READ, on_keeper, r);
	(void)watch_timer(r->loop, 10 * NS_PER_SEC, true, on_idle, r);
	loop_run(r->loop);
	for (size_t i = 0; i < CONNECTIONS; i++)
		hang_up(&r->v[i]);
	for (size_t i = 0; i < SHOWN; i++)
		buf_done(&r->shown[i].line);
	loop_free(r->loop);
	buf_done(&r->frame);
	free(r);
	return 0;
}
