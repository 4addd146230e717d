/* SPDX-License-Identifier: Apache-2.0 */
/* keep/feed_test.c - viewers: one waits for nobody's loss, several lose only their own, a late one sees the screen */
#include <fcntl.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/test.h"
#include "keep/feed.h"

struct peer {
	int near, far;
};

/* A socket that takes little before it is full. */
static struct peer peer_new(void)
{
	int pair[2], size = 4096;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
	CHECK(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) == 0);
	return (struct peer){ pair[0], pair[1] };
}

static void read_all(int fd, struct buf *b)
{
	char part[4096];
	ssize_t n;

	while ((n = read(fd, part, sizeof(part))) > 0)
		buf_add(b, part, (size_t)n);
}

static void add_lines(struct feed *f, int from, int to)
{
	char line[64];

	for (int i = from; i < to; i++) {
		(void)snprintf(line, sizeof(line), "line %06d of a long text\n", i);
		feed_add(f, line, strlen(line));
	}
}

/* A question and a stopped job hold the same viewer: the end of one does not end the other. */
TEST(each_hold_ends_by_itself)
{
	struct loop *l = loop_new();
	struct feed *f = feed_new(l, NULL, NULL);
	_cleanup_(buf_done) struct buf b = BUF(MIB);
	struct peer p = peer_new();
	struct viewer *v = feed_view(f, p.near, true);

	viewer_hold(v, HOLD_QUESTION, true);
	viewer_hold(v, HOLD_SUSPEND, true);
	feed_add(f, "text", 4);
	viewer_hold(v, HOLD_QUESTION, false);
	read_all(p.far, &b);
	CHECK_INT(b.n, 0);
	viewer_hold(v, HOLD_SUSPEND, false);
	read_all(p.far, &b);
	CHECK_STR(buf_cstr(&b), "text");
	viewer_hold(v, HOLD_SUSPEND, true);
	feed_add(f, "more", 4);
	CHECK(feed_drain(f, 0));
	read_all(p.far, &b);
	CHECK_STR(buf_cstr(&b), "text");
	feed_free(f);
	fd_close(p.far);
	loop_free(l);
}

TEST(late_viewer_sees_the_end_and_the_modes)
{
	struct loop *l = loop_new();
	struct feed *f = feed_new(l, NULL, NULL);
	_cleanup_(buf_done) struct buf b = BUF(MIB);
	struct peer p = peer_new();

	feed_add(f, "\033[?10", 5); /* in pieces, as it comes */
	feed_add(f, "49;25", 5);
	feed_add(f, "h\033[?2004h\033[?25l\033[?2004l", 23);
	add_lines(f, 0, 10000);
	CHECK(feed_room(f) == SIZE_MAX);
	CHECK(feed_view(f, p.near, true) != NULL);
	for (int i = 0; i < 100; i++) {
		feed_add(f, "", 0); /* nothing, and a chance to write */
		read_all(p.far, &b);
	}
	CHECK(strstr(buf_cstr(&b), "\033[?1049hline ") == buf_cstr(&b));
	CHECK(str_ends(buf_cstr(&b), "\033[?25l"));
	CHECK(strstr(buf_cstr(&b), "2004") == NULL);
	CHECK(b.n > FEED_RING / 2 && b.n < FEED_RING + 100);
	CHECK(strstr(buf_cstr(&b), "line 009999 of a long text\n") != NULL);
	feed_free(f);
	fd_close(p.far);
	loop_free(l);
}

TEST(one_viewer_is_waited_for)
{
	struct loop *l = loop_new();
	struct feed *f = feed_new(l, NULL, NULL);
	_cleanup_(buf_done) struct buf b = BUF(4 * MIB);
	struct peer p = peer_new();
	size_t sent = 0;

	CHECK(feed_view(f, p.near, false) != NULL);
	for (int i = 0; i < 5000; i++) {
		char line[64];

		(void)snprintf(line, sizeof(line), "line %d\n", i);
		while (feed_room(f) < strlen(line)) {
			read_all(p.far, &b);
			feed_add(f, "", 0);
		}
		feed_add(f, line, strlen(line));
		sent += strlen(line);
	}
	for (int i = 0; i < 50; i++) {
		read_all(p.far, &b);
		feed_add(f, "", 0);
	}
	CHECK_INT(b.n, sent);
	feed_free(f);
	fd_close(p.far);
	loop_free(l);
}

TEST(a_slow_one_does_not_stop_the_others)
{
	struct loop *l = loop_new();
	struct feed *f = feed_new(l, NULL, NULL);
	_cleanup_(buf_done) struct buf fast = BUF(8 * MIB), slow = BUF(8 * MIB);
	struct peer a = peer_new(), b = peer_new();

	CHECK(feed_view(f, a.near, false) && feed_view(f, b.near, false));
	for (int i = 0; i < 200; i++) {
		add_lines(f, i * 100, i * 100 + 100);
		read_all(a.far, &fast);
		while (f->viewers[0]->n > 0) {
			read_all(a.far, &fast);
			feed_add(f, "", 0);
		}
	}
	read_all(a.far, &fast);
	CHECK_INT(fast.n, 200 * 100 * 27);
	CHECK(f->viewers[1]->is_behind);
	for (int i = 0; i < 200; i++) {
		read_all(b.far, &slow);
		feed_add(f, "", 0);
	}
	read_all(b.far, &slow);
	CHECK(!f->viewers[1]->is_behind);
	CHECK(strstr(buf_cstr(&slow), "line 019999") != NULL);
	CHECK(slow.n < fast.n);
	feed_free(f);
	fd_close(a.far);
	fd_close(b.far);
	loop_free(l);
}

TEST(places_are_few)
{
	struct loop *l = loop_new();
	struct feed *f = feed_new(l, NULL, NULL);
	struct viewer *first = NULL;

	for (int i = 0; i < FEED_VIEWERS; i++) {
		struct viewer *v = feed_view(f, open("/dev/null", O_WRONLY | O_CLOEXEC), false);

		CHECK(v != NULL);
		first = first ? first : v;
	}
	CHECK(feed_view(f, open("/dev/null", O_WRONLY | O_CLOEXEC), false) == NULL);
	feed_leave(f, first);
	CHECK_INT(feed_n_viewers(f), FEED_VIEWERS - 1);
	CHECK(feed_view(f, open("/dev/null", O_WRONLY | O_CLOEXEC), false) != NULL);
	feed_free(f);
	loop_free(l);
}

TEST_MAIN()
