/* SPDX-License-Identifier: Apache-2.0 */
/* seal/h1.c - HTTP/1.1 on both sides: one exchange after the other
 *
 * Heads are parsed, judged and written anew; bodies are decoded and framed anew, so no byte of framing from inside
 * reaches the server and none of the server's reaches inside. Nothing is collected: what came in one read goes on in
 * the same round, server-sent events too. After an accepted WebSocket upgrade both ways are plain bytes.
 *
 * A refusal is an answer of ours; the rest of the request is read and thrown away, so that the client gets to read
 * it, and then the connection ends.
 */
#include "http/body.h"
#include "seal/conn.h"

enum { FRAME = 32 }; /* more than a chunk's size line and its end need */

enum up { UP_HEAD, UP_HOLD, UP_BODY, UP_DRAIN, UP_DONE };
enum down { DOWN_IDLE, DOWN_HEAD, DOWN_BODY, DOWN_DONE, DOWN_TUNNEL };

struct h1 {
	struct conn *c;
	struct exchange x;
	enum up up;
	enum down down;
	struct http_body up_body, down_body;
	struct fifo held; /* head and body of a request that is not judged yet */
	size_t held_head; /* bytes of it that are the head */
	bool is_up_chunked, is_down_chunked, is_old, is_last;
};

struct h1 *h1_new(struct conn *c)
{
	struct h1 *h = mem_new(1, sizeof(*h));

	h->c = c;
	h->held = FIFO(GIT_COMMANDS_BYTES + 2 * STREAM_ROOM);
	return h;
}

void h1_free(struct h1 *h)
{
	if (h == NULL)
		return;
	exchange_end(&h->x);
	fifo_done(&h->held);
	free(h);
}

bool h1_is_partial(const struct h1 *h)
{
	return h->up == UP_DRAIN || h->up == UP_HOLD || (h->up == UP_HEAD && h->c->client.in.n > 0);
}

/* ---- answers of our own */

static void answer(struct h1 *h)
{
	_cleanup_(buf_done) struct buf body = BUF(4 * MIB), head = BUF(4 * KIB);
	const char *type;
	unsigned code = exchange_refusal(&h->x, &type, &body);

	http_put_status(&head, code, str_of(http_reason(code)));
	http_put_field(&head, STR("Content-Type"), str_of(type));
	buf_printf(&head, "Content-Length: %zu\r\nConnection: close\r\n\r\n", body.n);
	fifo_force(&h->c->client.out, head.p, head.n);
	if (!h->x.is_head)
		fifo_force(&h->c->client.out, buf_cstr(&body), body.n);
	h->down = DOWN_DONE;
	h->is_last = true;
	stream_close(&h->c->client);
}

/* Refused or failed. Before the answer has begun the client gets ours; after that all we can do is cut it off. */
static bool give_up(struct h1 *h, unsigned code, const char *why)
{
	exchange_fail(&h->x, code, why);
	if (h->down == DOWN_BODY || h->down == DOWN_TUNNEL) {
		h->c->client.is_dead = true;
		h->c->phase = CONN_LEAVE;
		return true;
	}
	answer(h);
	h->up = h->up == UP_BODY || h->up == UP_HOLD ? UP_DRAIN : UP_DONE;
	return true;
}

/* ---- the request */

static void put_fields(const struct http_head *h, struct buf *b)
{
	for (size_t i = 0; i < h->n; i++)
		http_put_field(b, h->v[i].name, h->v[i].value);
}

static void wipe_done(struct buf *b)
{
	if (b->p)
		explicit_bzero(b->p, b->cap);
	buf_done(b);
}

static void put_head(struct h1 *h, const struct http_head *out, struct fifo *to)
{
	_cleanup_(wipe_done) struct buf b = BUF(4 * HTTP_HEAD_MAX + 64 * VAULT_VALUE_MAX);

	http_put_request(&b, out->method, out->target);
	put_fields(out, &b);
	if (h->is_up_chunked)
		http_put_field(&b, STR("Transfer-Encoding"), STR("chunked"));
	if (h->x.is_upgrade) {
		http_put_field(&b, STR("Connection"), STR("Upgrade"));
		http_put_field(&b, STR("Upgrade"), STR("websocket"));
	}
	if (!h->x.is_resized) /* else release() puts the length behind the other fields */
		http_put_end(&b);
	fifo_force(to, b.p, b.n);
}

static bool begin_request(struct h1 *h, const struct http_head *in)
{
	static struct http_head out; /* large, and used within this call only */
	struct http_framing f;
	struct err e = ERR_INIT;
	int r = exchange_request(&h->x, in, &out);

	h->is_old = in->minor == 0;
	h->is_last = h->is_old || !http_is_persistent(in);
	if (http_request_framing(in, &f, &e) < 0)
		return give_up(h, 400, e.msg);
	http_body_init(&h->up_body, &f);
	h->is_up_chunked = f.kind == HTTP_CHUNKED;
	h->up = h->up_body.is_done ? UP_DONE : UP_BODY;
	if (r < 0)
		return give_up(h, h->x.code, h->x.why);
	if (h->c->why[0])
		return give_up(h, 502, h->c->why);
	if (h->c->server.in.n > 0)
		return give_up(h, 502, "the server answered before it was asked");
	h->down = DOWN_HEAD;
	if (r == 0) {
		put_head(h, &out, &h->c->server.out);
		return true;
	}
	put_head(h, &out, &h->held);
	h->held_head = h->held.n;
	h->up = UP_HOLD;
	if (http_field_has(in, "Expect", "100-continue"))
		fifo_force(&h->c->client.out, "HTTP/1.1 100 Continue\r\n\r\n", 25);
	return true;
}

static bool read_head(struct h1 *h)
{
	static struct http_head in;
	struct str v = fifo_view(&h->c->client.in);
	struct err e = ERR_INIT;
	ssize_t n;

	if (v.n == 0 && h->c->client.is_eof)
		h->c->phase = CONN_LEAVE;
	if (v.n == 0)
		return h->c->client.is_eof;
	n = http_parse_request(v.p, v.n, &in, &e);
	if (n == 0 && !h->c->client.is_eof)
		return false;
	exchange_begin(&h->x, &h->c->way, h->c->seal->rules, conn_exchange_event, h->c);
	if (n <= 0)
		return give_up(h, n == -EMSGSIZE ? 431 : 400, n ? e.msg : "the request is cut off");
	(void)begin_request(h, &in);
	fifo_take(&h->c->client.in, (size_t)n);
	return true;
}

/* The next piece of a body: false when there is none to be had now. < 0 in *ret when it is broken. */
static bool next_piece(struct http_body *b, struct stream *from, size_t room, struct str *ret_data,
		       int *ret, struct err *e)
{
	struct str v = fifo_view(&from->in);
	size_t used = 0;

	*ret = 0;
	*ret_data = STR("");
	if (b->is_done) {
		*ret = 1;
		return true;
	}
	if (v.n == 0 || room == 0) {
		if (v.n > 0 || !from->is_eof)
			return false;
		*ret = http_body_eof(b, e) < 0 ? -EBADMSG : 1;
		return true;
	}
	*ret = http_body_next(b, v.p, v.n < room ? v.n : room, &used, ret_data, e);
	if (*ret >= 0)
		fifo_take(&from->in, used); /* the data stays in place until more is read */
	return true;
}

static void put_data(struct fifo *to, bool is_chunked, struct str data)
{
	char line[FRAME];
	int n;

	if (data.n == 0)
		return;
	if (!is_chunked) {
		fifo_force(to, data.p, data.n);
		return;
	}
	n = snprintf(line, sizeof(line), "%zx\r\n", data.n);
	fifo_force(to, line, (size_t)n);
	fifo_force(to, data.p, data.n);
	fifo_force(to, "\r\n", 2);
}

static void end_up(struct h1 *h)
{
	struct str rest;

	exchange_up_end(&h->x, &rest);
	put_data(&h->c->server.out, h->is_up_chunked, rest);
	if (h->is_up_chunked)
		fifo_force(&h->c->server.out, "0\r\n\r\n", 5);
	h->up = UP_DONE;
}

static bool send_body(struct h1 *h)
{
	size_t room = fifo_room(&h->c->server.out);
	struct err e = ERR_INIT;
	struct str data, out;
	int r;

	if (!next_piece(&h->up_body, &h->c->client, room > FRAME ? room - FRAME : 0, &data, &r, &e))
		return false;
	if (r < 0)
		return give_up(h, 400, e.msg);
	if (exchange_up(&h->x, data.p, data.n, &out) < 0)
		return give_up(h, h->x.code, h->x.why);
	put_data(&h->c->server.out, h->is_up_chunked, out);
	if (r == 1)
		end_up(h);
	return true;
}

/* Judged and allowed, or its length is known: what was held goes out. */
static bool release(struct h1 *h)
{
	struct str all = fifo_view(&h->held), body = str_from(all, h->held_head), out;
	char line[64];
	int n;

	if (exchange_up(&h->x, body.p, body.n, &out) < 0)
		return give_up(h, h->x.code, h->x.why);
	fifo_force(&h->c->server.out, all.p, h->held_head);
	if (h->x.is_resized) {
		n = snprintf(line, sizeof(line), "Content-Length: %llu\r\n\r\n",
			     (unsigned long long)exchange_length(&h->x));
		fifo_force(&h->c->server.out, line, (size_t)n);
	}
	put_data(&h->c->server.out, h->is_up_chunked, out);
	fifo_done(&h->held);
	h->up = UP_BODY;
	return true;
}

static bool hold_body(struct h1 *h)
{
	struct err e = ERR_INIT;
	struct str data;
	int r, judged;

	if (!next_piece(&h->up_body, &h->c->client, fifo_room(&h->held), &data, &r, &e)) {
		if (fifo_room(&h->held) > 0)
			return false;
		return give_up(h, 413, "the commands of a push are too long");
	}
	if (r < 0)
		return give_up(h, 400, e.msg);
	fifo_force(&h->held, data.p, data.n);
	judged = exchange_hold(&h->x, data.p, data.n);
	if (judged == 0 && r == 1)
		judged = exchange_hold_end(&h->x);
	if (judged < 0)
		return give_up(h, h->x.code, h->x.why);
	return judged == 1 ? release(h) : true;
}

static bool drain(struct h1 *h)
{
	struct err e = ERR_INIT;
	struct str data;
	int r;

	if (!next_piece(&h->up_body, &h->c->client, STREAM_ROOM, &data, &r, &e))
		return false;
	if (r != 0)
		h->up = UP_DONE;
	return true;
}

static bool work_up(struct h1 *h)
{
	switch (h->up) {
	case UP_HEAD:
		return read_head(h);
	case UP_HOLD:
		return hold_body(h);
	case UP_BODY:
		return send_body(h);
	case UP_DRAIN:
		return drain(h);
	case UP_DONE:
		break;
	}
	return false;
}

/* ---- the answer */

static void put_response(struct h1 *h, const struct http_head *out, bool is_final)
{
	_cleanup_(buf_done) struct buf b = BUF(4 * HTTP_HEAD_MAX);

	http_put_status(&b, out->status, out->reason);
	put_fields(out, &b);
	if (h->is_down_chunked)
		http_put_field(&b, STR("Transfer-Encoding"), STR("chunked"));
	if (out->status == 101) {
		http_put_field(&b, STR("Connection"), STR("Upgrade"));
		http_put_field(&b, STR("Upgrade"), STR("websocket"));
	} else if (is_final && h->is_last) {
		http_put_field(&b, STR("Connection"), STR("close"));
	}
	http_put_end(&b);
	fifo_force(&h->c->client.out, b.p, b.n);
}

static bool take_response(struct h1 *h, const struct http_head *in)
{
	static struct http_head out;
	struct http_framing f;
	struct err e = ERR_INIT;
	bool is_final = in->status >= 200 || in->status == 101;

	if (http_response_framing(in, str_of(h->x.method), &f, &e) < 0)
		return give_up(h, 502, e.msg);
	if (in->status == 101 && !h->x.is_upgrade)
		return give_up(h, 502, "the server switches protocols without having been asked");
	if (exchange_response(&h->x, in, &out) < 0)
		return give_up(h, h->x.code, h->x.why);
	if (is_final) {
		h->is_last |= f.kind == HTTP_UNTIL_CLOSE || !http_is_persistent(in);
		h->is_down_chunked =
			(f.kind == HTTP_CHUNKED || f.kind == HTTP_UNTIL_CLOSE) && !h->is_old;
		http_body_init(&h->down_body, &f);
		h->down = in->status == 101 ? DOWN_TUNNEL : DOWN_BODY;
	}
	put_response(h, &out, is_final);
	return true;
}

static bool read_response(struct h1 *h)
{
	static struct http_head in;
	struct str v = fifo_view(&h->c->server.in);
	struct err e = ERR_INIT;
	ssize_t n = http_parse_response(v.p, v.n, &in, &e);

	if (n == 0 && !h->c->server.is_eof)
		return false;
	if (n <= 0)
		return give_up(h, 502,
			       n < 0                                         ? e.msg
			       : h->c->server.is_dead && h->c->server.why[0] ? h->c->server.why
									     : "the server closed "
									       "the connection "
									       "without an answer");
	(void)take_response(h, &in);
	fifo_take(&h->c->server.in, (size_t)n);
	return true;
}

static bool send_answer(struct h1 *h)
{
	size_t room = fifo_room(&h->c->client.out);
	struct err e = ERR_INIT;
	struct str data, out;
	int r;

	if (!next_piece(&h->down_body, &h->c->server, room > FRAME ? room - FRAME : 0, &data, &r,
			&e))
		return false;
	if (r < 0)
		return give_up(h, 502, e.msg);
	if (exchange_down(&h->x, data.p, data.n, &out) < 0)
		return give_up(h, h->x.code, h->x.why);
	put_data(&h->c->client.out, h->is_down_chunked, out);
	if (r == 0)
		return true;
	if (exchange_down_end(&h->x, &out) < 0)
		return give_up(h, h->x.code, h->x.why);
	put_data(&h->c->client.out, h->is_down_chunked, out);
	if (h->is_down_chunked)
		fifo_force(&h->c->client.out, "0\r\n\r\n", 5);
	h->down = DOWN_DONE;
	return true;
}

/* One direction of a tunnel. */
static bool carry(struct h1 *h, struct stream *from, struct stream *to, bool is_down)
{
	struct str v = fifo_view(&from->in), out;
	size_t room = fifo_room(&to->out);

	if (v.n > room)
		v.n = room;
	if (v.n == 0)
		return false;
	if ((is_down ? exchange_down(&h->x, v.p, v.n, &out) : exchange_up(&h->x, v.p, v.n, &out)) <
	    0)
		return give_up(h, h->x.code, h->x.why);
	fifo_force(&to->out, out.p, out.n);
	fifo_take(&from->in, v.n);
	return true;
}

static bool work_tunnel(struct h1 *h)
{
	struct conn *c = h->c;
	bool has_moved = carry(h, &c->client, &c->server, false);

	has_moved |= carry(h, &c->server, &c->client, true);
	if (!has_moved && ((c->client.is_eof && c->client.in.n == 0 && c->server.out.n == 0) ||
			   (c->server.is_eof && c->server.in.n == 0))) {
		struct str rest;

		(void)exchange_down_end(&h->x, &rest); /* no login is a tunnel */
		fifo_force(&c->client.out, rest.p, rest.n);
		c->phase = CONN_LEAVE;
		return true;
	}
	return has_moved;
}

static bool work_down(struct h1 *h)
{
	switch (h->down) {
	case DOWN_HEAD:
		return h->up != UP_HOLD && read_response(h);
	case DOWN_BODY:
		return send_answer(h);
	case DOWN_TUNNEL:
		return work_tunnel(h);
	case DOWN_IDLE:
	case DOWN_DONE:
		break;
	}
	return false;
}

/* Both halves are through, or the answer is and nothing more can follow on this connection. */
static bool finish(struct h1 *h)
{
	bool is_early = h->up != UP_DONE && h->up != UP_DRAIN;

	if (h->down != DOWN_DONE || (h->up == UP_DRAIN && !h->c->client.is_eof))
		return false;
	exchange_end(&h->x);
	if (h->is_last || is_early || h->c->server.is_eof) {
		h->c->phase = CONN_LEAVE;
		return true;
	}
	h->up = UP_HEAD;
	h->down = DOWN_IDLE;
	return true;
}

bool h1_work(struct h1 *h)
{
	bool has_moved;

	if (h->c->client.is_dead) {
		h->c->phase = CONN_LEAVE;
		return true;
	}
	/* An idle server that leaves takes the connection with it; a dead one answers what is asked with 502. */
	if (h->up == UP_HEAD && h->c->client.in.n == 0 && h->c->server.is_eof && !h->c->why[0]) {
		h->c->phase = CONN_LEAVE;
		return true;
	}
	has_moved = h->down == DOWN_TUNNEL ? false : work_up(h);
	has_moved |= work_down(h);
	return finish(h) || has_moved;
}
