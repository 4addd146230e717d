/* SPDX-License-Identifier: Apache-2.0 */
/* engine/engine.c - the table of engines, and the question whether one can carry out a plan */
#include "engine/engine.h"
#include "engine/vm/vm.h"

#define ALL ((BIT(STEP_COUNT_) - 1) & ~(BIT(STEP_CONTAINERS) | BIT(STEP_LIVE)))
/* What our init does behind any walls, and the keeper outside: the same for every engine. */
#define BY_INIT                                                                                    \
	(BIT(STEP_ENV) | BIT(STEP_CALLS) | BIT(STEP_LANDLOCK) | BIT(STEP_TIME) | BIT(STEP_PTY) |   \
	 BIT(STEP_EOF) | BIT(STEP_EXEC) | BIT(STEP_GATE))
/* What a tool with namespaces, explicit mounts and sized tmpfs adds. */
#define BY_MOUNTS                                                                                  \
	(BIT(STEP_MOUNTS) | BIT(STEP_HIDE) | BIT(STEP_REMASK) | BIT(STEP_NO_NETWORK) |             \
	 BIT(STEP_PROCESSES) | BIT(STEP_IDS) | BIT(STEP_DISK) | BIT(STEP_USERNS) |                 \
	 BIT(STEP_COUNTS))
#define BY_LIMITS (BIT(STEP_PIDS) | BIT(STEP_MEMORY))

const struct engine engines[] = {
	{ .name = "native",
	  .summary = "namespaces, Landlock and a system call filter by Vitrine itself",
	  .steps = ALL },
	{ .name = "bwrap",
	  .summary = "bubblewrap builds the view",
	  .tool = "bwrap",
	  .steps = BY_INIT | BY_MOUNTS | BY_LIMITS | BIT(STEP_ROOT),
	  .ends = BIT(STEP_REMASK),
	  .counts_no_files = true,
	  .has_helpers = true,
	  .dies_by_child = true,
	  .render = render_bwrap },
	{ .name = "nsjail",
	  .summary = "nsjail builds the view",
	  .tool = "nsjail",
	  .steps = BY_INIT | BY_MOUNTS | BY_LIMITS,
	  .ends = BIT(STEP_REMASK),
	  .is_untested = true,
	  .render = render_nsjail },
	{ .name = "firejail",
	  .summary = "firejail takes away from the host's root what is not to be seen",
	  .tool = "firejail",
	  .steps = BY_INIT | BIT(STEP_NO_NETWORK) | BIT(STEP_PROCESSES) | BIT(STEP_IDS) |
		   BIT(STEP_USERNS),
	  .is_untested = true,
	  .render = render_firejail },
	{ .name = "systemd",
	  .summary = "a transient service of the user's systemd, 257 or later",
	  .tool = "systemd-run",
	  .least = 257,
	  .steps = BY_INIT | BY_MOUNTS | BY_LIMITS,
	  .ends = BIT(STEP_REMASK),
	  .has_cgroups = true,
	  .is_untested = true,
	  .render = render_systemd_user },
	{ .name = "systemd-system",
	  .summary = "a transient service of the system's systemd, 257 or later",
	  .tool = "systemd-run",
	  .least = 257,
	  .steps = BY_INIT | BY_MOUNTS | BY_LIMITS,
	  .ends = BIT(STEP_REMASK),
	  .has_cgroups = true,
	  .is_untested = true,
	  .render = render_systemd_system },
	{ .name = "crun",
	  .summary = "the OCI runtime crun runs it as a container without an image",
	  .tool = "crun",
	  .steps = BY_INIT | BY_MOUNTS | BY_LIMITS | BIT(STEP_DIRECT) | BIT(STEP_ROOT),
	  .ends = BIT(STEP_REMASK),
	  .needs_stage = true,
	  .minds_hybrid = true,
	  .seals_itself = true,
	  .dies_by_child = true,
	  .render = render_crun },
	{ .name = "runc",
	  .summary = "the same with the OCI runtime runc",
	  .tool = "runc",
	  .steps = BY_INIT | BY_MOUNTS | BY_LIMITS | BIT(STEP_DIRECT) | BIT(STEP_ROOT),
	  .ends = BIT(STEP_REMASK),
	  .needs_stage = true,
	  .minds_hybrid = true,
	  .leaves_some = true,
	  .render = render_runc },
	{ .name = "gvisor",
	  .summary = "gVisor's runsc: a kernel in user space between the inside and the host's",
	  .tool = "runsc",
	  .strength = STRENGTH_KERNEL,
	  .steps = (BY_INIT & ~BIT(STEP_EOF)) | BY_MOUNTS | BY_LIMITS | BIT(STEP_ROOT),
	  .ends = BIT(STEP_REMASK),
	  .needs_stage = true,
	  .makes_points = true,
	  .is_deaf = true,
	  .counts_no_files = true,
	  .dies_by_child = true,
	  .render = render_runsc },
	{ .name = "podman",
	  .summary = "a container of podman, without a daemon",
	  .tool = "podman",
	  .steps = BY_INIT | (BY_MOUNTS & ~BIT(STEP_COUNTS)) | BY_LIMITS | BIT(STEP_DIRECT) |
		   BIT(STEP_ROOT),
	  .ends = BIT(STEP_REMASK),
	  .wants_ids = true,
	  .counts_no_files = true,
	  .has_helpers = true,
	  .prepare = podman_prepare,
	  .render = render_podman },
	{ .name = "podman-remote",
	  .summary = "the same by a podman service, wherever its client leads",
	  .tool = "podman",
	  .first = "--remote",
	  .steps = BY_INIT | (BY_MOUNTS & ~BIT(STEP_COUNTS)) | BY_LIMITS | BIT(STEP_DIRECT),
	  .ends = BIT(STEP_REMASK),
	  .counts_no_files = true,
	  .has_helpers = true,
	  .is_told = true,
	  .prepare = podman_remote_prepare,
	  .render = render_podman_remote },
	{ .name = "docker",
	  .summary = "a container of docker, here or wherever its client leads",
	  .tool = "docker",
	  .steps = BY_INIT | (BY_MOUNTS & ~(BIT(STEP_COUNTS) | BIT(STEP_USERNS))) | BY_LIMITS,
	  .ends = BIT(STEP_REMASK),
	  .has_cgroups = true,
	  .has_helpers = true,
	  .is_told = true,
	  .prepare = docker_prepare,
	  .render = render_docker },
	{ .name = "vm",
	  .summary = "a machine of QEMU's on KVM, with a kernel of its own",
	  .tool = "qemu-system-x86_64",
	  .strength = STRENGTH_VM,
	  .steps = BY_INIT | BY_MOUNTS | BY_LIMITS | BIT(STEP_DIRECT) | BIT(STEP_LAYERS) |
		   BIT(STEP_CONTAINERS) | BIT(STEP_LIVE) | BIT(STEP_ROOT),
	  .ends = BIT(STEP_REMASK),
	  .is_untested = true,
	  .render = render_vm },
	{ .name = "vm-emulated",
	  .summary = "the same machine without KVM, in software: slow, and only when asked for",
	  .tool = "qemu-system-x86_64",
	  .strength = STRENGTH_VM,
	  .steps = BY_INIT | BY_MOUNTS | BY_LIMITS | BIT(STEP_DIRECT) | BIT(STEP_LAYERS) |
		   BIT(STEP_CONTAINERS) | BIT(STEP_LIVE) | BIT(STEP_ROOT),
	  .ends = BIT(STEP_REMASK),
	  .is_untested = true,
	  .is_emulated = true,
	  .render = render_vm_emulated },
	{ .name = NULL },
};

static const char *const step_names[STEP_COUNT_] = {
	[STEP_MOUNTS] = "mounts",
	[STEP_HIDE] = "hide and protect",
	[STEP_REMASK] = "re-mask",
	[STEP_NO_NETWORK] = "no network",
	[STEP_PROCESSES] = "processes",
	[STEP_ENV] = "environment",
	[STEP_IDS] = "mapped ids",
	[STEP_ROOT] = "root's ids mapped away",
	[STEP_CALLS] = "system calls",
	[STEP_LANDLOCK] = "landlock",
	[STEP_PIDS] = "pids limit",
	[STEP_MEMORY] = "memory limit",
	[STEP_TIME] = "time limits",
	[STEP_DISK] = "disk limit",
	[STEP_PTY] = "terminal",
	[STEP_EOF] = "a terminal's ctrl-D",
	[STEP_EXEC] = "exec",
	[STEP_GATE] = "network through the gate",
	[STEP_DIRECT] = "network without proxy variables",
	[STEP_USERNS] = "a user namespace of its own",
	[STEP_COUNTS] = "kernel objects counted apart",
	[STEP_LAYERS] = "layers",
	[STEP_OWN_IDS] = "a template's own ids",
	[STEP_SOCKETS] = "host sockets",
	[STEP_LIVE] = "saved while it works",
	[STEP_CONTAINERS] = "containers inside",
};

static const char *const strength_names[STRENGTH_COUNT_] = {
	"shared kernel",
	"user-space kernel",
	"own kernel",
};

static const char *const isolation_names[STRENGTH_COUNT_] = { "process", "kernel", "vm" };

const struct engine *engine_find(const char *name)
{
	for (const struct engine *en = engines; en->name; en++)
		if (str_eq(en->name, name))
			return en;
	return NULL;
}

const char *engine_step_name(enum engine_step s)
{
	bug_on(s >= STEP_COUNT_);
	return step_names[s];
}

const char *engine_strength_name(enum engine_strength s)
{
	bug_on(s >= STRENGTH_COUNT_);
	return strength_names[s];
}

const char *engine_isolation_name(enum engine_strength s)
{
	bug_on(s >= STRENGTH_COUNT_);
	return isolation_names[s];
}

unsigned engine_steps_of(const struct plan *p)
{
	static const struct {
		enum limit_id limit;
		enum engine_step step;
	} limits[] = {
		{ LIMIT_PIDS, STEP_PIDS }, { LIMIT_MEMORY, STEP_MEMORY }, { LIMIT_TIME, STEP_TIME },
		{ LIMIT_IDLE, STEP_TIME }, { LIMIT_DISK, STEP_DISK },
	};
	unsigned steps = BIT(STEP_MOUNTS) | BIT(STEP_NO_NETWORK) | BIT(STEP_PROCESSES) |
			 BIT(STEP_ENV) | BIT(STEP_IDS) | BIT(STEP_CALLS) | BIT(STEP_LANDLOCK) |
			 BIT(STEP_PTY) | BIT(STEP_EXEC);

	if (p->ids.is_root)
		steps |= BIT(STEP_ROOT);
	if (p->has_containers)
		steps |= BIT(STEP_CONTAINERS);
	if (p->is_live)
		steps |= BIT(STEP_LIVE);
	if (p->ids.root != ROOT_NONE)
		steps |= BIT(STEP_OWN_IDS);
	if (p->net.has_gate)
		steps |= BIT(STEP_GATE);
	if (p->n_sockets > 0 || p->broker.is_on)
		steps |= BIT(STEP_SOCKETS);
	for (size_t i = 0; i < ARRAY_LEN(limits); i++)
		if (p->limits[limits[i].limit].is_set)
			steps |= BIT(limits[i].step);
	for (size_t i = 0; i < p->n_mounts; i++)
		if (p->mounts[i].kind == MOUNT_LAYER || p->mounts[i].kind == MOUNT_OVERLAY)
			steps |= BIT(STEP_LAYERS);
		else if (p->mounts[i].kind == MOUNT_HIDE || p->mounts[i].kind == MOUNT_PROTECT)
			steps |= BIT(STEP_HIDE) | BIT(STEP_REMASK);
	return steps;
}

/* The first of the table that has all of these; NULL: none has. */
static const struct engine *one_with(unsigned steps)
{
	const struct engine *en = engines;

	while (en->name && (steps & ~en->steps))
		en++;
	return en->name ? en : NULL;
}

int engine_needs(const struct engine *en, unsigned steps, struct err *e)
{
	unsigned missing = steps & ~en->steps;
	const struct engine *other = one_with(steps);

	if (missing == BIT(STEP_ROOT))
		return err_set(e, ERR_UNSUPPORTED, ENOTSUP,
			       "engine '%s' cannot honour: %s; start it as an ordinary "
			       "user or "
			       "with --user NAME",
			       en->name, engine_step_name(STEP_ROOT));
	for (enum engine_step s = 0; s < STEP_COUNT_; s++)
		if (missing & BIT(s))
			return err_set(e, ERR_UNSUPPORTED, ENOTSUP,
				       "engine '%s' cannot honour: %s%s%s%s", en->name,
				       engine_step_name(s), other ? "; --engine " : "",
				       other ? other->name : "", other ? " can" : "");
	return 0;
}

int engine_check(const struct engine *en, const struct plan *p, struct err *e)
{
	return engine_needs(en, engine_steps_of(p), e);
}

/* ---- here ---- */

char *engine_tool(const struct engine *en)
{
	static const char *const dirs[] = { "/usr/local/bin",  "/usr/bin",  "/bin",
					    "/usr/local/sbin", "/usr/sbin", "/sbin" };

	for (size_t i = 0; en->tool && i < ARRAY_LEN(dirs); i++) {
		_free_ char *path = mem_fmt("%s/%s", dirs[i], en->tool);

		if (access(path, X_OK) == 0)
			return take(path);
	}
	return NULL;
}

void engine_tell(const struct engine *en, struct facts *f)
{
	f->engine_has_cgroups = en->has_cgroups;
	f->engine_is_elsewhere = en->has_cgroups || en->is_told;
	f->engine_counts_no_files = en->counts_no_files;
	f->has_own_kernel = en->strength == STRENGTH_KERNEL;
}

/* As podman's own program takes it: either of them and it goes elsewhere. */
const char *engine_led(const char *name, char *const *env)
{
	const char *host = render_word(env, "CONTAINER_HOST");
	const char *connection = render_word(env, "CONTAINER_CONNECTION");

	if (str_eq(name, "podman") && ((host && *host) || (connection && *connection)))
		return "podman-remote";
	return name;
}

bool engine_is_here(const struct engine *en)
{
	_free_ char *tool = engine_tool(en);

	if (en->needs_root && geteuid() != 0)
		return false;
	if (en->strength == STRENGTH_VM && !en->is_emulated && access("/dev/kvm", R_OK | W_OK) < 0)
		return false;
	return en->tool == NULL || tool != NULL;
}

int engine_pick(const char *name, enum engine_strength least, unsigned needs,
		const struct engine **ret, struct err *e)
{
	const struct engine *en = NULL;

	if (!str_eq(name, "auto")) {
		en = engine_find(name);
		if (en == NULL)
			return err_set(e, ERR_NOTFOUND, ENOENT,
				       "there is no engine '%.40s'; 'vitrine engines' "
				       "lists them",
				       name);
		if (en->strength < least)
			return err_set(e, ERR_UNSUPPORTED, ENOTSUP,
				       "engine '%s' has a %s, and the policy's isolation "
				       "\"%s\" "
				       "asks for more; --engine auto picks one that has "
				       "it",
				       en->name, engine_strength_name(en->strength),
				       engine_isolation_name(least));
		*ret = en;
		return 0;
	}
	/* The first of the strongest: the table has the best of each kind first. */
	for (const struct engine *x = engines; x->name; x++)
		if (!x->is_untested && x->unfit == NULL && x->strength >= least &&
		    !(needs & ~x->steps) && engine_is_here(x) &&
		    (en == NULL || x->strength > en->strength))
			en = x;
	if (en == NULL)
		return err_set(e, ERR_UNSUPPORTED, ENOTSUP,
			       "no engine with isolation \"%s\" works here%s; 'vitrine "
			       "engines' "
			       "says what is missing",
			       engine_isolation_name(least),
			       needs & BIT(STEP_ROOT) ? " for root, --user NAME may have "
							"one"
						      : "");
	*ret = en;
	return 0;
}
