/* SPDX-License-Identifier: Apache-2.0 */
/* http/body_test.c - bodies whole, in single bytes, and broken */
#include "base/test.h"
#include "http/body.h"

/* Decodes text in steps of `step` bytes: bytes used, or -errno. */
static ssize_t decode(const struct http_framing *f, const char *text, size_t step, struct buf *out)
{
	struct http_body b;
	struct err e = ERR_INIT;
	size_t n = strlen(text), at = 0;

	http_body_init(&b, f);
	while (at < n && !b.is_done) {
		struct str data;
		size_t used;
		size_t room = n - at < step ? n - at : step;
		int r = http_body_next(&b, text + at, room, &used, &data, &e);

		if (r < 0)
			return r;
		buf_add(out, data.p, data.n);
		at += used;
		if (r == 1)
			break;
	}
	return b.is_done || http_body_eof(&b, &e) == 0 ? (ssize_t)at : -ENODATA;
}

static const struct http_framing chunked = { .kind = HTTP_CHUNKED };

static void check_chunked(const char *text, const char *want, size_t want_used)
{
	for (size_t step = 1; step < 40; step++) {
		_cleanup_(buf_done) struct buf out = BUF(KIB);

		CHECK_INT(decode(&chunked, text, step, &out), want_used);
		CHECK_STR(buf_cstr(&out), want);
	}
}

TEST(chunks)
{
	check_chunked("5\r\nhello\r\n0\r\n\r\nGET", "hello", 15);
	check_chunked("5\r\nhello\r\n006\r\n world\r\n0\r\n\r\n", "hello world", 28);
	check_chunked("0\r\n\r\n", "", 5);
	check_chunked("A\r\n0123456789\r\n0\r\nT: v\r\nU: w\r\n\r\n", "0123456789", 32);
}

TEST(broken_chunks)
{
	static const char *const wrong[] = { "5;a=b\r\nhello\r\n0\r\n\r\n",
					     "5 \r\nhello\r\n0\r\n\r\n",
					     " 5\r\nhello\r\n0\r\n\r\n",
					     "0x5\r\nhello\r\n0\r\n\r\n",
					     "-5\r\nhello\r\n",
					     "\r\n",
					     "5\nhello\r\n",
					     "5\rhello\r\n",
					     "5\r\nhello!\r\n",
					     "5\r\nhello\n",
					     "5\r\nhello\rx",
					     "fffffffffffffffff\r\n",
					     "0000000000000000\r\n",
					     "0\r\n folded\r\n\r\n",
					     "0\r\n: v\r\n\r\n",
					     "0\r\nT: \x01\r\n\r\n",
					     "0\r\nT: v\n\r\n",
					     "g\r\n" };

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		_cleanup_(buf_done) struct buf out = BUF(KIB);

		if (decode(&chunked, wrong[i], 7, &out) != -EBADMSG) {
			(void)fprintf(stderr, "accepted: '%s'\n", wrong[i]);
			CHECK(false);
		}
	}
}

TEST(cut_off)
{
	static const char *const cut[] = { "5",     "5\r\n",  "5\r\nhel", "5\r\nhello\r\n",
					   "0\r\n", "0\r\n\r" };

	for (size_t i = 0; i < ARRAY_LEN(cut); i++) {
		_cleanup_(buf_done) struct buf out = BUF(KIB);

		CHECK_INT(decode(&chunked, cut[i], 100, &out), -ENODATA);
	}
}

TEST(length_and_close)
{
	const struct http_framing five = { .kind = HTTP_LENGTH, .length = 5 };
	const struct http_framing none = { .kind = HTTP_NO_BODY };
	const struct http_framing close = { .kind = HTTP_UNTIL_CLOSE };
	_cleanup_(buf_done) struct buf out = BUF(KIB);

	CHECK_INT(decode(&five, "helloGET", 3, &out), 5);
	CHECK_STR(buf_cstr(&out), "hello");
	CHECK_INT(decode(&five, "hell", 3, &out), -ENODATA);
	CHECK_INT(decode(&none, "GET", 3, &out), 0);
	out.n = 0;
	CHECK_INT(decode(&close, "all of it", 4, &out), 9);
	CHECK_STR(buf_cstr(&out), "all of it");
}

TEST(trailers_are_bounded)
{
	_cleanup_(buf_done) struct buf b = BUF(MIB), out = BUF(KIB);

	buf_puts(&b, "0\r\n");
	for (size_t i = 0; i < HTTP_TRAILER_MAX / 4 + 2; i++)
		buf_puts(&b, "A: b\r\n");
	CHECK_INT(decode(&chunked, buf_cstr(&b), 1000, &out), -EBADMSG);
}

TEST(written_chunks_read_back)
{
	_cleanup_(buf_done) struct buf b = BUF(KIB);

	http_put_chunk(&b, STR("hello"));
	http_put_chunk(&b, STR(""));
	http_put_chunk(&b, STR("0123456789abcdef"));
	http_put_last_chunk(&b);
	check_chunked(buf_cstr(&b), "hello0123456789abcdef", b.n);
}

TEST_MAIN()
