/* SPDX-License-Identifier: Apache-2.0 */
/* engine/mapped.h - a place for the tool of a sandbox that root starts, where nothing is root's */
#ifndef VITRINE_ENGINE_MAPPED_H
#define VITRINE_ENGINE_MAPPED_H

#include "engine/native/native.h"
#include "plan/plan.h"

/* In the tool's own mount namespace: a directory that every host has. Mount i of the plan lies there as "i". */
#define MAPPED_PLACE "/tmp"
#define MAPPED_SKEL MAPPED_PLACE "/skel"
#define MAPPED_DIR MAPPED_PLACE "/dir"
#define MAPPED_OWN MAPPED_PLACE "/own" /* in memory, for what a tool keeps for itself */

/* Trees that hang nowhere yet. */
struct mapped {
	int *trees; /* per mount; NULL: the caller is not root */
	size_t n;
	int skel, dir;
	bool wants_ids;
};

#define MAPPED_NONE ((struct mapped){ .skel = FD_NONE, .dir = FD_NONE })

/* What a tool of root's needs besides the plan. */
struct mapped_in {
	const struct plan *plan;
	const char *skel, *dir; /* the skeleton, and the tool's own directory */
	bool has_own_skel;      /* the skeleton is to belong to the sandbox's outer id as well */
	bool wants_ids; /* the tool is to be root of a range of ids that are nobody's, in a namespace of its own */
};

/* In the keeper: trees of all that the tool will need of the host, as the sandbox's outer id may see it. `n` holds the
 * mapped ids meanwhile. */
int mapped_open(const struct mapped_in *in, struct native *n, struct mapped *ret, struct err *e);
void mapped_done(struct mapped *m);

/* In the child that becomes the tool: a mount namespace with all of it in its place. 0 or -errno, of *where. */
int mapped_place(const struct mapped *m, const struct plan *p, const char **where);
/* And the ids, for good. Whoever waits for our end by our parent's goes on doing so. 0 or -errno. */
int mapped_become(const struct mapped *m, const struct ids *ids);
/* Where the tool has several ids, whoever of them mounts cannot make anything in the trees: what it will mount on is made by
 * the one that can. After mapped_become(). */
int mapped_points(const struct mapped *m, const struct plan *p, const char **where);

#endif
