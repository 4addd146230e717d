/* SPDX-License-Identifier: Apache-2.0 */
/* plan/net.c - the network section of a policy as the steps of a plan */
#include "plan/plan.h"

#include "policy/net.h"

static void add_text(char ***list, size_t *n, char *take_text)
{
	*list = mem_grow(*list, *n + 2, sizeof(**list));
	(*list)[(*n)++] = take_text;
	(*list)[*n] = NULL;
}

void plan_net_done(struct plan_net *n)
{
	char **lists[] = { n->rules, n->ports, n->host_ports };

	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		for (char **v = lists[i]; v && *v; v++)
			free(*v);
		free(lists[i]);
	}
	free(n->upstream);
}

static const char *env_value(char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (; env && *env; env++)
		if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
			return *env + n + 1;
	return NULL;
}

/* "env" takes the caller's; one that we cannot read is as good as none, and the plan shows which it was. */
static char *find_upstream(const struct policy *pol, char *const *env)
{
	static const char *const names[] = { "HTTPS_PROXY", "https_proxy", "ALL_PROXY",
					     "all_proxy",   "HTTP_PROXY",  "http_proxy" };
	const char *text =
		pol->net_upstream.n ? pol->net_upstream.v[pol->net_upstream.n - 1].text : NULL;
	struct net_upstream u;

	if (text == NULL || !str_eq(text, "env"))
		return text ? mem_str(text) : NULL;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		text = env_value(env, names[i]);
		if (text && net_upstream_parse(text, &u) == 0)
			return mem_str(text);
	}
	return NULL;
}

void plan_net_build(struct plan_net *n, const struct policy *pol, char *const *env)
{
	if (pol->network != NET_GATE)
		return;
	n->has_gate = true;
	n->is_asking = pol->net_ask;
	for (const char *const *v = net_presets[pol->net_preset].allow; *v; v++)
		add_text(&n->rules, &n->n_rules, mem_fmt("allow %s", *v));
	for (size_t i = 0; i < pol->net_allow.n; i++)
		add_text(&n->rules, &n->n_rules, mem_fmt("allow %s", pol->net_allow.v[i].text));
	for (size_t i = 0; i < pol->net_deny.n; i++)
		add_text(&n->rules, &n->n_rules, mem_fmt("deny %s", pol->net_deny.v[i].text));
	for (size_t i = 0; i < pol->net_ports.n; i++)
		add_text(&n->ports, &n->n_ports, mem_str(pol->net_ports.v[i].text));
	for (size_t i = 0; i < pol->net_host_ports.n; i++)
		add_text(&n->host_ports, &n->n_host_ports, mem_str(pol->net_host_ports.v[i].text));
	n->upstream = find_upstream(pol, env);
}
