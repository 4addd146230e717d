/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
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
	ignore_leave(g, "b");
	CHECK(!ignore_dir(g, "x"));
	CHECK(ignore_dir(g, "b/out"));
	CHECK(ignore_dir(g, "a/out"));
	CHECK(!ignore_is_cut(g));
	ignore_free(g);
}

/* Whoever writes the files chooses patterns and names: what is over the bound is not ignored. */
TEST(the_cost_is_bounded)
{
	_cleanup_(buf_done) struct buf text = BUF(8 * MIB);
	struct ignore *g = NULL;
	char name[241] = "";

	memset(name, 'a', 240);
	for (int i = 0; i < 4000; i++) {
		buf_puts(&text, "*");
		for (int k = 0; k < 119; k++)
			buf_puts(&text, "a");
		buf_puts(&text, "b\n");
	}
	ignore_add(&g, "", buf_cstr(&text), text.n);
	for (int i = 0; i < 1000; i++)
		CHECK(!ignore_dir(g, name));
	CHECK(ignore_is_cut(g));
	ignore_free(g);

	g = NULL;
	for (int i = 0; i < 300; i++) /* more bytes than are read */
		ignore_add(&g, "", buf_cstr(&text), 256 * KIB > text.n ? text.n : 256 * KIB);
	CHECK(ignore_is_cut(g));
	CHECK_INT(ignore_room(g), 0);
	ignore_free(g);
}

TEST_MAIN()
