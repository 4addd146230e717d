/* SPDX-License-Identifier: Apache-2.0 */
/* tree/checkpoint.c - look, save what is new, write it down */
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

static bool is_over_cap(const struct tree_entry *en, const struct tree_options *o,
			const struct tree_saved *sum)
{
	return (o->max_file && en->alloc > o->max_file) ||
	       (o->max_new && sum->new_bytes + en->alloc > o->max_new);
}

static int save_one(struct store *s, int root_fd, struct tree_index *x, struct tree_entry *en,
		    uint64_t *ret_new, struct err *e)
{
	_close_ int fd = content_open(root_fd, en);
	int r;

	/* Whoever holds it may let go of it: a checkpoint without it would be called whole. */
	if (fd == -EAGAIN)
		return err_set(e, ERR_CONFLICT, EAGAIN,
			       "'%.300s' is held by a process with a file lease; end that process, "
			       "or run the command again",
			       en->path);
	if (fd < 0) { /* unreadable, or gone: known by its stat alone */
		en->flags |= TREE_UNSAVED;
		return 0;
	}
	for (int i = 0; i < 3; i++) {
		struct stat st;

		r = store_put(s, fd, en, ret_new, e);
		if (r != -ESTALE)
			break;
		if (fstat(fd, &st) == 0)
			tree_from_stat(en, &st); /* it was cut while we read: again */
	}
	if (r == -ESTALE) {
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

static int save_new(struct store *s, int root_fd, struct tree_index *x,
		    const struct tree_options *o, struct tree_saved *sum, struct err *e)
{
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
		if (is_over_cap(en, o, sum)) {
			en->flags |= TREE_UNSAVED;
			sum->unsaved++;
			continue;
		}
		r = save_one(s, root_fd, x, en, &added, e);
		if (r < 0)
			return r;
		sum->unsaved += (en->flags & TREE_UNSAVED) != 0;
		sum->new_files++;
		sum->new_bytes += added;
		if (sum->new_files % 256 == 0 && o->progress.fn)
			o->progress.fn(o->progress.arg, sum->files, sum->new_bytes);
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

static int make(struct store *s, const struct tree_note *note, const struct tree_options *o,
		struct tree_saved *ret, struct tree_index *x, struct err *e)
{
	_cleanup_(tree_index_done) struct tree_index before = { 0 };
	bool has_before;
	int r = newest(s, &before, &has_before, e);

	if (r == 0)
		r = tree_look(note->root_fd, has_before ? &before : NULL, o, x, e);
	if (r == 0)
		r = save_new(s, note->root_fd, x, o, ret, e);
	if (r < 0)
		return r;
	ret->is_same = has_before && is_same(&before, x);
	if (ret->is_same && note->may_skip) {
		x->id = ret->id = before.id;
		return 0;
	}
	x->kind = note->kind;
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
	if (r < 0) {
		packs_done(s); /* with what was put and never committed */
		return r;
	}
	pack_abort(s); /* nothing is left of it unless the checkpoint was skipped */
	if (ret_index) {
		*ret_index = x;
		x = (struct tree_index){ 0 };
	}
	return 0;
}
