/* SPDX-License-Identifier: Apache-2.0 */
/* tree/checkpoint.c - look, save what is new, write it down */
#include "base/path.h"
#include "tree/store.h"

static int newest(struct store *s, struct tree_index *ret, bool *ret_is_there, struct err *e)
{
	_free_ uint64_t *ids = NULL;
	size_t n = 0;
	int r = store_list(s, &ids, &n, e);

	*ret_is_there = false;
	if (r < 0 || n == 0)
		return r;
	r = store_load(s, ids[n - 1], ret, e);
	*ret_is_there = r == 0;
	/* A damaged index must not stop us from making a good one; it only saves no work. */
	return r == -EBADMSG ? 0 : r;
}

struct saving {
	struct store *s;
	const struct tree_options *o;
	const struct tree_index *before; /* NULL: none */
	struct tree_saved *sum;
	struct content_bounds b;
	uint64_t read; /* files whose content was read */
};

static bool is_over_cap(struct saving *v, const struct tree_entry *en)
{
	const struct tree_options *o = v->o;

	return (o->max_file && en->alloc > o->max_file) ||
	       (o->max_new && v->sum->new_bytes + en->alloc > o->max_new) ||
	       content_is_too_long(en, &v->b);
}

/* What was a small file when we looked may be a large one when it is opened, so the caps are asked of the open one. */
static int save_one(struct saving *v, int root_fd, struct tree_index *x, struct tree_entry *en,
		    uint64_t *ret_new, struct err *e)
{
	_close_ int fd = content_open(root_fd, en);
	int r = -ESTALE;

	/* Whoever holds it may let go of it: a checkpoint without it would be called whole. */
	if (fd == -EAGAIN)
		return err_set(e, ERR_CONFLICT, EAGAIN,
			       "'%.300s' is held by a process with a file lease; end that process, "
			       "or run the command again",
			       en->path);
	if (fd < 0 || is_over_cap(v, en)) { /* or unreadable, or gone: known by its stat alone */
		en->flags |= TREE_UNSAVED;
		return 0;
	}
	for (int i = 0; i < 3 && r == -ESTALE; i++) {
		r = store_put(v->s, fd, en, &v->b.slack, ret_new, e);
		if (r == -ESTALE && (content_stat(fd, en) < 0 || is_over_cap(v, en)))
			break; /* else it was cut while we read: again */
	}
	if (r == -ESTALE || r == -EFBIG) {
		en->flags |= TREE_UNSAVED;
		return 0;
	}
	if (r < 0)
		return r;
	tree_read_xattrs_fd(fd, x, en);
	content_settle(fd, en);
	en->flags &= ~(uint32_t)(TREE_UNHASHED | TREE_UNSAVED);
	return 0;
}

static bool is_news(const struct saving *v, const struct tree_entry *en)
{
	const struct tree_entry *old = v->before ? tree_find(v->before, en->path) : NULL;

	return old == NULL || (old->flags & TREE_UNHASHED) ||
	       memcmp(old->hash, en->hash, sizeof(en->hash)) != 0;
}

static int save_new(struct saving *v, int root_fd, struct tree_index *x, struct err *e)
{
	struct tree_saved *sum = v->sum;

	sha256_expect_much();
	for (size_t i = 0; i < x->n; i++) {
		struct tree_entry *en = &x->v[i];
		uint64_t added = 0;
		int r;

		sum->files += !S_ISDIR(en->mode);
		sum->left_out += (en->flags & TREE_OPAQUE) != 0;
		if (!S_ISREG(en->mode) || !(en->flags & TREE_UNHASHED))
			continue;
		if (en->link_of != TREE_NONE) {
			content_follow(x, en);
			continue;
		}
		r = save_one(v, root_fd, x, en, &added, e);
		if (r < 0)
			return r;
		sum->unsaved += (en->flags & TREE_UNSAVED) != 0;
		sum->new_files += !(en->flags & TREE_UNSAVED) && is_news(v, en);
		sum->new_bytes += added;
		if (++v->read % 256 == 0 && v->o->progress.fn)
			v->o->progress.fn(v->o->progress.arg, sum->files, sum->new_bytes);
	}
	return 0;
}

static bool is_same(const struct tree_index *a, const struct tree_index *b)
{
	struct changes c;
	bool is;

	tree_compare(a, b, false, &c);
	is = c.n == 0;
	changes_done(&c);
	return is;
}

/* The newest checkpoint stays, and learns what was found out about its files: the next look need not read them again. */
static int refresh(struct store *s, struct tree_index *before, const struct tree_index *x,
		   struct err *e)
{
	bool is_better = false;

	for (size_t i = 0, k = 0; i < before->n && k < x->n; k++) {
		const struct tree_entry *en = &x->v[k];
		struct tree_entry *old;

		while (i < before->n && path_cmp(before->v[i].path, en->path) < 0)
			i++;
		old = i < before->n ? &before->v[i] : NULL;
		if (old == NULL || !str_eq(old->path, en->path) || !S_ISREG(en->mode) ||
		    (old->flags | en->flags) & (TREE_UNHASHED | TREE_UNSETTLED) ||
		    !(en->flags & TREE_STEADY) || old->flags & TREE_STEADY)
			continue;
		old->dev = en->dev;
		old->ino = en->ino;
		old->mtime = en->mtime;
		old->ctime = en->ctime;
		old->flags |= TREE_STEADY;
		is_better = true;
	}
	return is_better ? store_resave(s, before, e) : 0;
}

static int make(struct store *s, const struct tree_note *note, const struct tree_options *o,
		struct tree_saved *ret, struct tree_index *x, struct err *e)
{
	_cleanup_(tree_index_done) struct tree_index before = { 0 };
	struct saving v = { .s = s, .o = o, .sum = ret, .b = CONTENT_BOUNDS };
	bool is_alone = note->is_alone && note->is_alone(note->arg), has_before;
	int r = newest(s, &before, &has_before, e);

	if (o->max_file == 0) /* somebody asked for all of it, and waits */
		v.b.slack = 64 * GIB;
	v.before = has_before ? &before : NULL;
	if (r == 0)
		r = tree_look(note->root_fd, v.before, o, x, e);
	if (r == 0)
		r = has_before && x->steady_dev == 0 ? pack_load_all(s, e) : 0; /* much is known */
	if (r == 0)
		r = save_new(&v, note->root_fd, x, e);
	if (r < 0)
		return r;
	ret->is_ignore_cut = x->is_ignore_cut;
	ret->is_same = has_before && is_same(&before, x);
	is_alone = is_alone && note->is_alone(note->arg);
	/* One that proves less than this one would is no reason to make none. */
	if (ret->is_same && note->may_skip && before.kind != TREE_INSIDE &&
	    (before.is_alone || !is_alone)) {
		x->id = ret->id = before.id;
		return v.read > 0 && x->steady_dev ? refresh(s, &before, x, e) : 0;
	}
	x->kind = note->kind;
	x->is_alone = is_alone && note->kind != TREE_INSIDE;
	x->since = note->since;
	x->message = mem_str(note->message);
	x->root = mem_str(note->root);
	r = store_commit(s, x, e);
	ret->id = x->id;
	return r;
}

int tree_checkpoint(struct store *s, const struct tree_note *note, const struct tree_options *o,
		    struct tree_saved *ret, struct tree_index *ret_index, struct err *e)
{
	_cleanup_(tree_index_done) struct tree_index x = { 0 };
	int r;

	*ret = (struct tree_saved){ 0 };
	r = make(s, note, o, ret, &x, e);
	if (r < 0 || s->out >= 0)
		packs_done(
			s); /* with what was put and never committed: it failed, or was skipped */
	if (r < 0)
		return r;
	if (ret_index) {
		*ret_index = x;
		x = (struct tree_index){ 0 };
	}
	return 0;
}
