/* SPDX-License-Identifier: Apache-2.0 */
/* cli/table_test.c - the four forms of a listing, and formats that are wrong */
#include "base/test.h"
#include "cli/table.h"

static const struct column columns[] = {
	{ "name", "Name", "NAME", COLUMN_TEXT },
	{ "size", "Size", "SIZE", COLUMN_BYTES },
	{ "hidden", "Hidden", NULL, COLUMN_NUMBER },
	{ "is_on", "On", "ON", COLUMN_BOOL },
};

static struct table some(void)
{
	struct table t = { .columns = columns, .n_columns = ARRAY_LEN(columns) };
	struct cell *row = table_row(&t);

	row[0].text = mem_str("a\033[31m");
	row[1].num = 1536;
	row[2].num = 7;
	row[3].num = 1;
	row = table_row(&t);
	row[0].text = mem_str("b");
	row[1].is_null = true;
	return t;
}

static void check(const struct table_how *how, const char *want)
{
	_cleanup_(table_done) struct table t = some();
	_cleanup_(buf_done) struct buf b = BUF(KIB);
	struct err e = ERR_INIT;

	CHECK_INT(table_print(&t, how, &b, &e), 0);
	CHECK_STR(buf_cstr(&b), want);
}

TEST(forms)
{
	static const char people[] = "NAME       SIZE     ON\n"
				     "a\\x1b[31m  1.5 KiB  yes\n"
				     "b          -        no\n";

	check(&(struct table_how){ 0 }, people);
	check(&(struct table_how){ .is_quiet = true }, "a\\x1b[31m\nb\n");
	check(&(struct table_how){ .as_json = true }, "[{\"name\":\"a\\u001b[31m\",\"size\":1536,"
						      "\"hidden\":7,\"is_on\":true},\n "
						      "{\"name\":\"b\",\"size\":null,\"hidden\":0,"
						      "\"is_on\":false}]\n");
	check(&(struct table_how){ .format = "{{.Name}}\\t{{ .Hidden }} x" }, "a\\x1b[31m\t7 "
									      "x\nb\t0 x\n");
}

TEST(wrong_formats)
{
	static const char *const bad[] = { "{{",      "{{Name}}", "{{.Nothing}}",
					   "{{.Name", "{{}}",     "{{.}}" };
	_cleanup_(table_done) struct table t = some();

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		_cleanup_(buf_done) struct buf b = BUF(KIB);
		struct err e = ERR_INIT;

		CHECK(table_print(&t, &(struct table_how){ .format = bad[i] }, &b, &e) < 0);
		CHECK(e.kind == ERR_USAGE);
	}
}

TEST(a_format_is_checked_without_rows)
{
	struct table t = { .columns = columns, .n_columns = ARRAY_LEN(columns) };
	_cleanup_(buf_done) struct buf b = BUF(KIB);
	struct err e = ERR_INIT;

	CHECK(table_print(&t, &(struct table_how){ .format = "{{.Nothing}}" }, &b, &e) < 0);
	CHECK(e.kind == ERR_USAGE && strstr(e.msg, "Name, Size, Hidden, On"));
	CHECK_INT(table_print(&t, &(struct table_how){ .format = "{{.Name}}" }, &b, &e), 0);
	CHECK_STR(buf_cstr(&b), "");
}

TEST(the_options_of_a_listing)
{
	static const struct opt table[] = { TABLE_OPTS("json", "names"),
					    { NULL, 0, NULL, NULL, 0 } };
	char verb[] = "ls", json[] = "--json", quiet[] = "-q", format[] = "--format=x";
	char *argv[] = { verb, json, quiet, format, NULL };
	struct table_how how = { 0 };
	struct err e = ERR_INIT;
	struct opts o;

	CHECK(!table_is_asked(&how));
	opts_init(&o, table, 4, argv);
	for (int id; (id = opts_next(&o, &e)) > 0;)
		CHECK(table_opt(&how, &o, id));
	CHECK(how.as_json && how.is_quiet && how.format && str_eq(how.format, "x"));
	CHECK(table_is_asked(&how));
	CHECK(!table_opt(&how, &o, 1));
}

TEST(fields_that_are_printed)
{
	CHECK(table_wants(&(struct table_how){ 0 }, "Waits"));
	CHECK(table_wants(&(struct table_how){ .as_json = true }, "Waits"));
	CHECK(!table_wants(&(struct table_how){ .is_quiet = true }, "Waits"));
	CHECK(!table_wants(&(struct table_how){ .format = "{{.Name}}" }, "Waits"));
	CHECK(table_wants(&(struct table_how){ .format = "{{.Name}} {{.Waits}}" }, "Waits"));
}

TEST(values)
{
	static const struct {
		uint64_t ns;
		const char *want;
	} times[] = { { 0, "0.00s" },
		      { 1250000000, "1.25s" },
		      { 61 * NS_PER_SEC, "1m 1s" },
		      { 3700 * NS_PER_SEC, "1h 1m" },
		      { 90000 * NS_PER_SEC, "1d 1h" } };

	for (size_t i = 0; i < ARRAY_LEN(times); i++) {
		_cleanup_(buf_done) struct buf b = BUF(KIB);

		text_duration(times[i].ns, &b);
		CHECK_STR(buf_cstr(&b), times[i].want);
	}
	_cleanup_(buf_done) struct buf b = BUF(KIB);

	text_bytes(UINT64_MAX, &b);
	CHECK(b.n > 10);
}

TEST_MAIN()
