/* SPDX-License-Identifier: Apache-2.0 */
/* tree/overlay_since.c - see overlay.h
 *
 * A stack says of a name that it touches what it is, or that it is gone; what it does not touch shows as in the tree below.
 * So of the names that one of two stacks touches each shows: its own entry; or nothing, where it touches the name and has
 * none; or what the other one found in the tree below. Two lists of those are compared like any other two trees.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "tree/content.h"
#include "tree/overlay.h"

struct found {
	struct tree_entry en;
	int root;
};

static int by_path(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return path_cmp(x->en.path, y->en.path);
}

static uint32_t parent_of(const struct tree_index *x, const struct tree_entry *en)
{
	_free_ char *dir = NULL;
	const struct tree_entry *p;

	if (en->name == en->path)
		return TREE_NONE;
	dir = mem_strn(en->path, (size_t)(en->name - en->path) - 1);
	p = tree_find(x, dir);
	return p ? (uint32_t)(p - x->v) : TREE_NONE;
}

/* What `mine` shows of all names that it or `other` touches. */
static void show(const struct overlay_diff *mine, const struct overlay_diff *other,
		 struct tree_index *ret, int **ret_roots)
{
	_free_ struct found *v = mem_new(mine->after.n + other->before.n + 1, sizeof(*v));
	size_t n = 0;

	for (size_t i = 0; i < mine->after.n; i++)
		v[n++] = (struct found){ mine->after.v[i], mine->o->layers[mine->layer[i]] };
	for (size_t i = 0; i < other->before.n; i++) {
		const struct tree_entry *en = &other->before.v[i];

		if (tree_find(&mine->before, en->path) == NULL &&
		    tree_find(&mine->after, en->path) == NULL)
			v[n++] = (struct found){ *en, mine->o->base };
	}
	qsort(v, n, sizeof(*v), by_path);
	*ret_roots = mem_new(n + 1, sizeof(**ret_roots));
	for (size_t i = 0; i < n; i++) {
		vec_reserve(ret->v, ret->n, ret->cap);
		ret->v[ret->n] = v[i].en;
		ret->v[ret->n].link_of = TREE_NONE;
		ret->v[ret->n].parent = parent_of(ret, &v[i].en);
		(*ret_roots)[ret->n++] = v[i].root;
	}
}

/* The same file is not read twice; one of another size is not read at all, unless it may have another name. */
static void hash_needed(struct overlay_since *s)
{
	struct content_bounds bounds = CONTENT_BOUNDS;

	for (size_t i = 0; i < s->before.n; i++) {
		struct tree_entry *a = &s->before.v[i];
		const struct tree_entry *found = tree_find(&s->after, a->path);
		struct tree_entry *b = found ? &s->after.v[found - s->after.v] : NULL;

		if (b && S_ISREG(a->mode) && S_ISREG(b->mode) && a->dev == b->dev &&
		    a->ino == b->ino) {
			memset(a->hash, 0, sizeof(a->hash));
			memset(b->hash, 0, sizeof(b->hash));
			a->flags &= ~(uint32_t)TREE_UNHASHED;
			b->flags &= ~(uint32_t)TREE_UNHASHED;
		} else if (b == NULL || !S_ISREG(b->mode) || a->size == b->size) {
			overlay_hash(s->before_roots[i], a, &bounds);
		}
	}
	for (size_t i = 0; s->after.v && i < s->after.n; i++) {
		struct tree_entry *b = &s->after.v[i];
		const struct tree_entry *a = tree_find(&s->before, b->path);

		if (a == NULL || !S_ISREG(a->mode) || a->size == b->size)
			overlay_hash(s->after_roots[i], b, &bounds);
	}
}

int overlay_since(const struct overlay *then, const struct overlay *now, struct overlay_since *ret,
		  struct err *e)
{
	struct overlay_since s = { 0 };
	int r = overlay_names(then, &s.then, e);

	if (r == 0)
		r = overlay_names(now, &s.now, e);
	if (r < 0) {
		overlay_since_done(&s);
		return r;
	}
	show(&s.then, &s.now, &s.before, &s.before_roots);
	show(&s.now, &s.then, &s.after, &s.after_roots);
	hash_needed(&s);
	tree_compare(&s.before, &s.after, true, &s.changes);
	*ret = s;
	return 0;
}

void overlay_since_done(struct overlay_since *s)
{
	changes_done(&s->changes);
	tree_index_done(&s->before);
	tree_index_done(&s->after);
	free(s->before_roots);
	free(s->after_roots);
	overlay_diff_done(&s->then);
	overlay_diff_done(&s->now);
	*s = (struct overlay_since){ 0 };
}

int overlay_since_read(const struct overlay_since *s, const struct tree_entry *en, bool is_new,
		       struct buf *out)
{
	int root = is_new ? s->after_roots[en - s->after.v] : s->before_roots[en - s->before.v];
	_close_ int fd = tree_open(root, en->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct err ignored = ERR_INIT;
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -ESTALE;
	return io_read_fd(fd, out, &ignored);
}
