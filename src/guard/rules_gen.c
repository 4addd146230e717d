/* SPDX-License-Identifier: Apache-2.0 */
/* guard/rules_gen.c - at build time: rules/NAME.json into tables, and into the page that describes them
 *
 *     rules_gen --c FILE...             the tables of guard/rule.h
 *     rules_gen --doc PAGE FILE...      PAGE with everything between its two marks made anew
 */
#include <stdlib.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/page.h"
#include "guard/rule.h"

#define MAX_FILES 32
#define MAX_NAMES 4096

struct set {
	struct arena mem;
	struct rules files[MAX_FILES];
	size_t n;
};

/* Every text once, one behind the other; tables hold offsets. 0 is no text. */
static struct buf texts = BUF(4 * MIB);

static size_t keep_text(const char *s)
{
	size_t n = strlen(s) + 1, at;

	if (texts.n == 0)
		buf_putc(&texts, '\0');
	for (at = 1; at < texts.n; at += strlen(texts.p + at) + 1)
		if (str_eq(texts.p + at, s))
			return at;
	buf_add(&texts, s, n);
	return at;
}

static void put_text(struct buf *out, const char *field, const char *s)
{
	if (s)
		buf_printf(out, "%s%s%zu, ", field, field[0] ? " = " : "", keep_text(s));
}

static void put_literal(struct buf *out, const char *s)
{
	buf_puts(out, "\t\"");
	for (; *s; s++)
		if (*s == '"' || *s == '\\')
			buf_printf(out, "\\%c", *s);
		else if ((unsigned char)*s < 32)
			buf_printf(out, "\\%03o", (unsigned char)*s);
		else
			buf_putc(out, *s);
	buf_puts(out, "\\0\"\n");
}

static void put_texts(struct buf *out)
{
	buf_puts(out, "static const char rule_texts[] =\n");
	for (size_t at = 0; at < texts.n; at += strlen(texts.p + at) + 1)
		put_literal(out, texts.p + at);
	buf_puts(out, ";\n");
}

static void put_rule(struct buf *out, const struct rule *r)
{
	buf_puts(out, "\t{ ");
	put_text(out, ".id", r->id);
	put_text(out, ".program", r->program);
	put_text(out, ".no_program", r->no_program);
	put_text(out, ".sub", r->sub);
	if (r->option[0]) {
		buf_puts(out, ".option = { ");
		for (size_t i = 0; i < RULE_OPTIONS; i++)
			put_text(out, "", r->option[i]);
		buf_puts(out, "}, ");
	}
	put_text(out, ".no_option", r->no_option);
	put_text(out, ".arg", r->arg);
	put_text(out, ".no_arg", r->no_arg);
	put_text(out, ".no_value", r->no_value);
	put_text(out, ".env", r->env);
	put_text(out, ".via", r->via);
	put_text(out, ".no_via", r->no_via);
	put_text(out, ".target", r->target);
	put_text(out, ".source", r->source);
	put_text(out, ".finding", r->finding);
	put_text(out, ".effect", r->effect);
	put_text(out, ".at", r->at);
	put_text(out, ".no_at", r->no_at);
	put_text(out, ".say", r->say);
	buf_printf(out, ".args = %d, .verdict = %d, .intent = %d },\n", r->args, (int)r->verdict,
		   (int)r->intent);
}

static void put_rules(struct buf *out, const struct set *s, const char *name, bool is_safe)
{
	buf_printf(out, "static const struct rule_row %s_rows[] = {\n", name);
	for (size_t f = 0; f < s->n; f++) {
		const struct rule *v = is_safe ? s->files[f].safe : s->files[f].rules;
		size_t n = is_safe ? s->files[f].n_safe : s->files[f].n_rules;

		for (size_t i = 0; i < n; i++)
			put_rule(out, &v[i]);
	}
	buf_puts(out, "};\n");
}

/* One list behind the other, and how many each has. */
static void put_patterns(struct buf *out, const struct set *s)
{
	size_t counts[PATTERNS_COUNT_] = { 0 };

	buf_puts(out, "static const uint32_t pattern_rows[] = {\n");
	for (size_t list = 0; list < PATTERNS_COUNT_; list++)
		for (size_t f = 0; f < s->n; f++)
			for (size_t i = 0; i < s->files[f].lists[list].n; i++, counts[list]++) {
				buf_putc(out, '\t');
				put_text(out, "", s->files[f].lists[list].v[i]);
				buf_putc(out, '\n');
			}
	buf_puts(out, "};\nstatic const size_t pattern_counts[] = {");
	for (size_t list = 0; list < PATTERNS_COUNT_; list++)
		buf_printf(out, " %zu,", counts[list]);
	buf_puts(out, " };\n");
}

/* One entry per name of a list, sorted by name. */
struct entry {
	const char *name;
	size_t rule; /* or index of a syntax */
};

static int by_name(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int r = strcmp(x->name, y->name);

	return r ? r : x->rule < y->rule ? -1 : x->rule > y->rule;
}

static size_t split_names(struct set *s, const char *list, size_t rule, struct entry *to, size_t n)
{
	while (list && *list) {
		size_t len = strcspn(list, "|");

		bug_on(n == MAX_NAMES);
		to[n++] = (struct entry){ arena_strn(&s->mem, list, len), rule };
		list += len + (list[len] == '|');
	}
	return n;
}

static void put_index(struct buf *out, struct set *s)
{
	struct entry *v = mem_new(MAX_NAMES, sizeof(*v));
	size_t n = 0, rule = 0;

	for (size_t f = 0; f < s->n; f++)
		for (size_t i = 0; i < s->files[f].n_rules; i++, rule++)
			n = split_names(s, s->files[f].rules[i].program, rule, v, n);
	qsort(v, n, sizeof(*v), by_name);
	buf_puts(out, "static const uint16_t order[] = {");
	for (size_t i = 0; i < n; i++)
		buf_printf(out, " %zu,", v[i].rule);
	buf_puts(out, " };\nstatic const struct index_row index_rows[] = {\n");
	for (size_t i = 0, k; i < n; i = k) {
		for (k = i; k < n && str_eq(v[k].name, v[i].name); k++)
			;
		buf_puts(out, "\t{ ");
		put_text(out, "", v[i].name);
		buf_printf(out, "%zu, %zu },\n", i, k - i);
	}
	buf_puts(out, "};\n");
	free(v);
}

static void put_syntaxes(struct buf *out, struct set *s)
{
	struct entry *v = mem_new(MAX_NAMES, sizeof(*v));
	const struct syntax **all = mem_new(MAX_NAMES, sizeof(void *));
	size_t n = 0, count = 0;

	for (size_t f = 0; f < s->n; f++)
		for (size_t i = 0; i < s->files[f].n_syntaxes; i++) {
			all[count] = &s->files[f].syntaxes[i];
			n = split_names(s, all[count]->name, count, v, n);
			count++;
		}
	qsort(v, n, sizeof(*v), by_name);
	buf_puts(out, "static const struct syntax_row syntax_rows[] = {\n");
	for (size_t i = 0; i < n; i++) {
		const struct syntax *x = all[v[i].rule];

		bug_on(i && str_eq(v[i].name, v[i - 1].name));
		buf_puts(out, "\t{ ");
		put_text(out, ".name", v[i].name);
		put_text(out, ".values", x->values);
		put_text(out, ".does", x->does);
		buf_printf(out, ".has_sub = %d, .single_dash = %d },\n", x->has_sub,
			   x->single_dash);
	}
	buf_puts(out, "};\n");
	free(all);
	free(v);
}

static void put_c(struct buf *out, struct set *s)
{
	buf_puts(out, "/* Made by the build from rules/. */\n");
	put_rules(out, s, "rules", false);
	put_rules(out, s, "safe", true);
	put_syntaxes(out, s);
	put_index(out, s);
	put_patterns(out, s);
	put_texts(out);
}

/* The page. */

static void put_cell(struct buf *out, const char *s)
{
	for (; *s; s++)
		if (*s == '|')
			buf_puts(out, "\\|");
		else if (*s == '\n')
			buf_puts(out, " ⏎ ");
		else
			buf_putc(out, *s);
}

static const char *example(const struct rules *r, const char *id)
{
	for (size_t i = 0; i < r->n_tests; i++)
		if (str_eq(r->tests[i].rule, id) && r->tests[i].verdict != VERDICT_ALLOW)
			return r->tests[i].command;
	return "";
}

static void put_table(struct buf *out, const struct set *s)
{
	for (size_t f = 0; f < s->n; f++) {
		const struct rules *r = &s->files[f];

		if (r->n_rules == 0)
			continue;
		buf_printf(out,
			   "\n### %s\n\n| rule | verdict | for example | what the agent is told "
			   "|\n|---|---|---|---|\n",
			   r->title);
		for (size_t i = 0; i < r->n_rules; i++) {
			buf_printf(out, "| `%s` | %s, %s | `` ", r->rules[i].id,
				   verdict_name(r->rules[i].verdict),
				   intent_name(r->rules[i].intent));
			put_cell(out, example(r, r->rules[i].id));
			buf_puts(out, " `` | ");
			put_cell(out, r->rules[i].say);
			buf_puts(out, " |\n");
		}
	}
	buf_putc(out, '\n');
}

static int put_doc(struct buf *out, const struct set *s, const char *page)
{
	_cleanup_(buf_done) struct buf part = BUF(MIB);
	struct err e = ERR_INIT;
	int r;

	put_table(&part, s);
	r = page_fill(page, "rules", &part, out, &e);
	if (r < 0)
		(void)fprintf(stderr, "%s\n", e.msg);
	return r;
}

static int load(struct set *s, const char *path)
{
	_cleanup_(buf_done) struct buf text = BUF(MIB);
	struct err e = ERR_INIT;
	int r = io_read_file(path, &text, &e);

	bug_on(s->n == MAX_FILES);
	if (r >= 0)
		r = rules_load(&s->mem, buf_cstr(&text), text.n, true, &s->files[s->n], &e);
	if (r < 0) {
		(void)fprintf(stderr, "%s: %s\n", path, e.msg);
		return r;
	}
	s->n++;
	return 0;
}

int main(int argc, char **argv)
{
	static struct set s = { .mem = { .max = 64 * MIB } };
	_cleanup_(buf_done) struct buf out = BUF(4 * MIB);
	bool is_doc = argc > 2 && str_eq(argv[1], "--doc");

	for (int i = is_doc ? 3 : 2; i < argc; i++)
		if (load(&s, argv[i]) < 0)
			return 1;
	if (!is_doc)
		put_c(&out, &s);
	else if (put_doc(&out, &s, argv[2]) < 0)
		return 1;
	(void)fputs(buf_cstr(&out), stdout);
	arena_done(&s.mem);
	return 0;
}
