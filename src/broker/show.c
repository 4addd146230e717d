/* SPDX-License-Identifier: Apache-2.0 */
/* broker/show.c - what a person is shown before a push or a checkout: the sum, and every commit by itself
 *
 * The sum alone would hide what one commit added and a later one removed again: both are pushed. A new branch is compared
 * with its merge base with the upstream's default branch, so that the page shows the agent's work and not the repository.
 * Every list has a ceiling of its own, in this order: the totals and the names of the commits come first and are never
 * pushed out by a large diff; where a list is cut, the page says so at that place. What git fails to show is an error: a
 * person is not asked about something that could not be shown.
 */
#include "broker/broker.h"

#define NAMES_MAX ((size_t)128 * 1024) /* commits by name */
#define STAT_MAX ((size_t)128 * 1024)  /* the diffstat of the sum */
#define SUM_MAX ((size_t)512 * 1024)   /* the diff of the sum */
#define EACH_MAX ((size_t)512 * 1024)  /* the commits one by one */

#define TAGS_MAX 4

#define PLAIN "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames"
#define NEW_ONLY "--not", "--branches", "--tags"

/* One part of the page: a heading, and what git prints below it, up to `max` bytes. */
static int add_part(const struct repo *r, const char *heading, const char *const *words, size_t max,
		    struct buf *page, struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF(max);
	bool is_cut = false;
	int x = repo_git_cut(r, words, &text, &is_cut, e);

	if (x < 0)
		return x;
	if (heading)
		buf_printf(page, "\n== %s\n", heading);
	buf_add(page, text.p, text.n);
	if (is_cut)
		buf_printf(page,
			   "\n... cut here: more than %zu KiB. What follows of this part is "
			   "not shown.\n",
			   max / 1024);
	return 0;
}

/* One line of git's output, such as an object's name. 1, 0 when git exits with another status than 0, or -errno. */
static int ask_line(const struct repo *r, const char *const *words, char *ret, size_t size,
		    struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF(64 * KIB), errors = BUF(64 * KIB);
	int x = repo_git(r, words, false, &out, &errors, e);

	if (x != 0)
		return x < 0 ? x : 0;
	(void)snprintf(ret, size, "%.*s", (int)strcspn(buf_cstr(&out), "\n"), buf_cstr(&out));
	return 1;
}

/* What `new` is compared with: its merge base with `old`, or the empty tree where they have none. */
static int find_base(const struct repo *r, const char *old, const char *new, char base[65],
		     struct err *e)
{
	const char *const merge[] = { "merge-base", old, new, NULL };
	const char *const empty[] = { "hash-object", "-t", "tree", "/dev/null", NULL };
	int x = ask_line(r, merge, base, 65, e);

	if (x == 0)
		x = ask_line(r, empty, base, 65, e);
	if (x < 0)
		return x;
	return x > 0 && is_oid(base)
		       ? 0
		       : err_set(e, ERR_SYSTEM, EIO, "git names nothing to compare the push with");
}

static int add_sum(const struct repo *r, const char *base, const char *new, struct buf *page,
		   struct err *e)
{
	const char *const total[] = { "diff", PLAIN, "--shortstat", base, new, NULL };
	const char *const stat[] = { "diff", PLAIN, "--stat=120,90", "--summary", base, new, NULL };
	const char *const diff[] = { "diff", PLAIN, base, new, NULL };
	int x = add_part(r, "The sum", total, 64 * KIB, page, e);

	if (x == 0)
		x = add_part(r, NULL, stat, STAT_MAX, page, e);
	return x < 0 ? x : add_part(r, "The diff of the sum", diff, SUM_MAX, page, e);
}

static int add_commits(const struct repo *r, const char *new, struct buf *page, struct err *e)
{
	const char *const count[] = { "rev-list", "--count", new, NEW_ONLY, NULL };
	const char *const names[] = {
		"log", "--no-color", "--no-decorate", "--format=%h %an: %s", new, NEW_ONLY, NULL
	};
	char n[32] = "?";
	_free_ char *heading = NULL;
	int x = ask_line(r, count, n, sizeof(n), e);

	if (x <= 0)
		return x < 0 ? x : err_set(e, ERR_SYSTEM, EIO, "git cannot count the new commits");
	heading = mem_fmt("New commits: %s, the newest first", n);
	return add_part(r, heading, names, NAMES_MAX, page, e);
}

static int add_each(const struct repo *r, const char *new, struct buf *page, struct err *e)
{
	const char *const each[] = { "log",
				     PLAIN,
				     "--no-decorate",
				     "--reverse",
				     "--date=iso",
				     "--format=fuller",
				     "--stat=120,90",
				     "-p",
				     "--diff-merges=first-parent",
				     new,
				     NEW_ONLY,
				     NULL };

	return add_part(r, "Each commit by itself, the oldest first", each, EACH_MAX, page, e);
}

/* An annotated tag is an object of its own, with a text that is pushed too; it may be a tag of a tag. */
static int add_tags(const struct repo *r, const char *new, struct buf *page, struct err *e)
{
	char oid[65], line[128], type[16];

	(void)snprintf(oid, sizeof(oid), "%s", new);
	for (int depth = 0; depth < TAGS_MAX; depth++) {
		const char *const kind[] = { "cat-file", "-t", oid, NULL };
		const char *const text[] = { "cat-file", "tag", oid, NULL };
		int x = ask_line(r, kind, type, sizeof(type), e);

		if (x <= 0)
			return x < 0 ? x : err_set(e, ERR_SYSTEM, EIO, "git cannot read %s", oid);
		if (!str_eq(type, "tag"))
			return 0;
		x = add_part(r, "The tag itself", text, NAMES_MAX, page, e);
		if (x == 0)
			x = ask_line(r, text, line, sizeof(line), e);
		if (x < 0)
			return x;
		if (!str_starts(line, "object ") || !is_oid(line + 7))
			return err_set(e, ERR_SYSTEM, EIO, "the tag %s names no object", oid);
		(void)snprintf(oid, sizeof(oid), "%.64s", line + 7);
	}
	return err_set(e, ERR_DENIED, ELOOP, "a tag of a tag, more than %d deep", TAGS_MAX);
}

/* Commits that the upstream loses. */
static int add_lost(const struct repo *r, const struct update *u, struct buf *page, struct err *e)
{
	_free_ char *without = u->new[0] ? mem_fmt("^%s", u->new) : NULL;
	const char *const lost[] = {
		"log", "--no-color", "--no-decorate", "--format=%h %an: %s", u->old, without, NULL
	};

	return add_part(r,
			u->new[0] ? "Commits that the branch loses"
				  : "Commits of the branch that is deleted",
			lost, NAMES_MAX, page, e);
}

int show_push(const struct repo *r, const struct update *u, struct buf *page, struct err *e)
{
	bool is_rewrite = u->old[0] && u->new[0] && !u->is_ff;
	char base[65] = "";
	/* What the upstream has must be here to be compared with. */
	int x = repo_update(r, e);

	buf_printf(page, "from %s\nto   %s%s\n", u->old[0] ? u->old : "(new)",
		   u->new[0] ? u->new : "(deleted)", is_rewrite ? "  REWRITES HISTORY" : "");
	if (x == 0 && (is_rewrite || u->new[0] == '\0'))
		x = add_lost(r, u, page, e);
	if (x < 0 || u->new[0] == '\0')
		return x;
	x = find_base(r, u->old[0] ? u->old : "HEAD", u->new, base, e);
	if (x == 0) {
		buf_printf(page, "compared with %s%s\n", base,
			   u->old[0] ? "" : ", the merge base with the upstream's default branch");
		x = add_commits(r, u->new, page, e);
	}
	if (x == 0)
		x = add_tags(r, u->new, page, e);
	if (x == 0)
		x = add_sum(r, base, u->new, page, e);
	return x < 0 ? x : add_each(r, u->new, page, e);
}

int show_commit(const struct repo *r, const char *oid, struct buf *page, struct err *e)
{
	const char *const files[] = { "ls-tree", "-r", "--long", oid, NULL };
	const char *const last[] = {
		"show", PLAIN, "--stat=120,90", "-p", "--diff-merges=first-parent", oid, NULL
	};
	int x = add_part(r, "The files that the command gets", files, STAT_MAX, page, e);

	return x < 0 ? x : add_part(r, "The commit's own change", last, SUM_MAX, page, e);
}
