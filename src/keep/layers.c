/* SPDX-License-Identifier: Apache-2.0 */
/* keep/layers.c - the layers of a sandbox, from the one who holds its lock */
#include "core/layers.h"

#include "core/undo.h"
#include "keep/keeper.h"

int keeper_claim_layers(const struct keeper *k, struct err *e)
{
	const struct plan *p = k->in->plan;
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->n_mounts; i++)
		if (p->mounts[i].kind == MOUNT_LAYER && !(p->mounts[i].flags & MOUNT_RO))
			r = layers_claim(p->state_dir, p->name, p->mounts[i].src, e);
	return r;
}

/* Nothing inside lives any more: what is there now is what the sandbox left, and what differs later is the host's. A
 * seal that cannot be made costs only that distinction, and the host's edits are then treated like the sandbox's. */
void keeper_seal(struct keeper *k)
{
	const struct plan *p = k->in->plan;
	struct err e = ERR_INIT;
	struct undo u;

	if (!p->is_named || plan_is_review(p) || k->in->is_rm)
		return;
	if (undo_open(&u, p->state_dir, p->workspace, k->in->ws_fd, true, &e) < 0 ||
	    undo_seal(&u, &e) < 0) {
		_free_ char *note = mem_fmt("what the sandbox left could not be recorded for "
					    "'vitrine "
					    "undo': %.300s",
					    e.msg);

		keeper_note(k, note);
	}
	undo_close(&u);
}
