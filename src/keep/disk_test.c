/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "keep/disk.h"

static bool is_due(const struct disk_seen *s, uint64_t max, uint64_t bytes, uint64_t now)
{
	return disk_is_due(s, max, &(struct disk_room){ .bytes = bytes, .files = 1000 }, now);
}

TEST(a_walk_is_due_when_it_could_matter)
{
	struct disk_seen s = { 0 };
	uint64_t now = 1000 * NS_PER_SEC;

	CHECK(is_due(&s, GIB, 10 * GIB, now)); /* nothing is known yet */
	s = (struct disk_seen){ .is_known = true,
				.used = 200 * MIB,
				.room = { .bytes = 10 * GIB, .files = 1000 },
				.ended_ns = now,
				.cost_ns = NS_PER_MS };
	now += NS_PER_SEC;
	CHECK(!is_due(&s, GIB, 10 * GIB, now));
	CHECK(!is_due(&s, GIB, 11 * GIB, now)); /* others made room */
	CHECK(!is_due(&s, GIB, 10 * GIB - 400 * MIB, now));
	CHECK(is_due(&s, GIB, 10 * GIB - 412 * MIB, now));
	CHECK(is_due(&s, GIB, 10 * GIB, now + 60 * NS_PER_SEC));
	s.room.files = 140000; /* a gigabyte has about 260,000 files */
	CHECK(is_due(&s, GIB, 10 * GIB, now));
	s.room.files = 120000;
	CHECK(!is_due(&s, GIB, 10 * GIB, now));
	s.used = 2 * GIB; /* the limit is another one now */
	CHECK(is_due(&s, GIB, 10 * GIB - 1, now));
}

TEST(walks_take_a_share_of_the_time)
{
	struct disk_seen s = { .is_known = true,
			       .room = { .bytes = GIB, .files = 1000 },
			       .ended_ns = 0,
			       .cost_ns = 2 * NS_PER_SEC };

	CHECK(!is_due(&s, MIB, 0, 9 * NS_PER_SEC));
	CHECK(is_due(&s, MIB, 0, 10 * NS_PER_SEC));
	CHECK(!is_due(&s, MIB, GIB, 199 * NS_PER_SEC));
	CHECK(is_due(&s, MIB, GIB, 200 * NS_PER_SEC));
}

TEST(the_less_is_left_the_sooner)
{
	struct disk_seen s = { .is_known = true };

	CHECK_INT(disk_next(&s, 1024 * TIB), 5 * NS_PER_SEC);
	CHECK(disk_next(&s, 2 * GIB) > 1900 * NS_PER_MS &&
	      disk_next(&s, 2 * GIB) <= 2 * NS_PER_SEC);
	CHECK_INT(disk_next(&s, MIB), 200 * NS_PER_MS);
	s.used = 5 * GIB;
	CHECK_INT(disk_next(&s, 4 * GIB), 200 * NS_PER_MS);
}

TEST(bytes_names_and_depth)
{
	CHECK(!disk_is_over(&(struct disk_use){ .bytes = MIB, .names = 5 }, MIB));
	CHECK(disk_is_over(&(struct disk_use){ .bytes = MIB + 1 }, MIB));
	CHECK(disk_is_over(&(struct disk_use){ .bytes = 1, .is_cut = true }, MIB));
	CHECK_INT(disk_names(MIB), 1280);
	CHECK_INT(disk_names(1024 * TIB), DISK_NAMES_ALL);
}

TEST_MAIN()
