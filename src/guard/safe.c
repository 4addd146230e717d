/* SPDX-License-Identifier: Apache-2.0 */
/* guard/safe.c - the first pass: prove that a command changes nothing
 *
 * Accepted are literal words only, in simple commands joined by && || ; | and newlines, each of which is in the
 * table of commands that only look (rules/safe.json), with no redirection but to /dev/null and between descriptors.
 * Anything else is not unsafe, only not proved.
 */
#include "guard/guard.h"

static bool is_literal(const struct word *w)
{
	for (const struct part *p = w->first; p; p = p->next) {
		if (p->kind != PART_TEXT)
			return false;
		if (!p->is_quoted && strpbrk(p->text, "{}~"))
			return false;
		/* Quoted now, but some commands evaluate their arguments once more. */
		if (strstr(p->text, "$(") || strchr(p->text, '`'))
			return false;
	}
	return true;
}

static bool redirs_are_safe(const struct redir *r)
{
	for (; r; r = r->next) {
		const struct part *p = r->target->first;
		const char *text = p && !p->next && p->kind == PART_TEXT ? p->text : "";

		if (r->op == REDIR_DUP_OUT || r->op == REDIR_DUP_IN ? !rules_list_has("0|1|2", text)
								    : !str_eq(text, "/dev/null"))
			return false;
	}
	return true;
}

static bool simple_is_safe(const struct guard *g, struct arena *mem, const struct node *n)
{
	struct vars vars = { .mem = mem, .home = g->home, .cwd = g->cwd, .tmp = g->tmp };
	struct places places = { .mem = mem,
				 .home = g->home,
				 .cwd = g->cwd,
				 .tmp = g->tmp,
				 .workspace = g->cwd,
				 .sets = g->sets,
				 .n_sets = g->n_sets };
	struct cmd c = { .via = "" };
	struct args a;
	size_t count = 0;

	if (n->assigns || n->words == NULL || !redirs_are_safe(n->redirs))
		return false;
	for (const struct word *w = n->words; w; w = w->next, count++)
		if (!is_literal(w))
			return false;
	c.argv = arena_take(mem, (count + 1) * sizeof(const struct value *));
	for (const struct word *w = n->words; w; w = w->next)
		c.argv[c.argc++] = value_whole(&vars, w);
	/* A path names a program that may be anybody's. */
	if (strchr(c.argv[0]->s, '/'))
		return false;
	c.name = cmd_name(mem, c.argv[0]->s);
	args_read(mem, &c, &places, &a);
	for (size_t i = 0; i < g->n_sets; i++)
		for (size_t k = 0; k < g->sets[i]->n_safe; k++)
			if (cmd_fits(&c, &a, &places, &g->sets[i]->safe[k]) == FIT_YES)
				return true;
	return false;
}

bool guard_proves_safe(const struct guard *g, struct arena *mem, const struct node *script)
{
	size_t n = 0;

	for (const struct node *i = script->first; i; i = i->next) {
		/* A proof of a hundred commands is of no use to anyone. */
		if (++n > 100 || i->is_background)
			return false;
		if (i->kind == NODE_SIMPLE ? !simple_is_safe(g, mem, i)
					   : (i->kind != NODE_AND_OR && i->kind != NODE_PIPE) ||
						     i->redirs || !guard_proves_safe(g, mem, i))
			return false;
	}
	return n > 0;
}
