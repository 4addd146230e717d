/* SPDX-License-Identifier: Apache-2.0 */
/* cli/opts.c - the strict option parser and the guess at what a mistyped word was meant to be
 *
 * getopt is not used: it permutes, abbreviates, prints and keeps globals. Here an option is written in full, the
 * first word that is not one ends the options (so the command's own options are never ours), and a value given
 * as a word of its own may not look like an option: `--name --rm` is far more often a forgotten value than a
 * sandbox called "--rm". The form --name=VALUE takes any value. Where no command can stand among the words,
 * opts_arrange() moves the options to the front first, so that they may stand anywhere before "--".
 */
#include "cli/cli.h"

/* Words longer than this are not worth a guess; it bounds the two rows below. */
#define WORD_MAX ((size_t)48)

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t m = a < b ? a : b;

	return m < c ? m : c;
}

/* Insertions, deletions, replacements and swaps of neighbours that turn a into b; WORD_MAX when too long. */
static size_t edit_distance(const char *a, const char *b)
{
	size_t rows[3][WORD_MAX + 1];
	size_t n = strlen(a), m = strlen(b);
	size_t *before = rows[0], *last = rows[1], *now = rows[2];

	if (n >= WORD_MAX || m >= WORD_MAX)
		return WORD_MAX;
	for (size_t j = 0; j <= m; j++) {
		before[j] = 0;
		last[j] = j;
	}
	for (size_t i = 1; i <= n; i++) {
		size_t *spare = before;

		now[0] = i;
		for (size_t j = 1; j <= m; j++) {
			now[j] = min3(last[j] + 1, now[j - 1] + 1,
				      last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    before[j - 2] + 1 < now[j])
				now[j] = before[j - 2] + 1;
		}
		before = last;
		last = now;
		now = spare;
	}
	return last[m];
}

const char *cli_nearest(const char *word, const char *const *candidates)
{
	const char *best = NULL;
	size_t best_distance = 3;

	for (; *candidates; candidates++) {
		size_t d = edit_distance(word, *candidates);

		if (d < best_distance && d * 2 < strlen(word)) {
			best = *candidates;
			best_distance = d;
		}
	}
	return best;
}

static const char *nearest_option(const struct opt *table, const char *word)
{
	_free_ const char **names = NULL;
	size_t n = 0;

	while (table[n].name)
		n++;
	names = mem_new(n + 1, sizeof(*names));
	for (size_t i = 0; i < n; i++)
		names[i] = table[i].name;
	return cli_nearest(word, names);
}

/* What the caller typed comes back to a terminal, so it goes through the escaper, and only so much of it. */
static int usage_error(struct err *e, const char *word, size_t n, const char *what,
		       const char *hint)
{
	_cleanup_(buf_done) struct buf b = BUF(KIB);

	buf_esc(&b, word, n < 64 ? n : 64);
	return err_set(e, ERR_USAGE, EINVAL, "option '%s' %s%s", buf_cstr(&b), what, hint);
}

static int unknown_long(const struct opts *o, const char *word, size_t n, struct err *e)
{
	_free_ char *name = mem_strn(word + 2, n - 2);
	const char *near = nearest_option(o->table, name);
	_free_ char *hint = near ? mem_fmt("; did you mean --%s?", near) : mem_str("");

	return usage_error(e, word, n, "is not known", hint);
}

/* The value of an option that wants one and has none attached to it. */
static int take_value(struct opts *o, const char *word, size_t n, struct err *e)
{
	const char *next = o->at < o->argc ? o->argv[o->at] : NULL;
	_free_ char *what = mem_fmt("needs a value (%s)", o->opt->arg);

	if (next == NULL)
		return usage_error(e, word, n, what, "");
	if (next[0] == '-' && next[1] != '\0') {
		_free_ char *hint =
			mem_fmt("; one that begins with '-' is written --%s=VALUE", o->opt->name);

		return usage_error(e, word, n, what, hint);
	}
	o->value = next;
	o->at++;
	return o->opt->id;
}

static int next_long(struct opts *o, const char *word, struct err *e)
{
	size_t n = strcspn(word, "=");
	const char *given = word[n] == '=' ? word + n + 1 : NULL;

	for (const struct opt *t = o->table; t->name; t++)
		if (strlen(t->name) == n - 2 && memcmp(t->name, word + 2, n - 2) == 0)
			o->opt = t;
	if (o->opt == NULL)
		return unknown_long(o, word, n, e);
	o->value = given;
	if (o->opt->arg == NULL && given)
		return usage_error(e, word, n, "takes no value", "");
	if (o->opt->arg && given == NULL)
		return take_value(o, word, n, e);
	return o->opt->id;
}

/* A letter has two rows, and `t` is the second: does the first hold? The row with a value is the second of both. */
static bool is_switch_meant(const struct opts *o, const struct opt *t)
{
	const char *word = o->argv[o->at - 1], *next = o->at < o->argc ? o->argv[o->at] : NULL;

	bug_on(t->arg == NULL);
	return o->is_value == NULL || word[2] != '\0' || next == NULL || next[0] == '-' ||
	       !o->is_value(next);
}

static int next_letter(struct opts *o, struct err *e)
{
	char word[3] = { '-', *o->bundle, '\0' };
	const char *rest = o->bundle + 1;

	o->bundle = *rest ? rest : NULL;
	for (const struct opt *t = o->table; t->name; t++)
		if (t->letter && t->letter == word[1] && (o->opt == NULL || !is_switch_meant(o, t)))
			o->opt = t;
	if (o->opt == NULL)
		return usage_error(e, word, 2, "is not known", "");
	if (o->opt->arg == NULL)
		return o->opt->id;
	o->bundle = NULL;
	if (*rest == '\0')
		return take_value(o, word, 2, e);
	o->value = rest;
	return o->opt->id;
}

void opts_init(struct opts *o, const struct opt *table, int argc, char **argv)
{
	static const struct opt none[] = { { .name = NULL } };

	*o = (struct opts){ .table = table ? table : none, .argc = argc, .argv = argv, .at = 1 };
}

int opts_next(struct opts *o, struct err *e)
{
	const char *word;

	o->value = NULL;
	o->opt = NULL;
	if (o->bundle)
		return next_letter(o, e);
	if (o->saw_dashdash || o->at >= o->argc)
		return 0;
	word = o->argv[o->at];
	if (word[0] != '-' || word[1] == '\0')
		return 0;
	o->at++;
	if (str_eq(word, "--")) {
		o->saw_dashdash = true;
		return 0;
	}
	if (word[1] == '-')
		return next_long(o, word, e);
	o->bundle = word + 1;
	return next_letter(o, e);
}

int opts_arrange(const struct opt *table, int argc, char **argv, struct err *e)
{
	_free_ char **v = mem_new((size_t)argc + 2, sizeof(*v));
	_free_ char **words = mem_new((size_t)argc + 1, sizeof(*words));
	size_t n = 0, n_words = 0;
	struct opts o;

	opts_init(&o, table, argc, argv);
	while (o.at < argc && !o.saw_dashdash) {
		int from = o.at, id;

		do
			id = opts_next(&o, e);
		while (id > 0 && o.bundle);
		if (id < 0)
			return id;
		if (id == 0 && !o.saw_dashdash)
			words[n_words++] = argv[o.at++];
		else
			for (; from < o.at; from++)
				v[n++] = argv[from];
	}
	memcpy(v + n, words, n_words * sizeof(*v));
	memcpy(argv + 1, v, (n + n_words) * sizeof(*v));
	return 0;
}
