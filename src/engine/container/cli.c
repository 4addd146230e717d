/* SPDX-License-Identifier: Apache-2.0 */
/* engine/container/cli.c - a plan as arguments of podman and of docker
 *
 * The link is the attached input and output of the call, so it is the same for an engine on this machine, in a virtual
 * machine beside it or far away. Podman takes the skeleton as it lies on the disk; docker runs images only, and gets
 * it as one (image.c), and so does a podman service, which may lie elsewhere. Its client takes none of the words that say how podman
 * itself is to work, and the service opens the profile of system calls itself: one that does not see our state directory under
 * its own name runs nothing. Mounts are written as --mount, which, unlike -v, makes nothing on the host that is missing.
 */
#include "base/path.h"
#include "engine/container/container.h"
#include "engine/mapped.h"

/* One field of a comma-separated list, quoted where it has to be. */
static void put_field(struct buf *b, const char *key, const char *value)
{
	if (strpbrk(value, ",\"\n") == NULL) {
		buf_printf(b, ",%s=%s", key, value);
		return;
	}
	buf_printf(b, ",\"%s=", key);
	for (; *value; value++) {
		if (*value == '"')
			buf_putc(b, '"');
		buf_putc(b, *value);
	}
	buf_putc(b, '"');
}

static void add_bind(struct args *a, const struct render_in *in, const struct mount *m)
{
	_free_ char *src = render_source(in, m);
	_cleanup_(buf_done) struct buf b = BUF(16 * KIB);

	buf_puts(&b, "type=bind");
	put_field(&b, "src", src);
	put_field(&b, "dst", m->dst);
	if (m->flags & MOUNT_RO || m->kind == MOUNT_HIDE)
		buf_puts(&b, ",readonly");
	buf_puts(&b, ",bind-propagation=rprivate");
	args_put(a, "--mount", buf_cstr(&b), NULL);
}

static void add_private(struct args *a, const struct plan *p, const struct mount *m, bool has_ids)
{
	uint64_t bytes = render_bytes(p, m);
	_cleanup_(buf_done) struct buf b = BUF(16 * KIB);

	/* Podman lets nobody say whose a tmpfs is; there is but one user inside to keep others out of it. */
	buf_printf(&b, "%s:rw,nosuid,nodev,exec,mode=%04o", m->dst,
		   has_ids ? render_mode(m) : 01777U);
	if (bytes)
		buf_printf(&b, ",size=%llu", (unsigned long long)bytes);
	if (has_ids && bytes)
		buf_printf(&b, ",nr_inodes=%llu", (unsigned long long)render_files(p, m));
	if (has_ids)
		buf_printf(&b, ",uid=%u,gid=%u", p->ids.uid_in, p->ids.gid_in);
	else
		buf_puts(&b, ",notmpcopyup"); /* it would take the mode of what it covers */
	args_put(a, "--tmpfs", buf_cstr(&b), NULL);
}

static int add_mounts(struct args *a, const struct render_in *in, bool has_ids, struct err *e)
{
	const struct plan *p = in->plan;

	for (size_t i = 0; i < p->n_mounts; i++) {
		const struct mount *m = &p->mounts[i];

		if (render_skips(in, i))
			continue;
		switch (m->kind) {
		case MOUNT_BIND:
		case MOUNT_PROTECT:
		case MOUNT_PIN:
		case MOUNT_HIDE:
			if (!path_is_beneath(m->dst, "/proc")) /* those the engine masks itself */
				add_bind(a, in, m);
			break;
		case MOUNT_PRIVATE:
			if (strpbrk(m->dst, ":,"))
				return err_set(e, ERR_UNSUPPORTED, EINVAL,
					       "'%s': this engine cannot name such a path", m->dst);
			add_private(a, p, m, has_ids);
			break;
		case MOUNT_PROC: /* its own, with the same devices and terminals */
		case MOUNT_PTS:
		case MOUNT_DEVICE:
		case MOUNT_LAYER: /* STEP_LAYERS: refused before */
		case MOUNT_OVERLAY:
		case MOUNT_PART:
		case MOUNT_SERVE: /* the native engine alone */
		case MOUNT_KIND_COUNT_:
			break;
		}
	}
	return 0;
}

static void add_limits(struct args *a, const struct plan *p)
{
	const struct plan_limit *l = p->limits;

	if (l[LIMIT_MEMORY].is_set && l[LIMIT_MEMORY].by == BY_KERNEL) {
		args_addf(a, "--memory=%llu", (unsigned long long)l[LIMIT_MEMORY].max);
		args_addf(a, "--memory-swap=%llu", (unsigned long long)l[LIMIT_MEMORY].max);
	}
	if (l[LIMIT_CPUS].is_set && l[LIMIT_CPUS].by == BY_KERNEL)
		args_addf(a, "--cpus=%llu.%03llu", (unsigned long long)(l[LIMIT_CPUS].max / 1000),
			  (unsigned long long)(l[LIMIT_CPUS].max % 1000));
	if (l[LIMIT_PIDS].is_set)
		args_addf(a, "--pids-limit=%llu", (unsigned long long)l[LIMIT_PIDS].max + 1);
}

/* What both call the same. */
static void add_walls(struct args *a, const struct render_in *in, struct rendering *out)
{
	const struct plan *p = in->plan;

	args_put(a, "run", "--rm", "--interactive", "--name", in->id, "--network=none",
		 "--read-only", "--cap-drop=all", "--security-opt=no-new-privileges", NULL);
	args_addf(a, "--security-opt=seccomp=%s/seccomp.json", in->dir);
	args_addf(a, "--user=%u:%u", p->ids.uid_in, p->ids.gid_in);
	args_addf(a, "--hostname=%s", p->hostname);
	args_put(a, "--ipc=private", "--cgroupns=private", "--workdir=/",
		 "--entrypoint=" INIT_INSIDE, NULL);
	if (in->runtime)
		args_addf(a, "--runtime=%s", in->runtime);
	out->file = mem_str("seccomp.json");
	seccomp_profile(p->debug, &out->text);
}

/* Root's: podman is in a namespace of ours (engine/mapped.c), where it is an ordinary user that has entered one, and finds
 * nothing of any other podman. The id that is 0 there is the sandbox's, so it gets the plan's number inside. */
static void add_namespace(struct args *a, const struct render_in *in, struct rendering *out)
{
	const struct ids *ids = &in->plan->ids;

	if (in->place == NULL) {
		args_add(a, "--userns=keep-id");
		return;
	}
	args_addf(a, "--uidmap=0:1:%u", ids->uid_in);
	args_addf(a, "--uidmap=%u:0:1", ids->uid_in);
	args_addf(a, "--gidmap=0:1:%u", ids->gid_in);
	args_addf(a, "--gidmap=%u:0:1", ids->gid_in);
	args_put(&out->env, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		 "HOME=" MAPPED_OWN, "XDG_RUNTIME_DIR=" MAPPED_OWN, "XDG_CONFIG_HOME=" MAPPED_OWN,
		 "XDG_DATA_HOME=" MAPPED_OWN, "_CONTAINERS_USERNS_CONFIGURED=done", NULL);
	args_addf(&out->env, "_CONTAINERS_ROOTLESS_UID=%u", ids->uid_out);
	args_addf(&out->env, "_CONTAINERS_ROOTLESS_GID=%u", ids->gid_out);
}

/* What is said to podman here and elsewhere. */
static void add_podman(struct args *a, const struct render_in *in)
{
	/* For init, to bring the network to the gate; it drops them before the first command. */
	if (in->plan->net.has_gate)
		args_add(a, "--cap-add=NET_ADMIN,NET_BIND_SERVICE,SETPCAP");
	args_put(a, "--ulimit=host", "--read-only-tmpfs=false", "--no-hosts", "--log-driver=none",
		 "--image-volume=ignore", NULL);
}

int render_podman_remote(const struct render_in *in, struct rendering *out, struct err *e)
{
	const struct ids *ids = &in->plan->ids;
	struct render_in far = *in;
	struct args *a = &out->args;
	_free_ char *image = image_name(in->plan);
	int r;

	far.runtime = NULL; /* the service has its own */
	args_put(a, in->tool, "--remote", NULL);
	add_walls(a, &far, out);
	add_podman(a, &far);
	/* The service's user, whatever number it has there. */
	args_addf(a, "--userns=keep-id:uid=%u,gid=%u", ids->uid_in, ids->gid_in);
	args_add(a, "--pull=never");
	r = add_mounts(a, &far, false, e);
	if (r == 0)
		args_addf(a, "localhost/%s", image);
	return r;
}

int render_podman(const struct render_in *in, struct rendering *out, struct err *e)
{
	struct args *a = &out->args;
	int r;

	/* No systemd is asked to make control groups: we are in the right ones already. */
	args_put(a, in->tool, "--cgroup-manager=cgroupfs", "--events-backend=none", NULL);
	if (in->place) /* it would try which is best, and there is no image */
		args_add(a, "--storage-driver=vfs");
	add_walls(a, in, out);
	add_podman(a, in);
	if (in->runtime == NULL) /* crun can leave them alone, runc wants to be let try */
		args_add(a, "--cgroups=disabled");
	add_namespace(a, in, out);
	args_add(a, "--http-proxy=false");
	r = add_mounts(a, in, false, e);
	if (r < 0)
		return r;
	args_put(a, "--rootfs", in->skel, NULL);
	return 0;
}

int render_docker(const struct render_in *in, struct rendering *out, struct err *e)
{
	struct args *a = &out->args;
	_free_ char *image = image_name(in->plan);
	int r;

	args_add(a, in->tool);
	add_walls(a, in, out);
	add_limits(a, in->plan);
	/* A loopback interface as everywhere else: docker leaves out its second address. */
	args_add(a, "--sysctl=net.ipv6.conf.all.disable_ipv6=0");
	args_put(a, "--log-driver=none", "--pull=never", "--no-healthcheck", NULL);
	r = add_mounts(a, in, true, e);
	if (r == 0)
		args_add(a, image);
	return r;
}
