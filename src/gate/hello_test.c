/* SPDX-License-Identifier: Apache-2.0 */
/* gate/hello_test.c - the name in a ClientHello, whole, in pieces, cut over records, and in none of its wrong forms */
#include "base/buf.h"
#include "base/test.h"
#include "gate/hello.h"

static void put_uint(struct buf *b, size_t v, int bytes)
{
	while (bytes-- > 0)
		buf_putc(b, (char)(v >> (8 * bytes)));
}

static void put_sni(struct buf *b, const char *name, size_t n)
{
	put_uint(b, 0, 2);
	put_uint(b, n + 5, 2);
	put_uint(b, n + 3, 2);
	put_uint(b, 0, 1);
	put_uint(b, n, 2);
	buf_add(b, name, n);
}

/* A ClientHello with these extensions, cut into records of at most `cut` bytes. */
static void put_hello(struct buf *out, const struct buf *exts, size_t cut)
{
	_cleanup_(buf_done) struct buf body = BUF(HELLO_MAX), msg = BUF(HELLO_MAX);

	put_uint(&body, 0x0303, 2);
	for (int i = 0; i < 32; i++)
		buf_putc(&body, (char)i);
	put_uint(&body, 0, 1);
	put_uint(&body, 2, 2);
	put_uint(&body, 0x1301, 2);
	put_uint(&body, 1, 1);
	put_uint(&body, 0, 1);
	put_uint(&body, exts->n, 2);
	buf_add(&body, buf_cstr(exts), exts->n);
	put_uint(&msg, 1, 1);
	put_uint(&msg, body.n, 3);
	buf_add(&msg, body.p, body.n);
	for (size_t at = 0; at < msg.n; at += cut) {
		size_t n = msg.n - at < cut ? msg.n - at : cut;

		put_uint(out, 22, 1);
		put_uint(out, 0x0301, 2);
		put_uint(out, n, 2);
		buf_add(out, msg.p + at, n);
	}
}

static enum hello_result parse(const struct buf *b, char name[HOST_TEXT])
{
	return hello_parse((const uint8_t *)b->p, b->n, name);
}

TEST(the_name_is_found)
{
	static const size_t cuts[] = { 16384, 100, 7, 1 };

	for (size_t i = 0; i < ARRAY_LEN(cuts); i++) {
		_cleanup_(buf_done) struct buf b = BUF(HELLO_MAX), exts = BUF(KIB);
		char name[HOST_TEXT];

		put_uint(&exts, 0xaaaa, 2);
		put_uint(&exts, 1, 2);
		put_uint(&exts, 0, 1);
		put_sni(&exts, "Ok.Test", 7);
		put_hello(&b, &exts, cuts[i]);
		CHECK_INT(parse(&b, name), HELLO_NAME);
		CHECK_STR(name, "ok.test");
		for (size_t n = 0; n < b.n; n++)
			CHECK_INT(hello_parse((const uint8_t *)b.p, n, name), HELLO_MORE);
	}
}

TEST(without_a_name)
{
	_cleanup_(buf_done) struct buf b = BUF(HELLO_MAX), exts = BUF(KIB);
	char name[HOST_TEXT];

	put_hello(&b, &exts, 16384);
	CHECK_INT(parse(&b, name), HELLO_NO_NAME);
}

TEST(what_is_not_tls)
{
	char name[HOST_TEXT];

	CHECK_INT(hello_parse((const uint8_t *)"SSH-2.0-x", 9, name), HELLO_NOT_TLS);
	CHECK_INT(hello_parse((const uint8_t *)"GET / HT", 8, name), HELLO_NOT_TLS);
	CHECK_INT(hello_parse((const uint8_t *)"\x16\x02", 2, name), HELLO_NOT_TLS);
	CHECK_INT(hello_parse((const uint8_t *)"", 0, name), HELLO_MORE);
}

static enum hello_result with_name(const char *host, size_t n, bool is_twice)
{
	_cleanup_(buf_done) struct buf b = BUF(HELLO_MAX), exts = BUF(2 * KIB);
	char name[HOST_TEXT];

	put_sni(&exts, host, n);
	if (is_twice)
		put_sni(&exts, host, n);
	put_hello(&b, &exts, 16384);
	return parse(&b, name);
}

TEST(wrong_forms)
{
	static const uint8_t server_hello[] = "\x16\3\1\0\5\2\0\0\1\0";
	static const uint8_t empty_record[] = "\x16\3\1\0\0";
	char name[HOST_TEXT];

	CHECK_INT(with_name("ok.test", 7, true), HELLO_BAD);
	CHECK_INT(with_name("ok.test\0.evil", 13, false), HELLO_BAD);
	CHECK_INT(with_name("", 0, false), HELLO_BAD);
	CHECK_INT(with_name("b\303\274cher.test", 12, false), HELLO_BAD);
	CHECK_INT(with_name("127.1", 5, false), HELLO_BAD);
	CHECK_INT(hello_parse(server_hello, 10, name), HELLO_BAD);
	CHECK_INT(hello_parse(empty_record, 5, name), HELLO_BAD);
}

TEST_MAIN()
