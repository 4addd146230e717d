/* SPDX-License-Identifier: Apache-2.0 */
/* view/find.c - see find.h
 *
 * Modes of a directory (what its entries are looked at for) are inherited, less what a match takes away:
 *   hidden     not entered
 *   protected  entered for hide patterns only: the read-only mount covers the rest, a hidden file in it not
 *   .git       entered with FIND_DOTGIT for itself
 *   !.git      a repository that the policy takes back: no git dir is recognised in it either
 * Nothing else is left out: no directory is taken for data because of its name or of what lies beside it.
 * A negated pattern below a matched directory has no effect, as in .gitignore: the directory is one mount.
 */
#include "view/find.h"
#include "base/sabotage.h"
#include "view/git.h"
#include "view/ws.h"

enum {
	FIND_WALK = BIT(0),
	FIND_DOTGIT = BIT(3),
};

struct pending {
	size_t name; /* in names */
	unsigned char type;
	enum hit_kind kind;
	const char *rule;
};

struct find {
	const char *under;
	const struct policy *p;
	const struct matcher *m;
	const struct find_ops *ops;
	void *arg;
	bool has_git;
	struct pending *v;
	size_t n, cap;
	struct buf names;
	struct buf rel;
	int failed; /* from a callback made in the middle of a directory */
	struct err err;
};

#define PENDING_MAX 20000

static void find_done(struct find *f)
{
	free(f->v);
	buf_done(&f->names);
	buf_done(&f->rel);
}

static void put_component(struct buf *b, const char *s)
{
	if (s[0] == '\0')
		return;
	if (b->n)
		buf_putc(b, '/');
	buf_puts(b, s);
}

static const char *full_rel(struct find *f, const char *rel, const char *name)
{
	f->rel.n = 0;
	buf_add(&f->rel, "", 0);
	put_component(&f->rel, f->under);
	put_component(&f->rel, rel);
	put_component(&f->rel, name);
	bug_on(f->rel.is_over);
	return buf_cstr(&f->rel);
}

/* The directory whose names came from a list is opened for what is to be done with one of them. 0: it is gone. */
static int open_dir(struct walk_dir *d, struct err *e)
{
	int fd = walk_fd(d);

	if (fd >= 0)
		return 1;
	errno = -fd;
	return walk_is_gone(-fd) ? 0 : err_sys(e, "open directory '%s'", d->rel);
}

static int show_pending(struct find *f, struct walk_dir *d, struct err *e)
{
	int r = f->failed;

	if (r < 0)
		*e = f->err;
	else if (f->n > 0 && (r = open_dir(d, e)) == 0)
		f->n = 0;
	for (size_t i = 0; i < f->n && r >= 0; i++) {
		const char *name = f->names.p + f->v[i].name;
		struct find_spot s = { .dir_fd = d->fd,
				       .name = name,
				       .rel = full_rel(f, d->rel, name),
				       .type = f->v[i].type,
				       .kind = f->v[i].kind,
				       .rule = f->v[i].rule };

		r = f->ops->match(f->arg, &s, e);
	}
	f->n = 0;
	f->names.n = 0;
	return r < 0 ? r : 0;
}

static void pend(struct find *f, struct walk_dir *d, const char *name, unsigned char type,
		 enum hit_kind kind, const char *rule)
{
	/* A directory full of matches: whoever made it shall not choose how much memory we need. */
	if (f->n == PENDING_MAX)
		f->failed = show_pending(f, d, &f->err);
	vec_reserve(f->v, f->n, f->cap);
	f->v[f->n++] =
		(struct pending){ .name = f->names.n, .type = type, .kind = kind, .rule = rule };
	buf_add(&f->names, name, strlen(name) + 1);
	bug_on(f->names.is_over);
}

/* A name that could matter: ask the policy about the whole path. */
static unsigned on_candidate(struct find *f, struct walk_dir *d, const char *name,
			     unsigned char type, unsigned bits)
{
	unsigned mode = d->mode & ~(unsigned)FIND_DOTGIT;
	const char *rel = full_rel(f, d->rel, name), *rule;

	if ((bits & MATCH_HIDE) && (mode & FIND_HIDE)) {
		rule = matcher_rule(&f->p->hide, rel);
		if (rule) {
			pend(f, d, name, type, HIT_HIDE, rule);
			return 0;
		}
	}
	/* Whether it is hidden at all is for the scan to find out; "!name" takes that back as well. */
	if ((bits & MATCH_TOKEN) && (mode & FIND_HIDE) && type != DT_DIR &&
	    items_match(&f->p->hide, rel) < 0)
		pend(f, d, name, type, HIT_HIDE, FIND_TOKEN_RULE);
	if (!(bits & MATCH_PROTECT) || !(mode & FIND_PROTECT))
		return mode;
	rule = matcher_rule(&f->p->protect, rel);
	if (rule == NULL)
		return f->has_git && str_eq(name, ".git") ? mode | FIND_NOGIT : mode;
	if (git_is_rule(rule)) {
		if (type == DT_DIR)
			return mode | FIND_DOTGIT;
		rule = FIND_GIT_RULE;
	}
	pend(f, d, name, type, HIT_PROTECT, rule);
	return mode & FIND_HIDE ? FIND_WALK | FIND_HIDE : 0;
}

static unsigned on_entry(void *arg, struct walk_dir *d, const char *name, size_t len,
			 unsigned char type)
{
	struct find *f = arg;
	unsigned bits = matcher_probe(f->m, f->under[0] ? NULL : d->rel, d->rel_len, name, len);

	if (type == DT_REG && f->ops->file)
		f->ops->file(f->arg, d->fd, d->rel, name);
	/* Whoever listens there does so on the host, and no mount or network namespace stops a connect(). */
	if (type == DT_SOCK && d->mode & FIND_HIDE)
		pend(f, d, name, type, HIT_HIDE, VIEW_SOCKET_RULE);
	if (bits == 0)
		return (d->mode & ~(unsigned)FIND_DOTGIT) | (type == DT_SOCK ? WALK_LISTED : 0);
	d->bits |= git_bits_of_type(bits, type);
	/* Also a name that could only matter elsewhere: the directory may be moved there as it is. */
	if (bits & (MATCH_HIDE | MATCH_PROTECT | MATCH_TOKEN))
		return on_candidate(f, d, name, type, bits) | WALK_LISTED;
	return (d->mode & ~(unsigned)FIND_DOTGIT) | WALK_LISTED;
}

bool find_git_wanted(const struct policy *p, const char *rel)
{
	_free_ char *dotgit = NULL;
	const char *slash = strrchr(rel, '/'), *rule;

	if (!str_eq(slash ? slash + 1 : rel, ".git"))
		dotgit = ws_rel(rel, ".git");
	rule = matcher_rule(&p->protect, dotgit ? dotgit : rel);
	return rule && git_is_rule(rule);
}

static int on_end(void *arg, struct walk *w, struct walk_dir *d, struct err *e)
{
	static const char *const data[] = { "objects", "refs", "logs", "lfs" };
	struct find *f = arg;
	int r = show_pending(f, d, e);

	if (r < 0 || !f->has_git || !(d->mode & FIND_PROTECT))
		return r;
	if (!(d->mode & FIND_DOTGIT) && ((d->mode & FIND_NOGIT) || !git_bits_are_repo(d->bits)))
		return 0;
	r = open_dir(d, e);
	if (r <= 0)
		return r;
	if (!(d->mode & FIND_DOTGIT)) {
		if (!git_is_repo(d->fd))
			return 0;
		if (!find_git_wanted(f->p, full_rel(f, d->rel, "")))
			return 0;
	}
	if (sabotaged("shelter"))
		for (size_t i = 0; i < ARRAY_LEN(data); i++)
			walk_leave_out(w, data[i]);
	return f->ops->gitdir(f->arg, d->fd, full_rel(f, d->rel, ""), e);
}

static int on_refused(void *arg, int parent_fd, const char *rel, const char *name, int num)
{
	struct find *f = arg;

	if (f->ops->refused == NULL)
		return FD_NONE;
	return f->ops->refused(f->arg, parent_fd, full_rel(f, rel, ""), name, num);
}

static bool has_git_rule(const struct policy *p)
{
	for (size_t i = 0; i < p->protect.n; i++)
		if (git_is_rule(p->protect.v[i].text))
			return true;
	return false;
}

int find_run(const struct find_job *job, struct walk_stats *stats, struct err *e)
{
	static const struct walk_ops walk = { .entry = on_entry,
					      .end = on_end,
					      .refused = on_refused };
	_cleanup_(find_done) struct find f = { .under = job->under,
					       .p = job->p,
					       .m = job->m,
					       .ops = job->ops,
					       .arg = job->arg,
					       .has_git = has_git_rule(job->p),
					       .names = BUF(64 * MIB),
					       .rel = BUF(4 * MIB) };

	const struct walk_job all = { .root_fd = job->root_fd,
				      .mode = FIND_WALK | job->want,
				      .ops = &walk,
				      .arg = &f,
				      .list = job->list };

	return walk_run_job(&all, stats, e);
}
