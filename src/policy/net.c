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

static int hex_of(char c)
{
	return c >= '0' && c <= '9'                     ? c - '0'
	       : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
							: -1;
}

/* "user:password" of a URL, in which everything that means something there stands behind percent signs. */
static int read_login(const char *p, size_t n, char *to, size_t size)
{
	size_t out = 0;

	for (size_t i = 0; i < n; i++) {
		int c = (unsigned char)p[i];

		if (c == '%') {
			if (n - i < 3 || hex_of(p[i + 1]) < 0 || hex_of(p[i + 2]) < 0)
				return -EINVAL;
			c = hex_of(p[i + 1]) * 16 + hex_of(p[i + 2]);
			i += 2;
		}
		if (c < 0x20 || c == 0x7f || out + 1 >= size)
			return -EINVAL;
		to[out++] = (char)c;
	}
	to[out] = '\0';
	return 0;
}

void net_upstream_show(const char *text, struct buf *out)
{
	const char *at = strrchr(text, '@'), *rest = strstr(text, "://");

	if (at == NULL || rest == NULL || at < rest) {
		buf_puts(out, text);
		return;
	}
	buf_add(out, text, (size_t)(rest - text) + 3);
	buf_printf(out, "***%s", at);
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
		const char *rest = text + strlen(kinds[i].scheme), *at;
		size_t n;

		if (!str_starts(text, kinds[i].scheme))
			continue;
		at = strrchr(rest, '@');
		if (at && read_login(rest, (size_t)(at - rest), u.login, sizeof(u.login)) < 0)
			return -EINVAL;
		rest = at ? at + 1 : rest;
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

	if (str_eq(text, "env"))
		return 0;
	if (net_upstream_parse(text, &u) == 0 && u.login[0])
		return err_set(e, ERR_USAGE, EINVAL,
			       "a password does not belong into a policy; say \"env\", and put it "
			       "into "
			       "HTTPS_PROXY");
	if (net_upstream_parse(text, &u) < 0)
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
