/* SPDX-License-Identifier: Apache-2.0 */
/* sys/subids_test.c - what a file gives to whom, and the maps that come of it */
#include "sys/subids.h"

#include "base/test.h"

TEST(finds)
{
	uint32_t first = 0;

	CHECK(subids_find("bob:200000:65536\nann:100000:65536\n", "ann", 1000, &first));
	CHECK(first == 100000);
	CHECK(subids_find("1000:300000:70000", "ann", 1000, &first));
	CHECK(first == 300000);
	CHECK(subids_find("ann:100000:10\nann:400000:65536\n", "ann", 1000, &first));
	CHECK(first == 400000);
}

TEST(refuses)
{
	static const char *const bad[] = {
		"",
		"ann",
		"ann:",
		"ann:100000",
		"ann:100000:",
		"ann:100000:65535\n",
		"ann:0:65536\n",
		"ann:1000:4000000\n",
		"ann:4294967295:65536\n",
		"ann:-1:65536\n",
		"ann:100000:65536x\n",
		"annie:100000:65536\n",
		"an:100000:65536\n",
		" ann:100000:65536\n",
		"10000:100000:65536\n",
	};
	uint32_t first;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(!subids_find(bad[i], "ann", 1000, &first));
	/* A range that holds the account itself would give it twice. */
	CHECK(!subids_find("ann:100000:65536\n", "ann", 100005, &first));
}

TEST(maps)
{
	struct id_map m = subids_map(1000, 100000);
	char text[128];

	subids_text(&m, text, sizeof(text));
	CHECK_STR(text, "0 100000 1000\n1000 1000 1\n1001 101001 64535\n");
	m = subids_map(70000, 100000);
	subids_text(&m, text, sizeof(text));
	CHECK_STR(text, "0 100000 65536\n70000 70000 1\n");
	m = subids_map(65535, 100000);
	subids_text(&m, text, sizeof(text));
	CHECK_STR(text, "0 100000 65535\n65535 65535 1\n");
	m = subids_map_all(1888065536);
	subids_text(&m, text, sizeof(text));
	CHECK_STR(text, "0 1888065536 65536\n");
}

TEST_MAIN()
