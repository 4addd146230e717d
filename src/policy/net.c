/* SPDX-License-Identifier: Apache-2.0 */
/* policy/net.c - checks of the network section's entries, and what they mean together */
#include "policy/net.h"
#include "base/num.h"
#include "policy/table.h"

int check_net_allow(const char *text, struct err *e)
{
	struct rule r;

	return rule_parse(text, false, false, &r, e);
}

int check_net_deny(const char *text, struct err *e)
{
	struct rule r;

	return rule_parse(text, true, false, &r, e);
}

static int parse_port(const char *s, size_t n, uint16_t *ret)
{
	_free_ char *text = mem_strn(s, n);
	struct err e = ERR_INIT;
	uint64_t v;
	int r = num_parse(text, 1, 65535, &v, &e);

	if (r < 0)
		return r;
	*ret = (uint16_t)v;
	return 0;
}

int net_port_parse(const char *text, struct net_port *ret)
{
	size_t n = strcspn(text, ":");
	struct net_port p;

	if (parse_port(text, n, &p.outside) < 0)
		return -EINVAL;
	p.inside = p.outside;
	if (text[n] == ':' && parse_port(text + n + 1, strlen(text + n + 1), &p.inside) < 0)
		return -EINVAL;
	*ret = p;
	return 0;
}

int check_net_port(const char *text, struct err *e)
{
	struct net_port p;

	if (net_port_parse(text, &p) < 0)
		return err_set(e, ERR_USAGE, EINVAL,
			       "must be PORT or HOST_PORT:INSIDE_PORT, numbers from 1 to 65535");
	return 0;
}

int check_net_host_port(const char *text, struct err *e)
{
	uint16_t port;

	if (parse_port(text, strlen(text), &port) < 0)
		return err_set(e, ERR_USAGE, EINVAL,
			       "must be a port of this host's loopback, a number from 1 to 65535");
	return 0;
}

int net_upstream_parse(const char *text, struct net_upstream *ret)
{
	static const struct {
		const char *scheme;
		enum upstream_kind kind;
		uint16_t port;
	} kinds[] = {
		{ "http://", UPSTREAM_HTTP, 3128 },
		{ "socks5://", UPSTREAM_SOCKS5, 1080 },
		{ "socks5h://", UPSTREAM_SOCKS5, 1080 },
	};
	struct net_upstream u = { 0 };
	const char *why;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		const char *rest = text + strlen(kinds[i].scheme);
		size_t n;

		if (!str_starts(text, kinds[i].scheme))
			continue;
		n = strlen(rest);
		if (n > 0 && rest[n - 1] == '/')
			n--;
		u.kind = kinds[i].kind;
		if (host_port_parse(rest, n, kinds[i].port, &u.host, &u.port, &why) < 0)
			return -EINVAL;
		*ret = u;
		return 0;
	}
	return -EINVAL;
}

int check_net_upstream(const char *text, struct err *e)
{
	struct net_upstream u;

	if (!str_eq(text, "env") && net_upstream_parse(text, &u) < 0)
		return err_set(e, ERR_USAGE, EINVAL,
			       "must be http://HOST:PORT, socks5://HOST:PORT, or \"env\" for the "
			       "caller's HTTPS_PROXY");
	return 0;
}

int net_rules(const struct policy *p, struct rules *ret, struct err *e)
{
	const char *const *preset = net_presets[p->net_preset].allow;
	int r = 0;

	for (; r == 0 && *preset; preset++)
		r = rules_add(ret, *preset, false, e);
	for (size_t i = 0; r == 0 && i < p->net_allow.n; i++)
		r = rules_add(ret, p->net_allow.v[i].text, false, e);
	for (size_t i = 0; r == 0 && i < p->net_deny.n; i++)
		r = rules_add(ret, p->net_deny.v[i].text, true, e);
	return r;
}
