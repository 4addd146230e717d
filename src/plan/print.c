/* SPDX-License-Identifier: Apache-2.0 */
/* plan/print.c - a plan as text or JSON: everything in it, in the order it will be carried out */
#include "plan/plan.h"
#include "policy/net.h"

static const char *const mount_names[MOUNT_KIND_COUNT_] = {
	[MOUNT_BIND] = "bind",       [MOUNT_PRIVATE] = "private", [MOUNT_PROC] = "proc",
	[MOUNT_PTS] = "pts",         [MOUNT_DEVICE] = "device",   [MOUNT_HIDE] = "hide",
	[MOUNT_PROTECT] = "protect", [MOUNT_PIN] = "pin",         [MOUNT_LAYER] = "layer",
	[MOUNT_OVERLAY] = "overlay", [MOUNT_PART] = "part",       [MOUNT_SERVE] = "serve",
};
static const char *const access_names[ACCESS_KIND_COUNT_] = { "read", "write", "device", "proc" };
static const char *const skel_names[SKEL_KIND_COUNT_] = { "dir", "file", "link", "copy", "tree" };

static const struct {
	unsigned bit;
	const char *name;
} ns_names[] = {
	{ NS_USER, "user" }, { NS_MOUNT, "mount" },   { NS_PID, "pid" }, { NS_IPC, "ipc" },
	{ NS_UTS, "uts" },   { NS_CGROUP, "cgroup" }, { NS_NET, "net" },
};

static void esc(struct buf *b, const char *s)
{
	buf_esc(b, s, strlen(s));
}

static const char *filter_name(const struct plan *p)
{
	return p->debug ? "debug" : p->may_suid ? "root" : "base";
}

/* ---- for people ---- */

static void text_head(const struct plan *p, struct buf *b)
{
	buf_printf(b, "sandbox    %s%s\nengine     %s\nworkspace  ", p->name,
		   p->is_named ? "" : " (ephemeral)", p->engine);
	esc(b, p->workspace);
	buf_puts(b, "\ncommand   ");
	for (char **v = p->argv; *v; v++) {
		buf_putc(b, ' ');
		esc(b, *v);
	}
	buf_puts(b, "\nin         ");
	esc(b, p->cwd);
	buf_printf(b, "\nids        %u:%u inside, %u:%u outside\n", p->ids.uid_in, p->ids.gid_in,
		   p->ids.uid_out, p->ids.gid_out);
	if (p->ids.root != ROOT_NONE)
		buf_printf(b, "root       %u ids from %u on; %s\n", SUBIDS_COUNT,
			   p->ids.uids.v[0].out,
			   p->ids.root == ROOT_JOB ? "the command is root inside"
						   : "set-user-id programs of the template count "
						     "(no no_new_privs)");
	buf_puts(b, "namespaces");
	for (size_t i = 0; i < ARRAY_LEN(ns_names); i++)
		if (p->ns & ns_names[i].bit)
			buf_printf(b, " %s", ns_names[i].name);
	buf_printf(b, "\nfilter     %s (docs/SYSCALLS.md)\nlandlock   ABI %u, %s\nnetwork    %s\n",
		   filter_name(p), p->landlock_abi,
		   p->check_reads ? "changes, programs and reading" : "changes and programs",
		   p->net.has_gate ? "through the gate" : "none");
	if (p->net.has_receiver)
		buf_puts(b, "telemetry  kept\n");
	else if (p->net.no_receiver)
		buf_printf(b, "telemetry  not kept: %s\n", p->net.no_receiver);
}

static void text_list(struct buf *b, const char *what, char *const *v)
{
	for (; v && *v; v++) {
		buf_printf(b, "  %s", what);
		esc(b, *v);
		buf_putc(b, '\n');
	}
}

static void text_net(const struct plan *p, struct buf *b)
{
	const struct plan_net *n = &p->net;

	if (!n->has_gate)
		return;
	buf_puts(b, "\nnetwork\n");
	text_list(b, "", n->rules);
	buf_printf(b, "  %s everything else\n", n->is_asking ? "ask for" : "deny");
	text_list(b, "inspect ", n->inspect);
	text_list(b, "publish ", n->ports);
	text_list(b, "host port ", n->host_ports);
	if (n->upstream) {
		_cleanup_(buf_done) struct buf shown = BUF(4 * KIB);

		net_upstream_show(n->upstream, &shown);
		buf_puts(b, "  through ");
		esc(b, buf_cstr(&shown));
		buf_putc(b, '\n');
	}
}

static void text_mounts(const struct plan *p, struct buf *b)
{
	buf_puts(b, "\nfiles\n");
	for (size_t i = 0; i < p->n_mounts; i++) {
		const struct mount *m = &p->mounts[i];
		bool is_ro = m->flags & MOUNT_RO || m->kind == MOUNT_HIDE;

		buf_printf(b, "  %-8s %s ", mount_names[m->kind], is_ro ? "ro" : "rw");
		esc(b, m->dst);
		if ((m->kind == MOUNT_BIND || m->kind == MOUNT_LAYER) && !str_eq(m->src, m->dst)) {
			buf_puts(b, " <- ");
			esc(b, m->src);
		}
		buf_printf(b, "  (%s)\n", m->why ? m->why : "");
	}
}

static void text_limits(const struct plan *p, struct buf *b)
{
	buf_puts(b, "\nlimits\n");
	for (enum limit_id id = 0; id < LIMIT_COUNT_; id++) {
		const struct plan_limit *l = &p->limits[id];

		if (!l->is_set)
			continue;
		buf_printf(b, "  %-10s ", limit_name(id));
		limit_format(id, l->max, b);
		buf_printf(b, "  %s (%s)\n", enforcer_name(l->by), l->how);
	}
}

static void print_text(const struct plan *p, struct buf *b)
{
	text_head(p, b);
	text_mounts(p, b);
	text_limits(p, b);
	text_net(p, b);
	buf_puts(b, "\nlandlock rules\n");
	for (size_t i = 0; i < p->n_access; i++) {
		buf_printf(b, "  %-8s ", access_names[p->access[i].kind]);
		esc(b, p->access[i].path);
		buf_putc(b, '\n');
	}
	buf_puts(b, "\nroot directory (made once, read-only)\n");
	for (size_t i = 0; i < p->n_skel; i++) {
		buf_printf(b, "  %-8s /", skel_names[p->skel[i].kind]);
		esc(b, p->skel[i].path);
		if (p->skel[i].kind == SKEL_LINK) {
			buf_puts(b, " -> ");
			esc(b, p->skel[i].text);
		}
		buf_putc(b, '\n');
	}
	buf_puts(b, "\nenvironment\n");
	for (size_t i = 0; i < p->n_env; i++) {
		buf_puts(b, "  ");
		esc(b, p->env[i]);
		buf_putc(b, '\n');
	}
}

/* ---- for machines ---- */

static void field(struct buf *b, const char *key, const char *value)
{
	buf_printf(b, "\"%s\":", key);
	buf_json(b, value);
}

static void list(struct buf *b, const char *key, char *const *v)
{
	buf_printf(b, ",\"%s\":[", key);
	for (size_t i = 0; v && v[i]; i++) {
		buf_puts(b, i ? "," : "");
		buf_json(b, v[i]);
	}
	buf_putc(b, ']');
}

static void json_net(const struct plan *p, struct buf *b)
{
	if (!p->net.has_gate)
		return;
	list(b, "rules", p->net.rules);
	list(b, "inspect", p->net.inspect);
	list(b, "ports", p->net.ports);
	list(b, "host_ports", p->net.host_ports);
	buf_puts(b, ",\"upstream\":");
	if (p->net.upstream) {
		_cleanup_(buf_done) struct buf shown = BUF(4 * KIB);

		net_upstream_show(p->net.upstream, &shown);
		buf_json(b, buf_cstr(&shown));
	} else {
		buf_puts(b, "null");
	}
	buf_printf(b, ",\"ask\":%s", p->net.is_asking ? "true" : "false");
}

static void json_mounts(const struct plan *p, struct buf *b)
{
	static const struct {
		unsigned bit;
		const char *name;
	} flags[] = { { MOUNT_RO, "ro" },           { MOUNT_IDMAP, "idmap" },
		      { MOUNT_GONE_OK, "gone-ok" }, { MOUNT_MKDIR, "mkdir" },
		      { MOUNT_NOEXEC, "noexec" },   { MOUNT_VERIFY, "verify" } };

	buf_puts(b, ",\"mounts\":[");
	for (size_t i = 0; i < p->n_mounts; i++) {
		const struct mount *m = &p->mounts[i];
		bool is_first = true;

		buf_puts(b, i ? ",{" : "{");
		field(b, "kind", mount_names[m->kind]);
		buf_putc(b, ',');
		field(b, "src", m->src);
		buf_putc(b, ',');
		field(b, "dst", m->dst);
		buf_putc(b, ',');
		field(b, "why", m->why ? m->why : "");
		buf_puts(b, ",\"flags\":[");
		for (size_t k = 0; k < ARRAY_LEN(flags); k++) {
			if (!(m->flags & flags[k].bit))
				continue;
			buf_printf(b, "%s\"%s\"", is_first ? "" : ",", flags[k].name);
			is_first = false;
		}
		buf_puts(b, "]}");
	}
	buf_putc(b, ']');
}

static void json_rest(const struct plan *p, struct buf *b)
{
	bool is_first = true;

	buf_puts(b, ",\"landlock\":[");
	for (size_t i = 0; i < p->n_access; i++) {
		buf_puts(b, i ? ",{" : "{");
		field(b, access_names[p->access[i].kind], p->access[i].path);
		buf_putc(b, '}');
	}
	buf_puts(b, "],\"root\":[");
	for (size_t i = 0; i < p->n_skel; i++) {
		buf_puts(b, i ? ",{" : "{");
		field(b, skel_names[p->skel[i].kind], p->skel[i].path);
		buf_putc(b, ',');
		field(b, "text", p->skel[i].text);
		buf_putc(b, '}');
	}
	buf_puts(b, "],\"limits\":{");
	for (enum limit_id id = 0; id < LIMIT_COUNT_; id++) {
		const struct plan_limit *l = &p->limits[id];

		if (!l->is_set)
			continue;
		buf_printf(b, "%s\"%s\":{\"max\":%llu,\"by\":\"%s\",\"how\":", is_first ? "" : ",",
			   limit_name(id), (unsigned long long)l->max, enforcer_name(l->by));
		buf_json(b, l->how);
		buf_putc(b, '}');
		is_first = false;
	}
	buf_putc(b, '}');
}

static void print_json(const struct plan *p, struct buf *b)
{
	bool is_first = true;

	buf_putc(b, '{');
	field(b, "name", p->name);
	buf_putc(b, ',');
	field(b, "engine", p->engine);
	buf_putc(b, ',');
	field(b, "workspace", p->workspace);
	buf_putc(b, ',');
	field(b, "cwd", p->cwd);
	buf_printf(b, ",\"ids\":{\"uid\":[%u,%u],\"gid\":[%u,%u]", p->ids.uid_in, p->ids.uid_out,
		   p->ids.gid_in, p->ids.gid_out);
	if (p->ids.root != ROOT_NONE)
		buf_printf(b, ",\"root\":\"%s\",\"from\":[%u,%u],\"count\":%u",
			   p->ids.root == ROOT_JOB ? "command" : "setuid", p->ids.uids.v[0].out,
			   p->ids.gids.v[0].out, SUBIDS_COUNT);
	buf_puts(b, "},\"namespaces\":[");
	for (size_t i = 0; i < ARRAY_LEN(ns_names); i++) {
		if (!(p->ns & ns_names[i].bit))
			continue;
		buf_printf(b, "%s\"%s\"", is_first ? "" : ",", ns_names[i].name);
		is_first = false;
	}
	buf_printf(b,
		   "],\"filter\":\"%s\",\"landlock_abi\":%u,\"check_reads\":%s,\"network\":"
		   "\"%s\",\"private_bytes\":"
		   "%llu",
		   filter_name(p), p->landlock_abi, p->check_reads ? "true" : "false",
		   p->net.has_gate ? "gate" : "none", (unsigned long long)p->private_bytes);
	list(b, "argv", p->argv);
	list(b, "env", p->env);
	json_net(p, b);
	buf_printf(b, ",\"telemetry\":%s", p->net.has_receiver ? "true" : "false");
	json_mounts(p, b);
	json_rest(p, b);
	buf_puts(b, "}\n");
}

void plan_print(const struct plan *p, bool as_json, struct buf *out)
{
	if (as_json)
		print_json(p, out);
	else
		print_text(p, out);
}
