/* SPDX-License-Identifier: Apache-2.0 */
/* policy/net_presets.c - the network presets and the groups of hosts: `vitrine net presets` and `net groups` print them
 *
 * Both come from data/net-groups.json (groups_gen.c). An ecosystem is named by its project's domain, not by the names of
 * its servers: those change. Every preset but `none` and `open` holds what the one before it holds.
 */
#include "policy/rules.h"

/* group_NAME and net_groups[] */
#include "net_groups_data.h"

static const char *const nothing[] = { NULL };
static const char *const everything[] = { "*", NULL };

const struct net_preset net_presets[] = {
	{ "none", "nothing but what is allowed by name", nothing },
	{ "locked", "the APIs of AI services", group_ai },
	{ "balanced", "AI services, code hosts, package hosts", group_balanced },
	{ "open", "every public host; private ranges, metadata and this host stay closed",
	  everything },
	{ NULL, NULL, NULL },
};

const struct net_preset *net_group_find(const char *name)
{
	for (const struct net_preset *g = net_groups; g->name; g++)
		if (str_eq(g->name, name))
			return g;
	return NULL;
}

/* A group's entries are names and "**." patterns; the latter hold the name itself too. */
static bool holds(const char *entry, const char *host)
{
	size_t n = strlen(host), m;

	if (!str_starts(entry, "**."))
		return str_eq(entry, host);
	m = strlen(entry + 2); /* with its dot */
	return str_eq(entry + 3, host) || (n > m && str_eq(host + n - m, entry + 2));
}

const char *net_group_of(const char *host)
{
	for (const struct net_preset *g = net_groups; g->name; g++)
		for (const char *const *v = g->allow; *v; v++)
			if (holds(*v, host))
				return g->name;
	return NULL;
}
