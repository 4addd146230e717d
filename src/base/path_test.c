/* SPDX-License-Identifier: Apache-2.0 */
/* base/path_test.c - paths as text, and opening beneath a directory that somebody else fills */
#include <fcntl.h>

#include "base/path.h"
#include "base/test.h"

TEST(clean)
{
	static const char *const good[] = { "/", "/a", "/a/b", "/.a", "/..a", "/a..", "/..." };
	static const char *const bad[] = { "",   "a",    "./a",  "//",  "/a/",     "/a//b",
					   "/.", "/a/.", "/./a", "/..", "/a/../b", "~/a" };

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		CHECK(path_is_clean(good[i]));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(!path_is_clean(bad[i]));
}

static void join(const char *base, const char *rel, const char *want)
{
	_free_ char *got = path_join(base, rel);

	CHECK_STR(got, want);
	CHECK(path_is_clean(got));
}

TEST(join_is_lexical)
{
	join("/a", "b", "/a/b");
	join("/a", "", "/a");
	join("/a", "/b", "/b");
	join("/a", "..", "/");
	join("/a", "../../..", "/");
	join("/a/b", "../c/./d//e/", "/a/c/d/e");
	join("/", "x", "/x");
	join("/", "", "/");
	join("/a", "...", "/a/...");
	join("/a", "b/..", "/a");
}

TEST(beneath_works_on_components)
{
	CHECK(path_is_beneath("/a/b", "/a"));
	CHECK(path_is_beneath("/a", "/a"));
	CHECK(path_is_beneath("/a", "/"));
	CHECK(path_is_beneath("/", "/"));
	CHECK(!path_is_beneath("/ab", "/a"));
	CHECK(!path_is_beneath("/a", "/a/b"));
	CHECK(!path_is_beneath("/", "/a"));
	CHECK_STR(path_below("/a/b/c", "/a"), "b/c");
	CHECK_STR(path_below("/a", "/a"), "");
	CHECK_STR(path_below("/a/b", "/"), "a/b");
}

TEST(parent_and_name)
{
	static const char *const cases[][3] = {
		{ "/a/b", "/a", "b" }, { "/a", "/", "a" }, { "/", "/", "" }, { "a", "", "a" }
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_free_ char *parent = path_parent(cases[i][0]);

		CHECK_STR(parent, cases[i][1]);
		CHECK_STR(path_name(cases[i][0]), cases[i][2]);
	}
}

/* A directory of our own; removed by name at the end, entry by entry. */
static int make_dir(char *path)
{
	CHECK(mkdtemp(path) != NULL);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void touch(int dir, const char *name)
{
	_close_ int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
}

static int try_open(int dir, const char *rel)
{
	struct err e = ERR_INIT;
	_close_ int fd = path_open_beneath(dir, rel, O_RDONLY, &e);

	return fd < 0 ? fd : 0;
}

TEST(open_beneath_follows_nothing)
{
	char path[] = "/tmp/path_test.XXXXXX";
	_close_ int dir = make_dir(path);

	CHECK_INT(path_mkdirs(dir, "a/b", 0700), 0);
	CHECK_INT(path_mkdirs(dir, "/a/b/", 0700), 0); /* again is fine */
	touch(dir, "a/b/f");
	CHECK(symlinkat("a", dir, "link") == 0);
	CHECK(symlinkat("/etc", dir, "out") == 0);
	CHECK_INT(try_open(dir, "a/b/f"), 0);
	CHECK_INT(try_open(dir, "a/../a/b/f"), 0);
	CHECK_INT(try_open(dir, "a/none"), -ENOENT);
	CHECK_INT(try_open(dir, "link/b/f"), -ELOOP);
	CHECK_INT(try_open(dir, "out/passwd"), -ELOOP);
	CHECK_INT(try_open(dir, "../x"), -EXDEV);
	CHECK_INT(try_open(dir, "/etc/passwd"), -EXDEV);
	CHECK(path_mkdirs(dir, "link/c", 0700) < 0);
	CHECK_INT(path_mkdirs(dir, "a/b/f/c", 0700), -ENOTDIR);
	CHECK(unlinkat(dir, "link", 0) == 0);
	CHECK(unlinkat(dir, "out", 0) == 0);
	CHECK(unlinkat(dir, "a/b/f", 0) == 0);
	CHECK(unlinkat(dir, "a/b", AT_REMOVEDIR) == 0);
	CHECK(unlinkat(dir, "a", AT_REMOVEDIR) == 0);
	CHECK(rmdir(path) == 0);
}

TEST(real)
{
	struct err e = ERR_INIT;
	_free_ char *p = NULL, *q = NULL;

	CHECK_INT(path_real("/usr/../usr/.", &p, &e), 0);
	CHECK_STR(p, "/usr");
	CHECK_INT(path_real("/no/such/path", &q, &e), -ENOENT);
	CHECK(q == NULL);
}

TEST(removes_closed_trees_and_no_links)
{
	char dir[] = "/tmp/vitrine-path-XXXXXX";
	_free_ char *path = NULL;
	struct stat st;

	CHECK(mkdtemp(dir) != NULL);
	path = mem_fmt("%s/a/b/c", dir);
	CHECK_INT(path_make(path, 0700), 0);
	{
		_free_ char *link = mem_fmt("%s/a/link", dir), *keep = mem_fmt("%s/keep", dir);
		_free_ char *b = mem_fmt("%s/a/b", dir), *a = mem_fmt("%s/a", dir);

		CHECK_INT(mkdir(keep, 0700), 0);
		CHECK_INT(symlink(keep, link), 0);
		CHECK_INT(chmod(b, 0), 0);
		CHECK_INT(path_remove(AT_FDCWD, a), 0);
		CHECK(lstat(a, &st) < 0);
		CHECK_INT(lstat(keep, &st), 0);
		CHECK_INT(path_remove(AT_FDCWD, a), 0);
	}
	CHECK_INT(path_remove(AT_FDCWD, dir), 0);
}

TEST_MAIN()
