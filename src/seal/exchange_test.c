/* SPDX-License-Identifier: Apache-2.0 */
/* seal/exchange_test.c - one request judged and rewritten, its answer masked, without a wire */
#include "base/test.h"
#include "seal/exchange.h"

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
	refused("GET http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n", 421);
	refused("GET https://evil.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n", 421);
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
					   "\r\n"
					 : "GET /a HTTP/1.1\r\nHost: ok.test\r\n\r\n"),
			  0);
		CHECK(http_parse_response(text, strlen(text), &in, &e) > 0);
		CHECK_INT(exchange_response(&x, &in, &out), has_secret ? -EACCES : 0);
		exchange_end(&x);
	}
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
				   "\"tokens\":[\"access_token\",\"refresh_token\"]}]}";
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
		_free_ char *text = mem_fmt("POST /a HTTP/1.1\r\nHost: %s\r\nX: %s\r\n\r\n",
					    i ? "ok.test" : "api.test", holder);
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

	CHECK_INT(log_in(&x, r, "/token/other", wrong[0], 7, &elsewhere), 0);
	CHECK_STR(buf_cstr(&elsewhere), wrong[0]);
	exchange_end(&x);
	terms_unref(r);
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
