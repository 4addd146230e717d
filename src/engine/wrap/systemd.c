/* SPDX-License-Identifier: Apache-2.0 */
/* engine/wrap/systemd.c - a plan as properties of a transient service, for the user's manager or the system's
 *
 * The service's root directory is the skeleton; mounts are bound in the plan's order. A pid namespace of its own came
 * with systemd 257 (PrivatePIDs), which is the least this needs. The service's input and output are ours (--pipe).
 */
#include "base/path.h"
#include "engine/render.h"

/* A path in a property: ':' separates, blanks and quotes end words, '%' begins a specifier. */
static int put_path(struct buf *b, const char *path, struct err *e)
{
	for (const char *p = path; *p; p++) {
		if (*p == '\n' || *p == '"' || *p == '\\')
			return err_set(e, ERR_UNSUPPORTED, EINVAL,
				       "engine 'systemd' cannot honour: mounts with such a path "
				       "('%s')",
				       path);
		if (*p == ':')
			buf_puts(b, "\\:");
		else if (*p == '%')
			buf_puts(b, "%%");
		else
			buf_putc(b, *p);
	}
	return 0;
}

static int add_bind(struct args *a, const char *property, const char *src, const char *dst,
		    struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(16 * KIB);
	bool has_blank = strchr(src, ' ') || strchr(dst, ' ');
	int r;

	buf_printf(&b, "--property=%s=%s", property, has_blank ? "\"" : "");
	r = put_path(&b, src, e);
	buf_putc(&b, ':');
	if (r == 0)
		r = put_path(&b, dst, e);
	buf_puts(&b, has_blank ? "\"" : "");
	if (r == 0)
		args_add(a, buf_cstr(&b));
	return r;
}

static int add_private(struct args *a, const struct plan *p, const struct mount *m, struct err *e)
{
	uint64_t bytes = render_bytes(p, m);
	_cleanup_(buf_done) struct buf b = BUF(16 * KIB);
	int r;

	buf_puts(&b, "--property=TemporaryFileSystem=");
	r = put_path(&b, m->dst, e);
	buf_printf(&b, ":mode=%04o,nosuid,nodev,uid=%u,gid=%u", render_mode(m), p->ids.uid_out,
		   p->ids.gid_out);
	if (bytes)
		buf_printf(&b, ",size=%llu,nr_inodes=%llu", (unsigned long long)bytes,
			   (unsigned long long)render_files(p, m));
	if (r == 0)
		args_add(a, buf_cstr(&b));
	return r;
}

static int add_mount(struct args *a, const struct render_in *in, const struct mount *m,
		     struct err *e)
{
	_free_ char *src = render_source(in, m);

	switch (m->kind) {
	case MOUNT_BIND:
	case MOUNT_PROTECT:
		return add_bind(a, m->flags & MOUNT_RO ? "BindReadOnlyPaths" : "BindPaths", src,
				m->dst, e);
	case MOUNT_HIDE:
		if (path_is_beneath(m->dst, "/proc")) {
			args_addf(a, "--property=InaccessiblePaths=%s", m->dst);
			return 0;
		}
		return add_bind(a, "BindReadOnlyPaths", src, m->dst, e);
	case MOUNT_PIN:
		return add_bind(a, "BindPaths", src, m->dst, e);
	case MOUNT_PRIVATE:
		return add_private(a, in->plan, m, e);
	case MOUNT_PROC: /* MountAPIVFS and PrivateDevices make them */
	case MOUNT_PTS:
	case MOUNT_DEVICE:
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

static void add_limits(struct args *a, const struct plan *p)
{
	const struct plan_limit *l = p->limits;

	if (l[LIMIT_MEMORY].is_set) {
		args_addf(a, "--property=MemoryMax=%llu", (unsigned long long)l[LIMIT_MEMORY].max);
		args_add(a, "--property=MemorySwapMax=0");
	}
	if (l[LIMIT_PIDS].is_set)
		args_addf(a, "--property=TasksMax=%llu", (unsigned long long)l[LIMIT_PIDS].max + 1);
	if (l[LIMIT_CPUS].is_set)
		args_addf(a, "--property=CPUQuota=%llu%%",
			  (unsigned long long)l[LIMIT_CPUS].max / 10);
}

static int render(const struct render_in *in, const char *manager, struct rendering *out,
		  struct err *e)
{
	static const char *const walls[] = {
		"PrivateNetwork=yes",
		"PrivatePIDs=yes",
		"PrivateIPC=yes",
		"PrivateDevices=yes",
		"PrivateUsers=self",
		"ProtectHostname=private",
		"MountAPIVFS=yes",
		"ProtectProc=invisible",
		"NoNewPrivileges=yes",
		"CapabilityBoundingSet=",
		"RestrictNamespaces=yes",
		"KeyringMode=private",
		"LimitCORE=0",
		"KillMode=control-group",
	};
	const struct plan *p = in->plan;
	struct args *a = &out->args;
	int r = 0;

	args_put(a, in->tool, manager, "--pipe", "--wait", "--collect", "--quiet",
		 "--service-type=exec", NULL);
	args_addf(a, "--unit=%s", in->id);
	if (str_eq(manager, "--system")) {
		args_addf(a, "--uid=%u", p->ids.uid_out);
		args_addf(a, "--gid=%u", p->ids.gid_out);
	}
	args_addf(a, "--property=RootDirectory=%s", in->skel);
	for (size_t i = 0; i < ARRAY_LEN(walls); i++)
		args_addf(a, "--property=%s", walls[i]);
	add_limits(a, p);
	for (size_t i = 0; r == 0 && i < p->n_mounts; i++)
		if (!render_skips(in, i))
			r = add_mount(a, in, &p->mounts[i], e);
	if (r == 0)
		args_put(a, "--", INIT_INSIDE, NULL);
	return r;
}

int render_systemd_user(const struct render_in *in, struct rendering *out, struct err *e)
{
	return render(in, "--user", out, e);
}

int render_systemd_system(const struct render_in *in, struct rendering *out, struct err *e)
{
	return render(in, "--system", out, e);
}
