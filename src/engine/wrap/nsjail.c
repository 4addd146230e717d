/* SPDX-License-Identifier: Apache-2.0 */
/* engine/wrap/nsjail.c - a plan as arguments of nsjail
 *
 * nsjail sets tight limits of its own unless told otherwise; all of them are lifted here, because the plan's are set
 * by our init. Its own /proc is what the plan asks for.
 */
#include "engine/render.h"

static int add_pair(struct args *a, const char *flag, const char *src, const char *dst,
		    struct err *e)
{
	/* "SRC:DST" with no way to quote. */
	if (strchr(src, ':') || strchr(dst, ':'))
		return err_set(e, ERR_UNSUPPORTED, EINVAL,
			       "engine 'nsjail' cannot honour: mounts with ':' in their path "
			       "('%s')",
			       dst);
	args_add(a, flag);
	args_addf(a, "%s:%s", src, dst);
	return 0;
}

static void add_private(struct args *a, const struct plan *p, const struct mount *m)
{
	uint64_t bytes = render_bytes(p, m);
	_cleanup_(buf_done) struct buf b = BUF(8 * KIB);

	buf_printf(&b, "none:%s:tmpfs:mode=%04o", m->dst, render_mode(m));
	if (bytes)
		buf_printf(&b, ",size=%llu,nr_inodes=%llu", (unsigned long long)bytes,
			   (unsigned long long)render_files(p, m));
	args_put(a, "--mount", buf_cstr(&b), NULL);
}

static int add_mount(struct args *a, const struct render_in *in, const struct mount *m,
		     struct err *e)
{
	_free_ char *src = render_source(in, m);

	switch (m->kind) {
	case MOUNT_BIND:
	case MOUNT_PROTECT:
		return add_pair(a, m->flags & MOUNT_RO ? "--bindmount_ro" : "--bindmount", src,
				m->dst, e);
	case MOUNT_HIDE:
		return add_pair(a, "--bindmount_ro", src, m->dst, e);
	case MOUNT_PIN:
	case MOUNT_DEVICE:
		return add_pair(a, "--bindmount", src, m->dst, e);
	case MOUNT_PRIVATE:
		add_private(a, in->plan, m);
		return 0;
	case MOUNT_PTS:
		args_addf(a, "--mount=none:%s:devpts:newinstance,ptmxmode=0666,mode=0620,max=256",
			  m->dst);
		return 0;
	case MOUNT_PROC:
		args_addf(a, "--proc_path=%s", m->dst);
		args_add(a, "--proc_rw");
		return 0;
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

int render_nsjail(const struct render_in *in, struct rendering *out, struct err *e)
{
	const struct plan *p = in->plan;
	struct args *a = &out->args;
	int r = 0;

	args_put(a, in->tool, "--mode=o", "--really_quiet", "--time_limit=0", "--chroot", in->skel,
		 NULL);
	args_addf(a, "--user=%u:%u:1", p->ids.uid_in, p->ids.uid_out);
	args_addf(a, "--group=%u:%u:1", p->ids.gid_in, p->ids.gid_out);
	args_addf(a, "--hostname=%s", p->hostname);
	args_put(a, "--cwd=/", "--disable_rlimits", "--skip_setsid", NULL);
	for (size_t i = 0; r == 0 && i < p->n_mounts; i++)
		if (!render_skips(in, i))
			r = add_mount(a, in, &p->mounts[i], e);
	if (r == 0)
		args_put(a, "--", INIT_INSIDE, NULL);
	return r;
}
