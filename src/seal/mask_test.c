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
	struct mask *m = mask_new();
	struct str got;

	CHECK(mask_add(m, STR("sk-secret-1"), STR("sk-PLACEHO1")));
	CHECK(mask_add(m, STR("aaaaaaaab"), STR("short")));
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
	struct mask *m = mask_new();
	struct str got;

	CHECK(mask_add(m, STR("sk-secret-1"), STR("")));
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
	struct mask *m = mask_new();
	char text[] = "a sk-secret-1 b";

	CHECK(!mask_add(m, STR("1234567"), STR("x")));
	CHECK(mask_is_empty(m));
	CHECK(mask_add(m, STR("sk-secret-1"), STR("P")));
	CHECK(mask_text(m, text, strlen(text)));
	CHECK_STR(text, "a P********** b");
	CHECK(!mask_text(m, text, strlen(text)));
	mask_free(m);
}

TEST_MAIN()
