/* SPDX-License-Identifier: Apache-2.0 */
/* engine/oci/config.c - a plan as a bundle of the OCI runtime specification, and the runtimes that take it
 *
 * The root directory is the skeleton itself, read-only. The runtime is started in a user namespace (engine/stage.c) in
 * which the user's id is 0; our init gives it the plan's number, in a namespace of its own, before it locks. Covers below /proc become masked paths, because runtimes refuse mounts there.
 */
#include "base/path.h"
#include "engine/render.h"

struct json_list {
	struct buf *out;
	bool has_one, has_rro;
};

static void next(struct json_list *l)
{
	buf_puts(l->out, l->has_one ? ",\n    " : "\n    ");
	l->has_one = true;
}

static void put_options(struct buf *out, const char *const *v)
{
	buf_puts(out, "[");
	for (size_t i = 0; v[i]; i++) {
		buf_puts(out, i ? "," : "");
		buf_json(out, v[i]);
	}
	buf_puts(out, "]");
}

static void put_mount(struct json_list *l, const char *type, const char *src, const char *dst,
		      const char *const *options)
{
	next(l);
	buf_puts(l->out, "{\"destination\":");
	buf_json(l->out, dst);
	buf_printf(l->out, ",\"type\":\"%s\",\"source\":", type);
	buf_json(l->out, src);
	buf_puts(l->out, ",\"options\":");
	put_options(l->out, options);
	buf_puts(l->out, "}");
}

/* "rro": read-only with all that is mounted below it. gVisor knows no such word, and needs none: what it serves from
 * the host comes through the one mount. */
static void put_bind(struct json_list *l, const struct render_in *in, const struct mount *m)
{
	_free_ char *src = render_source(in, m);
	bool is_ro = m->flags & MOUNT_RO || m->kind == MOUNT_HIDE;
	const char *ro = l->has_rro && m->flags & MOUNT_DIR ? "rro" : "ro";
	const char *options[] = { "rbind", "nosuid", "nodev", "private", is_ro ? ro : "rw", NULL };

	put_mount(l, "bind", src, m->dst, options);
}

static void put_private(struct json_list *l, const struct plan *p, const struct mount *m)
{
	_free_ char *mode = mem_fmt("mode=%04o", render_mode(m));
	_free_ char *size = mem_fmt("size=%llu", (unsigned long long)render_bytes(p, m));
	_free_ char *inodes = mem_fmt("nr_inodes=%llu", (unsigned long long)render_files(p, m));
	const char *options[] = {
		"nosuid", "nodev", mode, p->private_bytes ? size : NULL, l->has_rro ? inodes : NULL,
		NULL
	}; /* gVisor knows none */

	put_mount(l, "tmpfs", "tmpfs", m->dst, options);
}

static void put_one(struct json_list *l, const struct render_in *in, const struct mount *m)
{
	static const char *const proc[] = { "nosuid", "nodev", "noexec", NULL };
	static const char *const pts[] = { "nosuid",    "noexec",  "newinstance", "ptmxmode=0666",
					   "mode=0620", "max=256", NULL };

	switch (m->kind) {
	case MOUNT_BIND:
	case MOUNT_PROTECT:
	case MOUNT_PIN:
	case MOUNT_HIDE:
		put_bind(l, in, m);
		return;
	case MOUNT_PRIVATE:
		put_private(l, in->plan, m);
		return;
	case MOUNT_PROC:
		put_mount(l, "proc", "proc", m->dst, proc);
		return;
	case MOUNT_PTS:
		put_mount(l, "devpts", "devpts", m->dst, pts);
		return;
	case MOUNT_DEVICE: /* the runtime makes the same six by itself */
	case MOUNT_LAYER:  /* STEP_LAYERS: refused before */
	case MOUNT_OVERLAY:
	case MOUNT_PART:
	case MOUNT_SERVE: /* the native engine alone */
	case MOUNT_KIND_COUNT_:
		return;
	}
}

static void put_mounts(const struct render_in *in, bool has_rro, struct buf *out)
{
	static const char *const dev[] = { "nosuid", "noexec", "mode=0755", "size=65536", NULL };
	const struct plan *p = in->plan;
	struct json_list l = { .out = out, .has_rro = has_rro };
	bool has_dev = false;

	for (size_t i = 0; i < p->n_mounts; i++) {
		const struct mount *m = &p->mounts[i];

		if (render_skips(in, i) || (m->kind == MOUNT_HIDE && path_is_beneath(m->dst, "/pro"
											     "c")))
			continue;
		if (!has_dev && path_is_beneath(m->dst, "/dev")) {
			put_mount(&l, "tmpfs", "tmpfs", "/dev", dev);
			has_dev = true;
		}
		put_one(&l, in, m);
	}
}

static void put_masked(const struct render_in *in, struct buf *out)
{
	const struct plan *p = in->plan;
	bool has_one = false;

	for (size_t i = 0; i < p->n_mounts; i++) {
		const struct mount *m = &p->mounts[i];

		if (m->kind != MOUNT_HIDE || !path_is_beneath(m->dst, "/proc"))
			continue;
		buf_puts(out, has_one ? "," : "");
		buf_json(out, m->dst);
		has_one = true;
	}
}

/* What init needs to take the plan's ids (mapping an id 0 wants the third) and to bring the network to the gate; it
 * drops them with all others before the first command. */
static void put_caps(const struct plan *p, struct buf *out)
{
	const char *net = p->net.has_gate ? ",\"CAP_NET_ADMIN\",\"CAP_NET_BIND_SERVICE\"" : "";

	static const char *const sets[] = { "bounding", "effective", "permitted" };

	for (size_t i = 0; i < ARRAY_LEN(sets); i++)
		buf_printf(out, "\"%s\":[\"CAP_SETUID\",\"CAP_SETGID\",\"CAP_SETFCAP\"%s],",
			   sets[i], net);
	buf_puts(out, "\"inheritable\":[],\"ambient\":[]");
}

static void put_config(const struct render_in *in, bool has_rro, struct buf *out)
{
	const struct plan *p = in->plan;

	buf_puts(out, "{\"ociVersion\":\"1.0.2\",\n"
		      " \"root\":{\"readonly\":true,\"path\":");
	buf_json(out, in->skel);
	buf_puts(out, "},\n \"hostname\":");
	buf_json(out, p->hostname);
	buf_puts(out, ",\n "
		      "\"process\":{\"terminal\":false,\"user\":{\"uid\":0,\"gid\":0},\"cwd\":\"/"
		      "\","
		      "\"args\":[\"" INIT_INSIDE "\"],\"env\":[],\"noNewPrivileges\":true,\n"
		      "  \"capabilities\":{");
	put_caps(p, out);
	buf_puts(out, "}},\n \"mounts\":[");
	put_mounts(in, has_rro, out);
	buf_puts(out, "\n ],\n \"linux\":{");
	buf_puts(out, "\n  "
		      "\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"ipc\"},{\"type\":\"uts\"},"
		      "{\"type\":\"mount\"},{\"type\":\"network\"},"
		      "{\"type\":\"cgroup\"}],\n  \"maskedPaths\":[");
	put_masked(in, out);
	buf_puts(out, "]\n }\n}\n");
}

static int render(const struct render_in *in, bool has_rro, struct rendering *out)
{
	out->file = mem_str("config.json");
	put_config(in, has_rro, &out->text);
	args_add(&out->args, in->tool);
	args_add(&out->args, "--root");
	args_addf(&out->args, "%s/state", in->dir);
	return 0;
}

static int run(const struct render_in *in, struct rendering *out)
{
	args_put(&out->args, "run", "--bundle", in->dir, in->id, NULL);
	return 0;
}

int render_crun(const struct render_in *in, struct rendering *out, struct err *e)
{
	(void)render(in, true, out);
	/* The control groups are ours: the runtime is started in them. */
	args_add(&out->args, "--cgroup-manager=disabled");
	return run(in, out);
}

int render_runc(const struct render_in *in, struct rendering *out, struct err *e)
{
	(void)render(in, true, out);
	args_add(&out->args, "--rootless=true"); /* cgroups that it may not use are no error */
	return run(in, out);
}

/* How it gets hold of system calls: what this version takes by itself (ptrace of old, systrap since) unless somebody knows
 * better. */
static int add_platform(const struct plan *p, struct args *a, struct err *e)
{
	static const char *const known[] = { "ptrace", "systrap", "kvm" };
	const char *word = render_word(p->engine_env, "VITRINE_GVISOR_PLATFORM");

	if (word == NULL)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (str_eq(word, known[i])) {
			args_addf(a, "--platform=%s", word);
			return 0;
		}
	return err_set(e, ERR_USAGE, EINVAL,
		       "VITRINE_GVISOR_PLATFORM is 'ptrace', 'systrap' or 'kvm', not '%.40s'",
		       word);
}

int render_runsc(const struct render_in *in, struct rendering *out, struct err *e)
{
	int r;

	(void)render(in, false, out);
	args_put(&out->args, "--rootless", "--network=none", "--ignore-cgroups", NULL);
	r = add_platform(in->plan, &out->args, e);
	return r < 0 ? r : run(in, out);
}
