/* SPDX-License-Identifier: Apache-2.0 */
/* seal/mask_test.c - words replaced whatever the cut, and nothing held back without need */
#include "base/buf.h"
#include "base/test.h"
#include "seal/mask.h"

static void put(struct buf *b, struct str s)
{
	buf_add(b, s.p, s.n);
}

static void check(const char *text, const char *want, size_t step)
{
	_cleanup_(buf_done) struct buf out = BUF(KIB);
	struct words *w = words_new();
	struct mask *m;
	struct str got;

	CHECK(words_add(w, STR("sk-secret-1"), STR("sk-PLACEHO1")));
	CHECK(words_add(w, STR("aaaaaaaab"), STR("short")));
	m = mask_new(w);
	for (size_t at = 0; at < strlen(text); at += step) {
		size_t n = strlen(text) - at < step ? strlen(text) - at : step;

		mask_feed(m, text + at, n, &got);
		put(&out, got);
	}
	mask_end(m, &got);
	put(&out, got);
	CHECK_STR(buf_cstr(&out), want);
	mask_free(m);
}

TEST(every_cut)
{
	for (size_t step = 1; step < 30; step++) {
		check("x sk-secret-1 y", "x sk-PLACEHO1 y", step);
		check("sk-secret-1sk-secret-1", "sk-PLACEHO1sk-PLACEHO1", step);
		check("sk-secret-sk-secret-1", "sk-secret-sk-PLACEHO1", step);
		/* It ends inside the word: what came of it is replaced too, but for letters that may have gone. */
		check("sk-secret", "sk-PLACEH", step);
		check("x sk", "x sk", step);
		check("", "", step);
		check("sk-sk-secret-1", "sk-sk-PLACEHO1", step);
	}
	check("aaaaaaaaaaab", "aaashort****", 100);
}

TEST(little_is_held)
{
	struct words *w = words_new();
	struct mask *m;
	struct str got;

	CHECK(words_add(w, STR("sk-secret-1"), STR("")));
	m = mask_new(w);
	mask_feed(m, "data: this", 10, &got);
	CHECK_INT(got.n, 10);
	mask_feed(m, "sk-", 3, &got);
	CHECK_INT(got.n, 3);
	mask_feed(m, "s", 1, &got);
	CHECK_INT(got.n, 0);
	mask_feed(m, "ecret-1!", 8, &got);
	CHECK(str_is(got, "********!"));
	mask_free(m);
}

TEST(short_words_are_left)
{
	struct words *w = words_new();
	char text[] = "a sk-secret-1 b";
	struct mask *m;

	CHECK(!words_add(w, STR("1234567"), STR("x")));
	CHECK(words_is_empty(w));
	CHECK(words_add(w, STR("sk-secret-1"), STR("P")));
	m = mask_new(w);
	CHECK(mask_finds(m, str_of(text)) && !mask_finds(m, STR("a sk-")));
	CHECK(mask_finds(m, STR("a sk-secret-")) && !mask_finds(m, STR("a sk-secret- b")));
	CHECK(mask_text(m, text, strlen(text)));
	CHECK_STR(text, "a P********** b");
	CHECK(!mask_text(m, text, strlen(text)));
	mask_free(m);
}

/* A placeholder may end as another word begins: it stays what it is. */
TEST(a_placeholder_is_no_word)
{
	struct words *w = words_new();
	char text[] = "x sk-secret-1";
	struct mask *m;

	CHECK(words_add(w, STR("sk-secret-1"), STR("sk-PL-other")));
	CHECK(words_add(w, STR("other-one-2"), STR("***********")));
	m = mask_new(w);
	CHECK(mask_text(m, text, strlen(text)));
	CHECK_STR(text, "x sk-PL-other");
	mask_free(m);
}

/* Half a word at the end is hidden. */
TEST(half_a_word)
{
	struct words *w = words_new();
	struct mask *m;
	struct str got;

	CHECK(words_add(w, STR("sk-secret-1"), STR("sk-PLACEHO1")));
	m = mask_new(words_ref(w));
	mask_feed(m, "a sk-secret", 11, &got);
	CHECK(str_is(got, "a "));
	mask_end(m, &got);
	CHECK(str_is(got, "sk-PLACEH"));
	mask_free(m);
	words_unref(w);
}

TEST(words_that_come_later)
{
	struct words *first = words_new(), *both = words_new();
	_cleanup_(buf_done) struct buf out = BUF(KIB);
	struct mask *m;
	struct str got;

	CHECK(words_add(first, STR("sk-secret-1"), STR("sk-PLACEHO1")));
	CHECK(words_add(both, STR("another-one"), STR("ANOTHER-ONE")));
	CHECK(words_add(both, STR("sk-secret-1"), STR("sk-PLACEHO1")));
	m = mask_new(first);
	mask_feed(m, "another-one sk-sec", 18, &got);
	put(&out, got);
	mask_learn(m, both);
	mask_feed(m, "ret-1 another-one", 17, &got);
	put(&out, got);
	CHECK_STR(buf_cstr(&out), "another-one sk-PLACEHO1 ANOTHER-ONE");
	mask_free(m);
}

/* Against the simplest way to do it, over texts of few letters, in pieces of every size. */
TEST(as_if_replaced_at_once)
{
	uint32_t state = 1;

	for (int round = 0; round < 2000; round++) {
		_cleanup_(buf_done) struct buf out = BUF(KIB);
		struct words *w = words_new();
		char text[200], want[200];
		struct mask *m;
		struct str got;
		size_t n = sizeof(text) - 1, at = 0;

		for (size_t i = 0; i < n; i++) {
			state = state * 1103515245 + 12345;
			text[i] = "ab"[state >> 16 & 1];
		}
		text[n - 1] = 'c'; /* it does not end inside a word */
		text[n] = '\0';
		CHECK(words_add(w, STR("abbabaab"), STR("XXXXXXXX")));
		CHECK(words_add(w, STR("bbbaabaab"), STR("YYYYYYYYY")));
		m = mask_new(w);
		memcpy(want, text, sizeof(want));
		(void)mask_text(m, want, n);
		while (at < n) {
			size_t k;

			state = state * 1103515245 + 12345;
			k = 1 + (state >> 16) % 40;
			k = n - at < k ? n - at : k;
			mask_feed(m, text + at, k, &got);
			put(&out, got);
			at += k;
		}
		mask_end(m, &got);
		put(&out, got);
		CHECK_INT(out.n, n);
		/* No word is left, but for the first letters that may go. */
		CHECK(strstr(buf_cstr(&out), "abbabaab") == NULL &&
		      strstr(buf_cstr(&out), "bbbaabaab") == NULL);
		CHECK((strstr(want, "XXXX") || strstr(want, "YYYY")) ==
		      (strstr(buf_cstr(&out), "XXX") || strstr(buf_cstr(&out), "YYY")));
		mask_free(m);
	}
}

TEST_MAIN()
