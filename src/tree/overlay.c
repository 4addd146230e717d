/* SPDX-License-Identifier: Apache-2.0 */
/* tree/overlay.c - see overlay.h
 *
 * A name in an upper layer hides the same name below: a file or link for good; a directory only until it is opaque
 * (user.overlay.opaque); a character device 0:0 says that the name is gone. So for a path the layers are asked from
 * the top until one hides the rest, and the tree below is asked last, twice: what it has (before), and whether that
 * still shows (after).
 *
 * A stack of paths still to visit takes the place of recursion: depth is the agent's to choose, our stack is not.
 */
#include "tree/overlay_own.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "tree/content.h"
#include "tree/text.h"

#define PATH_LEN_MAX (32 * KIB)

/* One path still to be looked at. */
struct todo {
	char *path;
	uint32_t before, after; /* index of its directory there, or TREE_NONE */
	bool has_base;          /* the tree below shows through, or did */
	bool is_gone;           /* no layer can have it: all that is here is removed */
	uint8_t first, end;     /* layers that can have it */
};

struct merge {
	struct overlay_diff *d;
	struct todo *v;
	size_t n, cap;
};

static int fd_path(int fd, char *path, size_t size)
{
	return snprintf(path, size, "/proc/self/fd/%d", fd);
}

static bool has_mark(int fd, const char *name)
{
	char path[64], value[8] = "";

	(void)fd_path(fd, path, sizeof(path));
	return getxattr(path, name, value, sizeof(value)) >= 1 && value[0] == 'y';
}

static bool is_whiteout(int fd, const struct stat *st)
{
	char path[64];

	if (S_ISCHR(st->st_mode))
		return st->st_rdev == makedev(0, 0);
	if (!S_ISREG(st->st_mode) || st->st_size > 0)
		return false;
	(void)fd_path(fd, path, sizeof(path));
	return getxattr(path, "user.overlay.whiteout", NULL, 0) >= 0;
}

static enum says ask(int layer, const char *path, struct stat *st)
{
	_close_ int fd = tree_open(layer, path, O_PATH | O_NOFOLLOW);

	if (fd < 0 || fstat(fd, st) < 0)
		return SAYS_NOTHING;
	if (is_whiteout(fd, st))
		return SAYS_GONE;
	if (!S_ISDIR(st->st_mode))
		return SAYS_FILE;
	return has_mark(fd, "user.overlay.opaque") ? SAYS_OPAQUE : SAYS_DIR;
}

/* ---- entries ---- */

static int add_entry(struct tree_index *x, int root, const char *path, uint32_t parent,
		     const struct stat *st, struct err *e)
{
	const char *slash = strrchr(path, '/');
	struct tree_entry *en;
	char target[4096];
	ssize_t n = 0;

	if (x->n >= TREE_ENTRIES_MAX)
		return err_set(e, ERR_UNSUPPORTED, E2BIG, "too many names changed");
	if (S_ISLNK(st->st_mode)) {
		_close_ int fd = tree_open(root, path, O_PATH | O_NOFOLLOW);

		n = fd < 0 ? fd : readlinkat(fd, "", target, sizeof(target));
		if (n <= 0 || (size_t)n >= sizeof(target))
			return 0; /* gone meanwhile */
	}
	vec_reserve(x->v, x->n, x->cap);
	en = &x->v[x->n++];
	*en = (struct tree_entry){ .parent = parent, .link_of = TREE_NONE };
	en->path = text_copy(&x->text, path, strlen(path));
	en->target = n ? text_copy(&x->text, target, (size_t)n) : NULL;
	en->target_len = (uint32_t)n;
	if (en->path == NULL || (n && en->target == NULL))
		return err_set(e, ERR_UNSUPPORTED, E2BIG,
			       "the changed names are too long together");
	en->name = en->path + (slash ? slash - path + 1 : 0);
	tree_from_stat(en, st);
	if (S_ISREG(en->mode))
		en->flags |= TREE_UNHASHED;
	return 0;
}

static int add_after(struct merge *m, const struct todo *t, size_t layer, const struct stat *st,
		     struct err *e)
{
	struct overlay_diff *d = m->d;
	size_t before = d->after.n;
	int r = add_entry(&d->after, d->o->layers[layer], t->path, t->after, st, e);

	if (r == 0 && d->after.n > before) {
		d->layer = mem_grow(d->layer, d->after.n, 1);
		d->layer[d->after.n - 1] = (uint8_t)layer;
	}
	return r;
}

/* ---- names ---- */

void overlay_list_done(struct overlay_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i]);
	free(l->v);
}

int overlay_list(int root, const char *path, struct overlay_list *l)
{
	int fd = tree_open(root, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *en;
	int r = 0;

	if (d == NULL) {
		fd_close(fd);
		return fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP ? 0 : fd < 0 ? fd : -ENOMEM;
	}
	while ((en = readdir(d)) != NULL) {
		if (str_eq(en->d_name, ".") || str_eq(en->d_name, ".."))
			continue;
		if (strlen(path) + strlen(en->d_name) > PATH_LEN_MAX) {
			r = -ENAMETOOLONG;
			continue;
		}
		vec_reserve(l->v, l->n, l->cap);
		l->v[l->n++] = mem_str(en->d_name);
	}
	(void)closedir(d);
	return r;
}

static int by_name_down(const void *a, const void *b)
{
	const char *x, *y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return strcmp(y, x);
}

void overlay_list_sort(struct overlay_list *l)
{
	if (l->n > 0)
		qsort(l->v, l->n, sizeof(*l->v), by_name_down);
}

/* Pushes the children of t: names of its layers, and those of the tree below when they are gone with it. */
static void push_children(struct merge *m, const struct todo *t, bool with_base)
{
	_cleanup_(overlay_list_done) struct overlay_list l = { 0 };
	const struct overlay *o = m->d->o;

	for (size_t k = t->first; k < t->end; k++)
		if (overlay_list(o->layers[k], t->path, &l) < 0 && t->after != TREE_NONE)
			m->d->after.v[t->after].flags |= TREE_CLOSED;
	if (with_base)
		(void)overlay_list(o->base, t->path, &l);
	overlay_list_sort(&l);
	for (size_t i = 0; i < l.n; i++) {
		struct todo next = *t;

		if (i > 0 && str_eq(l.v[i], l.v[i - 1]))
			continue;
		next.path = t->path[0] ? mem_fmt("%s/%s", t->path, l.v[i]) : mem_str(l.v[i]);
		vec_reserve(m->v, m->n, m->cap);
		m->v[m->n++] = next;
	}
}

/* ---- one path ---- */

struct overlay_shown overlay_ask(const struct overlay *o, const char *path, size_t first,
				 size_t end)
{
	struct overlay_shown s = { .first = end, .end = end, .base_shows = true };

	for (size_t k = first; k < end; k++) {
		struct stat st;
		enum says one = ask(o->layers[k], path, &st);

		if (one == SAYS_NOTHING)
			continue;
		if (s.says == SAYS_NOTHING) {
			s.says = one;
			s.first = k;
			s.st = st;
		}
		if (one == SAYS_FILE || one == SAYS_GONE) {
			s.base_shows = false;
			s.end = k;
			return s;
		}
		s.end = k + 1;
		if (one == SAYS_OPAQUE) {
			s.base_shows = false;
			return s;
		}
	}
	return s;
}

static int visit(struct merge *m, const struct todo *t, struct err *e)
{
	const struct overlay *o = m->d->o;
	struct todo kids = *t;
	struct stat below;
	bool is_dir, was_dir;
	struct overlay_shown top = { .says = SAYS_GONE };
	_close_ int fd = t->has_base ? tree_open(o->base, t->path, O_PATH | O_NOFOLLOW) : FD_NONE;
	bool has_base = fd >= 0 && fstat(fd, &below) == 0;
	enum says s;
	int r = 0;

	if (!t->is_gone) {
		top = overlay_ask(o, t->path, t->first, t->end);
		kids.first = (uint8_t)top.first;
		kids.end = (uint8_t)top.end;
	}
	s = top.says;
	if (has_base) {
		r = add_entry(&m->d->before, o->base, t->path, t->before, &below, e);
		kids.before = (uint32_t)m->d->before.n - 1;
	}
	is_dir = s == SAYS_DIR || s == SAYS_OPAQUE;
	was_dir = has_base && S_ISDIR(below.st_mode);
	if (r == 0 && (is_dir || s == SAYS_FILE)) {
		r = add_after(m, t, top.first, &top.st, e);
		kids.after = (uint32_t)m->d->after.n - 1;
	}
	if (r < 0 || (!is_dir && !was_dir))
		return r;
	kids.has_base = was_dir;
	kids.is_gone = !is_dir;
	if (!is_dir)
		kids.first = kids.end = 0;
	push_children(m, &kids, was_dir && (!is_dir || !top.base_shows));
	return 0;
}

static int merge(struct overlay_diff *d, struct err *e)
{
	struct merge m = { .d = d };
	struct todo root = { .path = mem_str(""),
			     .before = TREE_NONE,
			     .after = TREE_NONE,
			     .has_base = d->o->base >= 0,
			     .end = (uint8_t)d->o->n };
	int r = 0;

	push_children(&m, &root, false);
	free(root.path);
	while (m.n > 0) {
		struct todo t = m.v[--m.n];

		if (r == 0)
			r = visit(&m, &t, e);
		free(t.path);
	}
	free(m.v);
	return r;
}

/* ---- contents ---- */

static int layer_of(const struct overlay_diff *d, const struct tree_entry *en)
{
	return d->o->layers[d->layer[en - d->after.v]];
}

void overlay_hash(int root, struct tree_entry *en, struct content_bounds *b)
{
	_close_ int fd = FD_NONE;

	if (!S_ISREG(en->mode) || !(en->flags & TREE_UNHASHED))
		return;
	fd = content_open(root, en);
	if (fd >= 0 && !content_is_too_long(en, b) && tree_hash_fd(fd, en->size, en->hash) == 0)
		en->flags &= ~(uint32_t)TREE_UNHASHED;
}

void overlay_hash_all(struct overlay_diff *d)
{
	struct content_bounds b = CONTENT_BOUNDS;

	for (size_t i = 0; i < d->after.n; i++)
		overlay_hash(layer_of(d, &d->after.v[i]), &d->after.v[i], &b);
}

/* A file whose size differs needs no hash to be seen as changed; only to be found again under another name. */
static void hash_needed(struct overlay_diff *d, bool with_renames)
{
	struct content_bounds b = CONTENT_BOUNDS;

	for (size_t i = 0; i < d->after.n; i++) {
		struct tree_entry *en = &d->after.v[i];
		const struct tree_entry *found = tree_find(&d->before, en->path);
		struct tree_entry *was = found ? &d->before.v[found - d->before.v] : NULL;

		if (was && S_ISREG(was->mode) && S_ISREG(en->mode)) {
			if (was->size != en->size)
				continue;
			overlay_hash(d->o->base, was, &b);
			overlay_hash(layer_of(d, en), en, &b);
		} else if (with_renames) {
			overlay_hash(layer_of(d, en), en, &b);
		}
	}
	for (size_t i = 0; with_renames && i < d->before.n; i++)
		if (tree_find(&d->after, d->before.v[i].path) == NULL)
			overlay_hash(d->o->base, &d->before.v[i], &b);
}

int overlay_compare(const struct overlay *o, bool with_renames, struct overlay_diff *ret,
		    struct err *e)
{
	int r = overlay_names(o, ret, e);

	if (r < 0)
		return r;
	hash_needed(ret, with_renames);
	tree_compare(&ret->before, &ret->after, with_renames, &ret->changes);
	return 0;
}

int overlay_names(const struct overlay *o, struct overlay_diff *ret, struct err *e)
{
	struct overlay_diff d = { .o = o };
	int r = merge(&d, e);

	if (r < 0)
		overlay_diff_done(&d);
	else
		*ret = d;
	return r;
}

void overlay_diff_done(struct overlay_diff *d)
{
	changes_done(&d->changes);
	tree_index_done(&d->before);
	tree_index_done(&d->after);
	free(d->layer);
	d->layer = NULL;
}

int overlay_read(void *diff, const struct tree_entry *en, bool is_new, struct buf *out)
{
	const struct overlay_diff *d = diff;
	int root = is_new ? layer_of(d, en) : d->o->base;
	_close_ int fd = tree_open(root, en->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	struct err e = ERR_INIT;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -ESTALE;
	return io_read_fd(fd, out, &e);
}

int overlay_write(const struct overlay_diff *d, const struct tree_entry *en, int fd, struct err *e)
{
	struct tree_entry copy = *en;
	_close_ int from = content_open(layer_of(d, en), &copy);
	struct content_bounds b = CONTENT_BOUNDS;
	uint8_t sum[SHA256_BYTES];
	int r = from < 0                    ? from
		: copy.size > TREE_SIZE_MAX ? -EFBIG
					    : content_copy(from, fd, copy.size, &b.slack, sum);

	if (r < 0) {
		errno = -r;
		return err_sys(e, "'%s'", en->path);
	}
	return 0;
}

/* ---- flattening ---- */

struct flat {
	const struct overlay_diff *d;
};

static int flat_write(void *arg, const struct tree_entry *en, int fd, struct err *e)
{
	const struct flat *f = arg;

	return overlay_write(f->d, en, fd, e);
}

/* The marks of what is gone: every name that the tree below has and the layers hide, so that no directory needs to be
 * opaque. */
static int put_whiteouts(const struct overlay_diff *d, char *const *except, int to, struct err *e)
{
	for (size_t i = 0; i < d->changes.n; i++) {
		const struct change *c = &d->changes.v[i];
		const struct tree_entry *dir;
		_close_ int at = FD_NONE;
		_free_ char *parent = NULL;

		if (c->kind != CHANGE_REMOVED || (except && tree_is_among(except, c->a->path)))
			continue;
		dir = c->a->parent == TREE_NONE ? NULL : &d->before.v[c->a->parent];
		/* Below a directory that is gone itself, or became something else, nothing needs a mark. */
		if (dir) {
			const struct tree_entry *now = tree_find(&d->after, dir->path);

			if (now == NULL || !S_ISDIR(now->mode))
				continue;
		}
		parent = mem_strn(c->a->path, dir ? strlen(dir->path) : 0);
		at = tree_open(to, parent, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
		if (at < 0)
			continue;
		if (mknodat(at, c->a->name, S_IFCHR, makedev(0, 0)) < 0 && errno != EEXIST)
			return err_sys(e, "'%s'", c->a->path);
	}
	return 0;
}

static bool is_excepted(void *arg, const struct change *c)
{
	char *const *except = arg;

	return except && tree_is_among(except, c->b ? c->b->path : c->a->path);
}

int overlay_flatten(const struct overlay *o, char *const *except, int to, struct err *e)
{
	struct overlay_diff d = { 0 };
	const struct tree_index nothing = { 0 };
	struct flat f = { .d = &d };
	struct restored sum;
	int r = overlay_compare(o, false, &d, e);

	if (r == 0) {
		struct restore_job job = { .root_fd = to,
					   .now = &nothing,
					   .target = &d.after,
					   .write = flat_write,
					   .write_arg = &f,
					   .no_xattrs = true,
					   .skips = except ? is_excepted : NULL,
					   .arg = (void *)(uintptr_t)except };

		r = tree_restore(&job, &sum, e);
		if (r == 0 && sum.conflicts > 0)
			r = err_set(e, ERR_SYSTEM, EIO, "%llu files could not be copied",
				    (unsigned long long)sum.conflicts);
	}
	if (r == 0)
		r = put_whiteouts(&d, except, to, e);
	overlay_diff_done(&d);
	return r;
}
