/* SPDX-License-Identifier: Apache-2.0 */
/* plan/view.c - what a sandbox sees of the file system
 *
 * Built from nothing: the system's directories, an /etc put together here, devices, private places, toolchains, the
 * workspace. What is not named here does not exist inside.
 */
#include "base/path.h"
#include "base/sabotage.h"
#include "plan/parts.h"

static const char *const devices[] = { "null", "zero", "full", "random", "urandom", "tty" };

/* The layers, then the overlay that shows them as one. */
static void add_overlay(struct plan *p, char *const *layers, const char *dst, unsigned idmap,
			const char *why)
{
	for (size_t i = 0; layers[i]; i++)
		plan_add_mount(p, MOUNT_LAYER, layers[i], dst,
			       MOUNT_DIR | idmap | (i ? MOUNT_RO : 0), i ? "frozen" : "written");
	plan_add_mount(p, MOUNT_OVERLAY, "overlay", dst, MOUNT_DIR, why);
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
	lowest = plan_add_mount(p, MOUNT_LAYER, src, dst, MOUNT_DIR | idmap | MOUNT_RO, "template");
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
	plan_add_access(p, ACCESS_WRITE, en->path);
}

/* A template with ids of its own: all of its root is one overlay, and its directories are parts of that. On disk the files
 * have the very ids that they have outside, so nothing is mapped. */
static void plan_own_root(struct plan *p, const struct facts *f)
{
	add_system(p, f, f->root_dir, PLAN_SYSTEM, 0)->flags |= MOUNT_SUID;
	for (size_t i = 0; i < f->root.n; i++) {
		const struct entry *en = &f->root.v[i];
		_free_ char *src = mem_fmt("%s%s", &PLAN_SYSTEM[1], en->path);

		if (en->kind == ENTRY_LINK)
			plan_add_skel(p, SKEL_LINK, en->path, en->target);
		if (en->kind != ENTRY_DIR || str_eq(en->path, p->home))
			continue;
		plan_add_mount(p, MOUNT_PART, src, en->path, MOUNT_DIR | MOUNT_OWN | MOUNT_SUID,
			       "template, kept");
		plan_add_access(p, ACCESS_WRITE, en->path);
	}
}

void plan_root(struct plan *p, const struct facts *f)
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
			plan_add_mount(p, MOUNT_BIND, source_of(en), en->path,
				       MOUNT_RO | MOUNT_DIR | (en->src ? MOUNT_IDMAP : 0),
				       en->src ? "template" : "system");
		else if (en->kind == ENTRY_LINK)
			plan_add_skel(p, SKEL_LINK, en->path, en->target);
	}
}

/* What is hidden is also ignored by git, so that `git add -A` passes over it instead of failing to read it. The two
 * kinds of pattern mean the same. Names that git tracks are not touched by this. */
static void plan_git(struct plan *p, const struct policy *pol, const struct facts *f,
		     const char *dir)
{
	_cleanup_(buf_done) struct buf ignore = BUF(MIB), config = BUF(MIB);
	_free_ char *ignore_path = mem_fmt("%s/gitignore", dir);
	_free_ char *config_path = mem_fmt("%s/gitconfig", dir);

	for (size_t i = 0; i < pol->hide.n;
	     i++) { /* hundreds: printf would take longer than all the rest here */
		buf_add(&ignore, pol->hide.v[i].text, pol->hide.v[i].n);
		buf_putc(&ignore, '\n');
	}
	plan_add_skel(p, SKEL_FILE, ignore_path, buf_cstr(&ignore));
	if (f->home_files[HOME_GIT].text)
		buf_puts(&config, f->home_files[HOME_GIT].text);
	buf_puts(&config, "[core]\n\texcludesFile = /etc/gitignore\n");
	plan_broker_git(&p->broker, &config);
	plan_add_skel(p, SKEL_FILE, config_path, buf_cstr(&config));
}

/* As the user has it, and for npm where each imported token is found: in a variable, which holds what stands for it. */
char *plan_home_text(const struct facts *f, enum home_file what)
{
	_cleanup_(buf_done) struct buf b = BUF(MIB);

	buf_puts(&b, f->home_files[what].text ? f->home_files[what].text : "");
	for (size_t i = 0; what == HOME_NPM && i < f->n_secrets; i++)
		if (f->secrets[i].npm && f->secrets[i].n_env)
			buf_printf(&b, "%s=${%s}\n", f->secrets[i].npm, f->secrets[i].env[0]);
	return buf_take(&b);
}

/* Settings of npm and pip, where every program inside finds them; for npm a variable says so (plan_env). */
static void plan_packages(struct plan *p, const struct facts *f, const char *dir)
{
	static const struct {
		enum home_file what;
		const char *name;
	} files[] = { { HOME_NPM, "npmrc" }, { HOME_PIP, "pip.conf" } };

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		_free_ char *text = plan_home_text(f, files[i].what);
		_free_ char *path = mem_fmt("%s/%s", dir, files[i].name);

		if (text && text[0])
			plan_add_skel(p, SKEL_FILE, path, text);
	}
}

static char *text_resolv(const struct policy *pol)
{
	return mem_str(pol->network == NET_GATE ? "nameserver 127.0.0.1\noptions timeout:10 "
						  "attempts:2\n"
						: "# this sandbox has no network: no name "
						  "exists\n"
						  "nameserver 127.0.0.1\n"
						  "options timeout:1 attempts:1\n");
}

static char *text_hosts(const struct plan *p)
{
	return mem_fmt("127.0.0.1 localhost %s\n::1 localhost ip6-localhost\n", p->hostname);
}

/* A root of its own has an /etc of its own, with its users in it. Of ours only what says where it is lies above that. */
static void plan_own_etc(struct plan *p, const struct policy *pol, const struct facts *f)
{
	static const char *const names[] = { "gitconfig", "gitignore", "hostname", "hosts",
					     "resolv.conf" };
	_free_ char *hosts = text_hosts(p), *resolv = text_resolv(pol);

	plan_add_skel(p, SKEL_DIR, "etc", "");
	plan_git(p, pol, f, ".vitrine/etc");
	plan_packages(p, f, ".vitrine/etc");
	plan_add_skel(p, SKEL_FILE, ".vitrine/etc/hosts", hosts);
	plan_add_skel(p, SKEL_FILE, ".vitrine/etc/hostname", "vitrine\n");
	plan_add_skel(p, SKEL_FILE, ".vitrine/etc/resolv.conf", resolv);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		_free_ char *src = mem_fmt(".vitrine/etc/%s", names[i]);
		_free_ char *dst = mem_fmt("/etc/%s", names[i]);

		plan_add_mount(p, MOUNT_PART, src, dst, MOUNT_RO | MOUNT_GONE_OK, "sandbox");
	}
}

static void plan_made_etc(struct plan *p, const struct policy *pol, const struct facts *f)
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

	plan_add_skel(p, SKEL_DIR, "etc", "");
	plan_git(p, pol, f, "etc");
	plan_packages(p, f, "etc");
	/* Before the host's: of two files with one name the first counts. */
	for (size_t i = 0; i < f->n_etc_texts; i++) {
		_free_ char *path = mem_fmt("etc/%s", f->etc_texts[i].path);

		plan_add_skel(p, SKEL_FILE, path, f->etc_texts[i].text);
	}
	for (size_t i = 0; i < f->etc.n; i++) {
		const struct entry *en = &f->etc.v[i];

		if (en->kind == ENTRY_DIR)
			plan_add_mount(p, MOUNT_BIND, source_of(en), en->path,
				       MOUNT_RO | MOUNT_DIR | (en->src ? MOUNT_IDMAP : 0),
				       en->src ? "template" : "system");
		else if (en->kind == ENTRY_LINK)
			plan_add_skel(p, SKEL_LINK, en->path, en->target);
		else if (en->kind == ENTRY_FILE)
			plan_add_skel(p, SKEL_COPY, en->path, source_of(en))->stamp =
				en->mtime_ns ^ (en->size << 40) ^ (en->ino << 20);
	}
	plan_add_skel(p, SKEL_FILE, "etc/passwd", passwd);
	plan_add_skel(p, SKEL_FILE, "etc/group", group);
	plan_add_skel(p, SKEL_FILE, "etc/hosts", hosts);
	plan_add_skel(p, SKEL_FILE, "etc/hostname", "vitrine\n");
	plan_add_skel(p, SKEL_FILE, "etc/resolv.conf", resolv);
	plan_add_skel(p, SKEL_FILE, "etc/host.conf", "multi on\n");
	/* Behind other engines' walls nobody answers where there is no gate (keep/refuser.c is the native engine's): a
	 * name that is not in the file is then unknown at once. */
	plan_add_skel(p, SKEL_FILE, "etc/nsswitch.conf",
		      pol->network == NET_GATE || str_eq(p->engine, "native")
			      ? "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
				"services: files\nprotocols: files\n"
			      : "passwd: files\ngroup: files\nshadow: files\nhosts: files\n"
				"services: files\nprotocols: files\n");
	/* The same for every sandbox: the host's own would identify the machine. */
	plan_add_skel(p, SKEL_FILE, "etc/machine-id", "76697472696e650076697472696e6500\n");
}

void plan_etc(struct plan *p, const struct policy *pol, const struct facts *f)
{
	if (p->ids.root == ROOT_SETUID)
		plan_own_etc(p, pol, f);
	else
		plan_made_etc(p, pol, f);
}

void plan_dev(struct plan *p)
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

		plan_add_mount(p, MOUNT_DEVICE, path, path, 0, "device");
	}
	plan_add_access(p, ACCESS_DEVICE, "/dev");
	/* By itself too: as the caller's stdin it lies in the host's /dev, and /dev/stdin must still open. */
	plan_add_access(p, ACCESS_DEVICE, "/dev/null");
	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		plan_add_skel(p, SKEL_LINK, links[i][0], links[i][1]);
	plan_add_mount(p, MOUNT_PTS, "devpts", "/dev/pts", MOUNT_DIR, "terminals");
	plan_add_mount(p, MOUNT_PROC, "proc", "/proc", MOUNT_DIR, "processes");
	plan_add_access(p, ACCESS_PROC, "/proc");
	/* Keys of the user's session keyring are described here even to those who may not read them. What only the
	 * host's root may open (kcore, timer_list, sysrq-trigger) needs no cover: no id inside is the host's root. */
	plan_add_mount(p, MOUNT_HIDE, "file", "/proc/keys", MOUNT_GONE_OK, "kernel");
	plan_add_mount(p, MOUNT_HIDE, "file", "/proc/key-users", MOUNT_GONE_OK, "kernel");
}

void plan_private(struct plan *p, const struct policy *pol, const struct facts *f)
{
	static const char *const places[][2] = {
		{ "tmp", "/tmp" },
		{ "var-tmp", "/var/tmp" },
		{ "shm", "/dev/shm" },
		{ "run", "/run" },
	};

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		plan_add_mount(p, MOUNT_PRIVATE, places[i][0], places[i][1], MOUNT_DIR | MOUNT_OWN,
			       "private");
		plan_add_access(p, ACCESS_WRITE, places[i][1]);
	}
	if (p->is_named && pol->home == HOME_PRIVATE && f->home_layers) {
		add_overlay(p, f->home_layers, p->home, MOUNT_IDMAP, "home, kept");
		p->mounts[p->n_mounts - 1].flags |= MOUNT_OWN;
	} else if (p->is_named && pol->home == HOME_PRIVATE) {
		_free_ char *kept = mem_fmt("%s/sandboxes/%s/home", p->state_dir, p->name);

		plan_add_mount(p, MOUNT_BIND, kept, p->home, MOUNT_DIR | MOUNT_OWN | MOUNT_IDMAP,
			       "home, kept");
	} else {
		plan_add_mount(p, MOUNT_PRIVATE, "home", p->home, MOUNT_DIR | MOUNT_OWN, "home");
	}
	plan_add_access(p, ACCESS_WRITE, p->home);
}

/* cargo's settings lie among its programs, which are shown: over the file lies what may be seen of it. */
static void plan_cargo(struct plan *p, const struct facts *f)
{
	static const char *const names[] = { "cargo-config.toml", "cargo-config" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const struct home_text *t = &f->home_files[HOME_CARGO + i];
		_free_ char *cover = mem_fmt(".vitrine/%s", names[i]);

		if (t->path == NULL || path_is_beneath(t->path, f->workspace))
			continue;
		plan_add_skel(p, SKEL_FILE, cover, t->text);
		plan_add_mount(p, MOUNT_HIDE, names[i], t->path, MOUNT_GONE_OK, "without tokens");
	}
}

void plan_toolchains(struct plan *p, const struct facts *f)
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
			plan_add_mount(p, MOUNT_HIDE, en->kind == ENTRY_DIR ? "dir" : "file",
				       en->path,
				       MOUNT_GONE_OK | (en->kind == ENTRY_DIR ? MOUNT_DIR : 0),
				       "credential");
		else if (en->kind == ENTRY_DIR)
			plan_add_mount(p, MOUNT_BIND, en->path, en->path,
				       MOUNT_RO | MOUNT_DIR | MOUNT_IDMAP, "toolchain");
	}
	plan_cargo(p, f);
}

/* In review mode the host's directory is the lowest layer, read-only: what is written goes above it. A clone has
 * layers only, and beside them the commits it was made from. */
void plan_workspace(struct plan *p, const struct policy *pol, const struct facts *f)
{
	bool is_review = pol->mode == WS_REVIEW && !sabotaged("review");
	struct mount *ws;

	if (pol->mode == WS_CLONE && !sabotaged("clone")) {
		add_overlay(p, f->ws_layers, p->workspace, MOUNT_IDMAP, "workspace, a clone");
		plan_add_mount(p, MOUNT_BIND, f->ws_repo, PLAN_REPO,
			       MOUNT_DIR | MOUNT_IDMAP | MOUNT_RO, "the host's commits");
		return;
	}
	if (is_review)
		add_overlay(p, f->ws_layers, p->workspace, MOUNT_IDMAP, "workspace, for review");
	/* A job writes only where it was told to. */
	ws = plan_add_mount(p, is_review ? MOUNT_LAYER : MOUNT_BIND, p->workspace, p->workspace,
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
