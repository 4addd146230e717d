/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>

#include "view/index.h"
#include "view/replica.h"
#include "view/setid.h"
#include "view/sweep.h"
#include "view/testtree.h"

struct run {
	struct tree t, q;
	struct policy p;
	struct scan before;
	struct sweep out;
	struct err e;
	int q_fd;
};

static void run_begin(struct run *r, const char *hide, const char *protect)
{
	policy_of(&r->p, hide, protect);
	r->q_fd = r->q.fd;
	r->e = ERR_INIT;
	CHECK_INT(scan_run(r->t.fd, &r->p, &r->before, &r->e), 0);
}

static void run_done(struct run *r)
{
	scan_done(&r->before);
	sweep_done(&r->out);
	policy_gone(&r->p);
	tree_done(&r->t);
	tree_done(&r->q);
}

#define RUN(name) _cleanup_(run_done) struct run name = { .t = tree_new(), .q = tree_new() }

static int by_rel(const void *a, const void *b)
{
	return strcmp(((const struct swept *)a)->rel, ((const struct swept *)b)->rel);
}

/* "path (rule); ..." by path; directories are read in no particular order. */
static char *swept_text(struct sweep *s)
{
	struct buf b = BUF(MIB);

	if (s->n)
		qsort(s->v, s->n, sizeof(*s->v), by_rel);
	for (size_t i = 0; i < s->n; i++)
		buf_printf(&b, "%s%s (%s)", i ? "; " : "", s->v[i].rel, s->v[i].rule);
	return b.p ? buf_take(&b) : mem_str("");
}

static void sweep_checks(struct run *r, const char *want)
{
	_free_ char *text = NULL;

	CHECK_INT(sweep_run(r->t.fd, r->q_fd, &r->p, &r->before, &r->out, &r->e), 0);
	CHECK_STR(r->e.msg, "");
	text = swept_text(&r->out);
	CHECK_STR(text, want);
	for (size_t i = 0; i < r->out.n; i++)
		CHECK(tree_has(&r->t, r->out.v[i].rel) ==
		      str_ends(r->out.v[i].rule, SWEEP_REST_STAYS));
	sweep_done(&r->out);
}

TEST(what_was_there_stays)
{
	RUN(r);

	tree_file(&r.t, ".vscode/tasks.json", "old");
	GIT(&r.t, "", "init", "-q", ".");
	tree_file(&r.t, ".git/hooks/pre-commit", "mine");
	tree_file(&r.t, ".git/info/attributes", "mine");
	GIT(&r.t, "", "config", "core.fsmonitor", "./mine");
	run_begin(&r, ".env", ".vscode .git");
	tree_file(&r.t, ".env", "new secrets are not our business");
	sweep_checks(&r, "");
	/* Replaced meanwhile: only the host could. */
	bug_on(unlinkat(r.t.fd, ".git/config", 0) < 0);
	tree_file(&r.t, ".git/config", "[alias]\n\tx = !y\n");
	tree_file(&r.t, ".vscode/settings.json", "below a mount");
	sweep_checks(&r, "");
}

TEST(what_appeared_is_taken)
{
	RUN(r);

	tree_dir(&r.t, "sub");
	run_begin(&r, "", ".vscode **/.claude/settings.json .mcp.json");
	tree_file(&r.t, ".mcp.json", "m");
	tree_file(&r.t, "sub/.vscode/tasks.json", "t");
	tree_file(&r.t, "sub/.claude/settings.json", "s");
	tree_file(&r.t, "sub/.claude/notes", "n");
	CHECK_INT(sweep_run(r.t.fd, r.q.fd, &r.p, &r.before, &r.out, &r.e), 0);
	CHECK_INT(r.out.n, 3);
	for (size_t i = 0; i < r.out.n; i++)
		CHECK(r.out.v[i].saved && tree_has(&r.q, r.out.v[i].saved));
	CHECK_STR(r.out.v[0].rel, ".mcp.json"); /* of all, the only one in the root */
	CHECK_STR(r.out.v[0].saved, "0001-.mcp.json");
	CHECK(tree_has(&r.t, "sub/.claude/notes"));
	CHECK(!tree_has(&r.t, "sub/.claude/settings.json"));
	sweep_done(&r.out);
	sweep_checks(&r, "");
	/* Numbers go on where another run left off. */
	tree_file(&r.t, ".mcp.json", "m2");
	sweep_checks(&r, ".mcp.json (.mcp.json)");
	CHECK(tree_has(&r.q, "0001-.mcp.json") && tree_has(&r.q, "0002-.mcp.json"));
}

TEST(types)
{
	RUN(r);
	_free_ char *link = NULL;

	tree_file(&r.t, "src/main.c", "int x;");
	run_begin(&r, "", ".a .b .c .d");
	tree_link(&r.t, "src", ".a");
	tree_link(&r.t, "/etc/passwd", ".b");
	bug_on(mkfifoat(r.t.fd, ".c", 0600) < 0);
	tree_dir(&r.t, ".d/e/f");
	CHECK_INT(sweep_run(r.t.fd, r.q.fd, &r.p, &r.before, &r.out, &r.e), 0);
	CHECK_INT(r.out.n, 4);
	CHECK(tree_has(&r.t, "src/main.c"));
	for (size_t i = 0; i < r.out.n; i++)
		if (str_eq(r.out.v[i].rel, ".c"))
			CHECK(r.out.v[i].saved == NULL);
		else
			CHECK(tree_has(&r.q, r.out.v[i].saved));
	for (size_t i = 0; i < r.out.n; i++)
		if (str_eq(r.out.v[i].rel, ".b"))
			link = tree_text(&r.q, r.out.v[i].saved);
	CHECK_STR(link, "symbolic link to: /etc/passwd\n");
	CHECK(!tree_has(&r.t, ".a") && !tree_has(&r.t, ".b") && !tree_has(&r.t, ".c") &&
	      !tree_has(&r.t, ".d"));
}

TEST(links_that_were_there)
{
	RUN(r);

	tree_dir(&r.t, "cfg");
	tree_dir(&r.t, "src");
	tree_link(&r.t, "cfg", ".vscode");
	tree_link(&r.t, "later", ".idea");
	tree_link(&r.t, "/usr/share", ".zed");
	run_begin(&r, "", ".vscode .idea .zed");
	tree_file(&r.t, "cfg/x", "the mount is on cfg");
	sweep_checks(&r, "");
	/* A dangling one was filled: the link goes, what it leads to stays. */
	tree_link(&r.t, "src", "later");
	sweep_checks(&r, ".idea (.idea)");
	CHECK(tree_has(&r.t, "src") && tree_has(&r.t, "later"));
	/* Replaced: a link cannot be masked, so this may come from inside. */
	bug_on(unlinkat(r.t.fd, ".zed", 0) < 0);
	tree_link(&r.t, "/usr/lib", ".zed");
	bug_on(unlinkat(r.t.fd, ".vscode", 0) < 0);
	tree_file(&r.t, ".vscode/tasks.json", "");
	sweep_checks(&r, ".vscode (.vscode); .zed (.zed)");
}

TEST(new_repository_keeps_working)
{
	RUN(r);

	run_begin(&r, "", ".git");
	GIT(&r.t, "", "init", "-q", "lib");
	GIT(&r.t, "lib", "commit", "-q", "--allow-empty", "-m", "x");
	GIT(&r.t, "", "clone", "-q", "lib", "main");
	GIT(&r.t, "main", "config", "user.name", "A B");
	GIT(&r.t, "main", "checkout", "-q", "-b", "topic");
	GIT(&r.t, "main", "push", "-q", "-u", "origin", "topic");
	GIT(&r.t, "main", "submodule", "--quiet", "add", "../lib", "deps/lib");
	GIT(&r.t, "main", "worktree", "add", "-q", "../wt");
	GIT(&r.t, "", "clone", "-q", "--bare", "lib", "bare.git");
	GIT(&r.t, "", "clone", "-q", "--shared", "lib", "shared");
	GIT(&r.t, "", "init", "-q", "--separate-git-dir=sep.git", "sep");
	sweep_checks(&r, "");
	GIT(&r.t, "main", "status");
	GIT(&r.t, "wt", "status");
	GIT(&r.t, "main/deps/lib", "status");
	GIT(&r.t, "sep", "status");
}

TEST(worktree_of_an_existing_repository)
{
	RUN(r);

	GIT(&r.t, "", "init", "-q", "m");
	GIT(&r.t, "m", "commit", "-q", "--allow-empty", "-m", "x");
	run_begin(&r, "", ".git");
	GIT(&r.t, "m", "worktree", "add", "-q", "../w");
	sweep_checks(&r, "");
	GIT(&r.t, "w", "status");
	tree_file(&r.t, "m/.git/worktrees/w/commondir", "../../../evil\n");
	tree_file(&r.t, "m/.git/worktrees/w/gitdir", "/etc/.git\n");
	tree_file(&r.t, "m/.git/worktrees/w/config.worktree", "[core]\n\tfsmonitor = ./x\n");
	sweep_checks(&r, "m/.git/worktrees/w/commondir (git commondir that is not of a worktree); "
			 "m/.git/worktrees/w/config.worktree (git config key core.fsmonitor); "
			 "m/.git/worktrees/w/gitdir (git worktree outside the workspace)");
}

TEST(dangerous_parts_of_a_new_repository)
{
	RUN(r);

	run_begin(&r, "", ".git");
	GIT(&r.t, "", "init", "-q", "n");
	GIT(&r.t, "n", "config", "core.sshCommand", "x");
	tree_file(&r.t, "n/.git/hooks/pre-commit", "#!/bin/sh\n");
	tree_file(&r.t, "n/.git/hooks/README", "read");
	tree_file(&r.t, "n/.git/hooks/tool", "x");
	bug_on(fchmodat(r.t.fd, "n/.git/hooks/tool", 0755, 0) < 0);
	tree_file(&r.t, "n/.git/info/attributes", "* filter=x\n");
	tree_file(&r.t, "n/.git/objects/info/alternates", "/home/other/.git/objects\n");
	CHECK_INT(sweep_run(r.t.fd, r.q.fd, &r.p, &r.before, &r.out, &r.e), 0);
	CHECK_INT(r.out.n, 5);
	CHECK(tree_has(&r.t, "n/.git/config") && !tree_has(&r.t, "n/.git/hooks/pre-commit"));
	CHECK(!tree_has(&r.t, "n/.git/hooks/tool") && !tree_has(&r.t, "n/.git/info/attributes"));
	CHECK(!tree_has(&r.t, "n/.git/objects/info/alternates"));
	CHECK(tree_has(&r.t, "n/.git/hooks/README") && tree_has(&r.t, "n/.git/hooks/"
								      "pre-commit.sample"));
	CHECK_STR(r.out.v[0].rule, "git config key core.sshcommand" SWEEP_REST_STAYS);
	CHECK_STR(r.out.v[0].rel, "n/.git/config");
}

/* All of a file below the workspace. */
static char *text_of(const struct tree *t, const char *rel)
{
	_close_ int fd = openat(t->fd, rel, O_RDONLY | O_CLOEXEC);
	struct buf b = BUF(MIB);

	bug_on(fd < 0 || replica_read(fd, &b) < 0);
	return b.p ? buf_take(&b) : mem_str("");
}

TEST(a_key_goes_and_the_config_stays)
{
	static const char good[] = "[core]\n\tbare = false\n[commit]\n\tgpgsign = true\n"
				   "[log]\n\tdate = format:%Y\n[remote \"o\"]\n\tpromisor = true\n";
	static const char bad[] = "[core]\n\tpager = ./x\n\tbare = false\n[commit]\n\tgpgsign = "
				  "true\n"
				  "[alias]\n\ty = !./x\n[log]\n\tdate = format:%Y\n[remote \"o\"]\n"
				  "\tpromisor = true\n\treceivepack = ./x\n";
	_free_ char *now = NULL, *saved = NULL;
	struct stat st;
	RUN(r);

	run_begin(&r, "", ".git");
	GIT(&r.t, "", "init", "-q", "n");
	tree_file(&r.t, "n/.git/config", good);
	sweep_checks(&r, "");
	tree_file(&r.t, "n/.git/config", bad);
	/* The mode is not the inside's to choose: nobody else may write here, and nothing is run. */
	bug_on(fchmodat(r.t.fd, "n/.git/config", 04777, 0) < 0);
	CHECK_INT(sweep_run(r.t.fd, r.q.fd, &r.p, &r.before, &r.out, &r.e), 0);
	CHECK_INT(r.out.n, 1);
	now = text_of(&r.t, "n/.git/config");
	saved = text_of(&r.q, r.out.v[0].saved);
	CHECK_STR(now, good);
	CHECK_STR(saved, bad);
	CHECK_STR(r.out.v[0].rule, "git config key core.pager" SWEEP_REST_STAYS);
	CHECK_INT(fstatat(r.t.fd, "n/.git/config", &st, 0), 0);
	CHECK_INT(st.st_mode, S_IFREG | 0644);
	sweep_done(&r.out);
	sweep_checks(&r, "");
	/* What cannot be read with certainty goes as a whole. */
	tree_file(&r.t, "n/.git/config", "[core]\n\tbare = false\n\tpager = a\\\nb\n");
	sweep_checks(&r, "n/.git/config (git config that cannot be read with certainty)");
}

/* The end of a session: what is written down then. */
static void session_ends(struct run *r, const char *state)
{
	r->out.is_last = true;
	CHECK_INT(sweep_run(r->t.fd, r->q_fd, &r->p, &r->before, &r->out, &r->e), 0);
	CHECK_INT(made_save(state, r->t.path, &r->out.made), 0);
	sweep_done(&r->out);
	scan_done(&r->before);
}

static void session_begins(struct run *r, const char *state)
{
	_cleanup_(made_done) struct made made = { 0 };

	made_load(state, r->t.path, &made);
	CHECK_INT(scan_run_made(r->t.fd, &r->p, &made, NULL, &r->before, &r->e), 0);
}

TEST(made_inside_is_not_protected_until_the_host_touches_it)
{
	static const char *const touched[] = { "n/.git/config", "w/.git",
					       "m/.git/worktrees/w/gitdir" };
	_cleanup_(tree_done) struct tree state = tree_new();
	RUN(r);

	GIT(&r.t, "", "init", "-q", "m");
	GIT(&r.t, "m", "commit", "-q", "--allow-empty", "-m", "x");
	run_begin(&r, "", ".git");
	GIT(&r.t, "", "init", "-q", "n");
	GIT(&r.t, "m", "worktree", "add", "-q", "../w");
	session_ends(&r, state.path);
	session_begins(&r, state.path);
	CHECK(!scan_has_below(&r.before, "n") && scan_find(&r.before, "n") == NULL);
	CHECK(!scan_has_below(&r.before, "w") && !scan_has_below(&r.before, "m/.git/worktrees"));
	CHECK(scan_covers(&r.before, "m/.git/config") && scan_find(&r.before, "m/.git"));
	/* What is done there now is judged as before. */
	tree_file(&r.t, "n/.git/hooks/pre-commit", "x");
	CHECK_INT(sweep_run(r.t.fd, r.q_fd, &r.p, &r.before, &r.out, &r.e), 0);
	CHECK(!tree_has(&r.t, "n/.git/hooks/pre-commit"));
	session_ends(&r, state.path);
	session_begins(&r, state.path);
	CHECK(!scan_has_below(&r.before, "n"));
	scan_done(&r.before);
	/* Commits of the host change nothing; a key, a hook, a second name, even the same bytes once more do. */
	GIT(&r.t, "n", "commit", "-q", "--allow-empty", "-m", "y");
	session_begins(&r, state.path);
	CHECK(!scan_has_below(&r.before, "n"));
	scan_done(&r.before);
	for (size_t i = 0; i < ARRAY_LEN(touched); i++) {
		_free_ char *text = text_of(&r.t, touched[i]);

		session_begins(&r, state.path);
		CHECK(!scan_covers(&r.before, touched[i]));
		scan_done(&r.before);
		tree_file(&r.t, touched[i], text);
		session_begins(&r, state.path);
		CHECK(scan_covers(&r.before, touched[i]));
		scan_done(&r.before);
	}
	session_begins(&r, state.path);
}

TEST(made_elsewhere_or_linked_is_the_hosts)
{
	_cleanup_(tree_done) struct tree state = tree_new();
	RUN(r);

	run_begin(&r, "", ".git");
	GIT(&r.t, "", "init", "-q", "a");
	GIT(&r.t, "", "init", "-q", "b");
	GIT(&r.t, "", "init", "-q", "c");
	session_ends(&r, state.path);
	bug_on(renameat(r.t.fd, "a", r.t.fd, "d") < 0);
	bug_on(linkat(r.t.fd, "b/.git/config", r.t.fd, "other", 0) < 0);
	tree_file(&r.t, "c/.git/hooks/pre-push", "x");
	session_begins(&r, state.path);
	CHECK(scan_covers(&r.before, "d/.git/config"));
	CHECK(scan_covers(&r.before, "b/.git/config") && scan_covers(&r.before, "other"));
	CHECK(scan_covers(&r.before, "c/.git/config") && scan_covers(&r.before, "c/.git/hooks"));
}

TEST(hooks_that_did_not_exist)
{
	RUN(r);

	GIT(&r.t, "", "init", "-q", "--template=", "n");
	CHECK(!tree_has(&r.t, "n/.git/hooks"));
	run_begin(&r, "", ".git");
	tree_file(&r.t, "n/.git/hooks/post-checkout", "x");
	sweep_checks(&r, "n/.git/hooks/post-checkout (git hook)");
	tree_dir(&r.t, "evil");
	bug_on(unlinkat(r.t.fd, "n/.git/hooks", AT_REMOVEDIR) < 0);
	tree_link(&r.t, "../../evil", "n/.git/hooks");
	sweep_checks(&r, "n/.git/hooks (git part behind a link)");
	tree_link(&r.t, "../../evil", "n/.git/info");
	tree_file(&r.t, "evil/attributes", "x");
	sweep_checks(&r, "n/.git/info (git part behind a link)");
	CHECK(tree_has(&r.t, "evil/attributes"));
}

TEST(pointers)
{
	RUN(r);

	tree_file(&r.t, ".git/HEAD", "x");
	tree_dir(&r.t, ".git/objects");
	tree_dir(&r.t, ".git/refs");
	run_begin(&r, "", ".git");
	tree_file(&r.t, "a/.git", "gitdir: /home/other/repo/.git\n");
	tree_file(&r.t, "b/.git", "gitdir: ../../outside\n");
	tree_file(&r.t, "c/.git", "not a pointer\n");
	tree_file(&r.t, "d/.git", "");
	tree_file(&r.t, "e/.git", "gitdir: ../not/yet\n");
	tree_link(&r.t, "../elsewhere/.git", "f");
	tree_dir(&r.t, "g");
	tree_link(&r.t, "/home/other/.git", "g/.git");
	/* In the workspace, and no repository but for the pointer: its HEAD is none. */
	tree_file(&r.t, "h/.git", "gitdir: ../.git/refs/evil\n");
	tree_file(&r.t, ".git/refs/evil/HEAD", "x");
	tree_file(&r.t, ".git/refs/evil/config", "[core]\n\tfsmonitor = x\n");
	tree_dir(&r.t, "dir");
	tree_link(&r.t, "dir", "link");
	tree_file(&r.t, "i/.git", "gitdir: ../link/x\n");
	/* A shared directory needs no HEAD, so only the pointer gives it away. */
	tree_file(&r.t, "j/worktrees/w/HEAD", "ref: refs/heads/m\n");
	tree_file(&r.t, "j/worktrees/w/commondir", "../..\n");
	tree_file(&r.t, "j/hooks/pre-commit", "x");
	CHECK_INT(sweep_run(r.t.fd, r.q.fd, &r.p, &r.before, &r.out, &r.e), 0);
	CHECK(!tree_has(&r.t, "a/.git") && !tree_has(&r.t, "b/.git") && !tree_has(&r.t, "c/.git"));
	CHECK(tree_has(&r.t, "d/.git") && tree_has(&r.t, "e/.git") && tree_has(&r.t, "h/.git"));
	CHECK(!tree_has(&r.t, "g/.git") && !tree_has(&r.t, ".git/refs/evil/config") &&
	      !tree_has(&r.t, "i/.git"));
	CHECK(!tree_has(&r.t, "j/hooks/pre-commit"));
	CHECK_INT(r.out.n, 7);
}

/* What looks like git's data is no shelter, whatever lies beside it. */
TEST(no_shelter_among_gits_data)
{
	static const char *const dirs[] = { "objects/aa", "objects/pack", "refs/heads", "logs/refs",
					    "lfs/objects/aa/bb" };
	RUN(r);

	GIT(&r.t, "", "init", "-q", "real");
	run_begin(&r, "", ".git .mcp.json");
	tree_file(&r.t, "fake/HEAD", "x");
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		for (int k = 0; k < 2; k++) {
			_free_ char *in = mem_fmt("%s/%s", k ? "fake" : "real/.git", dirs[i]);
			_free_ char *mcp = mem_fmt("%s/.mcp.json", in);
			_free_ char *hook = mem_fmt("%s/x/.git/hooks/pre-commit", in);

			tree_file(&r.t, mcp, "{}");
			tree_file(&r.t, hook, "x");
		}
	CHECK_INT(sweep_run(r.t.fd, r.q.fd, &r.p, &r.before, &r.out, &r.e), 0);
	CHECK_INT(r.out.n, 4 * ARRAY_LEN(dirs));
}

static size_t trusted(const struct index *x)
{
	size_t n = 0;

	for (size_t i = 0; i < x->n; i++)
		n += (x->dirs[i].flags & INDEX_TRUSTED) != 0;
	return n;
}

/* Directories that are not read again because they did not change: each kind of change is seen. */
TEST(what_changed_is_read_again)
{
	RUN(r);
	static const struct timespec tick = { .tv_nsec = 30 * 1000 * 1000 };

	for (int i = 0; i < 8; i++) {
		_free_ char *name = mem_fmt("plain%d/file", i);

		tree_file(&r.t, name, "x");
	}
	tree_file(&r.t, "flows/sub/w.yml", "x");
	tree_file(&r.t, "files/h", "#!/bin/sh\n");
	(void)nanosleep(&tick, NULL);
	run_begin(&r, "", ".git .mcp.json .vscode rules/sub/*.yml");
	CHECK(trusted(r.before.index) >= 8 || r.before.index->is_off);
	(void)nanosleep(&tick, NULL);
	tree_file(&r.t, "plain0/.mcp.json", "x");
	tree_dir(&r.t, "plain1/.vscode");
	tree_file(&r.t, "plain2/n/.mcp.json", "x");
	bug_on(renameat(r.t.fd, "plain3/file", r.t.fd, "plain3/.mcp.json") < 0);
	tree_hard(&r.t, "plain4/file", "plain4/.mcp.json");
	bug_on(renameat(r.t.fd, "plain5", r.t.fd, "plain6/.vscode") < 0);
	/* Its own directory did not change, the one above got another name. */
	bug_on(renameat(r.t.fd, "flows", r.t.fd, "rules") < 0);
	tree_link(&r.t, "x", "plain7/.mcp.json");
	bug_on(utimensat(r.t.fd, "plain7", (struct timespec[]){ { 1, 0 }, { 1, 0 } }, 0) < 0);
	CHECK_INT(sweep_run(r.t.fd, r.q.fd, &r.p, &r.before, &r.out, &r.e), 0);
	CHECK_INT(r.out.n, 8);
	CHECK(tree_has(&r.t, "files/h"));
}

/* ---- set-user-id and set-group-id files ---- */

struct bits {
	struct buf seen; /* paths, with a star when they are old */
	unsigned n;
};

static bool on_bits(void *arg, const char *rel, mode_t bits, bool is_old)
{
	struct bits *b = arg;

	CHECK(bits == S_ISGID || bits == S_ISUID);
	b->n++;
	buf_printf(&b->seen, "%s%s ", rel, is_old ? "*" : "");
	return !is_old;
}

static void set_bit(const struct tree *t, const char *rel, mode_t mode)
{
	bug_on(fchmodat(t->fd, rel, mode, 0) < 0);
}

static mode_t mode_of(const struct tree *t, const char *rel)
{
	struct stat st;

	bug_on(fstatat(t->fd, rel, &st, AT_SYMLINK_NOFOLLOW) < 0);
	return st.st_mode & 07777;
}

/* How much is known of set-id files before the sweep looks for them. */
enum known { NOTHING, NONE_MADE, NONE_MADE_AND_LISTED, KNOWN_COUNT_ };

static void sweep_bits(struct run *r, enum known known, struct bits *b)
{
	struct setid s = { .root_fd = r->t.fd, .on_found = on_bits, .arg = b };

	s.since = (int64_t)r->before.began.tv_sec * (int64_t)NS_PER_SEC + r->before.began.tv_nsec;
	s.is_listed = known != NOTHING;
	for (size_t i = 0; known == NONE_MADE_AND_LISTED && i < r->before.index->n; i++)
		r->before.index->dirs[i].flags |= INDEX_HAS_SETID;
	r->out.setid = &s;
	CHECK_INT(sweep_run(r->t.fd, r->q.fd, &r->p, &r->before, &r->out, &r->e), 0);
	CHECK_INT(s.failed, 0);
}

/* In a directory that did not change, a changed one, a new one, a protected one and a closed one. Where the files of a
 * directory are listed and none was made, one that did not change is not read. */
TEST(set_id_files_are_found_on_the_way)
{
	static const struct timespec tick = { .tv_nsec = 30 * 1000 * 1000 };

	for (enum known k = NOTHING; k < KNOWN_COUNT_; k++) {
		bool is_read = k != NONE_MADE_AND_LISTED;
		RUN(r);
		struct bits b = { .seen = BUF(MIB) };

		for (int i = 0; i < 40; i++) {
			_free_ char *name = mem_fmt("d%d/file", i);

			tree_file(&r.t, name, "x");
		}
		tree_file(&r.t, ".vscode/tool", "x");
		tree_file(&r.t, "host", "x");
		set_bit(&r.t, "host", 04755);
		(void)nanosleep(&tick, NULL);
		run_begin(&r, "", ".vscode");
		(void)nanosleep(&tick, NULL);
		for (int i = 0; i < 40; i += 3) {
			_free_ char *name = mem_fmt("d%d/file", i);

			set_bit(&r.t, name, 02755);
		}
		tree_file(&r.t, "d1/new", "x");
		set_bit(&r.t, "d1/new", 02711);
		tree_file(&r.t, "new/dir/x", "x");
		set_bit(&r.t, "new/dir/x", 02755);
		set_bit(&r.t, ".vscode/tool", 02755);
		tree_file(&r.t, "listed/x", "x");
		set_bit(&r.t, "listed/x", 02755);
		set_bit(&r.t, "listed", 0455);
		bug_on(mkdirat(r.t.fd, "shared", 0755) < 0);
		set_bit(&r.t, "shared", 02775);
		sweep_bits(&r, k, &b);
		CHECK_INT(b.n, (is_read ? 14 : 0) + 4 + 1);
		CHECK(strstr(buf_cstr(&b.seen), "host* ") != NULL);
		CHECK(strstr(buf_cstr(&b.seen), "new/dir/x ") != NULL);
		CHECK_INT(mode_of(&r.t, "host"), 04755);
		CHECK_INT(mode_of(&r.t, "d3/file"), is_read ? 0755 : 02755);
		CHECK_INT(mode_of(&r.t, "d39/file"), is_read ? 0755 : 02755);
		CHECK_INT(mode_of(&r.t, "d1/new"), 0711);
		CHECK_INT(mode_of(&r.t, ".vscode/tool"), 0755);
		CHECK_INT(mode_of(&r.t, "shared"), 02775);
		/* Nothing is left for the next. */
		b.n = 0;
		sweep_bits(&r, k, &b);
		CHECK_INT(b.n, 1);
		buf_done(&b.seen);
	}
}

/* Closed on the way to a part: what is in it is judged before it is opened. */
TEST(closed_parts_of_a_repository)
{
	RUN(r);

	GIT(&r.t, "", "init", "-q", "n");
	run_begin(&r, "", ".git");
	tree_file(&r.t, "n/.git/info/attributes", "* filter=x\n");
	tree_file(&r.t, "n/.git/objects/info/alternates", "/x\n");
	bug_on(fchmodat(r.t.fd, "n/.git/info", 0, 0) < 0 ||
	       fchmodat(r.t.fd, "n/.git/objects/info", 0, 0) < 0 ||
	       fchmodat(r.t.fd, "n/.git/objects", 0, 0) < 0);
	CHECK_INT(sweep_run(r.t.fd, r.q.fd, &r.p, &r.before, &r.out, &r.e), 0);
	CHECK_INT(r.out.n, 2);
}

/* chmod 000 . as the last act. */
TEST(a_closed_workspace)
{
	RUN(r);

	run_begin(&r, "", ".mcp.json");
	tree_file(&r.t, "d/.mcp.json", "{}");
	bug_on(fchmodat(r.t.fd, "d", 0, 0) < 0 || chmod(r.t.path, 0) < 0);
	CHECK_INT(sweep_run(r.t.fd, r.q.fd, &r.p, &r.before, &r.out, &r.e), 0);
	CHECK_INT(r.out.n, 1);
	CHECK_INT(r.out.n_left, 0);
}

TEST(bare_repository_made_inside)
{
	RUN(r);

	run_begin(&r, "", ".git");
	tree_file(&r.t, "docs/HEAD", "ref: refs/heads/main\n");
	tree_dir(&r.t, "docs/objects");
	tree_dir(&r.t, "docs/refs");
	tree_file(&r.t, "docs/config", "[core]\n\tbare = true\n\tfsmonitor = ./x\n");
	sweep_checks(&r, "docs/config (git config key core.fsmonitor" SWEEP_REST_STAYS ")");
}

TEST(hooks_path_of_the_config)
{
	RUN(r);

	GIT(&r.t, "", "init", "-q", ".");
	GIT(&r.t, "", "config", "core.hooksPath", "tools/hooks");
	tree_dir(&r.t, "src");
	run_begin(&r, "", ".git");
	sweep_checks(&r, "");
	tree_file(&r.t, "tools/hooks/pre-commit", "x");
	sweep_checks(&r, "tools/hooks (named in the git config)");
	tree_link(&r.t, "../src", "tools/hooks");
	sweep_checks(&r, "tools/hooks (named in the git config)");
	CHECK(tree_has(&r.t, "src"));
}

TEST(gone_by_the_host_is_new_when_it_comes_back)
{
	RUN(r);

	tree_file(&r.t, ".vscode/tasks.json", "x");
	run_begin(&r, "", ".vscode");
	bug_on(unlinkat(r.t.fd, ".vscode/tasks.json", 0) < 0 ||
	       unlinkat(r.t.fd, ".vscode", AT_REMOVEDIR) < 0);
	CHECK_INT(scan_refresh(&r.before, r.t.fd, ".vscode", &r.e), 0);
	tree_file(&r.t, ".vscode/tasks.json", "agent");
	sweep_checks(&r, ".vscode (.vscode)");
}

TEST(one_path)
{
	RUN(r);

	tree_dir(&r.t, "a");
	GIT(&r.t, "", "init", "-q", "old");
	run_begin(&r, "", ".vscode **/.claude/settings.json .git");
	tree_file(&r.t, "a/.vscode/tasks.json", "x");
	CHECK_INT(sweep_one(r.t.fd, r.q.fd, &r.p, &r.before, "a/.vscode/tasks.json", &r.out, &r.e),
		  1);
	CHECK(!tree_has(&r.t, "a/.vscode"));
	CHECK_INT(sweep_one(r.t.fd, r.q.fd, &r.p, &r.before, "a/.vscode/tasks.json", &r.out, &r.e),
		  0);
	/* A directory that was moved in with things in it. */
	tree_file(&r.t, "in/x/.claude/settings.json", "x");
	CHECK_INT(sweep_one(r.t.fd, r.q.fd, &r.p, &r.before, "in", &r.out, &r.e), 1);
	CHECK(!tree_has(&r.t, "in/x/.claude/settings.json"));
	tree_file(&r.t, "n/.git/hooks/pre-push", "x");
	CHECK_INT(sweep_one(r.t.fd, r.q.fd, &r.p, &r.before, "n/.git/hooks/pre-push", &r.out, &r.e),
		  1);
	tree_file(&r.t, "n/.git/config", "[include]\n\tpath = x\n");
	CHECK_INT(sweep_one(r.t.fd, r.q.fd, &r.p, &r.before, "n/.git/config", &r.out, &r.e), 1);
	tree_file(&r.t, "old/.git/info/attributes", "x");
	CHECK_INT(sweep_one(r.t.fd, r.q.fd, &r.p, &r.before, "old/.git/info/attributes", &r.out,
			    &r.e),
		  1);
	CHECK_INT(sweep_one(r.t.fd, r.q.fd, &r.p, &r.before, "old/.git/config", &r.out, &r.e), 0);
	CHECK_INT(sweep_one(r.t.fd, r.q.fd, &r.p, &r.before, "not/there", &r.out, &r.e), 0);
	CHECK_INT(sweep_one(r.t.fd, r.q.fd, &r.p, &r.before, "../etc", &r.out, &r.e), -EINVAL);
	CHECK_INT(r.out.n, 5);
}

/* What an ordinary user's own processes can make hard to remove. */
TEST(closed_directories)
{
	RUN(r);
	pid_t pid;
	int status = 0, failures = test_failures;

	bug_on(chmod(r.t.path, 0777) < 0 || chmod(r.q.path, 0777) < 0);
	pid = fork();
	if (pid == 0) {
		if (geteuid() == 0)
			bug_on(setgid(65534) < 0 || setuid(65534) < 0);
		run_begin(&r, "", ".vscode **/.claude/settings.json .git");
		tree_file(&r.t, ".vscode/tasks.json", "x");
		bug_on(fchmodat(r.t.fd, ".vscode", 0100, 0) < 0);
		tree_file(&r.t, "a/b/.claude/settings.json", "x");
		bug_on(fchmodat(r.t.fd, "a/b/.claude", 0100, 0) < 0 ||
		       fchmodat(r.t.fd, "a/b", 0500, 0) < 0);
		bug_on(fchmodat(r.t.fd, "a", 0300, 0) < 0);
		tree_file(&r.t, "n/.git/hooks/pre-push", "x");
		bug_on(fchmodat(r.t.fd, "n/.git/hooks", 0100, 0) < 0 ||
		       fchmodat(r.t.fd, "n/.git", 0500, 0) < 0);
		CHECK_INT(sweep_run(r.t.fd, r.q.fd, &r.p, &r.before, &r.out, &r.e), 0);
		CHECK_STR(r.e.msg, "");
		CHECK(!tree_has(&r.t, ".vscode/tasks.json") && !tree_has(&r.t, "a/b/.claude/"
									       "settings.json"));
		CHECK(!tree_has(&r.t, "n/.git/hooks/pre-push"));
		CHECK_INT(r.out.n, 3);
		_exit(test_failures != failures);
	}
	bug_on(waitpid(pid, &status, 0) < 0);
	CHECK_INT(status, 0);
}

/* A quarantine on another file system; /dev/shm is one wherever these tests run. */
TEST(other_file_system)
{
	RUN(r);
	char shm[] = "/dev/shm/view-test-XXXXXX";
	struct stat a, b;
	struct tree other = { .fd = FD_NONE };
	_free_ char *text = NULL, *link = NULL;
	_close_ int big = FD_NONE;

	bug_on(mkdtemp(shm) == NULL);
	(void)snprintf(other.path, sizeof(other.path), "%s", shm);
	other.fd = open(shm, O_PATH | O_DIRECTORY | O_CLOEXEC);
	bug_on(fstat(other.fd, &a) < 0 || fstat(r.t.fd, &b) < 0);
	CHECK(a.st_dev != b.st_dev);
	run_begin(&r, "", ".vscode .mcp.json .big .link .deep");
	tree_file(&r.t, ".mcp.json", "text");
	tree_file(&r.t, ".vscode/x/tasks.json", "t");
	tree_file(&r.t, ".big", "");
	tree_link(&r.t, "/etc/passwd", ".link");
	tree_link(&r.t, "/etc/passwd", ".vscode/l");
	big = openat(r.t.fd, ".big", O_WRONLY | O_CLOEXEC);
	bug_on(ftruncate(big, (off_t)(65 * MIB)) < 0);
	{
		int at = FD_NONE;

		tree_dir(&r.t, ".deep");
		at = openat(r.t.fd, ".deep", O_PATH | O_DIRECTORY | O_CLOEXEC);
		for (int i = 0; i < 3000; i++) {
			int next;

			bug_on(mkdirat(at, "d", 0755) < 0);
			next = openat(at, "d", O_PATH | O_DIRECTORY | O_CLOEXEC);
			fd_close(at);
			at = next;
		}
		fd_close(at);
	}
	CHECK_INT(sweep_run(r.t.fd, other.fd, &r.p, &r.before, &r.out, &r.e), 0);
	CHECK_STR(r.e.msg, "");
	CHECK_INT(r.out.n, 5);
	for (size_t i = 0; i < r.out.n; i++) {
		const struct swept *s = &r.out.v[i];
		_free_ char *tasks = s->saved ? mem_fmt("%s/x/tasks.json", s->saved) : NULL;

		CHECK(!tree_has(&r.t, s->rel));
		CHECK((s->saved == NULL) == (str_eq(s->rel, ".big") || str_eq(s->rel, ".deep")));
		if (str_eq(s->rel, ".mcp.json"))
			text = tree_text(&other, s->saved);
		if (str_eq(s->rel, ".link"))
			link = tree_text(&other, s->saved);
		if (str_eq(s->rel, ".vscode"))
			CHECK(tree_has(&other, tasks));
	}
	CHECK_STR(text, "text");
	CHECK_STR(link, "symbolic link to: /etc/passwd\n");
	tree_done(&other);
}

/* ---- a hostile process that swaps while we sweep ---- */

/* All that it makes by name exists in the canary tree, so through a swapped link its own calls change nothing. */
static void swap_for_ever(const struct tree *t, const char *outside)
{
	int done = 0; /* any of these may fail at any time, that is the idea */

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (done < INT_MAX / 2) {
		done += renameat2(t->fd, "d", t->fd, "l", RENAME_EXCHANGE);
		done += renameat2(t->fd, "e/.vscode", t->fd, "l2", RENAME_EXCHANGE);
		done += mkdirat(t->fd, "e/.vscode", 0755);
		done += mkdirat(t->fd, "d/.vscode", 0755);
		done += linkat(t->fd, "seed", t->fd, "d/.vscode/tasks.json", 0);
		done += linkat(t->fd, "seed", t->fd, "e/.mcp.json", 0);
		done += mkdirat(t->fd, "d/.git", 0755);
		done += linkat(t->fd, "seed", t->fd, "d/.git/config", 0);
		done += symlinkat(outside, t->fd, "l2");
	}
}

static char *canary_state(const struct tree *out)
{
	static const char *const names[] = { ".vscode/tasks.json", ".mcp.json", ".git/config",
					     ".git/hooks/pre-commit", "keep" };
	struct buf b = BUF(KIB);

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		_free_ char *text = tree_text(out, names[i]);

		buf_printf(&b, "%s=%s ", names[i], text ? text : "GONE");
	}
	return buf_take(&b);
}

static unsigned canaries_read;

static int look_for_canary(const char *path, const struct stat *st, int type, struct FTW *at)
{
	_cleanup_(buf_done) struct buf b = BUF(MIB);
	struct err e = ERR_INIT;

	(void)at;
	if (type == FTW_F && S_ISREG(st->st_mode) && io_read_file(path, &b, &e) == 0)
		canaries_read += strstr(buf_cstr(&b), "canary") != NULL;
	return 0;
}

static void race_with(struct run *r, const struct tree *q, uint64_t ns)
{
	int q_fd = q->fd;
	_cleanup_(tree_done) struct tree out = tree_new();
	_free_ char *before = NULL, *after = NULL;
	uint64_t end = now_ns() + ns;
	unsigned rounds = 0;
	pid_t pid;

	tree_file(&out, ".vscode/tasks.json", "canary");
	tree_file(&out, ".mcp.json", "canary");
	tree_file(&out, ".git/config", "[alias]\n\tcanary = !x\n");
	tree_file(&out, ".git/hooks/pre-commit", "canary");
	tree_file(&out, "keep", "canary");
	before = canary_state(&out);
	tree_dir(&r->t, "d");
	tree_dir(&r->t, "e/.vscode");
	tree_file(&r->t, "seed", "[core]\n\tfsmonitor = x\n");
	run_begin(r, "", ".vscode .mcp.json .git");
	tree_link(&r->t, out.path, "l");
	tree_link(&r->t, out.path, "l2");
	pid = fork();
	if (pid == 0)
		swap_for_ever(&r->t, out.path);
	bug_on(pid < 0);
	while (now_ns() < end) {
		struct err e = ERR_INIT;

		/* A name that is swapped under our hands may be reported as left: that is allowed, straying is not. */
		(void)sweep_run(r->t.fd, q_fd, &r->p, &r->before, &r->out, &e);
		(void)sweep_one(r->t.fd, q_fd, &r->p, &r->before, "d/.vscode/tasks.json", &r->out,
				&e);
		(void)sweep_one(r->t.fd, q_fd, &r->p, &r->before, "l/.vscode/tasks.json", &r->out,
				&e);
		(void)sweep_one(r->t.fd, q_fd, &r->p, &r->before, "d/.git/config", &r->out, &e);
		rounds++;
	}
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	after = canary_state(&out);
	CHECK_STR(after, before);
	canaries_read = 0;
	(void)nftw(q->path, look_for_canary, 16, FTW_PHYS);
	CHECK_INT(canaries_read, 0);
	CHECK(rounds > 20);
	CHECK(r->out.n > 5); /* it did take things meanwhile */
}

TEST(swapping_never_leads_outside)
{
	RUN(r);

	race_with(&r, &r.q, 1500 * NS_PER_MS);
}

TEST(swapping_never_leads_outside_when_copying)
{
	RUN(r);
	char shm[] = "/dev/shm/view-test-XXXXXX";
	struct tree other = { .fd = FD_NONE };

	bug_on(mkdtemp(shm) == NULL);
	(void)snprintf(other.path, sizeof(other.path), "%s", shm);
	other.fd = open(shm, O_PATH | O_DIRECTORY | O_CLOEXEC);
	race_with(&r, &other, 1500 * NS_PER_MS);
	tree_done(&other);
}

TEST_MAIN()
