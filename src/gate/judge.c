/* SPDX-License-Identifier: Apache-2.0 */
/* gate/judge.c - rules into verdicts, and verdicts into sentences that help */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/loop.h"
#include "base/sabotage.h"
#include "gate/dial.h"

socklen_t sockaddr_of(const struct addr *a, uint16_t port, struct sockaddr_storage *ret)
{
	*ret = (struct sockaddr_storage){ 0 };
	if (addr_is_v4(a)) {
		struct sockaddr_in *s = (struct sockaddr_in *)ret;

		s->sin_family = AF_INET;
		s->sin_port = htons(port);
		memcpy(&s->sin_addr, a->b + 12, 4);
		return sizeof(*s);
	}
	struct sockaddr_in6 *s = (struct sockaddr_in6 *)ret;

	s->sin6_family = AF_INET6;
	s->sin6_port = htons(port);
	memcpy(&s->sin6_addr, a->b, 16);
	return sizeof(*s);
}

/* An address of this host routes to itself: a datagram socket pointed at it has it as its own source. No packet is
 * sent. */
bool is_own_address(const struct addr *a)
{
	struct sockaddr_storage to, from = { 0 };
	socklen_t n = sockaddr_of(a, 9, &to), m = sizeof(from);
	_close_ int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)&to, n) < 0 ||
	    getsockname(fd, (struct sockaddr *)&from, &m) < 0)
		return false; /* no way there at all */
	if (to.ss_family == AF_INET)
		return memcmp(&((struct sockaddr_in *)&from)->sin_addr,
			      &((struct sockaddr_in *)&to)->sin_addr, 4) == 0;
	return memcmp(&((struct sockaddr_in6 *)&from)->sin6_addr,
		      &((struct sockaddr_in6 *)&to)->sin6_addr, 16) == 0;
}

/* What this host calls its own changes rarely, and asking costs four system calls. */
static bool is_own_lately(const struct addr *a)
{
	static struct {
		struct addr a;
		bool is_own;
		uint64_t until;
	} known[64];
	uint64_t now = clock_now();
	size_t at = (size_t)(a->b[15] ^ a->b[14] << 3 ^ a->b[13]) % ARRAY_LEN(known);

	if (known[at].until < now || !addr_eq(&known[at].a, a)) {
		known[at].a = *a;
		known[at].is_own = is_own_address(a);
		known[at].until = now + 5 * NS_PER_SEC;
	}
	return known[at].is_own;
}

static const char *port_text(uint16_t port, char ret[8])
{
	ret[0] = '\0';
	if (port)
		(void)snprintf(ret, 8, ":%u", port);
	return ret;
}

static void say_no_rule(const struct ask *a, char *text, size_t size)
{
	bool has_colon = strchr(a->host.name, ':') != NULL;
	const char *l = has_colon ? "[" : "", *r = has_colon ? "]" : "";
	const char *name = a->d->config.name;
	char port[8];

	gate_say(text, size,
		 "no rule allows %s%s%s%s; 'vitrine net allow %s %s%s%s' or --allow %s%s%s "
		 "would",
		 l, a->host.name, r, port_text(a->port, port), name[0] ? name : "NAME", l,
		 a->host.name, r, l, a->host.name, r);
}

static void say_closed(const struct ask *a, const struct addr *addr, enum addr_class class,
		       char *text, size_t size)
{
	char address[ADDR_TEXT];

	addr_text(addr, address);
	if (a->host.is_addr)
		gate_say(text, size,
			 "%s is a %s address, closed unless named; --allow %s would open it",
			 address, addr_class_name(class), address);
	else
		gate_say(text, size,
			 "%s has the address %s, which is %s and closed unless named; "
			 "--allow %s would open it",
			 a->host.name, address, addr_class_name(class), address);
}

bool judge_host(const struct dial *d, struct ask *a, char *text, size_t size)
{
	struct verdict v = rules_host(&d->config.rules, &a->host, a->port);

	a->rule[0] = '\0';
	a->is_raw = v.rule && v.rule->is_raw;
	if (v.rule)
		gate_say(a->rule, sizeof(a->rule), "%s %s", v.rule->is_deny ? "deny" : "allow",
			 v.rule->text);
	if (v.is_allowed || a->is_asked || sabotaged("gate-rules"))
		return true;
	if (v.rule && v.rule->is_deny)
		gate_say(text, size, "%s is denied by the rule '%s'", a->host.name, a->rule);
	else if (a->host.is_addr && v.class != ADDR_PUBLIC)
		say_closed(a, &a->host.addr, v.class, text, size);
	else
		say_no_rule(a, text, size);
	return false;
}

bool judge_addresses(const struct dial *d, struct ask *a, char *text, size_t size)
{
	size_t kept = 0;

	for (size_t i = 0; i < a->n; i++) {
		struct addr *addr = &a->v[i];
		struct verdict v =
			rules_address(&d->config.rules, addr, a->port, is_own_lately(addr));

		if (v.is_allowed || sabotaged("gate-addresses")) {
			a->v[kept++] = *addr;
		} else if (v.rule && v.rule->is_deny) {
			char address[ADDR_TEXT];

			addr_text(addr, address);
			gate_say(text, size, "%s has the address %s, denied by the rule 'deny %s'",
				 a->host.name, address, v.rule->text);
		} else {
			say_closed(a, addr, v.class, text, size);
		}
	}
	a->n = kept;
	return kept > 0;
}
