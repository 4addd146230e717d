/* SPDX-License-Identifier: Apache-2.0 */
/* http/uri_test.c - one spelling for a host, or none */
#include "base/test.h"
#include "http/uri.h"

static bool authority(const char *text, const char *host, uint16_t port)
{
	struct http_authority a;
	struct err e = ERR_INIT;

	return http_parse_authority(str_of(text), &a, &e) == 0 && str_eq(a.host, host) &&
	       a.port == port;
}

TEST(authorities)
{
	CHECK(authority("example.org", "example.org", 0));
	CHECK(authority("Example.ORG.:443", "example.org", 443));
	CHECK(authority("a_b.xn--bcher-kva.test:1", "a_b.xn--bcher-kva.test", 1));
	CHECK(authority("127.0.0.1:65535", "127.0.0.1", 65535));
	CHECK(authority("[::FFFF:1.2.3.4]:80", "::ffff:1.2.3.4", 80));
	CHECK(authority("[::1]", "::1", 0));
	CHECK(authority("localhost", "localhost", 0));
}

TEST(what_is_no_authority)
{
	static const char *const wrong[] = { "",
					     ".",
					     "..",
					     ".a",
					     "a..b",
					     "a..",
					     "a@b",
					     "a:80@b",
					     "u:p@b:80",
					     "a b",
					     "a\\b",
					     "a%2eb",
					     "a/b",
					     "a#b",
					     "a?b",
					     "a,b",
					     "\xef\xbd\x81.test",
					     "a\xe3\x80\x82test",
					     "a\xc2\xad.test",
					     "a:",
					     "a:0",
					     "a:065",
					     "a:65536",
					     "a:-1",
					     "a:+443",
					     "a:443abc",
					     "a:443:443",
					     "a: 443",
					     "::1",
					     "[::1",
					     "[]",
					     "[1]",
					     "[::1]x",
					     "[::1%eth0]",
					     "[fe80::1%25lo]:80",
					     "[a.test]:80" };
	_free_ char *longer = mem_new(300, 1);

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct http_authority a;
		struct err e = ERR_INIT;

		if (http_parse_authority(str_of(wrong[i]), &a, &e) != -EBADMSG) {
			(void)fprintf(stderr, "accepted: '%s'\n", wrong[i]);
			CHECK(false);
		}
	}
	memset(longer, 'a', 64);
	CHECK(!authority(longer, longer, 0));
	for (size_t i = 60; i < 280; i += 60)
		longer[i] = '.';
	for (size_t i = 64; i < 280; i++)
		if (longer[i] == '\0')
			longer[i] = 'a';
	CHECK(!authority(longer, longer, 0));
	CHECK_INT(http_parse_authority((struct str){ .p = "evil\0.ok", .n = 8 },
				       &(struct http_authority){ 0 }, &ERR_INIT),
		  -EBADMSG);
}

static int target(const char *method, const char *text, struct http_target *t)
{
	struct err e = ERR_INIT;

	return http_parse_target(str_of(method), str_of(text), t, &e);
}

TEST(targets)
{
	struct http_target t;

	CHECK(target("GET", "/a/b?c", &t) == 0 && t.form == HTTP_ORIGIN &&
	      str_is(t.path, "/a/b?c"));
	CHECK(target("GET", "http://A.test", &t) == 0 && t.form == HTTP_ABSOLUTE && !t.is_https);
	CHECK(str_is(t.path, "/") && str_eq(t.authority.host, "a.test"));
	CHECK(target("GET", "HTTPS://a.test:8443/x", &t) == 0 && t.is_https);
	CHECK(str_is(t.path, "/x") && t.authority.port == 8443);
	CHECK(target("CONNECT", "a.test:443", &t) == 0 && t.form == HTTP_AUTHORITY);
	CHECK(target("OPTIONS", "*", &t) == 0 && t.form == HTTP_ASTERISK);
}

TEST(what_is_no_target)
{
	struct http_target t;

	CHECK(target("GET", "*", &t) < 0);
	CHECK(target("GET", "a.test:443", &t) < 0);
	CHECK(target("GET", "ftp://a.test/", &t) < 0);
	CHECK(target("GET", "/a#b", &t) < 0);
	CHECK(target("GET", "http://a.test#b", &t) < 0);
	CHECK(target("GET", "http://a.test?b", &t) < 0);
	CHECK(target("GET", "http://u@a.test/", &t) < 0);
	CHECK(target("GET", "http://evil.test\\@ok.test/", &t) < 0);
	CHECK(target("GET", "http:///", &t) < 0);
	CHECK(target("CONNECT", "a.test", &t) < 0);
	CHECK(target("CONNECT", "http://a.test:80/", &t) < 0);
	CHECK(target("CONNECT", "/", &t) < 0);
}

TEST(comparing)
{
	struct http_authority a = { .host = "a.test" };

	CHECK(http_authority_is(&a, "a.test", 443, 443));
	CHECK(!http_authority_is(&a, "a.test", 80, 443));
	CHECK(!http_authority_is(&a, "b.test", 443, 443));
	a.port = 8443;
	CHECK(http_authority_is(&a, "a.test", 8443, 443));
}

TEST(a_path_has_one_canonical_form)
{
	static const char *const fine[] = { "/",     "/a",     "/a/",   "/a.b/c..d",
					    "/%20a", "/a%20b", "/...x", "/a?//..;%2f" };
	static const char *const wrong[] = { "//",     "/a//b", "/.",   "/../a", "/a/..",  "/a/./b",
					     "/%61",   "/%2e",  "/a;b", "/a\\b", "/a%5Cb", "/a%3bb",
					     "/a%00b", "/a%",   "/a%2", "/a%zz", "/%2E%2E" };
	/* Only where something is decided by the path. */
	static const char *const doubtful[] = { "/a%2Fb", "/a%2fb", "/a%25b", "/%C0%AF", "/a./b",
						"/a.",    "/%20a",  "/a%20",  "/a%20/b", "/..." };
	struct err e = ERR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(fine); i++)
		CHECK_INT(http_check_canonical(str_of(fine[i]), false, &e), 0);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		CHECK_INT(http_check_canonical(str_of(wrong[i]), false, &e), -EBADMSG);
		CHECK_INT(http_check_canonical(str_of(wrong[i]), true, &e), -EBADMSG);
	}
	for (size_t i = 0; i < ARRAY_LEN(doubtful); i++) {
		CHECK_INT(http_check_canonical(str_of(doubtful[i]), false, &e), 0);
		CHECK_INT(http_check_canonical(str_of(doubtful[i]), true, &e), -EBADMSG);
	}
}

TEST_MAIN()
