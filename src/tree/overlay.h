/* SPDX-License-Identifier: Apache-2.0 */
/* tree/overlay.h - what the layers of an overlay change in the tree below them, seen without mounting it
 *
 * Costs what changed, not what is there: only names that lie in a layer are looked at, and what a removed or replaced
 * directory held. Layers are written by whoever is inside; nothing in them is believed or followed.
 */
#ifndef VITRINE_TREE_OVERLAY_H
#define VITRINE_TREE_OVERLAY_H

#include "tree/tree.h"

#define OVERLAY_LAYERS_MAX 64

struct overlay {
	int base;                       /* the tree below; borrowed */
	int layers[OVERLAY_LAYERS_MAX]; /* top first; borrowed */
	size_t n;
};

struct overlay_diff {
	const struct overlay *o;
	struct tree_index before,
		after;  /* only names that a layer touches; hashed where it matters */
	uint8_t *layer; /* per entry of `after`: where it lies */
	struct changes changes;
};

int overlay_compare(const struct overlay *o, bool with_renames, struct overlay_diff *ret,
		    struct err *e);
/* Only the names that layers touch, nothing compared and nothing read. */
int overlay_names(const struct overlay *o, struct overlay_diff *ret, struct err *e);
void overlay_diff_done(struct overlay_diff *d);

/* Every regular file that a layer brings: what is read later can then be held against it. */
void overlay_hash_all(struct overlay_diff *d);
/* The hash of a regular file that has none yet; one that cannot be read, or is over the bounds, stays without. */
struct content_bounds;
void overlay_hash(int root, struct tree_entry *en, struct content_bounds *b);

/* Two stacks above the same tree, one that was and one that is: what differs between them (overlay_since.c). */
struct overlay_since {
	struct overlay_diff then, now;
	struct tree_index before, after; /* names that either touches, as each shows them */
	int *before_roots, *after_roots; /* per entry: where it lies */
	struct changes changes;
};
int overlay_since(const struct overlay *then, const struct overlay *now, struct overlay_since *ret,
		  struct err *e);
void overlay_since_done(struct overlay_since *s);
int overlay_since_read(const struct overlay_since *s, const struct tree_entry *en, bool is_new,
		       struct buf *out);

/* For struct show. */
int overlay_read(void *diff, const struct tree_entry *en, bool is_new, struct buf *out);
/* For struct restore_job: the content of an entry of `after`. */
int overlay_write(const struct overlay_diff *d, const struct tree_entry *en, int fd, struct err *e);

/* Makes one layer of them, in the empty directory `to` of the same file system, that shows the same above whatever lies
 * below. Files are not copied: they get one more name. What is closed to the caller is an error. */
int overlay_join(const struct overlay *o, int to, struct err *e);

/* Copies the layers, merged into one, to the empty directory `to`; without names below `except` (may be NULL). */
int overlay_flatten(const struct overlay *o, char *const *except, int to, struct err *e);

#endif
