/* SPDX-License-Identifier: Apache-2.0 */
/* guard/cmd.c - see cmd.h
 *
 * Options are read as getopt and git read them: letters bundled behind one dash, long ones shortened as far as two
 * letters, values attached or in the next word. Which options take a value comes with the rules; where that is not
 * known an option takes none, and its value is then one argument more, which only makes more rules fit.
 */
#include "guard/cmd.h"

#include <ctype.h>
#include <stdlib.h>

#include "guard/pattern.h"

const char *cmd_name(struct arena *mem, const char *word)
{
	const char *slash = strrchr(word, '/'), *back = strrchr(word, '\\');
	char *name;
	size_t n;

	if (back && (slash == NULL || back > slash))
		slash = back;
	name = arena_strn(mem, slash ? slash + 1 : word, strlen(slash ? slash + 1 : word));
	for (char *c = name; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	n = strlen(name);
	if (n > 4 && str_eq(name + n - 4, ".exe"))
		name[n - 4] = '\0';
	/* npx rimraf@5 */
	if (name[0] != '@' && strchr(name, '@'))
		*strchr(name, '@') = '\0';
	/* zsh: =rm is the path of rm. */
	return name[0] == '=' ? name + 1 : name;
}

/* Reading. */

struct reading {
	const struct cmd *c;
	const struct syntax *own, *sub;
	struct args *out;
	size_t at;
};

static int by_name(const void *key, const void *entry)
{
	return strcmp(key, ((const struct syntax *)entry)->name);
}

static const struct syntax *find_in(const struct rules *r, const char *name)
{
	if (r->index)
		return bsearch(name, r->syntaxes, r->n_syntaxes, sizeof(*r->syntaxes), by_name);
	for (size_t k = 0; k < r->n_syntaxes; k++)
		if (rules_list_has(r->syntaxes[k].name, name))
			return &r->syntaxes[k];
	return NULL;
}

static const struct syntax *find_syntax(const struct places *p, const char *name)
{
	for (size_t i = 0; i < p->n_sets; i++) {
		const struct syntax *s = find_in(p->sets[i], name);

		if (s)
			return s;
	}
	return NULL;
}

static bool takes_value(const struct reading *r, const char *option)
{
	const struct syntax *s = r->sub ? r->sub : r->own;

	return s && s->values && rules_list_has(s->values, option);
}

static void add_option(struct reading *r, const char *name, const struct value *value)
{
	r->out->options[r->out->n_options++] = (struct option){ .name = name, .value = value };
}

static const struct value *next_word(struct reading *r)
{
	return r->at < r->c->argc ? r->c->argv[r->at++] : NULL;
}

/* The rest of a word is a value that comes from the same word. */
static const struct value *attached(struct arena *mem, const struct value *v, const char *rest)
{
	struct value *x = value_text(mem, rest, strlen(rest));

	x->word = v->word;
	x->is_dynamic = v->is_dynamic && value_has_mark(x);
	return x;
}

static void read_long(struct arena *mem, struct reading *r, const struct value *v)
{
	const char *eq = strchr(v->s, '=');
	const char *name = eq ? arena_strn(mem, v->s, (size_t)(eq - v->s)) : v->s;

	if (strpbrk(name, VALUE_MARKS))
		r->out->has_unknown_option = true;
	if (eq)
		add_option(r, name, attached(mem, v, eq + 1));
	else
		add_option(r, name, takes_value(r, name) ? next_word(r) : NULL);
}

static void read_letters(struct arena *mem, struct reading *r, const struct value *v)
{
	bool seen[256] = { 0 };

	for (const char *s = v->s + 1; *s; s++) {
		char *name;

		if (*s == VALUE_UNKNOWN || *s == VALUE_MANY) {
			r->out->has_unknown_option = true;
			continue;
		}
		/* A letter that takes no value says the same the second time. */
		if (seen[(unsigned char)*s])
			continue;
		seen[(unsigned char)*s] = true;
		name = arena_strn(mem, "-?", 2);
		name[1] = *s;
		if (!takes_value(r, name)) {
			add_option(r, name, NULL);
			continue;
		}
		add_option(r, name, s[1] ? attached(mem, v, s + 1) : next_word(r));
		return;
	}
}

static void read_pos(struct arena *mem, struct reading *r, const struct value *v,
		     const struct places *p)
{
	r->out->pos[r->out->n_pos++] = v;
	if (r->own == NULL || !r->own->has_sub || r->out->n_pos != 1 || value_has_mark(v))
		return;
	r->sub = find_syntax(p, arena_fmt(mem, "%s %s", r->c->name, v->s));
	if (r->sub == NULL) {
		/* An unknown subcommand's options take no values, whatever the program's own do. */
		static const struct syntax none = { .name = "" };

		r->sub = &none;
	}
}

static bool is_single_dash(const struct reading *r)
{
	return r->own && r->own->single_dash;
}

/* find's -exec has a whole command as its value, which is judged by itself. */
static void skip_exec(struct reading *r, const char *s)
{
	if (!is_single_dash(r))
		return;
	if (str_eq(s, "-fprintf"))
		r->at++;
	if (!rules_list_has("-exec|-execdir|-ok|-okdir", s))
		return;
	while (r->at < r->c->argc && !rules_list_has(";|+", r->c->argv[r->at]->s))
		r->at++;
	r->at++;
}

/* tar xzf a: the first word's letters are options without a dash. */
static bool is_undashed(const struct cmd *c)
{
	return c->argc > 1 && rules_list_has("tar|gtar|bsdtar", c->name) &&
	       isalpha((unsigned char)c->argv[1]->s[0]) && !strpbrk(c->argv[1]->s, "./");
}

/* Behind "--" there are arguments only. False when the options of a subcommand are still to come. */
static bool read_dashes(struct reading *r)
{
	/* Rules may ask for it: git checkout -- file. */
	add_option(r, "--", NULL);
	r->out->n_pos_plain = r->out->n_pos;
	if (r->own && r->own->has_sub && r->out->n_pos == 0)
		return false;
	while (r->at < r->c->argc)
		r->out->pos[r->out->n_pos++] = r->c->argv[r->at++];
	return true;
}

static void read_word(struct arena *mem, struct reading *r, const struct value *v,
		      const struct places *p)
{
	if (v->s[0] != '-' || v->n < 2) {
		read_pos(mem, r, v, p);
	} else if (v->s[1] == '-' || is_single_dash(r)) {
		read_long(mem, r, v);
		skip_exec(r, v->s);
	} else {
		read_letters(mem, r, v);
	}
}

void args_read(struct arena *mem, const struct cmd *c, const struct places *p, struct args *ret)
{
	struct reading r = { .c = c, .own = find_syntax(p, c->name), .out = ret, .at = 1 };
	bool has_dashes = false;
	size_t letters = 0;

	for (size_t i = 0; i < c->argc; i++)
		letters += c->argv[i]->s[0] == '-' ? c->argv[i]->n : 1;
	if (is_undashed(c))
		letters += c->argv[1]->n + 1;
	*ret = (struct args){ 0 };
	ret->options = arena_take(mem, (letters + 1) * sizeof(*ret->options));
	ret->pos = arena_take(mem, (c->argc + 1) * sizeof(const struct value *));
	if (is_undashed(c)) {
		struct text t = { .mem = mem };

		text_putc(&t, '-');
		text_add(&t, c->argv[1]->s, c->argv[1]->n);
		r.at = 2;
		read_letters(mem, &r, value_text(mem, t.p, t.n));
	}
	while (r.at < c->argc && !has_dashes) {
		const struct value *v = c->argv[r.at++];

		if (str_eq(v->s, "--"))
			has_dashes = read_dashes(&r);
		else
			read_word(mem, &r, v, p);
	}
	if (!has_dashes)
		ret->n_pos_plain = ret->n_pos;
	ret->syntax = r.sub && r.sub->name[0] ? r.sub : r.own;
}

/* Asking. */

/* "--forc" for "--force"; two letters must be given. */
static bool is_option(const char *given, const char *want, size_t want_n)
{
	size_t n = strlen(given);

	if (n == want_n && memcmp(given, want, n) == 0)
		return true;
	return n >= 4 && n < want_n && given[0] == '-' && given[1] == '-' &&
	       memcmp(given, want, n) == 0;
}

static bool takes_back(const char *given, const char *want, size_t want_n)
{
	return str_starts(given, "--no-") && want_n > 2 && want[1] == '-' &&
	       strlen(given) == want_n + 3 && memcmp(given + 5, want + 2, want_n - 2) == 0;
}

/* 1 given, -1 taken back, 0 neither. */
static int option_in(const char *list, const char *given)
{
	for (; *list; list += *list == '|') {
		size_t n = strcspn(list, "|");

		if (is_option(given, list, n))
			return 1;
		if (takes_back(given, list, n))
			return -1;
		list += n;
	}
	return 0;
}

bool args_have(const struct args *a, const char *list)
{
	bool is_given = false;

	for (size_t i = 0; i < a->n_options; i++) {
		int x = option_in(list, a->options[i].name);

		if (x)
			is_given = x > 0;
	}
	return is_given;
}

bool args_is(const char *given, const char *list)
{
	return option_in(list, given) > 0;
}

/* Arguments that could be anything, options and subcommands included. */
static bool is_open_ended(const struct cmd *c, const struct args *a)
{
	if (!c->is_fed)
		return false;
	for (size_t i = 0; i < a->n_pos_plain; i++)
		if (a->pos[i]->s[0] == VALUE_UNKNOWN || a->pos[i]->s[0] == VALUE_MANY)
			return true;
	return false;
}

/* A word that is fed in may turn out to be any. */
static bool word_fits(const struct args *a, size_t at, const char *word, size_t word_n, bool *maybe)
{
	if (pattern_fits(word, word_n, a->pos[at]->s))
		return true;
	if (maybe == NULL || at >= a->n_pos_plain || !value_has_mark(a->pos[at]))
		return false;
	*maybe = true;
	return true;
}

/* One alternative of `sub` against the arguments; *ret_n: how many words it took. maybe: NULL unless it is fed. */
static bool sub_fits(const char *want, size_t want_n, const struct args *a, size_t at,
		     size_t *ret_n, bool *maybe)
{
	size_t n;

	while (want_n && *want == ' ') {
		want++;
		want_n--;
	}
	if (want_n == 0) {
		*ret_n = at;
		return true;
	}
	for (n = 0; n < want_n && want[n] != ' '; n++)
		;
	if (n == 2 && memcmp(want, "**", 2) == 0) {
		for (size_t i = at; i <= a->n_pos; i++)
			if (sub_fits(want + n, want_n - n, a, i, ret_n, maybe))
				return true;
		return false;
	}
	return at < a->n_pos && word_fits(a, at, want, n, maybe) &&
	       sub_fits(want + n, want_n - n, a, at + 1, ret_n, maybe);
}

static enum fit any_sub(const char *list, const struct cmd *c, const struct args *a, size_t *ret_n)
{
	enum fit fit = FIT_NO;

	for (; *list && fit != FIT_YES; list += *list == '|') {
		size_t n = strcspn(list, "|"), took = 0;
		bool is_maybe = false;

		if (sub_fits(list, n, a, 0, &took, c->is_fed ? &is_maybe : NULL)) {
			fit = is_maybe ? FIT_MAYBE : FIT_YES;
			*ret_n = took;
		}
		list += n;
	}
	return fit;
}

static bool any_arg(const struct args *a, size_t from, const struct places *p, const char *list)
{
	for (size_t i = from; i < a->n_pos; i++)
		if (place_fits(p, list, a->pos[i]))
			return true;
	return false;
}

/* Values of options name files as well: dd of=, --file x, -o x. */
static bool any_value(const struct args *a, const struct places *p, const char *list)
{
	for (size_t i = 0; i < a->n_options; i++)
		if (a->options[i].value && place_fits(p, list, a->options[i].value))
			return true;
	return false;
}

static bool any_env(const struct cmd *c, const char *list)
{
	for (size_t i = 0; i < c->n_env; i++)
		if (rules_list_fits(list, c->env[i]))
			return true;
	return false;
}

static bool any_file(const struct cmd *c, const struct places *p, const char *list, bool is_written)
{
	for (size_t i = 0; i < c->n_files; i++)
		if ((is_written ? c->files[i].is_written : c->files[i].is_read) &&
		    place_fits(p, list, c->files[i].path))
			return true;
	return false;
}

static bool via_fits(const char *via, const char *list)
{
	char one[64];

	for (; *via; via += *via == '|') {
		size_t n = strcspn(via, "|");

		if (n < sizeof(one)) {
			memcpy(one, via, n);
			one[n] = '\0';
			if (rules_list_has(list, one))
				return true;
		}
		via += n;
	}
	return false;
}

bool cmd_context_fits(const struct cmd *c, const struct places *p, const struct rule *r)
{
	if (r->env && !any_env(c, r->env))
		return false;
	if (r->via && !via_fits(c->via, r->via))
		return false;
	if (r->no_via && via_fits(c->via, r->no_via))
		return false;
	if (r->target && !any_file(c, p, r->target, true))
		return false;
	return !(r->source && !any_file(c, p, r->source, false));
}

static enum fit options_fit(const struct cmd *c, const struct args *a, const struct rule *r)
{
	enum fit fit = FIT_YES;

	for (size_t i = 0; i < RULE_OPTIONS && r->option[i]; i++) {
		if (args_have(a, r->option[i]))
			continue;
		if (!a->has_unknown_option && !is_open_ended(c, a))
			return FIT_NO;
		fit = FIT_MAYBE;
	}
	if (r->no_option && args_have(a, r->no_option))
		return FIT_NO;
	return fit;
}

enum fit cmd_fits(const struct cmd *c, const struct args *a, const struct places *p,
		  const struct rule *r)
{
	enum fit fit = FIT_YES, options;
	size_t from = 0;

	if (r->program == NULL || r->effect ||
	    !(str_eq(r->program, "*") || rules_list_has(r->program, c->name)) ||
	    !cmd_context_fits(c, p, r))
		return FIT_NO;
	if (r->sub)
		fit = any_sub(r->sub, c, a, &from);
	if (fit == FIT_NO)
		return FIT_NO;
	options = options_fit(c, a, r);
	if (options < fit)
		fit = options;
	if (fit == FIT_NO || (r->args && a->n_pos - from < r->args))
		return FIT_NO;
	if (r->arg && !any_arg(a, from, p, r->arg) && !any_value(a, p, r->arg))
		return FIT_NO;
	if (r->no_value && any_value(a, p, r->no_value))
		return FIT_NO;
	if (r->no_arg && any_arg(a, from, p, r->no_arg))
		return FIT_NO;
	/* The longest list stands last: few rules come this far. */
	if (r->no_program && rules_list_has(r->no_program, c->name))
		return FIT_NO;
	return fit;
}
