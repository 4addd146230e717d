/* SPDX-License-Identifier: Apache-2.0 */
/* keep/feed.c - see feed.h */
#include <fcntl.h>

#include "base/io.h"
#include "keep/feed.h"
#include "keep/relay.h"

#define VIEW_BUF ((size_t)128 * 1024) /* holds a ring and what comes meanwhile */

/* ---- ring ---- */

struct feed *feed_new(struct loop *l, void (*on_room)(void *arg), void *arg)
{
	struct feed *f = mem_new(1, sizeof(*f));

	*f = (struct feed){ .loop = l, .record = RECORD_NONE, .on_room = on_room, .arg = arg };
	return f;
}

static void keep(struct feed *f, const char *p, size_t n)
{
	if (f->ring == NULL)
		f->ring = mem_new(FEED_RING, 1);
	if (n > FEED_RING) {
		p += n - FEED_RING;
		n = FEED_RING;
	}
	for (size_t left = n; left > 0;) {
		size_t part = FEED_RING - f->at < left ? FEED_RING - f->at : left;

		memcpy(f->ring + f->at, p, part);
		f->at = (f->at + part) % FEED_RING;
		p += part;
		left -= part;
	}
	f->n = f->n + n < FEED_RING ? f->n + n : FEED_RING;
}

/* The ring in two pieces, oldest first. */
static void pieces(const struct feed *f, struct iovec ret[2])
{
	size_t begin = f->n < FEED_RING ? 0 : f->at;

	ret[0] = (struct iovec){ f->ring + begin, f->n < FEED_RING ? f->n : FEED_RING - begin };
	ret[1] = (struct iovec){ f->ring, f->n < FEED_RING ? 0 : begin };
}

/* ---- viewers ---- */

static void put(struct viewer *v, const char *p, size_t n)
{
	if (v->is_broken || v->is_behind)
		return;
	if (v->at > 0 && v->at + v->n + n > VIEW_BUF) {
		memmove(v->buf, v->buf + v->at, v->n);
		v->at = 0;
	}
	if (v->n + n > VIEW_BUF) {
		v->is_behind = true;
		return;
	}
	memcpy(v->buf + v->at + v->n, p, n);
	v->n += n;
}

static void put_ring(struct viewer *v, bool is_again)
{
	_cleanup_(buf_done) struct buf out = BUF(VIEW_BUF);
	struct iovec ring[2];
	struct str part[2];
	const char *cut;

	if (v->feed->n == 0)
		return;
	pieces(v->feed, ring);
	/* A ring that has turned begins in the middle of a line, perhaps of an escape sequence. */
	cut = v->feed->n == FEED_RING ? memchr(ring[0].iov_base, '\n', ring[0].iov_len) : NULL;
	for (int i = 0; i < 2; i++)
		part[i] = (struct str){ .p = ring[i].iov_base, .n = ring[i].iov_len };
	if (cut)
		part[0] = str_from(part[0], (size_t)(cut + 1 - part[0].p));
	screen_put_replay(&v->feed->screen, part, is_again, &out);
	put(v, out.p, out.n);
}

static void write_out(struct viewer *v)
{
	while (v->n > 0 && !v->is_broken && !v->held) {
		ssize_t n = relay_write_some(v->out, v->buf + v->at, v->n);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (n < 0) {
			v->is_broken = true;
			v->n = 0;
			break;
		}
		v->at += (size_t)n;
		v->n -= (size_t)n;
	}
	if (v->n == 0)
		v->at = 0;
	if (v->n == 0 && v->is_behind) {
		v->is_behind = false;
		put_ring(v, true);
	}
	watch_set(v->on_out, v->n > 0 && !v->held);
}

void viewer_hold(struct viewer *v, enum viewer_hold why, bool is_held)
{
	v->held = is_held ? v->held | why : v->held & ~(unsigned)why;
	write_out(v);
	if (!v->held && v->feed->on_room)
		v->feed->on_room(v->feed->arg);
}

static void on_out(void *arg)
{
	struct viewer *v = arg;

	write_out(v);
	if (v->feed->on_room)
		v->feed->on_room(v->feed->arg);
}

struct viewer *feed_view(struct feed *f, int take_out, bool sees_past)
{
	struct viewer **slot = NULL, *v;

	for (size_t i = 0; i < FEED_VIEWERS && slot == NULL; i++)
		if (f->viewers[i] == NULL)
			slot = &f->viewers[i];
	if (slot == NULL) {
		fd_close(take_out);
		return NULL;
	}
	v = *slot = mem_new(1, sizeof(*v));
	*v = (struct viewer){ .feed = f,
			      .out = relay_own_description(take_out),
			      .buf = mem_new(VIEW_BUF, 1) };
	v->on_out = watch_fd(f->loop, v->out, WATCH_WRITE, on_out, v);
	if (sees_past)
		put_ring(v, false);
	write_out(v);
	return v;
}

void feed_leave(struct feed *f, struct viewer *v)
{
	for (size_t i = 0; i < FEED_VIEWERS; i++)
		if (f->viewers[i] == v)
			f->viewers[i] = NULL;
	watch_free(v->on_out);
	fd_close(v->out);
	free(v->buf);
	free(v);
	if (f->on_room)
		f->on_room(f->arg);
}

size_t feed_n_viewers(const struct feed *f)
{
	size_t n = 0;

	for (size_t i = 0; i < FEED_VIEWERS; i++)
		n += f->viewers[i] != NULL;
	return n;
}

size_t feed_room(const struct feed *f)
{
	size_t most = 0, n = 0;

	for (size_t i = 0; i < FEED_VIEWERS; i++) {
		const struct viewer *v = f->viewers[i];

		if (v == NULL || v->is_broken)
			continue;
		n++;
		if (!v->is_behind && VIEW_BUF - v->n > most)
			most = VIEW_BUF - v->n;
	}
	return n ? most : SIZE_MAX;
}

/* ---- all of it ---- */

void feed_add(struct feed *f, const char *p, size_t n)
{
	f->bytes += n;
	keep(f, p, n);
	screen_follow(&f->screen, p, n);
	record_add(&f->record, p, n);
	for (size_t i = 0; i < FEED_VIEWERS; i++)
		if (f->viewers[i]) {
			put(f->viewers[i], p, n);
			write_out(f->viewers[i]);
		}
}

void feed_record(struct feed *f, int sessions, uint32_t number)
{
	struct iovec part[2];

	record_open(&f->record, sessions, number);
	if (f->n == 0)
		return;
	pieces(f, part);
	for (int i = 0; i < 2; i++)
		record_add(&f->record, part[i].iov_base, part[i].iov_len);
}

bool feed_drain(struct feed *f, uint64_t until)
{
	bool is_empty = true;

	for (size_t i = 0; i < FEED_VIEWERS; i++) {
		struct viewer *v = f->viewers[i];

		if (v == NULL)
			continue;
		v->held &= ~(unsigned)HOLD_QUESTION; /* a question about a dead command is over */
		if (v->held)
			v->n = 0; /* the terminal is the shell's now; the record has the output */
		write_out(v);
		while (v->n > 0 && !v->is_broken && clock_now() < until) {
			(void)usleep(1000);
			write_out(v);
		}
		is_empty = is_empty && (v->n == 0 || v->is_broken);
	}
	return is_empty;
}

void feed_free(struct feed *f)
{
	if (f == NULL)
		return;
	f->on_room = NULL;
	for (size_t i = 0; i < FEED_VIEWERS; i++)
		if (f->viewers[i])
			feed_leave(f, f->viewers[i]);
	record_close(&f->record);
	free(f->ring);
	free(f);
}
