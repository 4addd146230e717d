/* SPDX-License-Identifier: Apache-2.0 */
/* remote/link_test.c - both sides of the link over two pipes, and a peer that lies */
#include <fcntl.h>
#include <signal.h>

#include "base/test.h"
#include "remote/link.h"
#include "remote/port.h"

#define BODY ((size_t)3 * 1024 * 1024) /* many times a window */

struct side {
	struct link *link;
	struct loop *loop;
	struct stream *stream;
	struct head head, trailer;
	size_t got, sent, limit;
	bool has_head, has_trailer, has_ended, is_gone, is_down, holds, has_parted;
	char path[64];
};

static ssize_t pull_body(void *arg, void *p, size_t n)
{
	struct side *s = arg;
	size_t left = s->limit - s->sent;

	if (left == 0)
		return PULL_END;
	n = n < left ? n : left;
	memset(p, 'x', n);
	s->sent += n;
	return (ssize_t)n;
}

static int on_head(void *arg, struct stream *st, const struct head *h, bool is_trailer)
{
	struct side *s = arg;

	if (is_trailer) {
		s->trailer = *h;
		s->has_trailer = true;
		return 0;
	}
	s->head = *h;
	s->has_head = true;
	s->stream = st;
	stream_set_arg(st, s);
	return 0;
}

static int on_data(void *arg, struct stream *st, const void *p, size_t n)
{
	struct side *s = arg;

	s->got += n;
	if (!s->holds)
		stream_consumed(st, n);
	return 0;
}

static int on_end(void *arg, struct stream *st)
{
	struct side *s = arg;
	struct head answer = { .status = 200 };

	s->has_ended = true;
	if (s->path[0] == '\0') { /* the inner side */
		head_add(&answer, "pid", "%d", 7);
		s->limit = BODY;
		return stream_respond(st, &answer, pull_body, false);
	}
	return 0;
}

static void on_gone(void *arg, struct stream *st)
{
	struct side *s = arg;

	s->is_gone = true;
	s->stream = NULL;
	(void)st;
}

static void on_down(void *arg, const char *why)
{
	struct side *s = arg;

	s->is_down = true;
	(void)why;
	loop_stop(s->loop);
}

static void on_parted(void *arg)
{
	struct side *s = arg;

	s->has_parted = true;
}

static const struct link_ops ops = { on_head, on_data, on_end, on_gone, on_down, on_parted };

static void on_tick(void *arg)
{
	loop_stop(arg);
}

static void run_for(struct loop *l, uint64_t ms)
{
	struct watch *w = watch_timer(l, ms * NS_PER_MS, false, on_tick, l);

	loop_run(l);
	watch_free(w);
}

struct pair {
	struct loop *loop;
	struct side outer, inner;
};

static void pair_open(struct pair *p)
{
	int a[2] = { FD_NONE, FD_NONE }, b[2] = { FD_NONE, FD_NONE };

	*p = (struct pair){ .loop = loop_new() };
	CHECK(pipe2(a, O_CLOEXEC) == 0 && pipe2(b, O_CLOEXEC) == 0);
	p->outer.loop = p->inner.loop = p->loop;
	p->outer.link = link_new(LINK_OUTER, p->loop, a[0], b[1], &ops, &p->outer);
	p->inner.link = link_new(LINK_INNER, p->loop, b[0], a[1], &ops, &p->inner);
}

static void pair_close(struct pair *p)
{
	link_free(p->outer.link);
	link_free(p->inner.link);
	loop_free(p->loop);
}

static struct stream *ask(struct pair *p)
{
	struct head h = { .method = "POST", .path = "/session/0" };

	(void)snprintf(p->outer.path, sizeof(p->outer.path), "%s", h.path);
	p->outer.limit = BODY;
	head_add(&h, "stdio", "%s", "ppp");
	return link_request(p->outer.link, &h, pull_body, &p->outer);
}

TEST(a_body_there_and_one_back)
{
	struct pair p;

	pair_open(&p);
	CHECK(ask(&p) != NULL);
	run_for(p.loop, 500);
	CHECK_STR(p.inner.head.path, "/session/0");
	CHECK_STR(head_get(&p.inner.head, "stdio"), "ppp");
	CHECK_INT(p.inner.got, BODY);
	CHECK_INT(p.outer.head.status, 200);
	CHECK_STR(head_get(&p.outer.head, "pid"), "7");
	CHECK_INT(p.outer.got, BODY);
	CHECK(p.outer.has_ended && p.outer.is_gone && p.inner.is_gone);
	pair_close(&p);
}

TEST(who_does_not_read_stops_the_writer)
{
	struct pair p;

	pair_open(&p);
	p.inner.holds = true;
	CHECK(ask(&p) != NULL);
	run_for(p.loop, 100);
	CHECK(p.inner.got > 0 && p.inner.got <= 256 * KIB);
	CHECK(p.outer.sent <= 512 * KIB);
	pair_close(&p);
}

TEST(a_stream_can_be_cut)
{
	struct pair p;
	struct stream *s;

	pair_open(&p);
	p.inner.holds = true;
	s = ask(&p);
	run_for(p.loop, 50);
	stream_reset(s);
	run_for(p.loop, 50);
	CHECK(p.inner.is_gone && p.outer.is_gone);
	CHECK(!p.inner.is_down && !p.outer.is_down);
	pair_close(&p);
}

static bool is_empty(int fd)
{
	char byte;

	return read(fd, &byte, 1) < 0 && errno == EAGAIN;
}

/* In the middle of a body: nothing is left in the pipes, and another link can begin on them. */
TEST(both_part_and_meet_again)
{
	int in[2], out[2];
	struct pair p;

	pair_open(&p);
	p.inner.holds = true;
	CHECK(ask(&p) != NULL);
	run_for(p.loop, 50);
	link_may_part(p.inner.link);
	p.outer.limit = p.outer.sent + 1; /* it has stopped sending, but for what waits for room */
	link_part(p.outer.link);
	run_for(p.loop, 100);
	CHECK(p.outer.has_parted && p.inner.has_parted);
	CHECK(!p.outer.is_down && !p.inner.is_down);
	link_release(p.outer.link, &in[0], &out[0]);
	link_release(p.inner.link, &in[1], &out[1]);
	CHECK(is_empty(in[0]) && is_empty(in[1]));
	p.outer = p.inner = (struct side){ .loop = p.loop };
	p.outer.link = link_new(LINK_OUTER, p.loop, in[0], out[0], &ops, &p.outer);
	p.inner.link = link_new(LINK_INNER, p.loop, in[1], out[1], &ops, &p.inner);
	CHECK(ask(&p) != NULL);
	run_for(p.loop, 500);
	CHECK_INT(p.inner.got, BODY);
	CHECK_INT(p.outer.got, BODY);
	pair_close(&p);
}

TEST(a_farewell_that_nobody_asked_for_ends_the_link)
{
	struct pair p;

	pair_open(&p);
	link_part(p.outer.link);
	run_for(p.loop, 50);
	CHECK(p.inner.is_down && !p.inner.has_parted);
	pair_close(&p);
}

/* ---- a peer that is not ours ---- */

static bool outer_takes(const void *p, size_t n)
{
	struct side s = { .loop = loop_new() };
	bool takes;

	s.link = link_new(LINK_OUTER, s.loop, FD_NONE, FD_NONE, &ops, &s);
	takes = link_feed(s.link, p, n) == 0 && !s.is_down;
	link_free(s.link);
	loop_free(s.loop);
	return takes;
}

TEST(what_is_not_the_protocol_ends_the_link)
{
	static const char http[] = "HTTP/1.1 200 OK\r\n\r\n";
	/* Frames of the other side before its settings, of an unknown stream, and far too long. */
	static const char data[] = "\0\0\1\0\0\0\0\0\1x";
	static const char push[] = "\0\0\4\5\4\0\0\0\1\0\0\0\2";
	static const char big[] = "\377\377\377\0\0\0\0\0\1";
	static const char settings[] = "\0\0\0\4\0\0\0\0\0";

	CHECK(outer_takes(settings, sizeof(settings) - 1));
	CHECK(!outer_takes(http, sizeof(http) - 1));
	CHECK(!outer_takes(data, sizeof(data) - 1));
	CHECK(!outer_takes(push, sizeof(push) - 1));
	CHECK(!outer_takes(big, sizeof(big) - 1));
}

/* ---- ports ---- */

TEST(a_sink_whose_reader_went_says_so)
{
	struct loop *l = loop_new();
	struct port *p;
	int fd[2];

	(void)signal(SIGPIPE, SIG_IGN); /* as both programs do */
	CHECK(pipe2(fd, O_CLOEXEC | O_NONBLOCK) == 0);
	p = sink_new(l, fd[1]);
	CHECK_INT(sink_put(p, "abc", 3), 0);
	fd_close(fd[0]);
	CHECK_INT(sink_put(p, "def", 3), -EPIPE);
	CHECK_INT(sink_put(p, "def", 3), -EPIPE);
	port_free(p);
	loop_free(l);
}

TEST(a_sink_holds_what_its_reader_leaves)
{
	_free_ char *data = mem_new(200 * KIB, 1);
	struct loop *l = loop_new();
	struct port *p;
	size_t got = 0;
	char chunk[4096];
	ssize_t n;
	int fd[2];

	CHECK(pipe2(fd, O_CLOEXEC | O_NONBLOCK) == 0);
	p = sink_new(l, fd[1]);
	CHECK_INT(sink_put(p, data, 200 * KIB), 0);
	sink_finish(p, NULL, NULL);
	CHECK(!sink_is_done(p));
	for (int i = 0; i < 100 && !sink_is_done(p); i++) {
		while ((n = read(fd[0], chunk, sizeof(chunk))) > 0)
			got += (size_t)n;
		run_for(l, 2);
	}
	while ((n = read(fd[0], chunk, sizeof(chunk))) > 0)
		got += (size_t)n;
	CHECK(sink_is_done(p));
	CHECK_INT(got, 200 * KIB);
	port_free(p);
	fd_close(fd[0]);
	loop_free(l);
}

TEST_MAIN()
