/* SPDX-License-Identifier: Apache-2.0 */
/* http/head_test.c - what is a head, and all that is none */
#include "base/test.h"
#include "http/head.h"

static ssize_t request(const char *text, struct http_head *h)
{
	struct err e = ERR_INIT;

	return http_parse_request(text, strlen(text), h, &e);
}

static int framing_of(const char *text)
{
	struct http_head h;
	struct http_framing f;
	struct err e = ERR_INIT;

	if (http_parse_request(text, strlen(text), &h, &e) <= 0)
		return -1;
	return http_request_framing(&h, &f, &e) < 0 ? -EBADMSG : (int)f.kind;
}

TEST(request_is_read)
{
	static const char text[] = "GET /a?b=c HTTP/1.1\r\nHost: x.test\r\nX-Empty:\r\nA:  b "
				   "\t\r\n\r\nrest";
	struct http_head h;
	struct str v;

	CHECK_INT(request(text, &h), (ssize_t)strlen(text) - 4);
	CHECK(str_is(h.method, "GET") && str_is(h.target, "/a?b=c") && h.minor == 1);
	CHECK_INT(h.n, 3);
	CHECK_INT(http_field_one(&h, "host", &v), 1);
	CHECK(str_is(v, "x.test"));
	CHECK(str_is(http_field_first(&h, "a")->value, "b"));
	CHECK(http_field_first(&h, "none") == NULL);
}

TEST(each_prefix_asks_for_more)
{
	static const char text[] = "GET / HTTP/1.0\r\nA: b\r\n\r\n";
	struct http_head h;
	struct err e = ERR_INIT;

	for (size_t n = 0; n < sizeof(text) - 1; n++)
		CHECK_INT(http_parse_request(text, n, &h, &e), 0);
	CHECK_INT(http_parse_request(text, sizeof(text) - 1, &h, &e), sizeof(text) - 1);
}

TEST(what_is_no_request)
{
	static const char *const wrong[] = {
		"\r\nGET / HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.1\nHost: a\n\n",
		"GET / HTTP/1.1\r\nHost: a\n\r\n",
		"GET / HTTP/1.1\rHost: a\r\n\r\n",
		"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
		"GET / HTTP/1.1\r\n Host: a\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
		"GET / HTTP/1.1\r\nno colon\r\n\r\n",
		"GET / HTTP/1.1\r\n: v\r\n\r\n",
		"GET / HTTP/1.1\r\nA: b\x01\r\n\r\n",
		"GET / HTTP/1.1\r\nA: b\x7f\r\n\r\n",
		"GET  / HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.1 \r\n\r\n",
		"GET / HTTP/2.0\r\n\r\n",
		"GET / HTTP/1.2\r\n\r\n",
		"GET / http/1.1\r\n\r\n",
		"GET /\r\n\r\n",
		"GET\r\n\r\n",
		"G(T / HTTP/1.1\r\n\r\n",
		" GET / HTTP/1.1\r\n\r\n",
		"GET /\x80 HTTP/1.1\r\n\r\n",
		"GET /\t HTTP/1.1\r\n\r\n",
		"ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG / HTTP/1.1\r\n\r\n",
	};
	struct http_head h;

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		if (request(wrong[i], &h) != -EBADMSG) {
			(void)fprintf(stderr, "accepted: case %zu '%s'\n", i, wrong[i]);
			CHECK(false);
		}
}

TEST(a_nul_is_refused_at_once)
{
	struct http_head h;
	struct err e = ERR_INIT;

	CHECK_INT(http_parse_request("GET /\0", 6, &h, &e), -EBADMSG);
	CHECK_INT(http_parse_request("GET / HTTP/1.1\n", 15, &h, &e), -EBADMSG);
}

TEST(size_and_number_are_bounded)
{
	_cleanup_(buf_done) struct buf b = BUF(MIB);
	struct http_head h;
	struct err e = ERR_INIT;

	buf_puts(&b, "GET / HTTP/1.1\r\nA: ");
	for (size_t i = 0; i < HTTP_HEAD_MAX; i++)
		buf_putc(&b, 'x');
	CHECK_INT(http_parse_request(b.p, HTTP_HEAD_MAX - 1, &h, &e), 0);
	CHECK_INT(http_parse_request(b.p, HTTP_HEAD_MAX, &h, &e), -EMSGSIZE);
	CHECK_INT(http_parse_request(b.p, b.n, &h, &e), -EMSGSIZE);
	b.n = 0;
	buf_puts(&b, "GET / HTTP/1.1\r\n");
	for (size_t i = 0; i <= HTTP_FIELDS_MAX; i++)
		buf_puts(&b, "A: b\r\n");
	CHECK_INT(http_parse_request(b.p, b.n, &h, &e), -EMSGSIZE);
}

TEST(response_is_read)
{
	static const char text[] = "HTTP/1.1 404 Not Found\r\nA: b\r\n\r\n";
	struct http_head h;
	struct err e = ERR_INIT;

	CHECK_INT(http_parse_response(text, strlen(text), &h, &e), (ssize_t)strlen(text));
	CHECK_INT(h.status, 404);
	CHECK(str_is(h.reason, "Not Found"));
	CHECK(http_parse_response("HTTP/1.1 200\r\n\r\n", 16, &h, &e) == 16);
	CHECK(http_parse_response("HTTP/1.1 2000\r\n\r\n", 17, &h, &e) == -EBADMSG);
	CHECK(http_parse_response("HTTP/1.1 020 x\r\n\r\n", 18, &h, &e) == -EBADMSG);
	CHECK(http_parse_response("HTTP/1.1 2x0 x\r\n\r\n", 18, &h, &e) == -EBADMSG);
	CHECK(http_parse_response("ICY 200 OK\r\n\r\n", 14, &h, &e) == -EBADMSG);
}

#define REQ(fields) "POST / HTTP/1.1\r\n" fields "\r\n"

TEST(request_framing)
{
	CHECK_INT(framing_of(REQ("")), HTTP_NO_BODY);
	CHECK_INT(framing_of(REQ("Content-Length: 0\r\n")), HTTP_NO_BODY);
	CHECK_INT(framing_of(REQ("content-length: 7\r\n")), HTTP_LENGTH);
	CHECK_INT(framing_of(REQ("Transfer-Encoding: Chunked\r\n")), HTTP_CHUNKED);
}

TEST(smuggling_is_refused)
{
	static const char *const wrong[] = {
		REQ("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"),
		REQ("Transfer-Encoding: chunked\r\nContent-Length: 1\r\n"),
		REQ("Content-Length: 1\r\nContent-Length: 1\r\n"),
		REQ("Content-Length: 1\r\nContent-Length: 2\r\n"),
		REQ("Content-Length: 1, 1\r\n"),
		REQ("Content-Length: +1\r\n"),
		REQ("Content-Length: -1\r\n"),
		REQ("Content-Length: 0x1\r\n"),
		REQ("Content-Length: 1 1\r\n"),
		REQ("Content-Length:\r\n"),
		REQ("Content-Length: 99999999999999999999\r\n"),
		REQ("Transfer-Encoding: gzip, chunked\r\n"),
		REQ("Transfer-Encoding: chunked, chunked\r\n"),
		REQ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
		REQ("Transfer-Encoding: identity\r\n"),
		REQ("Transfer-Encoding: xchunked\r\n"),
		REQ("Transfer-Encoding:\r\n"),
		"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
	};

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		if (framing_of(wrong[i]) != -EBADMSG) {
			(void)fprintf(stderr, "accepted: '%s'\n", wrong[i]);
			CHECK(false);
		}
}

static int response_framing(const char *text, const char *method)
{
	struct http_head h;
	struct http_framing f;
	struct err e = ERR_INIT;

	if (http_parse_response(text, strlen(text), &h, &e) <= 0)
		return -1;
	return http_response_framing(&h, str_of(method), &f, &e) < 0 ? -EBADMSG : (int)f.kind;
}

TEST(response_framings)
{
	CHECK_INT(response_framing("HTTP/1.1 200 OK\r\n\r\n", "GET"), HTTP_UNTIL_CLOSE);
	CHECK_INT(response_framing("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "GET"),
		  HTTP_LENGTH);
	CHECK_INT(response_framing("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "HEAD"),
		  HTTP_NO_BODY);
	CHECK_INT(response_framing("HTTP/1.1 304 x\r\nContent-Length: 5\r\n\r\n", "GET"),
		  HTTP_NO_BODY);
	CHECK_INT(response_framing("HTTP/1.1 204 x\r\n\r\n", "GET"), HTTP_NO_BODY);
	CHECK_INT(response_framing("HTTP/1.1 101 x\r\n\r\n", "GET"), HTTP_NO_BODY);
	CHECK_INT(response_framing("HTTP/1.1 200 x\r\n\r\n", "CONNECT"), HTTP_NO_BODY);
	CHECK_INT(response_framing("HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n"
				   "Content-Length: 3\r\n\r\n",
				   "GET"),
		  -EBADMSG);
}

TEST(hop_fields)
{
	struct http_head h;

	CHECK(request("GET / HTTP/1.1\r\nConnection: close, host, X-Mine\r\nconnection: Y\r\n\r\n",
		      &h) > 0);
	CHECK(http_field_is_hop(&h, STR("connection")));
	CHECK(http_field_is_hop(&h, STR("x-mine")));
	CHECK(http_field_is_hop(&h, STR("y")));
	CHECK(http_field_is_hop(&h, STR("Upgrade")));
	CHECK(!http_field_is_hop(&h, STR("Host")));
	CHECK(!http_field_is_hop(&h, STR("Accept")));
	CHECK(!http_is_persistent(&h));
	CHECK(request("GET / HTTP/1.0\r\n\r\n", &h) > 0);
	CHECK(!http_is_persistent(&h));
	CHECK(request("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", &h) > 0);
	CHECK(http_is_persistent(&h));
}

TEST(two_hosts_are_noticed)
{
	struct http_head h;
	struct str v;

	CHECK(request("GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n", &h) > 0);
	CHECK_INT(http_field_one(&h, "Host", &v), -EBADMSG);
	CHECK_INT(http_field_one(&h, "Other", &v), 0);
}

TEST(answer_is_written)
{
	_cleanup_(buf_done) struct buf b = BUF(KIB);

	http_put_answer(&b, 403, "text/plain", "no\n", true);
	CHECK_STR(buf_cstr(&b), "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\n"
				"Content-Length: 3\r\nConnection: close\r\n\r\nno\n");
	b.n = 0;
	http_put_request(&b, STR("GET"), STR("/"));
	http_put_field(&b, STR("Host"), STR("a"));
	http_put_end(&b);
	CHECK_STR(buf_cstr(&b), "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK_STR(http_reason(299), "");
}

TEST_MAIN()
