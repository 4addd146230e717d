/* SPDX-License-Identifier: Apache-2.0 */
/* engine/wrap/firejail.c - a plan as arguments of firejail
 *
 * firejail carves a view out of the host's root: it takes away what it is told to, and an ordinary user cannot have it
 * build a root from nothing. So its table claims no explicit mounts, and a plan that asks for them (every plan does)
 * is refused by name. The words are rendered all the same, for `explain` and for those who know what they want.
 */
#include "base/path.h"
#include "engine/render.h"

static void add_mount(struct args *a, const struct mount *m)
{
	switch (m->kind) {
	case MOUNT_BIND:
		if (str_eq(m->dst, INIT_INSIDE))
			return;
		args_addf(a, "--whitelist=%s", m->dst);
		if (m->flags & MOUNT_RO)
			args_addf(a, "--read-only=%s", m->dst);
		return;
	case MOUNT_PROTECT:
		args_addf(a, "--read-only=%s", m->dst);
		return;
	case MOUNT_HIDE:
		args_addf(a, "--blacklist=%s", m->dst);
		return;
	case MOUNT_PRIVATE:
		args_addf(a, "--tmpfs=%s", m->dst);
		return;
	case MOUNT_PIN: /* --private-dev and its own /proc do the rest */
	case MOUNT_PROC:
	case MOUNT_PTS:
	case MOUNT_DEVICE:
	case MOUNT_LAYER: /* STEP_LAYERS: refused before */
	case MOUNT_OVERLAY:
	case MOUNT_PART:
	case MOUNT_SERVE: /* the native engine alone */
	case MOUNT_KIND_COUNT_:
		return;
	}
}

int render_firejail(const struct render_in *in, struct rendering *out, struct err *e)
{
	const struct plan *p = in->plan;
	struct args *a = &out->args;

	args_put(a, in->tool, "--quiet", "--noprofile", "--net=none", "--private-dev",
		 "--private-tmp", "--caps.drop=all", "--nonewprivs", "--noroot", "--ipc-namespace",
		 "--nodbus", "--nosound", "--no3d", "--novideo", "--shell=none", NULL);
	args_addf(a, "--hostname=%s", p->hostname);
	for (size_t i = 0; i < p->n_mounts; i++)
		if (!render_skips(in, i))
			add_mount(a, &p->mounts[i]);
	for (size_t i = 0; i < p->n_mounts; i++)
		if (str_eq(p->mounts[i].dst, INIT_INSIDE))
			args_put(a, "--", p->mounts[i].src, NULL);
	return 0;
}
