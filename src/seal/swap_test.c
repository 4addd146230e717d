/* SPDX-License-Identifier: Apache-2.0 */
/* seal/swap_test.c - placeholders become values of any length, wherever the text is cut */
#include "base/buf.h"
#include "base/test.h"
#include "seal/swap.h"

/* The text fed in pieces of at most `step` bytes; what came out. */
static void feed(struct swap *s, const char *text, size_t step, struct buf *out)
{
	size_t n = strlen(text);
	struct str got;

	for (size_t at = 0; at < n; at += step) {
		CHECK_INT(swap_feed(s, text + at, n - at < step ? n - at : step, &got), 0);
		buf_add(out, got.p, got.n);
	}
	swap_end(s, &got);
	buf_add(out, got.p, got.n);
}

TEST(any_length_across_any_cut)
{
	static const struct {
		const char *word, *by, *text, *want;
	} cases[] = {
		{ "sk-hold-1", "sk-real-1", "a sk-hold-1 b sk-hold-1", "a sk-real-1 b sk-real-1" },
		{ "sk-hold-1", "ghp_longer-than-it", "sk-hold-1sk-hold-1.",
		  "ghp_longer-than-itghp_longer-than-it." },
		{ "sk-hold-1", "x", "sk-sk-sk-hold-1 sk-hold-", "sk-sk-x sk-hold-" },
		{ "aab", "aaX", "aaab aab aa", "aaaX aaX aa" },
		{ "aaab", "Y", "aaaab aaaaaab", "aY aaaY" },
		{ "ababac", "abab", "abababac ababa", "ababab ababa" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		for (size_t step = 1; step < 32; step++) {
			_cleanup_(buf_done) struct buf out = BUF(KIB);
			struct swap *s = swap_new();

			CHECK(swap_is_empty(s));
			swap_add(s, str_of(cases[i].word), str_of(cases[i].by), 3);
			CHECK_INT(swap_resizes(s), strlen(cases[i].word) != strlen(cases[i].by));
			feed(s, cases[i].text, step, &out);
			CHECK_STR(buf_cstr(&out), cases[i].want);
			CHECK_INT(swap_growth(s),
				  (int64_t)strlen(cases[i].want) - (int64_t)strlen(cases[i].text));
			CHECK_INT(swap_secrets(s), 8);
			swap_free(s);
		}
}

/* Two words, one the beginning of the other's value; and the letters that go out at once are those of both. */
TEST(two_words)
{
	for (size_t step = 1; step < 24; step++) {
		_cleanup_(buf_done) struct buf out = BUF(KIB);
		struct swap *s = swap_new();

		swap_add(s, STR("sk-one"), STR("sk-two-and-more"), 0);
		swap_add(s, STR("sk-two"), STR("gh"), 1);
		feed(s, "sk-one sk-two sk-on sk-ones", step, &out);
		CHECK_STR(buf_cstr(&out), "sk-two-and-more gh sk-on sk-two-and-mores");
		CHECK_INT(swap_secrets(s), 3);
		swap_free(s);
	}
}

/* A body that pauses behind the first letters of a word is not held up, where the value begins in the same way. */
TEST(common_letters_go_on)
{
	struct swap *s = swap_new();
	struct str got;

	swap_add(s, STR("sk-hold-1"), STR("sk-real-long-1"), 0);
	CHECK_INT(swap_feed(s, "words", 5, &got), 0);
	CHECK(str_is(got, "words"));
	CHECK_INT(swap_feed(s, "k-", 2, &got), 0);
	CHECK(str_is(got, "k-"));
	CHECK_INT(swap_feed(s, "h", 1, &got), 0);
	CHECK_INT(got.n, 0);
	CHECK_INT(swap_feed(s, "old-1", 5, &got), 0);
	CHECK(str_is(got, "real-long-1"));
	swap_add(s, STR("k-other-1"), STR("z"), 0);
	CHECK_INT(swap_feed(s, "k", 1, &got), 0);
	CHECK_INT(got.n, 0);
	swap_free(s);
}

TEST(growth_is_bounded)
{
	_free_ char *value = mem_new(16 * 1024 + 1, 1);
	struct swap *s = swap_new();
	struct str got;
	size_t n = 0;

	memset(value, 'v', 16 * 1024);
	swap_add(s, STR("holder-1"), str_of(value), 0);
	while (n < 100 && swap_feed(s, "holder-1", 8, &got) == 0)
		n++;
	CHECK_INT(n, 16);
	swap_free(s);
}

TEST_MAIN()
