/* SPDX-License-Identifier: Apache-2.0 */
/* seal/h2.c - HTTP/2 on both sides: every stream of the client is one stream to the server
 *
 * nghttp2 frames, counts windows and checks what HTTP/2 demands; heads are taken out into a struct http_head and
 * judged like any other. `down` is the session with the client, `up` the one with the server. A window is opened
 * again only for bytes that have been passed on, so a client that does not read stops its server, and memory is
 * bounded by the windows: WINDOW for all streams of a session together.
 */
#include <malloc.h>
#include <nghttp2/nghttp2.h>

#include "seal/conn.h"
#include "seal/pile.h"

enum {
	STREAMS = 100,
	STREAM_WINDOW = 256 * 1024,
	WINDOW = 1024 * 1024,
	RESETS = 100, /* more than that, and more than what was let through, is an attack */
};

/* Bytes that came over one session and wait for the other. */
struct lane {
	struct fifo q;
	size_t owed; /* of its window, given back as q is taken */
	bool is_ended;
};

struct h2_stream {
	struct h2 *h;
	struct h2_stream *next, **link;
	int32_t down_id, up_id; /* 0: none, or over */
	struct exchange x;
	struct pile pile;
	struct lane up, down;
	struct fifo held; /* body of a request that is not judged yet */
	struct http_head out;
	bool has_answer, has_trailers, is_held;
};

struct h2 {
	struct conn *c;
	nghttp2_session *down, *up;
	struct h2_stream *first;
	size_t resets, finished;
	bool is_leaving;
};

/* ---- memory that is wiped, since nghttp2 copies fields */

static void *wiped_malloc(size_t n, void *arg)
{
	(void)arg;
	return mem_new(n, 1);
}

static void wiped_free(void *p, void *arg)
{
	(void)arg;
	if (p)
		explicit_bzero(p, malloc_usable_size(p));
	free(p);
}

static void *wiped_calloc(size_t n, size_t size, void *arg)
{
	(void)arg;
	return mem_new(n, size);
}

static void *wiped_realloc(void *p, size_t n, void *arg)
{
	void *q = wiped_malloc(n, arg);

	if (p) {
		size_t old = malloc_usable_size(p);

		memcpy(q, p, old < n ? old : n);
	}
	wiped_free(p, arg);
	return q;
}

static nghttp2_mem memory = {
	.malloc = wiped_malloc, .free = wiped_free, .calloc = wiped_calloc, .realloc = wiped_realloc
};

/* ---- streams */

static struct h2_stream *stream_new(struct h2 *h, int32_t id)
{
	struct h2_stream *s = mem_new(1, sizeof(*s));

	s->h = h;
	s->down_id = id;
	s->up.q = FIFO(STREAM_WINDOW);
	s->down.q = FIFO(STREAM_WINDOW);
	s->held = FIFO(GIT_COMMANDS_BYTES + STREAM_ROOM);
	s->next = h->first;
	s->link = &h->first;
	if (s->next)
		s->next->link = &s->next;
	h->first = s;
	exchange_begin(&s->x, &h->c->way, h->c->seal->rules, conn_exchange_event, h->c);
	return s;
}

static void h2_stream_free(struct h2_stream *s)
{
	exchange_end(&s->x);
	pile_done(&s->pile);
	fifo_done(&s->up.q);
	fifo_done(&s->down.q);
	fifo_done(&s->held);
	*s->link = s->next;
	if (s->next)
		s->next->link = s->link;
	free(s);
}

static void reset(nghttp2_session *session, int32_t id, uint32_t code)
{
	if (id)
		(void)nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id, code);
}

/* A data source for one lane: what is there, or later, or the end. */
static ssize_t take_lane(struct lane *l, nghttp2_session *from, int32_t from_id, uint8_t *buf,
			 size_t n, uint32_t *flags)
{
	struct str v = fifo_view(&l->q);
	size_t back;

	if (v.n == 0 && !l->is_ended)
		return NGHTTP2_ERR_DEFERRED;
	if (v.n > n)
		v.n = n;
	if (v.n > 0)
		memcpy(buf, v.p, v.n);
	fifo_take(&l->q, v.n);
	if (l->q.n == 0 && l->is_ended)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	/* Values may be shorter than their placeholders: when all is passed on, all is given back. */
	back = l->q.n == 0 || v.n > l->owed ? l->owed : v.n;
	l->owed -= back;
	if (back > 0 && from_id)
		(void)nghttp2_session_consume(from, from_id, back);
	return (ssize_t)v.n;
}

/* NOLINTNEXTLINE(readability-function-size): nghttp2 says what the parameters are */
static ssize_t read_up(nghttp2_session *session, int32_t id, uint8_t *buf, size_t n,
		       uint32_t *flags, nghttp2_data_source *source, void *user)
{
	struct h2_stream *s = source->ptr;

	(void)session;
	(void)id;
	(void)user;
	return take_lane(&s->up, s->h->down, s->down_id, buf, n, flags);
}

static size_t make_fields(const struct http_head *h, const struct pile *from, nghttp2_nv *nv,
			  char names[][64]);

/* The trailers of the answer, masked like its head. */
static void submit_trailers(struct h2_stream *s)
{
	static struct http_head in, out;
	nghttp2_nv nv[HTTP_FIELDS_MAX];
	static char names[HTTP_FIELDS_MAX][64];
	struct err e = ERR_INIT;
	char status[16];
	size_t n;

	(void)snprintf(status, sizeof(status), "%03u", s->x.code);
	pile_add(&s->pile, STR(":status"), str_of(status)); /* so that it reads as a head */
	if (pile_response(&s->pile, &in, &e) < 0 || exchange_response(&s->x, &in, &out) < 0) {
		exchange_fail(&s->x, 502, e.msg); /* unless the exchange has said why */
		reset(s->h->down, s->down_id, NGHTTP2_INTERNAL_ERROR);
		return;
	}
	n = make_fields(&out, &s->pile, nv, names);
	(void)nghttp2_submit_trailer(s->h->down, s->down_id, nv, n);
}

/* NOLINTNEXTLINE(readability-function-size) */
static ssize_t read_down(nghttp2_session *session, int32_t id, uint8_t *buf, size_t n,
			 uint32_t *flags, nghttp2_data_source *source, void *user)
{
	struct h2_stream *s = source->ptr;
	ssize_t r = take_lane(&s->down, s->h->up, s->up_id, buf, n, flags);

	(void)session;
	(void)id;
	(void)user;
	if (r >= 0 && (*flags & NGHTTP2_DATA_FLAG_EOF) && s->has_trailers) {
		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		submit_trailers(s);
	}
	return r;
}

/* ---- heads */

static nghttp2_nv pair(struct str name, struct str value, bool is_made)
{
	return (nghttp2_nv){ .name = (uint8_t *)(uintptr_t)name.p,
			     .namelen = name.n,
			     .value = (uint8_t *)(uintptr_t)value.p,
			     .valuelen = value.n,
			     /* A value we made holds a secret: not for the table both ends keep. */
			     .flags = is_made ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE };
}

static bool is_within(const struct pile *p, struct str s)
{
	return s.p >= p->text.p && s.p <= p->text.p + p->text.n;
}

/* Fields but Host, in lower case. */
static size_t make_fields(const struct http_head *h, const struct pile *from, nghttp2_nv *nv,
			  char names[][64])
{
	size_t n = 0;

	for (size_t i = 0; i < h->n; i++) {
		struct str name = h->v[i].name;

		if (str_is_nocase(name, "Host"))
			continue;
		if (!is_within(from, name) && name.n < 64) { /* ours: in capitals */
			for (size_t k = 0; k < name.n; k++)
				names[n][k] = (char)(name.p[k] | 0x20);
			name.p = names[n];
		}
		nv[n++] = pair(name, h->v[i].value, !is_within(from, h->v[i].value));
	}
	return n;
}

static void submit_request(struct h2_stream *s)
{
	nghttp2_nv nv[HTTP_FIELDS_MAX + 4];
	static char names[HTTP_FIELDS_MAX][64];
	nghttp2_data_provider body = { .source.ptr = s, .read_callback = read_up };
	bool has_body = !s->up.is_ended || s->up.q.n > 0;
	struct str target = s->out.target;
	size_t n;

	nv[0] = pair(STR(":method"), s->out.method, false);
	nv[1] = pair(STR(":scheme"), STR("https"), false);
	nv[2] = pair(STR(":authority"), http_field_first(&s->out, "Host")->value, false);
	nv[3] = pair(STR(":path"), target, !is_within(&s->pile, target));
	n = 4 + make_fields(&s->out, &s->pile, nv + 4, names);
	s->up_id = nghttp2_submit_request(s->h->up, NULL, nv, n, has_body ? &body : NULL, s);
	if (s->up_id < 0) {
		s->up_id = 0;
		reset(s->h->down, s->down_id, NGHTTP2_REFUSED_STREAM);
	}
	pile_clear(&s->pile); /* nghttp2 has its copy; the answer comes here */
}

static void answer(struct h2_stream *s)
{
	_cleanup_(buf_done) struct buf body = BUF(4 * MIB);
	nghttp2_data_provider source = { .source.ptr = s, .read_callback = read_down };
	const char *type;
	unsigned code = exchange_refusal(&s->x, &type, &body);
	char status[16], length[32];
	nghttp2_nv nv[3];

	(void)snprintf(status, sizeof(status), "%03u", code);
	(void)snprintf(length, sizeof(length), "%zu", body.n);
	nv[0] = pair(STR(":status"), str_of(status), false);
	nv[1] = pair(STR("content-type"), str_of(type), false);
	nv[2] = pair(STR("content-length"), str_of(length), false);
	if (!s->x.is_head)
		fifo_force(&s->down.q, buf_cstr(&body), body.n);
	s->down.is_ended = true;
	s->has_answer = true;
	(void)nghttp2_submit_response(s->h->down, s->down_id, nv, 3, s->x.is_head ? NULL : &source);
}

/* Refused or failed: an answer of ours while there was none, else the stream is cut off. */
static void give_up(struct h2_stream *s, unsigned code, const char *why)
{
	exchange_fail(&s->x, code, why);
	reset(s->h->up, s->up_id, NGHTTP2_CANCEL);
	if (s->has_answer)
		reset(s->h->down, s->down_id, NGHTTP2_INTERNAL_ERROR);
	else
		answer(s);
}

static void begin_request(struct h2_stream *s)
{
	static struct http_head in;
	struct err e = ERR_INIT;
	int r = pile_request(&s->pile, &in, &e);

	if (r < 0) {
		give_up(s, 400, e.msg);
		return;
	}
	r = exchange_request(&s->x, &in, &s->out);
	if (r < 0)
		give_up(s, s->x.code, s->x.why);
	else if (r == 1)
		s->is_held = true;
	else
		submit_request(s);
}

static void begin_answer(struct h2_stream *s)
{
	static struct http_head in, out;
	static char names[HTTP_FIELDS_MAX][64];
	nghttp2_nv nv[HTTP_FIELDS_MAX + 1];
	nghttp2_data_provider source = { .source.ptr = s, .read_callback = read_down };
	struct err e = ERR_INIT;
	char status[16];
	size_t n;

	if (pile_response(&s->pile, &in, &e) < 0) {
		give_up(s, 502, e.msg);
		return;
	}
	if (in.status < 200)
		return; /* the final one follows */
	if (exchange_response(&s->x, &in, &out) < 0) {
		give_up(s, s->x.code, s->x.why);
		return;
	}
	(void)snprintf(status, sizeof(status), "%03u", in.status);
	nv[0] = pair(STR(":status"), str_of(status), false);
	n = 1 + make_fields(&out, &s->pile, nv + 1, names);
	s->has_answer = true;
	(void)nghttp2_submit_response(s->h->down, s->down_id, nv, n, &source);
}

/* ---- bodies */

static void add_up(struct h2_stream *s, const char *p, size_t n)
{
	struct str out;

	if (exchange_up(&s->x, p, n, &out) < 0) {
		give_up(s, s->x.code, s->x.why);
		return;
	}
	fifo_force(&s->up.q, out.p, out.n);
	if (s->up_id)
		(void)nghttp2_session_resume_data(s->h->up, s->up_id);
}

/* Judged and allowed, or its length is known: what was held goes out. */
static void release(struct h2_stream *s)
{
	struct str all = fifo_view(&s->held);
	char length[32];

	s->is_held = false;
	add_up(s, all.p, all.n);
	fifo_done(&s->held);
	if (s->x.is_refused)
		return;
	if (s->x.is_resized) { /* exchange_request() leaves room for two fields */
		(void)snprintf(length, sizeof(length), "%llu",
			       (unsigned long long)exchange_length(&s->x));
		s->out.v[s->out.n++] = (struct http_field){ .name = STR("content-length"),
							    .value = str_of(length) };
	}
	submit_request(s);
}

static void end_up(struct h2_stream *s)
{
	struct str rest;

	if (s->is_held && !s->x.is_refused) {
		if (exchange_hold_end(&s->x) < 0)
			give_up(s, s->x.code, s->x.why);
		else
			release(s);
	}
	s->up.is_ended = true;
	if (s->x.is_refused)
		return;
	exchange_up_end(&s->x, &rest);
	fifo_force(&s->up.q, rest.p, rest.n);
	if (s->up_id)
		(void)nghttp2_session_resume_data(s->h->up, s->up_id);
}

/* While a push is not judged its bytes are kept here and its window stays open. */
static void hold(struct h2_stream *s, const char *p, size_t n)
{
	int r;

	(void)nghttp2_session_consume(s->h->down, s->down_id, n);
	if (n > fifo_room(&s->held)) {
		give_up(s, 413, "the commands of a push are too long");
		return;
	}
	fifo_add(&s->held, p, n);
	r = exchange_hold(&s->x, p, n);
	if (r < 0)
		give_up(s, s->x.code, s->x.why);
	else if (r == 1)
		release(s);
}

static void end_down(struct h2_stream *s)
{
	struct str rest;

	if (s->x.is_refused)
		return;
	if (exchange_down_end(&s->x, &rest) < 0) {
		give_up(s, s->x.code, s->x.why);
		return;
	}
	fifo_force(&s->down.q, rest.p, rest.n);
	s->down.is_ended = true;
	(void)nghttp2_session_resume_data(s->h->down, s->down_id);
}

/* ---- what nghttp2 tells of the client */

static int down_begin(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	(void)nghttp2_session_set_stream_user_data(session, frame->hd.stream_id,
						   stream_new(user, frame->hd.stream_id));
	return 0;
}

static struct h2_stream *stream_of(nghttp2_session *session, int32_t id)
{
	return id ? nghttp2_session_get_stream_user_data(session, id) : NULL;
}

/* NOLINTNEXTLINE(readability-function-size) */
static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t n_name, const uint8_t *value, size_t n_value, uint8_t flags, void *user)
{
	struct h2_stream *s = stream_of(session, frame->hd.stream_id);
	const struct h2 *h = user;

	(void)flags;
	/* Trailers of a request are dropped, as in HTTP/1. */
	if (s && !(session == h->down && frame->headers.cat != NGHTTP2_HCAT_REQUEST))
		pile_add(&s->pile, (struct str){ .p = (const char *)name, .n = n_name },
			 (struct str){ .p = (const char *)value, .n = n_value });
	return 0;
}

static int down_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct h2_stream *s = stream_of(session, frame->hd.stream_id);

	(void)user;
	if (s == NULL || (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA))
		return 0;
	if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
		s->up.is_ended = frame->hd.type == NGHTTP2_HEADERS &&
				 frame->headers.cat == NGHTTP2_HCAT_REQUEST;
	if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		begin_request(s);
	if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
		end_up(s);
	return 0;
}

static int down_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p,
		     size_t n, void *user)
{
	struct h2_stream *s = stream_of(session, id);

	(void)flags;
	(void)user;
	if (s == NULL || s->x.is_refused) {
		(void)nghttp2_session_consume(session, id, n);
		return 0;
	}
	if (s->is_held) {
		hold(s, (const char *)p, n);
		return 0;
	}
	s->up.owed += n;
	add_up(s, (const char *)p, n);
	return 0;
}

static int down_closed(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
	struct h2_stream *s = stream_of(session, id);
	struct h2 *h = user;

	if (s == NULL)
		return 0;
	h->resets += code != NGHTTP2_NO_ERROR;
	h->finished += code == NGHTTP2_NO_ERROR;
	s->down_id = 0;
	if (s->up_id) {
		(void)nghttp2_session_set_stream_user_data(h->up, s->up_id, NULL);
		reset(h->up, s->up_id, code ? code : NGHTTP2_CANCEL);
	}
	h2_stream_free(s);
	return 0;
}

/* ---- what it tells of the server */

static int up_begin(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct h2_stream *s = stream_of(session, frame->hd.stream_id);

	(void)user;
	if (s)
		pile_clear(&s->pile);
	return 0;
}

static int up_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct h2_stream *s = stream_of(session, frame->hd.stream_id);

	(void)user;
	if (s == NULL || (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA))
		return 0;
	if (frame->hd.type == NGHTTP2_HEADERS && s->has_answer)
		s->has_trailers = s->pile.n > 0;
	else if (frame->hd.type == NGHTTP2_HEADERS)
		begin_answer(s);
	if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
		end_down(s);
	return 0;
}

static int up_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n,
		   void *user)
{
	struct h2_stream *s = stream_of(session, id);
	struct str out;

	(void)flags;
	(void)user;
	if (s == NULL || s->x.is_refused || !s->has_answer) {
		(void)nghttp2_session_consume(session, id, n);
		return 0;
	}
	if (exchange_down(&s->x, (const char *)p, n, &out) < 0) {
		(void)nghttp2_session_consume(session, id, n);
		give_up(s, s->x.code, s->x.why);
		return 0;
	}
	/* An answer that is held as a whole must not wait for its own window. */
	if (s->x.is_login || s->x.is_watched)
		(void)nghttp2_session_consume(session, id, n);
	else
		s->down.owed += n;
	fifo_force(&s->down.q, out.p, out.n);
	(void)nghttp2_session_resume_data(s->h->down, s->down_id);
	return 0;
}

static void lose_stream(struct h2_stream *s, uint32_t code)
{
	char why[120];

	(void)snprintf(why, sizeof(why), "the server ended the stream without an answer (%s)",
		       nghttp2_http2_strerror(code));
	give_up(s, 502, why);
}

static int up_closed(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
	struct h2_stream *s = stream_of(session, id);

	(void)user;
	if (s == NULL)
		return 0;
	s->up_id = 0;
	if (s->x.is_refused || s->down.is_ended)
		return 0;
	if (s->has_answer)
		reset(s->h->down, s->down_id, code ? code : NGHTTP2_INTERNAL_ERROR);
	else
		lose_stream(s, code);
	return 0;
}

/* ---- life */

static nghttp2_session *open_session(struct h2 *h, bool is_down)
{
	nghttp2_session_callbacks *cb = NULL;
	nghttp2_option *o = NULL;
	nghttp2_session *s = NULL;

	bug_on(nghttp2_session_callbacks_new(&cb) || nghttp2_option_new(&o));
	nghttp2_option_set_no_auto_window_update(o, 1);
	nghttp2_option_set_max_outbound_ack(o, 1000);
	nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
	nghttp2_session_callbacks_set_on_begin_headers_callback(cb,
								is_down ? down_begin : up_begin);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, is_down ? down_frame : up_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb,
								  is_down ? down_data : up_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb,
							       is_down ? down_closed : up_closed);
	bug_on(is_down ? nghttp2_session_server_new3(&s, cb, h, o, &memory)
		       : nghttp2_session_client_new3(&s, cb, h, o, &memory));
	nghttp2_option_del(o);
	nghttp2_session_callbacks_del(cb);
	return s;
}

struct h2 *h2_new(struct conn *c)
{
	static const nghttp2_settings_entry down[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HTTP_HEAD_MAX }
	};
	static const nghttp2_settings_entry up[] = {
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HTTP_HEAD_MAX }
	};
	struct h2 *h = mem_new(1, sizeof(*h));

	h->c = c;
	h->down = open_session(h, true);
	h->up = open_session(h, false);
	(void)nghttp2_submit_settings(h->down, NGHTTP2_FLAG_NONE, down, ARRAY_LEN(down));
	(void)nghttp2_submit_settings(h->up, NGHTTP2_FLAG_NONE, up, ARRAY_LEN(up));
	(void)nghttp2_session_set_local_window_size(h->down, NGHTTP2_FLAG_NONE, 0, WINDOW);
	(void)nghttp2_session_set_local_window_size(h->up, NGHTTP2_FLAG_NONE, 0, WINDOW);
	return h;
}

void h2_free(struct h2 *h)
{
	if (h == NULL)
		return;
	for (struct h2_stream *s = h->first, *next; s; s = next) {
		next = s->next;
		h2_stream_free(s);
	}
	nghttp2_session_del(h->down);
	nghttp2_session_del(h->up);
	free(h);
}

/* ---- work */

static void leave(struct h2 *h, uint32_t code)
{
	if (h->is_leaving)
		return;
	h->is_leaving = true;
	(void)nghttp2_session_terminate_session(h->down, code);
	(void)nghttp2_session_terminate_session(h->up, NGHTTP2_NO_ERROR);
}

/* What came in goes to its session. False when nothing came. */
static bool receive(struct h2 *h, nghttp2_session *session, struct stream *from)
{
	struct str v = fifo_view(&from->in);
	ssize_t n;

	if (v.n == 0)
		return false;
	n = nghttp2_session_mem_recv(session, (const uint8_t *)v.p, v.n);
	fifo_take(&from->in, v.n); /* nghttp2 takes all of it or fails */
	if (n < 0)
		leave(h, NGHTTP2_PROTOCOL_ERROR);
	return true;
}

static bool transmit(nghttp2_session *session, struct stream *to)
{
	bool has_moved = false;

	while (fifo_room(&to->out) > STREAM_ROOM / 4 && !to->is_dead) {
		const uint8_t *p;
		ssize_t n = nghttp2_session_mem_send(session, &p);

		if (n <= 0)
			break;
		fifo_force(&to->out, p, (size_t)n);
		has_moved = true;
	}
	return has_moved;
}

/* The server is gone: what has no answer gets ours, what has one is cut off. */
static void lose_server(struct h2 *h)
{
	for (struct h2_stream *s = h->first; s; s = s->next) {
		bool is_whole = s->down.is_ended || s->x.is_refused;

		s->up_id = 0;
		if (!is_whole)
			give_up(s, 502, "the server closed the connection");
	}
	if (h->first == NULL)
		leave(h, NGHTTP2_NO_ERROR);
}

bool h2_work(struct h2 *h)
{
	struct conn *c = h->c;
	bool has_moved = receive(h, h->down, &c->client);

	has_moved |= receive(h, h->up, &c->server);
	if (h->resets > RESETS && h->resets > h->finished && !h->is_leaving) {
		conn_event(c, "too_many_resets", "the client resets more streams than it finishes");
		leave(h, NGHTTP2_ENHANCE_YOUR_CALM);
	}
	if (c->server.is_eof && c->server.in.n == 0 && !h->is_leaving)
		lose_server(h);
	has_moved |= transmit(h->up, &c->server);
	has_moved |= transmit(h->down, &c->client);
	if (!has_moved &&
	    (c->client.is_eof || c->client.is_dead ||
	     (!nghttp2_session_want_read(h->down) && !nghttp2_session_want_write(h->down)))) {
		c->phase = CONN_LEAVE;
		return true;
	}
	return has_moved;
}
