/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "tree/tree.h"

static void check(const char *a, const char *b, const char *want)
{
	_cleanup_(buf_done) struct buf out = BUF(MIB);
	struct text_count c;

	text_diff(a, strlen(a), b, strlen(b), &c, &out);
	CHECK_STR(buf_cstr(&out), want);
}

TEST(small)
{
	check("", "", "");
	check("a\n", "a\n", "");
	check("a\n", "b\n", "@@ -1 +1 @@\n-a\n+b\n");
	check("", "a\n", "@@ -0,0 +1 @@\n+a\n");
	check("a\nb\n", "", "@@ -1,2 +0,0 @@\n-a\n-b\n");
	check("a\nb\nc\n", "a\nc\n", "@@ -1,3 +1,2 @@\n a\n-b\n c\n");
	check("a", "a\n", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n");
	check("x", "x\ny",
	      "@@ -1 +1,2 @@\n-x\n\\ No newline at end of file\n+x\n+y\n\\ No newline at "
	      "end of file\n");
}

TEST(context_and_hunks)
{
	check("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n", "1\n2\n3\n4\nX\n6\n7\n8\n9\n10\n11\n12\n",
	      "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+X\n 6\n 7\n 8\n");
	check("a\n2\n3\n4\n5\n6\n7\n8\n9\nb\n", "A\n2\n3\n4\n5\n6\n7\n8\n9\nB\n",
	      "@@ -1,4 +1,4 @@\n-a\n+A\n 2\n 3\n 4\n@@ -7,4 +7,4 @@\n 7\n 8\n 9\n-b\n+B\n");
}

TEST(far_apart_is_still_right)
{
	_cleanup_(buf_done) struct buf a = BUF(MIB);
	_cleanup_(buf_done) struct buf b = BUF(MIB);
	struct text_count c;

	for (int i = 0; i < 5000; i++) {
		buf_printf(&a, "a%d\n", i);
		buf_printf(&b, "b%d\n", i);
	}
	text_diff(a.p, a.n, b.p, b.n, &c, NULL);
	CHECK_INT(c.added, 5000);
	CHECK_INT(c.removed, 5000);
}

TEST_MAIN()
