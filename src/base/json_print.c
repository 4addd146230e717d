/* SPDX-License-Identifier: Apache-2.0 */
/* base/json_print.c - a tree as text again: members in their order, two blanks for each level or none at all */
#include "base/buf.h"
#include "base/json.h"

static void put_tabs(struct buf *out, unsigned depth)
{
	buf_putc(out, '\n');
	while (depth--)
		buf_puts(out, "  ");
}

static void put_text(struct buf *out, const struct json_style *s, const char *text)
{
	if (s->put)
		s->put(out, text, s->arg);
	else
		buf_json(out, text);
}

static void put_value(struct buf *out, const struct json_style *s, const struct json *v,
		      unsigned depth)
{
	switch (v->type) {
	case JSON_NULL:
		buf_puts(out, "null");
		return;
	case JSON_BOOL:
		buf_puts(out, v->is_true ? "true" : "false");
		return;
	case JSON_NUMBER:
		buf_puts(out, v->text);
		return;
	case JSON_STRING:
		put_text(out, s, v->text);
		return;
	case JSON_ARRAY:
	case JSON_OBJECT:
		break;
	case JSON_TYPE_COUNT_:
		bug_on(true);
	}
	buf_putc(out, v->type == JSON_OBJECT ? '{' : '[');
	for (const struct json *m = v->first; m; m = m->next) {
		if (!s->is_compact)
			put_tabs(out, depth + 1);
		if (m->key) {
			put_text(out, s, m->key);
			buf_puts(out, s->is_compact ? ":" : ": ");
		}
		put_value(out, s, m, depth + 1);
		if (m->next)
			buf_putc(out, ',');
	}
	if (v->first && !s->is_compact)
		put_tabs(out, depth);
	buf_putc(out, v->type == JSON_OBJECT ? '}' : ']');
}

void json_print_as(const struct json *v, const struct json_style *s, struct buf *out)
{
	put_value(out, s, v, 0);
}

void json_print(const struct json *v, struct buf *out)
{
	json_print_as(v, &(struct json_style){ 0 }, out);
}
