/* SPDX-License-Identifier: Apache-2.0 */
/* remote/h2.c - see link.h
 *
 * nghttp2 does the protocol; this file bounds it (streams, header sizes, windows), moves its bytes over two
 * descriptors and turns its callbacks into the five of link.h. A stream's window is opened by hand, when its bytes have
 * really gone on; the link's own at once, so that streams nobody reads hold up nobody else. What a peer can make us
 * hold is the sum of the streams' windows and no more.
 */
#include <fcntl.h>
#include <nghttp2/nghttp2.h>
#include <stdarg.h>

#include "base/io.h"
#include "base/num.h"
#include "remote/link.h"

#define STREAM_WINDOW (64 * 1024)
#define LINK_WINDOW (4 * 1024 * 1024)
#define STREAMS_MAX 4096
#define FRAME_MAX 65536
#define OUT_FULL ((size_t)128 * 1024)
#define OUT_MAX ((size_t)1024 * 1024)

struct link {
	enum link_side side;
	struct loop *loop;
	nghttp2_session *h2;
	int in, out;
	struct watch *on_in, *on_out;
	const struct link_ops *ops;
	void *arg;
	struct buf pending; /* bytes for the peer */
	size_t pending_at;
	bool is_busy; /* nghttp2 is calling us */
	bool is_deaf; /* the peer reads no more */
	bool is_down;
	bool may_part, wants_part, has_said, has_heard; /* farewell: said last, and heard */
	char *chunk;                                    /* for reading */
	struct head head;                               /* being received */
	struct stream *streams;
	size_t n_streams;
};

struct stream {
	struct link *link;
	int32_t id;
	stream_pull *pull;
	void *arg;
	bool has_trailers;
	struct head trailers;
	struct stream *next, *prev;
};

/* ---- heads ---- */

const char *head_get(const struct head *h, const char *name)
{
	for (size_t i = 0; i < h->n; i++)
		if (str_eq(h->v[i].name, name))
			return h->v[i].value;
	return NULL;
}

int head_number(const struct head *h, const char *name, uint64_t max, uint64_t *ret)
{
	const char *text = head_get(h, name);
	struct err ignored;

	return text && num_parse(text, 0, max, ret, &ignored) == 0 ? 0 : -EBADMSG;
}

void head_add(struct head *h, const char *name, const char *fmt, ...)
{
	struct head_field *f = &h->v[h->n];
	va_list ap;

	bug_on(h->n == HEAD_FIELDS);
	(void)snprintf(f->name, sizeof(f->name), "%s", name);
	va_start(ap, fmt);
	(void)vsnprintf(f->value, sizeof(f->value), fmt, ap); /* error texts may lose their end */
	va_end(ap);
	/* A field value is printable; what is not would end the link on the other side. */
	for (char *p = f->value; *p; p++)
		if (*p < ' ' || *p > '~')
			*p = '?';
	h->n++;
}

static bool take_text(char *to, size_t size, const uint8_t *p, size_t n)
{
	if (n >= size)
		return false;
	for (size_t i = 0; i < n; i++)
		if (p[i] < ' ' || p[i] > '~')
			return false;
	memcpy(to, p, n);
	to[n] = '\0';
	return true;
}

/* One field of a head. Every name we do not know, every value that does not fit, is the end. */
static bool take_field(struct head *h, const uint8_t *name, size_t n_name, const uint8_t *value,
		       size_t n_value)
{
	char key[16];
	uint64_t status;
	struct err ignored;

	if (!take_text(key, sizeof(key), name, n_name))
		return false;
	if (str_eq(key, ":method"))
		return take_text(h->method, sizeof(h->method), value, n_value);
	if (str_eq(key, ":path"))
		return take_text(h->path, sizeof(h->path), value, n_value);
	if (str_eq(key, ":scheme") || str_eq(key, ":authority"))
		return true;
	if (h->n == HEAD_FIELDS)
		return false;
	if (!take_text(h->v[h->n].value, HEAD_VALUE, value, n_value))
		return false;
	if (str_eq(key, ":status")) {
		if (num_parse(h->v[h->n].value, 100, 599, &status, &ignored) < 0)
			return false;
		h->status = (unsigned)status;
		return true;
	}
	if (key[0] == ':')
		return false;
	memcpy(h->v[h->n].name, key, sizeof(key));
	h->n++;
	return true;
}

static nghttp2_nv field(const char *name, const char *value)
{
	return (nghttp2_nv){ .name = (uint8_t *)(uintptr_t)name,
			     .value = (uint8_t *)(uintptr_t)value,
			     .namelen = strlen(name),
			     .valuelen = strlen(value) };
}

static size_t put_fields(nghttp2_nv *nv, size_t n, const struct head *h)
{
	for (size_t i = 0; i < h->n; i++)
		nv[n++] = field(h->v[i].name, h->v[i].value);
	return n;
}

/* ---- life ---- */

static void go_down(struct link *l, const char *why)
{
	if (l->is_down)
		return;
	l->is_down = true;
	watch_set(l->on_in, false);
	watch_set(l->on_out, false);
	l->ops->on_down(l->arg, why);
}

static struct stream *add_stream(struct link *l, int32_t id)
{
	struct stream *s = mem_new(1, sizeof(*s));

	*s = (struct stream){ .link = l, .id = id, .next = l->streams };
	if (l->streams)
		l->streams->prev = s;
	l->streams = s;
	l->n_streams++;
	return s;
}

static void drop_stream(struct link *l, struct stream *gone)
{
	if (gone->prev)
		gone->prev->next = gone->next;
	else
		l->streams = gone->next;
	if (gone->next)
		gone->next->prev = gone->prev;
	l->n_streams--;
	free(gone);
}

/* ---- out ---- */

/* Everything nghttp2 wants to say goes into `pending`, as long as that is not full; then out. */
static void fill(struct link *l)
{
	while (l->pending.n < OUT_FULL && !l->has_said) {
		const uint8_t *p;
		ssize_t n;

		l->is_busy = true;
		n = nghttp2_session_mem_send(l->h2, &p);
		l->is_busy = false;
		if (n < 0) {
			go_down(l, nghttp2_strerror((int)n));
			return;
		}
		if (n == 0)
			return;
		buf_add(&l->pending, p, (size_t)n);
		bug_on(l->pending.is_over);
	}
}

static void compact(struct link *l)
{
	if (l->pending_at == 0)
		return;
	memmove(l->pending.p, l->pending.p + l->pending_at, l->pending.n - l->pending_at);
	l->pending.n -= l->pending_at;
	l->pending_at = 0;
}

static void pump(struct link *l)
{
	while (!l->is_down) {
		size_t left;
		ssize_t n;

		compact(l);
		fill(l);
		left = l->pending.n;
		if (l->is_down || left == 0)
			break;
		n = l->is_deaf ? (ssize_t)left : write(l->out, l->pending.p, left);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			watch_set(l->on_out, true);
			return;
		}
		if (n < 0) {
			/* Nobody reads; what the peer said before it went is still to be heard. */
			l->is_deaf = true;
			n = (ssize_t)left;
		}
		l->pending_at += (size_t)n;
	}
	if (!l->is_down)
		watch_set(l->on_out, false);
}

static void kick(struct link *l)
{
	if (!l->is_busy && !l->is_down)
		pump(l);
}

bool link_is_flushed(const struct link *l)
{
	return l->is_down || (l->pending.n == l->pending_at && !nghttp2_session_want_write(l->h2));
}

/* Farewell is the last thing that is said, and when it has been heard too there is nothing on the way. The owner may free us
 * here, so this is the last thing that is done. */
static void try_part(struct link *l)
{
	if (l->is_down || !l->wants_part)
		return;
	if (!l->has_said && link_is_flushed(l)) {
		if (nghttp2_submit_goaway(l->h2, 0, nghttp2_session_get_last_proc_stream_id(l->h2),
					  NGHTTP2_NO_ERROR, NULL, 0) != 0) {
			go_down(l, "it cannot part");
			return;
		}
		fill(l);
		l->has_said = true;
		pump(l);
	}
	if (l->is_down || !l->has_said || !l->has_heard || l->pending.n != l->pending_at)
		return;
	watch_set(l->on_in, false);
	l->ops->on_parted(l->arg);
}

static void on_out(void *arg)
{
	pump(arg);
	try_part(arg);
}

void link_part(struct link *l)
{
	l->wants_part = true;
	if (!l->is_busy)
		try_part(l);
}

void link_may_part(struct link *l)
{
	l->may_part = true;
}

/* ---- in ---- */

int link_feed(struct link *l, const void *p, size_t n)
{
	ssize_t r;

	l->is_busy = true;
	r = nghttp2_session_mem_recv(l->h2, p, n);
	l->is_busy = false;
	if (r < 0)
		go_down(l, nghttp2_strerror((int)r));
	if (!l->is_down)
		pump(l);
	/* What is against the protocol is answered with a farewell; after that there is nothing to say or hear. */
	if (!l->is_down && !l->wants_part && !nghttp2_session_want_read(l->h2) &&
	    !nghttp2_session_want_write(l->h2))
		go_down(l, "protocol error");
	if (l->is_down)
		return -EPIPE;
	try_part(l);
	return 0;
}

static void on_in(void *arg)
{
	struct link *l = arg;
	ssize_t n = read(l->in, l->chunk, FRAME_MAX);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		go_down(l, "the stream has ended");
	else
		(void)link_feed(l, l->chunk, (size_t)n);
}

/* ---- nghttp2's callbacks ---- */

static int cb_begin(nghttp2_session *h2, const nghttp2_frame *f, void *arg)
{
	struct link *l = arg;

	l->head = (struct head){ 0 };
	if (l->side == LINK_OUTER)
		return 0;
	if (f->headers.cat == NGHTTP2_HCAT_REQUEST)
		nghttp2_session_set_stream_user_data(h2, f->hd.stream_id,
						     add_stream(l, f->hd.stream_id));
	return 0;
}

/* NOLINTNEXTLINE(readability-function-size): nghttp2 has it so */
static int cb_header(nghttp2_session *h2, const nghttp2_frame *f, const uint8_t *name,
		     size_t n_name, const uint8_t *value, size_t n_value, uint8_t flags, void *arg)
{
	struct link *l = arg;

	return take_field(&l->head, name, n_name, value, n_value) ? 0
								  : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int ended(struct link *l, struct stream *s, const nghttp2_frame *f)
{
	return f->hd.flags & NGHTTP2_FLAG_END_STREAM ? l->ops->on_end(l->arg, s) : 0;
}

static int cb_frame(nghttp2_session *h2, const nghttp2_frame *f, void *arg)
{
	struct link *l = arg;
	struct stream *s =
		f->hd.stream_id ? nghttp2_session_get_stream_user_data(h2, f->hd.stream_id) : NULL;
	int r = 0;

	if (f->hd.type == NGHTTP2_GOAWAY) {
		if (!l->may_part && !l->wants_part)
			return NGHTTP2_ERR_CALLBACK_FAILURE;
		l->has_heard = l->wants_part = true;
		return 0;
	}
	if (s == NULL)
		return 0;
	if (f->hd.type == NGHTTP2_HEADERS) {
		bool is_trailer = f->headers.cat == NGHTTP2_HCAT_HEADERS;

		r = l->ops->on_head(l->arg, s, &l->head, is_trailer);
		if (r >= 0)
			r = ended(l, s, f);
	} else if (f->hd.type == NGHTTP2_DATA) {
		r = ended(l, s, f);
	}
	return r < 0 ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int cb_data(nghttp2_session *h2, uint8_t flags, int32_t id, const uint8_t *p, size_t n,
		   void *arg)
{
	struct link *l = arg;
	struct stream *s = nghttp2_session_get_stream_user_data(h2, id);

	if (s == NULL)
		return nghttp2_session_consume(h2, id, n);
	if (nghttp2_session_consume_connection(h2, n) != 0)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	return l->ops->on_data(l->arg, s, p, n) < 0 ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int cb_close(nghttp2_session *h2, int32_t id, uint32_t code, void *arg)
{
	struct link *l = arg;
	struct stream *s = nghttp2_session_get_stream_user_data(h2, id);

	if (s == NULL)
		return 0;
	nghttp2_session_set_stream_user_data(h2, id, NULL);
	l->ops->on_gone(l->arg, s);
	drop_stream(l, s);
	return 0;
}

/* NOLINTNEXTLINE(readability-function-size): nghttp2 has it so */
static ssize_t cb_length(nghttp2_session *h2, uint8_t type, int32_t id, int32_t link_window,
			 int32_t stream_window, uint32_t frame_max, void *arg)
{
	return FRAME_MAX;
}

/* NOLINTNEXTLINE(readability-function-size): nghttp2 has it so */
static ssize_t cb_pull(nghttp2_session *h2, int32_t id, uint8_t *p, size_t n, uint32_t *flags,
		       nghttp2_data_source *src, void *arg)
{
	struct stream *s = src->ptr;
	ssize_t r = s->pull ? s->pull(s->arg, p, n) : s->has_trailers ? PULL_END : 0;

	if (r > 0)
		return r;
	if (r == 0)
		return NGHTTP2_ERR_DEFERRED;
	if (r == PULL_RESET)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* of this stream alone */
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (s->has_trailers) {
		nghttp2_nv nv[HEAD_FIELDS];

		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		if (nghttp2_submit_trailer(h2, id, nv, put_fields(nv, 0, &s->trailers)) < 0)
			return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	}
	return 0;
}

static nghttp2_session_callbacks *callbacks(void)
{
	nghttp2_session_callbacks *cb;

	bug_on(nghttp2_session_callbacks_new(&cb) != 0);
	nghttp2_session_callbacks_set_on_begin_headers_callback(cb, cb_begin);
	nghttp2_session_callbacks_set_on_header_callback(cb, cb_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, cb_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, cb_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, cb_close);
	nghttp2_session_callbacks_set_data_source_read_length_callback(cb, cb_length);
	return cb;
}

static void open_session(struct link *l)
{
	nghttp2_session_callbacks *cb = callbacks();
	nghttp2_option *opt;
	nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
		  l->side == LINK_OUTER ? 0 : STREAMS_MAX },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW },
		{ NGHTTP2_SETTINGS_MAX_FRAME_SIZE, FRAME_MAX },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, 8192 },
		{ NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, 4096 },
	};
	int r;

	bug_on(nghttp2_option_new(&opt) != 0);
	nghttp2_option_set_no_auto_window_update(opt, 1);
	nghttp2_option_set_peer_max_concurrent_streams(opt, STREAMS_MAX);
	nghttp2_option_set_max_outbound_ack(opt, 64);
	r = l->side == LINK_OUTER ? nghttp2_session_client_new2(&l->h2, cb, l, opt)
				  : nghttp2_session_server_new2(&l->h2, cb, l, opt);
	bug_on(r != 0);
	nghttp2_option_del(opt);
	nghttp2_session_callbacks_del(cb);
	/* A client tells of pushes only; a server must not name that setting. */
	r = l->side == LINK_OUTER
		    ? nghttp2_submit_settings(l->h2, 0, settings, ARRAY_LEN(settings))
		    : nghttp2_submit_settings(l->h2, 0, settings + 1, ARRAY_LEN(settings) - 1);
	bug_on(r != 0);
	bug_on(nghttp2_session_set_local_window_size(l->h2, 0, 0, LINK_WINDOW) != 0);
}

struct link *link_new(enum link_side side, struct loop *loop, int take_in, int take_out,
		      const struct link_ops *ops, void *arg)
{
	struct link *l = mem_new(1, sizeof(*l));

	*l = (struct link){ .side = side,
			    .loop = loop,
			    .in = take_in,
			    .out = take_out,
			    .ops = ops,
			    .arg = arg,
			    .is_deaf = take_out < 0,
			    .pending = BUF(OUT_MAX) };
	l->chunk = mem_new(FRAME_MAX, 1);
	open_session(l);
	if (take_in >= 0) {
		(void)fcntl(take_in, F_SETFL, O_NONBLOCK);
		(void)fcntl(take_out, F_SETFL, O_NONBLOCK);
		l->on_in = watch_fd(loop, take_in, WATCH_READ, on_in, l);
		l->on_out = watch_fd(loop, take_out, WATCH_WRITE, on_out, l);
		watch_set(l->on_out, false);
		pump(l);
	}
	return l;
}

void link_free(struct link *l)
{
	if (l == NULL)
		return;
	l->is_down = true;
	while (l->streams) {
		l->ops->on_gone(l->arg, l->streams);
		drop_stream(l, l->streams);
	}
	nghttp2_session_del(l->h2);
	watch_free(l->on_in);
	watch_free(l->on_out);
	if (l->out != l->in)
		fd_close(l->out);
	fd_close(l->in);
	buf_done(&l->pending);
	free(l->chunk);
	free(l);
}

void link_release(struct link *l, int *ret_in, int *ret_out)
{
	*ret_in = l->in;
	*ret_out = l->out;
	l->in = l->out = FD_NONE;
	link_free(l);
}

/* ---- streams ---- */

struct stream *link_request(struct link *l, const struct head *h, stream_pull *pull, void *arg)
{
	nghttp2_nv nv[HEAD_FIELDS + 4];
	struct stream *s;
	size_t n = 0;
	int32_t id;

	if (l->is_down || l->n_streams >= STREAMS_MAX)
		return NULL;
	nv[n++] = field(":method", h->method);
	nv[n++] = field(":scheme", "http");
	nv[n++] = field(":authority", "v");
	nv[n++] = field(":path", h->path);
	n = put_fields(nv, n, h);
	s = add_stream(l, 0);
	s->pull = pull;
	s->arg = arg;
	id = nghttp2_submit_request(
		l->h2, NULL, nv, n,
		pull ? &(nghttp2_data_provider){ .source.ptr = s, .read_callback = cb_pull } : NULL,
		s);
	if (id < 0) {
		drop_stream(l, s);
		return NULL;
	}
	s->id = id;
	kick(l);
	return s;
}

int stream_respond(struct stream *s, const struct head *h, stream_pull *pull, bool stays)
{
	nghttp2_nv nv[HEAD_FIELDS + 1];
	char status[8];
	size_t n = 0;
	int r;

	(void)snprintf(status, sizeof(status), "%u", h->status);
	nv[n++] = field(":status", status);
	n = put_fields(nv, n, h);
	s->pull = pull;
	r = nghttp2_submit_response(
		s->link->h2, s->id, nv, n,
		pull || stays
			? &(nghttp2_data_provider){ .source.ptr = s, .read_callback = cb_pull }
			: NULL);
	kick(s->link);
	return r < 0 ? -EPROTO : 0;
}

int stream_trailers(struct stream *s, const struct head *h)
{
	s->trailers = *h;
	s->has_trailers = true;
	stream_wake(s);
	return 0;
}

void stream_wake(struct stream *s)
{
	(void)nghttp2_session_resume_data(s->link->h2,
					  s->id); /* not deferred: it is asked anyway */
	kick(s->link);
}

void stream_consumed(struct stream *s, size_t n)
{
	if (s->link->is_down)
		return;
	/* A stream that has gone needs no window. */
	(void)nghttp2_session_consume_stream(s->link->h2, s->id, n);
	kick(s->link);
}

void stream_widen(struct stream *s, int32_t window)
{
	if (!s->link->is_down)
		(void)nghttp2_session_set_local_window_size(s->link->h2, 0, s->id, window);
	kick(s->link);
}

void stream_reset(struct stream *s)
{
	if (s->link->is_down)
		return;
	(void)nghttp2_submit_rst_stream(s->link->h2, 0, s->id, NGHTTP2_CANCEL);
	kick(s->link);
}

void stream_set_arg(struct stream *s, void *arg)
{
	s->arg = arg;
}

void *stream_arg(const struct stream *s)
{
	return s->arg;
}
