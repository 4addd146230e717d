/* SPDX-License-Identifier: Apache-2.0 */
/* base/json_fuzz.c - any bytes: no crash, and a tree that is what json.h promises
 *
 * Beyond sanitizers: whatever is accepted is printed again as plain JSON, must be accepted once more, and must give
 * the same print; whatever is refused says where.
 */
#include "base/buf.h"
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void print(const struct json *v, struct buf *b)
{
	bug_on(v->line == 0 || v->col == 0);
	switch (v->type) {
	case JSON_NULL:
		buf_puts(b, "null");
		return;
	case JSON_BOOL:
		buf_puts(b, v->is_true ? "true" : "false");
		return;
	case JSON_NUMBER:
		buf_puts(b, v->text);
		return;
	case JSON_STRING:
		bug_on(strlen(v->text) != v->n);
		buf_json(b, v->text);
		return;
	case JSON_ARRAY:
	case JSON_OBJECT:
		break;
	case JSON_TYPE_COUNT_:
		bug_on(true);
	}
	buf_putc(b, v->type == JSON_OBJECT ? '{' : '[');
	for (const struct json *m = v->first; m; m = m->next) {
		bug_on((m->key != NULL) != (v->type == JSON_OBJECT));
		bug_on(m->key && json_get(v, m->key) != m); /* no duplicates */
		if (m != v->first)
			buf_putc(b, ',');
		if (m->key) {
			buf_json(b, m->key);
			buf_putc(b, ':');
		}
		print(m, b);
	}
	buf_putc(b, v->type == JSON_OBJECT ? '}' : ']');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	_cleanup_(json_done) struct json_doc doc = { 0 }, again = { 0 };
	_cleanup_(buf_done) struct buf first = BUF(16 * MIB), second = BUF(16 * MIB);
	struct err e = ERR_INIT;
	int r = json_parse((const char *)data, n, &doc, &e);

	if (r < 0) {
		bug_on(e.kind != ERR_CONFIG || e.num != -r || e.msg[0] < '1' || e.msg[0] > '9');
		return 0;
	}
	print(doc.root, &first);
	/* Escaped, U+FEFF is a character like any other; buf_json() writes it plainly, and plain it is refused. */
	if (first.n > JSON_MAX_BYTES || strstr(buf_cstr(&first), "\xef\xbb\xbf"))
		return 0;
	r = json_parse(buf_cstr(&first), first.n, &again, &e);
	bug_on(r < 0);
	print(again.root, &second);
	bug_on(!str_eq(buf_cstr(&first), buf_cstr(&second)));
	return 0;
}
