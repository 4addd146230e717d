/* SPDX-License-Identifier: Apache-2.0 */
/* gate/relay.c - bytes from one end to the other
 *
 * One large buffer serves all connections: what is read is written at once, and only what the reader does not take
 * is kept with the connection. So a thousand idle tunnels cost no buffers, and a busy one moves a quarter of a megabyte per
 * pair of system calls.
 */
#include <sys/socket.h>

#include "base/loop.h"
#include "gate/front.h"

#define CHUNK ((size_t)256 * 1024)
#define HELD_MAX (2 * MIB) /* of one direction; reading stops long before */
#define HALF_CLOSED_NS (60 * NS_PER_SEC)

static char chunk[CHUNK];

/* ---- writing ---- */

/* Keeps what the reader does not take. */
void conn_put(struct conn *c, int to, const void *p, size_t n)
{
	struct half *h = &c->half[!to];
	const char *at = p;

	while (n > 0 && h->out.n == 0 && c->end[to].fd >= 0) {
		ssize_t sent = send(c->end[to].fd, at, n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent < 0 && errno == EAGAIN)
			break;
		if (sent < 0) {
			conn_close(c);
			return;
		}
		at += sent;
		n -= (size_t)sent;
	}
	if (n == 0)
		return;
	h->out.max = HELD_MAX;
	buf_add(&h->out, at, n);
	if (h->out.is_over)
		conn_close(c);
}

static bool flush_half(struct conn *c, int from)
{
	struct half *h = &c->half[from];
	int to = !from;

	while (h->out_at < h->out.n && c->end[to].fd >= 0) {
		ssize_t sent = send(c->end[to].fd, h->out.p + h->out_at, h->out.n - h->out_at,
				    MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent < 0 && errno == EAGAIN)
			return true;
		if (sent < 0)
			return false;
		h->out_at += (size_t)sent;
	}
	if (h->out_at == h->out.n) {
		buf_done(&h->out);
		h->out = BUF(HELD_MAX);
		h->out_at = 0;
	}
	return true;
}

/* The sender has closed and all it said is delivered: its reader is told, once. */
static void pass_on_end(struct conn *c, int from)
{
	struct half *h = &c->half[from];

	if (!h->is_eof || h->is_shut || h->out.n > 0 || h->in.n > 0 || c->end[!from].fd < 0 ||
	    (h->mode != MODE_RAW && h->mode != MODE_LAST))
		return;
	h->is_shut = true;
	(void)shutdown(c->end[!from].fd, SHUT_WR); /* the other end may be gone already */
	if (h->mode == MODE_LAST)
		conn_leave(c);
	else
		c->due = clock_now() + HALF_CLOSED_NS;
}

void conn_flush(struct conn *c)
{
	for (int from = 0; from < 2 && !c->is_dead; from++) {
		if (!flush_half(c, from)) {
			conn_close(c);
			return;
		}
		pass_on_end(c, from);
	}
	if (c->is_dead)
		return;
	/* All is said both ways, or our last word is delivered and the client has closed. */
	if ((c->half[CLIENT].is_shut && c->half[SERVER].is_shut) ||
	    (c->half[CLIENT].mode == MODE_LAST && c->half[SERVER].out.n == 0 &&
	     c->half[CLIENT].is_eof))
		conn_close(c);
}

/* ---- reading ---- */

/* One step of what half `from` has in `in`; false when it needs more or has stopped. */
static bool step(struct conn *c, int from)
{
	struct half *h = &c->half[from];

	switch (h->mode) {
	case MODE_FIRST:
		if (h->in.n == 0)
			return false;
		if (h->in.p[0] == 5 || h->in.p[0] == 4)
			h->mode = MODE_SOCKS;
		else
			http_start(c);
		return true;
	case MODE_SOCKS:
		return socks_input(c);
	case MODE_HEAD:
		return from == CLIENT ? http_request(c) : http_response(c);
	case MODE_SNIFF:
		return sniff_input(c);
	case MODE_DNS:
		return dns_stream_input(c);
	case MODE_RAW:
	case MODE_BODY:
		/* What had been read before the mode changed. */
		break;
	case MODE_WAIT:
		return false;
	case MODE_LAST:
		buf_done(&h->in);
		h->in = BUF(HELD_MAX);
		return false;
	}
	return false;
}

static void conn_count(struct conn *c, int from, size_t n)
{
	c->half[from].bytes += n;
	c->f->moved[from] += n;
}

/* Body bytes pass on as they are; the decoder only finds the end. Returns how many were body. */
static size_t pass_body(struct conn *c, int from, const char *p, size_t n)
{
	struct half *h = &c->half[from];
	struct err e = ERR_INIT;
	size_t done = 0;
	int r = 0;

	while (r == 0 && done < n) {
		struct str data;
		size_t used = 0;

		r = http_body_next(&h->body, p + done, n - done, &used, &data, &e);
		if (r < 0) {
			conn_alert(c, e.msg);
			conn_close(c);
			return n;
		}
		done += used;
		if (used == 0 && r == 0)
			break;
	}
	conn_count(c, from, done);
	conn_put(c, !from, p, done);
	if (r == 1 && !c->is_dead)
		http_message_end(c, from);
	return done;
}

static void keep_input(struct conn *c, int from, const char *p, size_t n)
{
	struct half *h = &c->half[from];

	if (n == 0)
		return;
	h->in.max = HELD_MAX;
	buf_add(&h->in, p, n);
	if (h->in.is_over)
		conn_close(c);
}

void conn_drop_input(struct conn *c, int from, size_t n)
{
	struct buf *in = &c->half[from].in;

	bug_on(n > in->n);
	memmove(in->p, in->p + n, in->n - n);
	in->n -= n;
	in->p[in->n] = '\0';
}

/* Bytes that just came. */
static void input(struct conn *c, int from, const char *p, size_t n)
{
	struct half *h = &c->half[from];

	while (n > 0 && !c->is_dead && h->in.n == 0 &&
	       (h->mode == MODE_RAW || h->mode == MODE_BODY || h->mode == MODE_LAST)) {
		size_t used = n;

		if (h->mode == MODE_RAW) {
			conn_count(c, from, n);
			conn_put(c, !from, p, n);
		} else if (h->mode == MODE_BODY) {
			used = pass_body(c, from, p, n);
		}
		p += used;
		n -= used;
	}
	if (c->is_dead || n == 0)
		return;
	keep_input(c, from, p, n);
	conn_again(c, from);
}

void conn_again(struct conn *c, int from)
{
	struct half *h = &c->half[from];

	while (!c->is_dead) {
		while (!c->is_dead && step(c, from))
			;
		if (c->is_dead || h->in.n == 0 || (h->mode != MODE_RAW && h->mode != MODE_BODY))
			break;
		/* Into a mode that keeps nothing: what was kept goes through as if it had just come. */
		struct buf in = h->in;

		h->in = BUF(HELD_MAX);
		input(c, from, in.p, in.n);
		buf_done(&in);
	}
}

/* Is half `from` to be read from now? */
static bool may_read(const struct conn *c, int from)
{
	const struct half *h = &c->half[from];

	return !h->is_eof && h->mode != MODE_WAIT && h->out.n == 0;
}

static void on_eof(struct conn *c, int from)
{
	struct half *h = &c->half[from];
	struct err e = ERR_INIT;

	h->is_eof = true;
	if (h->mode == MODE_BODY) {
		if (http_body_eof(&h->body, &e) < 0)
			conn_close(c);
		else
			http_message_end(c, from);
		return;
	}
	if (from == SERVER && http_server_gone(c))
		return;
	/* A client that leaves before it is served, a server that leaves in the middle of an answer. */
	if (h->mode != MODE_RAW && h->mode != MODE_LAST)
		conn_close(c);
}

static void read_end(struct conn *c, int from)
{
	ssize_t n = recv(c->end[from].fd, chunk, sizeof(chunk), MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n < 0)
		conn_close(c);
	else if (n == 0)
		on_eof(c, from);
	else
		input(c, from, chunk, (size_t)n);
}

void conn_watch(struct conn *c)
{
	for (int e = 0; e < 2; e++)
		source_want(&c->f->turn, &c->end[e],
			    (may_read(c, e) ? POLLER_READ : 0U) |
				    (c->half[!e].out.n > 0 ? POLLER_WRITE : 0U));
}

static void on_ready(struct conn *c, int e, unsigned ready)
{
	if (ready & POLLER_WRITE)
		conn_flush(c);
	if (!c->is_dead && ready & (POLLER_READ | POLLER_GONE)) {
		if (may_read(c, e))
			read_end(c, e);
		else if (ready & POLLER_GONE)
			conn_close(c); /* reset while we were not reading */
	}
	if (!c->is_dead)
		conn_flush(c);
	if (!c->is_dead)
		conn_watch(c);
}

static void on_client(struct source *s, unsigned ready)
{
	on_ready(holder_of(s, struct conn, end[CLIENT]), CLIENT, ready);
}

static void on_server(struct source *s, unsigned ready)
{
	on_ready(holder_of(s, struct conn, end[SERVER]), SERVER, ready);
}

void conn_start(struct conn *c)
{
	int fd = c->end[CLIENT].fd;

	if (source_open(&c->f->turn, &c->end[CLIENT], fd, on_client,
			may_read(c, CLIENT) ? POLLER_READ : 0) < 0)
		conn_close(c);
}

int conn_take_server(struct conn *c, int take_fd)
{
	return source_open(&c->f->turn, &c->end[SERVER], take_fd, on_server, POLLER_READ);
}

void conn_last_words(struct conn *c, const void *p, size_t n)
{
	source_close(&c->f->turn, &c->end[SERVER]);
	c->half[CLIENT].mode = MODE_LAST;
	c->half[SERVER].is_eof = true;
	c->half[SERVER].mode = MODE_LAST;
	c->due = clock_now() + 5 * NS_PER_SEC;
	if (n > 0)
		conn_put(c, CLIENT, p, n);
	if (!c->is_dead)
		conn_flush(c);
}
