/* SPDX-License-Identifier: Apache-2.0 */
/* core/layers.h - the private layers of a sandbox: what it wrote, frozen, shared, put back
 *
 * A layer is a directory `layers/ID/` below the state directory: fs/ holds what was written, work/ is the kernel's.
 * The layer on top of a stack is written while the sandbox runs; a frozen one never changes again, so checkpoints and
 * forks share it. `sandboxes/NAME/layers.json` says which layers make up the workspace (in review and clone mode), the home and, above a template, /usr,
 * and which did at each checkpoint. Every operation is one replacement of that file: freezing 10,000 files costs what
 * freezing one does, and a crash leaves the old state or the new one, and at most a directory that nobody names.
 */
#ifndef VITRINE_CORE_LAYERS_H
#define VITRINE_CORE_LAYERS_H

#include "base/buf.h"
#include "base/err.h"
#include "sys/subids.h"
#include "tree/overlay.h"

#define LAYER_ID_BYTES 17 /* 16 hex digits and a NUL */
#define LAYERS_BELOW_BYTES 40
#define LAYERS_MERGE_AT 24
#define LAYERS_POINTS_MAX 512
#define LAYERS_AUTO_KEPT 20

struct stack {
	char (*v)[LAYER_ID_BYTES]; /* top first; in a head v[0] is the one that is written */
	size_t n;
};

struct point {
	uint64_t id, created, since; /* seconds since 1970 */
	enum tree_kind kind;
	char *message;
	struct stack ws, home, sys; /* all frozen */
	char below[LAYERS_BELOW_BYTES];
	uint64_t
		tree; /* the checkpoint of the workspace, written in place, that it belongs to; 0: none */
};

struct layers {
	char *state_dir, *name;
	struct stack ws, home; /* n == 0: none */
	struct stack sys;      /* what was written in the /usr of a template */
	char below
		[LAYERS_BELOW_BYTES]; /* which template that was, see template_mark(); "": not known */
	struct point *points;
	size_t n_points;
	uint64_t tree; /* points that are made now belong to this one; not in the file */
	char moving[LAYER_ID_BYTES]; /* the plain home is on its way to be this layer's fs */
};

/* What the file says, nothing where there is none. What a crash left half done is finished. */
int layers_read(const char *state_dir, const char *name, struct layers *ret, struct err *e);
bool layers_exist(const char *state_dir, const char *name);
int layers_write(const struct layers *l, struct err *e);
void layers_done(struct layers *l);

/* A workspace without layers gets its first: in memory, then on disk with the workspace's own mode. -EBUSY when
 * somebody else was faster. */
int layers_first(struct layers *l, struct err *e);
/* The same for what is written above a template, which is `below`. Written above one it means nothing above another: where
 * there is something already, -ESTALE. */
int layers_first_sys(struct layers *l, const char *below, struct err *e);
int layers_put_sys(struct layers *l, struct err *e);
int layers_put_first(struct layers *l, int ws_fd, struct err *e);
/* The same with a tree that is ready, at `full`: it is moved. */
int layers_put_full(struct layers *l, const char *full, struct err *e);

/* For whoever holds the sandbox's lock and is about to mount: is this still the layer on top, and clean for it?
 * `top` is its directory. Root gives it to `owner`, where its files have ids of their own; LAYERS_NO_OWNER: it is not so. */
#define LAYERS_NO_OWNER ((uid_t)-1)
int layers_claim(const char *state_dir, const char *name, const char *top, uid_t owner,
		 struct err *e);

/* The path of a part of a layer; "": of the layer itself. */
char *layers_path_of(const struct layers *l, const char *id, const char *part);
/* Paths as struct facts wants them, top first, NULL-ended. NULL when the stack is empty. */
char **layers_paths(const struct layers *l, const struct stack *s);
void layers_paths_free(char **paths);

/* Freezes what is on top. The sandbox must not run. */
int layers_checkpoint(struct layers *l, enum tree_kind kind, const char *message, uint64_t since,
		      uint64_t *ret_id, struct err *e);
/* The same while it runs, with everything inside standing still: what is on top is copied. */
int layers_checkpoint_live(struct layers *l, enum tree_kind kind, const char *message,
			   uint64_t *ret_id, struct err *e);
/* Saves the present and goes back. */
int layers_restore(struct layers *l, uint64_t id, uint64_t *ret_present, struct err *e);
const struct point *layers_point(const struct layers *l, uint64_t id);
/* The newest that belongs to this checkpoint of the workspace. */
const struct point *layers_point_of(const struct layers *l, uint64_t tree);
/* Forgets those whose checkpoint of the workspace is not one of these any more. */
int layers_keep_trees(struct layers *l, const uint64_t *trees, size_t n, struct err *e);
/* Throws away all changes of the workspace, or those below `only`; the present is saved first. */
int layers_discard(struct layers *l, int base, char *const *only, uint64_t *ret_present,
		   struct err *e);
/* Makes one layer of many, where looking through them would begin to cost. The sandbox must not run. */
int layers_merge(struct layers *l, struct err *e);
int layers_prune(struct layers *l, uint64_t keep, uint64_t *ret_removed, struct err *e);

/* The newest checkpoint that somebody may want back and that is not what is there now; 0: there is none. */
uint64_t layers_undo_target(const struct layers *l);
/* Before a start: freezes what is there, drops the oldest checkpoints of this kind, keeps the stack short. */
int layers_before_start(struct layers *l, const char *message, struct err *e);
/* The workspace as the host has it, nothing saved: for when there is nothing left to review. */
int layers_clear(struct layers *l, struct err *e);
/* A clean home and, with_ws, a clean workspace; what was there is saved. */
int layers_fresh(struct layers *l, bool with_ws, uint64_t *ret_present, struct err *e);
/* The directory that a home in layers is written in; there is one. */
char *layers_home_top(const struct layers *l);
/* The home's layers are forgotten. */
int layers_reset_home(struct layers *l, struct err *e);

/* A new sandbox's layers, with all that `from` has. Writes its file. */
int layers_fork(struct layers *from, const char *name, struct err *e);

/* A new sandbox's layers, from trees that are ready: both are moved; NULL where there is none. Writes its file. */
int layers_import(const char *state_dir, const char *name, const char *home, const char *ws,
		  struct err *e);

/* Descriptors of the layers of a stack, for comparing. */
int layers_open(const struct layers *l, const struct stack *s, int base, struct overlay *ret,
		struct err *e);
void layers_close(struct overlay *o);

/* Every layer that this sandbox names, in front or in a checkpoint, once; none where its file cannot be read. */
void layers_named(const char *state_dir, const char *name, char (**ret)[LAYER_ID_BYTES],
		  size_t *ret_n);

/* Removes layers that no sandbox names. */
int layers_collect(const char *state_dir, uint64_t *ret_removed, struct err *e);

/* What it keeps on the disk. Somebody waits for the answer: some; has time: all that will ever be counted. Nothing is counted behind so many names, or too deep: is_cut. */
#define DISK_NAMES_SOME 50000
#define DISK_NAMES_ALL 4000000
struct disk_use {
	uint64_t bytes, names;
	bool is_cut;
};
struct disk_use layers_disk(const char *state_dir, const char *name, uint64_t max_names);
/* The same, counted by the root of the ids that its files have: a root inside can close directories to everybody else. */
struct disk_use layers_disk_rooted(const char *state_dir, const char *name, uint64_t max_names,
				   const struct id_map *uids, const struct id_map *gids);
/* Is it one of those, by what it has installed? */
bool layers_is_rooted(const char *state_dir, const char *name);

#endif
