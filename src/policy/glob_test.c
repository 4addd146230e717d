/* SPDX-License-Identifier: Apache-2.0 */
/* policy/glob_test.c - what a pattern matches, what is no pattern, and that no pattern is slow */
#include <time.h>

#include "base/test.h"
#include "policy/policy.h"

static void yes(const char *pattern, const char *rel)
{
	struct err e = ERR_INIT;

	if (glob_check(pattern, &e) < 0)
		CHECK_STR(e.msg, pattern);
	if (!glob_match(pattern, rel)) {
		(void)fprintf(stderr, "'%s' should match '%s'\n", pattern, rel);
		CHECK(false);
	}
}

static void no(const char *pattern, const char *rel)
{
	struct err e = ERR_INIT;

	if (glob_check(pattern, &e) < 0)
		CHECK_STR(e.msg, pattern);
	if (glob_match(pattern, rel)) {
		(void)fprintf(stderr, "'%s' should not match '%s'\n", pattern, rel);
		CHECK(false);
	}
}

TEST(names_at_any_depth)
{
	yes(".env", ".env");
	yes(".env", "a/b/.env");
	no(".env", ".env/x"); /* covering what lies below is the walker's work */
	no(".env", ".envx");
	no(".env", "x.env");
	no(".env", "");
	yes("*.p12", "a/x.p12");
	yes("*.p12", ".p12");
	no("*.p12", "a.p12/x");
	yes("*", ".hidden");
	yes("?", "x");
	no("?", "xy");
	yes("?", "\xc3\xa9");
	yes("???", "a\xc3\xa9z");
	no("??", "\xc3\xa9");
	yes("?", "\xff");
}

TEST(anchored)
{
	yes("a/b", "a/b");
	no("a/b", "x/a/b");
	no("a/b", "a/b/c");
	no("a/b", "a");
	yes("a/*/c", "a/b/c");
	no("a/*/c", "a/b/b/c");
	no("a/*", "a");
	no("a*b/c", "a/b/c"); /* a star never crosses a slash */
	no("a?b/c", "a/b/c");
	no("a[!x]b/c", "a/b/c");
}

TEST(any_depth)
{
	yes("**/.aws/credentials", ".aws/credentials");
	yes("**/.aws/credentials", "x/y/.aws/credentials");
	no("**/.aws/credentials", "x.aws/credentials");
	no("**/.aws/credentials", ".aws/x/credentials");
	yes("a/**/z", "a/z");
	yes("a/**/z", "a/b/c/z");
	no("a/**/z", "a/b/c/zz");
	yes("a/**", "a/b");
	yes("a/**", "a/b/c");
	no("a/**", "a");
	no("a/**", "ab/c");
	yes("**", "a");
	yes("**", "a/b");
	yes("**/**/x", "x");
	yes("**/a/**/b/**/c", "q/a/w/b/a/b/c");
	no("**/a/**/b/**/c", "q/a/w/c/a/b/d");
	yes("**/x/*/y", "x/x/1/y");
}

TEST(classes_and_escapes)
{
	yes("[abc]", "b");
	no("[abc]", "d");
	yes("[a-c]x", "bx");
	no("[a-c]x", "dx");
	yes("[!a-c]x", "dx");
	no("[!a-c]x", "ax");
	yes("[^a]", "b");
	yes("[]]", "]");
	yes("[!]]", "x");
	yes("[a-]", "-");
	yes("[!a]", "\xc3\xa9"); /* one character, not one byte */
	yes("\\*", "*");
	no("\\*", "x");
	yes("\\!x", "!x");
	yes("a\\[b", "a[b");
	yes("a\\?", "a?");
	no("a\\?", "ab");
	yes("*\\**", "a*b");
	no("*\\**", "ab");
}

TEST(not_a_pattern)
{
	static const char *const bad[] = { "",     "/a",         "a/",    "a//b",  "a/./b",
					   "../a", "a/..",       "a**",   "**a/b", "a/b**/c",
					   "***",  "[a",         "[]",    "[a/b]", "[",
					   "a\\",  "a\\/b",      "[z-a]", "[+-0]", "!a",
					   "~/x",  "[\xc3\xa9]", "[\\]]", "a\xff", "\xc3*\xa9" };
	struct err e = ERR_INIT;
	char big[1100];

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		if (glob_check(bad[i], &e) >= 0)
			CHECK_STR("accepted", bad[i]);
		(void)glob_match(bad[i], "a/b"); /* must at least be safe */
	}
	memset(big, 'a', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	CHECK(glob_check(big, &e) < 0);
}

TEST(last_match_decides)
{
	struct items l = { 0 };

	items_add(&l, ".env", LAYER_BUILTIN);
	items_add(&l, ".env.*", LAYER_BUILTIN);
	items_add(&l, "!.env.example", LAYER_BUILTIN);
	CHECK_INT(items_match(&l, "a/.env"), 0);
	CHECK_INT(items_match(&l, ".env.local"), 1);
	CHECK_INT(items_match(&l, ".env.example"), -1);
	CHECK_INT(items_match(&l, "other"), -1);
	CHECK_INT(items_match(&l, ""), -1);
	items_add(&l, "x/.env.example", LAYER_PROJECT);
	CHECK_INT(items_match(&l, "x/.env.example"), 3);
	CHECK_INT(items_match(&l, "y/.env.example"), -1);
	items_done(&l);
	CHECK_INT(items_match(&l, "x"), -1);
}

static double seconds(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Patterns on which a backtracking matcher takes longer than anybody waits. */
TEST(no_exponential_case)
{
	char name[256], deep[512] = { 0 };
	double start = seconds();

	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (size_t i = 0; i + 2 < sizeof(deep); i += 2) {
		deep[i] = 'a';
		deep[i + 1] = '/';
	}
	deep[sizeof(deep) - 2] = 'a';
	no("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*[b]", name);
	no("**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/*[b]", deep);
	no("**/*a*/**/*a*/**/*a*/**/*a*/**/*a*/**/*a*/**/*a*/[b]", deep);
	CHECK(seconds() - start < 1.0);
}

TEST_MAIN()
