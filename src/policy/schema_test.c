/* SPDX-License-Identifier: Apache-2.0 */
/* policy/schema_test.c - docs/policy.schema.json against the tables the reader uses
 *
 * The schema is written by hand for people and editors; this test keeps it true: every key of the tables is in it,
 * nothing else is, and words, types and `additionalProperties` agree. The path comes in VITRINE_SCHEMA.
 */
#include "base/io.h"
#include "base/json.h"
#include "base/test.h"
#include "policy/table.h"

struct schema {
	struct buf text;
	struct json_doc doc;
};

static void schema_done(struct schema *s)
{
	json_done(&s->doc);
	buf_done(&s->text);
}

static void schema_load(struct schema *s)
{
	const char *path = getenv("VITRINE_SCHEMA");
	struct err e = ERR_INIT;

	*s = (struct schema){ .text = BUF(MIB) };
	CHECK(path != NULL);
	if (path == NULL || io_read_file(path, &s->text, &e) < 0 ||
	    json_parse(buf_cstr(&s->text), s->text.n, &s->doc, &e) < 0)
		CHECK_STR(e.msg, "a schema that can be read");
}

static const struct json *at(const struct json *v, const char *key)
{
	return v ? json_get(v, key) : NULL;
}

static const struct json *properties(const struct schema *s, const char *section)
{
	const struct json *top = at(s->doc.root, "properties");

	return section ? at(at(top, section), "properties") : top;
}

static bool is_known(const char *section, const char *name)
{
	for (size_t i = 0; i < key_defs_n; i++) {
		const struct key_def *k = &key_defs[i];

		if (section_eq(k->section, section) && str_eq(k->name, name))
			return true;
		if (section == NULL && k->section && str_eq(k->section, name))
			return true;
	}
	return section == NULL && str_eq(name, "$schema");
}

static bool says(const struct json *v, const char *key, const char *want)
{
	const struct json *got = at(v, key);

	return got && got->type == JSON_STRING && str_eq(got->text, want);
}

static void check_type(const struct key_def *k, const struct json *v)
{
	switch (k->kind) {
	case KEY_WORKSPACE:
		CHECK(says(v, "type", "string"));
		break;
	case KEY_SETTING:
		CHECK(says(v, "type", setting_defs[k->id].is_bool ? "boolean" : "string"));
		break;
	case KEY_LIST:
		CHECK(says(v, "type", list_defs[k->id].is_map ? "object" : "array"));
		break;
	case KEY_LIMIT:
		CHECK(at(v, "$ref") != NULL);
		break;
	}
	CHECK(k->kind == KEY_LIMIT || at(v, "description") != NULL);
}

static void check_words(const struct key_def *k, const struct json *v)
{
	const struct setting_def *d = &setting_defs[k->id];
	const struct json *words = at(v, "enum");
	unsigned i = 0;

	CHECK(words != NULL && words->n == d->n);
	for (const struct json *w = words ? words->first : NULL; w && i < d->n; w = w->next)
		CHECK_STR(w->text, d->choices[i++].name);
}

TEST(every_key_is_in_the_schema)
{
	_cleanup_(schema_done) struct schema s;

	schema_load(&s);
	for (size_t i = 0; i < key_defs_n; i++) {
		const struct key_def *k = &key_defs[i];
		const struct json *v = at(properties(&s, k->section), k->name);

		if (v == NULL) {
			CHECK_STR("not in the schema", k->name);
			continue;
		}
		check_type(k, v);
		if (k->kind == KEY_SETTING && !setting_defs[k->id].is_bool)
			check_words(k, v);
	}
}

static void check_members(const struct schema *s, const char *section)
{
	const struct json *props = properties(s, section);

	for (const struct json *v = props ? props->first : NULL; v; v = v->next)
		if (!is_known(section, v->key))
			CHECK_STR(v->key, "a key the reader knows");
}

TEST(nothing_else_is_in_the_schema)
{
	_cleanup_(schema_done) struct schema s;
	const struct json *more;

	schema_load(&s);
	check_members(&s, NULL);
	more = at(s.doc.root, "additionalProperties");
	CHECK(more && more->type == JSON_BOOL && !more->is_true);
	for (size_t i = 0; i < key_defs_n; i++) {
		if (key_defs[i].section == NULL)
			continue;
		check_members(&s, key_defs[i].section);
		more = at(at(at(s.doc.root, "properties"), key_defs[i].section), "additionalPropert"
										 "ies");
		CHECK(more && more->type == JSON_BOOL && !more->is_true);
	}
}

TEST_MAIN()
