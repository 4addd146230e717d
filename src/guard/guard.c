/* SPDX-License-Identifier: Apache-2.0 */
/* guard/guard.c - see guard.h */
#include "guard/guard.h"

static void collect_one(struct walk *w, const struct rule *r)
{
	if (r->finding)
		w->finding_rules[w->n_finding_rules++] = r;
	for (const char *at = r->effect; at && *at;) {
		size_t n = strcspn(at, "|");
		enum effect_kind k = effect_find(at, n);

		w->effect_rules[k][w->n_effect_rules[k]++] = r;
		at += n + (at[n] == '|');
	}
}

/* The rules about each effect and those about findings, so that these look at no others. */
static void collect(struct walk *w)
{
	size_t n = 0, n_findings = 0;

	for (size_t i = 0; i < w->n_sets; i++)
		for (size_t k = 0; k < w->sets[i]->n_rules; k++) {
			n += w->sets[i]->rules[k].effect != NULL;
			n_findings += w->sets[i]->rules[k].finding != NULL;
		}
	for (enum effect_kind k = 0; k < EFFECT_COUNT_; k++)
		w->effect_rules[k] = arena_take(w->mem, (n + 1) * sizeof(const struct rule *));
	w->finding_rules = arena_take(w->mem, (n_findings + 1) * sizeof(const struct rule *));
	for (size_t i = 0; i < w->n_sets; i++)
		for (size_t k = 0; k < w->sets[i]->n_rules; k++)
			collect_one(w, &w->sets[i]->rules[k]);
}

void guard_walk_begin(const struct guard *g, struct arena *mem, struct walk *w)
{
	*w = (struct walk){ .mem = mem,
			    .sets = g->sets,
			    .n_sets = g->n_sets,
			    .off = g->off,
			    .via = "",
			    .ceiling = VERDICT_DENY };
	collect(w);
	w->is_inside = g->is_inside;
	w->vars = (struct vars){
		.mem = mem, .home = g->home, .cwd = g->cwd, .tmp = g->tmp, .expanded = &w->expanded
	};
	w->places = (struct places){ .mem = mem,
				     .home = g->home,
				     .cwd = g->cwd,
				     .tmp = g->tmp,
				     .workspace = g->cwd,
				     .sets = g->sets,
				     .n_sets = g->n_sets,
				     .joined = &w->joined };
}

static void conclude(const struct walk *w, struct judgement *ret)
{
	*ret = (struct judgement){ .verdict = w->verdict, .rule = "", .say = "", .command = "" };
	memcpy(ret->all, w->found, sizeof(ret->all));
	ret->n_all = w->n_found;
	memcpy(ret->effects, w->effects, sizeof(ret->effects));
	ret->n_effects = w->n_effects;
	if (w->worst == NULL)
		return;
	ret->rule = w->worst->rule->id;
	ret->say = w->worst->rule->say;
	ret->intent = w->worst->rule->intent;
	ret->command = w->worst->command;
}

static void ask_unknown(struct judgement *ret)
{
	ret->verdict = VERDICT_ASK;
	ret->intent = INTENT_HUMAN;
	ret->rule = "strict.unknown";
	ret->say = "At the level 'strict' a command runs without a question only if it is known to "
		   "change nothing. Use one that only looks, or say what this one does and let the "
		   "user decide.";
}

void guard_command(const struct guard *g, struct arena *mem, const char *text, size_t n,
		   struct judgement *ret)
{
	struct shell_error error;
	struct node *script;
	struct walk w;

	guard_walk_begin(g, mem, &w);
	script = shell_parse(mem, text, n, &error);
	if (script)
		walk_script(&w, script);
	/* Also when memory ran over on the way: then not everything was looked at. */
	if (script == NULL || mem->is_over)
		walk_find(&w, "unreadable", NULL);
	conclude(&w, ret);
	if (script == NULL)
		ret->command = error.what;
	else if (!mem->is_over)
		ret->is_proved = guard_proves_safe(g, mem, script);
	if (ret->verdict == VERDICT_ALLOW && g->level == LEVEL_STRICT && !ret->is_proved)
		ask_unknown(ret);
}

/* A file tool is a program of two words to the rules. */
static void walk_tool(struct walk *w, const char *name, const char *path)
{
	struct cmd c = { .via = "", .name = name };
	const struct value *argv[2];

	argv[0] = value_text(w->mem, name, strlen(name));
	argv[1] = value_text(w->mem, path, strlen(path));
	c.argv = argv;
	c.argc = 2;
	walk_command(w, &c);
}

static void walk_act(struct walk *w, const struct tool_act *a)
{
	static const struct cmd tool = { .via = "", .name = "tool" };
	const char *path;

	switch (a->kind) {
	case ACT_SHELL:
		walk_text(w, a->text, strlen(a->text), &tool, "");
		break;
	case ACT_CODE:
		code_scan(w, &tool, a->text);
		break;
	case ACT_SQL:
		code_sql(w, &tool, a->text);
		break;
	case ACT_EFFECT:
		path = a->text;
		if (path[0] == '~' && (path[1] == '/' || path[1] == '\0'))
			path = arena_fmt(w->mem, "%s%s", w->places.home, path + 1);
		if (a->effect == EFFECT_READS || a->effect == EFFECT_WRITES)
			walk_tool(w, a->effect == EFFECT_READS ? "tool-read" : "tool-write", path);
		else
			effect_text(w, a->effect, path, &tool);
		break;
	}
}

void guard_tool(const struct guard *g, struct arena *mem, const struct tool_act *acts, size_t n,
		bool is_cut, struct judgement *ret)
{
	struct walk w;
	bool is_read = true;

	guard_walk_begin(g, mem, &w);
	for (size_t i = 0; i < n; i++) {
		walk_act(&w, &acts[i]);
		is_read &= acts[i].kind == ACT_EFFECT && acts[i].effect == EFFECT_READS;
	}
	if (is_cut || mem->is_over)
		walk_find(&w, "unreadable", NULL);
	conclude(&w, ret);
	ret->is_proved = ret->verdict == VERDICT_ALLOW && is_read && n > 0;
}

void guard_init_plain(struct guard *g, const char *home, const char *cwd)
{
	*g = (struct guard){ .mem = ARENA(8 * MIB),
			     .sets = { rules_built_in() },
			     .n_sets = 1,
			     .home = home,
			     .cwd = cwd,
			     .tmp = "/tmp" };
}

void guard_done(struct guard *g)
{
	arena_done(&g->mem);
}
