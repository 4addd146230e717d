/* SPDX-License-Identifier: Apache-2.0 */
/* view/sweep_git.c - repositories made or added to during the run
 *
 * git must keep working inside: init, clone, commit, worktree, submodule. So a new repository stays, and each part
 * of it that git on the host would act upon is held against what git itself writes there:
 *   config           only keys that describe (gitcfg_keys.c); of one with others, those are taken out
 *   hooks            nothing that git would run; *.sample may stay
 *   info/attributes, info/grafts     nothing: git never writes them
 *   commondir        ../.. of a directory in worktrees/
 *   gitdir, .git file, alternates    a path in the workspace, without links on the way
 *   steps of a rebase                at the end of a run, none that runs a command
 * Which of them are harmless is decided in outcome.c, as for every other way out.
 * Files that git writes in two steps are met empty in between: an empty one does no harm and stays.
 * Where a pointer leads is held to the same list right away, wherever that is: not every directory with the parts
 * of a repository would be recognised by the walk (a shared one needs no HEAD).
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/path.h"
#include "view/find.h"
#include "view/git.h"
#include "view/outcome.h"
#include "view/quarantine.h"
#include "view/replica.h"
#include "view/scan.h"
#include "view/sweep.h"

#define CONFIG_TRIES 16

struct gitdir {
	struct sweeper *sw;
	int fd;
	const char *rel;
	struct err *e;
	bool has_refs;
	bool is_closed; /* a directory in it could not be passed, and was opened */
};

static int open_and_sweep(struct sweeper *sw, const char *rel, struct err *e)
{
	_close_ int fd = walk_open(sw->ws.fd, rel, O_PATH | O_DIRECTORY);

	if (fd < 0) {
		if (!walk_is_gone(-fd))
			sweep_unseen(sw, fd, rel);
		return 0;
	}
	return sweep_gitdir(sw, fd, rel, e);
}

static int target_in_ws(void *arg, const char *base, const char *text, char **ret_rel)
{
	return ws_target(arg, base, text, ret_rel);
}

static struct outcome_part part_of(struct ws *ws, enum git_what what, const char *dir, int status,
				   const struct buf *b)
{
	return (struct outcome_part){ .what = what,
				      .dir = dir,
				      .abs = ws->abs,
				      .status = status,
				      .text = buf_cstr(b),
				      .n = b->n,
				      .target = target_in_ws,
				      .arg = ws };
}

/* ---- config ---- */

/* The first link on the way to rel, or NULL. */
static char *first_link(const struct ws *ws, const char *rel)
{
	for (const char *p = rel; *p;) {
		size_t n = (size_t)(strchrnul(p, '/') - rel);
		_free_ char *head = mem_strn(rel, n);
		struct stat st;

		if (ws_lstat(ws->fd, head, &st) < 0)
			return NULL;
		if (S_ISLNK(st.st_mode))
			return take(head);
		p = rel + n;
		p += *p == '/';
	}
	return NULL;
}

/* A config of before names this path. What was there was protected; what is there now and was not, is new. */
int sweep_ref(void *arg, char *rel, unsigned flags, struct err *e)
{
	struct sweeper *sw = arg;
	const struct ws *ws = &sw->ws;
	_free_ char *target = NULL, *link = NULL;
	struct stat st;

	(void)e;
	if (flags & REF_UNSURE || ws_resolve(ws, "", rel, &target) < 0 ||
	    scan_covers(sw->before, target))
		return 0;
	if (flags & REF_FILE && ws_lstat(ws->fd, target, &st) == 0 && S_ISDIR(st.st_mode))
		return 0;
	link = first_link(ws, rel);
	sweep_take_below(sw, ws->fd, "", link ? link : rel, "named in the git config");
	return 0;
}

/* ---- hooks ---- */

static unsigned hook_entry(void *arg, struct walk_dir *d, const char *name, size_t len,
			   unsigned char type)
{
	struct buf *doomed = arg;
	struct stat st = { 0 };

	if (type == DT_REG && fstatat(d->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		st.st_mode = 0111; /* taken unseen */
	if (outcome_is_hook(name, type, st.st_mode))
		buf_add(doomed, name, len + 1);
	return 0;
}

static void check_hooks(struct gitdir *g)
{
	static const struct walk_ops ops = { .entry = hook_entry };
	_cleanup_(buf_done) struct buf doomed = BUF(MIB);
	_close_ int fd = walk_opendir(g->fd, "hooks");
	_free_ char *rel = ws_rel(g->rel, "hooks");
	struct walk_stats unused = { 0 };
	struct err e = ERR_INIT;

	/* Not a directory, not readable, or full beyond measure: take it whole. */
	if (fd < 0 || walk_run(fd, 1, &ops, &doomed, &unused, &e) < 0 || doomed.is_over) {
		if (fd != -ENOENT)
			sweep_take(g->sw, g->fd, "hooks", rel, "git hook");
		return;
	}
	for (size_t at = 0; at < doomed.n; at += strlen(doomed.p + at) + 1) {
		_free_ char *hook = ws_rel(rel, doomed.p + at);

		sweep_take(g->sw, fd, doomed.p + at, hook, "git hook");
	}
}

/* ---- files ---- */

struct config {
	struct gitdir *g;
	int dir; /* that it lies in */
	const char *name, *rel;
	struct stat seen; /* before it was read */
};

/* Puts a new file with what may stay in the place of the config that was read, and takes that. -EAGAIN: it was written to
 * meanwhile; other errors: no file could be put there. */
static int leave_rest(const struct config *c, const struct buf *rest, const char *why)
{
	_free_ char *rule = mem_fmt("%s" SWEEP_REST_STAYS, why);
	struct stat like = c->seen;
	char temp[REPLICA_TEMP_MAX];
	int r = S_ISREG(like.st_mode) ? replica_temp(temp) : -EINVAL;

	if (r < 0)
		return r;
	like.st_mode &= S_IFMT | 0644;
	r = replica_write(c->dir, temp, buf_cstr(rest), rest->n, &like);
	if (r == 0)
		r = replica_swap(c->dir, temp, c->name, &c->seen, true);
	if (r == 0 || r == -ESTALE)
		sweep_take(c->g->sw, c->dir, temp, c->rel, rule);
	else
		(void)quarantine_remove(c->dir, temp); /* a file of ours that nobody misses */
	return r;
}

/* Of a config the keys are taken that do harm. 0, or < 0: it is to be taken as a whole. */
static int check_config(struct gitdir *g, const char *name)
{
	_free_ char *rel = ws_rel(g->rel, name), *up = path_parent(name);
	_close_ int dir = walk_open(g->fd, up, O_PATH | O_DIRECTORY);
	struct config c = { .g = g, .dir = dir, .name = path_name(name), .rel = rel };
	int r = -EAGAIN;

	/* Another config of git's own takes its place in one step, at any moment. */
	for (int i = 0; dir >= 0 && i < CONFIG_TRIES && r == -EAGAIN; i++) {
		_cleanup_(buf_done) struct buf b = BUF(outcome_part_max(GIT_CONFIG));
		_cleanup_(buf_done) struct buf rest = BUF(outcome_part_max(GIT_CONFIG));
		_free_ char *why = NULL, *unused = NULL;
		struct outcome_part part;
		int status;

		if (fstatat(dir, c.name, &c.seen, AT_SYMLINK_NOFOLLOW) < 0)
			return -errno;
		status = ws_read(dir, c.name, &b);
		part = part_of(&g->sw->ws, GIT_CONFIG, g->rel, status, &b);
		why = outcome_part(&part, &unused);
		if (why == NULL)
			return 0;
		r = outcome_part_rest(&part, &rest) && rest.n > 0 ? leave_rest(&c, &rest, why)
								  : -EINVAL;
	}
	return dir < 0 ? dir : r;
}

static int check_file(struct gitdir *g, const char *name, enum git_what what)
{
	_cleanup_(buf_done) struct buf b = BUF(outcome_part_max(what));
	int status = ws_read(g->fd, name, &b);
	struct outcome_part part = part_of(&g->sw->ws, what, g->rel, status, &b);
	_free_ char *follow = NULL, *why = outcome_part(&part, &follow);

	if (why && (what != GIT_CONFIG || check_config(g, name) < 0))
		sweep_take_below(g->sw, g->fd, g->rel, name, why);
	return follow ? open_and_sweep(g->sw, follow, g->e) : 0;
}

int sweep_gitfile(struct sweeper *sw, int dir_fd, const char *name, const char *rel, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(outcome_part_max(GIT_GITDIR));
	_free_ char *base = path_parent(rel), *follow = NULL, *why = NULL;
	int status = ws_read(dir_fd, name, &b);
	struct outcome_part part = part_of(&sw->ws, GIT_GITDIR, base, status, &b);

	why = outcome_gitfile(&part, &follow);
	if (why)
		sweep_take(sw, dir_fd, name, rel, why);
	else if (sw->out->is_last)
		made_add_file(&sw->out->made, dir_fd, name, rel);
	return follow ? open_and_sweep(sw, follow, e) : 0;
}

/* ---- all of it ---- */

static int config_refs(struct gitdir *g, const char *name, bool is_new, struct err *e)
{
	const struct scan_config c = { .ws = &g->sw->ws,
				       .scan = g->sw->before,
				       .gitdir = g->rel,
				       .name = name,
				       .is_new = is_new };
	int r;

	g->has_refs = g->has_refs || str_eq(name, "config");
	r = scan_config_refs(&c, sweep_ref, g->sw, e);
	/* The rest of the workspace is swept all the same. */
	if (r < 0) {
		_free_ char *rel = ws_rel(g->rel, name);

		sweep_unseen(g->sw, r, rel);
	}
	return 0;
}

static int on_part(void *arg, const char *name, enum git_what what, const struct stat *st,
		   struct err *e)
{
	struct gitdir *g = arg;
	_free_ char *rel = ws_rel(g->rel, name), *head = path_parent(name);
	_close_ int at = FD_NONE;

	if (what == GIT_UNREADABLE) {
		g->is_closed = true;
		at = walk_open(g->fd, name, O_PATH | O_DIRECTORY);
		if (at < 0 || quarantine_loosen(at, ".") < 0)
			sweep_unseen(g->sw, -EACCES, rel);
		return 0;
	}
	if (S_ISLNK(st->st_mode)) {
		at = walk_open(g->fd, head, O_PATH | O_DIRECTORY);
		if (at >= 0)
			sweep_link(g->sw, at, path_name(name), rel, "git part behind a link", st);
		return 0;
	}
	/* A rebase inside goes through its own steps; only what is left of it concerns the host. */
	if (what == GIT_TODO && !g->sw->out->is_last)
		return 0;
	if (scan_covers(g->sw->before, rel)) {
		int r = what == GIT_CONFIG ? config_refs(g, name, false, e) : 0;

		/* The rest of the workspace is swept all the same. */
		if (r < 0)
			sweep_unseen(g->sw, r, rel);
		return 0;
	}
	if (what == GIT_HOOKS) {
		check_hooks(g);
		return 0;
	}
	return check_file(g, name, what);
}

/* At the end of a session: a git dir that was made in one, and that another look finds nothing in, is written down. */
static void remember_made(struct gitdir *g)
{
	struct sweeper *sw = g->sw;
	const struct hit *h = scan_find(sw->before, g->rel);
	unsigned moved = sw->moved;
	uint64_t left = sw->out->left_count;

	if (!sw->out->is_last || (h && h->is_gitdir) || scan_covers(sw->before, g->rel))
		return;
	g->is_closed = false;
	if (git_parts(g->fd, on_part, g, g->e) == 0 && !g->is_closed && sw->moved == moved &&
	    sw->out->left_count == left)
		made_add_gitdir(&sw->out->made, g->fd, g->rel);
}

int sweep_gitdir(struct sweeper *sw, int fd, const char *rel, struct err *e)
{
	_free_ char *copy = mem_str(rel);
	struct gitdir g = { .sw = sw, .fd = fd, .rel = copy, .e = e };
	struct stat st;
	int r;

	if (fstat(fd, &st) == 0 && (st.st_mode & 0500) != 0500)
		(void)quarantine_loosen(fd,
					"."); /* somebody else's stays closed to them and to us */
	/* Opened from the top: one more round for each level. */
	for (int i = 0; i < 3; i++) {
		g.is_closed = false;
		r = git_parts(fd, on_part, &g, e);
		if (r < 0 || !g.is_closed)
			break;
	}
	if (r == 0)
		remember_made(&g);
	/* The user's own configuration counts for a repository made inside as well. */
	return r < 0 || g.has_refs ? r : config_refs(&g, "config", true, e);
}
