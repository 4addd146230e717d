/* SPDX-License-Identifier: Apache-2.0 */
/* keep/relay.c - see relay.h */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/io.h"
#include "keep/feed.h"
#include "keep/relay.h"

#define DRAIN_ROUNDS 4096

static void pump(void *arg);

/* Our own open file description where the kernel gives us one, so that making it non-blocking does not touch the
 * user's. A socket has no path to open; it is read and written with MSG_DONTWAIT instead. */
int relay_own_description(int fd)
{
	struct stat st;
	char path[40];
	int flags, again;

	if (fstat(fd, &st) < 0 || S_ISREG(st.st_mode) || S_ISSOCK(st.st_mode))
		return fd;
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || flags & O_NONBLOCK)
		return fd;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, (flags & O_ACCMODE) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (again < 0)
		return fd;
	fd_close(fd);
	return again;
}

static ssize_t read_some(int fd, void *p, size_t n)
{
	ssize_t r = recv(fd, p, n, MSG_DONTWAIT);

	return r < 0 && errno == ENOTSOCK ? read(fd, p, n) : r;
}

ssize_t relay_write_some(int fd, const void *p, size_t n)
{
	ssize_t r = send(fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);

	return r < 0 && errno == ENOTSOCK ? write(fd, p, n) : r;
}

static void keep_tail(struct relay *r, const char *p, size_t n)
{
	if (n >= RELAY_TAIL) {
		memcpy(r->tail, p + n - RELAY_TAIL, RELAY_TAIL);
		r->tail_n = RELAY_TAIL;
		return;
	}
	if (r->tail_n + n > RELAY_TAIL) {
		size_t drop = r->tail_n + n - RELAY_TAIL;

		memmove(r->tail, r->tail + drop, r->tail_n - drop);
		r->tail_n -= drop;
	}
	memcpy(r->tail + r->tail_n, p, n);
	r->tail_n += n;
}

struct relay *relay_new(struct loop *l, int take_from, int take_to, void (*fn)(void *arg),
			void *arg)
{
	struct relay *r = mem_new(1, sizeof(*r));

	r->loop = l;
	r->from = relay_own_description(take_from);
	r->to = take_to < 0 ? FD_NONE : relay_own_description(take_to);
	r->buf = mem_new(RELAY_BUF, 1);
	r->fn = fn;
	r->arg = arg;
	r->last_ns = clock_now();
	r->on_from = watch_fd(l, r->from, WATCH_READ, pump, r);
	if (r->to >= 0) {
		r->on_to = watch_fd(l, r->to, WATCH_WRITE, pump, r);
		watch_set(r->on_to, false);
	}
	return r;
}

void relay_free(struct relay *r)
{
	if (r == NULL)
		return;
	watch_free(r->on_from);
	watch_free(r->on_to);
	fd_close(r->from);
	fd_close(r->to);
	free(r->buf);
	free(r);
}

static bool would_block(void)
{
	return errno == EAGAIN || errno == EINTR;
}

/* How much may be read now. */
static size_t room(const struct relay *r)
{
	size_t most = r->feed && r->to < 0 ? feed_room(r->feed) : RELAY_BUF;

	if (r->n > 0 || r->is_paused)
		return 0;
	return most < RELAY_BUF ? most : RELAY_BUF;
}

static bool take_in(struct relay *r, size_t n)
{
	r->n = n;
	r->bytes += n;
	r->last_ns = clock_now();
	if (r->filter && !r->filter(r->filter_arg, r->buf, &r->n))
		r->is_eof = true;
	keep_tail(r, r->buf, r->n);
	if (r->feed)
		feed_add(r->feed, r->buf, r->n);
	return true;
}

static bool fill(struct relay *r)
{
	size_t most = room(r);
	ssize_t n;

	if (r->is_eof || most == 0)
		return false;
	r->at = 0;
	n = read_some(r->from, r->buf, most);
	if (n < 0 && would_block())
		return false;
	if (n <= 0) {
		r->is_eof =
			true; /* EIO is how a terminal's master says that the last user is gone */
		return false;
	}
	return take_in(r, (size_t)n);
}

static bool flush(struct relay *r)
{
	ssize_t n;

	if (r->n == 0)
		return false;
	if (r->is_broken || r->to < 0) {
		r->n = 0;
		return true;
	}
	n = relay_write_some(r->to, r->buf + r->at, r->n);
	if (n < 0 && would_block())
		return false;
	if (n < 0) {
		r->is_broken = true;
		if (errno == EPIPE && r->on_broken && r->on_broken(r->broken_arg)) {
			r->is_eof = true;
			r->n = 0;
		}
		return true;
	}
	r->at += (size_t)n;
	r->n -= (size_t)n;
	return true;
}

/* One round in both directions; false when nothing moved. */
static bool move(struct relay *r)
{
	bool has_filled = fill(r);
	bool has_flushed = flush(r);

	return has_filled || has_flushed;
}

static void settle(struct relay *r)
{
	if (r->is_eof && r->n == 0 && !r->is_done) {
		r->is_done = true;
		watch_free(r->on_from);
		watch_free(r->on_to);
		r->on_from = r->on_to = NULL;
		/* The reader must see the end. */
		fd_close(r->to);
		fd_close(r->from);
		r->to = r->from = FD_NONE;
	}
	if (r->is_done)
		return;
	watch_set(r->on_from, room(r) > 0);
	watch_set(r->on_to, r->n > 0);
}

static void pump(void *arg)
{
	struct relay *r = arg;

	/* A few rounds, then let the others have their turn. */
	for (int i = 0; i < 4 && !r->is_done; i++)
		if (!move(r))
			break;
	settle(r);
	r->fn(r->arg);
}

void relay_kick(struct relay *r)
{
	settle(r);
}

bool relay_drain(struct relay *r, uint64_t until)
{
	/* Bounded: somebody else may hold the other end and write for ever. */
	for (int rounds = 0; !r->is_done && rounds < DRAIN_ROUNDS; rounds++) {
		if (move(r))
			continue;
		if (r->n == 0 || clock_now() >= until)
			break;
		(void)usleep(1000);
	}
	return r->is_done || r->n == 0;
}
