/* SPDX-License-Identifier: Apache-2.0 */
/* core/disk_note_test.c - how long a count is good for */
#include "base/test.h"
#include "core/disk_note.h"

TEST(a_count_is_good_while_little_room_is_gone)
{
	const struct disk_note n = { .when = 1000, .used = 100, .room = 5000 };

	CHECK(disk_note_holds(&n, 1000, 5000, 1000));
	CHECK(disk_note_holds(&n, 1000, 9000, 1000)); /* somebody made room */
	CHECK(disk_note_holds(&n, 1000, 4550, 1600));
	CHECK(!disk_note_holds(&n, 1000, 4549, 1600));
	CHECK(!disk_note_holds(&n, 1000, 5000, 1601));
	CHECK(!disk_note_holds(&n, 1000, 5000, 999)); /* a clock that was set back */
	CHECK(disk_note_holds(&n, 100, 5000, 1000));
	CHECK(!disk_note_holds(&n, 100, 4998, 1000));
	CHECK(!disk_note_holds(&n, 99, 5000, 1000));
}

TEST_MAIN()
