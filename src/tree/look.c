/* SPDX-License-Identifier: Apache-2.0 */
/* tree/look.c - one walk over a live tree, made into an index
 *
 * The walk shows a directory's names in one go and its subdirectories later, in the order the file system has them.
 * So entries are collected raw, each directory's children side by side, and put into order at the end: names sorted
 * within a directory, directories followed by what is in them. Files are not opened; a second pass over the ordered
 * index takes hash and attributes of unchanged files from the index before.
 */
#include <fcntl.h>
#include <time.h>

#include "tree/look.h"

#include "base/path.h"
#include "tree/ignore.h"
#include "tree/text.h"
#include "view/walk.h"

#define PATH_LEN_MAX (32 * KIB)
#define IGNORE_FILE_MAX (256 * KIB)
#define PROGRESS_EVERY 4096

/* A change this soon before we looked may be followed by another that leaves the same time behind. */
#define SETTLE_NS ((int64_t)20 * 1000 * 1000)

struct raw {
	char *name;
	struct stat st;
	uint32_t kids, n_kids; /* of a directory that was visited */
	bool is_visited;
};

struct frame {
	size_t rel_len;
	uint32_t next, end; /* raw entries of this directory, in the walk's order */
};

struct look {
	const struct tree_options *o;
	const struct tree_index *before;
	struct tree_index *x;
	struct raw *raw;
	size_t n, cap;
	struct frame *stack;
	size_t depth, stack_cap;
	struct ignore *ignore;
	uint32_t first; /* of the directory being read */
	bool is_full;
	uint64_t seen;
};

static void look_done(struct look *l)
{
	free(l->raw);
	free(l->stack);
	ignore_free(l->ignore);
}

int64_t tree_now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * (int64_t)NS_PER_SEC + t.tv_nsec;
}

static int64_t ns_of(const struct timespec *t)
{
	return (int64_t)t->tv_sec * (int64_t)NS_PER_SEC + t->tv_nsec;
}

void tree_from_stat(struct tree_entry *en, const struct stat *st)
{
	en->mode = st->st_mode;
	en->uid = st->st_uid;
	en->gid = st->st_gid;
	en->nlink = (uint32_t)st->st_nlink;
	en->dev = st->st_dev;
	en->ino = st->st_ino;
	en->size = S_ISDIR(st->st_mode) ? 0 : (uint64_t)st->st_size;
	en->alloc = S_ISDIR(st->st_mode) ? 0 : (uint64_t)st->st_blocks * 512;
	en->mtime = ns_of(&st->st_mtim);
	en->ctime = ns_of(&st->st_ctim);
	en->flags &= ~(uint32_t)(TREE_UNSETTLED | TREE_SPARSE);
	if (en->ctime > tree_now() - SETTLE_NS)
		en->flags |= TREE_UNSETTLED;
	if (S_ISREG(st->st_mode) && en->alloc + 4096 < en->size)
		en->flags |= TREE_SPARSE;
}

/* ---- the walk ---- */

static void read_ignore(struct look *l, const struct walk_dir *d)
{
	size_t room = ignore_room(l->ignore);
	size_t most = room < IGNORE_FILE_MAX ? room : IGNORE_FILE_MAX;
	_cleanup_(buf_done) struct buf b = BUF(most);
	_close_ int fd = openat(d->fd, ".gitignore",
				O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	struct err ignored;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
		return;
	if ((uint64_t)st.st_size > most || io_read_fd(fd, &b, &ignored) < 0)
		ignore_skip(&l->ignore);
	else
		ignore_add(&l->ignore, d->rel, buf_cstr(&b), b.n);
}

/* What was saved once stays saved: who writes inside also writes .gitignore. */
static bool was_saved(const struct look *l, const char *path)
{
	const struct tree_entry *en = l->before ? tree_find(l->before, path) : NULL;

	return en && S_ISDIR(en->mode) && !(en->flags & TREE_OPAQUE);
}

static bool is_left_out(const struct look *l, const struct walk_dir *d, const char *name)
{
	_free_ char *path = NULL;

	if (l->ignore == NULL)
		return false;
	path = d->rel_len ? mem_fmt("%s/%s", d->rel, name) : mem_str(name);
	return ignore_dir(l->ignore, path) && !was_saved(l, path);
}

static void begin_dir(struct look *l, const struct walk_dir *d)
{
	l->first = (uint32_t)l->n;
	if (l->o->with_ignored)
		return;
	ignore_leave(l->ignore, d->rel);
	read_ignore(l, d);
}

static unsigned on_entry(void *arg, struct walk_dir *d, const char *name, size_t len,
			 unsigned char type)
{
	struct look *l = arg;
	struct raw *r;

	if (!d->bits) {
		d->bits = 1;
		begin_dir(l, d);
	}
	if (l->n >= TREE_ENTRIES_MAX) {
		l->is_full = true;
		return 0;
	}
	vec_reserve(l->raw, l->n, l->cap);
	r = &l->raw[l->n];
	*r = (struct raw){ 0 };
	if (fstatat(d->fd, name, &r->st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0; /* gone meanwhile */
	r->name = text_copy(&l->x->text, name, len);
	if (r->name == NULL) {
		l->is_full = true;
		return 0;
	}
	l->n++;
	if (++l->seen % PROGRESS_EVERY == 0 && l->o->progress.fn)
		l->o->progress.fn(l->o->progress.arg, l->seen, 0);
	if (!S_ISDIR(r->st.st_mode))
		return 0;
	return type == DT_DIR && d->rel_len + len + 1 <= PATH_LEN_MAX && !is_left_out(l, d, name);
}

/* The raw entry of the directory just read: among those of its parent, behind the ones visited before it. */
static struct raw *find_self(struct look *l, const struct walk_dir *d)
{
	const char *name = strrchr(d->rel, '/');
	size_t parent_len;

	name = name ? name + 1 : d->rel;
	parent_len = name == d->rel ? 0 : (size_t)(name - d->rel) - 1;
	while (l->depth > 0 && l->stack[l->depth - 1].rel_len > parent_len)
		l->depth--;
	bug_on(l->depth == 0);
	for (struct frame *f = &l->stack[l->depth - 1]; f->next < f->end;) {
		struct raw *r = &l->raw[f->next++];

		if (S_ISDIR(r->st.st_mode) && str_eq(r->name, name))
			return r;
	}
	return NULL;
}

static int on_end(void *arg, struct walk *w, struct walk_dir *d, struct err *e)
{
	struct look *l = arg;
	uint32_t first = d->bits ? l->first : (uint32_t)l->n;

	if (l->is_full)
		return err_set(e, ERR_UNSUPPORTED, E2BIG,
			       "the tree is too large to remember (over %zu names, or too deep)",
			       TREE_ENTRIES_MAX);
	if (d->rel_len > 0) {
		struct raw *self = find_self(l, d);

		if (self) { /* else replaced while we looked: nothing is known of it */
			self->kids = first;
			self->n_kids = (uint32_t)l->n - first;
			self->is_visited = true;
		}
	}
	vec_reserve(l->stack, l->depth, l->stack_cap);
	l->stack[l->depth++] = (struct frame){ d->rel_len, first, (uint32_t)l->n };
	return 0;
}

/* ---- putting into order ---- */

struct slot {
	const char *name;
	uint32_t raw;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct slot *)a)->name, ((const struct slot *)b)->name);
}

struct order {
	struct slot *v;
	size_t n, cap;
	uint32_t *parents; /* per slot of the stack: the index entry it lies in */
	size_t parents_cap;
};

/* Pushes the children of one directory, last name first, so that the first is on top. */
static void push_kids(struct order *o, const struct look *l, uint32_t first, uint32_t n,
		      uint32_t parent)
{
	_free_ struct slot *kids = mem_grow(NULL, n + 1, sizeof(*kids));

	for (uint32_t i = 0; i < n; i++)
		kids[i] = (struct slot){ l->raw[first + i].name, first + i };
	qsort(kids, n, sizeof(*kids), by_name);
	for (uint32_t i = n; i-- > 0;) {
		size_t before = o->cap;

		vec_reserve(o->v, o->n, o->cap);
		if (o->cap != before)
			o->parents = mem_grow(o->parents, o->cap, sizeof(*o->parents));
		o->v[o->n] = kids[i];
		o->parents[o->n++] = parent;
	}
}

static int add_entry(struct look *l, const struct raw *r, uint32_t parent, struct err *e)
{
	struct tree_index *x = l->x;
	struct tree_entry *en;
	const char *dir = parent == TREE_NONE ? NULL : x->v[parent].path;
	const char *path = dir ? text_join(&x->text, dir, r->name) : r->name;

	if (path == NULL)
		return err_set(e, ERR_UNSUPPORTED, E2BIG, "the tree's names are too long together");
	vec_reserve(x->v, x->n, x->cap);
	en = &x->v[x->n++];
	*en = (struct tree_entry){ .path = path,
				   .name = dir ? path + strlen(dir) + 1 : path,
				   .parent = parent,
				   .link_of = TREE_NONE };
	/* Ignored, unreadable or too deep: to a restore it must not look empty. */
	if (S_ISDIR(r->st.st_mode) && !r->is_visited)
		en->flags |= TREE_OPAQUE;
	tree_from_stat(en, &r->st);
	if (S_ISREG(en->mode))
		en->flags |= TREE_UNHASHED;
	return 0;
}

static int put_in_order(struct look *l, struct err *e)
{
	struct order o = { 0 };
	int r = 0;

	if (l->depth > 0)
		push_kids(&o, l, l->stack[0].next, l->stack[0].end - l->stack[0].next, TREE_NONE);
	while (r == 0 && o.n > 0) {
		const struct raw *raw = &l->raw[o.v[--o.n].raw];
		uint32_t parent = o.parents[o.n];

		r = add_entry(l, raw, parent, e);
		if (r == 0 && raw->n_kids > 0)
			push_kids(&o, l, raw->kids, raw->n_kids, (uint32_t)l->x->n - 1);
	}
	free(o.v);
	free(o.parents);
	return r;
}

/* ---- hard links, targets, what is known already ---- */

struct link_slot {
	uint64_t dev, ino;
	uint32_t first; /* entry + 1; 0: free */
};

/* Files with several names: all but the first point at the first. */
static void find_links(struct tree_index *x)
{
	size_t many = 0, size = 64;
	_free_ struct link_slot *t = NULL;

	for (size_t i = 0; i < x->n; i++)
		many += S_ISREG(x->v[i].mode) && x->v[i].nlink > 1;
	if (many == 0)
		return;
	while (size < many * 2)
		size *= 2;
	t = mem_new(size, sizeof(*t));
	for (size_t i = 0; i < x->n; i++) {
		struct tree_entry *en = &x->v[i];
		size_t at = (en->ino * 0x9e3779b97f4a7c15U >> 20) & (size - 1);

		if (!S_ISREG(en->mode) || en->nlink < 2)
			continue;
		while (t[at].first && (t[at].ino != en->ino || t[at].dev != en->dev))
			at = (at + 1) & (size - 1);
		if (t[at].first)
			en->link_of = t[at].first - 1;
		else
			t[at] = (struct link_slot){ en->dev, en->ino, (uint32_t)i + 1 };
	}
}

static int read_target(int root_fd, struct tree_index *x, struct tree_entry *en)
{
	_close_ int fd = tree_open(root_fd, en->path, O_PATH | O_NOFOLLOW);
	char target[4096];
	ssize_t n = fd < 0 ? fd : readlinkat(fd, "", target, sizeof(target));

	if (n <= 0 || (size_t)n >= sizeof(target))
		return -ENOENT;
	en->target = text_copy(&x->text, target, (size_t)n);
	en->target_len = en->target ? (uint32_t)n : 0;
	return en->target ? 0 : -ENOMEM;
}

/* Do equal stats mean that the content is what it was? Of a file that was never read nothing else is known. */
static bool is_proof(const struct look *l, const struct tree_entry *old,
		     const struct tree_entry *en)
{
	return !S_ISREG(old->mode) || old->size == 0 || (old->flags & TREE_UNHASHED) ||
	       ((old->flags & TREE_STEADY) && en->dev == l->x->steady_dev);
}

static void take_known(struct tree_index *x, struct tree_entry *en, const struct tree_entry *old)
{
	memcpy(en->hash, old->hash, sizeof(en->hash));
	en->flags &= ~(uint32_t)TREE_UNHASHED;
	en->flags |= old->flags & (TREE_UNSAVED | TREE_UNHASHED | TREE_SPARSE | TREE_STEADY);
	if (old->target_len) {
		en->target = text_copy(&x->text, old->target, old->target_len);
		en->target_len = en->target ? old->target_len : 0;
	}
	if (old->xattr_len) {
		en->xattrs = text_copy(&x->text, old->xattrs, old->xattr_len);
		en->xattr_len = en->xattrs ? old->xattr_len : 0;
	}
}

/* A link that vanished before we could read it is dropped: nothing lies below it, so only numbers shift. */
static void drop_unread(struct tree_index *x)
{
	_free_ uint32_t *moved = mem_grow(NULL, x->n + 1, sizeof(*moved));
	size_t n = 0;

	for (size_t i = 0; i < x->n; i++) {
		struct tree_entry *en = &x->v[i];

		moved[i] = (uint32_t)n;
		if (S_ISLNK(en->mode) && en->target_len == 0)
			continue;
		if (en->parent != TREE_NONE)
			en->parent = moved[en->parent];
		if (en->link_of != TREE_NONE)
			en->link_of = moved[en->link_of];
		x->v[n++] = *en;
	}
	x->n = n;
}

static void compare_before(int root_fd, struct look *l)
{
	struct tree_index *x = l->x;
	size_t k = 0, n_old = l->before ? l->before->n : 0;
	bool has_unread = false;

	for (size_t i = 0; i < x->n; i++) {
		struct tree_entry *en = &x->v[i];
		const struct tree_entry *old;
		int c = -1;

		while (k < n_old && (c = path_cmp(l->before->v[k].path, en->path)) < 0)
			k++;
		old = k < n_old && c == 0 ? &l->before->v[k] : NULL;
		if (old && tree_same_stat(old, en) && is_proof(l, old, en))
			take_known(x, en, old);
		else if (S_ISLNK(en->mode))
			has_unread |= read_target(root_fd, x, en) < 0;
		else if (S_ISDIR(en->mode))
			tree_read_xattrs(root_fd, x, en);
	}
	if (has_unread)
		drop_unread(x);
}

int tree_open(int root_fd, const char *path, int flags)
{
	return walk_open(root_fd, path, flags);
}

int tree_look(int root_fd, const struct tree_index *before, const struct tree_options *o,
	      struct tree_index *ret, struct err *e)
{
	static const struct walk_ops ops = { .entry = on_entry, .end = on_end };
	_cleanup_(tree_index_done) struct tree_index x = { .created = (uint64_t)tree_now() };
	_cleanup_(look_done) struct look l = { .o = o, .before = before, .x = &x };
	struct walk_stats stats = { 0 };
	struct stat st;
	int r;

	if (fstat(root_fd, &st) < 0)
		return err_sys(e, "the tree");
	x.root_mode = st.st_mode;
	r = walk_run(root_fd, 1, &ops, &l, &stats, e);
	if (r == 0 && l.is_full)
		r = err_set(e, ERR_UNSUPPORTED, E2BIG, "the tree is too large to remember");
	if (r == 0) {
		l.stack[0].next = 0;
		r = put_in_order(&l, e);
	}
	if (r < 0)
		return r;
	x.is_ignore_cut = ignore_is_cut(l.ignore);
	find_links(&x);
	x.steady_dev = before && tree_times_hold(root_fd) ? st.st_dev : 0;
	compare_before(root_fd, &l);
	*ret = x;
	x = (struct tree_index){ 0 };
	return 0;
}
