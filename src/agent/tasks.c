/* SPDX-License-Identifier: Apache-2.0 */
/* agent/tasks.c - see tasks.h */
#include "agent/tasks.h"

#include "base/json.h"

const char *const tasks_files[] = { "TODO.md",     "TASKS.md", "PLAN.md",      "PROMPT.md",
				    "fix_plan.md", "prd.md",   "PRD.md",       "todo.md",
				    "tasks.md",    "plan.md",  "docs/TODO.md", "docs/PLAN.md",
				    NULL };

void tasks_done(struct tasks *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->v[i].text);
	free(t->v);
	*t = (struct tasks){ 0 };
}

static void add(struct tasks *t, bool is_done, const char *text, size_t n)
{
	*(is_done ? &t->done : &t->open) += 1;
	if (t->n == TASKS_MAX)
		return;
	vec_reserve(t->v, t->n, t->cap);
	t->v[t->n++] =
		(struct task){ is_done, mem_strn(text, n < TASK_TEXT_MAX ? n : TASK_TEXT_MAX) };
}

static size_t skip(const char *p, size_t n, size_t at, const char *set)
{
	while (at < n && p[at] && strchr(set, p[at]))
		at++;
	return at;
}

static void markdown_line(struct tasks *t, const char *p, size_t n)
{
	size_t at = skip(p, n, 0, " \t>"), mark = at;

	if (at < n && (p[at] == '-' || p[at] == '*' || p[at] == '+')) {
		at++;
	} else {
		at = skip(p, n, at, "0123456789");
		if (at == mark || at >= n || (p[at] != '.' && p[at] != ')'))
			return;
		at++;
	}
	mark = at;
	at = skip(p, n, at, " \t");
	if (at == mark || at + 3 > n || p[at] != '[' || p[at + 2] != ']')
		return;
	if (p[at + 1] == ' ' || p[at + 1] == 'x' || p[at + 1] == 'X') {
		size_t text = skip(p, n, at + 3, " \t");

		add(t, p[at + 1] != ' ', p + text, n - text);
	}
}

/* The end of the line that begins at `at`. */
static size_t line_end(const char *text, size_t n, size_t at)
{
	const char *end = memchr(text + at, '\n', n - at);

	return end ? (size_t)(end - text) : n;
}

void tasks_markdown(struct tasks *t, const char *text, size_t n)
{
	bool is_fenced = false;

	for (size_t at = 0; at < n;) {
		size_t end = line_end(text, n, at), from = skip(text, end, at, " ");
		size_t len = end - at;

		if (end - from >= 3 &&
		    (memcmp(text + from, "```", 3) == 0 || memcmp(text + from, "~~~", 3) == 0))
			is_fenced = !is_fenced;
		else if (!is_fenced)
			markdown_line(t, text + at,
				      len > 0 && text[end - 1] == '\r' ? len - 1 : len);
		at = end + 1;
	}
}

static void beads_line(struct tasks *t, const char *p, size_t n)
{
	_cleanup_(json_done) struct json_doc doc = { 0 };
	const struct json *title, *status;
	struct err e = ERR_INIT;

	if (n == 0 || json_parse_foreign(p, n, &doc, &e) < 0 || doc.root->type != JSON_OBJECT)
		return;
	title = json_get(doc.root, "title");
	status = json_get(doc.root, "status");
	if (title && status && title->type == JSON_STRING && status->type == JSON_STRING)
		add(t, str_eq(status->text, "closed") || str_eq(status->text, "done"), title->text,
		    title->n);
}

void tasks_beads(struct tasks *t, const char *text, size_t n)
{
	for (size_t at = 0; at < n;) {
		size_t end = line_end(text, n, at);

		beads_line(t, text + at, end - at);
		at = end + 1;
	}
}
