/* SPDX-License-Identifier: Apache-2.0 */
/* base/num_test.c - the whole input or an error */
#include "base/num.h"
#include "base/test.h"

typedef int parse_fn(const char *s, uint64_t *ret, struct err *e);

static int any_number(const char *s, uint64_t *ret, struct err *e)
{
	return num_parse(s, 0, UINT64_MAX, ret, e);
}

static void good(parse_fn *fn, const char *s, uint64_t want)
{
	struct err e = ERR_INIT;
	uint64_t v = 0;

	if (fn(s, &v, &e) < 0 || v != want) {
		(void)fprintf(stderr, "'%s' gives %llu (%s)\n", s, (unsigned long long)v, e.msg);
		CHECK(false);
	}
}

static void bad(parse_fn *fn, const char *s)
{
	struct err e = ERR_INIT;
	uint64_t v = 4711;

	if (fn(s, &v, &e) >= 0) {
		(void)fprintf(stderr, "'%s' is accepted as %llu\n", s, (unsigned long long)v);
		CHECK(false);
	}
	CHECK_INT(v, 4711); /* written on success only */
	CHECK_INT(e.kind, ERR_USAGE);
}

TEST(numbers)
{
	static const char *const wrong[] = { "",
					     " 1",
					     "1 ",
					     "+1",
					     "-1",
					     "01",
					     "00",
					     "0x1",
					     "1e3",
					     "1.0",
					     "a",
					     "18446744073709551616",
					     "99999999999999999999999",
					     "1\n" };

	good(any_number, "0", 0);
	good(any_number, "18446744073709551615", UINT64_MAX);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		bad(any_number, wrong[i]);
}

TEST(ranges)
{
	struct err e = ERR_INIT;
	uint64_t v = 0;

	CHECK_INT(num_parse("5", 5, 7, &v, &e), 0);
	CHECK_INT(num_parse("7", 5, 7, &v, &e), 0);
	CHECK_INT(v, 7);
	CHECK_INT(num_parse("4", 5, 7, &v, &e), -ERANGE);
	CHECK_INT(num_parse("8", 5, 7, &v, &e), -ERANGE);
	CHECK_INT(v, 7);
}

TEST(sizes)
{
	static const char *const wrong[] = { "",           "g",         "1.5g",
					     "1 g",        "-1g",       "1gg",
					     "1bb",        "1e",        "01k",
					     "1kbit",      "16777216t", "18446744073709551615k",
					     "2g,optional" };

	good(num_size, "100", 100);
	good(num_size, "100b", 100);
	good(num_size, "512k", 512 * KIB);
	good(num_size, "2g", 2 * GIB);
	good(num_size, "2G", 2 * GIB);
	good(num_size, "2gb", 2 * GIB);
	good(num_size, "2GiB", 2 * GIB);
	good(num_size, "16777215t", 16777215 * TIB);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		bad(num_size, wrong[i]);
}

TEST(durations)
{
	static const char *const wrong[] = { "",   "s",   "1.5s",  "1 s",    "-1s",
					     "1w", "1hm", "1h30m", "213504d" };

	good(num_duration, "90", 90 * NS_PER_SEC);
	good(num_duration, "90s", 90 * NS_PER_SEC);
	good(num_duration, "500ms", 500 * NS_PER_MS);
	good(num_duration, "10m", 600 * NS_PER_SEC);
	good(num_duration, "10min", 600 * NS_PER_SEC);
	good(num_duration, "2h", 7200 * NS_PER_SEC);
	good(num_duration, "213503d", 213503 * (86400 * NS_PER_SEC));
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		bad(num_duration, wrong[i]);
}

TEST(thousandths)
{
	static const char *const wrong[] = { "",      ".5",  "1.", "1.2345",  "-1",  "1,5",
					     "1.5.5", "1e3", "01", "1000001", "1.5x" };

	good(num_milli, "2", 2000);
	good(num_milli, "0.5", 500);
	good(num_milli, "1.25", 1250);
	good(num_milli, "1.005", 1005);
	good(num_milli, "0", 0);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		bad(num_milli, wrong[i]);
}

TEST_MAIN()
