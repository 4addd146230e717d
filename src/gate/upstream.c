/* SPDX-License-Identifier: Apache-2.0 */
/* gate/upstream.c - through the proxy that everything must go through
 *
 * The proxy is told where to go (CONNECT or SOCKS5) and answers; then the socket is handed over like any other. Its
 * answer is read to the byte and no further: what comes behind it belongs to the sandbox.
 */
#include "base/base64.h"
#include "gate/dial.h"
#include "http/head.h"

enum { UP_HTTP, UP_SOCKS_HELLO, UP_SOCKS_LOGIN, UP_SOCKS_ANSWER };

static void fail(struct ask *a, const char *why)
{
	char text[384];

	gate_say(text, sizeof(text), "the upstream proxy %s: %s", why, a->host.name);
	ask_answer(a, GATE_FAILED, text, FD_NONE);
}

static bool send_all(struct ask *a, const void *p, size_t n)
{
	/* A few hundred bytes on a fresh connection always fit. */
	if (send(a->s.fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n)
		return true;
	fail(a, "does not read");
	return false;
}

static void begin_http(struct ask *a)
{
	_cleanup_(buf_done) struct buf b = BUF(2 * KIB);
	const char *login = a->d->config.upstream.login;
	bool has_colon = strchr(a->host.name, ':') != NULL;
	_free_ char *target = mem_fmt(has_colon ? "[%s]:%u" : "%s:%u", a->host.name, a->port);

	http_put_request(&b, STR("CONNECT"), str_of(target));
	http_put_field(&b, STR("Host"), str_of(target));
	if (login[0]) {
		_cleanup_(buf_done) struct buf basic = BUF(KIB);

		buf_puts(&basic, "Basic ");
		base64_put(&basic, str_of(login));
		http_put_field(&b, STR("Proxy-Authorization"), str_of(buf_cstr(&basic)));
	}
	http_put_end(&b);
	a->up_step = UP_HTTP;
	(void)send_all(a, b.p, b.n);
}

static void begin_socks(struct ask *a)
{
	a->up_step = UP_SOCKS_HELLO;
	if (a->d->config.upstream.login[0])
		(void)send_all(a, "\5\2\0\2", 4);
	else
		(void)send_all(a, "\5\1\0", 3);
}

/* RFC 1929; whoever has no ':' has no password. */
static void put_socks_login(struct ask *a)
{
	_cleanup_(buf_done) struct buf b = BUF(KIB);
	const char *login = a->d->config.upstream.login;
	size_t user = strcspn(login, ":"), rest = strlen(login) - user,
	       password = rest ? rest - 1 : 0;

	buf_putc(&b, 1);
	buf_putc(&b, (char)user);
	buf_add(&b, login, user);
	buf_putc(&b, (char)password);
	buf_add(&b, login + strlen(login) - password, password);
	a->up_step = UP_SOCKS_LOGIN;
	(void)send_all(a, b.p, b.n);
}

void upstream_begin(struct ask *a)
{
	struct source old = a->s;

	a->state = ASK_UPSTREAM;
	if (!old.is_added && source_open(&a->d->turn, &a->s, old.fd, old.fn, POLLER_READ) < 0) {
		fail(a, "cannot be waited for");
		return;
	}
	source_want(&a->d->turn, &a->s, POLLER_READ);
	if (a->d->config.upstream.kind == UPSTREAM_HTTP)
		begin_http(a);
	else
		begin_socks(a);
}

static void established(struct ask *a)
{
	ask_answer(a, GATE_ALLOWED, "", source_take(&a->d->turn, &a->s));
}

static void http_ready(struct ask *a)
{
	static char in[HTTP_HEAD_MAX];
	static struct http_head head;
	ssize_t n = recv(a->s.fd, in, sizeof(in), MSG_PEEK | MSG_DONTWAIT), used;
	struct err e = ERR_INIT;
	char why[64];

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		fail(a, "closed the connection");
		return;
	}
	used = http_parse_response(in, (size_t)n, &head, &e);
	if (used < 0) {
		fail(a, "does not speak HTTP");
		return;
	}
	if (used == 0)
		return;
	(void)recv(a->s.fd, in, (size_t)used, MSG_DONTWAIT); /* they are there: we just saw them */
	if (head.status / 100 == 2) {
		established(a);
		return;
	}
	gate_say(why, sizeof(why), "answered %u", head.status);
	fail(a, why);
}

static void put_socks_request(struct ask *a)
{
	_cleanup_(buf_done) struct buf b = BUF(KIB);
	size_t n = strlen(a->host.name);

	buf_add(&b, "\5\1\0", 3);
	if (a->host.is_addr && addr_is_v4(&a->host.addr)) {
		buf_putc(&b, 1);
		buf_add(&b, a->host.addr.b + 12, 4);
	} else if (a->host.is_addr) {
		buf_putc(&b, 4);
		buf_add(&b, a->host.addr.b, 16);
	} else {
		buf_putc(&b, 3);
		buf_putc(&b, (char)n);
		buf_add(&b, a->host.name, n);
	}
	buf_putc(&b, (char)(a->port >> 8));
	buf_putc(&b, (char)a->port);
	a->up_step = UP_SOCKS_ANSWER;
	(void)send_all(a, b.p, b.n);
}

/* Bytes of the whole answer, known from its first five. */
static size_t socks_length(const uint8_t *in)
{
	return in[3] == 1 ? 10 : in[3] == 4 ? 22 : in[3] == 3 ? 7U + in[4] : 0;
}

static void socks_ready(struct ask *a)
{
	uint8_t in[300];
	ssize_t n = recv(a->s.fd, in, sizeof(in), MSG_PEEK | MSG_DONTWAIT);
	bool is_hello = a->up_step == UP_SOCKS_HELLO, is_login = a->up_step == UP_SOCKS_LOGIN;
	bool may_ask = is_hello && a->d->config.upstream.login[0]; /* for name and password */
	size_t want = is_hello || is_login ? 2 : n >= 5 ? socks_length(in) : 5;

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0 || in[0] != (is_login ? 1 : 5) || want == 0 ||
	    (n >= 2 && in[1] != 0 && !(may_ask && in[1] == 2))) {
		fail(a, n <= 0 ? "closed the connection" : "refused");
		return;
	}
	if ((size_t)n < want)
		return;
	(void)recv(a->s.fd, in, want, MSG_DONTWAIT);
	if (is_hello && in[1] == 2)
		put_socks_login(a);
	else if (is_hello || is_login)
		put_socks_request(a);
	else
		established(a);
}

void upstream_ready(struct ask *a)
{
	if (a->up_step == UP_HTTP)
		http_ready(a);
	else
		socks_ready(a);
}
