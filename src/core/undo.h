/* SPDX-License-Identifier: Apache-2.0 */
/* core/undo.h - checkpoints of a workspace: make, list, compare, go back
 *
 * Checkpoints belong to a directory, not to a sandbox: several sandboxes may work in one. They lie in
 * `trees/KEY/` below the state directory.
 */
#ifndef VITRINE_CORE_UNDO_H
#define VITRINE_CORE_UNDO_H

#include "policy/policy.h"
#include "tree/show.h"

struct undo {
	struct store *store;
	char *root; /* real path */
	char *state_dir;
	int fd; /* borrowed */
	const struct policy
		*policy; /* what may come back unasked; borrowed, to be set before anything does */
};

/* What a checkpoint saves at most, unless asked for all. */
#define UNDO_FILE_MAX GIB
#define UNDO_NEW_MAX (8 * GIB)
#define UNDO_AUTO_KEPT 20

int undo_open(struct undo *u, const char *state_dir, const char *root, int root_fd, bool may_wait,
	      struct err *e);
void undo_close(struct undo *u);

struct undo_wish {
	bool is_forced; /* overwrite edits made on the host since the sandbox ended */
	bool is_gentle; /* leave those, restore the rest */
	char *const *only;
	uint64_t
		newest; /* without an id: a checkpoint that differs in something else than files; 0: none */
	void (*say)(void *arg, const char *path, const char *why); /* conflicts, one by one */
	void *arg;
};

struct undone {
	struct restored sum;
	uint64_t target, present;
	uint64_t skipped; /* without an id: the newest checkpoint that is as the present; 0: none */
	uint64_t host_edits; /* with neither wish: how many stand in the way; nothing was done */
	uint64_t refused;    /* what programs on the host run, and the inside may have written */
};

/* `id` 0: the newest of the host's own checkpoints that differs from the present. Of a checkpoint that was saved while a
 * sandbox ran, what view/outcome objects to stays away unless its very path is among `only`. */
int undo_restore(struct undo *u, uint64_t id, const struct tree_options *o,
		 const struct undo_wish *w, struct undone *ret, struct err *e);

/* Was a restore cut off? Carries it to its end. 1: it was. */
int undo_resume(struct undo *u, struct undone *ret, struct err *e);

/* Before a sandbox starts: bounded, skipped when nothing changed, oldest ones of its kind dropped. */
bool undo_is_alone(void *undo); /* for struct tree_note */
int undo_before_start(struct undo *u, enum tree_kind kind, const char *message,
		      struct tree_progress progress, struct tree_saved *ret, struct err *e);
/* When it ended: what it left, so that later edits can be told from its own. Looked at before anybody hears of the end,
 * written down after; whoever comes between the two waits for the store. */
int undo_look(struct undo *u, struct tree_index *ret, struct err *e);
int undo_seal(struct undo *u, struct tree_index *x, struct err *e);

/* Keeps the newest `keep` of the host's own, and as many of those that the inside asked for; frees what the others alone needed. */
int undo_prune(struct undo *u, uint64_t keep, uint64_t *ret_removed, uint64_t *ret_freed,
	       struct err *e);

/* Differences between checkpoint `since` (0: the newest that was not made by a restore) and the present. */
struct undo_diff {
	struct tree_index before, now;
	struct changes changes;
	const struct undo *u;
};

int undo_compare(struct undo *u, uint64_t since, const struct tree_options *o,
		 struct undo_diff *ret, struct err *e);
void undo_diff_done(struct undo_diff *d);
/* For struct show. */
int undo_read(void *diff, const struct tree_entry *en, bool is_new, struct buf *out);

#endif
