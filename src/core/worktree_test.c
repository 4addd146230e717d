/* SPDX-License-Identifier: Apache-2.0 */
/* core/worktree_test.c - which names are branches, and what is carried out of copies that were written inside */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "base/test.h"
#include "core/worktree.h"

#define ONE "1111111111111111111111111111111111111111"
#define TWO "2222222222222222222222222222222222222222"

TEST(names_of_branches)
{
	static const char *const good[] = { "refs/heads/a", "refs/heads/feature/x",
					    "refs/heads/v1.2-\xc3\xa9" };
	static const char *const bad[] = { "",
					   "a",
					   "refs/tags/a",
					   "refs/heads/",
					   "refs/heads/a/",
					   "refs/heads/../../config",
					   "refs/heads/.a",
					   "refs/heads/a/.b",
					   "refs/heads//a",
					   "refs/heads/a.lock",
					   "refs/heads/a.lock/b",
					   "refs/heads/a b",
					   "refs/heads/a\n",
					   "refs/heads/a~1",
					   "refs/heads/a:b",
					   "refs/heads/@{0}",
					   "refs/stash" };

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		CHECK(worktree_is_branch(good[i]));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(!worktree_is_branch(bad[i]));
}

static char dir[64];

static char *in(const char *rel)
{
	return mem_fmt("%s/%s", dir, rel);
}

static void put(const char *rel, const char *text)
{
	_free_ char *path = in(rel), *parent = path_parent(path);
	_close_ int fd = FD_NONE;

	CHECK_INT(path_make(parent, 0755), 0);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	CHECK(fd >= 0 && io_write_all(fd, text, strlen(text)) == 0);
}

static bool is_there(const char *rel)
{
	_free_ char *path = in(rel);

	return access(path, F_OK) == 0;
}

static void has(const char *rel, const char *text)
{
	_cleanup_(buf_done) struct buf b = BUF(KIB);
	_free_ char *path = in(rel);
	struct err e = ERR_INIT;

	CHECK_INT(io_read_file(path, &b, &e), 0);
	CHECK_STR(buf_cstr(&b), text);
}

/* A repository with a worktree on branch b, and a place for it. */
static void begin(void)
{
	_free_ char *common = NULL, *own = NULL, *place = NULL;
	static char branch[] = "refs/heads/b";
	struct worktree w = { .branch = branch };
	struct err e = ERR_INIT;

	(void)snprintf(dir, sizeof(dir), "/tmp/worktree-test-XXXXXX");
	CHECK(mkdtemp(dir) != NULL);
	put("g/HEAD", "ref: refs/heads/main\n");
	put("g/refs/heads/b", ONE "\n");
	put("g/refs/heads/main", ONE "\n");
	put("g/worktrees/x/HEAD", "ref: refs/heads/b\n");
	w.common = common = in("g");
	w.own = own = in("g/worktrees/x");
	place = in("place");
	CHECK_INT(worktree_prepare(&w, place, &e), 0);
	has("place/git/refs/heads/main", ONE "\n");
}

static bool carry(void)
{
	_cleanup_(buf_done) struct buf notes = BUF(KIB);
	_free_ char *place = in("place");

	worktree_carry(place, &notes);
	CHECK(access(place, F_OK) < 0);
	return notes.n == 0;
}

static void end(void)
{
	CHECK_INT(path_remove(AT_FDCWD, dir), 0);
}

TEST(only_the_branch_comes_out)
{
	begin();
	put("place/git/refs/heads/b", TWO "\n");
	put("place/git/refs/heads/main", TWO "\n");
	put("place/git/refs/heads/new", TWO "\n");
	put("place/git/config", "[core] pager = x\n");
	CHECK(carry());
	has("g/refs/heads/b", TWO "\n");
	has("g/refs/heads/main", ONE "\n");
	CHECK(!is_there("g/refs/heads/new") && !is_there("g/config"));
	CHECK(!is_there("g/refs/heads/b.lock"));
	end();
}

TEST(a_branch_that_head_names_and_nobody_has)
{
	begin();
	put("place/git/refs/heads/new", TWO "\n");
	put("g/worktrees/x/HEAD", "ref: refs/heads/new\n");
	CHECK(carry());
	has("g/refs/heads/new", TWO "\n");
	end();
	begin();
	put("place/git/refs/heads/main", TWO "\n");
	put("g/worktrees/x/HEAD", "ref: refs/heads/main\n"); /* one that the host has */
	CHECK(carry());
	has("g/refs/heads/main", ONE "\n");
	end();
}

TEST(what_the_host_changed_or_locked_stays)
{
	begin();
	put("place/git/refs/heads/b", TWO "\n");
	put("g/refs/heads/b", "3333333333333333333333333333333333333333\n");
	CHECK(!carry());
	has("g/refs/heads/b", "3333333333333333333333333333333333333333\n");
	end();
	begin();
	put("place/git/refs/heads/b", TWO "\n");
	put("g/refs/heads/b.lock", "");
	CHECK(!carry());
	has("g/refs/heads/b", ONE "\n");
	CHECK(is_there("g/refs/heads/b.lock"));
	end();
}

TEST(what_is_no_object_name_stays_inside)
{
	static const char *const bad[] = {
		"", "x\n", "ref: refs/heads/main\n", ONE "0\n", ONE "\n" TWO "\n", "../../config\n"
	};
	_free_ char *alias = NULL, *target = NULL;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		begin();
		put("place/git/refs/heads/b", bad[i]);
		CHECK(carry());
		has("g/refs/heads/b", ONE "\n");
		end();
	}
	begin(); /* a link is not followed */
	alias = in("place/git/refs/heads/b");
	target = in("g/refs/heads/main");
	CHECK(unlink(alias) == 0 && symlink(target, alias) == 0);
	CHECK(carry());
	has("g/refs/heads/b", ONE "\n");
	end();
}

TEST_MAIN()
