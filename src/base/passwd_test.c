/* SPDX-License-Identifier: Apache-2.0 */
/* base/passwd_test.c - whole names and whole numbers */
#include "base/passwd.h"
#include "base/test.h"

TEST(members_of_a_group)
{
	static const char text[] = "root:x:0:\n"
				   "docker:x:106:ann,bob\n"
				   "not a line\n"
				   "1060:x:1060:eve\n"
				   "again:x:106:dan";

	CHECK(group_has(text, 106, "ann"));
	CHECK(group_has(text, 106, "bob"));
	CHECK(group_has(text, 106, "dan"));
	CHECK(!group_has(text, 106, "an"));
	CHECK(!group_has(text, 106, "anna"));
	CHECK(!group_has(text, 106, "ann,bob"));
	CHECK(!group_has(text, 106, "eve"));
	CHECK(!group_has(text, 10, "ann"));
	CHECK(!group_has(text, 0, "ann"));
	CHECK(!group_has(text, 0, ""));
	CHECK(!group_has("", 0, "ann"));
	CHECK(!group_has("a:x:1", 1, "ann"));
}

TEST(a_line_of_passwd)
{
	char good[] = "ann:x:1001:1002:Ann:/home/ann:/bin/sh", bad[] = "ann:x:1001:1002:Ann:/home/"
								       "ann";
	struct passwd_line p;

	CHECK(passwd_parse(good, &p));
	CHECK_STR(p.name, "ann");
	CHECK_INT(p.gid, 1002);
	CHECK(!passwd_parse(bad, &p));
}

TEST_MAIN()
