/* SPDX-License-Identifier: Apache-2.0 */
/* agent/report.c - see report.h
 *
 * The agent wrote these lines and may write what it likes: they are its own claim. Budgets are there for agents that
 * work, the walls for those that do not.
 */
#include "agent/report.h"

/* The member at "a.b.c", or NULL. */
static const struct json *member(const struct json *v, const char *path)
{
	while (v && v->type == JSON_OBJECT && path) {
		size_t n = strcspn(path, ".");
		_free_ char *key = mem_strn(path, n);

		v = json_get(v, key);
		if (path[n] == '\0')
			return v;
		path += n + 1;
	}
	return NULL;
}

/* "type=result" */
static bool is_when(const struct json *line, const char *when)
{
	const char *value = when ? strchr(when, '=') : NULL;
	_free_ char *path = value ? mem_strn(when, (size_t)(value - when)) : NULL;
	const struct json *v = path ? member(line, path) : NULL;

	return v && v->type == JSON_STRING && str_eq(v->text, value + 1);
}

bool report_dollars(const char *text, uint64_t *ret)
{
	uint64_t whole = 0, part = 0, unit = 1000000;
	const char *p = text;

	for (; *p >= '0' && *p <= '9'; p++)
		if (!mul_ok(whole, 10, &whole) || !add_ok(whole, *p - '0', &whole))
			return false;
	if (p == text)
		return false;
	if (*p == '.')
		for (p++; *p >= '0' && *p <= '9'; p++)
			if (unit > 1) {
				unit /= 10;
				part += (uint64_t)(*p - '0') * unit;
			}
	if (*p == 'e' && p[1] == '-') /* smaller than anything we count */
		part = whole = 0;
	else if (*p)
		return false;
	return mul_ok(whole, 1000000, &whole) && add_ok(whole, part, ret);
}

static void add(uint64_t *to, uint64_t n)
{
	if (!add_ok(*to, n, to))
		*to = UINT64_MAX;
}

static void take_numbers(const struct preset_report *how, const struct json *line, struct report *r)
{
	const struct json *cost = how->cost ? member(line, how->cost) : NULL;
	const struct json *failed = how->failed ? member(line, how->failed) : NULL;
	uint64_t n;

	if (cost && cost->type == JSON_NUMBER && report_dollars(cost->text, &n)) {
		add(&r->cost, n);
		r->has_cost = true;
	}
	if (how->tokens_in && json_u64(member(line, how->tokens_in), &n)) {
		add(&r->tokens_in, n);
		r->has_tokens = true;
	}
	if (how->tokens_out && json_u64(member(line, how->tokens_out), &n)) {
		add(&r->tokens_out, n);
		r->has_tokens = true;
	}
	r->is_failed |= failed && failed->type == JSON_BOOL && failed->is_true;
}

static void add_text(const struct json *v, struct report *r)
{
	if (r->text.n + v->n + 1 > REPORT_TEXT_MAX) /* the last words count */
		buf_done(&r->text);
	r->text.max = REPORT_TEXT_MAX;
	buf_add(&r->text, v->text, v->n < REPORT_TEXT_MAX ? v->n : REPORT_TEXT_MAX - 1);
	buf_putc(&r->text, '\n');
}

/* The texts at "a.b.c"; a list on the way stands for each of its members. */
static void take_text(const struct json *v, const char *path, struct report *r)
{
	size_t n = strcspn(path, ".");
	_free_ char *key = mem_strn(path, n);
	const struct json *found = v->type == JSON_OBJECT ? json_get(v, key) : NULL;

	if (v->type == JSON_ARRAY)
		for (const struct json *m = v->first; m; m = m->next)
			take_text(m, path, r);
	else if (found && path[n])
		take_text(found, path + n + 1, r);
	else if (found && found->type == JSON_STRING)
		add_text(found, r);
}

static void take_line(const struct preset_report *how, const char *p, size_t n, struct report *r)
{
	_cleanup_(json_done) struct json_doc doc = { 0 };
	struct err e = ERR_INIT;

	if (n == 0 || n > REPORT_LINE_MAX || p[0] != '{' || json_parse_foreign(p, n, &doc, &e) < 0)
		return;
	if (is_when(doc.root, how->when))
		take_numbers(how, doc.root, r);
	if (how->text && is_when(doc.root, how->text_when ? how->text_when : how->when))
		take_text(doc.root, how->text, r);
}

void report_read(const struct preset_report *how, const char *output, size_t n, struct report *ret)
{
	*ret = (struct report){ .text = BUF(REPORT_TEXT_MAX) };
	for (size_t at = 0; how->when && at < n;) {
		const char *end = memchr(output + at, '\n', n - at);
		size_t len = end ? (size_t)(end - output) - at : n - at;

		take_line(how, output + at, len, ret);
		at += len + 1;
	}
}

void report_done(struct report *r)
{
	buf_done(&r->text);
}
