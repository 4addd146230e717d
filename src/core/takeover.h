/* SPDX-License-Identifier: Apache-2.0 */
/* core/takeover.h - files that are about to reach the host's workspace: the facts that view/outcome decides by
 *
 * The tree that would be there afterwards is what the host has, but for the names that come from a layer or from a
 * checkpoint. Contents are those of the hashes in the index: what is judged is what is written.
 */
#ifndef VITRINE_CORE_TAKEOVER_H
#define VITRINE_CORE_TAKEOVER_H

#include "tree/overlay.h"
#include "view/outcome.h"

struct takeover {
	struct outcome_host host;
	struct outcome_tree outcome;
	int ws_fd;         /* borrowed, as all below */
	char *const *only; /* paths that are taken; NULL: all */
	const struct overlay_diff *d;
	const struct tree_index *now; /* without d: what the host has */
	const struct tree_index *
		target; /* without d: a checkpoint, complete but for directories that were left out */
	struct store *store;
};

/* `t` must not move afterwards. */
int takeover_begin(struct takeover *t, const struct policy *p, struct err *e);
void takeover_done(struct takeover *t);

/* Why this change must not reach the host unless its very path was named; NULL: it may. To be freed. */
char *takeover_why(struct takeover *t, const char *path);

#endif
