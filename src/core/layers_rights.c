/* SPDX-License-Identifier: Apache-2.0 */
/* core/layers_rights.c - work on layers by somebody to whom nothing in them is closed
 *
 * Files of a layer belong to whoever was inside: with a root inside to many ids, and in any case directories may be closed to
 * their owner too. So what reads them as a whole is done by a child in a user namespace that has the ids of the sandbox, with
 * every right over their files and over nothing else. Root needs no such child. Who is confined can have none (the broker's
 * checkpoint, asked for inside): where all files are the caller's own, most often nothing of them is closed anyway.
 */
#include <sys/mman.h>

#include "core/account.h"
#include "core/layers_own.h"

/* Shared with the child. */
struct errand {
	layers_fn *fn;
	void *arg;
	bool is_begun;
	int r;
	struct err e;
};

static void carry_out(void *arg)
{
	struct errand *w = arg;

	w->is_begun = true;
	w->r = w->fn(w->arg, &w->e);
}

static int send_child(const struct layers *l, struct errand *w, struct err *e)
{
	struct id_map uids, gids;
	bool is_rooted = str_starts(l->below, "sudo-");
	int r = is_rooted ? account_id_maps(&uids, &gids, e) : 0;

	return r < 0 ? r
		     : subids_run(is_rooted ? &uids : NULL, is_rooted ? &gids : NULL, carry_out, w,
				  e);
}

int layers_with_rights(const struct layers *l, layers_fn *fn, layers_fn *without, void *arg,
		       struct err *e)
{
	bool is_rooted = str_starts(l->below, "sudo-"), is_begun;
	struct err ignored;
	struct errand *w;
	int r;

	if (geteuid() == 0)
		return fn(arg, e);
	w = mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (w == MAP_FAILED)
		return err_sys(e, "mmap");
	*w = (struct errand){ .fn = fn, .arg = arg, .r = -ECHILD, .e = ERR_INIT };
	r = send_child(l, w, e);
	if (r == 0 && w->r < 0) {
		*e = w->e;
		r = w->r;
	}
	is_begun = w->is_begun;
	(void)munmap(w, sizeof(*w));
	if (r == 0 || is_begun)
		return r;
	if (is_rooted && (without == NULL || without(arg, &ignored) < 0))
		return err_wrap(e, r, "what a root inside has written cannot be read from here");
	*e = ERR_INIT;
	return is_rooted ? 0 : fn(arg, e);
}
