/* SPDX-License-Identifier: Apache-2.0 */
/* git/git_test.c - a bare repository of ours is known again, and one that was tampered with is refused */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/test.h"
#include "git/git.h"

#define OID "0123456789abcdef0123456789abcdef01234567"

static char *dir;

static void begin(void)
{
	static char tmp[] = "/tmp/git_test.XXXXXX";

	(void)snprintf(tmp, sizeof(tmp), "/tmp/git_test.XXXXXX");
	dir = mkdtemp(tmp);
	bug_on(dir == NULL);
}

static void end(void)
{
	(void)path_remove(AT_FDCWD, dir);
}

static char *at(const char *rel)
{
	return mem_fmt("%s/repo.git/%s", dir, rel);
}

static void put(const char *rel, const char *text)
{
	_free_ char *path = at(rel);
	FILE *f = fopen(path, "we");

	bug_on(f == NULL);
	(void)fputs(text, f);
	(void)fclose(f);
}

static int look(struct err *e)
{
	_free_ char *path = mem_fmt("%s/repo.git", dir);
	struct git_refs refs = { 0 };
	int r = git_bare_look(path, &refs, e);

	git_refs_done(&refs);
	return r;
}

TEST(make_and_look)
{
	_free_ char *path = NULL;
	struct git_refs refs = { 0 };
	struct err e = ERR_INIT;

	begin();
	path = mem_fmt("%s/repo.git", dir);
	CHECK_INT(git_bare_make(path, &e), 0);
	CHECK_INT(git_bare_make(path, &e), 0); /* again is nothing */
	CHECK_INT(git_bare_look(path, &refs, &e), 0);
	CHECK_INT((int)refs.n, 0);
	put("refs/heads/b", OID "\n");
	put("refs/heads/a", OID "\n");
	CHECK_INT(git_bare_look(path, &refs, &e), 0);
	CHECK_INT((int)refs.n, 2);
	CHECK(refs.n == 2 && str_eq(refs.v[0].name, "refs/heads/a"));
	CHECK(git_refs_find(&refs, "refs/heads/b") != NULL);
	CHECK(git_refs_find(&refs, "refs/heads/c") == NULL);
	git_refs_done(&refs);
	end();
}

TEST(refs_are_written_and_removed)
{
	_free_ char *path = NULL, *link = NULL;
	struct git_refs refs = { 0 };
	struct err e = ERR_INIT;

	begin();
	path = mem_fmt("%s/repo.git", dir);
	CHECK_INT(git_bare_make(path, &e), 0);
	CHECK_INT(git_ref_put(path, "refs/waiting/a/b", OID, &e), 0);
	CHECK_INT(git_ref_put(path, "refs/heads/a/b", OID, &e), 0);
	CHECK_INT(git_ref_put(path, "refs/heads/a/b", OID, &e), 0);
	/* A ref where a directory with refs is. */
	CHECK(git_ref_put(path, "refs/heads/a", OID, &e) < 0);
	CHECK_INT(git_ref_put(path, "refs/waiting/a/b", NULL, &e), 0);
	CHECK_INT(git_ref_put(path, "refs/waiting/a/b", NULL, &e), 0);
	CHECK_INT(git_ref_put(path, "refs/heads/a/b", NULL, &e), 0);
	CHECK_INT(git_ref_put(path, "refs/heads/a", OID, &e), 0);
	link = at("refs/heads/link");
	CHECK(symlink("/tmp", link) == 0);
	CHECK(git_ref_put(path, "refs/heads/link/x", OID, &e) < 0);
	CHECK(unlink(link) == 0);
	CHECK_INT(git_bare_look(path, &refs, &e), 0);
	CHECK_INT((int)refs.n, 1);
	git_refs_done(&refs);
	end();
}

/* One thing that must not be there: refused with it, accepted without. */
static void refused(const char *rel)
{
	_free_ char *path = at(rel);
	struct err e = ERR_INIT;

	CHECK_INT(look(&e), -EPERM);
	CHECK(e.kind == ERR_DENIED);
	CHECK(unlink(path) == 0 || rmdir(path) == 0);
	CHECK_INT(look(&e), 0);
}

TEST(tampered)
{
	static const char *const texts[] = { "ref: refs/heads/a\n",
					     "",
					     OID,
					     OID "\n\n",
					     OID " \n",
					     "0123456789ABCDEF0123456789abcdef01234567\n" };
	_free_ char *repo = NULL, *link = NULL, *pipe = NULL, *hooks = NULL;
	struct err e = ERR_INIT;

	begin();
	repo = mem_fmt("%s/repo.git", dir);
	link = at("refs/heads/link");
	pipe = at("objects/pack/x");
	hooks = at("hooks");
	CHECK_INT(git_bare_make(repo, &e), 0);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		put("refs/heads/x", texts[i]);
		refused("refs/heads/x");
	}
	put("objects/info/alternates", "/elsewhere\n");
	refused("objects/info/alternates");
	put("packed-refs", "");
	refused("packed-refs");
	put("commondir", "/elsewhere\n");
	refused("commondir");
	CHECK(symlink("a", link) == 0);
	refused("refs/heads/link");
	CHECK(mkfifo(pipe, 0600) == 0);
	refused("objects/pack/x");
	CHECK(mkdir(hooks, 0700) == 0);
	refused("hooks");
	end();
}

TEST_MAIN()
