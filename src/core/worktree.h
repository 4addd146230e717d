/* SPDX-License-Identifier: Apache-2.0 */
/* core/worktree.h - a linked worktree: git works in a workspace whose repository lies elsewhere
 *
 * The .git file of the workspace is data that anybody may have written, and names a directory. The repository is opened
 * only when that directory points back to this very workspace, all of it belongs to the user, and no sandbox with a name
 * may write there.
 *
 * Inside, the repository's directory is one of our own (`worktrees/NAME/git` in the state directory) with copies of its
 * refs. The host's objects (their info and packs read-only), its hooks, info and config (read-only) and this worktree's own
 * directory are mounted into it. So whatever is done to refs inside is done to copies. When the sandbox ends,
 * worktree_carry() takes over this worktree's branch, its reflog and the stash, when the host has not changed them.
 */
#ifndef VITRINE_CORE_WORKTREE_H
#define VITRINE_CORE_WORKTREE_H

#include "base/buf.h"
#include "base/err.h"

struct worktree {
	char *common; /* the repository's git dir */
	char *own;    /* COMMON/worktrees/X */
	char *branch; /* "refs/heads/x"; NULL: HEAD is detached */
};

void worktree_done(struct worktree *w);

/* 1: *ret is filled; 0: the workspace is no linked worktree, or *ret_why (to be freed) says why it is not opened. */
int worktree_find(const char *workspace, const char *state_dir, struct worktree *ret,
		  char **ret_why);

/* Makes the place for a start. What an earlier run left there is carried out first. */
int worktree_prepare(const struct worktree *w, const char *place, struct err *e);

/* Nothing of the sandbox runs. Adds what could not be taken over to `notes`, one line each. Removes the place. */
void worktree_carry(const char *place, struct buf *notes);

/* "refs/heads/a/b": a name that git would accept and that leads nowhere else. */
bool worktree_is_branch(const char *ref);

#endif
