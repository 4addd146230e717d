/* SPDX-License-Identifier: Apache-2.0 */
/* plan/plan.c - policy + facts -> plan
 *
 * Read top to bottom: refuse what cannot be, then the view (skeleton, mounts, covers), the ids, the limits, the
 * environment. Mounts are collected in any order and sorted at the end so that a parent always precedes what
 * lies below it; only then is it known which mount points the skeleton needs.
 */
#include "plan/plan.h"

#include "base/path.h"
#include "base/sabotage.h"
#include "base/sha256.h"
#include "sys/cgroup.h"
#include "sys/netns.h"

/* Ids of a sandbox started by root: an ordinary user inside, and outside an id that no distribution hands out
 * (above systemd's container range, below 2^31), so that nothing on the host belongs to it. */
#define ROOT_UID_IN 1000
#define ROOT_UID_OUT 1888000001

static const char *const devices[] = { "null", "zero", "full", "random", "urandom", "tty" };

const char *enforcer_name(enum enforcer by)
{
	static const char *const names[BY_COUNT_] = { "none", "watched", "kernel" };

	bug_on(by >= BY_COUNT_);
	return names[by];
}

bool plan_is_review(const struct plan *p)
{
	for (size_t i = 0; i < p->n_mounts; i++)
		if (p->mounts[i].kind == MOUNT_OVERLAY && str_eq(p->mounts[i].dst, p->workspace))
			return true;
	return false;
}

bool plan_needs_samples(const struct plan *p)
{
	const struct plan_limit *l = p->limits;

	return (l[LIMIT_MEMORY].is_set && l[LIMIT_MEMORY].by == BY_WATCHED) ||
	       (l[LIMIT_PIDS].is_set && l[LIMIT_PIDS].by == BY_WATCHED) ||
	       l[LIMIT_CPU_TIME].is_set || l[LIMIT_IDLE].is_set;
}

/* ---- small builders ---- */

static struct mount *add_mount(struct plan *p, enum mount_kind kind, const char *src,
			       const char *dst, unsigned flags, const char *why)
{
	vec_reserve(p->mounts, p->n_mounts, p->cap_mounts);
	p->mounts[p->n_mounts] = (struct mount){
		.kind = kind, .flags = flags, .src = mem_str(src), .dst = mem_str(dst), .why = why
	};
	return &p->mounts[p->n_mounts++];
}

static struct skel *add_skel(struct plan *p, enum skel_kind kind, const char *path,
			     const char *text)
{
	while (*path == '/')
		path++;
	for (size_t i = 0; i < p->n_skel; i++)
		if (str_eq(p->skel[i].path, path))
			return &p->skel[i];
	vec_reserve(p->skel, p->n_skel, p->cap_skel);
	p->skel[p->n_skel] = (struct skel){ .kind = kind,
					    .path = mem_str(path),
					    .text = mem_str(text),
					    .mode = kind == SKEL_DIR ? 0755 : 0644 };
	return &p->skel[p->n_skel++];
}

static void add_access(struct plan *p, enum access_kind kind, const char *path)
{
	vec_reserve(p->access, p->n_access, p->cap_access);
	p->access[p->n_access++] = (struct access){ .kind = kind, .path = mem_str(path) };
}

static void add_env(struct plan *p, const char *kv)
{
	size_t key = strcspn(kv, "=") + 1;

	for (size_t i = 0; i < p->n_env; i++) {
		if (strncmp(p->env[i], kv, key) == 0) {
			free(p->env[i]);
			p->env[i] = mem_str(kv);
			return;
		}
	}
	p->env = mem_grow(p->env, p->n_env + 2, sizeof(*p->env));
	p->env[p->n_env++] = mem_str(kv);
	p->env[p->n_env] = NULL;
}

static void add_env_kv(struct plan *p, const char *key, const char *value)
{
	_free_ char *kv = mem_fmt("%s=%s", key, value);

	add_env(p, kv);
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

/* The layers, then the overlay that shows them as one. */
static void add_overlay(struct plan *p, char *const *layers, const char *dst, unsigned idmap,
			const char *why)
{
	for (size_t i = 0; layers[i]; i++)
		add_mount(p, MOUNT_LAYER, layers[i], dst, MOUNT_DIR | idmap | (i ? MOUNT_RO : 0),
			  i ? "frozen" : "written");
	add_mount(p, MOUNT_OVERLAY, "overlay", dst, MOUNT_DIR, why);
}

static const char *source_of(const struct entry *en)
{
	return en->src ? en->src : en->path;
}

/* The sandbox's layers above a tree of the template. */
static struct mount *add_system(struct plan *p, const struct facts *f, const char *src,
				const char *dst, unsigned idmap)
{
	struct mount *lowest, overlay;

	add_overlay(p, f->sys_layers, dst, idmap, "template, kept");
	lowest = add_mount(p, MOUNT_LAYER, src, dst, MOUNT_DIR | idmap | MOUNT_RO, "template");
	overlay = lowest[-1];
	lowest[-1] = *lowest;
	*lowest = overlay;
	return lowest;
}

/* What is written in the /usr of a template stays with the sandbox. All of it belongs to its user, so nobody needs to
 * be root for that. */
static void plan_usr(struct plan *p, const struct facts *f, const struct entry *en)
{
	(void)add_system(p, f, en->src, en->path, MOUNT_IDMAP);
	add_access(p, ACCESS_WRITE, en->path);
}

/* A template with ids of its own: all of its root is one overlay, and its directories are parts of that. On disk the files
 * have the very ids that they have outside, so nothing is mapped. */
static void plan_own_root(struct plan *p, const struct facts *f)
{
	add_system(p, f, f->root_dir, PLAN_SYSTEM, 0)->flags |= MOUNT_SUID;
	for (size_t i = 0; i < f->root.n; i++) {
		const struct entry *en = &f->root.v[i];
		_free_ char *src = mem_fmt("%s%s", PLAN_SYSTEM + 1, en->path);

		if (en->kind == ENTRY_LINK)
			add_skel(p, SKEL_LINK, en->path, en->target);
		if (en->kind != ENTRY_DIR || str_eq(en->path, p->home))
			continue;
		add_mount(p, MOUNT_PART, src, en->path, MOUNT_DIR | MOUNT_OWN | MOUNT_SUID,
			  "template, kept");
		add_access(p, ACCESS_WRITE, en->path);
	}
}

static void plan_root(struct plan *p, const struct facts *f)
{
	if (p->ids.root == ROOT_SETUID) {
		plan_own_root(p, f);
		return;
	}
	for (size_t i = 0; i < f->root.n; i++) {
		const struct entry *en = &f->root.v[i];

		if (en->kind == ENTRY_DIR && en->src && f->sys_layers && str_eq(en->path, "/usr"))
			plan_usr(p, f, en);
		else if (en->kind == ENTRY_DIR)
			add_mount(p, MOUNT_BIND, source_of(en), en->path,
				  MOUNT_RO | MOUNT_DIR | (en->src ? MOUNT_IDMAP : 0),
				  en->src ? "template" : "system");
		else if (en->kind == ENTRY_LINK)
			add_skel(p, SKEL_LINK, en->path, en->target);
	}
}

/* What is hidden is also ignored by git, so that `git add -A` passes over it instead of failing to read it. The two
 * kinds of pattern mean the same. Names that git tracks are not touched by this. */
static void plan_git(struct plan *p, const struct policy *pol, const char *dir)
{
	_cleanup_(buf_done) struct buf ignore = BUF(MIB), config = BUF(MIB);
	_free_ char *ignore_path = mem_fmt("%s/gitignore", dir);
	_free_ char *config_path = mem_fmt("%s/gitconfig", dir);

	for (size_t i = 0; i < pol->hide.n; i++)
		buf_printf(&ignore, "%s\n", pol->hide.v[i].text);
	add_skel(p, SKEL_FILE, ignore_path, buf_cstr(&ignore));
	buf_puts(&config, "[core]\n\texcludesFile = /etc/gitignore\n");
	plan_broker_git(&p->broker, &config);
	add_skel(p, SKEL_FILE, config_path, buf_cstr(&config));
}

static char *text_resolv(const struct policy *pol)
{
	return mem_str(pol->network == NET_GATE ? "nameserver 127.0.0.1\noptions timeout:10 "
						  "attempts:2\n"
						: "# no name server: this sandbox has no "
						  "network\n");
}

static char *text_hosts(const struct plan *p)
{
	return mem_fmt("127.0.0.1 localhost %s\n::1 localhost ip6-localhost\n", p->hostname);
}

/* A root of its own has an /etc of its own, with its users in it. Of ours only what says where it is lies above that. */
static void plan_own_etc(struct plan *p, const struct policy *pol)
{
	static const char *const names[] = { "gitconfig", "gitignore", "hostname", "hosts",
					     "resolv.conf" };
	_free_ char *hosts = text_hosts(p), *resolv = text_resolv(pol);

	add_skel(p, SKEL_DIR, "etc", "");
	plan_git(p, pol, ".vitrine/etc");
	add_skel(p, SKEL_FILE, ".vitrine/etc/hosts", hosts);
	add_skel(p, SKEL_FILE, ".vitrine/etc/hostname", "vitrine\n");
	add_skel(p, SKEL_FILE, ".vitrine/etc/resolv.conf", resolv);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		_free_ char *src = mem_fmt(".vitrine/etc/%s", names[i]);
		_free_ char *dst = mem_fmt("/etc/%s", names[i]);

		add_mount(p, MOUNT_PART, src, dst, MOUNT_RO | MOUNT_GONE_OK, "sandbox");
	}
}

static void plan_etc(struct plan *p, const struct policy *pol, const struct facts *f)
{
	_free_ char *passwd =
		mem_fmt("root:x:0:0:root:/root:/usr/sbin/nologin\n"
			"%s:x:%u:%u:%s:%s:%s\n"
			"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/"
			"nologin\n",
			p->user, p->ids.uid_in, p->ids.gid_in, p->user, p->home, f->shell);
	_free_ char *group =
		mem_fmt("root:x:0:\n%s:x:%u:\nnogroup:x:65534:\n", p->user, p->ids.gid_in);
	_free_ char *hosts = text_hosts(p), *resolv = text_resolv(pol);

	add_skel(p, SKEL_DIR, "etc", "");
	plan_git(p, pol, "etc");
	for (size_t i = 0; i < f->etc.n; i++) {
		const struct entry *en = &f->etc.v[i];

		if (en->kind == ENTRY_DIR)
			add_mount(p, MOUNT_BIND, source_of(en), en->path,
				  MOUNT_RO | MOUNT_DIR | (en->src ? MOUNT_IDMAP : 0),
				  en->src ? "template" : "system");
		else if (en->kind == ENTRY_LINK)
			add_skel(p, SKEL_LINK, en->path, en->target);
		else if (en->kind == ENTRY_FILE)
			add_skel(p, SKEL_COPY, en->path, source_of(en))->stamp =
				en->mtime_ns ^ (en->size << 40) ^ (en->ino << 20);
	}
	add_skel(p, SKEL_FILE, "etc/passwd", passwd);
	add_skel(p, SKEL_FILE, "etc/group", group);
	add_skel(p, SKEL_FILE, "etc/hosts", hosts);
	add_skel(p, SKEL_FILE, "etc/hostname", "vitrine\n");
	add_skel(p, SKEL_FILE, "etc/resolv.conf", resolv);
	add_skel(p, SKEL_FILE, "etc/host.conf", "multi on\n");
	add_skel(p, SKEL_FILE, "etc/nsswitch.conf",
		 "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: "
		 "files\nprotocols: files\n");
	/* The same for every sandbox: the host's own would identify the machine. */
	add_skel(p, SKEL_FILE, "etc/machine-id", "76697472696e650076697472696e6500\n");
}

static void plan_dev(struct plan *p)
{
	static const char *const links[][2] = {
		{ "dev/fd", "/proc/self/fd" },
		{ "dev/stdin", "/proc/self/fd/0" },
		{ "dev/stdout", "/proc/self/fd/1" },
		{ "dev/stderr", "/proc/self/fd/2" },
		{ "dev/ptmx", "pts/ptmx" },
		{ "etc/mtab", "/proc/self/mounts" },
		{ "var/run", "../run" },
		{ "var/lock", "../run" },
	};

	for (size_t i = 0; i < ARRAY_LEN(devices); i++) {
		_free_ char *path = mem_fmt("/dev/%s", devices[i]);

		add_mount(p, MOUNT_DEVICE, path, path, 0, "device");
	}
	add_access(p, ACCESS_DEVICE, "/dev");
	/* By itself too: as the caller's stdin it lies in the host's /dev, and /dev/stdin must still open. */
	add_access(p, ACCESS_DEVICE, "/dev/null");
	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		add_skel(p, SKEL_LINK, links[i][0], links[i][1]);
	add_mount(p, MOUNT_PTS, "devpts", "/dev/pts", MOUNT_DIR, "terminals");
	add_mount(p, MOUNT_PROC, "proc", "/proc", MOUNT_DIR, "processes");
	add_access(p, ACCESS_PROC, "/proc");
	/* Keys of the user's session keyring are described here even to those who may not read them. What only the
	 * host's root may open (kcore, timer_list, sysrq-trigger) needs no cover: no id inside is the host's root. */
	add_mount(p, MOUNT_HIDE, "file", "/proc/keys", MOUNT_GONE_OK, "kernel");
	add_mount(p, MOUNT_HIDE, "file", "/proc/key-users", MOUNT_GONE_OK, "kernel");
}

static void plan_private(struct plan *p, const struct policy *pol, const struct facts *f)
{
	static const char *const places[][2] = {
		{ "tmp", "/tmp" },
		{ "var-tmp", "/var/tmp" },
		{ "shm", "/dev/shm" },
		{ "run", "/run" },
	};

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		add_mount(p, MOUNT_PRIVATE, places[i][0], places[i][1], MOUNT_DIR | MOUNT_OWN,
			  "private");
		add_access(p, ACCESS_WRITE, places[i][1]);
	}
	if (p->is_named && pol->home == HOME_PRIVATE && f->home_layers) {
		add_overlay(p, f->home_layers, p->home, MOUNT_IDMAP, "home, kept");
		p->mounts[p->n_mounts - 1].flags |= MOUNT_OWN;
	} else if (p->is_named && pol->home == HOME_PRIVATE) {
		_free_ char *kept = mem_fmt("%s/sandboxes/%s/home", p->state_dir, p->name);

		add_mount(p, MOUNT_BIND, kept, p->home, MOUNT_DIR | MOUNT_OWN | MOUNT_IDMAP,
			  "home, kept");
	} else {
		add_mount(p, MOUNT_PRIVATE, "home", p->home, MOUNT_DIR | MOUNT_OWN, "home");
	}
	add_access(p, ACCESS_WRITE, p->home);
}

static void plan_tools(struct plan *p, const struct facts *f)
{
	for (size_t i = 0; i < f->tools.n; i++) {
		const struct entry *en = &f->tools.v[i];
		bool is_secret = false;

		if (path_is_beneath(f->workspace, en->path) ||
		    path_is_beneath(en->path, f->workspace))
			continue; /* the workspace's own rules decide there */
		for (const char *const *s = plan_secret_paths; *s; s++)
			is_secret |= str_ends(en->path, *s);
		if (is_secret && (en->kind == ENTRY_FILE || en->kind == ENTRY_DIR))
			add_mount(p, MOUNT_HIDE, en->kind == ENTRY_DIR ? "dir" : "file", en->path,
				  MOUNT_GONE_OK | (en->kind == ENTRY_DIR ? MOUNT_DIR : 0),
				  "credential");
		else if (en->kind == ENTRY_DIR)
			add_mount(p, MOUNT_BIND, en->path, en->path,
				  MOUNT_RO | MOUNT_DIR | MOUNT_IDMAP, "toolchain");
	}
}

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
	if (is_write && overlaps(f->config_dir, path))
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

static int add_grant(struct plan *p, const struct facts *f, const struct grant *g, struct err *e)
{
	const struct entry *en = g->what;
	/* What belongs to ids of a root inside has them on disk as well. */
	bool is_mapped = p->ids.root == ROOT_NONE || en->uid - f->sub_uid >= SUBIDS_COUNT;
	unsigned flags = (en->kind == ENTRY_DIR ? MOUNT_DIR : 0) | (is_mapped ? MOUNT_IDMAP : 0) |
			 (g->is_write ? 0 : MOUNT_RO);
	int r = check_grant(f, g, e);

	if (r < 0)
		return r;
	if (en->kind != ENTRY_DIR && en->kind != ENTRY_FILE)
		return err_set(e, ERR_USAGE, EINVAL, "%s '%s': %s", g->flag, en->path,
			       en->kind == ENTRY_NONE ? "no such file or directory"
						      : "not a file or directory");
	if (!path_is_clean(g->inside) || str_eq(g->inside, "/"))
		return err_set(e, ERR_USAGE, EINVAL, "%s: '%s' is not an absolute path to mount on",
			       g->flag, g->inside);
	add_mount(p, MOUNT_BIND, en->path, g->inside, flags, "granted");
	for (size_t i = 0; i < en->n_sockets; i++) {
		_free_ char *path = mem_fmt("%s/%s", g->inside, en->sockets[i]);

		add_mount(p, MOUNT_HIDE, "file", path, MOUNT_GONE_OK, "host socket");
	}
	if (g->is_write)
		add_access(p, ACCESS_WRITE, g->inside);
	return 0;
}

/* facts.extra holds one entry per item, in this order: read, write, mount. */
static int plan_grants(struct plan *p, const struct policy *pol, const struct facts *f,
		       struct err *e)
{
	const struct entry *en = f->extra.v;
	int r = 0;

	bug_on(f->extra.n != pol->read.n + pol->write.n + pol->mount.n);
	for (size_t i = 0; r == 0 && i < pol->read.n; i++, en++)
		r = add_grant(p, f, &(struct grant){ "--read", en, en->path, false }, e);
	for (size_t i = 0; r == 0 && i < pol->write.n; i++, en++)
		r = add_grant(p, f, &(struct grant){ "--write", en, en->path, true }, e);
	for (size_t i = 0; r == 0 && i < pol->mount.n; i++, en++) {
		const char *text = pol->mount.v[i].text;
		const char *mode = strrchr(text, ':');
		const char *colon = strchr(text, ':');
		_free_ char *inside = NULL;

		bug_on(mode == NULL || colon == NULL || mode == colon);
		inside = mem_strn(colon + 1, (size_t)(mode - colon) - 1);
		r = add_grant(p, f, &(struct grant){ "-v", en, inside, str_eq(mode, ":rw") }, e);
	}
	return r;
}

static void plan_sockets(struct plan *p, const struct policy *pol)
{
	p->sockets = mem_new(pol->sockets.n, sizeof(*p->sockets));
	for (size_t i = 0; i < pol->sockets.n; i++) {
		_free_ char *ours =
			mem_fmt("%s/sandboxes/%s/" SOCKETS_NAME "%zu", p->state_dir, p->name, i);

		p->sockets[i].host = mem_str(pol->sockets.v[i].text);
		add_mount(p, MOUNT_BIND, ours, p->sockets[i].host, 0, "socket");
		p->n_sockets++;
	}
}

static void add_tool(struct plan *p, const char *name)
{
	_free_ char *path = mem_fmt(PLAN_TOOLS "/%s", name);

	add_skel(p, SKEL_LINK, path, "vitrine-tools");
}

/* The program itself is copied into the skeleton: nothing is mounted for it. */
static void plan_safe_tools(struct plan *p, const struct policy *pol, const struct facts *f)
{
	const struct entry *en = &f->tools_exe;
	struct skel *s;

	if (en->path == NULL)
		return;
	s = add_skel(p, SKEL_COPY, PLAN_TOOLS "/vitrine-tools", en->path);
	s->mode = 0755;
	s->stamp = en->mtime_ns ^ (en->size << 40) ^ (en->ino << 20);
	for (size_t i = 0; plan_wants_tools(pol, p->is_named) && plan_tool_names[i][0]; i++) {
		bool is_off = false;

		for (size_t k = 0; k < pol->tools_off.n; k++)
			is_off |= str_eq(pol->tools_off.v[k].text, plan_tool_names[i]);
		if (!is_off)
			add_tool(p, plan_tool_names[i]);
	}
	for (size_t i = 0; p->broker.n_rules > 0 && plan_broker_names[i][0]; i++)
		add_tool(p, plan_broker_names[i]);
	if (p->broker.is_self)
		add_tool(p, "vitrine-checkpoint");
	if (p->broker.is_on) {
		_free_ char *ours = mem_fmt("%s/sandboxes/%s/" BROKER_NAME, p->state_dir, p->name);

		add_mount(p, MOUNT_BIND, ours, PLAN_BROKER, 0, "broker");
	}
}

static bool is_socket(const struct plan *p, const char *path)
{
	for (size_t i = 0; i < p->n_sockets; i++)
		if (str_eq(p->sockets[i].host, path))
			return true;
	return false;
}

static void plan_covers(struct plan *p, const struct facts *f)
{
	for (size_t i = 0; i < f->n_covers; i++) {
		const struct cover *c = &f->covers[i];
		_free_ char *path = mem_fmt("%s/%s", p->workspace, c->rel);
		unsigned flags = MOUNT_GONE_OK | (c->is_dir ? MOUNT_DIR : 0);

		if (is_socket(p, path))
			continue; /* ours lies there already */
		switch (c->kind) {
		case COVER_HIDE:
			add_mount(p, MOUNT_HIDE, c->is_dir ? "dir" : "file", path, flags, c->rule);
			break;
		case COVER_PROTECT:
			add_mount(p, MOUNT_PROTECT, path, path, flags | MOUNT_RO, c->rule);
			break;
		case COVER_PIN:
			add_mount(p, MOUNT_PIN, path, path, flags, "ancestor");
			break;
		case COVER_KIND_COUNT_:
			bug_on(true);
		}
	}
	/* A Vitrine built or installed inside the workspace must not be replaced by what it runs. */
	if (path_is_beneath(f->self_exe, p->workspace))
		add_mount(p, MOUNT_PROTECT, f->self_exe, f->self_exe, MOUNT_RO | MOUNT_GONE_OK,
			  "Vitrine itself");
}

/* Parents before children: compare component by component, so that "/a/b" < "/a/b/c" < "/a/b-c". */
static int cmp_paths(const char *a, const char *b)
{
	for (; *a && *a == *b; a++, b++)
		;
	if (*a == *b)
		return 0;
	if (*a == '\0' || (*a == '/' && *b != '\0'))
		return -1;
	if (*b == '\0' || *b == '/')
		return 1;
	return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
}

/* Merge sort: stable, and parents of thousands of covers stay cheap. */
static void sort_mounts(struct mount *v, struct mount *tmp, size_t n)
{
	size_t mid = n / 2, i = 0, k = mid, at = 0;

	if (n < 2)
		return;
	sort_mounts(v, tmp, mid);
	sort_mounts(v + mid, tmp, n - mid);
	while (i < mid || k < n)
		tmp[at++] =
			k == n || (i < mid && cmp_paths(v[i].dst, v[k].dst) <= 0) ? v[i++] : v[k++];
	memcpy(v, tmp, n * sizeof(*v));
}

/* The mount that mount `at` will lie in, or NULL for the skeleton. */
static const struct mount *holder_of(const struct plan *p, size_t at)
{
	for (size_t i = at; i-- > 0;)
		if (path_is_beneath(p->mounts[at].dst, p->mounts[i].dst) &&
		    (p->mounts[i].flags & MOUNT_DIR) && p->mounts[i].kind != MOUNT_LAYER)
			return &p->mounts[i];
	return NULL;
}

static bool is_cover(const struct mount *m)
{
	return m->kind == MOUNT_HIDE || m->kind == MOUNT_PROTECT || m->kind == MOUNT_PIN;
}

static void plan_mount_points(struct plan *p)
{
	_free_ struct mount *tmp = mem_new(p->n_mounts, sizeof(*tmp));

	sort_mounts(p->mounts, tmp, p->n_mounts);
	for (size_t i = 0; i < p->n_mounts; i++) {
		struct mount *m = &p->mounts[i];
		const struct mount *holder;

		if (is_cover(m) || m->kind == MOUNT_LAYER ||
		    ((m->kind == MOUNT_BIND || m->kind == MOUNT_PART) &&
		     (m->flags & MOUNT_GONE_OK)))
			continue; /* only ever over what exists; nowhere */
		holder = holder_of(p, i);
		if (holder == NULL) {
			add_skel(p, m->flags & MOUNT_DIR ? SKEL_DIR : SKEL_FILE, m->dst, "");
			m->flags |= MOUNT_SKEL;
		} else if (holder->flags & MOUNT_OWN) {
			m->flags |= MOUNT_MKDIR;
		}
	}
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

/* Places where layers are for as long as it takes to make an overlay of them. */
static void plan_layers(struct plan *p)
{
	size_t most = 0, n = 0;

	for (size_t i = 0; i < p->n_mounts; i++) {
		n = p->mounts[i].kind == MOUNT_LAYER ? n + 1 : 0;
		most = n > most ? n : most;
	}
	for (size_t i = 0; i < most; i++) {
		_free_ char *path = mem_fmt(".vitrine/layers/%zu", i);

		add_skel(p, SKEL_DIR, path, "");
	}
}

/* The skeleton's name: equal names hold equal trees. */
static void skel_name(struct plan *p)
{
	_cleanup_(buf_done) struct buf b = BUF(16 * MIB);
	char hex[SHA256_HEX_BYTES];

	for (size_t i = 0; i < p->n_skel; i++) {
		const struct skel *s = &p->skel[i];

		buf_add(&b, &s->kind, sizeof(s->kind));
		buf_add(&b, &s->mode, sizeof(s->mode));
		buf_add(&b, &s->stamp, sizeof(s->stamp));
		buf_add(&b, s->path, strlen(s->path) + 1);
		buf_add(&b, s->text, strlen(s->text) + 1);
	}
	bug_on(b.is_over);
	sha256_hex(b.p, b.n, hex);
	memcpy(p->skel_key, hex, sizeof(p->skel_key) - 1);
}

/* ---- ids, limits ---- */

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
			   .uid_out = f->is_root ? ROOT_UID_OUT : f->uid,
			   .gid_out = f->is_root ? ROOT_UID_OUT : f->gid,
			   .uid_in = f->is_root ? ROOT_UID_IN : f->uid,
			   .gid_in = f->is_root ? ROOT_UID_IN : f->gid };

	if (f->inner_root != ROOT_NONE)
		own_ids(&ids, f);
	return ids;
}

static void plan_names(struct plan *p, const struct facts *f)
{
	p->ids = plan_ids(f);
	p->user = mem_str(f->is_root ? "agent" : f->user);
	p->home = mem_str(f->home);
	p->hostname = mem_str("vitrine");
}

static struct plan_limit decide(enum limit_id id, const struct facts *f)
{
	struct plan_limit l = { 0 };
	unsigned cg = f->cgroup_usable;

	switch (id) {
	case LIMIT_MEMORY:
		l.by = cg & BIT(CG_MEMORY) || f->engine_has_cgroups ? BY_KERNEL : BY_WATCHED;
		l.how = f->engine_has_cgroups ? "the engine's control group"
			: cg & BIT(CG_MEMORY) ? "cgroup"
					      : "keeper samples every 50 ms";
		break;
	case LIMIT_CPUS:
		l.by = cg & BIT(CG_CPU) || f->engine_has_cgroups ? BY_KERNEL : BY_NONE;
		l.how = f->engine_has_cgroups ? "the engine's control group"
			: cg & BIT(CG_CPU)    ? "cgroup"
					      : "no cpu controller";
		break;
	case LIMIT_PIDS: /* the kernel counts for each id; with many ids there are many counts */
		l.by = f->has_own_kernel || f->inner_root != ROOT_NONE ? BY_WATCHED : BY_KERNEL;
		l.how = l.by == BY_WATCHED ? "keeper samples every 50 ms"
					   : "rlimit of the user namespace";
		break;
	case LIMIT_DISK:
		l.by = BY_KERNEL;
		l.how = "sized tmpfs";
		break;
	case LIMIT_IO_READ:
	case LIMIT_IO_WRITE:
		l.by = cg & BIT(CG_IO) && !f->engine_has_cgroups ? BY_KERNEL : BY_NONE;
		l.how = l.by == BY_KERNEL ? "cgroup" : "no block I/O controller";
		break;
	case LIMIT_OPEN_FILES:
		l.by = BY_KERNEL;
		l.how = "rlimit";
		break;
	case LIMIT_CPU_TIME:
		l.by = BY_KERNEL;
		l.how = "rlimit per process, keeper for the sum";
		break;
	case LIMIT_TIME:
	case LIMIT_OUTPUT:
		l.by = BY_KERNEL;
		l.how = "keeper ends the pid namespace";
		break;
	case LIMIT_IDLE:
		l.by = BY_WATCHED;
		l.how = "keeper";
		break;
	case LIMIT_EVENTS_AGE:
	case LIMIT_EVENTS_SIZE:
	case LIMIT_ALL_:
		bug_on(true);
	}
	return l;
}

static int plan_limits(struct plan *p, const struct policy *pol, const struct facts *f,
		       struct err *e)
{
	for (enum limit_id id = 0; id < LIMIT_COUNT_; id++) {
		const struct limit *want = &pol->limits[id];
		struct plan_limit *l = &p->limits[id];

		if (!want->is_set)
			continue;
		*l = decide(id, f);
		if (id == LIMIT_DISK && p->is_named && pol->home == HOME_PRIVATE) {
			l->by = BY_NONE;
			l->how = "a kept home lies on the disk";
		}
		l->is_set = true;
		l->max = want->max;
		if (id == LIMIT_OPEN_FILES && l->max > f->hard_open_files)
			l->max = f->hard_open_files;
		if (l->by != BY_KERNEL && id != LIMIT_IDLE && !want->is_optional)
			return err_set(e, ERR_UNSUPPORTED, ENOTSUP,
				       "limit %s: the kernel cannot enforce it here (%s; %s); add "
				       "',optional' to accept "
				       "'%s'",
				       limit_name(id), l->how,
				       f->cgroup_why ? f->cgroup_why : "no control group",
				       enforcer_name(l->by));
		if (l->by == BY_KERNEL && str_eq(l->how, "cgroup"))
			p->has_cgroup = true;
	}
	p->private_bytes = p->limits[LIMIT_DISK].is_set ? p->limits[LIMIT_DISK].max : 0;
	p->private_inodes = p->private_bytes ? p->private_bytes / 4096 + 1024 : 0;
	return 0;
}

/* ---- the sandbox's CA ---- */

static void plan_trust(struct plan *p, const struct facts *f)
{
	_free_ char *java = NULL;

	if (!p->net.has_seal)
		return;
	p->net.bundle = mem_fmt("%s/sandboxes/%s/ca-bundle.pem", p->state_dir, p->name);
	add_mount(p, MOUNT_BIND, p->net.bundle, PLAN_BUNDLE, MOUNT_RO, "sandbox CA");
	p->net.has_java = f->has_java;
	java = mem_fmt("%s/sandboxes/%s/ca-bundle.jks", p->state_dir, p->name);
	if (f->has_java)
		add_mount(p, MOUNT_BIND, java, PLAN_BUNDLE_JAVA, MOUNT_RO, "sandbox CA");
	for (const char *const *v = plan_trust_files; *v; v++)
		add_mount(p, MOUNT_BIND, p->net.bundle, *v, MOUNT_RO | MOUNT_GONE_OK, "sandbox CA");
}

/* A login of the host: its file, with placeholders, where the agent looks for it. */
static void plan_logins(struct plan *p, const struct facts *f)
{
	for (size_t i = 0; p->net.has_seal && i < f->n_secrets; i++) {
		const struct secret_fact *s = &f->secrets[i];
		_free_ char *src = NULL, *dst = NULL;

		if (s->file == NULL)
			continue;
		p->net.logins =
			mem_grow(p->net.logins, p->net.n_logins + 3, sizeof(*p->net.logins));
		p->net.logins[p->net.n_logins++] = mem_fmt("login-%s", s->name);
		p->net.logins[p->net.n_logins++] = mem_str(s->text);
		p->net.logins[p->net.n_logins] = NULL;
		src = mem_fmt("%s/sandboxes/%s/login-%s", p->state_dir, p->name, s->name);
		dst = path_join(p->home, s->file);
		add_mount(p, MOUNT_BIND, src, dst, MOUNT_RO, "login, as placeholders");
	}
}

/* ---- environment ---- */

/* Programs that know proxies are told of ours; the others come to it by themselves. */
static void plan_proxy_env(struct plan *p)
{
	static const char *const http[] = { "HTTP_PROXY",  "HTTPS_PROXY", "http_proxy",
					    "https_proxy", "ALL_PROXY",   "all_proxy" };
	static const char *const no[] = { "NO_PROXY", "no_proxy" };
	char url[40];

	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d", NETNS_PROXY_PORT);
	for (size_t i = 0; i < ARRAY_LEN(http); i++)
		add_env_kv(p, http[i], url);
	for (size_t i = 0; i < ARRAY_LEN(no); i++)
		add_env_kv(p, no[i], "localhost,127.0.0.1,::1");
}

/* For OpenTelemetry, in the one form every exporter has; and for `vitrine hook`. */
static void plan_receiver_env(struct plan *p)
{
	static const char *const exporters[] = { "OTEL_LOGS_EXPORTER", "OTEL_METRICS_EXPORTER",
						 "OTEL_TRACES_EXPORTER" };
	char url[40], port[8];

	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d", NETNS_TELEMETRY_PORT);
	(void)snprintf(port, sizeof(port), "%d", NETNS_TELEMETRY_PORT);
	for (size_t i = 0; i < ARRAY_LEN(exporters); i++)
		add_env_kv(p, exporters[i], "otlp");
	add_env_kv(p, "OTEL_EXPORTER_OTLP_ENDPOINT", url);
	add_env_kv(p, "OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf");
	add_env_kv(p, "VITRINE_EVENTS", port);
}

/* Safe tools stand first, whoever set the rest. */
static void plan_tools_path(struct plan *p)
{
	for (size_t i = 0; i < p->n_env; i++)
		if (str_starts(p->env[i], "PATH=")) {
			_free_ char *kv = mem_fmt("PATH=" PLAN_TOOLS ":%s", p->env[i] + 5);

			add_env(p, kv);
			add_env_kv(p, "VITRINE_WORKSPACE", p->workspace);
			return;
		}
}

static void plan_env(struct plan *p, const struct policy *pol, const struct facts *f)
{
	add_env_kv(p, "PATH", "/usr/local/bin:/usr/bin:/bin");
	for (char *const *v = f->environ; v && *v; v++) {
		_free_ char *name = mem_strn(*v, strcspn(*v, "="));

		if (strchr(*v, '=') && (policy_env_passes(pol, name) || sabotaged("env")))
			add_env(p, *v);
	}
	add_env_kv(p, "HOME", p->home);
	add_env_kv(p, "USER", p->user);
	add_env_kv(p, "LOGNAME", p->user);
	add_env_kv(p, "PWD", p->cwd);
	add_env_kv(p, "container", "vitrine");
	add_env_kv(p, "VITRINE", p->name);
	if (p->net.has_gate)
		plan_proxy_env(p);
	if (p->net.has_receiver)
		plan_receiver_env(p);
	for (const char *const *v = plan_trust_vars; p->net.has_seal && *v; v++)
		add_env_kv(p, *v, PLAN_BUNDLE);
	if (p->net.has_java)
		add_env_kv(p, "JAVA_TOOL_OPTIONS", plan_trust_java);
	for (size_t i = 0; p->net.has_gate && i < f->n_secrets; i++)
		for (size_t k = 0; k < f->secrets[i].n_env; k++)
			add_env_kv(p, f->secrets[i].env[k], f->secrets[i].placeholder);
	for (size_t i = 0; i < pol->env_set.n; i++)
		add_env(p, pol->env_set.v[i].text);
	if (f->tools_exe.path)
		plan_tools_path(p);
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

/* The engine's program runs outside, as the user: it gets what it needs to find its own things, and no more. */
static const char *const engine_vars[] = { "XDG_RUNTIME_DIR",   "DOCKER_HOST",
					   "DOCKER_CONTEXT",    "DOCKER_CONFIG",
					   "CONTAINER_HOST",    "DBUS_SESSION_BUS_ADDRESS",
					   "VITRINE_VM_KERNEL", "VITRINE_VM_MODULES" };

static void plan_engine(struct plan *p, const struct facts *f)
{
	size_t n = 0;

	add_mount(p, MOUNT_BIND, f->init_exe, "/.vitrine/init", MOUNT_RO, "init");
	p->engine_env = mem_new(ARRAY_LEN(engine_vars) + 5, sizeof(*p->engine_env));
	p->engine_env[n++] = mem_str("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/"
				     "sbin:/bin");
	p->engine_env[n++] = mem_fmt("HOME=%s", f->home);
	for (size_t i = 0; i < ARRAY_LEN(engine_vars); i++)
		for (char *const *v = f->environ; v && *v; v++)
			if (str_starts(*v, engine_vars[i]) && (*v)[strlen(engine_vars[i])] == '=') {
				p->engine_env[n++] = mem_str(*v);
				break; /* a caller may name one twice */
			}
	/* What podman keeps for itself lies with our state and not in the user's home. */
	if (str_eq(p->engine, "podman")) {
		p->engine_env[n++] = mem_fmt("XDG_CONFIG_HOME=%s/podman/config", f->state_dir);
		p->engine_env[n++] = mem_fmt("XDG_DATA_HOME=%s/podman/data", f->state_dir);
	}
}

/* In review mode the host's directory is the lowest layer, read-only: what is written goes above it. A clone has
 * layers only, and beside them the commits it was made from. */
static void plan_workspace(struct plan *p, const struct policy *pol, const struct facts *f)
{
	bool is_review = pol->mode == WS_REVIEW && !sabotaged("review");
	struct mount *ws;

	if (pol->mode == WS_CLONE && !sabotaged("clone")) {
		add_overlay(p, f->ws_layers, p->workspace, MOUNT_IDMAP, "workspace, a clone");
		add_mount(p, MOUNT_BIND, f->ws_repo, PLAN_REPO, MOUNT_DIR | MOUNT_IDMAP | MOUNT_RO,
			  "the host's commits");
		return;
	}
	if (is_review)
		add_overlay(p, f->ws_layers, p->workspace, MOUNT_IDMAP, "workspace, for review");
	/* A job writes only where it was told to. */
	ws = add_mount(p, is_review ? MOUNT_LAYER : MOUNT_BIND, p->workspace, p->workspace,
		       MOUNT_DIR | MOUNT_IDMAP | MOUNT_VERIFY |
			       (is_review || p->ids.root == ROOT_JOB ? MOUNT_RO : 0),
		       "workspace");
	ws->dev = f->ws_dev;
	ws->ino = f->ws_ino;
	if (is_review) { /* the overlay comes last */
		struct mount overlay = ws[-1];

		ws[-1] = *ws;
		*ws = overlay;
	}
}

int plan_build(const struct policy *pol, const struct facts *f, const struct errand *errand,
	       struct plan *ret, struct err *e)
{
	struct plan p = { .ns = NS_ALL,
			  .landlock_abi = f->landlock_abi,
			  .debug = pol->debug,
			  .check_reads = pol->check_reads };
	int r;

	r = plan_check_workspace(f, e);
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
	add_access(&p, ACCESS_READ, "/");
	plan_root(&p, f);
	if (p.ids.root == ROOT_SETUID)
		plan_own_etc(&p, pol);
	else
		plan_etc(&p, pol, f);
	plan_dev(&p);
	plan_private(&p, pol, f);
	plan_tools(&p, f);
	plan_workspace(&p, pol, f);
	if (p.ids.root != ROOT_JOB)
		add_access(&p, ACCESS_WRITE, p.workspace);
	r = plan_grants(&p, pol, f, e);
	plan_sockets(&p, pol);
	plan_safe_tools(&p, pol, f);
	if (r == 0)
		r = plan_broker_check(&p, pol, e);
	if (r == 0)
		r = plan_limits(&p, pol, f, e);
	if (r == 0)
		r = plan_command(&p, f, errand, e);
	if (r < 0) {
		plan_done(&p);
		return r;
	}
	plan_net_build(&p.net, pol, f);
	plan_trust(&p, f);
	plan_logins(&p, f);
	plan_covers(&p, f);
	if (!str_eq(p.engine, "native"))
		plan_engine(&p, f);
	p.may_suid = may_make_suid(&p);
	plan_mount_points(&p);
	add_skel(&p, SKEL_DIR, "var", "");
	add_skel(&p, SKEL_FILE, ".vitrine/file", "")->mode = 0;
	add_skel(&p, SKEL_DIR, ".vitrine/dir", "")->mode = 0;
	add_skel(&p, SKEL_DIR, ".vitrine/private", "");
	plan_layers(&p);
	skel_name(&p);
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
	free(p->cwd);
	free(p->engine);
	*p = (struct plan){ 0 };
}
