/* SPDX-License-Identifier: Apache-2.0 */
/* core/def_test.c - names, the definition's text, making, owning, renaming, removing */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/test.h"
#include "core/def.h"

static char *scratch(void)
{
	static char dir[64];

	(void)snprintf(dir, sizeof(dir), "/tmp/def-test-XXXXXX");
	CHECK(mkdtemp(dir) != NULL);
	return dir;
}

static void clean(const char *dir)
{
	CHECK(path_remove(AT_FDCWD, dir) == 0);
}

static struct def some_def(const char *name)
{
	struct def d = { .name = mem_str(name),
			 .agent = mem_str("shell"),
			 .workspace = mem_str("/home/u/a \"b\"\t\xc3\xa9") };

	def_add_flag(&d, "--memory=1g");
	def_add_flag(&d, "--env=A=\n");
	return d;
}

TEST(names)
{
	static const char *const good[] = { "a", "shell-proj", "A_b.c-9", "runner", "0" };
	static const char *const bad[] = { "",    ".",   "..",   "-a",      ".a",   "a/b",
					   "a b", "a:b", "run-", "run-abc", "\xff", "a\n" };
	char name[67];

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		CHECK(def_is_name(good[i]));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(!def_is_name(bad[i]));
	memset(name, 'a', sizeof(name));
	name[64] = '\0';
	CHECK(def_is_name(name));
	name[64] = 'a';
	name[65] = '\0';
	CHECK(!def_is_name(name));
}

TEST(default_names_are_names)
{
	static const char *const dirs[] = { "/",           "/a",         "/home/u/my project",
					    "/x/\xff\xfe", "/x/.hidden", "/x/-y" };
	char deep[300] = "/";

	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		for (int is_long = 0; is_long < 2; is_long++) {
			_free_ char *name = def_default_name("shell", dirs[i], is_long);

			CHECK(def_is_name(name));
		}
	memset(deep + 1, 'x', sizeof(deep) - 2);
	_free_ char *name = def_default_name("shell", deep, true);
	_free_ char *a = def_default_name("shell", "/a/p", true);
	_free_ char *b = def_default_name("shell", "/b/p", true);

	CHECK(def_is_name(name));
	CHECK(!str_eq(a, b));
}

TEST(made_read_listed_removed)
{
	char *dir = scratch();
	_cleanup_(def_done) struct def d = some_def("box"), back = { 0 }, twin = some_def("box");
	struct owned o = OWNED_NONE, second = OWNED_NONE;
	struct err e = ERR_INIT;
	char **names = NULL;

	CHECK_INT(def_read(dir, "box", &back, &e), -ENOENT);
	CHECK_INT(def_create(dir, &d, &e), 0);
	CHECK_INT(def_create(dir, &twin, &e), -EEXIST);
	CHECK_INT(def_read(dir, "box", &back, &e), 0);
	CHECK_STR(back.workspace, d.workspace);
	CHECK_STR(back.flags[1], "--env=A=\n");
	CHECK_STR(back.id, d.id);
	CHECK_INT(def_list(dir, false, &names, &e), 0);
	CHECK(names[0] && str_eq(names[0], "box") && names[1] == NULL);
	def_list_free(names);
	CHECK_INT(def_own(dir, "box", &o, &e), 0);
	CHECK_INT(def_own(dir, "box", &second, &e), -EBUSY);
	CHECK_INT(def_rename(dir, "box", "other", &o, &e), 0);
	CHECK_INT(def_rename_back(dir, "other", "box", &o, &e), 0);
	def_done(&back);
	CHECK_INT(def_read(dir, "box", &back, &e), 0);
	CHECK_STR(back.name, "box");
	CHECK_INT(def_rename(dir, "box", "other", &o, &e), 0);
	def_rename_done(&o);
	def_done(&back);
	CHECK_INT(def_read(dir, "other", &back, &e), 0);
	CHECK_STR(back.name, "other");
	CHECK_INT(def_remove(dir, "other", &o, &e), 0);
	CHECK_INT(def_own(dir, "other", &o, &e), -ENOENT);
	CHECK_INT(def_list(dir, true, &names, &e), 0);
	CHECK(names[0] == NULL);
	def_list_free(names);
	clean(dir);
}

TEST(what_is_no_text_is_refused)
{
	char *dir = scratch();
	_cleanup_(def_done) struct def d = some_def("box");
	struct err e = ERR_INIT;

	free(d.workspace);
	d.workspace = mem_str("/x/\xff");
	CHECK(def_create(dir, &d, &e) < 0);
	CHECK(e.kind == ERR_USAGE);
	clean(dir);
}

TEST(crashes_are_cleaned_up)
{
	char *dir = scratch();
	_free_ char *dead = mem_fmt("%s/sandboxes/run-dead/x", dir);
	_free_ char *trash = mem_fmt("%s/sandboxes/.rm-1/home/deep", dir);
	_free_ char *run = mem_fmt("%s/sandboxes/run-1", dir);
	_free_ char *lock = mem_fmt("%s/sandboxes/run-1/lock", dir);
	_free_ char *gone = mem_fmt("%s/sandboxes/.rm-1", dir);

	CHECK_INT(path_make(dead, 0700), 0);
	CHECK_INT(path_make(trash, 0700), 0);
	CHECK_INT(path_make(run, 0700), 0);
	fd_close(open(lock, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	def_clean(dir, NULL);
	CHECK(access(run, F_OK) < 0);
	CHECK(access(gone, F_OK) < 0);
	CHECK(access(dead, F_OK) == 0); /* not empty and without a lock: not ours to judge */
	clean(dir);
}

TEST_MAIN()
