/* SPDX-License-Identifier: Apache-2.0 */
/* plan/net.c - the network section of a policy as the steps of a plan */
#include "plan/plan.h"

#include "policy/inspect.h"
#include "policy/net.h"
#include "sys/netns.h"

static void add_text(char ***list, size_t *n, char *take_text)
{
	*list = mem_grow(*list, *n + 2, sizeof(**list));
	(*list)[(*n)++] = take_text;
	(*list)[*n] = NULL;
}

void plan_net_done(struct plan_net *n)
{
	char **lists[] = {
		n->rules, n->ports, n->host_ports, n->inspect, n->logins, n->open_logins
	};

	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		for (char **v = lists[i]; v && *v; v++)
			free(*v);
		free(lists[i]);
	}
	free(n->upstream);
	free(n->terms);
	free(n->trust);
	free(n->extra_trust);
	free(n->bundle);
}

size_t plan_net_ports(const struct plan_net *n, uint16_t ret[PLAN_PORTS_MAX])
{
	size_t count = 0;

	for (const uint16_t *usual = (const uint16_t[]){ 22, 80, 443, 0 }; *usual; usual++)
		ret[count++] = *usual;
	for (char *const *v = n->rules; v && *v; v++) {
		const char *colon = strrchr(*v, ':');
		uint32_t port = 0;
		bool is_new = colon && strncmp(*v, "allow ", 6) == 0;

		for (const char *d = colon ? colon + 1 : ""; is_new && *d; d++) {
			is_new = *d >= '0' && *d <= '9' && port < 65536;
			port = port * 10 + (uint32_t)(*d - '0');
		}
		for (size_t i = 0; i < count; i++)
			is_new = is_new && ret[i] != port;
		if (is_new && port > 0 && port < 65536 && port != 53 && port != NETNS_PROXY_PORT &&
		    count < PLAN_PORTS_MAX)
			ret[count++] = (uint16_t)port;
	}
	return count;
}

static const char *env_value(char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (; env && *env; env++)
		if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
			return *env + n + 1;
	return NULL;
}

/* "env" takes the caller's, if there is any. One that we cannot read is refused: without it everything would go the
 * direct way, past the proxy. */
static int find_upstream(const struct policy *pol, char *const *env, char **ret, struct err *e)
{
	static const char *const names[] = { "HTTPS_PROXY", "https_proxy", "ALL_PROXY",
					     "all_proxy",   "HTTP_PROXY",  "http_proxy" };
	const char *text =
		pol->net_upstream.n ? pol->net_upstream.v[pol->net_upstream.n - 1].text : NULL;
	struct net_upstream u;

	if (text == NULL || !str_eq(text, "env")) {
		*ret = text ? mem_str(text) : NULL;
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		text = env_value(env, names[i]);
		if (text == NULL || text[0] == '\0')
			continue;
		if (net_upstream_parse(text, &u) < 0)
			return err_set(e, ERR_CONFIG, EINVAL,
				       "network.upstream is \"env\", and %s is none that can be "
				       "used: "
				       "http://[USER:PASSWORD@]HOST:PORT or socks5://...",
				       names[i]);
		*ret = mem_str(text);
		return 0;
	}
	return 0;
}

/* ---- inspected hosts ---- */

static void add_inspected(void *arg, const char *host)
{
	struct plan_net *n = arg;

	for (size_t i = 0; i < n->n_inspect; i++)
		if (str_eq(n->inspect[i], host))
			return;
	add_text(&n->inspect, &n->n_inspect, mem_str(host));
}

static void put_items(struct buf *b, const char *key, const struct items *l)
{
	buf_printf(b, "\"%s\":[", key);
	for (size_t i = 0; i < l->n; i++) {
		buf_puts(b, i ? "," : "");
		buf_json(b, l->v[i].text);
	}
	buf_putc(b, ']');
}

static void put_terms(struct buf *b, const struct facts *f, bool is_login)
{
	const char *comma = "";

	for (size_t i = 0; i < f->n_secrets; i++) {
		const char *text = is_login ? f->secrets[i].login : f->secrets[i].terms;

		if (text == NULL)
			continue;
		buf_printf(b, "%s%s", comma, text);
		comma = ",";
	}
}

static char *make_terms(const struct policy *pol, const struct facts *f)
{
	_cleanup_(buf_done) struct buf b = BUF(MIB);

	buf_putc(&b, '{');
	put_items(&b, "allow", &pol->inspect_allow);
	buf_putc(&b, ',');
	put_items(&b, "deny", &pol->inspect_deny);
	buf_puts(&b, ",\"git\":{");
	put_items(&b, "fetch", &pol->git_fetch);
	buf_putc(&b, ',');
	put_items(&b, "push", &pol->git_push);
	buf_puts(&b, "},\"secrets\":[");
	put_terms(&b, f, false);
	buf_puts(&b, "],\"logins\":[");
	put_terms(&b, f, true);
	buf_puts(&b, "]}");
	return buf_take(&b);
}

/* Two rules may name one host. */
static void add_rule_once(struct plan_net *n, char *take_text)
{
	for (size_t i = 0; i < n->n_rules; i++)
		if (str_eq(n->rules[i], take_text)) {
			free(take_text);
			return;
		}
	add_text(&n->rules, &n->n_rules, take_text);
}

/* Who lists what of a host is asked for means that it may be reached; with git rules, over HTTPS alone. */
static void allow_named(struct plan_net *n, const struct items *l, bool is_git)
{
	for (size_t i = 0; i < l->n; i++) {
		const char *at = is_git ? l->v[i].text : strchr(l->v[i].text, ' ');
		_free_ char *host = NULL;

		at += strspn(at, " ");
		host = mem_strn(at, strcspn(at, "/"));
		add_rule_once(n, mem_fmt("allow %s:443", host));
		if (is_git)
			add_rule_once(n, mem_fmt("deny %s:22", host));
	}
}

static void inspect_secret(struct plan_net *n, const struct policy *pol,
			   const struct secret_fact *s)
{
	for (size_t k = 0; k < s->n_hosts; k++)
		inspect_add(pol, s->hosts[k], add_inspected, n);
	for (const char *const *v = s->gives; v && *v; v++) {
		_free_ char *host = mem_strn(*v, strcspn(*v, "/"));

		inspect_add(pol, host, add_inspected, n);
	}
	if (s->is_open)
		add_text(&n->open_logins, &n->n_open_logins, mem_str(s->name));
}

/* What SSL_CERT_FILE names is the bundle already. */
static char *extra_trust(const struct facts *f)
{
	struct buf b = BUF(16 * MIB);

	for (size_t i = 0; i < f->n_own_trust; i++)
		if (!str_eq(f->own_trust[i].var, "SSL_CERT_FILE") && f->own_trust[i].text)
			buf_puts(&b, f->own_trust[i].text);
	return b.n ? buf_take(&b) : NULL;
}

static void build_seal(struct plan_net *n, const struct policy *pol, const struct facts *f)
{
	const char *trust = env_value(f->environ, "SSL_CERT_FILE");

	inspect_each(pol, add_inspected, n);
	for (size_t i = 0; i < f->n_secrets; i++)
		inspect_secret(n, pol, &f->secrets[i]);
	if (n->n_inspect == 0)
		return;
	n->has_seal = true;
	n->terms = make_terms(pol, f);
	n->trust = trust ? mem_str(trust) : NULL;
	n->extra_trust = extra_trust(f);
	allow_named(n, &pol->inspect_allow, false);
	allow_named(n, &pol->git_fetch, true);
	allow_named(n, &pol->git_push, true);
}

/* Who lends the sandbox the port of a collector on the host wants that one to listen. */
static bool is_lent(const struct policy *pol, unsigned port)
{
	char text[8];

	(void)snprintf(text, sizeof(text), "%u", port);
	for (size_t i = 0; pol->network == NET_GATE && i < pol->net_host_ports.n; i++)
		if (str_eq(pol->net_host_ports.v[i].text, text))
			return true;
	return false;
}

static void build_receiver(struct plan_net *n, const struct policy *pol)
{
	if (!pol->telemetry)
		return;
	if (is_lent(pol, NETNS_TELEMETRY_PORT))
		n->no_receiver = "the host's own port takes its place";
	n->has_receiver = n->no_receiver == NULL;
}

int plan_net_build(struct plan_net *n, const struct policy *pol, const struct facts *f,
		   struct err *e)
{
	build_receiver(n, pol);
	if (pol->network != NET_GATE)
		return 0;
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
	build_seal(n, pol, f);
	return find_upstream(pol, f->environ, &n->upstream, e);
}
