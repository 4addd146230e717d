/* SPDX-License-Identifier: Apache-2.0 */
/* policy/rules.c - see rules.h
 *
 * A verdict is one pass over all rules keeping the most specific match. Lists have tens of entries, not thousands,
 * and a pass over a thousand costs less than the system call that follows; so there is no index to get wrong.
 */
#include "policy/rules.h"

/* ---- parsing ---- */

static int parse_number(const char *s, size_t n, unsigned min, unsigned max, unsigned *ret)
{
	unsigned v = 0;

	if (n == 0 || n > 5 || (s[0] == '0' && n > 1))
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		if (s[i] < '0' || s[i] > '9')
			return -EINVAL;
		v = v * 10 + (unsigned)(s[i] - '0');
	}
	if (v < min || v > max)
		return -EINVAL;
	*ret = v;
	return 0;
}

static int parse_ports(const char *s, size_t n, struct rule *ret)
{
	static const char raw[] = "/raw";
	size_t tail = sizeof(raw) - 1;

	if (n > tail && memcmp(s + n - tail, raw, tail) == 0) {
		ret->is_raw = true;
		n -= tail;
	}
	const char *dash = memchr(s, '-', n);
	size_t first = dash ? (size_t)(dash - s) : n;
	unsigned from, to;

	if (parse_number(s, first, 1, 65535, &from) < 0)
		return -EINVAL;
	to = from;
	if (dash && parse_number(dash + 1, n - first - 1, 1, 65535, &to) < 0)
		return -EINVAL;
	if (to < from)
		return -EINVAL;
	ret->from = (uint16_t)from;
	ret->to = (uint16_t)to;
	return 0;
}

/* Where the host ends: before ":PORTS", which an IPv6 address without brackets cannot have. */
static size_t split_ports(const char *s, const char **ret_ports)
{
	const char *colon = strrchr(s, ':');
	const char *bracket = strrchr(s, ']');

	*ret_ports = NULL;
	if (colon == NULL || (bracket && bracket > colon) ||
	    (bracket == NULL && strchr(s, ':') != colon))
		return strlen(s);
	*ret_ports = colon + 1;
	return (size_t)(colon - s);
}

/* An address or ADDRESS/BITS, brackets around either the address or all of it. */
static int parse_net(const char *s, size_t n, struct rule *ret, struct err *e)
{
	const char *slash;
	size_t len;
	unsigned bits;
	struct addr masked = { 0 };

	if (n >= 2 && s[0] == '[' && s[n - 1] == ']') {
		s++;
		n -= 2;
	}
	slash = memchr(s, '/', n);
	len = slash ? (size_t)(slash - s) : n;
	if (len >= 2 && s[0] == '[' && s[len - 1] == ']') {
		if (addr_parse(s + 1, len - 2, &ret->net) < 0)
			return -EINVAL;
	} else if (addr_parse(s, len, &ret->net) < 0) {
		return -EINVAL;
	}
	bits = addr_is_v4(&ret->net) ? 32 : 128;
	if (slash && parse_number(slash + 1, n - len - 1, 0, bits, &bits) < 0)
		return err_set(e, ERR_USAGE, EINVAL, "'%.80s': the prefix length is wrong",
			       ret->text);
	ret->bits = addr_is_v4(&ret->net) ? bits + 96 : bits;
	for (unsigned i = 0; i < ret->bits; i++)
		masked.b[i / 8] |= (uint8_t)(ret->net.b[i / 8] & (0x80 >> i % 8));
	if (!addr_eq(&masked, &ret->net))
		return err_set(e, ERR_USAGE, EINVAL,
			       "'%.80s': there are bits behind the prefix; name the network or the "
			       "one address",
			       ret->text);
	ret->kind = RULE_NET;
	return 0;
}

static int parse_host_rule(const char *s, size_t n, struct rule *ret, struct err *e)
{
	struct host_id h;
	const char *why;

	ret->kind = RULE_NAME;
	if (n > 3 && memcmp(s, "**.", 3) == 0) {
		ret->kind = RULE_TREE;
		s += 3;
		n -= 3;
	} else if (n > 2 && memcmp(s, "*.", 2) == 0) {
		ret->kind = RULE_BELOW;
		s += 2;
		n -= 2;
	}
	if (memchr(s, '*', n))
		return err_set(e, ERR_USAGE, EINVAL,
			       "'%.80s': '*' stands only in front, as in *.example.org", ret->text);
	if (host_parse(s, n, &h, &why) < 0)
		return err_set(e, ERR_USAGE, EINVAL, "'%.80s': %s", ret->text, why);
	if (h.is_addr)
		return err_set(e, ERR_USAGE, EINVAL,
			       "'%.80s': a pattern of an address; write it "
			       "as a prefix, like 192.0.2.0/24",
			       ret->text);
	if (!ret->is_deny && ret->kind != RULE_NAME && strchr(h.name, '.') == NULL)
		return err_set(e, ERR_USAGE, EINVAL,
			       "'%.80s' would be a whole top-level domain; name more of it",
			       ret->text);
	memcpy(ret->name, h.name, sizeof(ret->name));
	return 0;
}

int rule_parse(const char *text, bool is_deny, bool may_open, struct rule *ret, struct err *e)
{
	struct rule r = { .is_deny = is_deny, .from = 1, .to = 65535 };
	const char *ports;
	size_t n;
	int x;

	if (text[0] == '\0' || strlen(text) >= sizeof(r.text))
		return err_set(e, ERR_USAGE, EINVAL,
			       "a rule is a host, *.host, an address or a "
			       "prefix, with :PORT or :PORT-PORT behind it");
	if (strstr(text, "://"))
		return err_set(e, ERR_USAGE, EINVAL,
			       "'%.80s' is an address of a page; a rule names the host alone, like "
			       "example.org or example.org:443",
			       text);
	(void)snprintf(r.text, sizeof(r.text), "%s", text);
	n = split_ports(text, &ports);
	if (ports && parse_ports(ports, strlen(ports), &r) < 0)
		return err_set(e, ERR_USAGE, EINVAL,
			       "'%.80s': a port is a number from 1 to 65535, or a range like "
			       "8000-8099",
			       text);
	if (r.is_raw && is_deny)
		return err_set(e, ERR_USAGE, EINVAL,
			       "'%.80s': /raw widens an allow rule; a deny rule has none", text);
	if (n == 1 && text[0] == '*') {
		r.kind = RULE_ANY;
		if (!is_deny && !may_open)
			return err_set(e, ERR_USAGE, EINVAL,
				       "'*' would open everything public; say so with the preset "
				       "\"open\" (--net open)");
	} else {
		x = parse_net(text, n, &r, e);
		if (x < 0 && e->kind != ERR_NONE)
			return x;
		if (x < 0)
			x = parse_host_rule(text, n, &r, e);
		if (x < 0)
			return x;
	}
	*ret = r;
	return 0;
}

int rules_add(struct rules *r, const char *text, bool is_deny, struct err *e)
{
	struct rule rule;
	int x;

	*e = ERR_INIT;
	x = rule_parse(text, is_deny, true, &rule, e);
	if (x < 0)
		return x;
	if (r->n >= RULES_MAX)
		return err_set(e, ERR_USAGE, E2BIG, "more than %d network rules", RULES_MAX);
	vec_reserve(r->v, r->n, r->cap);
	r->v[r->n++] = rule;
	return 0;
}

void rules_done(struct rules *r)
{
	free(r->v);
	*r = (struct rules){ 0 };
}

/* ---- matching ---- */

static bool is_below(const char *name, const char *domain)
{
	size_t n = strlen(name), m = strlen(domain);

	return n > m + 1 && name[n - m - 1] == '.' && memcmp(name + n - m, domain, m) == 0;
}

/* How specific a match is; 0: none. Names and networks are never compared with each other. */
static unsigned match(const struct rule *r, const struct host_id *h, uint16_t port)
{
	unsigned host = 0;

	if (port != 0 && (port < r->from || port > r->to))
		return 0;
	switch (r->kind) {
	case RULE_NAME:
		host = !h->is_addr && str_eq(h->name, r->name) ? 1000 : 0;
		break;
	case RULE_BELOW:
		host = !h->is_addr && is_below(h->name, r->name) ? 2 + 2 * (unsigned)strlen(r->name)
								 : 0;
		break;
	case RULE_TREE:
		if (!h->is_addr && (str_eq(h->name, r->name) || is_below(h->name, r->name)))
			host = 1 + 2 * (unsigned)strlen(r->name);
		break;
	case RULE_ANY:
		host = 1;
		break;
	case RULE_NET:
		host = h->is_addr && addr_in(&h->addr, &r->net, r->bits) ? 2 + r->bits : 0;
		break;
	case RULE_KIND_COUNT_:
		bug_on(true);
	}
	/* Fewer ports are more specific, but only among rules for the same host. */
	return host == 0 ? 0 : host * 65536 + (65535U - (unsigned)(r->to - r->from));
}

static const struct rule *best_match(const struct rules *r, const struct host_id *h, uint16_t port,
				     bool only_nets)
{
	const struct rule *best = NULL;
	unsigned best_score = 0;

	for (size_t i = 0; i < r->n; i++) {
		const struct rule *rule = &r->v[i];
		unsigned score = only_nets && rule->kind != RULE_NET ? 0 : match(rule, h, port);

		/* A deny for some ports does not decide whether the host may be reached at any. */
		if (port == 0 && rule->is_deny && (rule->from != 1 || rule->to != 65535))
			continue;
		if (score > best_score || (score > 0 && score == best_score && rule->is_deny)) {
			best = rule;
			best_score = score;
		}
	}
	return best;
}

struct verdict rules_host(const struct rules *r, const struct host_id *h, uint16_t port)
{
	const struct rule *rule;
	struct verdict v;

	if (h->is_addr) {
		rule = best_match(r, h, port, false);
		if (rule == NULL)
			return (struct verdict){ .class = addr_classify(&h->addr, NULL) };
		v = rules_address(r, &h->addr, port, false);
		v.is_allowed &= !rule->is_deny;
		v.rule = v.rule ? v.rule : rule;
		return v;
	}
	rule = best_match(r, h, port, false);
	return (struct verdict){ .is_allowed = rule && !rule->is_deny, .rule = rule };
}

struct verdict rules_address(const struct rules *r, const struct addr *a, uint16_t port,
			     bool is_own)
{
	struct host_id h = { .is_addr = true, .addr = *a };
	const struct rule *rule = best_match(r, &h, port, true);
	unsigned bits = 0;
	struct verdict v = { .rule = rule, .class = addr_classify(a, &bits) };

	/* An address of this host is as good as its loopback: only its own rule names it. */
	if (is_own && v.class == ADDR_PUBLIC) {
		v.class = ADDR_LOOPBACK;
		bits = 128;
	}
	if (rule && rule->is_deny)
		return v;
	v.is_allowed = v.class == ADDR_PUBLIC || (rule && rule->bits >= bits);
	return v;
}
