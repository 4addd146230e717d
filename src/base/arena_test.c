/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"
#include "base/test.h"

static bool is_zero(const unsigned char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i])
			return false;
	return true;
}

TEST(pieces_are_zeroed_aligned_and_apart)
{
	_cleanup_(arena_done) struct arena a = { 0 };
	unsigned char *last = NULL;

	for (size_t n = 1; n < 3000; n += 7) {
		unsigned char *p = arena_take(&a, n);

		CHECK((uintptr_t)p % 16 == 0);
		CHECK(is_zero(p, n));
		memset(p, 0xff, n);
		CHECK(last == NULL || *last == 0xff);
		last = p;
	}
	CHECK(!a.is_over);
}

TEST(a_piece_larger_than_any_block)
{
	_cleanup_(arena_done) struct arena a = { 0 };
	unsigned char *small = arena_take(&a, 1), *large = arena_take(&a, MIB);

	CHECK(is_zero(large, MIB));
	memset(large, 0xff, MIB);
	CHECK_INT(*small, 0);
}

TEST(going_over_the_ceiling_is_remembered)
{
	_cleanup_(arena_done) struct arena a = ARENA(64 * KIB);

	(void)arena_take(&a, KIB);
	CHECK(!a.is_over);
	(void)arena_take(&a, 64 * KIB);
	CHECK(a.is_over);
	(void)arena_take(&a, 1);
	CHECK(a.is_over);
}

TEST(what_is_given_back_can_be_taken_again)
{
	struct arena a = { 0 };

	CHECK_STR(arena_strn(&a, "abc", 2), "ab");
	arena_done(&a);
	CHECK(a.blocks == NULL);
	CHECK_STR(arena_fmt(&a, "%d", 7), "7");
	arena_done(&a);
}

TEST(long_texts_are_whole)
{
	_cleanup_(arena_done) struct arena a = { 0 };
	char text[3 * KIB];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	CHECK_INT(strlen(arena_fmt(&a, "%s%s", text, "end")), sizeof(text) + 2);
	CHECK_STR(arena_fmt(&a, "%s%s", text, "end") + sizeof(text) - 1, "end");
	text[KIB - 1] = '\0'; /* as much as fits beside its end, and one less */
	CHECK_INT(strlen(arena_fmt(&a, "%s", text)), KIB - 1);
	CHECK_INT(strlen(arena_fmt(&a, "%s.", text)), KIB);
}

TEST_MAIN()
