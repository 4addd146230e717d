/* SPDX-License-Identifier: Apache-2.0 */
/* gate/dns_test.c - questions, our answers, and the answers of servers */
#include "base/test.h"
#include "gate/dns.h"

static void question(struct buf *b, const char *name, uint16_t type)
{
	dns_put_query(b, 0x1234, name, type);
}

TEST(a_question_is_read)
{
	_cleanup_(buf_done) struct buf b = BUF(DNS_MAX);
	struct dns_query q;

	question(&b, "www.Example.org", DNS_AAAA);
	CHECK_INT(dns_parse_query((const uint8_t *)b.p, b.n, &q), 0);
	CHECK_STR(q.name, "www.example.org");
	CHECK_INT(q.type, DNS_AAAA);
	CHECK_INT(q.id, 0x1234);
	CHECK(q.is_host && q.has_edns && q.wants_recursion);
	for (size_t n = 0; n < b.n - 11; n++)
		CHECK(dns_parse_query((const uint8_t *)b.p, n, &q) < 0);
}

TEST(what_is_no_host_name_is_marked)
{
	static const uint8_t dotted[] = "\0\1\1\0\0\1\0\0\0\0\0\0\7a.b.com\0\0\1\0\1";
	static const uint8_t nul[] = "\0\1\1\0\0\1\0\0\0\0\0\0\4ok\0x\4test\0\0\1\0\1";
	static const uint8_t pointer[] = "\0\1\1\0\0\1\0\0\0\0\0\0\1a\xc0\4\0\1\0\1";
	_cleanup_(buf_done) struct buf b = BUF(DNS_MAX);
	struct dns_query q;

	CHECK_INT(dns_parse_query(dotted, sizeof(dotted) - 1, &q), 0);
	CHECK(!q.is_host);
	CHECK_INT(dns_parse_query(nul, sizeof(nul) - 1, &q), 0);
	CHECK(!q.is_host);
	CHECK(dns_parse_query(pointer, sizeof(pointer) - 1, &q) < 0);
	question(&b, "127.0.0.1", DNS_A);
	CHECK_INT(dns_parse_query((const uint8_t *)b.p, b.n, &q), 0);
	CHECK(!q.is_host);
}

TEST(an_answer_is_read_back)
{
	_cleanup_(buf_done) struct buf in = BUF(DNS_MAX), out = BUF(DNS_MAX);
	struct addr v[2] = { addr_from_v4((const uint8_t[]){ 198, 18, 0, 2 }),
			     addr_from_v4((const uint8_t[]){ 198, 18, 0, 3 }) };
	struct dns_answer a;
	struct dns_query q;

	question(&in, "ok.test", DNS_A);
	CHECK_INT(dns_parse_query((const uint8_t *)in.p, in.n, &q), 0);
	dns_put_answer(&out, &q, DNS_OK, v, 2, NULL);
	CHECK_INT(dns_parse_answer((const uint8_t *)out.p, out.n, 0x1234, "ok.test", DNS_A, &a), 0);
	CHECK(a.n == 2 && addr_eq(&a.v[0], &v[0]) && addr_eq(&a.v[1], &v[1]));
	CHECK_INT(a.ttl, 60);
	/* Another id, name or type is not the answer to this question. */
	CHECK(dns_parse_answer((const uint8_t *)out.p, out.n, 1, "ok.test", DNS_A, &a) < 0);
	CHECK(dns_parse_answer((const uint8_t *)out.p, out.n, 0x1234, "no.test", DNS_A, &a) < 0);
	CHECK(dns_parse_answer((const uint8_t *)out.p, out.n, 0x1234, "ok.test", DNS_AAAA, &a) < 0);
	CHECK(dns_parse_answer((const uint8_t *)in.p, in.n, 0x1234, "ok.test", DNS_A, &a) < 0);
}

TEST(refusals_carry_their_reason)
{
	_cleanup_(buf_done) struct buf in = BUF(DNS_MAX), out = BUF(DNS_MAX);
	struct dns_answer a;
	struct dns_query q;

	question(&in, "evil.test", DNS_A);
	CHECK_INT(dns_parse_query((const uint8_t *)in.p, in.n, &q), 0);
	dns_put_answer(&out, &q, DNS_NXDOMAIN, NULL, 0, "no rule");
	CHECK_INT(dns_parse_answer((const uint8_t *)out.p, out.n, 0x1234, "evil.test", DNS_A, &a),
		  0);
	CHECK(a.code == DNS_NXDOMAIN && a.n == 0);
	CHECK(memmem(out.p, out.n, "no rule", 7) != NULL);
}

/* ok.test CNAME a.test, and behind it an address of a.test and one of nobody who was asked for. */
TEST(names_are_followed_within_the_answer)
{
	static const uint8_t msg[] = "\0\1\x81\x80\0\1\0\3\0\0\0\0"
				     "\2ok\4test\0\0\1\0\1"
				     "\1x\4test\0\0\1\0\1\0\0\0\x3c\0\4\x0a\0\0\1"
				     "\1a\4test\0\0\1\0\1\0\0\0\x1e\0\4\x5d\xb8\xd8\x22"
				     "\xc0\x0c\0\5\0\1\0\0\0\x3c\0\x8\1a\4test\0";
	static const uint8_t loop[] = "\0\1\x81\x80\0\1\0\1\0\0\0\0"
				      "\2ok\4test\0\0\1\0\1"
				      "\xc0\x0c\0\5\0\1\0\0\0\x3c\0\2\xc0\x0c";
	struct dns_answer a;

	CHECK_INT(dns_parse_answer(msg, sizeof(msg) - 1, 1, "ok.test", DNS_A, &a), 0);
	CHECK(a.n == 1 && a.v[0].b[12] == 0x5d);
	CHECK_INT(a.ttl, 30);
	CHECK_INT(dns_parse_answer(loop, sizeof(loop) - 1, 1, "ok.test", DNS_A, &a), 0);
	CHECK_INT(a.n, 0);
}

TEST_MAIN()
