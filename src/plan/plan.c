/* SPDX-License-Identifier: Apache-2.0 */
/* plan/plan.c - policy + facts -> plan
 *
 * Read top to bottom: refuse what cannot be, then the view (skeleton, mounts, covers), the ids, the limits, the
 * environment. Each of these has a file of its own beside this one.
 */
#include "base/path.h"
#include "plan/parts.h"

/* Ids of a sandbox started by root: an ordinary user inside, and outside an id that no distribution hands out
 * (above systemd's container range, below 2^31), so that nothing on the host belongs to it. */
#define ROOT_UID_IN 1000
#define ROOT_UID_OUT 1888000001

bool plan_is_review(const struct plan *p)
{
	for (size_t i = 0; i < p->n_mounts; i++)
		if (p->mounts[i].kind == MOUNT_OVERLAY && str_eq(p->mounts[i].dst, p->workspace))
			return true;
	return false;
}

/* ---- refusals ---- */

static const char *const never_workspaces[] = {
	"/bin",   "/boot", "/dev", "/etc", "/home", "/lib",  "/lib64",
	"/media", "/mnt",  "/nix", "/opt", "/proc", "/root", "/run",
	"/sbin",  "/srv",  "/sys", "/tmp", "/usr",  "/var",  "/var/tmp",
};

int plan_check_workspace(const struct facts *f, struct err *e)
{
	const char *ws = f->workspace;

	if (str_eq(ws, "/"))
		return err_set(e, ERR_USAGE, EINVAL,
			       "'/' cannot be a workspace: it is the whole machine; go to a "
			       "project directory or name one "
			       "with --workspace");
	if (path_is_beneath(f->home, ws))
		return err_set(e, ERR_USAGE, EINVAL,
			       "'%s' cannot be a workspace: it holds your home directory with its "
			       "keys; go to a project "
			       "directory or name one with --workspace",
			       ws);
	if (path_is_beneath(f->state_dir, ws) || path_is_beneath(ws, f->state_dir))
		return err_set(e, ERR_USAGE, EINVAL,
			       "'%s' cannot be a workspace: Vitrine's own state lies in '%s'", ws,
			       f->state_dir);
	for (size_t i = 0; i < ARRAY_LEN(never_workspaces); i++)
		if (str_eq(ws, never_workspaces[i]))
			return err_set(e, ERR_USAGE, EINVAL,
				       "'%s' cannot be a workspace: it belongs to the system; go "
				       "to a project directory or "
				       "name one with --workspace",
				       ws);
	for (const char *const *r = (const char *const[]){ "/usr", "/etc", "/proc", "/sys", "/dev",
							   "/boot", NULL };
	     *r; r++)
		if (path_is_beneath(ws, *r))
			return err_set(e, ERR_USAGE, EINVAL,
				       "'%s' cannot be a workspace: it lies in '%s'", ws, *r);
	return 0;
}

static int check_policy(const struct policy *p, const struct facts *f, struct err *e)
{
	if (f->inner_root != ROOT_NONE && !str_eq(p->engine, "native"))
		return err_set(e, ERR_UNSUPPORTED, ENOTSUP,
			       "a root inside needs the native engine, and this is '%s'",
			       p->engine);
	if (f->inner_root == ROOT_SETUID && f->sys_layers == NULL)
		return err_set(e, ERR_BUG, EINVAL, "a root inside without layers of its own");
	if (p->mode == WS_REVIEW && f->ws_layers == NULL)
		return err_set(e, ERR_USAGE, EINVAL,
			       "workspace mode 'review' needs a sandbox that lasts, to keep the "
			       "changes until you look at them; give it a --name");
	if (p->mode == WS_CLONE && (f->ws_layers == NULL || f->ws_repo == NULL))
		return err_set(e, ERR_USAGE, EINVAL,
			       "workspace mode 'clone' needs a sandbox that lasts, to keep the "
			       "clone; give it a --name");
	return 0;
}

/* ---- the view ---- */

static bool is_socket(const struct plan *p, const char *path)
{
	for (size_t i = 0; i < p->n_sockets; i++)
		if (str_eq(p->sockets[i].host, path))
			return true;
	return false;
}

/* A text of ours over a name: part of the skeleton, as what hides a file is. */
static void plan_shown(struct plan *p, const char *text, const char *path, unsigned flags)
{
	_free_ char *name = mem_fmt("shown/%zu", p->n_skel);
	_free_ char *at = mem_fmt(".vitrine/%s", name);

	plan_add_skel(p, SKEL_DIR, ".vitrine/shown", "");
	plan_add_skel(p, SKEL_FILE, at, text);
	plan_add_mount(p, MOUNT_HIDE, name, path, flags, "git config without its secrets");
}

void plan_add_cover(struct plan *p, const struct cover *c, const char *host, const char *inside)
{
	_free_ char *src = mem_fmt("%s/%s", host, c->rel);
	_free_ char *path = mem_fmt("%s/%s", inside, c->rel);
	unsigned flags = MOUNT_GONE_OK | (c->is_dir ? MOUNT_DIR : 0);

	if (is_socket(p, path))
		return; /* ours lies there already */
	switch (c->kind) {
	case COVER_HIDE:
		plan_add_mount(p, MOUNT_HIDE, c->is_dir ? "dir" : "file", path, flags, c->rule);
		break;
	case COVER_PROTECT:
		if (c->shown)
			plan_shown(p, c->shown, path, flags);
		else
			plan_add_mount(p, MOUNT_PROTECT, src, path, flags | MOUNT_RO, c->rule);
		break;
	case COVER_PIN:
		plan_add_mount(p, MOUNT_PIN, src, path, flags, "ancestor");
		break;
	case COVER_KIND_COUNT_:
		bug_on(true);
	}
}

bool plan_mounts_in_served(const struct plan *p, const struct mount *serve)
{
	for (size_t i = 0; i < p->n_mounts; i++)
		if (&p->mounts[i] != serve && !(p->mounts[i].flags & MOUNT_SERVED) &&
		    path_is_beneath(p->mounts[i].dst, serve->dst))
			return true;
	return false;
}

const char *const plan_served_binds[] = { "objects", "refs", "logs", NULL };

bool plan_is_served(const struct plan *p, const char *path)
{
	_free_ char *git = mem_fmt("%s/.git", p->workspace);
	const char *rel;

	if (!p->serves_git || !path_is_beneath(path, git))
		return false;
	rel = path_below(path, git);
	for (const char *const *b = plan_served_binds; *b; b++)
		if (path_is_beneath(rel, *b))
			return false;
	return true;
}

/* A directory of the host below .git that was granted by itself would lie bare beside the served one: then masks do. */
static bool has_mount_below(const struct plan *p, const char *dir)
{
	for (size_t i = 0; i < p->n_mounts; i++)
		if (path_is_beneath(p->mounts[i].dst, dir))
			return true;
	return false;
}

/* The covers of a served git dir stay in the plan: they are what is left when it cannot be served after all, or when the
 * host replaces .git itself. */
static void plan_serve(struct plan *p, const struct facts *f)
{
	_free_ char *git = mem_fmt("%s/.git", p->workspace);
	struct mount *m;

	if (!f->can_serve || p->ids.root != ROOT_NONE || has_mount_below(p, git))
		return;
	m = plan_add_mount(p, MOUNT_SERVE, git, git, MOUNT_DIR, "served by name");
	m->dev = f->git_dev;
	m->ino = f->git_ino;
	p->serves_git = true;
}

static void plan_covers(struct plan *p, const struct facts *f)
{
	size_t first;

	plan_serve(p, f);
	first = p->n_mounts;
	for (size_t i = 0; i < f->n_covers; i++)
		plan_add_cover(p, &f->covers[i], p->workspace, p->workspace);
	for (size_t i = first; i < p->n_mounts; i++)
		if (plan_is_served(p, p->mounts[i].dst))
			p->mounts[i].flags |= MOUNT_SERVED;
	/* A Vitrine built or installed inside the workspace must not be replaced by what it runs. */
	if (path_is_beneath(f->self_exe, p->workspace))
		plan_add_mount(p, MOUNT_PROTECT, f->self_exe, f->self_exe, MOUNT_RO | MOUNT_GONE_OK,
			       "Vitrine itself");
}

/* ---- ids ---- */

/* With ids for a root inside: the user stays who they are, or is that root. */
static void own_ids(struct ids *ids, const struct facts *f)
{
	ids->root = f->inner_root;
	ids->uids = f->is_root ? subids_map_all(f->sub_uid) : subids_map(f->uid, f->sub_uid);
	ids->gids = f->is_root ? subids_map_all(f->sub_gid) : subids_map(f->gid, f->sub_gid);
	if (f->inner_root == ROOT_JOB)
		ids->uid_in = ids->gid_in = 0;
	if (f->is_root || f->inner_root == ROOT_JOB) {
		ids->uid_out = f->sub_uid + ids->uid_in;
		ids->gid_out = f->sub_gid + ids->gid_in;
	}
}

struct ids plan_ids(const struct facts *f)
{
	struct ids ids = { .is_root = f->is_root,
			   .uid_out = f->is_root ? ROOT_UID_OUT + f->root_slot : f->uid,
			   .gid_out = f->is_root ? ROOT_UID_OUT + f->root_slot : f->gid,
			   .uid_in = f->is_root ? ROOT_UID_IN : f->uid,
			   .gid_in = f->is_root ? ROOT_UID_IN : f->gid };

	if (f->inner_root != ROOT_NONE)
		own_ids(&ids, f);
	return ids;
}

/* A file with the set-user-id bit that belongs to the caller would be a gift to the other users of the host, so it can be
 * made only where nobody else on the host can see it: in what lies in our own state. A job's own directory is its
 * maker's to choose. */
static bool may_make_suid(const struct plan *p)
{
	if (p->ids.root == ROOT_NONE)
		return false;
	for (size_t i = 0; i < p->n_mounts; i++) {
		const struct mount *m = &p->mounts[i];

		if (m->kind == MOUNT_BIND && !(m->flags & MOUNT_RO) && p->ids.root != ROOT_JOB &&
		    !path_is_beneath(m->src, p->state_dir))
			return false;
	}
	return true;
}

static void plan_names(struct plan *p, const struct facts *f)
{
	p->ids = plan_ids(f);
	p->user = mem_str(f->is_root ? "agent" : f->user);
	p->home = mem_str(f->home);
	p->hostname = mem_str("vitrine");
}

static int plan_command(struct plan *p, const struct facts *f, const struct errand *errand,
			struct err *e)
{
	char *const *argv = errand->argv;
	const char *workdir = errand->workdir;
	size_t n = 0;

	while (argv && argv[n])
		n++;
	p->argv = mem_new(n + 1, sizeof(*p->argv));
	for (size_t i = 0; i < n; i++)
		p->argv[i] = mem_str(argv[i]);
	if (workdir)
		p->cwd = path_join(p->workspace, workdir);
	else
		p->cwd = mem_str(path_is_beneath(f->cwd, p->workspace) ? f->cwd : p->workspace);
	if (path_is_beneath(p->cwd, "/proc"))
		return err_set(e, ERR_USAGE, EINVAL, "--workdir '%s': not a place to work in",
			       p->cwd);
	return 0;
}

int plan_build(const struct policy *pol, const struct facts *f, const struct errand *errand,
	       struct plan *ret, struct err *e)
{
	struct plan p = { .ns = NS_ALL,
			  .landlock_abi = f->landlock_abi,
			  .debug = pol->debug,
			  .check_reads = pol->check_reads,
			  .has_containers = pol->containers,
			  .is_live = pol->live };
	int r;

	r = plan_check_workspace(f, e);
	if (r == 0 && pol->live && pol->containers)
		r = err_set(e, ERR_UNSUPPORTED, ENOTSUP,
			    "--live and --containers exclude each other: what serves the files of "
			    "a machine that can "
			    "be saved must be out of reach of a root inside");
	if (r == 0)
		r = check_policy(pol, f, e);
	if (r < 0)
		return r;
	p.is_named = errand->name[0] != '-';
	p.name = mem_str(p.is_named ? errand->name : errand->name + 1);
	p.workspace = mem_str(f->workspace);
	p.ws_dev = f->ws_dev;
	p.ws_ino = f->ws_ino;
	p.state_dir = mem_str(f->state_dir);
	p.engine = mem_str(pol->engine);
	plan_names(&p, f);
	plan_broker_build(&p.broker, pol, f, p.is_named);
	plan_add_access(&p, ACCESS_READ, "/");
	plan_root(&p, f);
	plan_etc(&p, pol, f);
	plan_dev(&p);
	plan_private(&p, pol, f);
	plan_toolchains(&p, f);
	plan_workspace(&p, pol, f);
	if (p.ids.root != ROOT_JOB)
		plan_add_access(&p, ACCESS_WRITE, p.workspace);
	plan_add_worktree(&p, f);
	r = plan_grants(&p, pol, f, e);
	plan_sockets(&p, pol);
	plan_safe_tools(&p, pol, f);
	if (r == 0)
		r = plan_broker_check(&p, pol, e);
	if (r == 0)
		r = plan_limits(&p, pol, f, e);
	if (r == 0)
		r = plan_command(&p, f, errand, e);
	if (r == 0)
		r = plan_net_build(&p.net, pol, f, e);
	if (r < 0) {
		plan_done(&p);
		return r;
	}
	plan_trust(&p, f);
	plan_logins(&p, f);
	plan_covers(&p, f);
	if (!str_eq(p.engine, "native"))
		plan_engine(&p, f);
	p.may_suid = may_make_suid(&p);
	p.wants_notices =
		!p.may_suid && str_eq(p.engine, "native") && f->n_files >= PLAN_NOTICE_FILES;
	plan_mount_points(&p);
	plan_add_skel(&p, SKEL_DIR, "var", "");
	if (p.has_containers) { /* where such an engine looks for its kernel and keeps its things */
		plan_add_skel(&p, SKEL_DIR, "sys", "");
		plan_add_skel(&p, SKEL_DIR, "var/lib", "");
		plan_add_skel(&p, SKEL_DIR, "var/lib/containers", "");
	}
	plan_add_skel(&p, SKEL_FILE, ".vitrine/file", "")->mode = 0;
	plan_add_skel(&p, SKEL_DIR, ".vitrine/dir", "")->mode = 0;
	plan_add_skel(&p, SKEL_DIR, ".vitrine/private", "");
	plan_layers(&p);
	/* The last: what is there already counts. */
	if (f->etc_tree)
		plan_add_skel(&p, SKEL_TREE, ".vitrine/packages", f->etc_tree);
	plan_skel_name(&p);
	plan_env(&p, pol, f);
	*ret = p;
	return 0;
}

void plan_done(struct plan *p)
{
	for (size_t i = 0; i < p->n_mounts; i++) {
		free(p->mounts[i].src);
		free(p->mounts[i].dst);
	}
	for (size_t i = 0; i < p->n_skel; i++) {
		free(p->skel[i].path);
		free(p->skel[i].text);
	}
	for (size_t i = 0; i < p->n_access; i++)
		free(p->access[i].path);
	for (char **v = p->env; v && *v; v++)
		free(*v);
	for (char **v = p->argv; v && *v; v++)
		free(*v);
	for (size_t i = 0; i < p->n_sockets; i++)
		free(p->sockets[i].host);
	free(p->sockets);
	for (char **v = p->engine_env; v && *v; v++)
		free(*v);
	free(p->engine_env);
	free(p->mounts);
	free(p->skel);
	free(p->access);
	free(p->env);
	free(p->argv);
	plan_net_done(&p->net);
	plan_broker_done(&p->broker);
	free(p->name);
	free(p->workspace);
	free(p->user);
	free(p->home);
	free(p->hostname);
	free(p->state_dir);
	free(p->worktree);
	free(p->cwd);
	free(p->engine);
	*p = (struct plan){ 0 };
}
