/* SPDX-License-Identifier: Apache-2.0 */
/* guard/pattern_test.c - patterns against the library's own fnmatch(3), lists against what rules mean by them */
#include "guard/pattern.h"

#include <fnmatch.h>

#include "base/test.h"
#include "guard/rule.h"

static void check_pair(const char *pattern, const char *s)
{
	bool want = fnmatch(pattern, s, 0) == 0, want_fold = fnmatch(pattern, s, FNM_CASEFOLD) == 0;
	bool got = pattern_fits(pattern, strlen(pattern), s);
	bool got_fold = pattern_fits_fold(pattern, s, strlen(s));

	if (got != want || got_fold != want_fold)
		(void)fprintf(stderr, "'%s' and '%s': %d %d\n", pattern, s, got, got_fold);
	CHECK(got == want && got_fold == want_fold);
}

TEST(patterns_as_the_library_has_them)
{
	static const char *const patterns[] = {
		"",        "*",        "?",      "a",     "A",      "a*",     "*a",
		"*a*",     "a*b",      "a*b*c",  "**",    "?*.pem", "*.PEM",  ".env.*",
		"sd[a-z]", "sd[a-z]*", "sd\\**", "[!a]*", "a?c",    "*/.ssh", "~/.ssh/*",
		"a\\",     "[",        "[a",     "a]",    "*]",     "\\",     "[[:alpha:]]*",
	};
	static const char *const texts[] = {
		"",     "a",    "A",     "b",      "ab",  "abc",      "aXbYc", "x.pem",     "X.Pem",
		".pem", ".env", ".env.", ".env.x", "sda", "sd*",      "sdA1",  "/x/.ssh",   "a\\",
		"[",    "[a",   "a]",    "]",      "\\",  "\xc3\xa9", "a\nb",  "~/.ssh/id",
	};

	for (size_t i = 0; i < ARRAY_LEN(patterns); i++)
		for (size_t k = 0; k < ARRAY_LEN(texts); k++)
			check_pair(patterns[i], texts[k]);
}

static void fill(char *to, size_t most, const char *from, uint64_t *state)
{
	size_t n;

	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	n = (*state >> 33) % most;
	for (size_t i = 0; i < n; i++) {
		*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
		to[i] = from[(*state >> 33) % strlen(from)];
	}
	to[n] = '\0';
}

TEST(random_patterns_as_the_library_has_them)
{
	uint64_t state = 1;
	char pattern[12], s[12];

	for (int i = 0; i < 200000 && test_failures == 0; i++) {
		fill(pattern, sizeof(pattern), "aabBc.*?", &state);
		fill(s, sizeof(s), "aabBc.*", &state);
		check_pair(pattern, s);
		fill(pattern, sizeof(pattern), "aabB-!*?[]\\", &state);
		fill(s, sizeof(s), "aabB-]\\", &state);
		check_pair(pattern, s);
	}
}

/* A part of a longer text, as in "a*|b". */
TEST(a_pattern_ends_where_it_is_told)
{
	CHECK(pattern_fits("ab|c", 2, "ab"));
	CHECK(!pattern_fits("ab|c", 2, "ab|c"));
	CHECK(pattern_fits("a*|c", 2, "axxx"));
	CHECK(pattern_fits("[ab]|c", 4, "b"));
	CHECK(!pattern_fits("[ab]|c", 4, "c"));
}

TEST(what_lies_below_a_directory)
{
	CHECK(pattern_leads_below("/a/b/*", "/a"));
	CHECK(pattern_leads_below("/a/b/*", "/A/B"));
	CHECK(pattern_leads_below("*/.ssh/x", "/a"));
	CHECK(pattern_leads_below("/a*", "/a/b"));
	CHECK(!pattern_leads_below("/a/b", "/a/b"));
	CHECK(!pattern_leads_below("/a/b", "/a/bc"));
	CHECK(!pattern_leads_below("/ab/c", "/a"));
	CHECK(!pattern_leads_below("/a", "/a/b"));
}

TEST(lists)
{
	char longest[600], list[700];

	CHECK(rules_list_has("a|bc|d", "a") && rules_list_has("a|bc|d", "bc") &&
	      rules_list_has("a|bc|d", "d"));
	CHECK(!rules_list_has("a|bc|d", "b") && !rules_list_has("a|bc|d", "bcd") &&
	      !rules_list_has("a|bc|d", "a|bc"));
	CHECK(!rules_list_has("a|b", "") && rules_list_has("a||b", ""));
	CHECK(!rules_list_has("", "") && !rules_list_has(NULL, "a"));
	CHECK(rules_list_fits("x|a*|y", "abc") && !rules_list_fits("x|a*|y", "xa"));
	CHECK(!rules_list_fits("a*|b", "b|c") && !rules_list_fits(NULL, "a"));
	/* No alternative is too long to count. */
	memset(longest, 'z', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	(void)snprintf(list, sizeof(list), "a|%s|b", longest);
	CHECK(rules_list_has(list, longest) && rules_list_fits(list, longest));
	CHECK(rules_list_has(list, "b"));
}

TEST_MAIN()
