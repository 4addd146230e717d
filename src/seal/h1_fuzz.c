/* SPDX-License-Identifier: Apache-2.0 */
/* seal/h1_fuzz.c - any bytes from both sides: what reaches the server is well-formed and for the host, and no more
 *
 * The first request that went out is parsed again and must be one that the rules allow.
 */
#include "seal/talk_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_sent(const struct buf *b)
{
	static struct http_head h;
	struct http_framing f;
	struct str host;
	struct err e = ERR_INIT;

	if (b->n == 0)
		return;
	bug_on(http_parse_request(b->p, b->n, &h, &e) <= 0);
	bug_on(http_request_framing(&h, &f, &e) < 0);
	bug_on(http_field_one(&h, "Host", &host) != 1);
	bug_on(!str_is_nocase(host, "ok.test") && !str_is_nocase(host, "ok.test:443") &&
	       !str_is_nocase(host, "ok.test.") && !str_is_nocase(host, "ok.test.:443"));
	bug_on(!str_is(h.method, "GET") && !str_is(h.method, "HEAD") && !str_is(h.method, "POST"));
	bug_on(str_has_prefix(h.target, "/no/"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct talk t;

	talk_init(&t);
	t.conn.h1 = h1_new(&t.conn);
	talk_run(&t, data, n);
	check_sent(&t.to_server);
	talk_done(&t);
	return 0;
}
