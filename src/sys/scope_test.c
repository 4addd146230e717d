/* SPDX-License-Identifier: Apache-2.0 */
/* sys/scope_test.c - the one message we write, and the answers we can tell apart; a real manager is met by tests/hosts */
#include "base/test.h"
#include "sys/scope.c" /* NOLINT(bugprone-suspicious-include): its parts are tested */

static uint32_t u32_at(const struct buf *b, size_t at)
{
	uint32_t v;

	memcpy(&v, b->p + at, sizeof(v));
	return le32toh(v);
}

TEST(request)
{
	_cleanup_(buf_done) struct buf b = BUF(4 * KIB);
	size_t fields, body;

	scope_request(&b, "vitrine-1.scope", 0x01020304);
	fields = u32_at(&b, 12);
	body = (16 + fields + 7) & ~(size_t)7;
	CHECK(memcmp(b.p, "l\1\0\1", 4) == 0);
	CHECK_INT(u32_at(&b, 4), b.n - body);
	CHECK_INT(u32_at(&b, body), 15);
	CHECK_STR(b.p + body + 4, "vitrine-1.scope");
	CHECK(memmem(b.p, b.n, "\1\1o\0\31\0\0\0/org/freedesktop/systemd1", 33));
	CHECK(memmem(b.p, b.n, "\10\1g\0\20ssa(sv)a(sa(sv))", 21));
	/* The list of processes: its bytes and the one number. */
	CHECK(memmem(b.p, b.n, "\4\0\0\0\4\3\2\1", 8));
	CHECK(!b.is_over);
}

static int judged(const char *p, size_t n, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(REPLY_MAX);

	buf_add(&b, p, n);
	return judge(&b, e);
}

TEST(answers)
{
	static const char ok[] = "OK 1234\r\nl\2\1\1\0\0\0\0\1\0\0\0\0\0\0\0";
	static const char signal_first[] = "OK 1\r\n"
					   "l\4\1\1\0\0\0\0\1\0\0\0\0\0\0\0"
					   "l\2\1\1\0\0\0\0\1\0\0\0\0\0\0\0";
	static const char no[] = "OK 1\r\nl\3\1\1\7\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0no\0";
	static const char big[] = "OK 1\r\nl\2\1\1\377\377\377\377\1\0\0\0\0\0\0\0";
	static const char out[] = "REJECTED EXTERNAL\r\n";
	struct err e = ERR_INIT;

	CHECK_INT(judged(ok, sizeof(ok) - 1, &e), 0);
	CHECK_INT(judged(signal_first, sizeof(signal_first) - 1, &e), 0);
	for (size_t i = 0; i + 1 < sizeof(ok) - 1; i++)
		CHECK_INT(judged(ok, i, &e), 1);
	CHECK_INT(judged(big, sizeof(big) - 1, &e), -EPROTO);
	CHECK_INT(judged(out, sizeof(out) - 1, &e), -EACCES);
	CHECK_INT(judged(no, sizeof(no) - 1, &e), -EPERM);
	CHECK_STR(e.msg, "systemd refuses a control group: no");
}

TEST_MAIN()
