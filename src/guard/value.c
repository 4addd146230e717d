/* SPDX-License-Identifier: Apache-2.0 */
/* guard/value.c - see value.h
 *
 * In bash's order: braces, then variables and substitutions, then splitting. A word is first cooked into characters
 * that remember where they come from (quoted, written, or out of an expansion); braces are only those that were
 * written, and only what came out of an unquoted expansion is split.
 */
#include "guard/value.h"

#include <ctype.h>

#define MAX_WORDS ((size_t)256) /* one word may become this many */
#define MAX_MADE ((size_t)9000) /* and all words together */
#define MAX_BRACED ((size_t)4 * KIB)
#define MAX_VARS ((size_t)256)
#define MAX_VALUE ((size_t)KIB)
#define MAX_BYTES ((size_t)256 * KIB)
/* A value of a kilobyte behind two bytes of text makes a text of megabytes out of 128 KiB. No honest command comes near. */
#define MAX_EXPANDED ((size_t)256 * KIB)

enum origin { WRITTEN = 'w', QUOTED = 'q', EXPANDED = 'x' };

struct cooked {
	struct text c, from;
	bool is_dynamic, has_quote;
	struct cooked *next;
};

/* Variables. */

static struct var *find_var(const struct vars *v, const char *name)
{
	for (struct var *i = v->first; i; i = i->next)
		if (str_eq(i->name, name))
			return i;
	return NULL;
}

static struct var *make_var(struct vars *v, const char *name)
{
	struct var *i = find_var(v, name);
	size_t n = 0;

	for (const struct var *k = v->first; k; k = k->next)
		n++;
	if (i || n >= MAX_VARS)
		return i;
	i = arena_new(v->mem, struct var);
	i->name = name;
	i->next = v->first;
	v->first = i;
	return i;
}

void vars_set(struct vars *v, const char *name, const char *value)
{
	struct var *i = make_var(v, name);

	if (str_eq(name, "IFS"))
		v->has_ifs = true;
	if (i == NULL || i->is_lost)
		return;
	/* A value that grows each time it is used is not worth following. */
	i->value = value && strnlen(value, MAX_VALUE) < MAX_VALUE && !strpbrk(value, VALUE_MARKS)
			   ? value
			   : NULL;
}

void vars_lose(struct vars *v, const char *name)
{
	struct var *i = make_var(v, name);

	if (str_eq(name, "IFS"))
		v->has_ifs = true;
	if (i == NULL)
		return;
	i->is_lost = true;
	i->value = NULL;
}

bool vars_spend(struct vars *v, size_t n)
{
	if (v->expanded == NULL)
		return true;
	*v->expanded += n;
	if (*v->expanded <= MAX_EXPANDED)
		return true;
	/* The command is refused as unreadable. */
	v->mem->is_over = true;
	return false;
}

static const char *param(const struct vars *v, const char *name)
{
	size_t i = (size_t)(name[0] - '0');

	return v->params && name[1] == '\0' && i < v->n_params ? v->params[i] : NULL;
}

const char *vars_get(const struct vars *v, const char *name)
{
	const struct var *i = find_var(v, name);

	if (i)
		return i->value;
	if (str_eq(name, "HOME"))
		return v->home;
	if (str_eq(name, "PWD"))
		return v->cwd;
	if (str_eq(name, "TMPDIR") || str_eq(name, "TMP") || str_eq(name, "TEMP"))
		return v->tmp;
	if (str_eq(name, "SHELL") || str_eq(name, "BASH"))
		return "/bin/bash";
	if (name[0] >= '0' && name[0] <= '9')
		return param(v, name);
	return NULL;
}

/* Cooking. */

static void put(struct cooked *k, const char *s, size_t n, enum origin from)
{
	if (k->c.n + n > MAX_BYTES)
		return;
	text_add(&k->c, s, n);
	for (size_t i = 0; i < n; i++)
		text_putc(&k->from, (char)from);
}

static void put_unknown(struct cooked *k, bool is_quoted)
{
	put(k, is_quoted ? "\x01" : "\x02", 1, is_quoted ? QUOTED : EXPANDED);
	k->is_dynamic = true;
}

static void cook(struct vars *v, struct cooked *k, const struct word *w);

/* The one simple command that a substitution consists of, or NULL. */
static const struct node *only_command(const struct node *script)
{
	const struct node *n = script ? script->first : NULL;

	if (n == NULL || n->next || n->kind != NODE_SIMPLE || n->assigns || n->words == NULL)
		return NULL;
	return n;
}

static const char *word_plain(const struct word *w)
{
	return w->first && !w->first->next && w->first->kind == PART_TEXT ? w->first->text : NULL;
}

/* What some substitutions print is known without running them. */
static bool put_printed(struct vars *v, struct cooked *k, const struct part *p)
{
	const struct node *n = only_command(p->script);
	const char *name = n ? word_plain(n->words) : NULL;
	enum origin from = p->is_quoted ? QUOTED : EXPANDED;

	if (name == NULL || n->redirs)
		return false;
	if (str_eq(name, "pwd") && v->cwd) {
		put(k, v->cwd, strlen(v->cwd), from);
	} else if (str_eq(name, "mktemp")) {
		/* Nobody knows the name, everybody the place. */
		put(k, "/tmp/mktemp.", 12, from);
		put_unknown(k, true);
	} else if (str_eq(name, "echo") || str_eq(name, "printf")) {
		struct cooked in = { .c.mem = v->mem, .from.mem = v->mem };

		for (const struct word *w = n->words->next; w; w = w->next) {
			cook(v, &in, w);
			if (w->next)
				put(&in, " ", 1, QUOTED);
		}
		if (in.c.p == NULL || strpbrk(in.c.p, "%\\") || in.c.p[0] == '-')
			return false;
		put(k, in.c.p, in.c.n, from);
		k->is_dynamic |= in.is_dynamic;
	} else {
		return false;
	}
	return true;
}

static void put_default(struct vars *v, struct cooked *k, const struct part *p)
{
	struct cooked in = { .c.mem = v->mem, .from.mem = v->mem };

	cook(v, &in, p->arg);
	if (in.c.n)
		put(k, in.c.p, in.c.n, p->is_quoted ? QUOTED : EXPANDED);
	/* An empty text in quotes is a word. */
	k->has_quote |= in.has_quote;
	k->is_dynamic = true;
}

static void put_var(struct vars *v, struct cooked *k, const struct part *p)
{
	const char *known = vars_get(v, p->text);
	enum origin from = p->is_quoted ? QUOTED : EXPANDED;
	char op = p->op[p->op[0] == ':'];
	bool is_list = p->text[0] == '@' || p->text[0] == '*';

	if (known && (op == '\0' || op == '-' || op == '=' || op == '?') && p->op[0] != '!') {
		if ((v->has_ifs && !p->is_quoted) || !vars_spend(v, strlen(known)))
			put_unknown(k, false);
		else
			put(k, known, strlen(known), from);
	} else if (op == '-' || op == '=' || op == '+') {
		put_default(v, k, p);
	} else {
		put_unknown(k, p->is_quoted && !is_list && !(op == '[' && p->arg));
	}
}

static void cook_part(struct vars *v, struct cooked *k, const struct part *p)
{
	switch (p->kind) {
	case PART_TEXT:
		put(k, p->text, p->n, p->is_quoted ? QUOTED : WRITTEN);
		break;
	case PART_VAR:
		put_var(v, k, p);
		break;
	case PART_SCRIPT:
		if (!put_printed(v, k, p))
			put_unknown(k, p->is_quoted);
		break;
	case PART_PROC:
		put(k, "/dev/fd/63", 10, QUOTED);
		k->is_dynamic = true;
		break;
	case PART_ARITH:
		put(k, "0", 1, QUOTED);
		k->is_dynamic = true;
		break;
	case PART_KIND_COUNT_:
		bug_on(true);
	}
}

/* ~ and ~name at the beginning, unquoted. */
static void cook_tilde(struct vars *v, struct cooked *k, const struct word *w,
		       const struct part **ret_from, size_t *ret_skip)
{
	const struct part *p = w->first;
	size_t n;

	*ret_from = p;
	*ret_skip = 0;
	if (p == NULL || p->kind != PART_TEXT || p->is_quoted || p->n == 0 || p->text[0] != '~')
		return;
	n = strcspn(p->text, "/");
	if (n == p->n && p->next)
		return;
	*ret_skip = n;
	if (n == 1) {
		put(k, v->home, strlen(v->home), QUOTED);
	} else if (n == 2 && p->text[1] == '+' && v->cwd) {
		put(k, v->cwd, strlen(v->cwd), QUOTED);
	} else {
		put(k, "/home/", 6, QUOTED);
		put(k, p->text + 1, n - 1, QUOTED);
		/* Or nobody is called so, and it stays as it is. */
		k->is_dynamic = true;
	}
}

static void cook(struct vars *v, struct cooked *k, const struct word *w)
{
	const struct part *p;
	size_t skip;

	cook_tilde(v, k, w, &p, &skip);
	if (skip) {
		put(k, p->text + skip, p->n - skip, WRITTEN);
		p = p->next;
	}
	for (; p; p = p->next)
		cook_part(v, k, p);
	k->has_quote |= w->has_quote;
}

/* Braces. */

struct pieces {
	struct cooked *first, **end;
	size_t n;
	bool is_over;
};

static struct cooked *slice(struct arena *mem, const struct cooked *k, size_t from, size_t to)
{
	struct cooked *s = arena_new(mem, struct cooked);

	*s = (struct cooked){ .c.mem = mem,
			      .from.mem = mem,
			      .is_dynamic = k->is_dynamic,
			      .has_quote = k->has_quote };
	text_add(&s->c, k->c.n ? k->c.p + from : "", to - from);
	text_add(&s->from, k->c.n ? k->from.p + from : "", to - from);
	return s;
}

static void join(struct cooked *to, const struct cooked *from)
{
	if (to->c.n + from->c.n > MAX_BYTES)
		return;
	text_add(&to->c, from->c.p, from->c.n);
	text_add(&to->from, from->from.p, from->from.n);
}

static bool is_written(const struct cooked *k, size_t i, char c)
{
	return k->c.p[i] == c && k->from.p[i] == WRITTEN;
}

/* The brace that closes the one at `open`, and whether a comma or ".." stands between them at this level. */
static size_t brace_end(const struct cooked *k, size_t open, bool *ret_has_comma,
			bool *ret_has_dots)
{
	size_t depth = 0;

	*ret_has_comma = *ret_has_dots = false;
	for (size_t i = open; i < k->c.n; i++) {
		/* Nothing closes a brace before there was something to choose from. */
		if (is_written(k, i, '{'))
			depth++;
		else if (is_written(k, i, '}') && depth == 1 && (*ret_has_comma || *ret_has_dots))
			return i;
		else if (is_written(k, i, '}') && depth > 1)
			depth--;
		else if (is_written(k, i, ',') && depth == 1)
			*ret_has_comma = true;
		else if (is_written(k, i, '.') && i + 1 < k->c.n && is_written(k, i + 1, '.') &&
			 depth == 1)
			*ret_has_dots = true;
	}
	return 0;
}

static void expand_braces(struct arena *mem, const struct cooked *k, size_t from, unsigned depth,
			  struct pieces *out);

static void add_piece(struct pieces *out, struct cooked *k)
{
	if (out->n == MAX_WORDS) {
		out->is_over = true;
		return;
	}
	*out->end = k;
	out->end = &k->next;
	out->n++;
}

/* head + each alternative + tail, where the tail may hold braces of its own. */
static void expand_list(struct arena *mem, const struct cooked *k, size_t open, size_t end,
			unsigned depth, struct pieces *out)
{
	size_t from = open + 1, level = 0;

	for (size_t i = open + 1; i <= end; i++) {
		if (is_written(k, i, '{'))
			level++;
		if (is_written(k, i, '}') && i < end && level)
			level--;
		if (i != end && !(is_written(k, i, ',') && level == 0))
			continue;
		struct cooked *one = slice(mem, k, 0, open);

		join(one, slice(mem, k, from, i));
		join(one, slice(mem, k, end + 1, k->c.n));
		expand_braces(mem, one, open, depth + 1, out);
		from = i + 1;
		if (out->is_over)
			return;
	}
}

/* "{}" opens nothing where a word begins, or where bash believes that one does: behind a blank, at what it split off. */
enum opens { OPENS, OPENS_NOT, OPENS_PERHAPS };

static enum opens empty_brace(const struct cooked *k, size_t i, unsigned depth)
{
	if (i + 1 >= k->c.n || !is_written(k, i + 1, '}'))
		return OPENS;
	if (depth == 0 && i == 0)
		return OPENS_NOT;
	return depth > 0 || strchr(" \t\n", k->c.p[i - 1]) ? OPENS_PERHAPS : OPENS;
}

static void expand_braces(struct arena *mem, const struct cooked *k, size_t from, unsigned depth,
			  struct pieces *out)
{
	bool has_comma = false, has_dots = false;

	if (depth > 16) {
		out->is_over = true;
		return;
	}
	for (size_t i = from; i < k->c.n; i++) {
		size_t end = is_written(k, i, '{') ? brace_end(k, i, &has_comma, &has_dots) : 0;
		enum opens opens = end ? empty_brace(k, i, depth) : OPENS;

		if (opens == OPENS_NOT)
			continue;
		if (opens == OPENS_PERHAPS) {
			out->is_over = true;
			return;
		}
		if (end && has_comma) {
			expand_list(mem, k, i, end, depth, out);
			return;
		}
		if (end && has_dots) {
			/* A sequence: several words that all look alike. */
			struct cooked *one = slice(mem, k, 0, i);
			struct cooked *rest = slice(mem, k, end + 1, k->c.n);

			put_unknown(one, false);
			join(one, rest);
			expand_braces(mem, one, i + 1, depth + 1, out);
			return;
		}
	}
	add_piece(out, slice(mem, k, 0, k->c.n));
}

/* Splitting. */

static struct value *value_new(struct vars *v, const struct cooked *k, size_t from, size_t to)
{
	struct value *out = value_text(v->mem, k->c.n ? k->c.p + from : "", to - from);

	out->is_quoted = k->has_quote;
	for (size_t i = from; i < to; i++)
		out->is_glob |= k->from.p[i] != QUOTED &&
				(strchr("*?", k->c.p[i]) ||
				 (k->c.p[i] == '[' && memchr(k->c.p + i, ']', to - i)));
	out->is_dynamic = k->is_dynamic;
	return out;
}

static struct value **split(struct vars *v, const struct cooked *k, struct value **end)
{
	size_t from = 0, i = 0;
	bool was_split = false;

	for (; i < k->c.n; i++) {
		if (k->from.p[i] != EXPANDED || !isspace((unsigned char)k->c.p[i]))
			continue;
		if (i > from) {
			*end = value_new(v, k, from, i);
			end = &(*end)->next;
		}
		from = i + 1;
		was_split = true;
	}
	if (i > from || (!was_split && k->has_quote)) {
		*end = value_new(v, k, from, i);
		end = &(*end)->next;
	}
	return end;
}

struct value *value_text(struct arena *mem, const char *s, size_t n)
{
	struct {
		struct value value;
		struct spot spot;
	} *both = arena_take(mem, sizeof(*both));
	struct value *v = &both->value;

	v->spot = &both->spot;
	v->s = arena_strn(mem, s, n);
	v->n = strlen(v->s);
	v->is_dynamic = strpbrk(v->s, VALUE_MARKS) != NULL;
	return v;
}

static struct value **expand(struct vars *v, const struct cooked *k, struct value **end)
{
	struct pieces out = { .end = &out.first };

	/* Longer than any honest one: it may become anything. */
	if (k->c.n > MAX_BRACED) {
		end = split(v, k, end);
		out.is_over = true;
	} else {
		expand_braces(v->mem, k, 0, 0, &out);
	}
	for (const struct cooked *i = out.first; i; i = i->next)
		end = split(v, i, end);
	if (out.is_over) {
		*end = value_text(v->mem, "\x02", 1);
		end = &(*end)->next;
	}
	return end;
}

struct value *value_of(struct vars *v, const struct word *w)
{
	struct cooked k = { .c.mem = v->mem, .from.mem = v->mem };
	struct value *first = NULL;

	if (v->made > MAX_MADE) {
		/* Whoever looks at the end finds that not everything was looked at. */
		v->mem->is_over = true;
		return NULL;
	}
	cook(v, &k, w);
	if (k.c.n == 0 || !memchr(k.c.p, '{', k.c.n))
		(void)split(v, &k, &first);
	else
		(void)expand(v, &k, &first);
	for (struct value *i = first; i; i = i->next) {
		i->word = w;
		v->made++;
	}
	return first;
}

struct value *value_whole(struct vars *v, const struct word *w)
{
	struct cooked k = { .c.mem = v->mem, .from.mem = v->mem };
	struct value *out;

	cook(v, &k, w);
	out = value_new(v, &k, 0, k.c.n);
	out->word = w;
	return out;
}
