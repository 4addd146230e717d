/* SPDX-License-Identifier: Apache-2.0 */
/* core/review.c - see review.h
 *
 * Taking over is a restore whose contents come from the layers: file by file, each in one step, never through a link,
 * nothing executed. What is refused is said with its reason, one by one, and stays in the sandbox. The sandbox may run
 * meanwhile and write to its layers: so the tree is looked at once, and what is judged, shown and written are the names,
 * modes, targets and hashes of that one look. A file that has become another one by the time it is copied is left.
 */
#include "core/review.h"

#include <fcntl.h>

#include "base/path.h"
#include "base/sabotage.h"

#define APPLYING "applying" /* there while files may lie half-made in the workspace */

static int open_folder(const struct layers *l, struct err *e)
{
	_free_ char *path = mem_fmt("%s/sandboxes/%s", l->state_dir, l->name);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? err_sys(e, "'%s'", path) : fd;
}

int review_open(struct review *r, const char *state_dir, const char *name, int ws_fd,
		const struct policy *p, struct err *e)
{
	struct err ignored;
	_close_ int dir = FD_NONE;
	int x;

	*r = (struct review){ .ws_fd = ws_fd, .policy = p };
	x = layers_read(state_dir, name, &r->layers, e);
	if (x == 0)
		x = layers_open(&r->layers, &r->layers.ws, ws_fd, &r->overlay, e);
	if (x < 0)
		return x;
	dir = open_folder(&r->layers, &ignored);
	if (dir >= 0 && faccessat(dir, APPLYING, F_OK, 0) == 0) {
		tree_clean(ws_fd); /* somebody was killed at it */
		(void)unlinkat(dir, APPLYING, 0);
	}
	r->has_base = dir >= 0 && tree_load(dir, REVIEW_BASE_FILE, &r->base, &ignored) == 0;
	return 0;
}

void review_close(struct review *r)
{
	layers_close(&r->overlay);
	layers_done(&r->layers);
	tree_index_done(&r->base);
}

/* ---- what the host had ---- */

static int save_base(const struct review *r, const struct tree_index *x, struct err *e)
{
	_close_ int dir = open_folder(&r->layers, e);

	return dir < 0 ? dir : tree_save(dir, REVIEW_BASE_FILE, x, e);
}

struct merge {
	struct tree_index *out;
	uint32_t *dirs; /* the directories we are in, as entries of out */
	size_t depth, cap;
};

static bool lies_in(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && path[n] == '/';
}

/* Appends a copy that borrows its strings; without its directory it means nothing. */
static void append(struct merge *m, const struct tree_entry *en)
{
	struct tree_entry *copy;

	while (m->depth > 0 && !lies_in(en->path, m->out->v[m->dirs[m->depth - 1]].path))
		m->depth--;
	if (en->name != en->path &&
	    (m->depth == 0 ||
	     strlen(m->out->v[m->dirs[m->depth - 1]].path) + 1 != (size_t)(en->name - en->path)))
		return;
	vec_reserve(m->out->v, m->out->n, m->out->cap);
	copy = &m->out->v[m->out->n++];
	*copy = *en;
	copy->parent = m->depth ? m->dirs[m->depth - 1] : TREE_NONE;
	copy->link_of = TREE_NONE;
	if (S_ISDIR(en->mode)) {
		vec_reserve(m->dirs, m->depth, m->cap);
		m->dirs[m->depth++] = (uint32_t)m->out->n - 1;
	}
}

static bool is_changed(const struct changes *c, const char *path)
{
	size_t lo = 0, hi = c->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct change *at = &c->v[mid];
		int order = path_cmp(at->b ? at->b->path : at->a->path, path);

		if (order == 0)
			return true;
		if (order < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return false;
}

/* What the sandbox has another version of keeps the record of then; everything else is as it is now. */
static void merge_base(const struct tree_index *then, const struct tree_index *now,
		       const struct changes *changes, struct tree_index *out)
{
	struct merge m = { .out = out };
	size_t i = 0, k = 0;

	while (i < then->n || k < now->n) {
		int c = i == then->n  ? 1
			: k == now->n ? -1
				      : path_cmp(then->v[i].path, now->v[k].path);
		const char *path = c <= 0 ? then->v[i].path : now->v[k].path;
		bool is_kept = is_changed(changes, path);

		if (is_kept && c <= 0)
			append(&m, &then->v[i]);
		else if (!is_kept && c >= 0)
			append(&m, &now->v[k]);
		i += c <= 0;
		k += c >= 0;
	}
	free(m.dirs);
}

int review_remember(struct review *r, struct err *e)
{
	const struct tree_options o = { .with_ignored = true };
	_cleanup_(tree_index_done) struct tree_index now = { 0 };
	struct tree_index out = { .kind = TREE_SEAL };
	struct overlay_diff d = { 0 };
	int x = tree_look(r->ws_fd, r->has_base ? &r->base : NULL, &o, &now, e);

	if (x < 0)
		return x;
	now.kind = TREE_SEAL;
	x = overlay_compare(&r->overlay, false, &d, e);
	if (x == 0 && (!r->has_base || d.changes.n == 0)) {
		x = save_base(r, &now, e);
	} else if (x == 0) {
		merge_base(&r->base, &now, &d.changes, &out);
		x = save_base(r, &out, e);
		free(out.v);
	}
	overlay_diff_done(&d);
	return x;
}

/* ---- what waits ---- */

int review_look(const struct review *r, char *const *paths, bool with_renames, struct waiting *ret,
		struct err *e)
{
	int x;

	*ret = (struct waiting){ .t = { .ws_fd = r->ws_fd, .only = paths, .d = &ret->d } };
	x = overlay_compare(&r->overlay, with_renames, &ret->d, e);
	if (x < 0)
		return x;
	overlay_hash_all(&ret->d);
	return takeover_begin(&ret->t, r->policy, e);
}

void review_look_done(struct waiting *w)
{
	takeover_done(&w->t);
	overlay_diff_done(&w->d);
}

void review_shown(const struct review *r, struct shown *ret)
{
	struct err ignored = ERR_INIT;
	_close_ int dir = open_folder(&r->layers, &ignored);

	*ret = (struct shown){ 0 };
	if (dir >= 0)
		shown_load(dir, ret);
}

int review_remember_shown(const struct review *r, const struct shown *s, bool is_all, struct err *e)
{
	_cleanup_(shown_done) struct shown all = { 0 };
	_close_ int dir = open_folder(&r->layers, e);

	if (dir < 0)
		return dir;
	if (!is_all)
		shown_load(dir, &all);
	shown_join(&all, s);
	return shown_save(dir, &all, e);
}

/* ---- taking over ---- */

static bool is_named_itself(char *const *paths, const char *path)
{
	for (; paths && *paths; paths++)
		if (str_eq(*paths, path))
			return true;
	return false;
}

enum refusal review_refuses(const struct review *r, const struct apply_wish *w,
			    const struct change *c, const char *why)
{
	const struct tree_entry *en = c->b ? c->b : c->a;
	bool is_way =
		c->kind == CHANGE_ADDED && S_ISDIR(en->mode) && tree_is_above(w->paths, en->path);

	if (why && !is_way && !is_named_itself(w->paths, en->path))
		return REFUSED_PROTECTED;
	if (c->b && c->b->flags & TREE_CLOSED)
		return REFUSED_CLOSED;
	if (c->b && S_ISLNK(c->b->mode) && !w->with_links)
		return REFUSED_LINK;
	if (c->b && !S_ISREG(c->b->mode) && !S_ISDIR(c->b->mode) && !S_ISLNK(c->b->mode) &&
	    !w->with_special)
		return REFUSED_SPECIAL;
	if (!w->is_forced && r->has_base && tree_was_touched(&r->base, en->path, c->a))
		return REFUSED_CONFLICT;
	return REFUSED_NOT;
}

struct apply {
	const struct review *r;
	const struct apply_wish *w;
	struct waiting *waiting;
	struct applied *sum;
};

static void say(const struct apply *a, const char *path, const char *why)
{
	if (a->w->say)
		a->w->say(a->w->arg, path, why);
}

static bool skips(void *arg, const struct change *c)
{
	static const char *const why[REFUSED_COUNT_] = {
		[REFUSED_CONFLICT] = ("edited on the host since the sandbox began with it; --force "
				      "takes the sandbox's version"),
		[REFUSED_LINK] = "a symbolic link; --links takes it over",
		[REFUSED_SPECIAL] = "a pipe, socket or device; --special takes pipes over",
		[REFUSED_CLOSED] = ("a directory that is closed to you; a copy of it, made inside, "
				    "can be taken over"),
	};
	struct apply *a = arg;
	const char *path = c->b ? c->b->path : c->a->path;
	_free_ char *outcome = takeover_why(&a->waiting->t, path), *danger = NULL;
	enum refusal no = review_refuses(a->r, a->w, c, outcome);

	if (no == REFUSED_NOT || !tree_is_among(a->w->paths, path))
		return no != REFUSED_NOT;
	if (no == REFUSED_PROTECTED)
		danger = mem_fmt("%s: programs on the host read or run this; name this very path "
				 "to take it over",
				 outcome);
	if (c->kind == CHANGE_ADDED && c->b && S_ISDIR(c->b->mode) && no != REFUSED_CLOSED)
		return true; /* what is in it says so itself */
	a->sum->refused++;
	say(a, path, danger ? danger : why[no]);
	return true;
}

static void on_conflict(void *arg, const char *path, const char *why)
{
	const struct apply *a = arg;

	say(a, path, why);
}

/* The copy is ours alone until it gets its name: what is in it now is what will be there. */
static bool is_as_shown(int fd, const struct tree_entry *en)
{
	uint8_t sum[SHA256_BYTES];
	struct stat st;

	if (sabotaged("shown"))
		return true;
	return !(en->flags & TREE_UNHASHED) && fstat(fd, &st) == 0 &&
	       (uint64_t)st.st_size == en->size && tree_hash_fd(fd, en->size, sum) == 0 &&
	       memcmp(sum, en->hash, sizeof(sum)) == 0;
}

static int write_from_layer(void *arg, const struct tree_entry *en, int fd, struct err *e)
{
	const struct apply *a = arg;
	int x = overlay_write(&a->waiting->d, en, fd, e);

	if (x == 0 && !is_as_shown(fd, en))
		x = err_set(e, ERR_CONFLICT, ESTALE,
			    "changed by the sandbox since it was shown; left there");
	return x;
}

static int set_applying(const struct review *r, bool is_on, struct err *e)
{
	_close_ int dir = open_folder(&r->layers, e);
	_close_ int fd = FD_NONE;

	if (dir < 0)
		return dir;
	if (!is_on)
		return unlinkat(dir, APPLYING, 0) < 0 && errno != ENOENT
			       ? err_sys(e, "%s", APPLYING)
			       : 0;
	fd = openat(dir, APPLYING, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? err_sys(e, "%s", APPLYING) : 0;
}

int review_apply(struct review *r, const struct apply_wish *w, struct waiting *waiting,
		 struct applied *ret, struct err *e)
{
	struct apply a = { .r = r, .w = w, .waiting = waiting, .sum = ret };
	struct restore_job job = { .root_fd = r->ws_fd,
				   .now = &waiting->d.before,
				   .target = &waiting->d.after,
				   .only = w->paths,
				   .skips = skips,
				   .conflict = on_conflict,
				   .arg = &a,
				   .write = write_from_layer,
				   .write_arg = &a,
				   .no_xattrs = true };
	int x;

	*ret = (struct applied){ 0 };
	x = set_applying(r, true, e);
	if (x == 0)
		x = tree_restore(&job, &ret->sum, e);
	if (x == 0)
		x = set_applying(r, false, e);
	/* What was taken over is no edit of the host's. */
	if (x == 0)
		x = review_remember(r, e);
	return x;
}

bool review_is_done(struct review *r)
{
	struct overlay_diff d = { 0 };
	struct err ignored;
	bool is_done = overlay_compare(&r->overlay, false, &d, &ignored) == 0 && d.changes.n == 0;

	for (size_t i = 0; i < d.after.n; i++)
		is_done &= !(d.after.v[i].flags & TREE_CLOSED);
	overlay_diff_done(&d);
	return is_done;
}
