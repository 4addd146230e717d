/* SPDX-License-Identifier: Apache-2.0 */
/* view/scan.c - see view.h
 *
 * 1. find   one walk; policy matches and git dirs become hits (scan_git.c says what a git dir implies)
 * 2. alias  only when a hit file, or a file in a hit directory, has more than one name: a second walk, with stat,
 *           for its other names. A mount covers a name, not an inode, so each name needs its own
 * 3. order  pins for the ancestors, sorted, one entry per path, nothing below what already covers it
 *
 * An alias gets no pins: what is to be prevented is writing to (or reading) the inode through this name, and a mount
 * stays on its file when an ancestor is renamed. A protected *name* is another matter: with an ancestor renamed
 * away the name is free again, so its ancestors are pinned.
 */
#include <fcntl.h>
#include <limits.h>
#include <sys/vfs.h>

#include "base/loop.h"
#include "base/redact.h"
#include "base/sabotage.h"
#include "view/find.h"
#include "view/gitcfg_redact.h"
#include "view/scan.h"
#include "view/walk.h"

#define TOKEN_FILE_MAX (256 * KIB)
#define CONFIG_MAX (1 * MIB)

static void hit_done(struct hit *h)
{
	free(h->rel);
	free(h->shown);
}

void scan_done(struct scan *s)
{
	for (size_t i = 0; i < s->n; i++)
		hit_done(&s->v[i]);
	free(s->v);
	if (s->matcher)
		matcher_done(s->matcher);
	free(s->matcher);
	refs_done(s);
	index_free(s->index);
	free(s->unlisted);
	*s = (struct scan){ 0 };
}

/* Which rule fills the list? */
static int too_many(const struct scan *s, struct err *e)
{
	size_t best = 0, votes = 0;

	/* Majority vote; when no rule has the majority this still names one of the frequent. */
	for (size_t i = 0; i < s->n; i++) {
		if (votes == 0)
			best = i;
		votes = s->v[i].rule == s->v[best].rule ? votes + 1 : votes - 1;
	}
	return err_set(e, ERR_UNSUPPORTED, E2BIG,
		       "the rule '%s' matches too many files (over %d paths to mask, for example "
		       "'%.200s'); "
		       "name their directory instead",
		       s->v[best].rule, SCAN_HITS_MAX, s->v[best].rel);
}

static int put(struct scan *s, const struct hit *h, struct err *e)
{
	if (s->n >= SCAN_HITS_MAX)
		return too_many(s, e);
	vec_reserve(s->v, s->n, s->cap);
	s->v[s->n] = *h;
	s->v[s->n].rel = mem_str(h->rel);
	s->n++;
	return 0;
}

/* A path too long to mount on: its deepest ancestor that is not takes its place. */
static int put_ancestor(struct scanner *sc, const struct hit *h, struct err *e)
{
	_free_ char *head = mem_strn(h->rel, SCAN_REL_MAX);
	char *slash = strrchr(head, '/');
	struct stat st;
	struct hit up = *h;
	int r;

	bug_on(slash == NULL); /* no file name is that long */
	*slash = '\0';
	r = ws_lstat(sc->ws.fd, head, &st);
	if (r == -ENOENT)
		return 0;
	if (r < 0 || !S_ISDIR(st.st_mode))
		return err_set(e, ERR_UNSUPPORTED, ENAMETOOLONG,
			       "'%.200s...' is too deep to be masked", head);
	up.rel = head;
	up.is_dir = true;
	up.is_link = false;
	up.dev = st.st_dev;
	up.ino = st.st_ino;
	return put(sc->s, &up, e);
}

int scan_put(struct scanner *sc, char *rel, enum hit_kind kind, const char *rule,
	     const struct stat *st, struct err *e)
{
	struct hit h = { .rel = rel,
			 .kind = kind,
			 .is_dir = S_ISDIR(st->st_mode),
			 .is_link = S_ISLNK(st->st_mode),
			 .is_config = sc->is_config,
			 .rule = rule,
			 .dev = st->st_dev,
			 .ino = st->st_ino,
			 .size = st->st_size,
			 .changed = st->st_ctim };

	if (strlen(rel) > SCAN_REL_MAX)
		return put_ancestor(sc, &h, e);
	return put(sc->s, &h, e);
}

/* A path from a link or a config that leads nowhere in the workspace: it names nothing to protect. Any other failure
 * is a place that we may not look at, and whoever is inside can perhaps change that. */
bool scan_is_nowhere(int r)
{
	return walk_is_gone(-r) || r == -EXDEV || sabotaged("unseen");
}

int scan_unseen(int r, const char *rel, struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF(KIB);

	buf_esc(&text, rel, strnlen(rel, 200));
	return err_set(e, ERR_UNSUPPORTED, -r,
		       "'%s' cannot be looked at (%s), so what it leads to cannot be protected; "
		       "make it readable, or move it out of the workspace",
		       buf_cstr(&text),
		       r == -EAGAIN ? "a process holds a file lease on it" : strerror(-r));
}

/* Adds the hit rel and, for a link, what it leads to. A target that is gone or outside needs nothing. */
int scan_add(struct scanner *sc, char *rel, enum hit_kind kind, const char *rule,
	     const struct stat *st, struct err *e)
{
	_free_ char *target = NULL;
	struct stat at = { 0 };
	int r = scan_put(sc, rel, kind, rule, st, e);

	if (r < 0 || !S_ISLNK(st->st_mode))
		return r;
	r = ws_resolve(&sc->ws, "", rel, &target);
	if (r == 0)
		r = ws_lstat(sc->ws.fd, target, &at);
	if (r < 0)
		return scan_is_nowhere(r) ? 0 : scan_unseen(r, rel, e);
	return scan_put(sc, target, kind, rule, &at, e);
}

/* A file of settings: does it hold a token? What cannot be read, or is too large to be looked through, counts as if. */
static bool holds_token(const struct scanner *sc, const struct find_spot *spot)
{
	_cleanup_(buf_done) struct buf b = BUF(TOKEN_FILE_MAX);
	_free_ char *target = NULL;
	int r = ws_read(spot->dir_fd, spot->name, &b);

	if (r < 0 && ws_resolve(&sc->ws, "", spot->rel, &target) == 0) {
		b.n = 0;
		r = ws_read(sc->ws.fd, target, &b);
	}
	return (r < 0 && r != -ENOENT) || redact_has_token(buf_cstr(&b)) ||
	       (b.n && memchr(b.p, '\0', b.n));
}

static int on_match(void *arg, const struct find_spot *spot, struct err *e)
{
	struct scanner *sc = arg;
	_free_ char *rel = mem_str(spot->rel);
	struct stat st;
	int r;

	if (fstatat(spot->dir_fd, spot->name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		char *slash = strrchr(rel, '/');

		if (errno == ENOENT)
			return 0;
		/* Listed but not reachable (a directory without x): inside, its owner could change that. */
		if (errno != EACCES || slash == NULL)
			return err_sys(e, "'%s'", rel);
		*slash = '\0';
		if (ws_lstat(sc->ws.fd, rel, &st) < 0)
			return err_sys(e, "'%s'", rel);
		return scan_put(sc, rel, HIT_HIDE, RULE_UNREADABLE, &st, e);
	}
	if (str_eq(spot->rule, FIND_TOKEN_RULE) && (!holds_token(sc, spot) || sabotaged("tokens")))
		return 0;
	sc->is_config = str_eq(spot->name, ".gitconfig");
	if (str_eq(spot->rule, FIND_GIT_RULE) && S_ISLNK(st.st_mode)) {
		/* The directory behind it is recognised by what is in it when the walk gets there. */
		return scan_put(sc, rel, spot->kind, spot->rule, &st, e);
	}
	if (str_eq(spot->rule, FIND_GIT_RULE) &&
	    made_has_file(sc->made, spot->dir_fd, spot->name, rel))
		r = 0;
	else
		r = scan_add(sc, rel, spot->kind, spot->rule, &st, e);
	sc->is_config = false;
	if (r == 0 && str_eq(spot->rule, FIND_GIT_RULE))
		r = scan_gitfile(sc, spot->dir_fd, spot->name, rel, e);
	return r;
}

static int on_gitdir(void *arg, int fd, const char *rel, struct err *e)
{
	return scan_gitdir(arg, fd, rel, e);
}

static int on_refused(void *arg, int parent_fd, const char *rel, const char *name, int num)
{
	struct scanner *sc = arg;
	_free_ char *path = ws_rel(rel, name);
	struct stat st;

	if (walk_is_gone(num) || sc->failed < 0)
		return FD_NONE;
	if (num != EACCES || parent_fd < 0) {
		sc->failed = scan_unseen(-num, path, &sc->err);
		return FD_NONE;
	}
	if (fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno != EACCES || fstat(parent_fd, &st) < 0)
			return FD_NONE;
		path[strlen(rel)] = '\0'; /* no right to pass: the parent is the one to hide */
	}
	if (st.st_uid != geteuid())
		return FD_NONE;
	sc->failed = path[0] ? scan_put(sc, path, HIT_HIDE, RULE_UNREADABLE, &st, &sc->err)
			     : scan_unseen(-num, ".", &sc->err);
	return FD_NONE;
}

/* ---- order ---- */

static int compare(const void *a, const void *b)
{
	const struct hit *x = a, *y = b;
	int r = strcmp(x->rel, y->rel);

	if (r == 0)
		r = (int)x->kind - (int)y->kind;
	return r ? r : (int)x->is_alias - (int)y->is_alias;
}

const struct hit *scan_find(const struct scan *s, const char *rel)
{
	size_t lo = 0, hi = s->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int r = strcmp(rel, s->v[mid].rel);

		if (r == 0)
			return &s->v[mid];
		if (r < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	return NULL;
}

bool scan_has_below(const struct scan *s, const char *rel)
{
	size_t len = strlen(rel), lo = 0, hi = s->n;

	while (lo < hi) { /* the first that is not before all of "rel/..." */
		size_t mid = lo + (hi - lo) / 2;
		const char *at = s->v[mid].rel;
		int r = strncmp(at, rel, len);

		if (r < 0 || (r == 0 && len > 0 && (unsigned char)at[len] < '/'))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < s->n &&
	       (len == 0 || (strncmp(s->v[lo].rel, rel, len) == 0 && s->v[lo].rel[len] == '/'));
}

/* The nearest ancestor of rel that is masked as a directory. */
static const struct hit *covering(const struct scan *s, const char *rel)
{
	_free_ char *up = mem_str(rel);
	char *slash;

	while ((slash = strrchr(up, '/')) != NULL) {
		const struct hit *h;

		*slash = '\0';
		h = scan_find(s, up);
		if (h && h->kind != HIT_PIN && !h->is_link)
			return h;
	}
	return NULL;
}

bool scan_covers(const struct scan *s, const char *rel)
{
	const struct hit *h = scan_find(s, rel);

	return (h && h->kind != HIT_PIN && !h->is_link) || covering(s, rel) != NULL;
}

static void drop_repeated(struct scan *s)
{
	size_t n = 0;

	if (s->n == 0)
		return;
	qsort(s->v, s->n, sizeof(*s->v), compare);
	for (size_t i = 0; i < s->n; i++) {
		if (n > 0 && str_eq(s->v[n - 1].rel, s->v[i].rel)) {
			s->v[n - 1].is_gitdir |= s->v[i].is_gitdir;
			free(s->v[i].rel);
		} else {
			s->v[n++] = s->v[i];
		}
	}
	s->n = n;
}

/* Below a hidden directory nothing is left to do, below a protected one only hiding. */
static void drop_covered(struct scan *s)
{
	_free_ bool *is_gone = mem_new(s->n, sizeof(*is_gone));
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct hit *up = covering(s, s->v[i].rel);

		is_gone[i] = up && (up->kind == HIT_HIDE || s->v[i].kind != HIT_HIDE);
	}
	for (size_t i = 0; i < s->n; i++) {
		if (is_gone[i])
			free(s->v[i].rel);
		else
			s->v[n++] = s->v[i];
	}
	s->n = n;
}

static int pin(struct scanner *sc, const char *rel, size_t len, const char *rule, struct err *e)
{
	_free_ char *up = mem_strn(rel, len);
	struct stat st;

	if (ws_lstat(sc->ws.fd, up, &st) < 0)
		return 0;
	return scan_put(sc, up, HIT_PIN, rule, &st, e);
}

/* Neighbours in sorted order share most of their ancestors: only what differs from the last path is new. */
static int add_pins(struct scanner *sc, struct err *e)
{
	size_t n = sc->s->n;
	const char *last = "";

	for (size_t i = 0; i < n; i++) {
		/* The list grows under us; the texts stay where they are. */
		const struct hit h = sc->s->v[i];
		size_t same = 0;

		if (h.is_alias)
			continue;
		while (last[same] && last[same] == h.rel[same])
			same++;
		for (const char *p = strchr(h.rel, '/'); p; p = strchr(p + 1, '/')) {
			size_t len = (size_t)(p - h.rel);
			int r;

			if (len < same && last[len] == '/')
				continue;
			r = pin(sc, h.rel, len, h.rule, e);
			if (r < 0)
				return r;
		}
		last = h.rel;
	}
	return 0;
}

static int finish(struct scanner *sc, struct err *e)
{
	int r;

	drop_repeated(sc->s);
	drop_covered(sc->s);
	r = add_pins(sc, e);
	drop_repeated(sc->s);
	drop_covered(sc->s);
	return r;
}

/* ---- aliases ---- */

struct inode {
	dev_t dev;
	ino_t ino;
	enum hit_kind kind;
	const char *rule;
	bool is_config;
};

struct aliases {
	struct scanner *sc;
	struct inode *v;
	size_t n, cap;
	const struct hit *dir;
	int failed;
	struct err err;
};

static void aliases_done(struct aliases *a)
{
	free(a->v);
}

static int compare_inode(const void *a, const void *b)
{
	const struct inode *x = a, *y = b;

	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	return (int)x->kind - (int)y->kind;
}

static void note(struct aliases *a, const struct stat *st, const struct hit *h)
{
	if (!S_ISREG(st->st_mode) || st->st_nlink < 2)
		return;
	vec_reserve(a->v, a->n, a->cap);
	a->v[a->n++] = (struct inode){ .dev = st->st_dev,
				       .ino = st->st_ino,
				       .kind = h->kind,
				       .rule = h->rule,
				       .is_config = h->is_config };
}

static unsigned note_entry(void *arg, struct walk_dir *d, const char *name, size_t len,
			   unsigned char type)
{
	struct aliases *a = arg;
	struct stat st;

	(void)len;
	if (type == DT_REG && fstatat(d->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		note(a, &st, a->dir);
	return 1;
}

static int note_dir(struct aliases *a, const struct hit *h, struct err *e)
{
	static const struct walk_ops ops = { .entry = note_entry };
	struct walk_stats unused = { 0 };
	_close_ int fd = walk_open(a->sc->ws.fd, h->rel, O_PATH | O_DIRECTORY);

	if (fd < 0 || str_eq(h->rule, RULE_UNREADABLE))
		return 0;
	a->dir = h;
	return walk_run(fd, 1, &ops, a, &unused, e);
}

static int note_hits(struct aliases *a, struct err *e)
{
	const struct scan *s = a->sc->s;

	for (size_t i = 0; i < s->n; i++) {
		const struct hit *h = &s->v[i];
		struct stat st;
		int r = 0;

		if (h->kind == HIT_PIN || h->is_link)
			continue;
		if (h->is_dir)
			r = note_dir(a, h, e);
		else if (ws_lstat(a->sc->ws.fd, h->rel, &st) == 0)
			note(a, &st, h);
		if (r < 0)
			return r;
	}
	return 0;
}

static void sort_inodes(struct aliases *a)
{
	size_t n = 0;

	if (a->n == 0)
		return;
	qsort(a->v, a->n, sizeof(*a->v), compare_inode);
	for (size_t i = 0; i < a->n; i++)
		if (n == 0 || a->v[n - 1].ino != a->v[i].ino || a->v[n - 1].dev != a->v[i].dev)
			a->v[n++] = a->v[i];
	a->n = n;
}

static struct inode *inode_find(struct aliases *a, const struct stat *st)
{
	size_t lo = 0, hi = a->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		struct inode *i = &a->v[mid];

		if (i->ino == st->st_ino && i->dev == st->st_dev)
			return i;
		if (i->ino > st->st_ino || (i->ino == st->st_ino && i->dev > st->st_dev))
			hi = mid;
		else
			lo = mid + 1;
	}
	return NULL;
}

static unsigned alias_entry(void *arg, struct walk_dir *d, const char *name, size_t len,
			    unsigned char type)
{
	struct aliases *a = arg;
	_free_ char *rel = NULL;
	struct inode *i;
	struct stat st;
	struct hit h;

	(void)len;
	if (type != DT_REG || fstatat(d->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_nlink < 2)
		return 1;
	i = inode_find(a, &st);
	if (i == NULL || a->failed < 0)
		return 1;
	rel = ws_rel(d->rel, name);
	h = (struct hit){ .rel = rel,
			  .kind = i->kind,
			  .is_alias = true,
			  .is_config = i->is_config,
			  .rule = i->rule,
			  .dev = st.st_dev,
			  .ino = st.st_ino };
	if (strlen(rel) > SCAN_REL_MAX)
		a->failed = put_ancestor(a->sc, &h, &a->err);
	else
		a->failed = put(a->sc->s, &h, &a->err);
	return 1;
}

static int add_aliases(struct scanner *sc, struct err *e)
{
	static const struct walk_ops ops = { .entry = alias_entry };
	_cleanup_(aliases_done) struct aliases a = { .sc = sc, .err = ERR_INIT };
	struct walk_stats unused = { 0 };
	int r = note_hits(&a, e);

	if (r < 0 || a.n == 0 || sabotaged("aliases"))
		return r;
	sort_inodes(&a);
	r = walk_run(sc->ws.fd, 1, &ops, &a, &unused, e);
	if (r >= 0 && a.failed < 0) {
		*e = a.err;
		r = a.failed;
	}
	return r;
}

/* ---- configurations ---- */

int scan_shown(int ws_fd, const char *rel, char **ret)
{
	_cleanup_(buf_done) struct buf text = BUF(CONFIG_MAX), out = BUF(2 * CONFIG_MAX);
	int r = ws_read(ws_fd, rel, &text);

	if (r < 0)
		return r == -EMSGSIZE ? r : 0; /* nobody inside can read it either */
	r = gitcfg_redact(buf_cstr(&text), text.n, &out);
	if (r > 0)
		*ret = buf_take(&out);
	return r;
}

/* A token in a configuration is not for the inside: it sees a copy without. What cannot be copied so is hidden. */
static void show_configs(struct scanner *sc)
{
	for (size_t i = 0; i < sc->s->n; i++) {
		struct hit *h = &sc->s->v[i];

		if (!h->is_config || h->is_link || h->is_dir || h->kind != HIT_PROTECT ||
		    sabotaged("redact"))
			continue;
		if (scan_shown(sc->ws.fd, h->rel, &h->shown) < 0)
			h->kind = HIT_HIDE;
	}
}

/* What an earlier sweep left, if all that may have written there since came to its end. */
static void load_index(struct scanner *sc, const char *state_dir, struct index *ret)
{
	struct scan *s = sc->s;
	struct index_rules rules;

	s->is_indexed = !s->index->is_off;
	if (s->index->is_off || !index_live_check(state_dir, s->index))
		return;
	matcher_rules(sc->p, &rules);
	(void)index_load(ret, state_dir, s->index, &rules); /* else everything is read */
}

static int run(struct scanner *sc, struct index *old, struct err *e)
{
	static const struct find_ops ops = { .match = on_match,
					     .gitdir = on_gitdir,
					     .refused = on_refused };
	struct matcher *m = sc->s->matcher = mem_new(1, sizeof(*m));
	const struct walk_list list = { .old = old->n ? old : NULL,
					.now = sc->s->index,
					.sample = INDEX_SAMPLE };
	const struct find_job job = { .root_fd = sc->ws.fd,
				      .under = "",
				      .want = FIND_HIDE | FIND_PROTECT,
				      .p = sc->p,
				      .m = m,
				      .ops = &ops,
				      .arg = sc,
				      .list = &list };
	struct walk_stats stats = { 0 };
	int r;

	matcher_init(m, sc->p);
	r = sabotaged("outside") ? 0 : refs_load(sc->s, &sc->ws, e);
	if (r >= 0)
		r = find_run(&job, &stats, e);
	if (r >= 0)
		r = refs_outside(sc->s, &sc->ws, scan_ref, sc, e);
	if (r >= 0 && sc->failed < 0) {
		*e = sc->err;
		r = sc->failed;
	}
	sc->s->dirs = stats.dirs;
	sc->s->files = stats.files;
	sc->s->skipped = stats.skipped;
	if (r < 0)
		return r;
	drop_repeated(sc->s);
	r = add_aliases(sc, e);
	if (r >= 0)
		r = finish(sc, e);
	if (r >= 0)
		show_configs(sc);
	return r;
}

int scan_run(int ws_fd, const struct policy *p, struct scan *ret, struct err *e)
{
	return scan_run_made(ws_fd, p, NULL, NULL, ret, e);
}

/* NOLINTNEXTLINE(readability-function-size): the state directory is where `made` comes from */
int scan_run_made(int ws_fd, const struct policy *p, const struct made *made, const char *state_dir,
		  struct scan *ret, struct err *e)
{
	_cleanup_(index_done) struct index old = { 0 };
	struct scan s = { 0 };
	struct scanner sc = { .p = p, .s = &s, .made = made, .err = ERR_INIT };
	int r = ws_init(&sc.ws, ws_fd, e);

	if (r < 0)
		return r;
	/* The clock that file systems take their times from. */
	(void)clock_gettime(CLOCK_REALTIME_COARSE, &s.began);
	s.index = index_new(ws_fd);
	if (state_dir)
		load_index(&sc, state_dir, &old);
	r = run(&sc, &old, e);
	ws_done(&sc.ws);
	if (r < 0) {
		scan_done(&s);
		return err_wrap(e, r, "looking through the workspace");
	}
	*ret = s;
	return 0;
}

/* ---- later ---- */

void scan_forget(struct scan *s, const char *rel)
{
	size_t len = strlen(rel), n = 0;

	for (size_t i = 0; i < s->n; i++) {
		const char *at = s->v[i].rel;

		if (strncmp(at, rel, len) == 0 && (at[len] == '\0' || at[len] == '/'))
			hit_done(&s->v[i]);
		else
			s->v[n++] = s->v[i];
	}
	s->n = n;
}

int scan_refresh(struct scan *s, int ws_fd, const char *rel, struct err *e)
{
	const struct hit *h = scan_find(s, rel);
	struct stat st;
	int r;

	if (h == NULL)
		return 0;
	r = ws_lstat(ws_fd, rel, &st);
	if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP) {
		scan_forget(s, rel);
		return 0;
	}
	if (r < 0) {
		errno = -r;
		return err_sys(e, "'%s'", rel);
	}
	s->v[h - s->v].dev = st.st_dev;
	s->v[h - s->v].ino = st.st_ino;
	s->v[h - s->v].size = st.st_size;
	s->v[h - s->v].changed = st.st_ctim;
	s->v[h - s->v].is_dir = S_ISDIR(st.st_mode);
	s->v[h - s->v].is_link = S_ISLNK(st.st_mode);
	return 1;
}
