/* SPDX-License-Identifier: Apache-2.0 */
/* view/sweep.c - see view.h
 *
 * The same walk as the scan, for protect only. What `before` covers is left alone whatever it is now: a mount lay on
 * it, so nothing inside could replace it. All else under a protected name appeared meanwhile and is taken: from the
 * directory that the walk holds open, by name, so a path swapped for a link leads nowhere else.
 *
 * Symbolic links are the one thing a mount cannot cover, so they are compared: same inode and a target that is covered
 * (or outside, or missing) may stay. A link that now leads to something uncovered is removed rather than its target:
 * the target may be a directory of the user's that a hostile link points at.
 */
#include <fcntl.h>

#include "base/io.h"
#include "base/loop.h"
#include "base/path.h"
#include "base/sabotage.h"
#include "view/find.h"
#include "view/git.h"
#include "view/quarantine.h"
#include "view/scan.h"
#include "view/setid.h"
#include "view/sweep.h"

static void forget_left(struct sweep *s)
{
	for (size_t i = 0; i < s->n_left; i++) {
		free(s->left[i].rel);
		free(s->left[i].rule);
	}
	s->n_left = 0;
	s->left_count = 0;
}

int sweep_open_list(int quarantine_fd)
{
	int fd = openat(quarantine_fd, QUARANTINE_LIST,
			O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd >= 0 ? fd : FD_NONE;
}

void sweep_list(int list_fd, const char *name, const struct swept *s)
{
	_cleanup_(buf_done) struct buf b = BUF(MIB);

	buf_puts(&b, "{\"path\":");
	buf_json(&b, name);
	buf_puts(&b, ",\"rule\":");
	buf_json(&b, s->rule);
	if (s->saved) {
		buf_puts(&b, ",\"saved\":");
		buf_json(&b, s->saved);
	}
	buf_puts(&b, "}\n");
	if (list_fd >= 0 && !b.is_over && !sabotaged("count"))
		(void)io_write_all(list_fd, b.p, b.n); /* the record has it too */
}

void sweep_done(struct sweep *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->v[i].rel);
		free(s->v[i].rule);
		free(s->v[i].saved);
	}
	free(s->v);
	forget_left(s);
	free(s->left);
	made_done(&s->made);
	index_free(s->index);
	*s = (struct sweep){ 0 };
}

/* `what` is said of rel: that it is left, and why it was to go. */
static void remember(struct sweeper *sw, int r, const char *rel, const char *what)
{
	_cleanup_(buf_done) struct buf text = BUF(KIB);
	struct sweep *out = sw->out;

	if (out->left_count++ < SWEEP_LEFT_MAX) {
		vec_reserve(out->left, out->n_left, out->cap_left);
		out->left[out->n_left++] =
			(struct swept){ .rel = mem_str(rel),
					.rule = mem_fmt("%s: %s", what, strerror(-r)) };
	}
	if (sw->failed < 0)
		return;
	buf_esc(&text, rel, strnlen(rel, 200));
	errno = -r;
	sw->failed = err_sys(&sw->err, "'%s' %s", buf_cstr(&text), what);
}

#define LEFT_TAKE "is protected, appeared meanwhile and could not be removed"
#define LEFT_LOOK "could not be looked into"

/* Most runs leave nothing behind: the directory is made for the first thing that goes into it. */
static int quarantine_fd(struct sweep *out)
{
	int r;

	if (out->dir_fd >= 0 || out->dir == NULL)
		return out->dir_fd;
	r = path_make(out->dir, 0700);
	if (r < 0)
		return r;
	out->dir_fd = open(out->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return out->dir_fd < 0 ? -errno : out->dir_fd;
}

static int put_away(struct sweep *out, int q_fd, int dir_fd, const char *name, const char *rel,
		    const char *rule)
{
	char *saved = NULL;
	int r;

	if (out->on_take)
		out->on_take(out->arg, rel, rule);
	r = q_fd < 0 ? q_fd
		     : quarantine_take_as(q_fd, (unsigned)out->n + 1, dir_fd, name, path_name(rel),
					  &saved);
	if (r < 0)
		return r;
	vec_reserve(out->v, out->n, out->cap);
	out->v[out->n++] =
		(struct swept){ .rel = mem_str(rel), .rule = mem_str(rule), .saved = saved };
	return 0;
}

int sweep_put_away(struct sweep *out, int dir_fd, const char *name, const char *rel,
		   const char *rule)
{
	return put_away(out, quarantine_fd(out), dir_fd, name, rel, rule);
}

void sweep_take(struct sweeper *sw, int dir_fd, const char *name, const char *rel, const char *rule)
{
	int q_fd = sw->q_fd >= 0 ? sw->q_fd : quarantine_fd(sw->out);
	int r = put_away(sw->out, q_fd, dir_fd, name, rel, rule);

	if (r < 0 && r != -ENOENT)
		remember(sw, r, rel, LEFT_TAKE);
	sw->moved += r == 0;
}

void sweep_take_below(struct sweeper *sw, int dir_fd, const char *base, const char *name,
		      const char *rule)
{
	const char *slash = strrchr(name, '/');
	_free_ char *rel = ws_rel(base, name), *head = NULL;
	_close_ int fd = FD_NONE;

	if (slash == NULL) {
		sweep_take(sw, dir_fd, name, rel, rule);
		return;
	}
	head = mem_strn(name, (size_t)(slash - name));
	fd = walk_open(dir_fd, head, O_PATH | O_DIRECTORY);
	if (fd >= 0)
		sweep_take(sw, fd, slash + 1, rel, rule);
	else if (!walk_is_gone(-fd))
		remember(sw, fd, rel, LEFT_TAKE);
}

static bool is_same_link(const struct hit *h, const struct stat *st)
{
	return h->is_link && h->ino == st->st_ino && h->dev == st->st_dev &&
	       h->size == st->st_size && h->changed.tv_sec == st->st_ctim.tv_sec &&
	       h->changed.tv_nsec == st->st_ctim.tv_nsec;
}

void sweep_link(struct sweeper *sw, int dir_fd, const char *name, const char *rel, const char *rule,
		const struct stat *st)
{
	const struct hit *h = scan_find(sw->before, rel);
	_free_ char *target = NULL;

	if (h && h->kind != HIT_PIN && !h->is_link)
		return; /* was masked: the host made a link of it */
	if (h == NULL || !is_same_link(h, st)) {
		sweep_take(sw, dir_fd, name, rel, rule);
		return;
	}
	/* What a .git link leads to is recognised and swept as a git dir. */
	if (str_eq(path_name(rel), ".git"))
		return;
	if (ws_resolve(&sw->ws, "", rel, &target) == 0 && !scan_covers(sw->before, target))
		sweep_take(sw, dir_fd, name, rel, rule);
}

/* The sweep does not enter it. */
static int look_into_covered(const struct sweeper *sw, const struct find_spot *s, struct err *e)
{
	_close_ int fd = sw->out->setid ? walk_opendir(s->dir_fd, s->name) : FD_NONE;

	return fd < 0 ? 0 : setid_look_below(sw->out->setid, fd, s->rel, e);
}

static int on_match(void *arg, const struct find_spot *s, struct err *e)
{
	struct sweeper *sw = arg;
	_free_ char *rel = mem_str(s->rel);
	bool is_git = str_eq(s->rule, FIND_GIT_RULE);
	struct stat st;

	if (fstatat(s->dir_fd, s->name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno == ENOENT)
			return 0;
		st = (struct stat){ .st_mode = S_IFREG }; /* taken unseen */
	}
	if (S_ISLNK(st.st_mode))
		sweep_link(sw, s->dir_fd, s->name, rel, s->rule, &st);
	else if (scan_covers(sw->before, rel))
		return S_ISDIR(st.st_mode) ? look_into_covered(sw, s, e) : 0;
	else if (is_git && S_ISREG(st.st_mode))
		return sweep_gitfile(sw, s->dir_fd, s->name, rel, e);
	else if (
		!is_git ||
		!S_ISDIR(
			st.st_mode)) /* a .git that became a directory meanwhile: the next sweep's */
		sweep_take(sw, s->dir_fd, s->name, rel, s->rule);
	return 0;
}

static int on_gitdir(void *arg, int fd, const char *rel, struct err *e)
{
	return sweep_gitdir(arg, fd, rel, e);
}

void sweep_unseen(struct sweeper *sw, int r, const char *rel)
{
	remember(sw, r, rel, LEFT_LOOK);
}

static bool is_anothers(int parent_fd, const char *name)
{
	struct stat st;

	return fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid != geteuid();
}

/* Made unreadable inside, on purpose or not: by name, what is in it can still be used by the host. */
static int on_refused(void *arg, int parent_fd, const char *rel, const char *name, int num)
{
	struct sweeper *sw = arg;
	_free_ char *path = ws_rel(rel, name);
	int fd = -num;

	if (walk_is_gone(num) || scan_covers(sw->before, path) || scan_covers(sw->before, rel) ||
	    sabotaged("loosen"))
		return FD_NONE;
	if (num == EACCES && parent_fd >= 0) {
		if (walk_type(parent_fd, name) == DT_UNKNOWN)
			(void)quarantine_loosen(parent_fd, ".");
		(void)quarantine_loosen(parent_fd, name);
		fd = walk_opendir(parent_fd, name);
		/* Nobody inside is another user: it was there before. */
		if (fd >= 0 || walk_is_gone(-fd) || is_anothers(parent_fd, name))
			return fd >= 0 ? fd : FD_NONE;
	}
	if (num == ENAMETOOLONG && parent_fd >= 0)
		sweep_take(sw, parent_fd, name, path, "too deep to be looked into");
	else
		sweep_unseen(sw, fd, path);
	return FD_NONE;
}

static void on_file(void *arg, int dir_fd, const char *rel, const char *name)
{
	const struct sweeper *sw = arg;

	if (sw->out->setid)
		setid_look(sw->out->setid, dir_fd, rel, name);
}

static const struct find_ops sweep_ops = {
	.match = on_match, .gitdir = on_gitdir, .file = on_file, .refused = on_refused
};

struct sweep_part {
	int fd;
	const char *under; /* where it lies below the workspace */
	unsigned want;
	const struct walk_list *list;
};

static int sweep_tree(struct sweeper *sw, const struct sweep_part *part, struct err *e)
{
	const struct find_job job = { .root_fd = part->fd,
				      .under = part->under,
				      .want = part->want,
				      .p = sw->p,
				      .m = sw->before->matcher ? sw->before->matcher : &sw->m,
				      .ops = &sweep_ops,
				      .arg = sw,
				      .list = part->list };
	struct walk_stats unused = { 0 };

	return find_run(&job, &unused, e);
}

/* Most directories are not changed since the scan: their names are those of its list. The modes of files are in no list, so
 * who looks for set-id files has every directory read, or, where none was made, those whose set-id files are not known. */
static int sweep_all(struct sweeper *sw, struct err *e)
{
	const struct setid *s = sw->out->setid;
	struct index *was = sw->before->index, *now = index_new(sw->ws.fd);
	const struct walk_list list = { .old = was && was->n ? was : NULL,
					.now = now,
					.reads_all = s && !s->is_listed,
					.needs_setid = s && !sabotaged("notice"),
					.sample = INDEX_SAMPLE };
	const struct sweep_part all = {
		.fd = sw->ws.fd, .under = "", .want = FIND_PROTECT, .list = &list
	};
	int r = sweep_tree(sw, &all, e);

	index_free(sw->out->index);
	sw->out->index = now;
	return r;
}

void sweep_unlock(int ws_fd)
{
	struct stat st;

	/* Nothing starts in a workspace that its owner cannot enter, so this was done since: for root too, whom it stops not. */
	if (fstat(ws_fd, &st) == 0 && (st.st_mode & 0500) != 0500 && !sabotaged("loosen"))
		(void)quarantine_loosen(ws_fd, "."); /* who uses it says what it failed with */
}

static int sweeper_init(struct sweeper *sw, int ws_fd, struct err *e)
{
	int r = ws_init(&sw->ws, ws_fd, e);

	if (r == 0 && sw->before->matcher == NULL)
		matcher_init(&sw->m, sw->p);
	return r;
}

static int sweeper_end(struct sweeper *sw, int r, struct err *e)
{
	matcher_done(&sw->m);
	ws_done(&sw->ws);
	if (r < 0)
		return err_wrap(e, r, "sweeping the workspace");
	if (sw->failed < 0) {
		*e = sw->err;
		return sw->failed;
	}
	return sw->moved > 0;
}

int sweep_run(int ws_fd, int q_fd, const struct policy *p, const struct scan *before,
	      struct sweep *out, struct err *e)
{
	struct sweeper sw = { .q_fd = q_fd, .p = p, .before = before, .out = out, .err = ERR_INIT };
	int r = sweeper_init(&sw, ws_fd, e);

	if (r < 0)
		return r;
	forget_left(out);
	sweep_unlock(ws_fd);
	r = sweep_all(&sw, e);
	if (r >= 0)
		r = refs_outside(before, &sw.ws, sweep_ref, &sw, e);
	r = sweeper_end(&sw, r, e);
	if (r >= 0)
		return 0;
	index_free(out->index);
	out->index = NULL;
	return r;
}

/* ---- one path ---- */

struct descent {
	struct sweeper *sw;
	int fd;          /* the directory reached */
	const char *rel; /* the whole way */
	bool is_nogit;
};

static int maybe_gitdir(struct descent *d, const char *rel, bool is_dotgit, struct err *e)
{
	if (d->is_nogit || (!is_dotgit && (!git_is_repo(d->fd) || !find_git_wanted(d->sw->p, rel))))
		return 0;
	return sweep_gitdir(d->sw, d->fd, rel, e);
}

/* Looks at one component. Returns 1 to go on below it. */
static int descend(struct descent *d, const char *name, char *rel, struct err *e)
{
	struct sweeper *sw = d->sw;
	struct find_spot s = { .dir_fd = d->fd, .name = name, .rel = rel, .kind = HIT_PROTECT };
	const char *rule = matcher_rule(&sw->p->protect, rel);
	bool is_git = rule && git_is_rule(rule);
	int next, r;

	s.type = walk_type(d->fd, name);
	if (rule && !(is_git && s.type == DT_DIR)) {
		s.rule = is_git ? FIND_GIT_RULE : rule;
		r = on_match(sw, &s, e);
		return r < 0 ? r : 0;
	}
	if (s.type != DT_DIR)
		return 0;
	if (rule == NULL && str_eq(name, ".git"))
		d->is_nogit = true;
	next = walk_opendir(d->fd, name);
	if (next < 0) {
		_free_ char *up = path_parent(rel);

		next = on_refused(sw, d->fd, up, name, -next);
	}
	if (next < 0)
		return 0;
	fd_close(d->fd);
	d->fd = next;
	r = maybe_gitdir(d, rel, is_git, e);
	return r < 0 ? r : 1;
}

static int walk_down(struct descent *d, struct err *e)
{
	int r = maybe_gitdir(d, "", false, e);

	if (r < 0)
		return r;
	for (const char *p = d->rel; *p;) {
		size_t n = strcspn(p, "/");
		_free_ char *name = mem_strn(p, n),
			    *rel = mem_strn(d->rel, (size_t)(p - d->rel) + n);

		if (n == 0 || str_eq(name, ".") || str_eq(name, ".."))
			return err_set(e, ERR_BUG, EINVAL,
				       "'%.200s' is no path below the workspace", d->rel);
		r = descend(d, name, rel, e);
		if (r <= 0)
			return r;
		p += n;
		p += *p == '/';
	}
	/* All of it is directories: sweep what came along. */
	return sweep_tree(
		d->sw,
		&(struct sweep_part){ .fd = d->fd,
				      .under = d->rel,
				      .want = FIND_PROTECT | (d->is_nogit ? FIND_NOGIT : 0) },
		e);
}

/* NOLINTNEXTLINE(readability-function-size): as sweep_run(), and the path */
int sweep_one(int ws_fd, int q_fd, const struct policy *p, const struct scan *before,
	      const char *rel, struct sweep *out, struct err *e)
{
	struct sweeper sw = { .q_fd = q_fd, .p = p, .before = before, .out = out, .err = ERR_INIT };
	struct descent d = { .sw = &sw, .rel = rel };
	int r = sweeper_init(&sw, ws_fd, e);

	if (r < 0)
		return r;
	d.fd = walk_opendir(ws_fd, ".");
	if (d.fd == -EACCES) {
		sweep_unlock(ws_fd);
		d.fd = walk_opendir(ws_fd, ".");
	}
	if (d.fd < 0) {
		errno = -d.fd;
		r = err_sys(e, "open the workspace");
	} else {
		r = walk_down(&d, e);
		fd_close(d.fd);
	}
	return sweeper_end(&sw, r, e);
}
