/* SPDX-License-Identifier: Apache-2.0 */
/* policy/rules.h - which hosts may be reached: allow and deny rules, pure
 *
 *      example.org            this name, any port         *.example.org     names below it, not itself
 *      **.example.org         both                        *                 any public host (preset "open" only)
 *      example.org:443        one port                    example.org:8000-8099
 *      192.0.2.1  192.0.2.0/24  192.0.2.0/24:443          2001:db8::/32  [2001:db8::1]:443
 *      example.org:80/raw     a port of HTTP that also carries other protocols
 *
 * The most specific rule decides: a longer name before a shorter one, a name before a pattern, a longer prefix before
 * a shorter one, then fewer ports before more; deny before allow where all is equal. Nothing matches: denied.
 *
 * A name's rule says nothing about the addresses the name has: each is judged when it is known (rules_address).
 */
#ifndef VITRINE_POLICY_RULES_H
#define VITRINE_POLICY_RULES_H

#include "policy/addr.h"

#define RULES_MAX 4096

enum rule_kind { RULE_NAME, RULE_BELOW, RULE_TREE, RULE_ANY, RULE_NET, RULE_KIND_COUNT_ };

struct rule {
	enum rule_kind kind;
	bool is_deny;
	char name[HOST_TEXT]; /* of NAME, BELOW, TREE */
	struct addr net;
	unsigned bits;
	uint16_t from, to;         /* ports */
	bool is_raw;               /* on a port of HTTP: other protocols pass as well */
	char text[HOST_TEXT + 24]; /* as written, for people */
};

struct rules {
	struct rule *v;
	size_t n, cap;
};

struct verdict {
	bool is_allowed;
	const struct rule *rule; /* that decided; NULL: none matched */
	enum addr_class class;   /* of an address; what it is refused for unless public */
};

/* One rule from text; ERR_USAGE with the reason. "*" only where may_open. */
int rule_parse(const char *text, bool is_deny, bool may_open, struct rule *ret, struct err *e);

int rules_add(struct rules *r, const char *text, bool is_deny, struct err *e);
void rules_done(struct rules *r);

/* May this host be asked for at this port? port 0: at any. A name is judged by its name only. */
struct verdict rules_host(const struct rules *r, const struct host_id *h, uint16_t port);

/* May a name that was allowed be reached at this address? Public unless a rule denies it; any other class only where
 * a rule allows a network that lies within that class. `is_own`: an address of this host. */
struct verdict rules_address(const struct rules *r, const struct addr *a, uint16_t port,
			     bool is_own);

/* The presets: names and rules, as data. */
struct net_preset {
	const char *name;
	const char *summary;
	const char *const *allow; /* NULL-ended */
};
extern const struct net_preset net_presets[]; /* ends with a NULL name */

/* Groups of hosts, which stand for their hosts in "allow" and "deny". Made from data/net-groups.json. */
extern const struct net_preset net_groups[]; /* ends with a NULL name */
const struct net_preset *net_group_find(const char *name);
/* The first group that holds this host; NULL: none does. */
const char *net_group_of(const char *host);

#endif
