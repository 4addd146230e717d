/* SPDX-License-Identifier: Apache-2.0 */
/* http/http_fuzz.c - any bytes as a head: what is accepted is written again and must read the same
 *
 * Beyond sanitizers: a head less its last byte is none yet, and a host that was accepted is made of the letters a host
 * has.
 */
#include "http/head.h"
#include "http/uri.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

typedef ssize_t parse_fn(const char *p, size_t n, struct http_head *ret, struct err *e);

static void same_head(const struct http_head *a, const struct http_head *b)
{
	bug_on(a->n != b->n || a->status != b->status);
	bug_on(!str_same_nocase(a->method, b->method) || !str_same_nocase(a->target, b->target));
	for (size_t i = 0; i < a->n; i++)
		bug_on(!str_same_nocase(a->v[i].name, b->v[i].name) ||
		       !str_same_nocase(a->v[i].value, b->v[i].value));
}

static void write_again(const struct http_head *h, parse_fn *parse)
{
	_cleanup_(buf_done) struct buf b = BUF(2 * HTTP_HEAD_MAX);
	static struct http_head again;
	struct err e = ERR_INIT;

	if (h->status)
		http_put_status(&b, h->status, h->reason);
	else
		http_put_request(&b, h->method, h->target);
	for (size_t i = 0; i < h->n; i++)
		http_put_field(&b, h->v[i].name, h->v[i].value);
	http_put_end(&b);
	if (b.n > HTTP_HEAD_MAX)
		return;
	bug_on(parse(b.p, b.n, &again, &e) != (ssize_t)b.n);
	same_head(h, &again);
}

static void check_uses(const struct http_head *h)
{
	struct err e = ERR_INIT;
	struct http_framing f;
	struct http_target t;

	if (h->status)
		(void)http_response_framing(h, STR("GET"), &f, &e);
	else if (http_request_framing(h, &f, &e) == 0)
		bug_on(f.kind == HTTP_UNTIL_CLOSE || f.kind == HTTP_FRAMING_COUNT_);
	for (size_t i = 0; i < h->n; i++)
		(void)http_field_is_hop(h, h->v[i].name);
	if (h->status || http_parse_target(h->method, h->target, &t, &e) < 0)
		return;
	bug_on(t.form == HTTP_ORIGIN && (t.path.n == 0 || t.path.p[0] != '/'));
	for (const char *c = t.authority.host; *c; c++)
		bug_on(!strchr("abcdefghijklmnopqrstuvwxyz0123456789-_.:", *c));
}

static void check(parse_fn *parse, const char *p, size_t n)
{
	static struct http_head h;
	struct err e = ERR_INIT;
	ssize_t r = parse(p, n, &h, &e);

	bug_on(r > (ssize_t)n);
	if (r > 0) {
		write_again(&h, parse);
		check_uses(&h);
		bug_on(parse(p, (size_t)r - 1, &h, &e) != 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct http_authority a;
	struct err e = ERR_INIT;

	check(http_parse_request, (const char *)data, n);
	check(http_parse_response, (const char *)data, n);
	(void)http_parse_authority((struct str){ .p = (const char *)data, .n = n }, &a, &e);
	return 0;
}
