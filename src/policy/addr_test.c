/* SPDX-License-Identifier: Apache-2.0 */
/* policy/addr_test.c - one spelling for names and addresses, and the class of each address */
#include "base/test.h"
#include "policy/addr.h"

static const char *canon(const char *text)
{
	static struct host_id h;
	const char *why;

	return host_parse(text, strlen(text), &h, &why) < 0 ? "-" : h.name;
}

TEST(names)
{
	CHECK_STR(canon("Example.ORG"), "example.org");
	CHECK_STR(canon("example.org."), "example.org");
	CHECK_STR(canon("a_b.x-y.test"), "a_b.x-y.test");
	CHECK_STR(canon("xn--bcher-kva.test"), "xn--bcher-kva.test");
	CHECK_STR(canon("localhost"), "localhost");
	CHECK_STR(canon("3com.test"), "3com.test");
	static const char *const bad[] = {
		"",
		".",
		"..",
		"example.org..",
		".example.org",
		"a..b",
		"a b",
		"a/b",
		"a@b",
		"a:b",
		"a%2eb",
		"-a.test",
		"a-.test",
		"a\\b",
		"b\303\274cher.test",
		"a\343\200\202b",
		"a\tb",
		"ok.test#@x",
		"ok.test?x",
		"*.a.test",
		"[a]",
		"[1.2.3.4]",
		"a,b",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.test",
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_STR(canon(bad[i]), "-");
	struct host_id h;
	const char *why;
	CHECK(host_parse("ok.test\0.evil", 13, &h, &why) < 0);
}

TEST(addresses)
{
	CHECK_STR(canon("127.0.0.1"), "127.0.0.1");
	CHECK_STR(canon("::1"), "::1");
	CHECK_STR(canon("[::1]"), "::1");
	CHECK_STR(canon("::"), "::");
	CHECK_STR(canon("2001:DB8:0:0:1:0:0:1"), "2001:db8::1:0:0:1");
	CHECK_STR(canon("1:2:3:4:5:6:7:8"), "1:2:3:4:5:6:7:8");
	CHECK_STR(canon("1:2:3:4:5:6:7::"), "1:2:3:4:5:6:7:0");
	CHECK_STR(canon("::2:3:4:5:6:7:8"), "0:2:3:4:5:6:7:8");
	CHECK_STR(canon("::ffff:169.254.169.254"), "169.254.169.254");
	CHECK_STR(canon("::ffff:a9fe:a9fe"), "169.254.169.254");
	CHECK_STR(canon("64:ff9b::1.2.3.4"), "64:ff9b::102:304");
	CHECK_STR(canon("fe80::1"), "fe80::1");
	/* Every old spelling of 127.0.0.1 and its like. */
	static const char *const bad[] = {
		"2130706433",
		"0x7f000001",
		"0177.0.0.1",
		"127.1",
		"127.0.1",
		"0x7f.1",
		"127.0.0.01",
		"127.0.0.1..",
		"127.0.0.256",
		"127.0.0.1.1",
		"1.2.3",
		"0",
		"00.0.0.0",
		"1.2.3.4 ",
		"1.2.3.0x4",
		":::",
		"1::2::3",
		"12345::",
		"fe80::1%lo",
		"::1.2.3",
		"::ffff:1.2.3.4.5",
		"1:2:3:4:5:6:7:8:9",
		"1:2:3:4:5:6:7",
		"[::1",
		"::1]",
		":1",
		"1:",
		"0x",
		"a.0x1",
		"\357\274\221\357\274\222\357\274\227.0.0.1",
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_STR(canon(bad[i]), "-");
	CHECK_STR(canon("127.0.0.1."), "-");
}

static enum addr_class class_of(const char *text)
{
	struct addr a = { 0 };

	CHECK_INT(addr_parse(text, strlen(text), &a), 0);
	return addr_classify(&a, NULL);
}

TEST(classes)
{
	static const struct {
		const char *text;
		enum addr_class want;
	} table[] = {
		{ "93.184.216.34", ADDR_PUBLIC },
		{ "8.8.8.8", ADDR_PUBLIC },
		{ "1.1.1.1", ADDR_PUBLIC },
		{ "172.15.255.255", ADDR_PUBLIC },
		{ "172.32.0.0", ADDR_PUBLIC },
		{ "100.63.255.255", ADDR_PUBLIC },
		{ "100.128.0.0", ADDR_PUBLIC },
		{ "223.255.255.255", ADDR_PUBLIC },
		{ "2606:4700::1111", ADDR_PUBLIC },
		{ "127.0.0.1", ADDR_LOOPBACK },
		{ "127.255.255.254", ADDR_LOOPBACK },
		{ "0.0.0.0", ADDR_LOOPBACK },
		{ "0.1.2.3", ADDR_LOOPBACK },
		{ "169.254.169.254", ADDR_LINK_LOCAL },
		{ "169.254.170.2", ADDR_LINK_LOCAL },
		{ "168.63.129.16", ADDR_LINK_LOCAL },
		{ "10.0.0.5", ADDR_PRIVATE },
		{ "172.16.0.1", ADDR_PRIVATE },
		{ "172.31.255.255", ADDR_PRIVATE },
		{ "192.168.1.1", ADDR_PRIVATE },
		{ "100.100.100.200", ADDR_SHARED },
		{ "100.64.0.1", ADDR_SHARED },
		{ "224.0.0.1", ADDR_MULTICAST },
		{ "239.255.255.250", ADDR_MULTICAST },
		{ "240.0.0.1", ADDR_RESERVED },
		{ "255.255.255.255", ADDR_RESERVED },
		{ "198.18.0.1", ADDR_RESERVED },
		{ "198.19.255.255", ADDR_RESERVED },
		{ "192.0.2.1", ADDR_RESERVED },
		{ "192.0.0.170", ADDR_RESERVED },
		{ "::1", ADDR_LOOPBACK },
		{ "::", ADDR_LOOPBACK },
		{ "fe80::1", ADDR_LINK_LOCAL },
		{ "febf::1", ADDR_LINK_LOCAL },
		{ "fec0::1", ADDR_PRIVATE },
		{ "fd00:ec2::254", ADDR_PRIVATE },
		{ "fc00::1", ADDR_PRIVATE },
		{ "ff02::1", ADDR_MULTICAST },
		{ "2001:db8::1", ADDR_RESERVED },
		{ "::ffff:127.0.0.1", ADDR_LOOPBACK },
		{ "::ffff:169.254.169.254", ADDR_LINK_LOCAL },
		{ "::127.0.0.1", ADDR_LOOPBACK },
		{ "64:ff9b::a9fe:a9fe", ADDR_LINK_LOCAL },
		{ "64:ff9b::8.8.8.8", ADDR_PUBLIC },
		{ "64:ff9b::10.0.0.1", ADDR_PRIVATE },
		{ "64:ff9b:1::1", ADDR_PRIVATE },
		{ "2002:7f00:1::", ADDR_LOOPBACK },
		{ "2002:a9fe:a9fe::1", ADDR_LINK_LOCAL },
		{ "2002:808:808::1", ADDR_PUBLIC },
		{ "2001:0:1234::80ff:fffe", ADDR_LOOPBACK }, /* Teredo of 127.0.0.1 */
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (class_of(table[i].text) != table[i].want)
			CHECK_STR(table[i].text, addr_class_name(class_of(table[i].text)));
}

static int port_of(const char *text, uint16_t usual)
{
	struct host_id h;
	const char *why;
	uint16_t port = 0;

	return host_port_parse(text, strlen(text), usual, &h, &port, &why) < 0 ? -1 : port;
}

TEST(ports)
{
	CHECK_INT(port_of("ok.test:443", 0), 443);
	CHECK_INT(port_of("ok.test", 80), 80);
	CHECK_INT(port_of("[::1]:65535", 0), 65535);
	CHECK_INT(port_of("[::1]", 80), 80);
	static const char *const bad[] = { "ok.test",       "ok.test:",    "ok.test:0",
					   "ok.test:65536", "ok.test:-1",  "ok.test:443abc",
					   "ok.test:+443",  "ok.test: 80", "::1:443",
					   "[::1]443",      ":443",        "ok.test:080",
					   "ok.test:1:2",   "a@ok.test:80" };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_INT(port_of(bad[i], 0), -1);
}

TEST_MAIN()
