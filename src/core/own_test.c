/* SPDX-License-Identifier: Apache-2.0 */
/* core/own_test.c - whose a directory is, and what of the state directory is refused */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/test.h"
#include "core/own.h"

TEST(whose_it_is)
{
	static const struct {
		mode_t mode;
		uid_t uid;
		gid_t gid;
		bool is_right;
	} t[] = {
		{ S_IFDIR | 0700, 7, 7, true },   { S_IFDIR | 0755, 0, 0, true },
		{ S_IFDIR | 0755, 8, 7, false },  { S_IFDIR | 0777, 7, 7, false },
		{ S_IFDIR | 0775, 7, 7, true },   { S_IFDIR | 0775, 7, 8, false },
		{ S_IFDIR | 01777, 0, 0, true },  { S_IFDIR | 01775, 0, 8, true },
		{ S_IFREG | 01666, 7, 7, false }, { S_IFREG | 0644, 7, 7, true },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct stat st = { .st_mode = t[i].mode, .st_uid = t[i].uid, .st_gid = t[i].gid };

		CHECK_INT(own_why_not(&st, 7, 7) == NULL, t[i].is_right);
	}
}

static char dir[64];

static char *begin(void)
{
	(void)snprintf(dir, sizeof(dir), "/tmp/own-test-XXXXXX");
	CHECK(mkdtemp(dir) != NULL);
	return mem_fmt("%s/a/vitrine", dir);
}

static int check(const char *path)
{
	_free_ char *p = mem_str(path);
	struct err e = ERR_INIT;

	return own_check_state(&p, &e);
}

TEST(the_way_the_directory_and_its_parts)
{
	_free_ char *path = begin(), *up = path_parent(path), *part = mem_fmt("%s/journal", path);
	_free_ char *link = mem_fmt("%s/link", dir), *linked = mem_fmt("%s/link/vitrine", dir);

	CHECK_INT(check(path), 0); /* nothing is there yet */
	CHECK_INT(path_make(part, 0700), 0);
	CHECK_INT(check(path), 0);
	CHECK(symlink(up, link) == 0);
	CHECK_INT(check(linked), -EPERM);
	CHECK_INT(check(link), -EPERM);
	CHECK(chmod(up, 0777) == 0);
	CHECK_INT(check(path), -EPERM);
	CHECK(chmod(up, 01777) == 0);
	CHECK_INT(check(path), 0);
	CHECK(chmod(path, 0770) == 0);
	CHECK_INT(check(path), -EPERM);
	CHECK(chmod(path, 0755) == 0 && chmod(part, 0702) == 0);
	CHECK_INT(check(path), -EPERM);
	CHECK(rmdir(part) == 0 && symlink("/", part) == 0);
	CHECK_INT(check(path), -EPERM);
	CHECK_INT(path_remove(AT_FDCWD, dir), 0);
}

TEST_MAIN()
