/* SPDX-License-Identifier: Apache-2.0 */
/* policy/rules_fuzz.c - any text as hosts and rules
 *
 * What must hold whatever the bytes: a canonical host parses to itself; a rule that is an exact name allows exactly
 * that name; a deny of a host beats an allow of the same text; and no rule for names opens a closed range.
 */
#include "policy/rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_host(const char *s, size_t n, struct host_id *h)
{
	struct host_id again;
	const char *why;
	uint16_t port;

	(void)host_port_parse(s, n, 443, h, &port, &why);
	if (host_parse(s, n, h, &why) < 0) {
		*h = (struct host_id){ 0 };
		return;
	}
	bug_on(host_parse(h->name, strlen(h->name), &again, &why) < 0);
	bug_on(again.is_addr != h->is_addr || !str_eq(again.name, h->name));
	bug_on(h->is_addr && !addr_eq(&h->addr, &again.addr));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const char *s = (const char *)data;
	const char *line = n ? memchr(s, '\n', n) : NULL;
	size_t first = line ? (size_t)(line - s) : n;
	_free_ char *text = mem_strn(line ? line + 1 : s, line ? n - first - 1 : n);
	_cleanup_(rules_done) struct rules r = { 0 };
	struct err e = ERR_INIT;
	struct host_id h;
	struct verdict v;

	check_host(s, first, &h);
	if (rules_add(&r, text, false, &e) < 0) {
		bug_on(e.msg[0] == '\0');
		return 0;
	}
	if (h.name[0] == '\0')
		return 0;
	v = rules_host(&r, &h, 443);
	bug_on(v.is_allowed && v.rule == NULL);
	bug_on(v.is_allowed && h.is_addr && r.v[0].kind != RULE_NET &&
	       addr_classify(&h.addr, NULL) != ADDR_PUBLIC);
	bug_on(v.is_allowed && r.v[0].kind == RULE_NAME && !str_eq(h.name, r.v[0].name));
	bug_on(rules_add(&r, text, true, &e) < 0);
	bug_on(rules_host(&r, &h, 443).is_allowed);
	return 0;
}
