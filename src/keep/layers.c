/* SPDX-License-Identifier: Apache-2.0 */
/* keep/layers.c - the layers of a sandbox, from the one who holds its lock */
#include "core/layers.h"

#include "core/undo.h"
#include "core/workshop.h"
#include "keep/keeper.h"

int keeper_claim_layers(const struct keeper *k, struct err *e)
{
	const struct plan *p = k->in->plan;
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->n_mounts; i++) {
		const struct mount *m = &p->mounts[i];
		bool is_roots = p->ids.is_root && !(m->flags & MOUNT_IDMAP);

		if (m->kind == MOUNT_LAYER && !(m->flags & MOUNT_RO))
			r = layers_claim(p->state_dir, p->name, m->src,
					 is_roots ? p->ids.uids.v[0].out : LAYERS_NO_OWNER, e);
	}
	return r;
}

/* ---- what it left ---- */

/* Where what is written in the workspace lies: there, or in the layer that is written. */
static const char *written_at(const struct plan *p, char **ret_owned)
{
	for (size_t i = 0; i < p->n_mounts; i++) {
		const struct mount *m = &p->mounts[i];

		if (m->kind == MOUNT_LAYER && !(m->flags & MOUNT_RO) &&
		    str_eq(m->dst, p->workspace))
			return *ret_owned = mem_fmt("%s/fs", m->src);
	}
	return p->workspace;
}

/* Root's own ids are not on disk there: see MOUNT_IDMAP. What waits for review can be looked at by its reviewer then. */
void keeper_give_back(struct keeper *k)
{
	const struct plan *p = k->in->plan;
	_free_ char *layer = NULL;
	struct err e = ERR_INIT;
	_free_ char *note = NULL;

	if (p->ids.root != ROOT_SETUID || p->ids.is_root ||
	    workshop_give_back(p->state_dir, written_at(p, &layer), &e) == 0)
		return;
	note = mem_fmt("what root made in the workspace is not yours yet: %.300s", e.msg);
	keeper_note(k, note);
}

struct left {
	struct undo undo;
	struct tree_index index;
};

static void complain(struct keeper *k, const struct err *e)
{
	_free_ char *text = mem_fmt("what the sandbox left could not be recorded for 'vitrine "
				    "undo': %.300s",
				    e->msg);
	const struct event_field f = EVENT_STR(MESSAGE, text);

	keeper_note(k, text); /* whoever is still there */
	if (k->journal)
		journal_event(k->journal, EVENT_NO_SESSION, EV_NOTE, &f, 1);
}

/* Nothing inside lives any more: what is there now is what the sandbox left, and what differs later is the host's. A
 * seal that cannot be made costs only that distinction, and the host's edits are then treated like the sandbox's. */
void keeper_look(struct keeper *k)
{
	const struct plan *p = k->in->plan;
	struct left *l = mem_new(1, sizeof(*l));
	struct err e = ERR_INIT;

	if (!p->is_named || plan_is_review(p) || k->in->is_rm) {
		free(l);
		return;
	}
	k->left = l;
	if (undo_open(&l->undo, p->state_dir, p->workspace, k->in->ws_fd, true, &e) == 0 &&
	    undo_look(&l->undo, &l->index, &e) == 0)
		return;
	complain(k, &e);
	undo_close(&l->undo);
	tree_index_done(&l->index);
	k->left = NULL;
	free(l);
}

/* Writing it down takes as long as starting a process does: nobody waits for it. */
void keeper_seal(struct keeper *k)
{
	struct left *l = k->left;
	struct err e = ERR_INIT;

	if (l == NULL)
		return;
	if (undo_seal(&l->undo, &l->index, &e) < 0)
		complain(k, &e);
	undo_close(&l->undo);
	tree_index_done(&l->index);
	free(l);
	k->left = NULL;
}
