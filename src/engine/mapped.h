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
#define MAPPED_COVER MAPPED_PLACE "/cover" /* of a hidden directory, see render_source() */
#define MAPPED_OWN MAPPED_PLACE "/own"     /* in memory, for what a tool keeps for itself */
/* Of a machine: */
#define MAPPED_KERNEL MAPPED_PLACE "/kernel"
#define MAPPED_KEPT MAPPED_PLACE "/kept"
#define MAPPED_FILES MAPPED_PLACE "/files"
#define MAPPED_ALSO_MAX 6

/* Trees that hang nowhere yet. */
struct mapped {
	int *trees; /* per mount; NULL: the caller is not root */
	size_t n;
	struct mapped_also { /* what the tool needs besides what the plan shows */
		const char *at;
		int tree;
	} also[MAPPED_ALSO_MAX];
	size_t n_also;
	int idmap;          /* while it is made: of struct native */
	const char *device; /* that the tool needs, and root has; NULL: none */
	bool wants_ids; /* the tool is to be root of a range of ids that are nobody's, in a namespace of its own */
};

#define MAPPED_NONE ((struct mapped){ .idmap = FD_NONE })

/* In the keeper: trees of all that the plan shows of the host, as the sandbox's outer id may see them. `idmap` is
 * native_idmap()'s, and is borrowed. */
int mapped_open(const struct plan *p, int idmap, struct mapped *ret, struct err *e);
/* And of something else, which will lie at `at`; `is_own`: it is to belong to that id. */
int mapped_add(struct mapped *m, const char *src, const char *at, bool is_own, struct err *e);
void mapped_done(struct mapped *m);

/* In the child that becomes the tool: a mount namespace with all of it in its place. 0 or -errno, of *where. */
int mapped_place(const struct mapped *m, const struct plan *p, const char **where);
/* And the ids, for good. Whoever waits for our end by our parent's goes on doing so. 0 or -errno. */
int mapped_become(const struct mapped *m, const struct ids *ids);
/* Where the tool has several ids, whoever of them mounts cannot make anything in the trees: what it will mount on is made by
 * the one that can. After mapped_become(). */
int mapped_points(const struct mapped *m, const struct plan *p, const char **where);

#endif
