/* SPDX-License-Identifier: Apache-2.0 */
#include "view/known.h"
#include "view/testtree.h"

#define CONF "[core]\n\tbare = false\n\thooksPath = /dev/null\n[user]\n\tname = a\n"
#define PLANT "[core]\n\tfsmonitor = ./x\n"

static bool stays(bool is_config, const char *last, const char *now)
{
	struct known_text a = { last, last ? strlen(last) : 0 }, b = { now, strlen(now) };

	return known_judge(is_config, last ? &a : NULL, &b) == KNOWN_STAYS;
}

TEST(judge)
{
	CHECK(stays(false, "x\n", "x\n"));
	CHECK(!stays(false, "x\n", "x\ny\n"));
	CHECK(!stays(false, NULL, "x\n"));
	CHECK(stays(true, CONF, CONF));
	CHECK(stays(true, CONF, CONF "[user]\n\tname = b\n"));
	CHECK(stays(true, CONF, CONF "[remote \"o\"]\n\turl = https://x.example/y\n"));
	/* added, taken away, changed, said twice, on one line, in another grammar */
	CHECK(!stays(true, CONF, CONF PLANT));
	CHECK(!stays(true, CONF, "[core]\n\tbare = false\n[user]\n\tname = a\n"));
	CHECK(!stays(true, CONF, "[core]\n\tbare = false\n\thooksPath = h\n[user]\n\tname = a\n"));
	CHECK(!stays(true, CONF, CONF "[core]\n\thooksPath = /dev/null\n"));
	CHECK(!stays(true, CONF, CONF "[core] fsmonitor = ./x\n"));
	CHECK(!stays(true, CONF, CONF "[core]\n\teditor = a\\\nb\n"));
	CHECK(!stays(true, CONF, CONF "[include]\n\tpath = x\n"));
	CHECK(!stays(true, CONF, CONF "[core]\n\tworktree = ../..\n"));
	CHECK(stays(true, NULL, "[core]\n\tbare = false\n"));
	CHECK(!stays(true, NULL, CONF));
	CHECK(!stays(true, CONF, "[core\n"));
}

static void cuts(const char *now, const char *want)
{
	_cleanup_(buf_done) struct buf b = BUF(MIB);
	struct known_text a = { CONF, strlen(CONF) }, n = { now, strlen(now) };

	CHECK(known_cut(&a, &n, &b) == (want != NULL));
	if (want)
		CHECK_STR(buf_cstr(&b), want);
}

TEST(cut)
{
	cuts(CONF, CONF);
	cuts(CONF PLANT, CONF);
	cuts(CONF PLANT PLANT "[user]\n\tname = b\n" PLANT, CONF "[user]\n\tname = b\n");
	cuts("[core]\n\tfsmonitor = x\n" CONF, CONF);
	cuts("[core]\n\tfsmonitor = x\n\tbare = true\n# a word\n" CONF, "[core]\n\tbare = true\n# "
									"a word\n" CONF);
	/* what was there is missing, or stands elsewhere, or twice */
	cuts(PLANT, NULL);
	cuts(CONF "[core]\n\thooksPath = /dev/null\n", NULL);
	cuts(CONF "[core]\n\teditor = a\\\nb\n", NULL);
}

struct run {
	struct tree t, q;
	struct policy p;
	struct scan s;
	struct known *k;
	struct sweep out;
	struct err e;
};

static void run_begin(struct run *r)
{
	policy_of(&r->p, ".env", ".mcp.json .husky .git");
	CHECK_INT(scan_run(r->t.fd, &r->p, &r->s, &r->e), 0);
	r->k = known_new(r->t.fd, &r->s);
	CHECK(!known_step(r->k, 100));
	r->out = (struct sweep){ .dir = r->q.path, .dir_fd = FD_NONE };
}

static void run_done(struct run *r)
{
	known_free(r->k);
	scan_done(&r->s);
	fd_close(r->out.dir_fd);
	sweep_done(&r->out);
	policy_gone(&r->p);
	tree_done(&r->t);
	tree_done(&r->q);
}

#define RUN(name)                                                                                  \
	_cleanup_(run_done) struct run name = { .t = tree_new(), .q = tree_new(), .e = ERR_INIT }

static void replace(const struct run *r, const char *rel, const char *text)
{
	tree_file(&r->t, "new", text);
	bug_on(renameat(r->t.fd, "new", r->t.fd, rel) < 0);
}

static void has_text(const struct tree *t, const char *rel, const char *want)
{
	_free_ char *text = tree_text(t, rel);

	CHECK_STR(text ? text : "(gone)", want);
}

static void saved(const struct run *r, size_t i, const char *rel, const char *inside,
		  const char *want)
{
	_free_ char *path = NULL;

	CHECK(i < r->out.n);
	if (i >= r->out.n)
		return;
	CHECK_STR(r->out.v[i].rel, rel);
	path = mem_fmt("%s%s", r->out.v[i].saved, inside);
	has_text(&r->q, path, want);
}

TEST(what_is_new_goes_and_what_was_comes_back)
{
	RUN(r);

	tree_file(&r.t, ".mcp.json", "host");
	tree_file(&r.t, ".env", "secret");
	run_begin(&r);
	CHECK_INT(known_settle(r.k, "", &r.out, &r.e), 0);
	replace(&r, ".mcp.json", "planted");
	replace(&r, ".env", "planted too");
	CHECK_INT(known_settle(r.k, "", &r.out, &r.e), 2);
	CHECK_INT(known_verify(r.k), KNOWN_WHOLE);
	has_text(&r.t, ".mcp.json", "host");
	has_text(&r.t, ".env", "secret");
	CHECK_INT(r.out.n, 2);
	saved(&r, 0, ".env", "", "planted too");
	saved(&r, 1, ".mcp.json", "", "planted");
	/* Our own file there is no news, and a second replacement is held against it. */
	CHECK(known_is_own(r.k, ".mcp.json"));
	CHECK_INT(known_settle(r.k, "", &r.out, &r.e), 0);
	replace(&r, ".mcp.json", "again");
	CHECK(!known_is_own(r.k, ".mcp.json"));
	CHECK_INT(known_settle(r.k, ".mcp.json", &r.out, &r.e), 1);
	replace(&r, ".mcp.json", "and again");
	CHECK_INT(known_verify(r.k), KNOWN_AGAIN);
	CHECK_INT(known_settle(r.k, ".mcp.json", &r.out, &r.e), 1);
	CHECK_INT(known_verify(r.k), KNOWN_WHOLE);
	has_text(&r.t, ".mcp.json", "host");
}

TEST(a_save_in_place_is_the_hosts)
{
	RUN(r);

	tree_file(&r.t, ".mcp.json", "host");
	run_begin(&r);
	tree_file(&r.t, ".mcp.json", "edited"); /* the same file: the mask is on it */
	known_read(r.k);
	CHECK_INT(known_settle(r.k, "", &r.out, &r.e), 0);
	replace(&r, ".mcp.json", "planted");
	CHECK_INT(known_settle(r.k, "", &r.out, &r.e), 1);
	has_text(&r.t, ".mcp.json", "edited");
}

TEST(a_descriptor_from_before_leads_nowhere)
{
	RUN(r);
	_close_ int held = FD_NONE;

	tree_file(&r.t, ".git/HEAD", "ref: refs/heads/main\n");
	tree_dir(&r.t, ".git/objects");
	tree_dir(&r.t, ".git/refs");
	tree_file(&r.t, ".git/config", CONF);
	run_begin(&r);
	tree_file(&r.t, "new", CONF "[user]\n\temail = b\n");
	held = openat(r.t.fd, "new", O_WRONLY | O_APPEND | O_CLOEXEC);
	bug_on(renameat(r.t.fd, "new", r.t.fd, ".git/config") < 0);
	CHECK_INT(known_settle(r.k, ".git", &r.out, &r.e), 1);
	CHECK_INT(known_verify(r.k), KNOWN_WHOLE);
	CHECK_INT(r.out.n, 0);
	CHECK_INT(io_write_all(held, PLANT, strlen(PLANT)), 0);
	has_text(&r.t, ".git/config", CONF "[user]\n\temail = b\n");
}

TEST(who_opens_our_own_file_is_seen)
{
	RUN(r);
	_close_ int held = FD_NONE;

	tree_file(&r.t, ".mcp.json", "host");
	run_begin(&r);
	replace(&r, ".mcp.json", "planted");
	CHECK_INT(known_settle(r.k, "", &r.out, &r.e), 1);
	held = openat(r.t.fd, ".mcp.json", O_WRONLY | O_CLOEXEC);
	CHECK_INT(known_verify(r.k), KNOWN_BROKEN);
	CHECK_INT(known_settle(r.k, "", &r.out, &r.e), 1);
	CHECK_INT(known_verify(r.k), KNOWN_WHOLE);
	CHECK_INT(io_write_all(held, "late", 4), 0);
	has_text(&r.t, ".mcp.json", "host");
}

TEST(directories)
{
	RUN(r);
	struct stat st;

	tree_file(&r.t, ".husky/pre-commit", "host");
	tree_file(&r.t, ".husky/a/b", "deep");
	bug_on(fchmodat(r.t.fd, ".husky/pre-commit", 0755, 0) < 0);
	run_begin(&r);
	bug_on(renameat(r.t.fd, ".husky", r.t.fd, "aside") < 0);
	tree_file(&r.t, ".husky/pre-commit", "planted");
	CHECK_INT(known_settle(r.k, ".husky", &r.out, &r.e), 1);
	CHECK_INT(known_verify(r.k), KNOWN_WHOLE);
	has_text(&r.t, ".husky/pre-commit", "host");
	has_text(&r.t, ".husky/a/b", "deep");
	CHECK(fstatat(r.t.fd, ".husky/pre-commit", &st, 0) == 0 && (st.st_mode & 0777) == 0755);
	saved(&r, 0, ".husky", "/pre-commit", "planted");
}

TEST(a_directory_that_was_emptied_first)
{
	RUN(r);

	tree_file(&r.t, ".husky/pre-commit", "host");
	run_begin(&r);
	bug_on(unlinkat(r.t.fd, ".husky/pre-commit", 0) < 0 ||
	       unlinkat(r.t.fd, ".husky", AT_REMOVEDIR) < 0);
	tree_dir(&r.t, ".husky");
	CHECK_INT(known_settle(r.k, ".husky", &r.out, &r.e), 1);
	CHECK_INT(r.out.n, 0);
	CHECK(tree_has(&r.t, ".husky"));
}

TEST(links_and_pipes_under_the_name)
{
	RUN(r);

	tree_file(&r.t, ".mcp.json", "host");
	run_begin(&r);
	bug_on(unlinkat(r.t.fd, ".mcp.json", 0) < 0);
	tree_link(&r.t, "/etc/passwd", ".mcp.json");
	CHECK_INT(known_settle(r.k, "", &r.out, &r.e), 1);
	has_text(&r.t, ".mcp.json", "host");
	bug_on(unlinkat(r.t.fd, ".mcp.json", 0) < 0 || mkfifoat(r.t.fd, ".mcp.json", 0600) < 0);
	CHECK_INT(known_settle(r.k, "", &r.out, &r.e), 1);
	has_text(&r.t, ".mcp.json", "host");
	/* What the host removed is not made again. */
	bug_on(unlinkat(r.t.fd, ".mcp.json", 0) < 0);
	CHECK_INT(known_settle(r.k, "", &r.out, &r.e), 0);
	known_forget(r.k, ".mcp.json");
	tree_file(&r.t, ".mcp.json", "new");
	CHECK_INT(known_settle(r.k, "", &r.out, &r.e), 0);
	has_text(&r.t, ".mcp.json", "new");
}

TEST(what_a_killed_one_left)
{
	RUN(r);
	_free_ char *dir = mem_fmt("%s/known", r.q.path), *path = mem_fmt("%s/one", dir);

	tree_file(&r.t, ".mcp.json", "host");
	tree_file(&r.t, ".env", "secret");
	tree_file(&r.t, ".husky/pre-commit", "host");
	run_begin(&r);
	CHECK_INT(known_record(r.k, path, r.t.path), 0);
	/* It lives: its record is nobody's business. */
	replace(&r, ".mcp.json", "planted");
	CHECK_INT(known_recover(dir, r.t.path, r.t.fd, &r.out, &r.e), 0);
	has_text(&r.t, ".mcp.json", "planted");
	known_free(r.k);
	r.k = NULL;
	CHECK_INT(known_recover(dir, "/elsewhere", r.t.fd, &r.out, &r.e), 0);
	CHECK_INT(known_recover(dir, r.t.path, r.t.fd, &r.out, &r.e), 1);
	has_text(&r.t, ".mcp.json", "host");
	has_text(&r.t, ".husky/pre-commit", "host");
	CHECK_INT(r.out.n, 1);
	saved(&r, 0, ".mcp.json", "", "planted");
	CHECK_INT(known_recover(dir, r.t.path, r.t.fd, &r.out, &r.e), 0);
	/* Half a record: of a machine that died meanwhile. */
	tree_file(&r.q, "known/half", "{\"version\":1,");
	CHECK_INT(known_recover(dir, r.t.path, r.t.fd, &r.out, &r.e), 1);
	CHECK(!tree_has(&r.q, "known/half"));
}

TEST_MAIN()
