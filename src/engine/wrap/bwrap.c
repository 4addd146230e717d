/* SPDX-License-Identifier: Apache-2.0 */
/* engine/wrap/bwrap.c - a plan as arguments of bubblewrap (0.8 or later)
 *
 * bubblewrap makes its own /dev (the same six devices, terminals and links as the plan's) and has no way to mount
 * terminals alone; so the plan's devices become one --dev. Init takes away the link that is too much, and its lock lets
 * nobody make or remove anything there.
 */
#include "base/path.h"
#include "engine/render.h"

static const char *const dev_has[] = { "/dev/null",   "/dev/zero",    "/dev/full",
				       "/dev/random", "/dev/urandom", "/dev/tty" };

static bool is_in_dev(const char *path)
{
	for (size_t i = 0; i < ARRAY_LEN(dev_has); i++)
		if (str_eq(path, dev_has[i]))
			return true;
	return false;
}

static void add_private(struct args *a, const struct plan *p, const struct mount *m)
{
	uint64_t bytes = render_bytes(p, m);

	args_add(a, "--perms");
	args_addf(a, "%04o", render_mode(m));
	if (bytes) {
		args_add(a, "--size");
		args_addf(a, "%llu", (unsigned long long)bytes);
	}
	args_put(a, "--tmpfs", m->dst, NULL);
}

static int add_mount(struct args *a, const struct render_in *in, const struct mount *m,
		     struct err *e)
{
	_free_ char *src = render_source(in, m);

	switch (m->kind) {
	case MOUNT_BIND:
	case MOUNT_HIDE:
	case MOUNT_PROTECT:
		args_put(a, m->flags & MOUNT_RO || m->kind == MOUNT_HIDE ? "--ro-bind" : "--bind",
			 src, m->dst, NULL);
		return 0;
	case MOUNT_PIN:
		args_put(a, "--bind", src, m->dst, NULL);
		return 0;
	case MOUNT_PRIVATE:
		add_private(a, in->plan, m);
		return 0;
	case MOUNT_PROC:
		args_put(a, "--proc", m->dst, NULL);
		return 0;
	case MOUNT_DEVICE:
		if (!is_in_dev(m->dst))
			args_put(a, "--dev-bind", src, m->dst, NULL);
		return 0;
	case MOUNT_PTS:
		return str_eq(m->dst, "/dev/pts")
			       ? 0
			       : err_set(e, ERR_UNSUPPORTED, ENOTSUP,
					 "engine 'bwrap' cannot honour: terminals at '%s'", m->dst);
	case MOUNT_LAYER: /* STEP_LAYERS: refused before */
	case MOUNT_OVERLAY:
	case MOUNT_PART:
	case MOUNT_SERVE: /* the native engine alone */
	case MOUNT_KIND_COUNT_:
		break;
	}
	bug_on(true);
	return 0;
}

static int add_mounts(struct args *a, const struct render_in *in, struct err *e)
{
	const struct plan *p = in->plan;
	bool has_dev = false;

	args_put(a, "--ro-bind", in->skel, "/", NULL);
	for (size_t i = 0; i < p->n_mounts; i++) {
		const struct mount *m = &p->mounts[i];
		int r;

		if (render_skips(in, i))
			continue;
		if (!has_dev && path_is_beneath(m->dst, "/dev")) {
			args_put(a, "--dev", "/dev", NULL);
			has_dev = true;
		}
		r = add_mount(a, in, m, e);
		if (r < 0)
			return r;
	}
	return 0;
}

int render_bwrap(const struct render_in *in, struct rendering *out, struct err *e)
{
	const struct plan *p = in->plan;
	struct args *a = &out->args;
	int r;

	args_put(a, in->tool, "--unshare-all", "--unshare-user", "--uid", NULL);
	args_addf(a, "%u", p->ids.uid_in);
	args_add(a, "--gid");
	args_addf(a, "%u", p->ids.gid_in);
	args_put(a, "--hostname", p->hostname, "--die-with-parent", "--new-session", "--as-pid-1",
		 "--cap-drop", "ALL", NULL);
	/* For init, to set what is counted for each user and then to drop these with all others for good. */
	args_put(a, "--cap-add", "CAP_SYS_RESOURCE", "--cap-add", "CAP_SETPCAP", "--disable-userns",
		 "--clearenv", NULL);
	r = add_mounts(a, in, e);
	if (r < 0)
		return r;
	args_put(a, "--chdir", "/", "--", INIT_INSIDE, NULL);
	return 0;
}
