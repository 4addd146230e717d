/* SPDX-License-Identifier: Apache-2.0 */
/* base/json_test.c - what the reader takes, what it refuses, and where it says so */
#include "base/buf.h"
#include "base/json.h"
#include "base/test.h"

static int parse(const char *text, struct json_doc *doc, struct err *e)
{
	*doc = (struct json_doc){ 0 };
	*e = ERR_INIT;
	return json_parse(text, strlen(text), doc, e);
}

/* The text is refused at this place. */
static void check_bad_n(const char *text, size_t n, const char *place)
{
	struct json_doc doc = { 0 };
	struct err e = ERR_INIT;
	int r = json_parse(text, n, &doc, &e);

	CHECK(r < 0);
	CHECK(e.kind == ERR_CONFIG);
	CHECK_INT(e.num, -r);
	if (strncmp(e.msg, place, strlen(place)) != 0)
		CHECK_STR(e.msg, place);
	CHECK(doc.root == NULL && doc.mem.blocks == NULL);
	json_done(&doc);
}

static void check_bad(const char *text, const char *place)
{
	check_bad_n(text, strlen(text), place);
}

static void check_good(const char *text)
{
	_cleanup_(json_done) struct json_doc doc = { 0 };
	struct err e;

	if (parse(text, &doc, &e) < 0)
		CHECK_STR(e.msg, text);
	else
		CHECK(doc.root != NULL);
}

TEST(values_and_places)
{
	_cleanup_(json_done) struct json_doc doc = { 0 };
	const struct json *v;
	struct err e;

	CHECK_INT(parse("// top\n{\n\t\"a\": [1, -2, \"x\\ty\"], /* \xc3\xa9 */ \"b\": true,\n}\n",
			&doc, &e),
		  0);
	CHECK_INT(doc.root->type, JSON_OBJECT);
	CHECK_INT(doc.root->n, 2);
	CHECK_INT(doc.root->line, 2);
	CHECK_INT(doc.root->col, 1);
	v = json_get(doc.root, "a");
	CHECK(v && v->type == JSON_ARRAY && v->n == 3);
	CHECK_INT(v->key_line, 3);
	CHECK_INT(v->key_col, 2);
	CHECK_INT(v->col, 7);
	CHECK_STR(v->first->next->text, "-2");
	CHECK_STR(v->first->next->next->text, "x\ty");
	CHECK_INT(v->first->next->next->n, 3);
	v = json_get(doc.root, "b");
	CHECK(v && v->type == JSON_BOOL && v->is_true);
	CHECK_INT(v->key_col, 32); /* the two bytes of the accented letter are one column */
	CHECK(json_get(doc.root, "c") == NULL);
	CHECK(json_get(v, "c") == NULL);
}

TEST(good_texts)
{
	static const char *const good[] = {
		"null",
		"true",
		"false",
		"0",
		"-0",
		"1.5",
		"\"\"",
		"[]",
		"{}",
		"[1,]",
		"{\"a\":1,}",
		"[[],{},]",
		" \t\r\n 1 \r\n",
		"1//",
		"1/**/",
		"/***/1",
		"/*/ */1",
		"\"\\ud83d\\ude00\"",
		"\"\xf0\x9f\x98\x80\"",
		"9223372036854775807",
		"-9223372036854775808",
		"18446744073709551615",
		"\"\\u0041\\/\\b\\f\"",
	};

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		check_good(good[i]);
}

TEST(bad_structure)
{
	check_bad("", "1:1: there is no value");
	check_bad("  // only\n", "2:1: there is no value");
	check_bad("{", "1:2: the text ends");
	check_bad("[1", "1:3: the text ends before the '[' of 1:1");
	check_bad("[1 2]", "1:4: '2' where");
	check_bad("[,]", "1:2: ',' where a value");
	check_bad("[1,,]", "1:4: ','");
	check_bad("{,}", "1:2: ',' where a key");
	check_bad("{a:1}", "1:2: 'a' where a key");
	check_bad("{\"a\" 1}", "1:6: '1' where ':'");
	check_bad("{\"a\":}", "1:6: '}' where a value");
	check_bad("[1}", "1:3: '}' where");
	check_bad("1 1", "1:3: '1' where the end");
	check_bad("{}}", "1:3: '}' where the end");
	check_bad("nul", "1:1: 'nul' is not a value");
	check_bad("True", "1:1: 'True' is not a value");
	check_bad("nullx", "1:1: 'nullx'");
	check_bad("/* no end", "1:1: this comment is never closed");
	check_bad("1 /*/", "1:3: this comment");
	check_bad("1 / 2", "1:3: '/' that begins no comment");
	check_bad("'a'", "1:1: ''' where a value");
}

TEST(bad_strings)
{
	check_bad("\"abc", "1:1: this string is never closed");
	check_bad("\"a\nb\"", "1:3: a line break");
	check_bad("\"a\tb\"", "1:3: a tab");
	check_bad("\"\\x\"", "1:2: unknown escape");
	check_bad("\"\\", "1:3: the text ends");
	check_bad("\"\\u12g4\"", "1:6: \\u needs");
	check_bad("\"\\u12\"", "1:6: \\u needs");
	check_bad("\"\\u0000\"", "1:2: a NUL");
	check_bad("\"\\ud800\"", "1:2: a lone surrogate");
	check_bad("\"\\ud800x\"", "1:2: a lone surrogate");
	check_bad("\"\\ud800\\u0041\"", "1:2: a lone surrogate");
	check_bad("\"\\udc00\"", "1:2: a lone surrogate");
}

TEST(bad_bytes)
{
	check_bad("\xef\xbb\xbf{}", "1:1: a byte order mark");
	check_bad("{} // \xe2\x80\xae", "1:7: control character U+202E");
	check_bad("\"\xc2\x85\"", "1:2: control character U+0085");
	check_bad("\"\x1b[31m\"", "1:2: control character U+001B");
	check_bad("1 // \x7f", "1:6: control character U+007F");
	check_bad("\"\xff\"", "1:2: byte 0xff");
	check_bad("\"\xc0\x80\"", "1:2: byte 0xc0"); /* overlong NUL */
	check_bad("\"\xe0\x80\x80\"", "1:2: byte 0xe0");
	check_bad("\"\xed\xa0\x80\"", "1:2: byte 0xed"); /* raw surrogate */
	check_bad("\"\xf4\x90\x80\x80\"", "1:2: byte 0xf4");
	check_bad("// \xc3", "1:4: byte 0xc3");
	check_bad_n("1\0", 2, "1:2: control character U+0000");
}

TEST(bad_numbers)
{
	check_bad("01", "1:1: a number with a leading zero");
	check_bad("-01", "1:1: a number with a leading zero");
	check_bad("-", "1:2: the text ends where a digit");
	check_bad("1.", "1:3: the text ends where a digit");
	check_bad(".5", "1:1: '.' where a value");
	check_bad("+1", "1:1: '+' where a value");
	check_bad("1e3", "1:2: a number with an exponent");
	check_bad("0x10", "1:2: 'x' where the end");
	check_bad("NaN", "1:1: 'NaN'");
	check_bad("18446744073709551616", "1:1: a whole number outside");
	check_bad("-9223372036854775809", "1:1: a whole number outside");
	check_bad("0.00000000000000000000000000000000000000000000000000000000000000001", "1:1: a "
											 "number "
											 "of more");
}

TEST(exact_integers)
{
	_cleanup_(json_done) struct json_doc doc = { 0 };
	const struct json *v;
	struct err e;
	uint64_t u = 7;
	int64_t i = 7;

	CHECK_INT(parse("[18446744073709551615, -9223372036854775808, 1.0, \"1\"]", &doc, &e), 0);
	v = doc.root->first;
	CHECK(json_u64(v, &u) && u == UINT64_MAX);
	CHECK(!json_i64(v, &i));
	v = v->next;
	CHECK(json_i64(v, &i) && i == INT64_MIN);
	CHECK(!json_u64(v, &u));
	v = v->next;
	CHECK(!json_u64(v, &u) && !json_i64(v, &i));
	CHECK(!json_u64(v->next, &u) && !json_i64(v->next, &i));
}

TEST(text_of_a_member)
{
	static const char text[] = "{\"a\":\"x\",\"empty\":\"\",\"n\":1,\"o\":{\"a\":\"y\"}}";
	_cleanup_(json_done) struct json_doc doc = { 0 };
	struct err e = ERR_INIT;

	CHECK(json_parse(text, strlen(text), &doc, &e) == 0);
	CHECK(str_eq(json_text(doc.root, "a", NULL), "x"));
	CHECK(json_text(doc.root, "empty", NULL) == NULL);
	CHECK(json_text(doc.root, "n", NULL) == NULL);
	CHECK(json_text(doc.root, "none", NULL) == NULL);
	CHECK(str_eq(json_text(doc.root, "none", ""), ""));
	CHECK(str_eq(json_text(json_get(doc.root, "o"), "a", NULL), "y"));
	CHECK(json_text(json_get(doc.root, "n"), "a", NULL) == NULL);
	CHECK(json_text(NULL, "a", NULL) == NULL);
}

TEST(duplicate_keys)
{
	check_bad("{\"a\":1,\n \"b\":2,\n \"a\":3}", "3:2: duplicate key; it stands at 1:2");
	check_bad("{\"a\":1, \"\\u0061\":3}", "1:9: duplicate key");
	check_bad("{\"z\":0,\"b\":1,\"b\":2,\"a\":3,\"a\":4}",
		  "1:14: duplicate key"); /* the first in the text */
	check_bad("[{\"x\":{\"a\":1,\"a\":1}}]", "1:14: duplicate key");
	check_good("{\"a\":{\"a\":1}}");
}

/* open repeated n times, then close repeated n times. */
static char *nested(const char *open, const char *close, unsigned n)
{
	struct buf b = BUF(MIB);

	for (unsigned i = 0; i < n; i++)
		buf_puts(&b, open);
	for (unsigned i = 0; i < n; i++)
		buf_puts(&b, close);
	return buf_take(&b);
}

TEST(depth)
{
	_free_ char *good = nested("[", "]", JSON_MAX_DEPTH),
		    *bad = nested("[", "]", JSON_MAX_DEPTH + 1);
	_free_ char *flat = nested("[],", "", 100);
	_free_ char *wide = mem_fmt("[%s]", flat);

	check_good(good);
	check_bad(bad, "1:33: nested deeper");
	check_good(wide); /* closed brackets do not count */
}

TEST(sizes)
{
	_free_ char *many = nested("1,", "", JSON_MAX_NODES);
	_free_ char *over = mem_fmt("[%s]", many);
	_free_ char *big = mem_new(JSON_MAX_BYTES + 1, 1);
	struct json_doc doc = { 0 };
	struct err e;

	check_bad(over, "1:131072: more than 65536 values");
	memset(big, ' ', JSON_MAX_BYTES + 1);
	big[0] = '1';
	CHECK_INT(json_parse(big, JSON_MAX_BYTES, &doc, &e), 0);
	json_done(&doc);
	CHECK_INT(json_parse(big, JSON_MAX_BYTES + 1, &doc, &e), -E2BIG);
}

TEST(long_string_keeps_its_bytes)
{
	_free_ char *body = nested("ab\\n", "", 10000);
	_free_ char *text = mem_fmt("\"%s\"", body);
	_cleanup_(json_done) struct json_doc doc = { 0 };
	struct err e;

	CHECK_INT(parse(text, &doc, &e), 0);
	CHECK_INT(doc.root->n, 30000);
	CHECK(str_ends(doc.root->text, "ab\nab\n"));
}

TEST(foreign_text)
{
	static const char *const good[] = {
		"{\"a\":\"\\ud83d\"}", "[1e3,-2.5E-7]",
		"\"\xe2\x80\xae\"",    "[123456789012345678901234567890]",
		"\"\\ud83d\\ude00\"",  "\"\\ud83d\\u0041\""
	};
	static const char *const bad[] = { "\"\\u0000\"", "{\"a\":1,\"a\":2}", "\"\x01\"", "[1e]",
					   "\"\xff\"" };

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		_cleanup_(json_done) struct json_doc doc = { 0 };
		struct err e = ERR_INIT;

		CHECK(json_parse_foreign(good[i], strlen(good[i]), &doc, &e) == 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		_cleanup_(json_done) struct json_doc doc = { 0 };
		struct err e = ERR_INIT;

		CHECK(json_parse_foreign(bad[i], strlen(bad[i]), &doc, &e) < 0);
	}
}

TEST(printed_again)
{
	static const char text[] = "{\n  \"a\": [\n    1.50,\n    true,\n    null\n  ],\n  \"b\": "
				   "{},\n  \"c\": \"x y\"\n}";
	_cleanup_(json_done) struct json_doc doc = { 0 };
	_cleanup_(buf_done) struct buf out = BUF(KIB);
	struct err e = ERR_INIT;

	CHECK_INT(json_parse(text, strlen(text), &doc, &e), 0);
	json_print(doc.root, &out);
	CHECK_STR(buf_cstr(&out), text);
}

TEST_MAIN()
