/* SPDX-License-Identifier: Apache-2.0 */
/* gate/dns_fuzz.c - any bytes as a question from inside and as an answer from a server
 *
 * A name that is a host's is in its one spelling, and our own answer to a question is one that we can read.
 */
#include "gate/dns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void answer_it(const struct dns_query *q)
{
	_cleanup_(buf_done) struct buf b = BUF(4 * KIB);
	struct addr a = addr_from_v4((const uint8_t[]){ 198, 18, 0, 2 });
	struct dns_answer back;
	bool is_address = q->type == DNS_A || q->type == DNS_AAAA;

	dns_put_answer(&b, q, DNS_OK, &a, is_address, "why");
	bug_on(b.is_over);
	if (is_address && q->is_host) {
		bug_on(dns_parse_answer((const uint8_t *)b.p, b.n, q->id, q->name, q->type, &back) <
		       0);
		bug_on(back.n != 1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct dns_answer a;
	struct dns_query q;

	if (dns_parse_query(data, n, &q) == 0) {
		struct host_id h;
		const char *why;

		bug_on(q.is_host && (host_parse(q.name, strlen(q.name), &h, &why) < 0 ||
				     !str_eq(h.name, q.name)));
		answer_it(&q);
	}
	if (n >= 2 && dns_parse_answer(data, n, (uint16_t)(data[0] << 8 | data[1]), "ok.test",
				       DNS_A, &a) == 0)
		bug_on(a.n > DNS_ADDRS);
	return 0;
}
