/* SPDX-License-Identifier: Apache-2.0 */
/* guard/seen.c - see seen.h
 *
 * The very walk that judges commands is asked which ones it met, so that what is held against bash is not only the
 * reader but also what opens eval, trap and their like.
 */
#include "guard/seen.h"

#include "guard/guard.h"

/* A name over several lines would be reported in pieces, between which others may come. */
static const char *one_line(struct arena *mem, const char *name)
{
	char *copy;

	if (strchr(name, '\n') == NULL)
		return name;
	copy = arena_strn(mem, name, strlen(name));
	for (char *c = copy; *c; c++)
		if (*c == '\n')
			*c = ' ';
	return copy;
}

static void add_name(void *to, const char *name)
{
	struct seen *s = to;

	/* Also what is called '', which nobody can name either. */
	if (name[0] == '\0')
		s->is_open = true;
	if (s->n == s->cap) {
		size_t cap = s->cap ? s->cap * 2 : 32;
		const char **v = arena_take(s->mem, cap * sizeof(*v));

		if (s->n)
			memcpy(v, s->names, s->n * sizeof(*v));
		s->names = v;
		s->cap = cap;
	}
	s->names[s->n++] = one_line(s->mem, name);
}

bool seen_text(struct seen *s, const char *text, size_t n)
{
	struct shell_error error;
	struct node *script = shell_parse(s->mem, text, n, &error);
	struct guard g;
	struct walk w;

	s->why = error.what;
	if (script == NULL)
		return false;
	guard_init_plain(&g, "/home/u", "/home/u/project");
	guard_walk_begin(&g, s->mem, &w);
	w.on_command = add_name;
	w.to = s;
	walk_script(&w, script);
	for (size_t i = 0; i < w.n_found; i++)
		/* Something inside could not be read, or is put together at run time: it said so. */
		s->is_open |= w.found[i].rule->finding != NULL;
	return true;
}

bool seen_has(const struct seen *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++)
		if (str_eq(s->names[i], name))
			return true;
	return false;
}
