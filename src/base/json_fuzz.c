/* SPDX-License-Identifier: Apache-2.0 */
/* base/json_fuzz.c - any bytes: no crash, and a tree that is what json.h promises
 *
 * Beyond sanitizers: whatever is accepted is printed again as plain JSON, must be accepted once more, and must give
 * the same print; whatever is refused says where.
 */
#include "base/buf.h"
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check(const struct json *v)
{
	bug_on(v->line == 0 || v->col == 0);
	bug_on(v->type == JSON_STRING && strlen(v->text) != v->n);
	if (v->type != JSON_ARRAY && v->type != JSON_OBJECT)
		return;
	for (const struct json *m = v->first; m; m = m->next) {
		bug_on((m->key != NULL) != (v->type == JSON_OBJECT));
		bug_on(m->key && json_get(v, m->key) != m); /* no duplicates */
		check(m);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	_cleanup_(json_done) struct json_doc doc = { 0 }, again = { 0 };
	_cleanup_(buf_done) struct buf first = BUF(16 * MIB), second = BUF(16 * MIB);
	const struct json_style compact = { .is_compact = true };
	struct err e = ERR_INIT;
	int r = json_parse((const char *)data, n, &doc, &e);

	if (r < 0) {
		bug_on(e.kind != ERR_CONFIG || e.num != -r || e.msg[0] < '1' || e.msg[0] > '9');
		return 0;
	}
	check(doc.root);
	json_print_as(doc.root, &compact, &first);
	/* Escaped, U+FEFF is a character like any other; buf_json() writes it plainly, and plain it is refused. */
	if (first.n > JSON_MAX_BYTES || strstr(buf_cstr(&first), "\xef\xbb\xbf"))
		return 0;
	r = json_parse(buf_cstr(&first), first.n, &again, &e);
	bug_on(r < 0);
	check(again.root);
	json_print_as(again.root, &compact, &second);
	bug_on(!str_eq(buf_cstr(&first), buf_cstr(&second)));
	return 0;
}
