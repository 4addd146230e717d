/* SPDX-License-Identifier: Apache-2.0 */
/* plan/tools.c - safe tools and the broker, as the plan knows them
 *
 * Both are the program vitrine-tools under several names, in a directory of the skeleton that stands first on PATH: the
 * tools do the ordinary thing and keep from the dangerous one, the others ask the broker. git finds the broker by the
 * system's configuration: a URL that a rule names is rewritten to one that git hands to git-remote-vitrine.
 */
#include "base/path.h"
#include "plan/parts.h"
#include "policy/brokerrule.h"

const char plan_tool_names[][16] = {
	"rm",   "git",  "find", "xargs",    "chmod", "chown", "dd",
	"curl", "wget", "mv",   "truncate", "shred", "trash", "",
};

const char plan_broker_names[][24] = { "git-remote-vitrine", "gh", "broker", "" };

bool plan_wants_broker(const struct policy *pol)
{
	return pol->broker_fetch.n + pol->broker_push.n + pol->broker_gh.n +
		       pol->broker_commands.n >
	       0;
}

bool plan_wants_tools(const struct policy *pol, bool is_named)
{
	return pol->tools == TOOLS_ALWAYS || (pol->tools == TOOLS_AUTO && is_named);
}

static void add_tool(struct plan *p, const char *name)
{
	_free_ char *path = mem_fmt(PLAN_TOOLS "/%s", name);

	plan_add_skel(p, SKEL_LINK, path, "vitrine-tools");
}

/* The program itself is copied into the skeleton: nothing is mounted for it. */
void plan_safe_tools(struct plan *p, const struct policy *pol, const struct facts *f)
{
	const struct entry *en = &f->tools_exe;
	struct skel *s;

	if (en->path == NULL)
		return;
	s = plan_add_skel(p, SKEL_COPY, PLAN_TOOLS "/vitrine-tools", en->path);
	s->mode = 0755;
	s->stamp = en->mtime_ns ^ (en->size << 40) ^ (en->ino << 20);
	for (size_t i = 0; plan_wants_tools(pol, p->is_named) && plan_tool_names[i][0]; i++) {
		bool is_off = false;

		for (size_t k = 0; k < pol->tools_off.n; k++)
			is_off |= str_eq(pol->tools_off.v[k].text, plan_tool_names[i]);
		if (!is_off)
			add_tool(p, plan_tool_names[i]);
	}
	for (size_t i = 0; p->broker.n_rules > 0 && plan_broker_names[i][0]; i++)
		add_tool(p, plan_broker_names[i]);
	if (p->broker.is_self)
		add_tool(p, "vitrine-checkpoint");
	if (p->broker.is_on) {
		_free_ char *ours = mem_fmt("%s/sandboxes/%s/" BROKER_NAME, p->state_dir, p->name);

		plan_add_mount(p, MOUNT_BIND, ours, PLAN_BROKER, 0, "broker");
	}
}

/* ---- the broker ---- */

static const struct {
	const char *word;
	enum broker_kind kind;
	size_t at;
} kinds[] = {
	{ "fetch", BROKER_FETCH, offsetof(struct policy, broker_fetch) },
	{ "push", BROKER_PUSH, offsetof(struct policy, broker_push) },
	{ "gh", BROKER_GH, offsetof(struct policy, broker_gh) },
	{ "command", BROKER_COMMAND, offsetof(struct policy, broker_commands) },
};

static const struct items *items_of(const struct policy *pol, size_t i)
{
	return (const void *)((const char *)pol + kinds[i].at);
}

/* What the user's own programs need outside: never inside, and nothing that is not here. */
static const char env_vars[][28] = {
	"SSH_AUTH_SOCK", "LANG",        "TZ",       "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS",
	"https_proxy",   "HTTPS_PROXY", "no_proxy", "NO_PROXY",        "SSL_CERT_FILE",
	"GIT_SSL_CAINFO"
};

static void build_env(struct plan_broker *b, const struct facts *f)
{
	size_t n = 0;

	b->env = mem_new(ARRAY_LEN(env_vars) + 4, sizeof(*b->env));
	b->env[n++] = mem_str("PATH=/usr/local/bin:/usr/bin:/bin");
	b->env[n++] = mem_fmt("HOME=%s", f->home);
	b->env[n++] = mem_fmt("USER=%s", f->user);
	for (size_t i = 0; i < ARRAY_LEN(env_vars); i++)
		for (char *const *v = f->environ; v && *v; v++)
			if (str_starts(*v, env_vars[i]) && (*v)[strlen(env_vars[i])] == '=') {
				b->env[n++] = mem_str(*v);
				break;
			}
}

void plan_broker_build(struct plan_broker *b, const struct policy *pol, const struct facts *f,
		       bool is_named)
{
	/* Asking for a checkpoint needs no rule, only somebody who can come back to it. */
	b->is_self = is_named && f->has_broker && str_eq(pol->engine, "native") &&
		     plan_wants_tools(pol, is_named);
	if (!plan_wants_broker(pol) && !b->is_self)
		return;
	b->is_on = true;
	b->rules = mem_new(pol->broker_fetch.n + pol->broker_push.n + pol->broker_gh.n +
				   pol->broker_commands.n + 1,
			   sizeof(*b->rules));
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		for (size_t k = 0; k < items_of(pol, i)->n; k++)
			b->rules[b->n_rules++] =
				mem_fmt("%s %s", kinds[i].word, items_of(pol, i)->v[k].text);
	build_env(b, f);
}

void plan_broker_done(struct plan_broker *b)
{
	for (size_t i = 0; i < b->n_rules; i++)
		free(b->rules[i]);
	for (char **v = b->env; v && *v; v++)
		free(*v);
	free(b->rules);
	free(b->env);
	*b = (struct plan_broker){ 0 };
}

/* The rules as parsed ones. They were checked when the policy was read. */
static void parse(const struct policy *pol, struct broker_rules *ret)
{
	struct err e = ERR_INIT;

	*ret = (struct broker_rules){ 0 };
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		for (size_t k = 0; k < items_of(pol, i)->n; k++)
			bug_on(broker_rules_add(ret, kinds[i].kind, items_of(pol, i)->v[k].text,
						&e) < 0);
}

static const char *path_of(const struct broker_rule *r)
{
	return r->n_words > 0                             ? r->words[0]
	       : r->kind != BROKER_GH && r->url[0] == '/' ? r->url
							  : NULL;
}

int plan_broker_check(const struct plan *p, const struct policy *pol, struct err *e)
{
	_cleanup_(broker_rules_done) struct broker_rules r = { 0 };

	parse(pol, &r);
	for (size_t i = 0; i < r.n; i++) {
		const char *path = path_of(&r.v[i]);

		for (size_t k = 0; path && k < p->n_mounts; k++) {
			const struct mount *m = &p->mounts[k];

			/* By the host's name: what is bound somewhere else is written all the same. */
			if (m->kind == MOUNT_BIND && !(m->flags & MOUNT_RO) && m->src[0] == '/' &&
			    path_is_beneath(path, m->src))
				return err_set(e, ERR_CONFIG, EPERM,
					       "broker: '%s' lies in '%s', where what runs inside "
					       "can write; the broker "
					       "runs and pushes only what it cannot touch",
					       path, m->src);
		}
	}
	return 0;
}

/* A repository goes by more than one URL; whichever the clone has, the broker's is meant. */
static void put_rewrites(const char *url, struct buf *out)
{
	const char *host = str_starts(url, "https://") ? url + 8 : NULL;
	const char *slash = host ? strchr(host, '/') : NULL;

	buf_printf(out, "[url \"vitrine::%s\"]\n\tinsteadOf = %s\n", url, url);
	if (url[0] == '/')
		buf_printf(out, "\tinsteadOf = file://%s\n", url);
	if (slash == NULL || memchr(host, ':', (size_t)(slash - host)))
		return;
	buf_printf(out, "\tinsteadOf = git@%.*s:%s\n", (int)(slash - host), host, slash + 1);
	buf_printf(out, "\tinsteadOf = ssh://git@%s\n", host);
}

void plan_broker_git(const struct plan_broker *b, struct buf *out)
{
	_cleanup_(buf_done) struct buf seen = BUF(MIB);

	for (size_t i = 0; i < b->n_rules; i++) {
		const char *word = strchr(b->rules[i], ' ');
		_cleanup_(broker_rules_done) struct broker_rules r = { 0 };
		bool is_push = str_starts(b->rules[i], "push ");
		_free_ char *line = NULL;
		struct err e = ERR_INIT;

		if (!is_push && !str_starts(b->rules[i], "fetch "))
			continue;
		bug_on(broker_rules_add(&r, is_push ? BROKER_PUSH : BROKER_FETCH, word + 1, &e) <
		       0);
		line = mem_fmt("\n%s\n", r.v[0].url);
		if (strstr(buf_cstr(&seen), line))
			continue;
		/* git asks who named the URL: of a submodule it is a file of the repository. The broker asks its rules. */
		if (seen.n == 0)
			buf_puts(out, "[protocol \"vitrine\"]\n\tallow = always\n");
		buf_puts(&seen, line);
		put_rewrites(r.v[0].url, out);
	}
}
