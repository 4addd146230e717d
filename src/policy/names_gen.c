/* SPDX-License-Identifier: Apache-2.0 */
/* policy/names_gen.c - data/names.json as C, and as the tables in docs/POLICY.md; runs on the machine that builds
 *
 *     names_gen --c FILE            each list as names one behind the other, ended by an empty one: bytes without pointers;
 *                                   for patterns also what item_prepare() finds out about each
 *     names_gen --doc PAGE FILE     PAGE with everything between its marks made anew
 *
 * One line of the file is one tool, or a few that work alike: what of it is in the lists, and why. "{a,b}" in a
 * pattern stands for two patterns, as in a shell, and may be empty on one side. A line that cannot be read fails the
 * build, and so does a pattern that stands in a list twice.
 */
#include "base/buf.h"
#include "base/io.h"
#include "base/json.h"
#include "base/page.h"
#include "policy/table.h"

static const struct list {
	const char *key;   /* in the file */
	const char *array; /* in C */
	const char *title; /* of the column in the page */
	bool is_layer;     /* patterns of the built-in layer */
} lists[] = {
	{ "hide", "names_hide", "why", true },
	{ "hide_with_token", "names_hide_with_token", "why", false },
	{ "protect", "names_protect", "what it takes up", true },
	{ "note", "names_note", NULL, false },
};

typedef void (*pattern_fn)(struct buf *out, const char *pattern);

/* Calls fn for the pattern with its first pair of braces filled in each way, and so on to the last. */
static void expand(struct buf *out, const char *pattern, pattern_fn fn)
{
	const char *open = strchr(pattern, '{'), *close = open ? strchr(open, '}') : NULL;

	if (close == NULL) {
		fn(out, pattern);
		return;
	}
	for (const char *p = open + 1; p <= close;) {
		size_t n = strcspn(p, ",}");
		_free_ char *one =
			mem_fmt("%.*s%.*s%s", (int)(open - pattern), pattern, (int)n, p, close + 1);

		expand(out, one, fn);
		p += n + 1;
	}
}

static int fail(const struct json *at, const char *why)
{
	(void)fprintf(stderr, "names.json:%u: %s\n", at->line, why);
	return -EINVAL;
}

static int check_line(const struct json *line)
{
	const struct json *tool = json_get(line, "tool"), *why = json_get(line, "why");
	size_t n = 0;

	if (tool == NULL || tool->type != JSON_STRING || why == NULL || why->type != JSON_STRING)
		return fail(line, "a line has a \"tool\", a list, and a \"why\"");
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		const struct json *l = json_get(line, lists[i].key);

		if (l == NULL)
			continue;
		n++;
		if (l->type != JSON_ARRAY)
			return fail(l, "not a list");
		for (const struct json *v = l->first; v; v = v->next)
			if (v->type != JSON_STRING || v->n == 0 || strpbrk(v->text, "\"\\\n`"))
				return fail(v, "not a pattern");
	}
	return n == 1 && line->n == 3 ? 0 : fail(line, "a line is for one list");
}

static void put_c_name(struct buf *out, const char *pattern)
{
	_free_ char *line = mem_fmt("\t\"%s\\0\"\n", pattern);

	if (strstr(buf_cstr(out), line)) {
		(void)fprintf(stderr, "names.json: '%s' stands there twice\n", pattern);
		out->is_over = true;
	}
	buf_puts(out, line);
}

struct rows {
	struct buf text;
	size_t n, at;
};

static int put_row(struct rows *rows, const char *pattern)
{
	_free_ char *text = mem_str(pattern);
	struct item it = { .text = text };

	item_prepare(&it);
	if (it.n > UINT8_MAX || rows->at > UINT16_MAX) {
		(void)fprintf(stderr, "names.json: '%s' is too long, or the list is\n", pattern);
		return -EINVAL;
	}
	buf_printf(&rows->text, "\t{ 0x%xU, %zu, %u, %u, %d, %d, %d, %d },\n", it.name_hash,
		   rows->at, it.n, it.name_at, it.first, it.last, it.is_path, it.is_literal);
	rows->n++;
	rows->at += it.n + 1;
	return 0;
}

/* `names` is the list as put_c_name() wrote it: one pattern a line, between a tab and a quote and "\0" and a quote. */
static int put_rows(struct buf *out, const struct list *list, const char *names)
{
	struct rows rows = { .text = BUF(MIB) };
	int r = 0;

	for (const char *p = names; r >= 0 && *p; p = strchr(p, '\n') + 1) {
		_free_ char *one = mem_strn(p + 2, (size_t)(strchr(p, '\n') - p) - 5);

		r = put_row(&rows, one);
	}
	buf_printf(out, "const struct name_row %s_rows[] = {\n%s};\nconst size_t %s_n = %zu;\n",
		   list->array, buf_cstr(&rows.text), list->array, rows.n);
	buf_done(&rows.text);
	return r;
}

static int put_c(struct buf *out, const struct json *root)
{
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		_cleanup_(buf_done) struct buf part = BUF(MIB);

		for (const struct json *line = root->first; line; line = line->next) {
			const struct json *l = json_get(line, lists[i].key);

			for (const struct json *v = l ? l->first : NULL; v; v = v->next)
				expand(&part, v->text, put_c_name);
		}
		if (part.is_over)
			return -EINVAL;
		buf_printf(out, "const char %s[] =\n%s\t\"\";\n", lists[i].array, buf_cstr(&part));
		if (lists[i].is_layer && put_rows(out, &lists[i], buf_cstr(&part)) < 0)
			return -EINVAL;
	}
	return 0;
}

static void put_doc_list(struct buf *out, const struct json *root, const struct list *list)
{
	buf_printf(out, "| tool | names | %s |\n|---|---|---|\n", list->title ? list->title : "");
	for (const struct json *line = root->first; line; line = line->next) {
		const struct json *l = json_get(line, list->key);

		if (l == NULL)
			continue;
		buf_printf(out, "| %s |", json_get(line, "tool")->text);
		for (const struct json *v = l->first; v; v = v->next)
			buf_printf(out, " `%s`", v->text);
		buf_printf(out, " | %s |\n", json_get(line, "why")->text);
	}
}

static int put_doc(struct buf *out, const struct json *root, const char *page)
{
	_cleanup_(buf_done) struct buf part = BUF(MIB);
	struct err e = ERR_INIT;
	int r;

	buf_puts(&part, "### Hidden\n\n");
	put_doc_list(&part, root, &lists[0]);
	buf_puts(&part, "\n### Hidden where a token stands in them\n\n");
	put_doc_list(&part, root, &lists[1]);
	buf_puts(&part, "\n### Protected\n\n");
	put_doc_list(&part, root, &lists[2]);
	buf_puts(&part, "\n### Noted\n\n");
	put_doc_list(&part, root, &lists[3]);
	r = page_fill(page, "data", &part, out, &e);
	if (r < 0)
		(void)fprintf(stderr, "%s\n", e.msg);
	return r;
}

int main(int argc, char **argv)
{
	_cleanup_(buf_done) struct buf text = BUF(MIB), out = BUF(4 * MIB);
	bool is_doc = argc == 4 && str_eq(argv[1], "--doc");
	struct json_doc doc = { 0 };
	struct err e = ERR_INIT;
	int r = argc < 3 ? -EINVAL : io_read_file(argv[argc - 1], &text, &e);

	if (r >= 0)
		r = json_parse(buf_cstr(&text), text.n, &doc, &e);
	if (r < 0) {
		(void)fprintf(stderr, "names.json: %s\n", e.msg);
		return 1;
	}
	for (const struct json *line = doc.root->first; r >= 0 && line; line = line->next)
		r = check_line(line);
	if (r >= 0)
		r = is_doc ? put_doc(&out, doc.root, argv[2]) : put_c(&out, doc.root);
	json_done(&doc);
	if (r < 0)
		return 1;
	(void)fputs(buf_cstr(&out), stdout);
	return 0;
}
