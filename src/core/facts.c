/* SPDX-License-Identifier: Apache-2.0 */
/* core/facts.c - see facts.h
 *
 * On the start path: a stat per candidate of the view's tables, a directory walk of the workspace, a handful of
 * small reads. Nothing is cached between runs but what the kernel caches.
 */
#include <fcntl.h>
#include <grp.h>
#include <linux/landlock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/io.h"
#include "base/num.h"
#include "base/passwd.h"
#include "base/path.h"
#include "base/program.h"
#include "base/sabotage.h"
#include "core/facts.h"
#include "core/own.h"
#include "core/packages.h"
#include "sys/scope.h"
#include "view/known.h"

#define TRUST_MAX                                                                                  \
	(768 * KIB) /* a system's whole bundle is a third of that; all of them fit a skeleton */

/* ---- who ---- */

/* All other groups are left behind. But docker's socket is, as a rule, for a group, and who is a member of that could not use it. */
static bool is_dockers(const struct account *a, gid_t *ret)
{
	const char *host = getenv("DOCKER_HOST");
	const char *path = host == NULL || *host == '\0'  ? "/var/run/docker.sock"
			   : str_starts(host, "unix:///") ? host + 7
							  : NULL;
	_cleanup_(buf_done) struct buf groups = BUF(MIB);
	struct err ignored = ERR_INIT;
	struct stat st;

	if (path == NULL || stat(path, &st) < 0 || !S_ISSOCK(st.st_mode) || st.st_gid == 0 ||
	    io_read_file("/etc/group", &groups, &ignored) < 0)
		return false;
	*ret = st.st_gid;
	return group_has(buf_cstr(&groups), st.st_gid, a->name);
}

static int become(const struct account *a, struct err *e)
{
	gid_t groups[2] = { a->gid };
	size_t n = is_dockers(a, &groups[1]) ? 2 : 1;

	if (setgroups(n, groups) < 0 || setresgid(a->gid, a->gid, a->gid) < 0 ||
	    setresuid(a->uid, a->uid, a->uid) < 0)
		return err_sys(e, "become user '%s'", a->name);
	return 0;
}

/* Root under sudo is a person who forgot; root with --user names one. */
static int drop_root(const char *user, struct account *a, bool *ret_dropped, struct err *e)
{
	const char *sudo = getenv("SUDO_UID");
	uint64_t uid;

	*ret_dropped = false;
	if (geteuid() != 0)
		return user ? err_set(e, ERR_USAGE, EPERM,
				      "--user needs root; you are uid %u already", geteuid())
			    : 0;
	if (user) {
		if (!account_find(user, 0, a))
			return err_set(e, ERR_USAGE, ENOENT, "--user '%s': no such user", user);
	} else if (sudo) {
		if (num_parse(sudo, 0, UINT32_MAX - 1, &uid, e) < 0)
			return err_wrap(e, -EINVAL, "SUDO_UID");
		if (uid == 0)
			return 0;
		if (!account_find(NULL, (uid_t)uid, a))
			return err_set(e, ERR_USAGE, ENOENT, "SUDO_UID %s: no such user", sudo);
	} else {
		return 0;
	}
	if (a->uid == 0)
		return err_set(e, ERR_USAGE, EINVAL,
			       "--user '%s' is root; leave it out to run with ids mapped away",
			       user);
	*ret_dropped = true;
	return become(a, e);
}

/* A HOME that no program could mean: then it is the account's, which passwd names. */
static bool is_home(const char *home)
{
	return home && path_is_clean(home) && !str_eq(home, "/");
}

static int find_home(struct host *h, const char *said, struct err *e)
{
	const char *home = is_home(said) ? said : h->account.home;
	struct stat st;
	size_t n = said ? strlen(said) : 0;

	/* A slash too many is not worth another folder than the one that was meant. */
	if (n > 1 && said[0] == '/' && said[n - 1] == '/') {
		_free_ char *same = path_join("/", said);

		if (!str_eq(same, "/") && (home == NULL || !str_eq(home, same)))
			return err_set(e, ERR_USAGE, EINVAL,
				       "HOME is '%.200s', which ends in a slash; set it to "
				       "'%.200s'",
				       said, same);
	}
	if (!is_home(home) || (home != said && (stat(home, &st) < 0 || !S_ISDIR(st.st_mode))))
		return err_set(e, ERR_USAGE, EINVAL,
			       "HOME %s%.200s%s is no home directory, and this account (uid %u) "
			       "has "
			       "none in /etc/passwd%s; set HOME",
			       said ? "'" : "", said ? said : "is not set: there", said ? "'" : "",
			       geteuid(), home && home != said ? " that exists" : "");
	h->home = realpath(home, NULL);
	if (h->home == NULL)
		h->home = mem_str(home);
	return 0;
}

static char *xdg(const char *var, const char *home, const char *fallback, bool ignore_env)
{
	const char *v = ignore_env ? NULL : getenv(var);
	_free_ char *base = v && v[0] == '/' ? path_join("/", v) : path_join(home, fallback);

	return path_join(base, "vitrine");
}

static char *self_path(void)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	return n > 0 ? mem_strn(path, (size_t)n) : mem_str("/nonexistent");
}

int host_become(struct host *h, const char *user, struct err *e)
{
	*h = (struct host){ .ws_fd = FD_NONE };
	if (drop_root(user, &h->account, &h->is_dropped, e) < 0)
		return -e->num;
	h->facts.uid = geteuid();
	h->facts.gid = getegid();
	h->facts.is_root = geteuid() == 0;
	h->facts.root_slot = h->facts.is_root ? (uint32_t)getpid() % PLAN_ROOT_SLOTS : 0;
	return 0;
}

static int locate_home(struct host *h, struct err *e)
{
	struct account *a = &h->account;
	bool is_known = h->is_dropped;
	const char *home = h->is_dropped ? a->home : getenv("HOME");
	const char *shell = h->is_dropped ? NULL : getenv("SHELL");
	const char *user = h->is_dropped ? NULL : getenv("USER");

	if (!is_known && (!is_home(home) || shell == NULL || user == NULL))
		is_known = account_find(NULL, geteuid(), a);
	h->user = mem_str(user ? user : is_known ? a->name : "user");
	h->shell = mem_str(shell ? shell : is_known && a->shell[0] ? a->shell : "/bin/sh");
	return find_home(h, home, e);
}

int host_init(struct host *h, const char *user, struct err *e)
{
	int r = host_become(h, user, e);

	return r < 0 ? r : host_locate(h, e);
}

int host_locate(struct host *h, struct err *e)
{
	int r = locate_home(h, e);

	if (r < 0)
		return r;
	if (strpbrk(h->user, ":\n") || strpbrk(h->home, ":\n") || strpbrk(h->shell, ":\n"))
		return err_set(e, ERR_USAGE, EINVAL,
			       "USER, HOME or SHELL holds a ':' or a line break");
	h->state_dir = xdg("XDG_STATE_HOME", h->home, ".local/state", h->is_dropped);
	h->config_dir = xdg("XDG_CONFIG_HOME", h->home, ".config", h->is_dropped);
	h->self_exe = self_path();
	h->facts.user = h->user;
	h->facts.home = h->home;
	h->facts.shell = h->shell;
	h->facts.self_exe = h->self_exe;
	h->facts.state_dir = h->state_dir;
	h->facts.config_dir = h->config_dir;
	h->facts.environ = environ;
	r = own_check_state(&h->state_dir, e);
	h->facts.state_dir = h->state_dir;
	return r;
}

/* ---- ids for a root inside ---- */

int host_root(struct host *h, enum root_kind kind, struct err *e)
{
	struct facts *f = &h->facts;
	uint32_t uid = PLAN_ROOT_SUBIDS, gid = PLAN_ROOT_SUBIDS;
	int r = f->is_root ? 0 : account_subids(&uid, &gid, e);

	if (r < 0)
		return r;
	f->inner_root = kind;
	f->sub_uid = uid;
	f->sub_gid = gid;
	return 0;
}

int host_template(struct host *h, char *take_root_dir, bool is_named, struct err *e)
{
	struct stat st;
	int r;

	free(h->root_dir);
	h->root_dir = take_root_dir;
	h->facts.inner_root = ROOT_NONE;
	if (lstat(h->root_dir, &st) < 0)
		return err_sys(e, "'%s'", h->root_dir);
	if (st.st_uid == h->facts.uid)
		return 0; /* all of it is the user's */
	r = host_root(h, is_named ? ROOT_SETUID : ROOT_NONE, e);
	if (r == 0 && (st.st_uid != h->facts.sub_uid || st.st_gid != h->facts.sub_gid))
		r = err_set(e, ERR_CONFLICT, ESTALE,
			    "it was made with other subordinate ids (%u) than this account has now "
			    "(%u); "
			    "make it anew",
			    st.st_uid, h->facts.sub_uid);
	return r;
}

/* ---- where ---- */

int host_workspace(struct host *h, const char *path, struct err *e)
{
	struct stat st;
	int r;

	h->cwd = getcwd(NULL, 0);
	if (h->cwd == NULL || h->cwd[0] != '/') {
		free(h->cwd);
		h->cwd = NULL;
		if (path == NULL || path[0] != '/')
			return err_set(e, ERR_USAGE, ENOENT,
				       "the current directory does not exist any more; name a "
				       "workspace with --workspace");
		h->cwd = mem_str(path);
	}
	r = path_real(path ? path : ".", &h->workspace, e);
	if (r < 0) {
		e->kind = ERR_USAGE;
		return err_wrap(e, r, "workspace");
	}
	h->ws_fd = open(h->workspace, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (h->ws_fd < 0 || fstat(h->ws_fd, &st) < 0)
		return err_set(e, ERR_USAGE, errno, "workspace '%s': %s", h->workspace,
			       strerrordesc_np(errno));
	h->facts.workspace = h->workspace;
	h->facts.cwd = h->cwd;
	h->facts.ws_dev = st.st_dev;
	h->facts.ws_ino = st.st_ino;
	return places_add(&h->places, path ? path : h->workspace, h->workspace, h->ws_fd, e);
}

/* ---- what ---- */

static enum entry_kind kind_of(mode_t mode)
{
	if (S_ISREG(mode))
		return ENTRY_FILE;
	if (S_ISDIR(mode))
		return ENTRY_DIR;
	if (S_ISLNK(mode))
		return ENTRY_LINK;
	return S_ISSOCK(mode) ? ENTRY_SOCKET : ENTRY_OTHER;
}

struct entry *host_look_at(struct entries *l, char *take_path, bool wants_none)
{
	struct stat st;
	struct entry en = { .path = take_path };
	char target[4096];
	ssize_t n;

	if (lstat(take_path, &st) == 0) {
		en.kind = kind_of(st.st_mode);
		en.dev = st.st_dev;
		en.uid = st.st_uid;
		en.ino = st.st_ino;
		en.size = (uint64_t)st.st_size;
		en.mtime_ns =
			(uint64_t)st.st_mtim.tv_sec * NS_PER_SEC + (uint64_t)st.st_mtim.tv_nsec;
		if (en.kind == ENTRY_FILE && !(st.st_mode & S_IROTH) && access(take_path, R_OK) < 0)
			en.kind = ENTRY_NONE;
		if (en.kind == ENTRY_LINK) {
			n = readlink(take_path, target, sizeof(target) - 1);
			en.target = mem_strn(target, n > 0 ? (size_t)n : 0);
		}
	}
	if (en.kind == ENTRY_NONE && !wants_none) {
		free(take_path);
		return NULL;
	}
	vec_reserve(l->v, l->n, l->cap);
	l->v[l->n] = en;
	return &l->v[l->n++];
}

/* In the template, where there is one, as what it is there. */
static void look_system(const struct host *h, struct entries *l, const char *const *paths)
{
	for (; *paths; paths++) {
		_free_ char *src = h->root_dir ? mem_fmt("%s%s", h->root_dir, *paths) : NULL;
		struct entry *en = host_look_at(l, mem_str(src ? src : *paths), false);

		if (en && src) {
			en->src = en->path;
			en->path = mem_str(*paths);
		}
	}
}

/* The table is for all systems, and first; where dpkg keeps records, what is a package's own comes beside. */
static void look_etc(struct host *h)
{
	static const struct packages here = { .records = "/var/lib/dpkg", .etc = "/etc" };

	look_system(h, &h->facts.etc, plan_etc_paths);
	if (h->root_dir == NULL)
		h->facts.etc_tree = h->etc_tree =
			packages_tree(&here, h->state_dir, !h->is_only_shown);
}

static void look_tables(struct host *h)
{
	struct facts *f = &h->facts;

	f->root_dir = h->root_dir;
	look_system(h, &f->root, plan_root_paths);
	if (h->root_dir)
		look_system(h, &f->root, plan_template_paths);
	if (f->inner_root == ROOT_SETUID)
		look_system(h, &f->root, plan_own_root_paths);
	else
		look_etc(h);
	for (const char *const *p = plan_tool_paths; *p; p++)
		(void)host_look_at(&f->tools, path_join(h->home, *p), false);
	for (size_t i = f->tools.n, k = 0; i > 0 && plan_secret_paths[k]; k++)
		(void)host_look_at(&f->tools, path_join(h->home, plan_secret_paths[k]), false);
}

/* For `vitrine quarantine`. */
static void list_mended(const struct host *h, size_t from)
{
	_close_ int list = from < h->mended.n && h->mended.dir_fd >= 0
				   ? sweep_open_list(h->mended.dir_fd)
				   : FD_NONE;

	for (size_t i = from; i < h->mended.n; i++)
		sweep_list(list, h->mended.v[i].rel, &h->mended.v[i]);
}

int host_mend(struct host *h, const char *dir, int fd, struct err *e)
{
	_free_ char *known = mem_fmt("%s/known", h->state_dir);
	_free_ char *quarantine = mem_fmt("%s/quarantine/found-later", h->state_dir);
	size_t before = h->mended.n;
	int r;

	if (sabotaged("mend"))
		return 0;
	h->mended.dir = quarantine;
	h->mended.dir_fd = FD_NONE;
	r = known_recover(known, dir, fd, &h->mended, e);
	list_mended(h, before);
	fd_close(h->mended.dir_fd);
	h->mended.dir_fd = FD_NONE;
	h->mended.dir = NULL;
	return r < 0 ? r : 0;
}

/* May /dev/fuse be opened? The one who opens it for a mount is another process, with the same rights. */
static bool has_fuse(void)
{
	_close_ int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	return fd >= 0;
}

/* Landlock's third version is the first that knows truncation: vitrine-dir is not run behind less. */
static void look_served(struct host *h, const struct policy *p)
{
	const struct hit *git = scan_find(&h->scan, ".git");
	_free_ char *path = NULL;
	struct err ignored = ERR_INIT;

	if (git == NULL || git->kind != HIT_PIN || !git->is_gitdir || p->mode != WS_DIRECT ||
	    !str_eq(p->engine, "native") || getenv("VITRINE_NO_FUSE") ||
	    syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) < 3)
		return;
	h->facts.can_serve = has_fuse() && program_find("vitrine-dir", &path, &ignored) == 0;
	h->facts.git_dev = git->dev;
	h->facts.git_ino = git->ino;
}

static int look_workspace(struct host *h, const struct policy *p, struct err *e)
{
	struct facts *f = &h->facts;
	_cleanup_(made_done) struct made made = { 0 };
	int r = host_mend(h, h->workspace, h->ws_fd, e);

	made_load(h->state_dir, h->workspace, &made);
	if (r == 0)
		r = scan_run_made(h->ws_fd, p, &made, h->state_dir, &h->scan, e);
	if (r < 0)
		return r;
	f->n_files += p->mode == WS_DIRECT ? h->scan.files : 0;
	/* In a clone nothing of the host's can be changed. */
	f->covers = host_covers(&h->scan, p->mode == WS_CLONE, &f->n_covers);
	look_served(h, p);
	return 0;
}

static bool wants_cgroup(const struct policy *p)
{
	static const enum limit_id ids[] = { LIMIT_MEMORY, LIMIT_CPUS, LIMIT_IO_READ,
					     LIMIT_IO_WRITE };

	for (size_t i = 0; i < ARRAY_LEN(ids); i++)
		if (p->limits[ids[i]].is_set)
			return true;
	return false;
}

/* A limit that somebody wrote is the kernel's or refused; one of ours takes what there is. */
static bool lacks_cgroup(const struct policy *p, const struct cgroup_host *h)
{
	static const struct {
		enum limit_id id;
		enum cgroup_ctl ctl;
	} needs[] = { { LIMIT_MEMORY, CG_MEMORY },
		      { LIMIT_CPUS, CG_CPU },
		      { LIMIT_IO_READ, CG_IO },
		      { LIMIT_IO_WRITE, CG_IO } };

	for (size_t i = 0; i < ARRAY_LEN(needs); i++) {
		const struct limit *l = &p->limits[needs[i].id];

		if (l->is_set && !l->is_optional && !(h->usable & BIT(needs[i].ctl)))
			return true;
	}
	return false;
}

static void look_cgroups(struct host *h, const struct policy *p)
{
	struct facts *f = &h->facts;
	struct err why = ERR_INIT;

	cgroup_probe(&h->cgroups);
	if (h->cgroups.version == CGROUP_V2 && !f->engine_is_elsewhere &&
	    lacks_cgroup(p, &h->cgroups) && scope_can_ask()) {
		if (scope_enter(&why) == 0) {
			cgroup_probe(&h->cgroups);
			if (lacks_cgroup(p, &h->cgroups))
				(void)snprintf(h->cgroups.why, sizeof(h->cgroups.why),
					       "systemd hands you no such controller; 'sudo "
					       "systemctl edit "
					       "user@.service' with [Service] Delegate=cpu memory "
					       "pids io");
		} else {
			(void)snprintf(h->cgroups.why, sizeof(h->cgroups.why), "%.200s", why.msg);
		}
	}
	cgroup_reap(&h->cgroups);
	if (f->engine_is_elsewhere) {
		h->cgroups.usable = 0;
		(void)snprintf(h->cgroups.why, sizeof(h->cgroups.why),
			       "what this engine starts is not in our control groups");
	}
	f->cgroup_usable = h->cgroups.usable;
	f->cgroup_why = h->cgroups.why[0] ? h->cgroups.why : NULL;
}

/* By exact path: what lies there is a socket, and no link to one. */
static int look_host_sockets(const struct policy *p, struct err *e)
{
	struct stat st;

	for (size_t i = 0; i < p->sockets.n; i++) {
		const char *path = p->sockets.v[i].text;

		if (lstat(path, &st) < 0)
			return err_set(e, ERR_USAGE, errno, "host socket '%s': %s", path,
				       strerrordesc_np(errno));
		if (!S_ISSOCK(st.st_mode))
			return err_set(e, ERR_USAGE, ENOTSOCK,
				       "host socket '%s': that is not a socket%s", path,
				       S_ISLNK(st.st_mode) ? " but a link; name where it leads"
							   : "");
	}
	return 0;
}

/* Only then does the inside need a trust store for it. */
static bool has_java(const struct host *h)
{
	_free_ char *mine = path_join(h->home, ".sdkman/candidates/java");

	return access("/usr/bin/java", F_OK) == 0 || access("/usr/lib/jvm", F_OK) == 0 ||
	       getenv("JAVA_HOME") || access(mine, F_OK) == 0;
}

/* One file of the caller's certificates; NULL with the reason in *ret_why. */
static char *read_certificates(const char *path, const char **ret_why)
{
	_cleanup_(buf_done) struct buf text = BUF(TRUST_MAX);
	struct buf out = BUF(TRUST_MAX);
	_close_ int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct err ignored = ERR_INIT;
	struct stat st;

	*ret_why = "it cannot be read";
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    io_read_fd(fd, &text, &ignored) < 0)
		return NULL;
	*ret_why = "there is no certificate in it";
	if (plan_certificates(buf_cstr(&text), text.n, &out) > 0 && !out.is_over) {
		*ret_why = NULL;
		return buf_take(&out);
	}
	buf_done(&out);
	return NULL;
}

/* Below what is shown inside as it is, and no way out of there. */
static bool is_shown(const struct host *h, const char *path)
{
	static const char *const dirs[] = { "/etc/ssl/certs/", "/etc/pki/", "/usr/" };

	for (size_t i = 0; h->root_dir == NULL && i < ARRAY_LEN(dirs); i++)
		if (str_starts(path, dirs[i]) && strstr(path, "/..") == NULL)
			return true;
	return false;
}

static bool is_known(const struct own_trust *v, size_t n, const char *path)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(v[i].path, path))
			return true;
	return false;
}

/* The variables by which the caller's programs know more certificates; there are none as a rule. */
static void look_own_trust(struct host *h)
{
	size_t n = 0;

	for (size_t i = 0; plan_trust_vars[i]; i++) {
		const char *path = getenv(plan_trust_vars[i]), *why = NULL;
		char *text = NULL;

		if (path == NULL || path[0] == '\0')
			continue;
		if (path[0] == '/' && !is_shown(h, path) && !is_known(h->own_trust, n, path))
			text = read_certificates(path, &why);
		if (path[0] != '/' || why) {
			free(h->trust_why);
			h->trust_why =
				mem_fmt("%s is not set inside: '%.200s': %s", plan_trust_vars[i],
					path, why ? why : "that is no absolute path");
			continue;
		}
		h->own_trust = mem_grow(h->own_trust, n + 1, sizeof(*h->own_trust));
		h->own_trust[n++] = (struct own_trust){ .var = plan_trust_vars[i],
							.path = mem_str(path),
							.text = text };
	}
	h->facts.own_trust = h->own_trust;
	h->facts.n_own_trust = n;
}

int host_look(struct host *h, const struct policy *p, struct err *e)
{
	struct facts *f = &h->facts;
	struct rlimit files;
	long abi;
	int r;

	look_tables(h);
	host_home_files(h);
	r = host_grants(h, p, e);
	if (r == 0)
		r = look_host_sockets(p, e);
	if (r == 0)
		r = look_workspace(h, p, e);
	if (r == 0)
		r = host_worktree(h, p, e);
	if (r < 0)
		return r;
	abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	f->landlock_abi = abi > 0 ? (unsigned)abi : 0;
	if (abi <= 0)
		return err_set(e, ERR_UNSUPPORTED, ENOSYS,
			       "this kernel has no Landlock, the second wall (Linux 5.13 or later "
			       "with it switched on is needed); "
			       "'vitrine doctor' says more");
	look_own_trust(h);
	f->has_java = p->network == NET_GATE && has_java(h);
	for (size_t i = 0; p->network == NET_GATE && plan_trust_files[i]; i++)
		f->trust_gone |= access(plan_trust_files[i], F_OK) < 0 ? 1U << i : 0;
	f->hard_open_files = getrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_max : 1024;
	if (wants_cgroup(p))
		look_cgroups(h, p);
	return 0;
}

/* The name of one is left over where somebody became another user on the way here, and no tool can use that. */
static bool has_runtime_dir(void)
{
	const char *path = getenv("XDG_RUNTIME_DIR");
	struct stat st;

	return path && stat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

int host_engine(struct host *h, struct err *e)
{
	_free_ char *path = NULL;
	int r = program_find("vitrine-init", &path, e);

	h->facts.has_runtime_dir = has_runtime_dir();

	if (r == 0)
		r = path_real(path, &h->init_exe, e);
	h->facts.init_exe = h->init_exe;
	return r;
}

int host_tools(struct host *h, struct err *e)
{
	_free_ char *path = NULL, *broker = NULL;
	struct err ignored;
	struct stat st;
	int r = program_find("vitrine-tools", &path, e);

	if (r == 0)
		r = path_real(path, &h->tools_exe, e);
	if (r < 0)
		return r;
	if (stat(h->tools_exe, &st) < 0)
		return err_sys(e, "'%s'", h->tools_exe);
	h->facts.tools_exe = (struct entry){
		.path = h->tools_exe,
		.kind = ENTRY_FILE,
		.ino = st.st_ino,
		.size = (uint64_t)st.st_size,
		.mtime_ns = (uint64_t)st.st_mtim.tv_sec * NS_PER_SEC + (uint64_t)st.st_mtim.tv_nsec,
	};
	h->facts.has_broker = program_find("vitrine-broker", &broker, &ignored) == 0;
	return 0;
}

static void entries_done(struct entries *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].path);
		free(l->v[i].src);
		free(l->v[i].target);
		for (size_t k = 0; k < l->v[i].n_sockets; k++)
			free(l->v[i].sockets[k]);
		free(l->v[i].sockets);
		free(l->v[i].covers);
		free(l->v[i].gitdir);
	}
	free(l->v);
}

void host_done(struct host *h)
{
	host_home_files_done(h);
	entries_done(&h->facts.root);
	entries_done(&h->facts.etc);
	entries_done(&h->facts.tools);
	entries_done(&h->facts.extra);
	free(h->facts.covers);
	scan_done(&h->scan);
	sweep_done(&h->mended);
	for (size_t i = 0; i < h->n_grounds; i++) {
		free(h->grounds[i].real);
		free(h->grounds[i].inside);
		scan_done(&h->grounds[i].scan);
	}
	free(h->grounds);
	places_done(&h->places);
	free(h->facts.worktree.covers);
	worktree_done(&h->worktree);
	free(h->worktree_place);
	free(h->worktree_why);
	free(h->trust_why);
	free(h->etc_tree);
	for (size_t i = 0; i < h->facts.n_own_trust; i++) {
		free(h->own_trust[i].path);
		free(h->own_trust[i].text);
	}
	free(h->own_trust);
	fd_close(h->ws_fd);
	account_done(&h->account);
	free(h->user);
	free(h->home);
	free(h->shell);
	free(h->workspace);
	free(h->cwd);
	free(h->self_exe);
	free(h->init_exe);
	free(h->tools_exe);
	free(h->state_dir);
	free(h->config_dir);
	free(h->config_real);
	free(h->policy_real);
	free(h->root_dir);
	*h = (struct host){ .ws_fd = FD_NONE };
}
