/* SPDX-License-Identifier: Apache-2.0 */
#include "view/testtree.h"

#include <dirent.h>

#include "view/outcome.h"

/* The tree that would be there: what the sandbox brings, above what the host has. */
struct brings {
	const char *rel;
	const char *text; /* of a file; "-> x" is a link, NULL a directory */
	mode_t mode;
};

struct after {
	struct tree t;
	struct policy p;
	struct outcome_host host;
	const struct brings *v;
	size_t n;
	struct outcome_tree o;
};

static const struct brings *brought(const struct after *a, const char *rel)
{
	for (size_t i = 0; i < a->n; i++)
		if (str_eq(a->v[i].rel, rel))
			return &a->v[i];
	return NULL;
}

static unsigned char type(void *arg, const char *rel, mode_t *ret_mode)
{
	const struct after *a = arg;
	const struct brings *b = brought(a, rel);
	struct stat st;

	if (b) {
		*ret_mode = b->mode;
		return b->text == NULL ? DT_DIR : str_starts(b->text, "-> ") ? DT_LNK : DT_REG;
	}
	if (fstatat(a->t.fd, rel, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return DT_UNKNOWN;
	*ret_mode = st.st_mode;
	return IFTODT(st.st_mode);
}

static int read_text(void *arg, const char *rel, struct buf *out)
{
	const struct after *a = arg;
	const struct brings *b = brought(a, rel);
	_free_ char *text = b ? mem_str(b->text ? b->text : "") : tree_text(&a->t, rel);

	if (text == NULL || (b && b->text == NULL))
		return -ENOENT;
	buf_puts(out, text);
	return out->is_over ? -EMSGSIZE : 0;
}

static bool is_old(void *arg, const char *rel)
{
	mode_t mode;

	return brought(arg, rel) == NULL && type(arg, rel, &mode) != DT_UNKNOWN;
}

static void after_done(struct after *a)
{
	outcome_done(&a->o);
	outcome_host_done(&a->host);
	policy_gone(&a->p);
	tree_done(&a->t);
}

#define AFTER(name) _cleanup_(after_done) struct after name = { .t = tree_new() }

static void begin(struct after *a, const char *protect, const struct brings *v, size_t n)
{
	struct err e = ERR_INIT;

	policy_of(&a->p, "", protect);
	CHECK_INT(outcome_host_load(a->t.fd, &a->p, &a->host, &e), 0);
	CHECK_STR(e.msg, "");
	a->v = v;
	a->n = n;
	a->o = (struct outcome_tree){ .p = &a->p,
				      .host = &a->host,
				      .type = type,
				      .read = read_text,
				      .is_old = is_old,
				      .arg = a };
}

#define BEGIN(a, protect, v) begin((a), (protect), (v), ARRAY_LEN(v))

static void says(struct after *a, const char *rel, const char *want)
{
	_free_ char *why = outcome_why(&a->o, rel);

	if (want == NULL)
		CHECK_STR(why ? why : "", "");
	else if (why == NULL || strstr(why, want) == NULL)
		CHECK_STR(why ? why : "(nothing)", want);
}

TEST(patterns_cover_what_lies_below)
{
	static const struct brings v[] = { { "a/.vscode/tasks.json", "{}", 0644 },
					   { ".envrc", "x", 0644 },
					   { "a/plain", "x", 0755 },
					   { "deep/.vscode/x/y", "x", 0644 } };
	AFTER(a);

	BEGIN(&a, ".git **/.vscode .envrc", v);
	says(&a, "a/.vscode/tasks.json", "protected by '**/.vscode'");
	says(&a, "deep/.vscode/x/y", "protected by '**/.vscode'");
	says(&a, ".envrc", "protected by '.envrc'");
	says(&a, "a/plain", NULL);
}

TEST(a_new_repository_is_judged_by_content)
{
	static const struct brings v[] = {
		{ "n/.git", NULL, 0755 },
		{ "n/.git/HEAD", "ref: refs/heads/main\n", 0644 },
		{ "n/.git/config", "[core]\n\tbare = false\n", 0644 },
		{ "n/.git/hooks/pre-commit.sample", "x", 0755 },
		{ "n/.git/hooks/pre-commit", "x", 0644 },
		{ "n/.git/hooks/other", "x", 0755 },
		{ "n/.git/hooks/readme", "x", 0644 },
		{ "n/.git/info/attributes", "* filter=x", 0644 },
		{ "n/.git/index", "x", 0644 },
		{ "bad/.git", NULL, 0755 },
		{ "bad/.git/config", "[core]\n\tfsmonitor = ./x\n", 0644 },
		{ "link/.git", "-> ../elsewhere", 0777 },
		{ "file/.git", "gitdir: ../../outside\n", 0644 },
		{ "lh/.git", NULL, 0755 },
		{ "lh/.git/hooks", "-> ../../h", 0777 },
		{ "lh/.git/info", "-> ../../h", 0777 },
	};
	AFTER(a);

	BEGIN(&a, ".git", v);
	says(&a, "n/.git", NULL);
	says(&a, "n/.git/HEAD", NULL);
	says(&a, "n/.git/config", NULL);
	says(&a, "n/.git/index", NULL);
	says(&a, "n/.git/hooks/pre-commit.sample", NULL);
	says(&a, "n/.git/hooks/readme", NULL);
	says(&a, "n/.git/hooks/pre-commit", "git hook");
	says(&a, "n/.git/hooks/other", "git hook");
	says(&a, "n/.git/info/attributes", "git attributes");
	says(&a, "bad/.git/config", "core.fsmonitor");
	says(&a, "link/.git", "behind a link");
	says(&a, "file/.git", "outside the workspace");
	says(&a, "lh/.git/hooks", "behind a link");
	says(&a, "lh/.git/info", "behind a link");
	says(&a, "x/.GIT/config", "in another case");
	says(&a, "x/.gitx/config", NULL);
}

TEST(a_bare_repository_needs_no_name)
{
	static const struct brings v[] = {
		{ "b/HEAD", "ref: refs/heads/main\n", 0644 },
		{ "b/objects", NULL, 0755 },
		{ "b/refs", NULL, 0755 },
		{ "b/config", "[core]\n\tfsmonitor = ./x\n", 0644 },
		{ "b/hooks/post-checkout", "x", 0755 },
		{ "nearly/HEAD", "x", 0644 },
		{ "nearly/refs", NULL, 0755 },
		{ "nearly/config", "[core]\n\tfsmonitor = ./x\n", 0644 },
	};
	AFTER(a);

	BEGIN(&a, ".git", v);
	says(&a, "b/config", "core.fsmonitor");
	says(&a, "b/hooks/post-checkout", "git hook");
	says(&a, "b/HEAD", NULL);
	says(&a, "nearly/config", NULL);
}

/* The rest came out earlier, when it was data. */
TEST(the_name_that_completes_a_repository)
{
	static const struct brings v[] = { { "b/HEAD", "ref: refs/heads/main\n", 0644 },
					   { "c/HEAD", "ref: refs/heads/main\n", 0644 },
					   { "d/objects", NULL, 0755 },
					   { "p/.git", "gitdir: ../store\n", 0644 },
					   { "q/.git", "gitdir: ../fine\n", 0644 } };
	AFTER(a);

	tree_dir(&a.t, "b/objects");
	tree_dir(&a.t, "b/refs");
	tree_file(&a.t, "b/config", "[core]\n\tfsmonitor = ./x\n");
	tree_dir(&a.t, "c/objects");
	tree_dir(&a.t, "c/refs");
	tree_file(&a.t, "d/HEAD", "ref: refs/heads/main\n");
	tree_dir(&a.t, "d/refs");
	tree_file(&a.t, "d/hooks/pre-commit", "x");
	tree_file(&a.t, "store/config", "[core]\n\tsshCommand = ./x\n");
	tree_file(&a.t, "fine/config", "[core]\n\tbare = true\n");
	BEGIN(&a, ".git", v);
	says(&a, "b/HEAD", "core.fsmonitor");
	says(&a, "c/HEAD", NULL);
	says(&a, "d/objects", "d/hooks/pre-commit");
	says(&a, "p/.git", "core.sshcommand");
	says(&a, "q/.git", NULL);
}

TEST(what_the_host_has_stays_the_hosts)
{
	static const struct brings v[] = { { ".git/config", "[core]\n\tbare = false\n", 0644 },
					   { ".git/hooks/pre-commit", "y", 0755 },
					   { ".git/hooks", NULL, 0755 },
					   { ".git/refs/heads/x", "y", 0644 } };
	AFTER(a);

	GIT(&a.t, "", "init", "-q");
	tree_file(&a.t, ".git/hooks/pre-commit", "mine");
	BEGIN(&a, ".git", v);
	says(&a, ".git/config", "protected on the host");
	says(&a, ".git/hooks/pre-commit", "protected on the host");
	says(&a, ".git/refs/heads/x", NULL);
}

TEST(what_the_hosts_configuration_names)
{
	static const struct brings v[] = { { "tools/clean.sh", "x", 0755 },
					   { "tools/other.sh", "x", 0755 },
					   { "hooks-of-ours/pre-push", "x", 0755 },
					   { "via", "-> elsewhere", 0777 },
					   { "real/filter", "x", 0755 } };
	AFTER(a);

	GIT(&a.t, "", "init", "-q");
	GIT(&a.t, "", "config", "core.hooksPath", "hooks-of-ours");
	GIT(&a.t, "", "config", "filter.x.clean", "tools/clean.sh %f");
	GIT(&a.t, "", "config", "filter.x.smudge", "via/smudge");
	GIT(&a.t, "", "config", "filter.y.clean", "linked/filter");
	tree_dir(&a.t, "real");
	tree_link(&a.t, "real", "linked");
	BEGIN(&a, ".git", v);
	says(&a, "tools/clean.sh", "named in the git config");
	says(&a, "tools/other.sh", NULL);
	says(&a, "hooks-of-ours/pre-push", "named in the git config");
	says(&a, "via", "named in the git config");
}

TEST(a_policy_may_take_git_back)
{
	static const struct brings v[] = { { "n/.git", NULL, 0755 },
					   { "n/.git/hooks/pre-commit", "x", 0755 } };
	AFTER(a);

	BEGIN(&a, ".git !n/.git", v);
	says(&a, "n/.git/hooks/pre-commit", NULL);
}

TEST(depth_is_bounded)
{
	static const struct brings v[] = { { "x", "x", 0644 } };
	_cleanup_(buf_done) struct buf b = BUF(64 * KIB);
	AFTER(a);

	BEGIN(&a, ".git", v);
	for (int i = 0; i < 400; i++)
		buf_puts(&b, "d/");
	buf_puts(&b, "f");
	says(&a, buf_cstr(&b), "deeper than can be judged");
	says(&a, "x", NULL);
}

static char *judged_todo(const char *text)
{
	const struct outcome_part p = {
		.what = GIT_TODO, .dir = ".git", .abs = "/w", .text = text, .n = strlen(text)
	};
	char *follow = NULL;

	return outcome_part(&p, &follow);
}

TEST(steps_of_a_rebase)
{
	static const char *const fine[] = { "", "pick 1 exec x\n", "# exec x\nlabel x\n",
					    "edit 1\nreword 2 x y\nmerge -C 3 x\n", "execute x\n" };
	static const char *const bad[] = { "exec x\n", "x y", "pick 1\n \texec\ty\n",
					   "pick 1\r\nx y\r\n", "\n\nx\n" };

	for (size_t i = 0; i < ARRAY_LEN(fine); i++) {
		_free_ char *why = judged_todo(fine[i]);

		CHECK(why == NULL);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		_free_ char *why = judged_todo(bad[i]);

		CHECK_STR(why, "git rebase with commands to run");
	}
}

TEST_MAIN()
