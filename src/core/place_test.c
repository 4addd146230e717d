/* SPDX-License-Identifier: Apache-2.0 */
/* core/place_test.c - what counts as the same place, the file's text, reading and keeping */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/test.h"
#include "core/place.h"

static char dir[64];

static void begin(void)
{
	_free_ char *folder = NULL;

	(void)snprintf(dir, sizeof(dir), "/tmp/place-test-XXXXXX");
	CHECK(mkdtemp(dir) != NULL);
	folder = mem_fmt("%s/state/sandboxes/box", dir);
	CHECK_INT(path_make(folder, 0700), 0);
}

static void end(void)
{
	CHECK_INT(path_remove(AT_FDCWD, dir), 0);
}

static bool is_changed(const struct place *was, const struct place *now)
{
	_free_ char *what = place_changed(was, now);

	return what != NULL;
}

TEST(what_is_the_same)
{
	char said[] = "/a/b", real[] = "/a/b", other[] = "/home/u/.ssh";
	const struct place was = { said, real, .dev = 1, .ino = 2, .born = 3, .uid = 4, true };
	struct place now = was;

	CHECK(!is_changed(&was, &now));
	now.dev = 9; /* another number after a boot */
	CHECK(!is_changed(&was, &now));
	now = was;
	now.ino = 9;
	CHECK(is_changed(&was, &now));
	now = was;
	now.born = 9; /* the inode's number was used again */
	CHECK(is_changed(&was, &now));
	now = was;
	now.uid = 0;
	CHECK(is_changed(&was, &now));
	now = was;
	now.real = other;
	CHECK(is_changed(&was, &now));
	now = was;
	now.is_dir = false;
	CHECK(is_changed(&was, &now));
}

TEST(without_births_the_device_counts)
{
	char said[] = "/a/b";
	const struct place was = { said, said, .dev = 1, .ino = 2, .uid = 4, .is_dir = true };
	struct place now = was;

	CHECK(!is_changed(&was, &now));
	now.dev = 9;
	CHECK(is_changed(&was, &now));
}

TEST(files_may_be_replaced_by_files_of_the_same_owner)
{
	char said[] = "/a/f", other[] = "/a/g";
	const struct place was = { said, said, .dev = 1, .ino = 2, .born = 3, .uid = 4 };
	struct place now = was;

	now.ino = 7;
	now.born = 8;
	CHECK(!is_changed(&was, &now));
	now.uid = 5;
	CHECK(is_changed(&was, &now));
	now = was;
	now.real = other;
	CHECK(is_changed(&was, &now));
	now = was;
	now.is_dir = true;
	CHECK(is_changed(&was, &now));
}

static int check(const struct places *was, const struct places *now, const char *workspace)
{
	struct err e = ERR_INIT;

	return places_check(was, now, &(struct place_of){ "box", workspace }, &e);
}

TEST(a_workspace_without_a_record_has_no_link_on_the_way)
{
	struct err e = ERR_INIT;
	_cleanup_(places_done) struct places none = { 0 }, now = { 0 };

	CHECK_INT(places_add(&now, "/tmp/x", "/", FD_NONE, &e), 0);
	CHECK_INT(check(&none, &now, NULL), 0); /* a grant may lead anywhere the first time */
	CHECK_INT(check(&none, &now, "/tmp/x"), -ESTALE);
	places_done(&now);
	CHECK_INT(places_add(&now, "/", "/", FD_NONE, &e), 0);
	CHECK_INT(check(&none, &now, "/"), 0);
}

TEST(kept_and_read)
{
	struct err e = ERR_INIT;
	_cleanup_(places_done) struct places none = { 0 }, now = { 0 }, was = { 0 }, more = { 0 };
	_free_ char *state = NULL, *one = NULL, *two = NULL, *away = NULL;

	begin();
	state = mem_fmt("%s/state", dir);
	one = mem_fmt("%s/o\"n\n", dir);
	two = mem_fmt("%s/two", dir);
	CHECK(mkdir(one, 0700) == 0 && mkdir(two, 0700) == 0);
	CHECK_INT(places_read(state, "box", &was, &e), 0);
	CHECK(was.n == 0);
	CHECK_INT(places_add(&now, one, one, FD_NONE, &e), 0);
	CHECK_INT(places_add(&now, one, one, FD_NONE, &e), 0); /* said twice is one */
	CHECK(now.n == 1);
	CHECK_INT(places_keep(state, "box", &none, &now, &e), 0);
	CHECK_INT(places_read(state, "box", &was, &e), 0);
	CHECK(was.n == 1 && check(&was, &now, one) == 0);
	/* What a later start does not name stays on record. */
	CHECK_INT(places_add(&more, two, two, FD_NONE, &e), 0);
	CHECK_INT(places_keep(state, "box", &was, &more, &e), 0);
	places_done(&was);
	CHECK_INT(places_read(state, "box", &was, &e), 0);
	CHECK(was.n == 2);
	/* Another directory at the same name; the old one lives on elsewhere. */
	away = mem_fmt("%s.away", one);
	CHECK(rename(one, away) == 0 && mkdir(one, 0700) == 0);
	places_done(&now);
	CHECK_INT(places_add(&now, one, one, FD_NONE, &e), 0);
	CHECK_INT(check(&was, &now, one), -ESTALE);
	end();
}

TEST(what_is_no_list_of_places)
{
	static const char *const bad[] = {
		"",
		"[]",
		"{}",
		"{\"version\":2,\"places\":[]}",
		"{\"version\":1,\"places\":[{}]}",
		"{\"version\":1,\"places\":[{\"path\":\"/a\",\"real\":\"/"
		"a\",\"device\":1,\"inode\":1,"
		"\"born\":1,\"owner\":4294967296,\"directory\":true}]}",
	};
	struct places p = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err e = ERR_INIT;

		CHECK(places_parse(bad[i], strlen(bad[i]), &p, &e) < 0);
	}
	CHECK(p.n == 0);
}

TEST_MAIN()
