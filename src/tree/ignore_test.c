/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "tree/ignore.h"

static bool ignores(const char *text, const char *path)
{
	struct ignore *g = NULL;
	bool is;

	ignore_add(&g, "", text, strlen(text));
	is = ignore_dir(g, path);
	ignore_free(g);
	return is;
}

TEST(patterns)
{
	CHECK(ignores("node_modules/\n", "node_modules"));
	CHECK(ignores("node_modules\n", "a/b/node_modules"));
	CHECK(ignores("/build\n", "build"));
	CHECK(!ignores("/build\n", "a/build"));
	CHECK(ignores("a/build/\n", "a/build"));
	CHECK(!ignores("a/build/\n", "x/a/build"));
	CHECK(ignores("**/out\n", "x/a/out"));
	CHECK(ignores("target*  \r\n", "target-2"));
	CHECK(!ignores("# build\n", "# build"));
	CHECK(!ignores("x\n!x\n", "x"));
	CHECK(ignores("!x\nx\n", "x"));
	CHECK(!ignores("*\n", ".git"));
	CHECK(!ignores("", "x"));
	CHECK(!ignores("[\n/\n!\n", "x"));
}

TEST(deeper_files_beat_higher_ones)
{
	struct ignore *g = NULL;

	ignore_add(&g, "", "out\n", 4);
	ignore_add(&g, "a", "!out\n/x\n", 8);
	CHECK(!ignore_dir(g, "a/out"));
	CHECK(!ignore_dir(g, "a/b/out"));
	CHECK(ignore_dir(g, "a/x"));
	CHECK(!ignore_dir(g, "a/b/x"));
	CHECK(!ignore_dir(g, "x"));
	CHECK(ignore_dir(g, "b/out"));
	ignore_leave(g, "b");
	CHECK(ignore_dir(g, "a/out"));
	ignore_free(g);
}

TEST_MAIN()
