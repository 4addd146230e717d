/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <sys/resource.h>

#include "policy/table.h"
#include "view/testtree.h"

static const char kind_letters[] = "HPN";

/* "P .git/config; N .git; ..." in order; aliases and links carry a mark. */
static char *hits_of(const struct scan *s)
{
	struct buf b = BUF(4 * MIB);

	for (size_t i = 0; i < s->n; i++) {
		const struct hit *h = &s->v[i];

		buf_printf(&b, "%s%c%s%s%s %s", i ? "; " : "", kind_letters[h->kind],
			   h->is_dir ? "d" : "", h->is_alias ? "a" : "", h->is_link ? "l" : "",
			   h->rel);
	}
	return b.p ? buf_take(&b) : mem_str("");
}

static char *scan_text(const struct tree *t, const char *hide, const char *protect)
{
	struct policy p;
	struct scan s = { 0 };
	struct err e = ERR_INIT;
	char *text;

	policy_of(&p, hide, protect);
	CHECK_INT(scan_run(t->fd, &p, &s, &e), 0);
	CHECK_STR(e.msg, "");
	text = hits_of(&s);
	scan_done(&s);
	policy_gone(&p);
	return text;
}

#define SCANS(t, hide, protect, want)                                                              \
	do {                                                                                       \
		_free_ char *text_ = scan_text((t), (hide), (protect));                            \
		CHECK_STR(text_, (want));                                                          \
	} while (0)

TEST(nothing_to_find)
{
	_cleanup_(tree_done) struct tree t = tree_new();

	SCANS(&t, ".env", ".vscode .git", "");
	tree_file(&t, "src/env", "");
	tree_file(&t, "src/.environment", "");
	SCANS(&t, ".env", ".vscode .git", "");
}

TEST(names_match_at_any_depth)
{
	_cleanup_(tree_done) struct tree t = tree_new();

	tree_file(&t, ".env", "");
	tree_file(&t, "a/b/.env", "");
	tree_file(&t, "a/.vscode/tasks.json", "");
	SCANS(&t, ".env", ".vscode", "H .env; Nd a; Pd a/.vscode; Nd a/b; H a/b/.env");
}

TEST(globs_and_anchors)
{
	_cleanup_(tree_done) struct tree t = tree_new();

	tree_file(&t, "x.p12", "");
	tree_file(&t, "d/y.p12", "");
	tree_file(&t, "d/.env.local", "");
	tree_file(&t, "d/.env.example", "");
	tree_file(&t, "cfg/a/b/key", "");
	tree_file(&t, "d/cfg/key", "");
	tree_file(&t, "d/e/mid/k1", "");
	tree_file(&t, "q/zz.c", "");
	SCANS(&t, "*.p12 .env.* !.env.example cfg/**/key **/mid/k? q/[yz]*.c", "",
	      "Nd cfg; Nd cfg/a; Nd cfg/a/b; H cfg/a/b/key; Nd d; H d/.env.local; Nd d/e; Nd "
	      "d/e/mid; "
	      "H d/e/mid/k1; H d/y.p12; Nd q; H q/zz.c; H x.p12");
}

TEST(all_below_a_directory)
{
	_cleanup_(tree_done) struct tree t = tree_new();

	tree_file(&t, "s/a", "");
	tree_file(&t, "s/d/b", "");
	tree_file(&t, "o/s/c", "");
	SCANS(&t, "s/**", "", "Nd s; H s/a; Hd s/d");
}

TEST(hide_beats_protect_and_is_found_inside_it)
{
	_cleanup_(tree_done) struct tree t = tree_new();

	tree_file(&t, ".vscode/.env", "");
	tree_file(&t, ".vscode/x/.env", "");
	tree_file(&t, ".vscode/x/.idea/f", "");
	tree_file(&t, "both", "");
	SCANS(&t, ".env both", ".vscode .idea both",
	      "Pd .vscode; H .vscode/.env; H .vscode/x/.env; H both");
	SCANS(&t, ".vscode .env", ".vscode .idea", "Hd .vscode");
}

TEST(taken_back)
{
	_cleanup_(tree_done) struct tree t = tree_new();

	tree_file(&t, ".env", "");
	tree_file(&t, "test/.env", "");
	tree_file(&t, "vendor/.git/config", "");
	tree_dir(&t, "vendor/.git/objects");
	tree_dir(&t, "vendor/.git/refs");
	tree_file(&t, "vendor/.git/HEAD", "");
	tree_file(&t, ".git/config", "");
	SCANS(&t, ".env !test/.env", ".git !vendor/.git", "H .env; Nd .git; P .git/config");
}

TEST(repository)
{
	_cleanup_(tree_done) struct tree t = tree_new();

	GIT(&t, "", "init", "-q", "a/b");
	tree_file(&t, "a/b/.git/info/attributes", "* text\n");
	tree_file(&t, "a/b/.git/objects/info/alternates", "/x\n");
	tree_file(&t, "a/b/.git/config.worktree", "");
	tree_file(&t, "a/b/.git/refs/heads/.env", "");
	SCANS(&t, ".env", ".git",
	      "Nd a; Nd a/b; Nd a/b/.git; P a/b/.git/config; P a/b/.git/config.worktree; Pd "
	      "a/b/.git/hooks; "
	      "Nd a/b/.git/info; P a/b/.git/info/attributes; Nd a/b/.git/objects; Nd "
	      "a/b/.git/objects/info; "
	      "P a/b/.git/objects/info/alternates; Nd a/b/.git/refs; Nd a/b/.git/refs/heads; "
	      "H a/b/.git/refs/heads/.env");
	SCANS(&t, "", "**/.git !a/b/.git", "");
	SCANS(&t, "", ".vscode", "");
}

static int scan_fails(const struct tree *t, const char *says)
{
	struct policy p;
	struct scan s = { 0 };
	struct err e = ERR_INIT;
	int r;

	policy_of(&p, "", ".git");
	r = scan_run(t->fd, &p, &s, &e);
	CHECK(strstr(e.msg, says) != NULL);
	scan_done(&s);
	policy_gone(&p);
	return r;
}

/* Git reads ten includes in a row, and fails on more. */
TEST(a_chain_of_includes)
{
	_cleanup_(tree_done) struct tree t = tree_new();

	tree_file(&t, ".git/config", "[include]\n\tpath = ../c1\n");
	for (int i = 1; i < 10; i++) {
		_free_ char *name = mem_fmt("c%d", i);
		_free_ char *text = mem_fmt("[include]\n\tpath = c%d\n", i + 1);

		tree_file(&t, name, text);
	}
	tree_file(&t, "c10", "[core]\n\thooksPath = evil\n");
	tree_dir(&t, "evil");
	SCANS(&t, "", ".git",
	      "Nd .git; P .git/config; P c1; P c10; P c2; P c3; P c4; P c5; P c6; P c7; P c8; "
	      "P c9; Pd evil");
	/* Each file includes itself: as many as there are, not ten times ten times ten. */
	tree_file(&t, "c1", "[include]\n\tpath = c1\n\tpath = c1\n\tpath = c1\n\tpath = c1\n");
	CHECK(scan_fails(&t, "includes more than") < 0);
}

/* What cannot be read is not harmless. */
TEST(a_config_that_somebody_holds)
{
	_cleanup_(tree_done) struct tree t = tree_new();
	_close_ int fd = FD_NONE;

	tree_file(&t, ".git/config", "[core]\n\thooksPath = evil\n");
	fd = openat(t.fd, ".git/config", O_RDWR | O_CLOEXEC);
	(void)signal(SIGIO, SIG_IGN);
	if (fcntl(fd, F_SETLEASE, F_WRLCK) < 0)
		return; /* a file system without leases */
	CHECK(scan_fails(&t, "file lease") < 0);
	CHECK_INT(fcntl(fd, F_SETLEASE, F_UNLCK), 0);
	SCANS(&t, "", ".git", "Nd .git; P .git/config");
}

TEST(a_closed_config_is_not_harmless)
{
	_cleanup_(tree_done) struct tree t = tree_new();

	tree_file(&t, ".git/config", "[core]\n\thooksPath = evil\n");
	bug_on(fchmodat(t.fd, ".git/config", 0, 0) < 0);
	if (geteuid() == 0) /* reads it all the same */
		return;
	CHECK(scan_fails(&t, "cannot be looked at") < 0);
}

/* A repository, or what looks like one, shelters nothing: not even by what lies beside it. */
TEST(no_shelter)
{
	_cleanup_(tree_done) struct tree t = tree_new();

	tree_file(&t, "p/HEAD", "x");
	tree_dir(&t, "p/refs");
	tree_file(&t, "p/objects/.env", "x");
	tree_file(&t, ".git/HEAD", "ref: refs/heads/m\n");
	tree_file(&t, ".git/logs/x/.git/config", "x");
	tree_file(&t, ".git/objects/aa/.env", "x");
	SCANS(&t, ".env", ".git",
	      "Nd .git; Nd .git/logs; Nd .git/logs/x; Nd .git/logs/x/.git; P "
	      ".git/logs/x/.git/config; Nd .git/objects; Nd .git/objects/aa; H "
	      ".git/objects/aa/.env; Nd p; Nd p/objects; H p/objects/.env");
}

TEST(no_hooks_directory_is_made)
{
	_cleanup_(tree_done) struct tree t = tree_new();

	tree_file(&t, ".git/config", "[core]\n");
	SCANS(&t, "", ".git", "Nd .git; P .git/config");
	CHECK(!tree_has(&t, ".git/hooks"));
}

TEST(bare_repository)
{
	_cleanup_(tree_done) struct tree t = tree_new();

	GIT(&t, "", "init", "-q", "--bare", "x.git");
	SCANS(&t, "", ".git", "Nd x.git; P x.git/config; Pd x.git/hooks");
	/* Git wants no config to take a directory for a repository. */
	tree_file(&t, "y/HEAD", "ref: refs/heads/main\n");
	tree_dir(&t, "y/objects");
	tree_dir(&t, "y/refs");
	tree_file(&t, "y/hooks/pre-commit", "");
	tree_file(&t, "no/HEAD", "");
	tree_file(&t, "no/objects", "");
	tree_dir(&t, "no/refs");
	tree_file(&t, "no/config", "");
	SCANS(&t, "", ".git", "Nd x.git; P x.git/config; Pd x.git/hooks; Nd y; Pd y/hooks");
}

TEST(workspace_that_is_a_bare_repository)
{
	_cleanup_(tree_done) struct tree t = tree_new();

	GIT(&t, "", "init", "-q", "--bare", ".");
	SCANS(&t, "", ".git", "P config; Pd hooks");
}

TEST(submodule)
{
	_cleanup_(tree_done) struct tree t = tree_new();

	GIT(&t, "", "init", "-q", "lib");
	GIT(&t, "lib", "commit", "-q", "--allow-empty", "-m", "x");
	GIT(&t, "", "init", "-q", "main");
	GIT(&t, "main", "submodule", "--quiet", "add", "../lib", "refs");
	SCANS(&t, "", ".git",
	      "Nd lib; Nd lib/.git; P lib/.git/config; Pd lib/.git/hooks; Nd main; Nd main/.git; "
	      "P main/.git/config; Pd main/.git/hooks; Nd main/.git/modules; Nd "
	      "main/.git/modules/refs; "
	      "P main/.git/modules/refs/config; Pd main/.git/modules/refs/hooks; Nd main/refs; P "
	      "main/refs/.git");
}

TEST(worktree)
{
	_cleanup_(tree_done) struct tree t = tree_new();

	GIT(&t, "", "init", "-q", "m");
	GIT(&t, "m", "commit", "-q", "--allow-empty", "-m", "x");
	GIT(&t, "m", "worktree", "add", "-q", "../w");
	SCANS(&t, "", ".git",
	      "Nd m; Nd m/.git; P m/.git/config; Pd m/.git/hooks; Nd m/.git/worktrees; Nd "
	      "m/.git/worktrees/w; "
	      "P m/.git/worktrees/w/commondir; P m/.git/worktrees/w/gitdir; Nd w; P w/.git");
}

TEST(pointers_to_odd_places_are_followed)
{
	_cleanup_(tree_done) struct tree t = tree_new();

	/* A .git file into a place that the walk leaves out, and a shared directory without HEAD. */
	tree_file(&t, ".git/HEAD", "x");
	tree_dir(&t, ".git/objects");
	tree_file(&t, ".git/refs/evil/HEAD", "x");
	tree_file(&t, ".git/refs/evil/commondir", "../../../shared\n");
	tree_file(&t, "shared/config", "");
	tree_dir(&t, "shared/hooks");
	tree_file(&t, "sub/.git", "gitdir: ../.git/refs/evil\n");
	SCANS(&t, "", ".git",
	      "Nd .git; Nd .git/refs; Nd .git/refs/evil; P .git/refs/evil/commondir; Nd shared; P "
	      "shared/config; "
	      "Pd shared/hooks; Nd sub; P sub/.git");
}

TEST(config_names_hooks_and_scripts)
{
	_cleanup_(tree_done) struct tree t = tree_new();
	_free_ char *abs = tree_path(&t, "abs-hooks"), *cfg = NULL;

	tree_file(&t, "r/.husky/_/pre-commit", "");
	tree_file(&t, "r/tools/clean.sh", "");
	tree_file(&t, "r/extra.cfg", "[core]\n\tfsmonitor = ./mon.sh --x\n");
	tree_file(&t, "r/mon.sh", "");
	tree_dir(&t, "abs-hooks");
	cfg = mem_fmt("[core]\n\thooksPath = .husky/_\n[filter \"x\"]\n\tclean = ./tools/clean.sh "
		      "%%f\n"
		      "[include]\n\tpath = ../extra.cfg\n[alias]\n\tst = status\n\tx = \"!%s/run "
		      "me\"\n"
		      "[core]\n\teditor = /usr/bin/vi\n\tpager = less\n\thooksPath = .\n",
		      abs);
	tree_file(&t, "abs-hooks/run", "");
	tree_file(&t, "r/.git/config", cfg);
	SCANS(&t, "", ".git",
	      "Nd abs-hooks; P abs-hooks/run; Nd r; Nd r/.git; P r/.git/config; Pd r/.husky; P "
	      "r/extra.cfg; "
	      "P r/mon.sh; Nd r/tools; P r/tools/clean.sh");
}

TEST(symbolic_links)
{
	_cleanup_(tree_done) struct tree t = tree_new();
	_free_ char *abs = tree_path(&t, "real/abs.env");

	tree_file(&t, "real/.x", "");
	tree_file(&t, "real/abs.env", "");
	tree_dir(&t, "real/code");
	tree_dir(&t, "n");
	tree_link(&t, "real/.x", ".env");
	tree_link(&t, "real", "viadir");
	tree_link(&t, "../viadir/code", "n/.vscode");
	tree_link(&t, abs, "n/.env");
	tree_link(&t, "/etc/passwd", "real/.env");
	tree_link(&t, "../../../../etc", "real/.vscode");
	tree_link(&t, "gone", ".idea");
	tree_link(&t, "loop2", "loop1");
	tree_link(&t, "loop1", "loop2");
	SCANS(&t, ".env loop1", ".vscode .idea",
	      "Hl .env; Pl .idea; Hl loop1; Nd n; Hl n/.env; Pl n/.vscode; Nd real; Hl real/.env; "
	      "Pl real/.vscode; "
	      "H real/.x; H real/abs.env; Pd real/code");
}

TEST(git_link_and_linked_parts)
{
	_cleanup_(tree_done) struct tree t = tree_new();

	GIT(&t, "", "init", "-q", "r");
	bug_on(renameat(t.fd, "r/.git", t.fd, "store") < 0);
	tree_link(&t, "../store", "r/.git");
	bug_on(renameat(t.fd, "store/info", t.fd, "inf") < 0);
	tree_link(&t, "../inf", "store/info");
	tree_file(&t, "inf/attributes", "");
	SCANS(&t, "", ".git",
	      "Pd inf; Nd r; Pl r/.git; Nd store; P store/config; Pd store/hooks; Pl store/info");
}

TEST(aliases)
{
	_cleanup_(tree_done) struct tree t = tree_new();

	tree_file(&t, ".env", "x");
	tree_file(&t, ".vscode/tasks.json", "x");
	tree_file(&t, "a/plain", "x");
	tree_hard(&t, ".env", "a/other");
	tree_hard(&t, ".env", ".vscode/e");
	tree_hard(&t, ".vscode/tasks.json", "a/t");
	tree_hard(&t, "a/plain", "a/plain2");
	SCANS(&t, ".env", ".vscode", "H .env; Pd .vscode; Ha .vscode/e; Ha a/other; Pa a/t");
}

TEST(alias_of_git_config)
{
	_cleanup_(tree_done) struct tree t = tree_new();

	tree_file(&t, ".git/config", "[core]\n");
	tree_file(&t, ".git/hooks/pre-push", "");
	tree_hard(&t, ".git/config", "alias");
	tree_dir(&t, ".git/objects/aa");
	tree_hard(&t, ".git/hooks/pre-push", ".git/objects/aa/bb");
	SCANS(&t, "", ".git",
	      "Nd .git; P .git/config; Pd .git/hooks; Pa .git/objects/aa/bb; Pa alias");
}

static int chain_fd(const struct tree *t, unsigned depth)
{
	int fd = openat(t->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (unsigned i = 0; i < depth; i++) {
		int next;

		(void)mkdirat(fd, "d", 0755);
		next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		bug_on(next < 0);
		fd_close(fd);
		fd = next;
	}
	return fd;
}

TEST(very_deep)
{
	_cleanup_(tree_done) struct tree t = tree_new();
	const unsigned depth = 4000;
	struct rlimit old, few = { 64, 64 };
	struct policy p;
	struct scan s = { 0 };
	struct err e = ERR_INIT;
	int fd = chain_fd(&t, depth);

	bug_on(mkdirat(fd, ".vscode", 0755) < 0);
	fd_close(fd);
	tree_file(&t, "d/d/.env", "");
	(void)getrlimit(RLIMIT_NOFILE, &old);
	few.rlim_max = old.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &few);
	policy_of(&p, ".env", ".vscode");
	CHECK_INT(scan_run(t.fd, &p, &s, &e), 0);
	CHECK_INT(s.dirs, depth + 2); /* with the root, and .vscode for what may hide in it */
	CHECK_INT(s.skipped, 0);
	CHECK(scan_find(&s, "d/d/.env") != NULL);
	if (s.n) {
		/* Too deep to mount on: an ancestor stands for it. */
		const struct hit *last = NULL;

		for (size_t i = 0; i < s.n; i++)
			if (s.v[i].kind == HIT_PROTECT)
				last = &s.v[i];
		CHECK(last && last->is_dir && strlen(last->rel) <= SCAN_REL_MAX &&
		      strlen(last->rel) > SCAN_REL_MAX - 8);
	}
	scan_done(&s);
	policy_gone(&p);
	(void)setrlimit(RLIMIT_NOFILE, &old);
	/* nftw would need the depth in descriptors: take the chain apart from the top. */
	for (unsigned i = 0; i < depth; i++) {
		(void)unlinkat(t.fd, "d/.env", 0);
		if (renameat(t.fd, "d/d", t.fd, "e") < 0)
			break;
		(void)unlinkat(t.fd, "d", AT_REMOVEDIR);
		(void)renameat(t.fd, "e", t.fd, "d");
	}
}

/* Every level of a deep chain has a second child, so that frames are opened again on the way back. */
TEST(deep_and_bushy)
{
	_cleanup_(tree_done) struct tree t = tree_new();
	char path[2048] = "";
	struct policy p;
	struct scan s = { 0 };
	struct err e = ERR_INIT;
	size_t found = 0;

	for (int i = 0; i < 100; i++) {
		char side[2100];

		(void)snprintf(side, sizeof(side), "%szz/.env", path);
		tree_file(&t, side, "");
		(void)snprintf(side, sizeof(side), "%saa/.env", path);
		tree_file(&t, side, "");
		(void)snprintf(path + strlen(path), sizeof(path) - strlen(path), "m/");
	}
	policy_of(&p, ".env", "");
	CHECK_INT(scan_run(t.fd, &p, &s, &e), 0);
	for (size_t i = 0; i < s.n; i++)
		found += s.v[i].kind == HIT_HIDE;
	CHECK_INT(found, 200);
	CHECK_INT(s.dirs, 1 + 99 + 200);
	scan_done(&s);
	policy_gone(&p);
}

TEST(too_many_hits_name_the_rule)
{
	_cleanup_(tree_done) struct tree t = tree_new();
	struct policy p;
	struct scan s = { 0 };
	struct err e = ERR_INIT;
	_close_ int fd = FD_NONE;

	tree_dir(&t, "x");
	tree_file(&t, ".env", "");
	fd = openat(t.fd, "x", O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < SCAN_HITS_MAX + 50; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "%d.pem", i);
		bug_on(mknodat(fd, name, S_IFREG | 0600, 0) < 0);
	}
	policy_of(&p, ".env *.pem", "");
	CHECK_INT(scan_run(t.fd, &p, &s, &e), -E2BIG);
	CHECK_INT(e.kind, ERR_UNSUPPORTED);
	CHECK(strstr(e.msg, "'*.pem'") != NULL);
	CHECK(s.v == NULL);
	policy_gone(&p);
}

TEST(large_directory_is_quick)
{
	_cleanup_(tree_done) struct tree t = tree_new();
	struct policy p;
	struct scan s = { 0 };
	struct err e = ERR_INIT;
	uint64_t at;
	_close_ int fd = FD_NONE;

	tree_dir(&t, "x");
	fd = openat(t.fd, "x", O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < 100000; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "file-%d.js", i);
		bug_on(mknodat(fd, name, S_IFREG | 0600, 0) < 0);
	}
	policy_of(&p, "", "");
	for_names(name, names_hide)
		items_add(&p.hide, name, LAYER_BUILTIN);
	for_names(name, names_protect)
		items_add(&p.protect, name, LAYER_BUILTIN);
	at = now_ns();
	CHECK_INT(scan_run(t.fd, &p, &s, &e), 0);
	at = now_ns() - at;
	CHECK_INT(s.files, 100000);
	CHECK(at <
	      2 * NS_PER_SEC); /* some 30 ms; the bound is for loaded machines and sanitizers */
	scan_done(&s);
	policy_gone(&p);
}

static const char *const odd_names[] = { ".env",  ".env.local", ".env.example", "x.p12",
					 "a",     "config",     ".aws",         "credentials",
					 "key",   "[x]",        "z*",           ".git-credentials",
					 "id_rsa" };
static const char *const odd_tops[] = { "", "a/", "q/a/", "a/b/" };
#define ODD_PATHS (ARRAY_LEN(odd_tops) * ARRAY_LEN(odd_names) * ARRAY_LEN(odd_names))

static char *odd_path(size_t i)
{
	const size_t n = ARRAY_LEN(odd_names);

	return mem_fmt("%s%s.d/%s", odd_tops[i / (n * n)], odd_names[i / n % n], odd_names[i % n]);
}

static bool policy_covers(const struct items *l, const char *rel)
{
	for (const char *p = rel; *p;) {
		size_t n = (size_t)(strchrnul(p, '/') - rel);
		_free_ char *head = mem_strn(rel, n);

		if (items_match(l, head) >= 0)
			return true;
		p = rel + n;
		p += *p == '/';
	}
	return false;
}

/* The compiled matcher may only ever save work: the hits are those of a walk that asks the policy about each path. */
TEST(same_answers_as_the_policy)
{
	_cleanup_(tree_done) struct tree t = tree_new();
	static const char hide[] = ".env .env.* !.env.example *.p12 **/.aws.d/credentials a/**/key "
				   "a/x* !a/*/config "
				   "\\[x\\] z\\* ?d_rsa **/a/*/id_* [!b]ey a/.aws.d/** q/**/con*g";
	size_t covered = 0;
	struct policy p;
	struct scan s = { 0 };
	struct err e = ERR_INIT;

	for (size_t i = 0; i < ODD_PATHS; i++) {
		_free_ char *rel = odd_path(i);

		tree_file(&t, rel, "");
	}
	policy_of(&p, hide, "");
	CHECK_INT(scan_run(t.fd, &p, &s, &e), 0);
	for (size_t i = 0; i < ODD_PATHS; i++) {
		_free_ char *rel = odd_path(i);
		bool want = policy_covers(&p.hide, rel);

		covered += want;
		if (scan_covers(&s, rel) != want)
			(void)fprintf(stderr, "%s: want %d\n", rel, want);
		CHECK(scan_covers(&s, rel) == want);
	}
	CHECK(covered > 100 && covered < ODD_PATHS - 100);
	scan_done(&s);
	policy_gone(&p);
}

TEST(unreadable_directory_is_hidden)
{
	_cleanup_(tree_done) struct tree t = tree_new();
	pid_t pid;
	int status = 0, failures = test_failures;

	tree_file(&t, "d/.env", "");
	tree_file(&t, "n/x/.env", "");
	bug_on(chmod(t.path, 0755) < 0);
	/* Only an ordinary user is refused. */
	pid = fork();
	if (pid == 0) {
		if (geteuid() == 0) {
			bug_on(fchownat(t.fd, "d", 65534, 65534, 0) < 0 ||
			       fchownat(t.fd, "n", 65534, 65534, 0) < 0);
			bug_on(setgid(65534) < 0 || setuid(65534) < 0);
		}
		bug_on(fchmodat(t.fd, "d", 0100, 0) < 0 || fchmodat(t.fd, "n", 0400, 0) < 0);
		SCANS(&t, ".env", "", "Hd d; Hd n");
		bug_on(fchmodat(t.fd, "d", 0700, 0) < 0 || fchmodat(t.fd, "n", 0700, 0) < 0);
		_exit(test_failures != failures);
	}
	bug_on(waitpid(pid, &status, 0) < 0);
	CHECK_INT(status, 0);
}

TEST(what_has_hits_below)
{
	_cleanup_(tree_done) struct tree t = tree_new();
	struct policy p;
	struct scan s = { 0 };
	struct err e = ERR_INIT;

	CHECK(!scan_has_below(&s, ""));
	tree_file(&t, "a/b/.env", "");
	tree_file(&t, "a-b/x", "");
	tree_file(&t, "ab/c/.env", "");
	tree_file(&t, "z\xc3\xa4/.env", "");
	policy_of(&p, ".env", "");
	CHECK_INT(scan_run(t.fd, &p, &s, &e), 0);
	CHECK(scan_has_below(&s, "") && scan_has_below(&s, "a") && scan_has_below(&s, "a/b"));
	CHECK(scan_has_below(&s, "ab/c") && scan_has_below(&s, "z\xc3\xa4"));
	CHECK(!scan_has_below(&s, "a-b") && !scan_has_below(&s, "a/b/.env"));
	CHECK(!scan_has_below(&s, "z") && !scan_has_below(&s, "a/b/.e") &&
	      !scan_has_below(&s, "zz"));
	scan_done(&s);
	policy_gone(&p);
}

TEST(refresh)
{
	_cleanup_(tree_done) struct tree t = tree_new();
	struct policy p;
	struct scan s = { 0 };
	struct err e = ERR_INIT;
	ino_t old;

	tree_file(&t, ".env", "");
	tree_file(&t, "a/.git/config", "");
	policy_of(&p, ".env", ".git");
	CHECK_INT(scan_run(t.fd, &p, &s, &e), 0);
	old = scan_find(&s, ".env")->ino;
	tree_file(&t, ".env.new", "");
	bug_on(renameat(t.fd, ".env.new", t.fd, ".env") < 0);
	CHECK_INT(scan_refresh(&s, t.fd, ".env", &e), 1);
	CHECK(scan_find(&s, ".env")->ino != old);
	bug_on(unlinkat(t.fd, "a/.git/config", 0) < 0 ||
	       unlinkat(t.fd, "a/.git", AT_REMOVEDIR) < 0);
	CHECK(scan_covers(&s, "a/.git/config"));
	CHECK_INT(scan_refresh(&s, t.fd, "a/.git", &e), 0);
	CHECK(!scan_covers(&s, "a/.git/config"));
	CHECK(scan_find(&s, "a") != NULL);
	CHECK(scan_covers(&s, ".env") && !scan_covers(&s, "a") && !scan_covers(&s, ".en"));
	CHECK_INT(scan_refresh(&s, t.fd, "nothing", &e), 0);
	scan_done(&s);
	policy_gone(&p);
}

TEST_MAIN()
