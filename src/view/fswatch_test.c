/* SPDX-License-Identifier: Apache-2.0 */
#include <poll.h>

#include "view/fswatch.h"
#include "view/testtree.h"

struct run {
	struct tree t;
	struct policy p;
	struct scan s;
	struct fswatch *w;
	struct err e;
	struct buf log;
};

static void run_begin(struct run *r, const char *hide, const char *protect)
{
	policy_of(&r->p, hide, protect);
	r->e = ERR_INIT;
	CHECK_INT(scan_run(r->t.fd, &r->p, &r->s, &r->e), 0);
	CHECK_INT(fswatch_open(r->t.fd, &r->p, &r->s, &r->w, &r->e), 0);
	CHECK_STR(r->e.msg, "");
}

static void run_done(struct run *r)
{
	fswatch_free(r->w);
	scan_done(&r->s);
	policy_gone(&r->p);
	buf_done(&r->log);
	tree_done(&r->t);
}

#define RUN(name) _cleanup_(run_done) struct run name = { .t = tree_new(), .log = BUF(16 * MIB) }

static void on_report(void *arg, enum fswatch_kind kind, const char *rel)
{
	struct run *r = arg;
	static const char letters[] = "ARO";
	_free_ char *line = mem_fmt("%c %s\n", letters[kind], rel);

	/* Once is enough for the checks. */
	if (strstr(buf_cstr(&r->log), line) == NULL)
		buf_puts(&r->log, line);
}

/* Until nothing more comes. */
static void settle(struct run *r)
{
	struct pollfd fd = { .fd = fswatch_fd(r->w), .events = POLLIN };

	do {
		CHECK(fswatch_read(r->w, on_report, r, &r->e) >= 0);
		while (fswatch_step(r->w, NS_PER_MS, on_report, r, &r->e) > 0)
			;
	} while (poll(&fd, 1, 0) > 0);
}

static bool said(struct run *r, const char *line)
{
	_free_ char *whole = mem_fmt("%s\n", line);

	settle(r);
	return strstr(buf_cstr(&r->log), whole) != NULL;
}

TEST(quiet_when_nothing_happens)
{
	RUN(r);

	tree_file(&r.t, "a/b/c", "");
	tree_file(&r.t, ".vscode/x", "");
	run_begin(&r, ".env", ".vscode .git");
	settle(&r);
	CHECK_STR(buf_cstr(&r.log), "");
	CHECK(fswatch_is_complete(r.w));
	CHECK_INT(fswatch_count(r.w), 4);
}

TEST(ordinary_files_are_not_reported)
{
	RUN(r);

	tree_dir(&r.t, "a");
	run_begin(&r, ".env", ".vscode .git");
	settle(&r);
	tree_file(&r.t, "a/main.c", "int x;");
	tree_file(&r.t, "new/dir/main.c", "int x;");
	settle(&r);
	CHECK_STR(buf_cstr(&r.log), "");
	CHECK_INT(fswatch_count(r.w), 4);
}

static bool is_told_at_all(struct run *r)
{
	return poll(&(struct pollfd){ .fd = fswatch_fd(r->w), .events = POLLIN }, 1, 0) > 0;
}

/* Every event costs whoever removes a file; only where something is covered is it of use. */
TEST(removals_are_told_where_something_is_covered)
{
	RUN(r);

	tree_file(&r.t, "a/b/main.c", "int x;");
	tree_file(&r.t, "c/.env", "x");
	tree_file(&r.t, "c/main.c", "int x;");
	run_begin(&r, ".env", ".git");
	settle(&r);
	bug_on(unlinkat(r.t.fd, "a/b/main.c", 0) < 0);
	CHECK(!is_told_at_all(&r));
	bug_on(unlinkat(r.t.fd, "c/main.c", 0) < 0);
	CHECK(is_told_at_all(&r));
	settle(&r);
	/* A directory's end is told by the end of its own watch. */
	CHECK_INT(fswatch_count(r.w), 4);
	bug_on(unlinkat(r.t.fd, "a/b", AT_REMOVEDIR) < 0);
	settle(&r);
	CHECK_INT(fswatch_count(r.w), 3);
	CHECK_STR(buf_cstr(&r.log), "");
}

TEST(protected_names_are_reported)
{
	RUN(r);

	tree_dir(&r.t, "a/b");
	run_begin(&r, ".env", ".vscode .mcp.json .git");
	settle(&r);
	tree_dir(&r.t, "a/b/.vscode");
	CHECK(said(&r, "A a/b/.vscode"));
	tree_file(&r.t, "a/.mcp.json", "x");
	CHECK(said(&r, "A a/.mcp.json"));
	tree_file(&r.t, "a/.env", "x");
	CHECK(said(&r, "A a/.env"));
	tree_link(&r.t, "/etc", ".vscode");
	CHECK(said(&r, "A .vscode"));
}

TEST(new_directories_with_things_in_them)
{
	RUN(r);
	_cleanup_(tree_done) struct tree side = tree_new();
	_free_ char *to = NULL, *from = NULL;

	run_begin(&r, "", ".vscode .mcp.json .git");
	settle(&r);
	/* Faster than any watch can be set. */
	tree_file(&r.t, "x/y/z/.mcp.json", "x");
	CHECK(said(&r, "A x/y/z/.mcp.json"));
	tree_file(&r.t, "x/y/z/sub/.vscode/t", "x");
	CHECK(said(&r, "A x/y/z/sub/.vscode"));
	tree_file(&side, "in/deep/.mcp.json", "x");
	from = tree_path(&side, "in");
	to = tree_path(&r.t, "moved");
	bug_on(rename(from, to) < 0);
	CHECK(said(&r, "A moved/deep/.mcp.json"));
}

TEST(renamed_directory_reports_under_its_new_name)
{
	RUN(r);

	tree_dir(&r.t, "old/sub");
	run_begin(&r, "", ".mcp.json");
	settle(&r);
	bug_on(renameat(r.t.fd, "old", r.t.fd, "new") < 0);
	settle(&r);
	tree_file(&r.t, "new/sub/.mcp.json", "x");
	CHECK(said(&r, "A new/sub/.mcp.json"));
	CHECK(strstr(buf_cstr(&r.log), "old") == NULL);
	CHECK_INT(fswatch_count(r.w), 3);
}

TEST(git_parts)
{
	RUN(r);

	run_begin(&r, "", ".git");
	settle(&r);
	GIT(&r.t, "", "init", "-q", "n");
	CHECK(said(&r, "A n/.git"));
	tree_file(&r.t, "n/.git/hooks/pre-commit", "x");
	CHECK(said(&r, "A n/.git/hooks/pre-commit"));
	tree_file(&r.t, "n/.git/hooks/any-name", "x");
	CHECK(said(&r, "A n/.git/hooks/any-name"));
	tree_file(&r.t, "n/.git/info/attributes", "x");
	CHECK(said(&r, "A n/.git/info/attributes"));
	GIT(&r.t, "n", "config", "user.name", "x");
	CHECK(said(&r, "A n/.git/config"));
	GIT(&r.t, "n", "commit", "-q", "--allow-empty", "-m", "x");
	settle(&r);
	CHECK(strstr(buf_cstr(&r.log), "n/.git/objects/pack/") == NULL);
	CHECK(strstr(buf_cstr(&r.log), "index") == NULL);
}

TEST(among_gits_data_too)
{
	RUN(r);

	GIT(&r.t, "", "init", "-q", "n");
	run_begin(&r, "", ".git .mcp.json");
	settle(&r);
	tree_file(&r.t, "n/.git/objects/aa/.mcp.json", "x");
	CHECK(said(&r, "A n/.git/objects/aa/.mcp.json"));
	tree_file(&r.t, "n/.git/refs/heads/.mcp.json", "x");
	CHECK(said(&r, "A n/.git/refs/heads/.mcp.json"));
}

/* Between the scan and the watch: names, and directories that were there under another name. */
TEST(what_was_made_before_the_watch_stood)
{
	RUN(r);

	tree_file(&r.t, "kept/a", "x");
	tree_file(&r.t, "kept/sub/w.yml", "x");
	tree_file(&r.t, "quiet/a", "x");
	run_begin(&r, ".env", ".mcp.json dir/sub/*.yml");
	tree_file(&r.t, "kept/.mcp.json", "x");
	tree_file(&r.t, "n/m/.mcp.json", "x");
	bug_on(renameat(r.t.fd, "kept", r.t.fd, "dir") < 0);
	settle(&r);
	CHECK(said(&r, "A dir/.mcp.json"));
	CHECK(said(&r, "A n/m/.mcp.json"));
	CHECK(said(&r, "A dir/sub/w.yml"));
	CHECK(strstr(buf_cstr(&r.log), "quiet") == NULL);
}

TEST(the_host_replaces_what_is_masked)
{
	RUN(r);

	tree_file(&r.t, ".env", "x");
	tree_file(&r.t, "a/.git/config", "x");
	run_begin(&r, ".env", ".git");
	/* From the first moment, before any step. */
	tree_file(&r.t, ".env.tmp", "y");
	bug_on(renameat(r.t.fd, ".env.tmp", r.t.fd, ".env") < 0);
	CHECK(fswatch_read(r.w, on_report, &r, &r.e) > 0);
	CHECK_STR(buf_cstr(&r.log), "R .env\n");
	bug_on(unlinkat(r.t.fd, "a/.git/config", 0) < 0);
	CHECK(said(&r, "R a/.git/config"));
	bug_on(unlinkat(r.t.fd, "a/.git", AT_REMOVEDIR) < 0);
	CHECK(said(&r, "R a/.git"));
	/* Writing into it is not replacing it. */
	buf_done(&r.log);
	tree_file(&r.t, ".env", "z");
	settle(&r);
	CHECK_STR(buf_cstr(&r.log), "");
	/* The whole of it made again: both levels are told. */
	tree_file(&r.t, "a/.git/config", "x");
	CHECK(said(&r, "R a/.git"));
	CHECK(said(&r, "R a/.git/config"));
}

TEST(links_are_not_followed)
{
	RUN(r);
	_cleanup_(tree_done) struct tree out = tree_new();

	tree_link(&r.t, out.path, "l");
	run_begin(&r, "", ".mcp.json");
	settle(&r);
	tree_file(&out, ".mcp.json", "x");
	settle(&r);
	CHECK_STR(buf_cstr(&r.log), "");
	CHECK_INT(fswatch_count(r.w), 1);
}

TEST(bounded_and_in_slices)
{
	RUN(r);
	uint64_t worst = 0;
	int more;

	for (int i = 0; i < 90; i++)
		for (int j = 0; j < 100; j++) {
			char rel[64];

			(void)snprintf(rel, sizeof(rel), "d%d", i);
			if (j == 0)
				bug_on(mkdirat(r.t.fd, rel, 0755) < 0);
			(void)snprintf(rel, sizeof(rel), "d%d/e%d", i, j);
			bug_on(mkdirat(r.t.fd, rel, 0755) < 0);
		}
	run_begin(&r, "", ".mcp.json");
	do {
		uint64_t at = now_ns();

		more = fswatch_step(r.w, NS_PER_MS, on_report, &r, &r.e);
		at = now_ns() - at;
		worst = at > worst ? at : worst;
	} while (more > 0);
	CHECK_INT(more, 0);
	CHECK(!fswatch_is_complete(r.w));
	CHECK_INT(fswatch_count(r.w), FSWATCH_DIRS_MAX);
	CHECK(worst < 200 * NS_PER_MS); /* a loaded machine; alone it is 1 ms and a bit */
	/* Shallow directories came first. */
	tree_file(&r.t, "d89/.mcp.json", "x");
	CHECK(said(&r, "A d89/.mcp.json"));
}

/* What is in a file is watched from the moment its name is interesting, in old directories and in new ones. */
TEST(later_writes_are_reported)
{
	static const char *const names[] = { "old/.mcp.json", "new/deep/.mcp.json" };
	RUN(r);

	tree_dir(&r.t, "old");
	run_begin(&r, "", ".mcp.json");
	settle(&r);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		_free_ char *line = mem_fmt("A %s", names[i]);
		_close_ int fd = FD_NONE;

		tree_file(&r.t, names[i], "x");
		CHECK(said(&r, line));
		buf_done(&r.log);
		r.log = (struct buf)BUF(16 * MIB);
		fd = openat(r.t.fd, names[i], O_WRONLY | O_CLOEXEC);
		CHECK(fd >= 0 && write(fd, "y", 1) == 1);
		fd_close(take_fd(fd));
		CHECK(said(&r, line));
		buf_done(&r.log);
		r.log = (struct buf)BUF(16 * MIB);
	}
	tree_file(&r.t, "old/main.c", "x");
	settle(&r);
	CHECK_STR(buf_cstr(&r.log), "");
}

TEST(overflow_is_told)
{
	RUN(r);

	tree_dir(&r.t, "a");
	run_begin(&r, "", ".mcp.json");
	settle(&r);
	for (int i = 0; i < 40000; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "a/f%d", i % 2);
		bug_on(mknodat(r.t.fd, name, S_IFREG | 0600, 0) < 0 ||
		       unlinkat(r.t.fd, name, 0) < 0);
	}
	CHECK(said(&r, "O "));
}

TEST_MAIN()
