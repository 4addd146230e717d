/* SPDX-License-Identifier: Apache-2.0 */
/* guard/guard.c - see guard.h */
#include "guard/guard.h"

void guard_walk_begin(const struct guard *g, struct arena *mem, struct walk *w)
{
	*w = (struct walk){ .mem = mem,
			    .sets = g->sets,
			    .n_sets = g->n_sets,
			    .off = g->off,
			    .via = "",
			    .ceiling = VERDICT_DENY };
	w->vars = (struct vars){ .mem = mem, .home = g->home, .cwd = g->cwd, .tmp = g->tmp };
	w->places = (struct places){ .mem = mem,
				     .home = g->home,
				     .cwd = g->cwd,
				     .tmp = g->tmp,
				     .workspace = g->cwd,
				     .sets = g->sets,
				     .n_sets = g->n_sets };
}

static void conclude(const struct walk *w, struct judgement *ret)
{
	*ret = (struct judgement){ .verdict = w->verdict, .rule = "", .say = "", .command = "" };
	memcpy(ret->all, w->found, sizeof(ret->all));
	ret->n_all = w->n_found;
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
		   "change nothing; "
		   "a person decides about this one.";
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

void guard_file(const struct guard *g, struct arena *mem, const char *path, bool is_write,
		struct judgement *ret)
{
	struct cmd c = { .via = "", .name = is_write ? "tool-write" : "tool-read" };
	const struct value *argv[2];
	struct walk w;

	guard_walk_begin(g, mem, &w);
	argv[0] = value_text(mem, c.name, strlen(c.name));
	argv[1] = value_text(mem, path, strlen(path));
	c.argv = argv;
	c.argc = 2;
	walk_command(&w, &c);
	conclude(&w, ret);
	ret->is_proved = ret->verdict == VERDICT_ALLOW && !is_write;
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
