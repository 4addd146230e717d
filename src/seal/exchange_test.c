/* SPDX-License-Identifier: Apache-2.0 */
/* seal/exchange_test.c - one request judged and rewritten, its answer masked, without a wire */
#include "base/test.h"
#include "seal/exchange.h"
#include "secret/secret.h"

#define HOLDER "sk-hold-9876543210"
#define SECRET "sk-real-0123456789"

static const struct exchange_way way = { .id = 7, .host = "ok.test", .port = 443, .is_tls = true };
static char said[4096];

static void on_event(void *arg, const char *json)
{
	(void)arg;
	(void)snprintf(said, sizeof(said), "%s", json);
}

static struct terms *make_rules(void)
{
	static const char text[] =
		"{\"deny\":[\"* "
		"ok.test/no\"],\"git\":{\"push\":[\"git.test/me/app:refs/heads/x\"]},"
		"\"secrets\":[{\"name\":\"a\",\"placeholder\":\"" HOLDER "\",\"hosts\":[\"ok."
		"test\"]},"
		"{\"name\":\"b\",\"placeholder\":\"other-placeholder\",\"hosts\":[\"*.else.test\"]}"
		","
		"{\"name\":\"c\",\"placeholder\":\"only-in-x-key-1\",\"hosts\":[\"ok.test\"],"
		"\"headers\":[\"x-key\"]}]}";
	struct terms *r = terms_new();
	struct err e = ERR_INIT;

	CHECK_INT(terms_parse(r, text, sizeof(text) - 1, &e), 0);
	CHECK_INT(vault_set(&r->vault, "a", STR(SECRET)), 0);
	CHECK_INT(vault_set(&r->vault, "b", STR("value-of-b")), 0);
	CHECK_INT(vault_set(&r->vault, "c", STR("value-of-c-here")), 0);
	CHECK_INT(vault_set(&r->vault, "none", STR("x")), -ENOENT);
	CHECK_INT(vault_set(&r->vault, "a", STR("two\r\nlines")), -EINVAL);
	return r;
}

static struct http_head in, out;

static int ask(struct exchange *x, struct terms *r, const struct exchange_way *w, const char *text)
{
	struct err e = ERR_INIT;

	exchange_begin(x, w, r, on_event, NULL);
	CHECK(http_parse_request(text, strlen(text), &in, &e) > 0);
	return exchange_request(x, &in, &out);
}

static struct str sent(const char *name)
{
	const struct http_field *f = http_field_first(&out, name);

	return f ? f->value : STR("(none)");
}

TEST(headers_are_swapped)
{
	struct terms *r = make_rules();
	struct exchange x;

	CHECK_INT(ask(&x, r, &way,
		      "GET /a HTTP/1.1\r\nHost: ok.test\r\nAuthorization: Bearer " HOLDER
		      "\r\nX-Other: other-placeholder\r\nX-C: only-in-x-key-1\r\n"
		      "X-Key: only-in-x-key-1\r\nConnection: close, X-Drop\r\nX-Drop: 1\r\n"
		      "Accept-Encoding: gzip\r\n\r\n"),
		  0);
	CHECK(str_is(sent("Authorization"), "Bearer " SECRET));
	CHECK(str_is(sent("X-Other"), "other-placeholder"));
	CHECK(str_is(sent("X-C"), "only-in-x-key-1"));
	CHECK(str_is(sent("X-Key"), "value-of-c-here"));
	CHECK(str_is(sent("X-Drop"), "(none)"));
	CHECK(str_is(sent("Accept-Encoding"), "identity"));
	exchange_end(&x);
	CHECK(strstr(said, "\"secrets\":[\"a\",\"c\"]") != NULL);
	CHECK(strstr(said, "\"placeholders_elsewhere\":[\"b\",\"c\"]") != NULL);
	CHECK(strstr(said, SECRET) == NULL && strstr(said, "value-of") == NULL);
	terms_unref(r);
}

TEST(nothing_is_swapped_without_tls)
{
	const struct exchange_way plain = { .id = 8, .host = "ok.test", .port = 80 };
	struct terms *r = make_rules();
	struct exchange x;

	CHECK_INT(
		ask(&x, r, &plain, "GET /a HTTP/1.1\r\nHost: ok.test\r\nX-Key: " HOLDER "\r\n\r\n"),
		0);
	CHECK(str_is(sent("X-Key"), HOLDER));
	exchange_end(&x);
	terms_unref(r);
}

TEST(basic_is_looked_into)
{
	struct terms *r = make_rules();
	struct exchange x;

	/* me:sk-hold-9876543210 */
	CHECK_INT(ask(&x, r, &way,
		      "GET / HTTP/1.1\r\nHost: ok.test\r\n"
		      "Authorization: basic bWU6c2staG9sZC05ODc2NTQzMjEw\r\n\r\n"),
		  0);
	CHECK(str_is(sent("Authorization"), "Basic bWU6c2stcmVhbC0wMTIzNDU2Nzg5"));
	exchange_end(&x);
	CHECK_INT(ask(&x, r, &way,
		      "GET / HTTP/1.1\r\nHost: ok.test\r\nAuthorization: Basic !!!!\r\n\r\n"),
		  0);
	CHECK(str_is(sent("Authorization"), "Basic !!!!"));
	exchange_end(&x);
	terms_unref(r);
}

static void refused(const char *text, unsigned code)
{
	struct terms *r = make_rules();
	struct exchange x;

	CHECK(ask(&x, r, &way, text) < 0);
	CHECK_INT(x.code, code);
	exchange_end(&x);
	CHECK(strstr(said, "\"verdict\":\"deny\"") != NULL);
	terms_unref(r);
}

TEST(refusals)
{
	refused("GET / HTTP/1.1\r\n\r\n", 400);
	refused("GET / HTTP/1.1\r\nHost: ok.test\r\nHost: ok.test\r\n\r\n", 400);
	refused("GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", 421);
	refused("GET / HTTP/1.1\r\nHost: ok.test:80\r\n\r\n", 421);
	refused("GET http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n", 400);
	refused("GET https://evil.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n", 400);
	refused("GET /a HTTP/1.1\r\nHost: ok.test\r\nContent-Length: 1\r\n\r\n", 400);
	refused("GET /a HTTP/1.1\r\nHost: ok.test\r\nTransfer-Encoding: chunked\r\n\r\n", 400);
	refused("SEARCH /a HTTP/1.1\r\nHost: ok.test\r\nContent-Length: 1\r\n\r\n", 400);
	refused("GET //a HTTP/1.1\r\nHost: ok.test\r\n\r\n", 400);
	refused("GET /%61 HTTP/1.1\r\nHost: ok.test\r\n\r\n", 400);
	refused("GET /a HTTP/1.1\r\nHost: ok.test\r\nX-HTTP-Method-Override: DELETE\r\n\r\n", 400);
	refused("GET /a HTTP/1.1\r\nHost: ok.test\r\nx_original_url: /no\r\n\r\n", 400);
	refused("GET /a HTTP/1.1\r\nHost: ok.test\r\nForwarded: host=evil.test\r\n\r\n", 400);
	refused("GET /a HTTP/1.1\r\nHost: ok.test\r\nX-Forwarded-Host: evil.test\r\n\r\n", 400);
	refused("POST /a HTTP/1.1\r\nHost: ok.test\r\nTransfer_Encoding: chunked\r\n\r\n", 400);
	refused("CONNECT ok.test:443 HTTP/1.1\r\nHost: ok.test\r\n\r\n", 405);
	refused("GET /no HTTP/1.1\r\nHost: ok.test\r\n\r\n", 403);
	refused("GET /../no HTTP/1.1\r\nHost: ok.test\r\n\r\n", 400);
}

TEST(answers_are_masked)
{
	static const char text[] = "HTTP/1.1 200 " SECRET "\r\nX-Back: a " SECRET " b\r\n"
				   "X-" SECRET ": c\r\nConnection: close\r\n\r\n";
	struct terms *r = make_rules();
	struct exchange x;
	struct err e = ERR_INIT;
	struct str body;

	CHECK_INT(ask(&x, r, &way, "GET /a HTTP/1.1\r\nHost: ok.test\r\n\r\n"), 0);
	CHECK(http_parse_response(text, strlen(text), &in, &e) > 0);
	CHECK_INT(exchange_response(&x, &in, &out), 0);
	CHECK(str_is(sent("X-Back"), "a " HOLDER " b"));
	CHECK(str_is(sent("X-" SECRET), "(none)"));
	CHECK_INT(out.n, 1);
	CHECK(str_is(out.reason, HOLDER));
	CHECK(str_is(sent("Connection"), "(none)"));
	exchange_down(&x, "1 " SECRET, 2 + strlen(SECRET), &body);
	CHECK(str_is(body, "1 " HOLDER));
	exchange_end(&x);
	terms_unref(r);
}

TEST(compression_hides_nothing)
{
	static const char text[] = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n";
	struct terms *r = make_rules();
	struct exchange x;
	struct err e = ERR_INIT;

	for (int has_secret = 0; has_secret < 2; has_secret++) {
		CHECK_INT(ask(&x, r, &way,
			      has_secret ? "GET /a HTTP/1.1\r\nHost: ok.test\r\nX-A: " HOLDER "\r\n"
					   "Accept-Encoding: gzip\r\nRange: bytes=0-4\r\n\r\n"
					 : "GET /a HTTP/1.1\r\nHost: ok.test\r\nIf-Range: x\r\n"
					   "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"),
			  0);
		CHECK(str_is(sent("Accept-Encoding"), "identity"));
		CHECK(str_is(sent("Range"), "(none)") && str_is(sent("If-Range"), "(none)"));
		CHECK(str_is(sent("Sec-WebSocket-Extensions"), "(none)"));
		CHECK(http_parse_response(text, strlen(text), &in, &e) > 0);
		CHECK_INT(exchange_response(&x, &in, &out), -EACCES);
		exchange_end(&x);
	}
	terms_unref(r);
}

TEST(parts_and_extensions_hide_nothing)
{
	static const char *const answers[] = {
		"HTTP/1.1 206 Partial Content\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Range: bytes 0-1/9\r\n\r\n",
		"HTTP/1.1 226 IM Used\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=UTF-16LE\r\n\r\n",
		"HTTP/1.1 404 No\r\nContent-Type: a\r\nContent-Type: b;Charset=utf-7\r\n\r\n",
		"HTTP/1.1 101 Switching\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
	};
	struct terms *r = make_rules();
	struct exchange x;
	struct err e = ERR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		CHECK_INT(ask(&x, r, &way, "GET /a HTTP/1.1\r\nHost: ok.test\r\n\r\n"), 0);
		CHECK(http_parse_response(answers[i], strlen(answers[i]), &in, &e) > 0);
		CHECK_INT(exchange_response(&x, &in, &out), -EACCES);
		exchange_end(&x);
	}
	terms_unref(r);
}

/* Masked with the value of now and with every one before. */
TEST(a_value_that_was_replaced_stays_masked)
{
	static const char text[] = "HTTP/1.1 200 OK\r\n\r\n";
	struct terms *r = make_rules(), *next = make_rules();
	struct exchange x;
	struct err e = ERR_INIT;
	struct str body;

	for (int i = 0; i < 40; i++) {
		_free_ char *value = mem_fmt("sk-new-%08d", i);

		CHECK_INT(vault_set(&r->vault, r->vault.v[0].name, str_of(value)), 0);
	}
	CHECK_INT(vault_adopt(&next->vault, &r->vault), 0);
	CHECK_INT(ask(&x, next, &way, "GET /a HTTP/1.1\r\nHost: ok.test\r\n\r\n"), 0);
	CHECK(http_parse_response(text, strlen(text), &in, &e) > 0);
	CHECK_INT(exchange_response(&x, &in, &out), 0);
	CHECK_INT(exchange_down(&x, "1 " SECRET " sk-new-00000003 sk-new-00000039 z",
				strlen("1 " SECRET " sk-new-00000003 sk-new-00000039 z"), &body),
		  0);
	CHECK(memmem(body.p, body.n, "sk-new-", 7) == NULL ||
	      memmem(body.p, body.n, "0000003", 7) == NULL);
	CHECK(memmem(body.p, body.n, SECRET, strlen(SECRET)) == NULL);
	CHECK(memmem(body.p, body.n, "00000039", 8) == NULL);
	exchange_end(&x);
	CHECK_INT(vault_set(&next->vault, next->vault.v[0].name, STR("short")), -EINVAL);
	terms_unref(next);
	terms_unref(r);
}

/* An answer that goes on while a value comes: another request may have sent that value to the same server. */
TEST(a_value_that_comes_later_is_masked_in_a_long_answer)
{
	static const char text[] = "HTTP/1.1 200 OK\r\n\r\n";
	struct terms *r = make_rules(), *next = make_rules();
	struct exchange x;
	struct err e = ERR_INIT;
	struct str body;

	CHECK_INT(ask(&x, r, &way, "GET /a HTTP/1.1\r\nHost: ok.test\r\n\r\n"), 0);
	CHECK(http_parse_response(text, strlen(text), &in, &e) > 0);
	CHECK_INT(exchange_response(&x, &in, &out), 0);
	CHECK_INT(vault_set(&r->vault, "a", STR("sk-new-00000001")), 0);
	CHECK_INT(exchange_down(&x, "1 sk-new-00000001 2", 19, &body), 0);
	CHECK(memmem(body.p, body.n, "00000001", 8) == NULL);
	CHECK_INT(vault_adopt(&next->vault, &r->vault), 0);
	r->newer = terms_ref(next);
	terms_unref(r);
	CHECK_INT(vault_set(&next->vault, "a", STR("sk-new-00000002")), 0);
	CHECK_INT(exchange_down(&x, "sk-new-00000001 sk-new-00000002 " SECRET "!",
				33 + strlen(SECRET), &body),
		  0);
	CHECK(memmem(body.p, body.n, "0000000", 7) == NULL &&
	      memmem(body.p, body.n, SECRET, strlen(SECRET)) == NULL);
	exchange_end(&x);
	terms_unref(next);
}

/* Behind any name, in an answer to another request than the one that sent it. */
TEST(basic_is_masked_whoever_asks)
{
	static const char text[] = "HTTP/1.1 200 OK\r\n\r\n";
	static const char *const coded[] = {
		"c2stcmVhbC0wMTIzNDU2Nzg5",         /* the value alone */
		"bTpzay1yZWFsLTAxMjM0NTY3ODk=",     /* m: */
		"bWVlOnNrLXJlYWwtMDEyMzQ1Njc4OQ==", /* mee: */
		"bWU6c2stcmVhbC0wMTIzNDU2Nzg5Ojo=", /* me: and something behind it */
	};
	struct terms *r = make_rules();

	for (size_t i = 0; i < ARRAY_LEN(coded); i++) {
		struct exchange x;
		struct err e = ERR_INIT;
		struct str body;

		CHECK_INT(ask(&x, r, &way, "GET /a HTTP/1.1\r\nHost: ok.test\r\n\r\n"), 0);
		CHECK(http_parse_response(text, strlen(text), &in, &e) > 0);
		CHECK_INT(exchange_response(&x, &in, &out), 0);
		CHECK_INT(exchange_down(&x, coded[i], strlen(coded[i]), &body), 0);
		CHECK(memmem(body.p, body.n, coded[i] + 8, 12) == NULL);
		exchange_end(&x);
	}
	terms_unref(r);
}

/* A value with '/' and its kin, as it stands in an address and in JSON; and a field that ends inside a value. */
TEST(a_value_is_masked_as_servers_write_it)
{
	static const char rules[] = "{\"secrets\":[{\"name\":\"a\",\"placeholder\":\"1//"
				    "0HOLDERS+=xx\","
				    "\"hosts\":[\"ok.test\"]}]}";
	static const char text[] = "HTTP/1.1 302 Found\r\nLocation: /?t=1%2F%2F0real9%2B%3Dzz\r\n"
				   "X-Url: /?t=1%2f%2f0real9%2b%3dzz\r\nX-Cut: 1//0real9\r\n\r\n";
	static const char json[] = "{\"t\":\"1\\/\\/0real9+=zz\"}";
	struct terms *r = terms_new();
	struct exchange x;
	struct err e = ERR_INIT;
	struct str body;

	CHECK_INT(terms_parse(r, rules, sizeof(rules) - 1, &e), 0);
	CHECK_INT(vault_set(&r->vault, "a", STR("1//0real9+=zz")), 0);
	CHECK_INT(ask(&x, r, &way, "GET /a HTTP/1.1\r\nHost: ok.test\r\n\r\n"), 0);
	CHECK(http_parse_response(text, strlen(text), &in, &e) > 0);
	CHECK_INT(exchange_response(&x, &in, &out), 0);
	CHECK(memmem(sent("Location").p, sent("Location").n, "real9", 5) == NULL);
	CHECK(memmem(sent("X-Url").p, sent("X-Url").n, "real9", 5) == NULL);
	CHECK(memmem(sent("X-Cut").p, sent("X-Cut").n, "real9", 5) == NULL);
	CHECK_INT(exchange_down(&x, json, strlen(json), &body), 0);
	CHECK(body.n == strlen(json) && memmem(body.p, body.n, "real9", 5) == NULL);
	exchange_end(&x);
	terms_unref(r);
}

/* A body that ends inside a placeholder goes out as it is: half of the value would be sent, and come back unmasked. */
TEST(half_a_placeholder_is_none)
{
	static const char rules[] = "{\"secrets\":[{\"name\":\"a\",\"placeholder\":\"" HOLDER
				    "\",\"hosts\":[\"ok.test\"],\"in\":[\"body\"]}]}";
	static const char half[] = "sk-hold-987654321";
	struct terms *r = terms_new();
	struct exchange x;
	struct err e = ERR_INIT;
	_cleanup_(buf_done) struct buf up = BUF(KIB);
	struct str body;

	CHECK_INT(terms_parse(r, rules, sizeof(rules) - 1, &e), 0);
	CHECK_INT(vault_set(&r->vault, "a", STR(SECRET)), 0);
	CHECK_INT(ask(&x, r, &way, "POST /a HTTP/1.1\r\nHost: ok.test\r\n\r\n"), 0);
	CHECK_INT(exchange_up(&x, half, strlen(half), &body), 0);
	buf_add(&up, body.p, body.n);
	exchange_up_end(&x, &body);
	buf_add(&up, body.p, body.n);
	CHECK_STR(buf_cstr(&up), half);
	exchange_end(&x);
	terms_unref(r);
}

/* The body in pieces of `step` bytes, as it goes out; the Content-Length that goes with it in *ret, where it changes. */
static void send_body(struct exchange *x, const char *text, size_t step, struct buf *up,
		      uint64_t *ret)
{
	size_t n = strlen(text), at = 0;
	struct str body;

	if (x->is_held) {
		for (; at < n; at += step)
			CHECK_INT(exchange_hold(x, text + at, n - at < step ? n - at : step), 0);
		CHECK_INT(exchange_hold_end(x), 1);
		at = 0;
		step = n;
	}
	for (; at < n; at += step) {
		CHECK_INT(exchange_up(x, text + at, n - at < step ? n - at : step, &body), 0);
		buf_add(up, body.p, body.n);
	}
	if (x->is_resized)
		*ret = exchange_length(x);
	exchange_up_end(x, &body);
	buf_add(up, body.p, body.n);
}

/* A server that sends back what it got: the value is masked in the writing in which it went out. */
static void check_echo(struct exchange *x, const char *text, const char *value)
{
	static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n";
	_cleanup_(buf_done) struct buf down = BUF(KIB);
	static struct http_head answer;
	struct err e = ERR_INIT;
	struct str body;

	CHECK(http_parse_response(ok, sizeof(ok) - 1, &answer, &e) > 0);
	CHECK_INT(exchange_response(x, &answer, &out), 0);
	CHECK_INT(exchange_down(x, text, strlen(text), &body), 0);
	buf_add(&down, body.p, body.n);
	CHECK_INT(exchange_down_end(x, &body), 0);
	buf_add(&down, body.p, body.n);
	CHECK_INT(down.n, strlen(text));
	for (size_t at = 4; value[at + 3]; at++) /* no four letters of it but the first */
		CHECK(memmem(down.p, down.n, value + at, 4) == NULL ||
		      memmem(HOLDER, strlen(HOLDER), value + at, 4) != NULL);
}

/* A value that has another length than its placeholder, or begins otherwise, goes into a body all the same, written as its
 * kind of body writes it. */
TEST(a_value_of_another_length_in_a_body)
{
	static const char rules[] = "{\"secrets\":[{\"name\":\"a\",\"placeholder\":\"" HOLDER
				    "\",\"hosts\":[\"ok.test\"],\"in\":[\"body\"]}]}";
	static const struct {
		const char *value, *type, *body, *want;
	} cases[] = {
		{ "ghp_0123456789_long_value", "text/plain", "a " HOLDER " b",
		  "a ghp_0123456789_long_value b" },
		{ "shorter1", "text/plain", HOLDER HOLDER, "shorter1shorter1" },
		{ "ab-cdef-0123456789", "text/plain", "x=" HOLDER, "x=ab-cdef-0123456789" },
		{ "a+b&c%d=/wxyz", "application/x-www-form-urlencoded", "k=" HOLDER "&l=1",
		  "k=a%2Bb%26c%25d=/wxyz&l=1" },
		{ "a b#c\"d;wxyz", "application/x-www-form-urlencoded", HOLDER,
		  "a%20b%23c%22d%3Bwxyz" },
		{ "a\"b\\c/wxyz", "Application/JSON; charset=utf-8", "{\"k\":\"" HOLDER "\"}",
		  "{\"k\":\"a\\\"b\\\\c/wxyz\"}" },
		{ "a\"b\\c+wxyz", "text/plain", HOLDER, "a\"b\\c+wxyz" },
	};
	struct terms *r = terms_new();
	struct err e = ERR_INIT;

	CHECK_INT(terms_parse(r, rules, sizeof(rules) - 1, &e), 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CHECK_INT(vault_set(&r->vault, "a", str_of(cases[i].value)), 0);
		for (size_t step = 1; step < 40; step++)
			for (int has_length = 0; has_length < 2; has_length++) {
				_cleanup_(buf_done) struct buf up = BUF(KIB), head = BUF(KIB);
				uint64_t length = strlen(cases[i].want);
				struct exchange x;

				buf_printf(&head,
					   "POST /a HTTP/1.1\r\nHost: ok.test\r\nExpect: "
					   "100-continue\r\nContent-Type: %s\r\n",
					   cases[i].type);
				if (has_length)
					buf_printf(&head, "Content-Length: %zu\r\n",
						   strlen(cases[i].body));
				buf_puts(&head, "\r\n");
				(void)ask(&x, r, &way, buf_cstr(&head));
				CHECK_INT(x.is_resized,
					  has_length &&
						  strlen(cases[i].want) != strlen(cases[i].body));
				CHECK_INT(str_is(sent("Content-Length"), "(none)"),
					  x.is_resized || !has_length);
				CHECK_INT(str_is(sent("Expect"), "(none)"), x.is_held);
				send_body(&x, cases[i].body, step, &up, &length);
				CHECK_STR(buf_cstr(&up), cases[i].want);
				CHECK_INT(length, up.n);
				check_echo(&x, cases[i].want, cases[i].value);
				exchange_end(&x);
				CHECK(strstr(said, "\"secrets\":[\"a\"]"));
			}
	}
	terms_unref(r);
}

/* A value with what an address takes for something else stays one value of the query, and is masked as it went out. */
TEST(a_value_in_a_query_is_encoded)
{
	static const char rules[] = "{\"secrets\":[{\"name\":\"a\",\"placeholder\":\"" HOLDER
				    "\",\"hosts\":[\"ok.test\"],\"in\":[\"query\"]}]}";
	struct terms *r = terms_new();
	struct exchange x;
	struct err e = ERR_INIT;

	CHECK_INT(terms_parse(r, rules, sizeof(rules) - 1, &e), 0);
	CHECK_INT(vault_set(&r->vault, "a", STR("a b&c#d/e+wxyz")), 0);
	CHECK_INT(ask(&x, r, &way, "GET /a?k=" HOLDER "&l HTTP/1.1\r\nHost: ok.test\r\n\r\n"), 0);
	CHECK(str_is(out.target, "/a?k=a%20b%26c%23d/e%2Bwxyz&l"));
	check_echo(&x, "a%20b%26c%23d/e%2Bwxyz", "a b&c#d/e+wxyz");
	exchange_end(&x);
	terms_unref(r);
}

/* What git sends, and the messages of a WebSocket, have lengths of their own inside; a push goes out as it was judged. */
TEST(no_value_in_frames_of_others)
{
	static const char rules[] = "{\"git\":{\"push\":[\"git.test/me/app:refs/heads/"
				    "*\"]},\"secrets\":[{\"name\":"
				    "\"a\",\"placeholder\":\"" HOLDER "\",\"hosts\":[\"ok.test\","
				    "\"git.test\"],\"in\":["
				    "\"body\"]}]}";
	static const struct exchange_way git = { .host = "git.test", .port = 443, .is_tls = true };
	static const struct {
		const struct exchange_way *way;
		const char *head;
	} cases[] = {
		{ &way, "POST /me/app/git-receive-pack HTTP/1.1\r\nHost: ok.test\r\nContent-Type: "
			"application/x-git-receive-pack-request\r\nContent-Length: 18\r\n\r\n" },
		{ &way, "GET /ws HTTP/1.1\r\nHost: ok.test\r\nConnection: Upgrade\r\nUpgrade: "
			"websocket\r\n\r\n" },
		{ &git, "POST /me/app/git-receive-pack HTTP/1.1\r\nHost: git.test\r\n"
			"Content-Length: 18\r\n\r\n" },
	};
	struct terms *r = terms_new();
	struct err e = ERR_INIT;

	CHECK_INT(terms_parse(r, rules, sizeof(rules) - 1, &e), 0);
	CHECK_INT(vault_set(&r->vault, "a", STR("of-another-length-0123")), 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct http_head answer = { .minor = 1, .status = 101 };
		struct exchange x;
		struct str body;

		CHECK_INT(ask(&x, r, cases[i].way, cases[i].head), i == 2);
		CHECK(!x.is_resized);
		if (i == 1)
			CHECK_INT(exchange_response(&x, &answer, &out), 0);
		CHECK_INT(exchange_up(&x, HOLDER, strlen(HOLDER), &body), 0);
		CHECK(str_is(body, HOLDER));
		exchange_end(&x);
	}
	terms_unref(r);
}

/* With git rules on one of its hosts a secret does not write to another, neither from the head nor from the body. */
TEST(a_withheld_secret_is_not_put_into_a_body)
{
	static const char rules[] = "{\"git\":{\"fetch\":[\"git.test/me/"
				    "app\"]},\"secrets\":[{\"name\":\"a\","
				    "\"placeholder\":\"" HOLDER "\",\"hosts\":[\"ok.test\",\"git."
				    "test\"],\"in\":[\"body\","
				    "\"header\"]}]}";
	struct terms *r = terms_new();
	struct exchange x;
	struct err e = ERR_INIT;
	struct str body;

	CHECK_INT(terms_parse(r, rules, sizeof(rules) - 1, &e), 0);
	CHECK_INT(vault_set(&r->vault, "a", STR(SECRET)), 0);
	CHECK_INT(ask(&x, r, &way, "POST /a HTTP/1.1\r\nHost: ok.test\r\n\r\n"), 0);
	CHECK_INT(exchange_up(&x, HOLDER, strlen(HOLDER), &body), 0);
	CHECK(str_is(body, HOLDER));
	exchange_end(&x);
	CHECK_INT(ask(&x, r, &way, "POST /a HTTP/1.1\r\nHost: ok.test\r\nX: " HOLDER "\r\n\r\n"),
		  -EACCES);
	exchange_end(&x);
	terms_unref(r);
}

TEST(rules_outlive_their_replacement)
{
	struct terms *r = make_rules();
	struct exchange x;

	CHECK_INT(ask(&x, r, &way, "GET /a HTTP/1.1\r\nHost: ok.test\r\nX: " HOLDER "\r\n\r\n"), 0);
	terms_unref(r);
	CHECK(str_is(sent("X"), SECRET));
	exchange_end(&x);
}

#define ACCESS "sk-ant-oat01-0123456789abcdefghijklmnop"
#define REFRESH "1//0abcdefghijklmnopqrstuvwxyz0123456789"

static char kept[4096];

static void on_login(void *arg, struct terms *r, const char *name, struct str answer)
{
	(void)arg;
	(void)r;
	(void)snprintf(kept, sizeof(kept), "%s %.*s", name, (int)answer.n, answer.p);
}

static struct terms *login_rules(void)
{
	static const char text[] = "{\"logins\":[{\"name\":\"l\",\"hosts\":[\"api.test\"],"
				   "\"endpoints\":[\"ok.test/token\"],"
				   "\"tokens\":[\"access_token\",\"refresh_token\"],"
				   "\"closed\":[\"ok.test/token\",\"ok.test/oauth\"],"
				   "\"pages\":[\"GET ok.test/oauth/profile\"],"
				   "\"marks\":[\"sk-ant-\",\"1//0\",\"rt_\"],"
				   "\"texts\":[\"* ok.test/v1/**\"]}]}";
	struct terms *r = terms_new();
	struct err e = ERR_INIT;

	CHECK_INT(terms_parse(r, text, sizeof(text) - 1, &e), 0);
	r->on_login = on_login;
	return r;
}

/* One request to the endpoint and its answer, in pieces of n bytes; what came inside. */
static int log_in(struct exchange *x, struct terms *r, const char *target, const char *answer,
		  size_t n, struct buf *inside)
{
	_free_ char *text = mem_fmt("POST %s HTTP/1.1\r\nHost: ok.test\r\n\r\n", target);
	static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
	struct err e = ERR_INIT;
	struct str body;
	int k;

	kept[0] = '\0';
	CHECK_INT(ask(x, r, &way, text), 0);
	CHECK(http_parse_response(head, strlen(head), &in, &e) > 0);
	CHECK_INT(exchange_response(x, &in, &out), 0);
	for (size_t at = 0, size = strlen(answer); at < size; at += n) {
		exchange_down(x, answer + at, size - at < n ? size - at : n, &body);
		buf_add(inside, body.p, body.n);
	}
	k = exchange_down_end(x, &body);
	if (k == 0)
		buf_add(inside, body.p, body.n);
	return k;
}

TEST(a_login_leaves_its_tokens_here)
{
	static const char answer[] = "{\"access_token\": \"" ACCESS "\", \"n\": [1], \"x\":"
				     "{\"refresh_token\":\"" REFRESH "\"}}";
	static const struct exchange_way api = {
		.id = 8, .host = "api.test", .port = 443, .is_tls = true
	};
	struct terms *r = login_rules(), *next = login_rules();
	struct exchange x;
	struct str body;

	for (size_t n = 1; n < sizeof(answer); n += 40) {
		_cleanup_(buf_done) struct buf inside = BUF(4 * KIB);

		CHECK_INT(log_in(&x, r, "/token?a=b", answer, n, &inside), 0);
		CHECK(str_is(sent("Content-Length"), "9"));
		CHECK_INT(inside.n, strlen(answer));
		CHECK(strstr(buf_cstr(&inside), "sk-ant-oat01-") &&
		      !strstr(buf_cstr(&inside), ACCESS) && !strstr(buf_cstr(&inside), REFRESH));
		CHECK(strncmp(kept, "l {", 3) == 0 && strstr(kept, ACCESS) &&
		      strstr(kept, REFRESH));
		exchange_end(&x);
		CHECK(strstr(said, "\"login\":\"l\"") != NULL && strstr(said, ACCESS) == NULL);
	}
	CHECK_INT(r->vault.n, 2);
	vault_adopt(&next->vault, &r->vault);
	for (int i = 0; i < 2; i++) { /* in a header for its hosts; in a body for the endpoint's */
		const char *holder = next->vault.v[0].placeholder,
			   *late = next->vault.v[1].placeholder;
		_free_ char *text =
			mem_fmt("POST %s HTTP/1.1\r\nHost: %s\r\nX: %s\r\n\r\n",
				i ? "/token" : "/a", i ? "ok.test" : "api.test", holder);
		_free_ char *form = mem_fmt("t=1%%2F%%2F%s&", late + 3);

		CHECK_INT(ask(&x, next, i ? &way : &api, text), 0);
		CHECK(str_is(sent("X"), i ? holder : ACCESS));
		exchange_up(&x, form, strlen(form), &body);
		CHECK_INT(memmem(body.p, body.n, &(REFRESH)[3], strlen(REFRESH) - 3) != NULL, i);
		exchange_end(&x);
	}
	terms_unref(next);
	terms_unref(r);
}

TEST(a_login_that_is_not_understood_does_not_come_inside)
{
	static const char *const wrong[] = {
		"access_token=" ACCESS,
		"{\"access_token\":\"sk-ant-oat01-\\u0030123456789abcdefghijklmnop\"}",
		"{\"access_token\":\"short\"}",
		"{\"access_token\":\"" ACCESS,
	};
	struct terms *r = login_rules();
	struct exchange x;

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		_cleanup_(buf_done) struct buf inside = BUF(4 * KIB);

		CHECK_INT(log_in(&x, r, "/token", wrong[i], 7, &inside), -EACCES);
		CHECK_INT(inside.n, 0);
		CHECK_STR(kept, "");
		exchange_end(&x);
	}
	terms_unref(r);
	r = login_rules();
	_cleanup_(buf_done) struct buf elsewhere = BUF(4 * KIB);

	CHECK_INT(log_in(&x, r, "/v1/messages", wrong[0], 7, &elsewhere), 0);
	CHECK_STR(buf_cstr(&elsewhere), wrong[0]);
	exchange_end(&x);
	terms_unref(r);
}

/* One request to ok.test and its answer as a whole: what came inside, or "-" where something was refused. */
static char *visit(struct terms *r, const char *request, const char *head, const char *body)
{
	struct exchange x;
	struct err e = ERR_INIT;
	struct str text = STR("");
	char *inside = NULL;

	kept[0] = '\0';
	if (ask(&x, r, &way, request) == 0) {
		CHECK(http_parse_response(head, strlen(head), &in, &e) > 0);
		if (exchange_response(&x, &in, &out) == 0 &&
		    exchange_down(&x, body, strlen(body), &text) == 0) {
			_free_ char *first = mem_strn(text.p, text.n);

			if (exchange_down_end(&x, &text) == 0)
				inside = mem_fmt("%s%.*s", first, (int)text.n, text.p);
		}
	}
	exchange_end(&x);
	return inside ? inside : mem_str("-");
}

#define POST_TOKEN "POST /token HTTP/1.1\r\nHost: ok.test\r\n\r\n"
#define GET(path) "GET " path " HTTP/1.1\r\nHost: ok.test\r\n\r\n"
#define JSON_HEAD "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"

TEST(a_token_comes_inside_in_no_other_way)
{
	static const struct {
		const char *request, *head, *body;
		bool is_seen; /* the answer goes inside, without the token */
	} cases[] = {
		{ POST_TOKEN, "HTTP/1.1 400 Bad\r\n\r\n", "{\"access_token\":\"" ACCESS "\"}",
		  true },
		{ POST_TOKEN, "HTTP/1.1 201 Made\r\n\r\n", "{\"other\":[{\"key\":\"" ACCESS "\"}]}",
		  true },
		{ POST_TOKEN, "HTTP/1.1 302 Found\r\n\r\n", "go to ?t=" ACCESS, false },
		{ POST_TOKEN, "HTTP/1.1 500 Oops\r\n\r\n", "<html>an error of the server</html>",
		  true },
		{ POST_TOKEN, "HTTP/1.1 302 Found\r\nLocation: /?t=" ACCESS "\r\n\r\n", "", false },
		{ POST_TOKEN, "HTTP/1.1 200 OK\r\n\r\n",
		  "{\"x\":\"{\\\"access_token\\\":\\\"" ACCESS "\\\"}\"}", false },
		/* Escapes of JSON and of addresses, once and over again, and an answer that is cut off. */
		{ POST_TOKEN, "HTTP/1.1 200 OK\r\n\r\n",
		  "{\"u\":\"at sk-ant-\\u006fat01-0123456789abcdefghijklmnop\"}", false },
		{ POST_TOKEN, "HTTP/1.1 400 Bad\r\n\r\n",
		  "{\"u\":\"t=1\\/\\/0abcdefghijklmnopqrstuvwxyz0123456789\"}", false },
		{ GET("/elsewhere"), JSON_HEAD,
		  "{\"u\":\"{\\\"k\\\":\\\"sk\\\\u002dant-oat01-0123456789abcd\\\"}\"}", false },
		{ GET("/elsewhere"), JSON_HEAD, "{\"u\":\"/?t=sk%2Dant%2doat01%2D0123456789abcd\"}",
		  false },
		{ GET("/elsewhere"),
		  "HTTP/1.1 302 Found\r\nLocation: /?t=sk%252Dant-oat01-0123456789abc\r\n\r\n", "",
		  false },
		{ GET("/elsewhere"), JSON_HEAD, "{\"key\":\"sk-ant-oat0", false },
		{ GET("/elsewhere"),
		  "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Type: text/json\r\n\r\n",
		  "{\"key\":\"" ACCESS "\"}", false },
		{ GET("/elsewhere"),
		  "HTTP/1.1 200 OK\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n",
		  "--x\r\n\r\n{\"key\":\"" ACCESS "\"}\r\n--x--", false },
		{ GET("/elsewhere"),
		  "HTTP/1.1 200 OK\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\n",
		  "access_token=" ACCESS, false },
		{ GET("/elsewhere"), "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", "a page",
		  true },
		{ GET("/x/v1/messages"), JSON_HEAD, "{\"key\":\"" ACCESS "\"}", false },
		{ GET("/v1%20/messages"), JSON_HEAD, "{}", false },
		{ GET("/oauth/profile"), JSON_HEAD, "{\"name\":\"me\"}", true },
		{ GET("/oauth/profile"), JSON_HEAD, "{\"key\":\"" ACCESS "\"}", false },
		{ GET("/oauth/other"), JSON_HEAD, "{}", false },
		{ GET("/oauth%C0%AFother"), JSON_HEAD, "{}", false },
		{ GET("/to%E2%84%AAen"), JSON_HEAD, "{}", false },
		{ GET("/elsewhere"), "HTTP/1.1 200 OK\r\n\r\n", "{\"key\":\"" ACCESS "\"}", false },
		{ GET("/oauth/profile/"), JSON_HEAD, "{\"a\":1}", true },
		{ GET("/OAuth/other"), JSON_HEAD, "{}", false },
		{ GET("/token"), JSON_HEAD, "{}", false },
		{ GET("/elsewhere"), JSON_HEAD, "{\"key\":\"" ACCESS "\"}", false },
		{ GET("/elsewhere"), JSON_HEAD, "{\"n\":1}", true },
		/* A mark is a token only with what a token has behind it, and a short one only where a word begins. */
		{ GET("/elsewhere"), JSON_HEAD, "{\"say\":\"keys begin with sk-ant-api03-...\"}",
		  true },
		{ GET("/elsewhere"), JSON_HEAD, "{\"b\":\"QUJD1//0QUJDREVGR0hJSktMTU5PUFE=\"}",
		  true },
		{ GET("/elsewhere"), JSON_HEAD, "{\"b\":\"a\\n" REFRESH "\"}", false },
		{ GET("/elsewhere"), JSON_HEAD, "{\"b\":\"t%3D" REFRESH "\"}", false },
		{ GET("/elsewhere"), "HTTP/1.1 200 OK\r\nContent-Type: text/Json\r\n\r\n",
		  "[\"" ACCESS "\"]", false },
		{ GET("/elsewhere"),
		  "HTTP/1.1 200 OK\r\nNEL: {\"report_to\":\"cf-nel-0123456789abc\"}\r\n\r\n", "x",
		  true },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct terms *r = login_rules();
		_free_ char *inside = visit(r, cases[i].request, cases[i].head, cases[i].body);

		if (strstr(inside, ACCESS) || str_eq(inside, "-") == cases[i].is_seen) {
			(void)fprintf(stderr, "case %zu: %s\n", i, inside);
			CHECK(false);
		}
		terms_unref(r);
	}
	/* Models' words are never touched. */
	struct terms *r = login_rules();
	_free_ char *words = visit(r, GET("/v1/messages"), JSON_HEAD, "{\"text\":\"" ACCESS "\"}");

	CHECK_STR(words, "{\"text\":\"" ACCESS "\"}");
	terms_unref(r);
}

/* What is closed on a host whose paths are not decided by bytes stays closed however it is written. */
TEST(closed_below_an_encoded_slash)
{
	static const char *const tries[] = {
		"/copilot_internal/v2/token",          "/copilot_internal%2Fv2/token",
		"/copilot_internal%2fv2%2ftoken",      "/x%2F..%2Fcopilot_internal/v2/token",
		"/copilot_internal%252Fv2%252Ftoken",  "/COPILOT_internal/V2/token",
		"/%2Fcopilot_internal/v2%2Ftoken?a=b",
	};
	static const struct exchange_way api = {
		.id = 8, .host = "api.github.com", .port = 443, .is_tls = true
	};
	_cleanup_(buf_done) struct buf rules = BUF(64 * KIB);
	struct terms *r = terms_new();
	struct err e = ERR_INIT;
	struct exchange x;

	buf_puts(&rules, "{\"logins\":[");
	secret_login_terms(secret_login_find("copilot-login"), &rules);
	buf_puts(&rules, "]}");
	CHECK_INT(terms_parse(r, rules.p, rules.n, &e), 0);
	for (size_t i = 0; i < ARRAY_LEN(tries); i++) {
		_free_ char *text =
			mem_fmt("GET %s HTTP/1.1\r\nHost: api.github.com\r\n\r\n", tries[i]);

		CHECK_INT(ask(&x, r, &api, text), -EACCES);
		exchange_end(&x);
	}
	CHECK_INT(ask(&x, r, &api,
		      "GET /repos/me/app/branches/a%2Fb HTTP/1.1\r\nHost: api.github.com\r\n\r\n"),
		  0);
	exchange_end(&x);
	terms_unref(r);
}

/* What a forgiving server makes of a path: everything decoded twice, parameters, dots and empty parts left out, in small
 * letters. */
static void forgive(const char *path, struct buf *ret)
{
	_free_ char *text = mem_strn(path, strcspn(path, "?#"));

	for (int round = 0; round < 2; round++) {
		char *to = text;

		for (const char *p = text; *p; p++) {
			unsigned v = (unsigned char)*p;

			if (p[0] == '%' && strspn(p + 1, "0123456789abcdefABCDEF") >= 2) {
				v = 0;
				for (int i = 1; i < 3; i++)
					v = v * 16 + (unsigned)(p[i] <= '9'
									? p[i] - '0'
									: (p[i] | 32) - 'a' + 10);
				p += 2;
			}
			*to++ = (char)(v == '\\' ? '/' : v >= 'A' && v <= 'Z' ? v | 32 : v);
		}
		*to = '\0';
	}
	buf_add(ret, "", 0);
	for (const char *p = text; *p;) {
		size_t all = strcspn(p, "/"), n = strcspn(p, "/;");

		if (n == 2 && memcmp(p, "..", 2) == 0) {
			while (ret->n > 0 && ret->p[--ret->n] != '/')
				;
			ret->p[ret->n] = '\0';
		} else if (n > 0 && !(n == 1 && *p == '.')) {
			buf_printf(ret, "/%.*s", (int)n, p);
		}
		p += all + (p[all] == '/');
	}
}

/* Ways to write one path anew at position i; NULL: there is no such way there. */
static char *respell(const char *path, size_t way_n, size_t i)
{
	int n = (int)i;
	const char *rest = path + i;

	switch (way_n) {
	case 0:
		return mem_fmt("%.*s%%%02X%s", n, path, (unsigned char)*rest, rest + 1);
	case 1:
		return mem_fmt("%.*s%%%02x%s", n, path, (unsigned char)*rest, rest + 1);
	case 2:
		return mem_fmt("%.*s%%25%02X%s", n, path, (unsigned char)*rest, rest + 1);
	case 3:
		return *rest == '/' ? mem_fmt("%.*s/%s", n, path, rest) : NULL;
	case 4:
		return *rest == '/' ? mem_fmt("%.*s/.%s", n, path, rest) : NULL;
	case 5:
		return *rest == '/' ? mem_fmt("%.*s/x/..%s", n, path, rest) : NULL;
	case 6:
		return *rest == '/' ? mem_fmt("%.*s/x/%%2e%%2e%s", n, path, rest) : NULL;
	case 7:
		return *rest == '/' && i ? mem_fmt("%.*s;a=b%s", n, path, rest) : NULL;
	case 8:
		return *rest == '/' ? mem_fmt("%.*s\\%s", n, path, rest + 1) : NULL;
	case 9:
		return *rest >= 'a' && *rest <= 'z'
			       ? mem_fmt("%.*s%c%s", n, path, *rest - 32, rest + 1)
			       : NULL;
	case 10:
		return i == 0 ? mem_fmt("%s/", path) : NULL;
	case 11:
		return i == 0 ? mem_fmt("%s/.", path) : NULL;
	case 12:
		return i == 0 ? mem_fmt("%s;x", path) : NULL;
	case 13:
		return i == 0 ? mem_fmt("%s%%2f", path) : NULL;
	case 14:
		return i == 0 ? mem_fmt("%s?a=/b", path) : NULL;
	default:
		return NULL;
	}
}

/* One spelling by one method: does it reach what the forgiving server takes for the endpoint, and is it not captured? */
static bool gets_through(struct terms *r, const char *host, const char *path, const char *method)
{
	const struct exchange_way to = { .id = 9, .host = host, .port = 443, .is_tls = true };
	_free_ char *text = mem_fmt("%s %s HTTP/1.1\r\nHost: %s\r\n\r\n", method, path, host);
	struct exchange x;
	bool is_bad = ask(&x, r, &to, text) == 0 && x.login == NULL;

	exchange_end(&x);
	return is_bad;
}

/* One spelling, alone and with something behind it, by every method. How many the server would have understood. */
static size_t try_spelling(struct terms *r, const char *host, const char *path, size_t first,
			   size_t at)
{
	static const char *const methods[] = { "POST", "GET",     "PUT",    "PATCH",
					       "HEAD", "OPTIONS", "DELETE", "SEARCH" };
	_free_ char *once = respell(path, first, at);
	size_t tried = 0;

	for (size_t last = 9; once && last < 15; last++) {
		_cleanup_(buf_done) struct buf plain = BUF(4 * KIB);
		_free_ char *odd = last == 9 ? mem_str(once) : respell(once, last, 0);

		forgive(odd, &plain);
		for (size_t k = 0; k < ARRAY_LEN(methods) && str_eq(buf_cstr(&plain), path); k++) {
			tried++;
			if (gets_through(r, host, odd, methods[k])) {
				(void)fprintf(stderr, "%s %s%s\n", methods[k], host, odd);
				CHECK(false);
			}
		}
	}
	return tried;
}

TEST(no_spelling_of_an_endpoint_gets_through)
{
	for (const struct secret_login *l = secret_logins; l->name; l++) {
		_cleanup_(buf_done) struct buf rules = BUF(64 * KIB);
		struct terms *r = terms_new();
		struct err e = ERR_INIT;

		buf_puts(&rules, "{\"logins\":[");
		secret_login_terms(l, &rules);
		buf_puts(&rules, "]}");
		CHECK_INT(terms_parse(r, rules.p, rules.n, &e), 0);
		for (size_t g = 0; g < ARRAY_LEN(l->gives) && l->gives[g]; g++) {
			const char *path = strchr(l->gives[g], '/');
			_free_ char *host = mem_strn(l->gives[g], (size_t)(path - l->gives[g]));
			size_t tried = 0;

			for (size_t a = 0; a < 15; a++)
				for (size_t i = 0; path[i]; i++)
					tried += try_spelling(r, host, path, a, i);
			CHECK(tried >= 500);
			CHECK(!gets_through(r, host, path, "POST"));
		}
		terms_unref(r);
	}
}

TEST(wrong_rules_are_refused)
{
	static const char *const wrong[] = {
		"[]",
		"{\"allow\":\"x\"}",
		"{\"allow\":[1]}",
		"{\"git\":[]}",
		"{\"secrets\":[{\"name\":\"a\"}]}",
		"{\"secrets\":[{\"name\":\"a\",\"placeholder\":\"short\",\"hosts\":[\"h\"]}]}",
		"{\"secrets\":[{\"name\":\"a\",\"placeholder\":\"long-enough\"}]}",
		"{\"secrets\":[{\"name\":\"a\",\"placeholder\":\"long-one\",\"in\":[\"x\"]}]}",
		"{\"logins\":{}}",
		"{\"logins\":[{\"name\":\"a\",\"hosts\":[1]}]}",
		"{\"logins\":[{\"name\":\"a\",\"hosts\":[\"h\"],\"endpoints\":[\"h/p\"]}]}",
	};

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct terms *r = terms_new();
		struct err e = ERR_INIT;

		if (terms_parse(r, wrong[i], strlen(wrong[i]), &e) >= 0) {
			(void)fprintf(stderr, "accepted: %s\n", wrong[i]);
			CHECK(false);
		}
		terms_unref(r);
	}
}

TEST_MAIN()
