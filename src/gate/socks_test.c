/* SPDX-License-Identifier: Apache-2.0 */
/* gate/socks_test.c - SOCKS5: what is served, what is refused and with which code */
#include "base/test.h"
#include "gate/socks_msg.h"

#define REQ(text) (const uint8_t *)(text), sizeof(text) - 1

TEST(hello)
{
	CHECK_INT(socks_parse_hello(REQ("\5\1\0")), 3);
	CHECK_INT(socks_parse_hello(REQ("\5\2\2\0rest")), 4);
	CHECK_INT(socks_parse_hello(REQ("\5\2\2")), 0);
	CHECK_INT(socks_parse_hello(REQ("\5")), 0);
	CHECK_INT(socks_parse_hello(REQ("\5\1\2")), -EPROTO);
	CHECK_INT(socks_parse_hello(REQ("\4\1")), -EBADMSG);
}

TEST(requests)
{
	struct socks_request r;

	CHECK_INT(socks_parse_request(REQ("\5\1\0\3\7Ok.Test\1\xbb"), &r), 14);
	CHECK(r.code == SOCKS_OK && r.port == 443 && !r.host.is_addr);
	CHECK_STR(r.host.name, "ok.test");
	CHECK_INT(socks_parse_request(REQ("\5\1\0\1\1\2\3\4\0\x50"), &r), 10);
	CHECK_STR(r.host.name, "1.2.3.4");
	CHECK_INT(socks_parse_request(REQ("\5\1\0\4\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\1\0\x50"),
				      &r),
		  22);
	CHECK_STR(r.host.name, "127.0.0.1");
	CHECK_INT(socks_parse_request(REQ("\5\1\0\3\7ok.test\1"), &r), 0);
}

TEST(refusals)
{
	static const struct {
		const char *p;
		size_t n;
		unsigned code;
	} bad[] = {
#define BAD(text, code) { text, sizeof(text) - 1, code }
		BAD("\5\2\0\1\1\2\3\4\0\x50", SOCKS_COMMAND),
		BAD("\5\3\0\1\1\2\3\4\0\x50", SOCKS_COMMAND),
		BAD("\5\1\0\2\1\2\3\4\0\x50", SOCKS_ADDRESS),
		BAD("\5\1\1\1\1\2\3\4\0\x50", SOCKS_FAILED),
		BAD("\5\1\0\1\1\2\3\4\0\0", SOCKS_FAILED),
		BAD("\5\1\0\3\0\0\x50", SOCKS_FAILED),
		BAD("\5\1\0\3\x11"
		    "evil.test\0.ok.tes\0\x50",
		    SOCKS_FAILED),
		BAD("\5\1\0\3\5"
		    "127.1\0\x50",
		    SOCKS_FAILED),
		BAD("\4\1\0\x50\1\2\3\4\0", SOCKS_FAILED),
	};
	struct socks_request r;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		CHECK(socks_parse_request((const uint8_t *)bad[i].p, bad[i].n, &r) != 0);
		CHECK_INT(r.code, bad[i].code);
	}
}

TEST_MAIN()
