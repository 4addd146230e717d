/* SPDX-License-Identifier: Apache-2.0 */
/* base/buf_test.c - growth, the ceiling, and the two ways foreign bytes are made harmless */
#include "base/buf.h"
#include "base/test.h"

TEST(grows_and_ends)
{
	_cleanup_(buf_done) struct buf b = BUF(MIB);

	CHECK_STR(buf_cstr(&b), "");
	for (int i = 0; i < 10000; i++)
		buf_printf(&b, "%d,", i % 10);
	CHECK_INT(b.n, 20000);
	CHECK_INT(strlen(buf_cstr(&b)), 20000);
	buf_putc(&b, 'x');
	buf_puts(&b, "yz");
	buf_add(&b, "", 0);
	CHECK(str_ends(buf_cstr(&b), "9,xyz"));
	CHECK(!b.is_over);
}

TEST(ceiling_is_remembered)
{
	_cleanup_(buf_done) struct buf b = BUF(4);

	buf_puts(&b, "abcd");
	CHECK(!b.is_over);
	buf_putc(&b, 'e');
	CHECK(b.is_over);
	CHECK_STR(buf_cstr(&b), "abcd");
	buf_puts(&b, "");
	CHECK(b.is_over); /* for good */
	buf_done(&b);
	CHECK(!b.is_over);
	buf_printf(&b, "%s", "12345");
	CHECK(b.is_over);
	CHECK_STR(buf_cstr(&b), "");
}

TEST(take_hands_over)
{
	struct buf b = BUF(16);
	_free_ char *s = NULL, *empty = NULL;

	buf_puts(&b, "ab");
	s = buf_take(&b);
	CHECK_STR(s, "ab");
	CHECK_INT(b.n, 0);
	CHECK_INT(b.max, 16);
	empty = buf_take(&b);
	CHECK_STR(empty, "");
}

static void esc(const char *in, size_t n, const char *want)
{
	_cleanup_(buf_done) struct buf b = BUF(KIB);

	buf_esc(&b, in, n);
	CHECK_STR(buf_cstr(&b), want);
}

TEST(escapes_for_people)
{
	esc("plain \xc3\xa9 \xf0\x9f\x98\x80", 13, "plain \xc3\xa9 \xf0\x9f\x98\x80");
	esc("a\nb\tc", 5, "a\\nb\\tc");
	esc("\x1b[31m", 5, "\\x1b[31m");
	esc("a\0b", 3, "a\\x00b");
	esc("\x7f", 1, "\\x7f");
	esc("\r", 1, "\\x0d");
	esc("\xc2\x9b", 2, "\\xc2\\x9b");          /* CSI as one C1 character */
	esc("\xe2\x80\xae", 3, "\\xe2\\x80\\xae"); /* right-to-left override */
	esc("\xe2\x81\xa6", 3, "\\xe2\\x81\\xa6");
	esc("\xff", 1, "\\xff");
	esc("\xc3", 1, "\\xc3");                   /* cut short */
	esc("\xc0\xaf", 2, "\\xc0\\xaf");          /* overlong */
	esc("\xed\xa0\x80", 3, "\\xed\\xa0\\x80"); /* surrogate */
	esc("\xf4\x90\x80\x80", 4, "\\xf4\\x90\\x80\\x80");
}

static void json(const char *in, const char *want)
{
	_cleanup_(buf_done) struct buf b = BUF(KIB);

	buf_json(&b, in);
	CHECK_STR(buf_cstr(&b), want);
}

TEST(escapes_for_machines)
{
	json("", "\"\"");
	json("a\"b\\c", "\"a\\\"b\\\\c\"");
	json("\n\x1b\x7f", "\"\\u000a\\u001b\\u007f\"");
	json("\xc3\xa9", "\"\xc3\xa9\"");
	json("\xc2\x85", "\"\\u0085\"");
	json("\xe2\x80\xae", "\"\\u202e\"");
	json("\xe2\x81\xa9", "\"\\u2069\"");
	json("\xff\xc0\xaf", "\"\\ufffd\\ufffd\\ufffd\"");
}

TEST_MAIN()
