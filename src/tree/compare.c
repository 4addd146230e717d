/* SPDX-License-Identifier: Apache-2.0 */
/* tree/compare.c - what differs between two indexes
 *
 * One pass over both, in step. What lies in a directory that one of them left out is not known there, so it is no
 * difference. Renames are found afterwards among what vanished and what appeared: the same content, not empty.
 */
#include <fcntl.h>

#include "base/path.h"
#include "tree/tree.h"

const char *change_kind_name(enum change_kind kind)
{
	static const char *const names[CHANGE_KIND_COUNT_] = { "added", "removed", "modified",
							       "mode",  "type",    "renamed" };

	bug_on(kind >= CHANGE_KIND_COUNT_);
	return names[kind];
}

void changes_done(struct changes *c)
{
	free(c->v);
	*c = (struct changes){ 0 };
}

static void add(struct changes *c, enum change_kind kind, const struct tree_entry *a,
		const struct tree_entry *b)
{
	vec_reserve(c->v, c->n, c->cap);
	c->v[c->n++] = (struct change){ .kind = kind, .a = a, .b = b };
}

static bool same_content(const struct tree_entry *a, const struct tree_entry *b)
{
	if (S_ISLNK(a->mode))
		return a->target_len == b->target_len &&
		       memcmp(a->target, b->target, a->target_len) == 0;
	if (!S_ISREG(a->mode))
		return true;
	if (a->size != b->size)
		return false;
	if ((a->flags | b->flags) & TREE_UNHASHED)
		return tree_same_stat(a, b);
	return memcmp(a->hash, b->hash, sizeof(a->hash)) == 0;
}

/* What is to be made equal to b cannot get a set-user-id or set-group-id bit that it lacks: restore.c gives none. */
static bool same_mode(const struct tree_entry *a, const struct tree_entry *b, bool is_strict)
{
	uint32_t lacks = is_strict && S_ISREG(a->mode) ? (S_ISUID | S_ISGID) & ~a->mode : 0;

	return a->mode == (b->mode & ~lacks);
}

static bool same_meta(const struct tree_entry *a, const struct tree_entry *b, bool is_strict)
{
	if (S_ISLNK(a->mode))
		return true;
	if ((a->flags | b->flags) & (TREE_UNHASHED | TREE_OPAQUE))
		return same_mode(a, b, is_strict);
	return same_mode(a, b, is_strict) && a->xattr_len == b->xattr_len &&
	       (a->xattr_len == 0 || memcmp(a->xattrs, b->xattrs, a->xattr_len) == 0);
}

struct pair {
	const struct tree_index *x, *y;
	bool is_strict; /* to be made equal, not only shown */
};

/* `en` of x is a further name of a file there: is its namesake in y one of the same file? */
static bool same_link(const struct tree_index *x, const struct tree_entry *en,
		      const struct tree_index *y, const struct tree_entry *other, bool if_gone)
{
	const struct tree_entry *first, *there;

	if (en->link_of == TREE_NONE)
		return true;
	first = &x->v[en->link_of];
	there = tree_find(y, first->path);
	if (there == NULL || !S_ISREG(there->mode))
		return if_gone;
	return there->ino == other->ino;
}

/* A first name that vanishes leaves the others linked; one that is to be made must be linked with them. */
static bool same_links(const struct pair *p, const struct tree_entry *a, const struct tree_entry *b)
{
	return !S_ISREG(a->mode) ||
	       (same_link(p->x, a, p->y, b, true) && same_link(p->y, b, p->x, a, !p->is_strict));
}

static void compare_two(struct changes *c, const struct pair *p, const struct tree_entry *a,
			const struct tree_entry *b)
{
	if ((a->mode & S_IFMT) != (b->mode & S_IFMT))
		add(c, CHANGE_TYPE, a, b);
	else if (!same_content(a, b))
		add(c, CHANGE_MODIFIED, a, b);
	else if (!same_meta(a, b, p->is_strict) || !same_links(p, a, b))
		add(c, CHANGE_MODE, a, b);
}

static bool lies_in(const char *path, const char *dir)
{
	size_t n = dir ? strlen(dir) : 0;

	return dir && strncmp(path, dir, n) == 0 && path[n] == '/';
}

static void note_opaque(const char **at, const struct tree_entry *en)
{
	if (en->flags & TREE_OPAQUE)
		*at = en->path;
}

/* ---- renames ---- */

static bool may_move(const struct change *c, enum change_kind kind)
{
	const struct tree_entry *en = kind == CHANGE_REMOVED ? c->a : c->b;

	return c->kind == kind && S_ISREG(en->mode) && en->size > 0 && !(en->flags & TREE_UNHASHED);
}

static int by_hash(const void *p, const void *q)
{
	const struct tree_entry *a = (*(struct change *const *)p)->a;
	const struct tree_entry *b = (*(struct change *const *)q)->a;

	return memcmp(a->hash, b->hash, sizeof(a->hash));
}

/* One that vanished with this content and was not taken yet; of several the one that kept its name. */
static struct change *find_gone(struct change **v, size_t n, const struct tree_entry *en)
{
	size_t lo = 0, hi = n;
	struct change *best = NULL;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (memcmp(v[mid]->a->hash, en->hash, sizeof(en->hash)) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (size_t seen = 0; lo < n && seen < 64; lo++, seen++) {
		if (memcmp(v[lo]->a->hash, en->hash, sizeof(en->hash)) != 0)
			break;
		if (v[lo]->kind == CHANGE_REMOVED &&
		    (best == NULL || str_eq(v[lo]->a->name, en->name)))
			best = v[lo];
	}
	return best;
}

static void find_renames(struct changes *c)
{
	_free_ struct change **gone = mem_grow(NULL, c->n + 1, sizeof(struct change *));
	size_t n = 0, at = 0;

	for (size_t i = 0; i < c->n; i++)
		if (may_move(&c->v[i], CHANGE_REMOVED))
			gone[n++] = &c->v[i];
	if (n == 0)
		return;
	qsort(gone, n, sizeof(struct change *), by_hash);
	for (size_t i = 0; i < c->n; i++) {
		struct change *from;

		if (!may_move(&c->v[i], CHANGE_ADDED))
			continue;
		from = find_gone(gone, n, c->v[i].b);
		if (from == NULL)
			continue;
		c->v[i].kind = CHANGE_RENAMED;
		c->v[i].a = from->a;
		from->kind = CHANGE_KIND_COUNT_; /* taken */
	}
	for (size_t i = 0; i < c->n; i++)
		if (c->v[i].kind != CHANGE_KIND_COUNT_)
			c->v[at++] = c->v[i];
	c->n = at;
}

void tree_compare(const struct tree_index *a, const struct tree_index *b, bool with_renames,
		  struct changes *ret)
{
	struct pair p = { a, b, !with_renames };
	const char *opaque_a = NULL, *opaque_b = NULL;
	size_t i = 0, k = 0;

	*ret = (struct changes){ 0 };
	while (i < a->n || k < b->n) {
		int c = i == a->n ? 1 : k == b->n ? -1 : path_cmp(a->v[i].path, b->v[k].path);

		if (c <= 0)
			note_opaque(&opaque_a, &a->v[i]);
		if (c >= 0)
			note_opaque(&opaque_b, &b->v[k]);
		if (c == 0)
			compare_two(ret, &p, &a->v[i], &b->v[k]);
		else if (c < 0 && !lies_in(a->v[i].path, opaque_b))
			add(ret, CHANGE_REMOVED, &a->v[i], NULL);
		else if (c > 0 && !lies_in(b->v[k].path, opaque_a))
			add(ret, CHANGE_ADDED, NULL, &b->v[k]);
		i += c <= 0;
		k += c >= 0;
	}
	if (with_renames)
		find_renames(ret);
}

bool tree_is_among(char *const *paths, const char *path)
{
	if (paths == NULL)
		return true;
	for (; *paths; paths++) {
		size_t n = strlen(*paths);

		if (n == 0 ||
		    (strncmp(path, *paths, n) == 0 && (path[n] == '/' || path[n] == '\0')))
			return true;
	}
	return false;
}

static bool is_known(const struct changes *c, char *path, int root_fd)
{
	char *const one[] = { path, NULL };
	_close_ int fd = FD_NONE;

	for (size_t i = 0; i < c->n; i++)
		if ((c->v[i].a && tree_is_among(one, c->v[i].a->path)) ||
		    (c->v[i].b && tree_is_among(one, c->v[i].b->path)))
			return true;
	fd = tree_open(root_fd, path, O_PATH | O_NOFOLLOW);
	return fd >= 0;
}

int changes_check(const struct changes *c, char *const *paths, int root_fd, struct err *e)
{
	for (; paths && *paths; paths++) {
		_cleanup_(buf_done) struct buf name = BUF(64 * KIB);

		if (**paths == '\0' || is_known(c, *paths, root_fd))
			continue;
		buf_esc(&name, *paths, strlen(*paths));
		return err_set(e, ERR_NOTFOUND, ENOENT,
			       "'%.200s' is neither a sandbox nor a path here, and nothing was "
			       "changed",
			       buf_cstr(&name));
	}
	return 0;
}

bool tree_is_above(char *const *paths, const char *dir)
{
	size_t n = strlen(dir);

	for (; paths && *paths; paths++)
		if (strncmp(*paths, dir, n) == 0 && (*paths)[n] == '/')
			return true;
	return false;
}

bool tree_was_touched(const struct tree_index *earlier, const char *path,
		      const struct tree_entry *now)
{
	const struct tree_entry *then = tree_find(earlier, path);

	if (now == NULL || then == NULL)
		return (now == NULL) != (then == NULL);
	if (S_ISDIR(now->mode) || S_ISDIR(then->mode))
		return (now->mode & S_IFMT) != (then->mode & S_IFMT);
	return then->ino != now->ino || then->size != now->size || then->mtime != now->mtime ||
	       then->ctime != now->ctime;
}
