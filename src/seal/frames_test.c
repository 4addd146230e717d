/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/test.h"
#include "seal/frames.h"

#define SECRET "sk-0123456789abcdefghijkl"
#define HOLDER "sk-ABCDEFGHIJKLMNOPQRSTUV"

/* A frame: opcode with FIN or without, and its payload. */
static void put_frame(struct buf *b, unsigned first, const char *payload)
{
	size_t n = strlen(payload);

	buf_putc(b, (char)first);
	if (n < 126) {
		buf_putc(b, (char)n);
	} else {
		buf_putc(b, 126);
		buf_putc(b, (char)(n >> 8));
		buf_putc(b, (char)n);
	}
	buf_puts(b, payload);
}

/* What goes inside of these bytes, in pieces of `size`. */
static int feed(const struct buf *in, size_t size, struct buf *out)
{
	struct frames *f = frames_new();
	struct words *w = words_new();
	struct mask *m;
	int r = 0;

	CHECK(words_add(w, STR(SECRET), STR(HOLDER)));
	m = mask_new(w);
	for (size_t at = 0; at < in->n && r == 0; at += size) {
		struct str text = STR("");

		r = frames_feed(f, m, in->p + at, in->n - at < size ? in->n - at : size, &text);
		if (r == 0)
			buf_add(out, text.p, text.n);
	}
	frames_free(f);
	mask_free(m);
	return r;
}

TEST(a_value_is_masked_whatever_frames_it_is_cut_into)
{
	for (size_t cut = 1; cut < strlen(SECRET); cut++)
		for (size_t size = 1; size < 60; size += 7) {
			_cleanup_(buf_done) struct buf in = BUF(4 * KIB), want = BUF(4 * KIB),
						       out = BUF(4 * KIB);
			_free_ char *a = mem_fmt("x%.*s", (int)cut, SECRET),
				    *b = mem_fmt("%sy", &(SECRET)[cut]),
				    *c = mem_fmt("x%.*s", (int)cut, HOLDER),
				    *d = mem_fmt("%sy", &(HOLDER)[cut]);

			put_frame(&in, 0x01, a);
			put_frame(&in, 0x89, "ping");
			put_frame(&in, 0x80, b);
			put_frame(&in, 0x81, "the next message");
			put_frame(&want, 0x01, c);
			put_frame(&want, 0x89, "ping");
			put_frame(&want, 0x80, d);
			put_frame(&want, 0x81, "the next message");
			CHECK_INT(feed(&in, size, &out), 0);
			CHECK(out.n == want.n && memcmp(out.p, want.p, want.n) == 0);
		}
}

TEST(a_message_that_ends_inside_a_value_shows_nothing_of_it)
{
	_cleanup_(buf_done) struct buf in = BUF(4 * KIB), out = BUF(4 * KIB);

	put_frame(&in, 0x81, "sk-0123456789abcdefghijk");
	put_frame(&in, 0x8a, SECRET);
	put_frame(&in, 0x82, "a long message: " SECRET SECRET SECRET SECRET SECRET SECRET "$");
	CHECK_INT(feed(&in, 5, &out), 0);
	CHECK(out.n == in.n && memmem(out.p, out.n, "0123456", 7) == NULL);
	CHECK(memmem(out.p, out.n, HOLDER "$", strlen(HOLDER) + 1) != NULL);
}

TEST(other_frames_are_refused)
{
	static const unsigned wrong[] = { 0xc1, 0xa1, 0x91, 0x83, 0x8f, 0x09 };

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		_cleanup_(buf_done) struct buf in = BUF(4 * KIB), out = BUF(4 * KIB);

		put_frame(&in, wrong[i], "text");
		CHECK_INT(feed(&in, 3, &out), -EBADMSG);
	}
}

TEST(a_message_begins_once_and_goes_on_as_itself)
{
	static const unsigned wrong[][2] = { { 0x80, 0x81 }, { 0x81, 0x80 }, { 0x01, 0x81 } };

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		_cleanup_(buf_done) struct buf in = BUF(4 * KIB), out = BUF(4 * KIB);

		put_frame(&in, wrong[i][0], "sk-01234567");
		put_frame(&in, wrong[i][1], "89abcdefghijkl");
		CHECK_INT(feed(&in, 3, &out), -EBADMSG);
	}
}

/* A control frame is a text of its own: one that ends inside a value shows nothing of it. */
TEST(a_control_frame_that_ends_inside_a_value_shows_nothing_of_it)
{
	_cleanup_(buf_done) struct buf in = BUF(4 * KIB), out = BUF(4 * KIB);

	put_frame(&in, 0x89, "ping sk-0123456789abc");
	CHECK_INT(feed(&in, 100, &out), 0);
	CHECK(out.n == in.n && memmem(out.p, out.n, "0123", 4) == NULL);
}

/* What waits behind a value that goes on without an end is bounded. */
TEST(frames_without_number_do_not_wait)
{
	_cleanup_(buf_done) struct buf in = BUF(64 * KIB), out = BUF(64 * KIB);

	put_frame(&in, 0x01, "sk-01234567");
	for (int i = 0; i < 4000; i++)
		put_frame(&in, 0x89, "");
	CHECK_INT(feed(&in, 1000, &out), -EBADMSG);
}

TEST_MAIN()
