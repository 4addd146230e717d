/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"

#include <fcntl.h>

#include "core/shown.h"

static struct tree_entry file(const char *path, char content)
{
	struct tree_entry en = { .path = path,
				 .name = path,
				 .parent = TREE_NONE,
				 .link_of = TREE_NONE,
				 .mode = S_IFREG | 0644,
				 .size = 1 };

	sha256(&content, 1, en.hash);
	return en;
}

static void token_of(struct tree_entry *v, size_t n, char *const *only, char *ret)
{
	const struct tree_index nothing = { 0 }, after = { .v = v, .n = n };
	_cleanup_(shown_done) struct shown s = { 0 };

	shown_of(&nothing, &after, only, &s);
	shown_token(&s, ret);
}

TEST(every_part_of_a_change_is_in_the_token)
{
	char base[SHOWN_TOKEN_BYTES], other[SHOWN_TOKEN_BYTES];
	struct tree_entry v[] = { file("a", '1'), file("b", '2') };

	token_of(v, 2, NULL, base);
	CHECK_INT(strlen(base), 32);
	token_of(v, 2, NULL, other);
	CHECK_STR(base, other);
	v[1] = file("b", '3');
	token_of(v, 2, NULL, other);
	CHECK(!str_eq(base, other));
	v[1] = file("c", '2');
	token_of(v, 2, NULL, other);
	CHECK(!str_eq(base, other));
	v[1] = file("b", '2');
	v[1].mode |= 0111;
	token_of(v, 2, NULL, other);
	CHECK(!str_eq(base, other));
	token_of(v, 1, NULL, other);
	CHECK(!str_eq(base, other));
}

TEST(a_link_is_its_target)
{
	char one[SHOWN_TOKEN_BYTES], two[SHOWN_TOKEN_BYTES];
	struct tree_entry en = file("l", '1');

	en.mode = S_IFLNK | 0777;
	en.target = "x";
	en.target_len = 1;
	token_of(&en, 1, NULL, one);
	en.target = "y";
	token_of(&en, 1, NULL, two);
	CHECK(!str_eq(one, two));
}

TEST(only_what_was_named)
{
	char *only[] = { (char[]){ "a" }, NULL };
	char one[SHOWN_TOKEN_BYTES], two[SHOWN_TOKEN_BYTES];
	struct tree_entry v[] = { file("a", '1'), file("b", '2') };

	token_of(v, 2, only, one);
	token_of(v, 1, NULL, two);
	CHECK_STR(one, two);
}

TEST(the_record_holds_what_was_shown)
{
	const struct tree_index nothing = { 0 };
	struct tree_entry v[] = { file("a", '1'), file("b", '2') }, gone = file("a", '1');
	struct tree_entry newer = file("b", '3');
	const struct tree_index after = { .v = v, .n = 1 };
	_cleanup_(shown_done) struct shown s = { 0 }, read = { 0 };
	struct err e = ERR_INIT;
	char path[] = "/tmp/shown-test-XXXXXX";
	_close_ int dir = FD_NONE;

	CHECK(mkdtemp(path) != NULL);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	shown_load(dir, &read);
	CHECK_INT(read.n, 0);
	shown_of(&nothing, &after, NULL, &s);
	CHECK_INT(shown_save(dir, &s, &e), 0);
	shown_load(dir, &read);
	CHECK(shown_has(&read, &(struct change){ .kind = CHANGE_ADDED, .b = &v[0] }));
	CHECK(!shown_has(&read, &(struct change){ .kind = CHANGE_ADDED, .b = &v[1] }));
	CHECK(!shown_has(&read, &(struct change){ .kind = CHANGE_ADDED, .b = &newer }));
	CHECK(!shown_has(&read, &(struct change){ .kind = CHANGE_REMOVED, .a = &gone }));
	CHECK_INT(unlinkat(dir, "ws.shown", 0), 0);
	CHECK_INT(rmdir(path), 0);
}

TEST_MAIN()
