/* SPDX-License-Identifier: Apache-2.0 */
/* remote/port.c - see port.h */
#include <fcntl.h>
#include <limits.h>
#include <sys/socket.h>

#include "remote/port.h"

#define HOLD_MAX (2 * MIB) /* more than a stream's window */

struct port {
	struct loop *loop;
	struct stream *stream;
	int fd;
	bool is_blocking; /* shared with others, who want it so */
	bool is_socket;
	bool is_ready;
	bool is_last;  /* source: take what is there, then end */
	bool is_ended; /* source: has ended; sink: all written, closed */
	bool is_broken;
	bool is_finishing;
	bool is_orphan; /* frees itself */
	struct watch *watch;
	struct buf held;
	size_t at;
	size_t past; /* of what is held: came on a stream that is no more */
	port_fn *fn;
	void *arg;
};

static bool is_blocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && !(flags & O_NONBLOCK);
}

static void close_fd(struct port *p)
{
	watch_free(p->watch);
	p->watch = NULL;
	fd_close(take_fd(p->fd));
}

void port_free(struct port *p)
{
	if (p == NULL)
		return;
	close_fd(p);
	buf_done(&p->held);
	free(p);
}

void port_is_socket(struct port *p)
{
	p->is_socket = true;
}

void port_option(struct port *p, int level, int name, const void *value, unsigned n)
{
	if (p && p->fd >= 0)
		(void)setsockopt(p->fd, level, name, value, n); /* what it is for is a courtesy */
}

void port_join(struct port *p, struct stream *s)
{
	if (p == NULL)
		return;
	p->stream = s;
	p->past = p->held.n - p->at;
}

/* ---- source ---- */

static void on_readable(void *arg)
{
	struct port *p = arg;

	p->is_ready = true;
	watch_set(p->watch, false);
	if (p->stream)
		stream_wake(p->stream);
}

static struct port *port_new(struct loop *l, int take_fd, int what, watch_fn *fn)
{
	struct port *p = mem_new(1, sizeof(*p));

	*p = (struct port){
		.loop = l, .fd = take_fd, .is_blocking = is_blocking(take_fd), .held = BUF(HOLD_MAX)
	};
	p->watch = watch_fd(l, take_fd, what, fn, p);
	watch_set(p->watch, false);
	return p;
}

struct port *source_new(struct loop *l, int take_fd)
{
	return port_new(l, take_fd, WATCH_READ, on_readable);
}

ssize_t source_pull(void *source, void *buf, size_t n)
{
	struct port *p = source;
	ssize_t r;

	if (p->is_ended)
		return PULL_END;
	if (p->is_blocking && !p->is_ready) {
		watch_set(p->watch, true);
		return 0;
	}
	p->is_ready = false;
	do {
		r = read(p->fd, buf, n);
	} while (r < 0 && errno == EINTR);
	if (r > 0)
		return r;
	if (r < 0 && errno == EAGAIN && !p->is_last) {
		watch_set(p->watch, true);
		return 0;
	}
	p->is_ended = true; /* a terminal whose other side is gone says EIO */
	p->is_broken = r < 0;
	close_fd(p);
	return p->is_broken && p->is_socket ? PULL_RESET : PULL_END;
}

void source_finish(struct port *p)
{
	p->is_last = true;
	p->is_ready = true;
	if (p->stream)
		stream_wake(p->stream);
}

bool source_is_ended(const struct port *p)
{
	return p->is_ended;
}

void source_close(struct port *p)
{
	p->is_ended = true;
	close_fd(p);
}

/* ---- sink ---- */

static void on_writable(void *arg);

struct port *sink_new(struct loop *l, int take_fd)
{
	return port_new(l, take_fd, WATCH_WRITE, on_writable);
}

static void let_go(struct port *p, size_t n)
{
	size_t past = n < p->past ? n : p->past;

	p->past -= past;
	n -= past;
	if (p->stream && n > 0)
		stream_consumed(p->stream, n);
}

static void finish_if_done(struct port *p)
{
	port_fn *fn = p->fn;

	if (!p->is_finishing || p->held.n != p->at || p->is_ended)
		return;
	p->is_ended = true;
	if (p->is_socket && p->fd >= 0)
		(void)shutdown(p->fd, SHUT_WR); /* its reader may have gone */
	close_fd(p);
	p->fn = NULL;
	if (p->is_orphan)
		port_free(p);
	else if (fn)
		fn(p->arg);
}

/* Bytes written, 0 when it would wait; marks it broken when nobody reads. */
static size_t put_some(struct port *p, const char *data, size_t n)
{
	ssize_t r;

	if (p->is_blocking && n > PIPE_BUF)
		n = PIPE_BUF;
	do {
		r = write(p->fd, data, n);
	} while (r < 0 && errno == EINTR);
	if (r >= 0)
		return (size_t)r;
	if (errno != EAGAIN)
		p->is_broken = true;
	return 0;
}

static void drop_held(struct port *p)
{
	let_go(p, p->held.n - p->at);
	p->held.n = p->at = 0;
	close_fd(p);
}

static void on_writable(void *arg)
{
	struct port *p = arg;

	while (p->at < p->held.n) {
		size_t n = put_some(p, p->held.p + p->at, p->held.n - p->at);

		if (p->is_broken)
			break;
		p->at += n;
		let_go(p, n);
		if (n == 0 || p->is_blocking)
			break;
	}
	if (p->is_broken)
		drop_held(p);
	if (p->at == p->held.n) {
		p->held.n = p->at = 0;
		watch_set(p->watch, false);
	}
	finish_if_done(p);
}

int sink_put(struct port *p, const void *data, size_t n)
{
	const char *from = data;

	if (p->is_broken || p->fd < 0) {
		let_go(p, n);
		return -EPIPE;
	}
	while (n > 0 && !p->is_blocking && p->held.n == p->at) {
		size_t k = put_some(p, from, n);

		if (p->is_broken) {
			let_go(p, n);
			drop_held(p);
			return -EPIPE;
		}
		if (k == 0)
			break;
		let_go(p, k);
		from += k;
		n -= k;
	}
	if (n == 0)
		return 0;
	if (p->at > 0) {
		memmove(p->held.p, p->held.p + p->at, p->held.n - p->at);
		p->held.n -= p->at;
		p->at = 0;
	}
	buf_add(&p->held, from, n);
	if (p->held.is_over) /* more than its window: not a peer of ours */
		return -EMSGSIZE;
	watch_set(p->watch, true);
	return 0;
}

void sink_finish(struct port *p, port_fn *fn, void *arg)
{
	p->is_finishing = true;
	p->fn = fn;
	p->arg = arg;
	finish_if_done(p);
}

bool sink_is_done(const struct port *p)
{
	return p->is_ended;
}

void sink_abandon(struct port *p)
{
	if (p == NULL)
		return;
	p->stream = NULL;
	if (p->is_ended || p->is_broken || p->fd < 0 || p->held.n == p->at) {
		port_free(p);
		return;
	}
	p->is_finishing = p->is_orphan = true;
	p->fn = NULL;
}
