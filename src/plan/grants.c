/* SPDX-License-Identifier: Apache-2.0 */
/* plan/grants.c - what a policy adds to the view: files, directories and sockets of the host */
#include "base/path.h"
#include "base/sabotage.h"
#include "plan/parts.h"

static bool overlaps(const char *a, const char *b)
{
	return path_is_beneath(a, b) || path_is_beneath(b, a);
}

struct grant {
	const char *flag;
	const struct entry *what;
	const char *inside;
	bool is_write;
};

/* A grant may not hand out what the view exists to keep away. */
static int check_grant(const struct facts *f, const struct grant *g, struct err *e)
{
	const char *flag = g->flag, *path = g->what->path, *inside = g->inside;
	bool is_write = g->is_write;
	static const char *const no_write[] = { "/usr", "/etc",   "/bin", "/sbin",
						"/lib", "/lib64", "/boot" };

	if (str_eq(path, "/") || overlaps(f->state_dir, path))
		return err_set(e, ERR_USAGE, EINVAL,
			       "%s '%s': it would show Vitrine's own state inside", flag, path);
	if (is_write &&
	    (overlaps(f->config_dir, path) || (f->config_real && overlaps(f->config_real, path)) ||
	     (f->policy_real && path_is_beneath(f->policy_real, path))))
		return err_set(e, ERR_USAGE, EINVAL,
			       "%s '%s': what runs inside could write your policy", flag, path);
	if (!str_eq(path, inside) && overlaps(f->workspace, path))
		return err_set(e, ERR_USAGE, EINVAL,
			       "%s '%s': the workspace at a second place would lead around what is "
			       "hidden and protected in it",
			       flag, path);
	if (path_is_beneath(path, "/proc") || path_is_beneath(path, "/sys") ||
	    path_is_beneath(path, "/dev"))
		return err_set(e, ERR_USAGE, EINVAL,
			       "%s '%s': kernel file systems of the host do not go inside", flag,
			       path);
	if (is_write && path_is_beneath(f->home, path))
		return err_set(e, ERR_USAGE, EINVAL, "%s '%s': it holds your home directory", flag,
			       path);
	for (size_t i = 0; is_write && i < ARRAY_LEN(no_write); i++)
		if (path_is_beneath(path, no_write[i]))
			return err_set(e, ERR_USAGE, EINVAL,
				       "%s '%s': system directories stay read-only", flag, path);
	return 0;
}

/* What is granted for writing is protected as the workspace is. A grant that is itself, or lies in, what is protected would
 * be writable as a whole; of git dirs only the whole can be granted, because then their parts are known. */
static int check_protected(const struct policy *pol, const struct grant *g, struct err *e)
{
	_free_ char *head = mem_str(g->what->path + 1);
	bool is_git = false;

	if (sabotaged("grants"))
		return 0;
	for (size_t n = 0, all = strlen(head); n < all;) {
		const char *rule;
		int at;

		n += strcspn(head + n + (n > 0), "/") + (n > 0);
		head[n] = '\0';
		at = items_match(&pol->protect, head);
		rule = at < 0 ? NULL : pol->protect.v[at].text;
		is_git |= rule && str_eq(path_name(head), ".git");
		if (rule && (!is_git || n < all || g->what->kind != ENTRY_DIR))
			return err_set(e, ERR_USAGE, EPERM,
				       "%s '%.200s': '%.64s' is protected, because programs on the "
				       "host act on what lies there%s; --protect '!%.64s' allows "
				       "it",
				       g->flag, g->what->path, path_name(head),
				       is_git ? " (the whole .git directory can be granted: its "
						"hooks "
						"and config stay protected)"
					      : "",
				       rule);
		if (n < all)
			head[n] = '/';
	}
	if (g->what->gitdir && items_match(&pol->protect, ".git") >= 0)
		return err_set(e, ERR_USAGE, EPERM,
			       "%s '%.200s': it is a part of the repository '%.200s'; the whole "
			       "can "
			       "be granted, its hooks and config stay protected then",
			       g->flag, g->what->path, g->what->gitdir);
	return 0;
}

static int add_grant(struct plan *p, const struct policy *pol, const struct facts *f,
		     const struct grant *g, struct err *e)
{
	const struct entry *en = g->what;
	/* What belongs to ids of a root inside has them on disk as well. */
	bool is_mapped = p->ids.root == ROOT_NONE || en->uid - f->sub_uid >= SUBIDS_COUNT;
	unsigned flags = (en->kind == ENTRY_DIR ? MOUNT_DIR : 0) | (is_mapped ? MOUNT_IDMAP : 0) |
			 (g->is_write ? 0 : MOUNT_RO) | MOUNT_VERIFY;
	struct mount *m;
	int r = check_grant(f, g, e);

	if (r == 0 && g->is_write)
		r = check_protected(pol, g, e);
	if (r < 0)
		return r;
	if (en->kind != ENTRY_DIR && en->kind != ENTRY_FILE)
		return err_set(e, ERR_USAGE, EINVAL, "%s '%s': %s", g->flag, en->path,
			       en->kind == ENTRY_NONE ? "no such file or directory"
						      : "not a file or directory");
	if (!path_is_clean(g->inside) || str_eq(g->inside, "/"))
		return err_set(e, ERR_USAGE, EINVAL, "%s: '%s' is not an absolute path to mount on",
			       g->flag, g->inside);
	m = plan_add_mount(p, MOUNT_BIND, en->path, g->inside, flags, "granted");
	m->dev = en->dev;
	m->ino = en->ino;
	for (size_t i = 0; i < en->n_sockets; i++) {
		_free_ char *path = mem_fmt("%s/%s", g->inside, en->sockets[i]);

		plan_add_mount(p, MOUNT_HIDE, "file", path, MOUNT_GONE_OK, "host socket");
	}
	for (size_t i = 0; i < en->n_covers && !sabotaged("grants"); i++)
		plan_add_cover(p, &en->covers[i], en->path, g->inside);
	if (g->is_write)
		plan_add_access(p, ACCESS_WRITE, g->inside);
	return 0;
}

/* facts.extra holds one entry per item, in this order: read, write, mount. */
int plan_grants(struct plan *p, const struct policy *pol, const struct facts *f, struct err *e)
{
	const struct entry *en = f->extra.v;
	int r = 0;

	bug_on(f->extra.n != pol->read.n + pol->write.n + pol->mount.n);
	for (size_t i = 0; r == 0 && i < pol->read.n; i++, en++)
		r = add_grant(p, pol, f, &(struct grant){ "--read", en, en->path, false }, e);
	for (size_t i = 0; r == 0 && i < pol->write.n; i++, en++)
		r = add_grant(p, pol, f, &(struct grant){ "--write", en, en->path, true }, e);
	for (size_t i = 0; r == 0 && i < pol->mount.n; i++, en++) {
		const char *text = pol->mount.v[i].text;
		const char *mode = strrchr(text, ':');
		const char *colon = strchr(text, ':');
		_free_ char *inside = NULL;

		bug_on(mode == NULL || colon == NULL || mode == colon);
		inside = mem_strn(colon + 1, (size_t)(mode - colon) - 1);
		r = add_grant(p, pol, f, &(struct grant){ "-v", en, inside, str_eq(mode, ":rw") },
			      e);
	}
	return r;
}

const char *const plan_worktree_parts[] = { "objects", "objects/info", "objects/pack",
					    "hooks",   "info",         "config",
					    NULL };

/* Our copies at the repository's place; into them the host's objects, hooks, info and config, and the worktree's own
 * directory. Where a part does not exist ours is empty. */
void plan_add_worktree(struct plan *p, const struct facts *f)
{
	const struct plan_worktree *w = &f->worktree;
	_free_ char *git = NULL;
	struct mount *m;

	if (w->common == NULL || w->place == NULL)
		return;
	git = mem_fmt("%s/git", w->place);
	p->worktree = mem_str(w->place);
	plan_add_mount(p, MOUNT_BIND, sabotaged("repository") ? w->common : git, w->common,
		       MOUNT_DIR | MOUNT_IDMAP, "repository");
	for (size_t i = 0; plan_worktree_parts[i]; i++) {
		const char *name = plan_worktree_parts[i];
		_free_ char *path = mem_fmt("%s/%s", w->common, name);

		if (!(w->missing & BIT(i)))
			plan_add_mount(p, MOUNT_BIND, path, path,
				       MOUNT_IDMAP | (str_eq(name, "config") ? 0 : MOUNT_DIR) |
					       (str_eq(name, "objects") ? 0 : MOUNT_RO),
				       "repository");
	}
	m = plan_add_mount(p, MOUNT_BIND, w->own, w->own, MOUNT_DIR | MOUNT_IDMAP | MOUNT_VERIFY,
			   "worktree");
	m->dev = w->dev;
	m->ino = w->ino;
	for (size_t i = 0; i < w->n_covers; i++)
		plan_add_cover(p, &w->covers[i], w->own, w->own);
	plan_add_access(p, ACCESS_WRITE, w->common);
}

void plan_sockets(struct plan *p, const struct policy *pol)
{
	p->sockets = mem_new(pol->sockets.n, sizeof(*p->sockets));
	for (size_t i = 0; i < pol->sockets.n; i++) {
		_free_ char *ours =
			mem_fmt("%s/sandboxes/%s/" SOCKETS_NAME "%zu", p->state_dir, p->name, i);

		p->sockets[i].host = mem_str(pol->sockets.v[i].text);
		plan_add_mount(p, MOUNT_BIND, ours, p->sockets[i].host, 0, "socket");
		p->n_sockets++;
	}
}
