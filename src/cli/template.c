/* SPDX-License-Identifier: Apache-2.0 */
/* cli/template.c - vitrine template: root file systems to start from
 *
 * A template is a directory, `templates/NAME/root`, all of it owned by the user, without devices and set-user-id bits; or,
 * with --sudo, owned by the ids that it says, which outside are the account's subordinate ones. The owner of `root` tells
 * one kind from the other. What makes one (mmdebstrap, podman, buildah, skopeo) is the host's own and runs as the user's tool with its own walls;
 * what it made arrives here as an archive and is unpacked by vitrine-image behind ours.
 */
#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>

#include "base/io.h"
#include "base/json.h"
#include "base/path.h"
#include "base/program.h"
#include "cli/cli.h"
#include "cli/image.h"
#include "cli/table.h"
#include "core/facts.h"

enum { OPT_PACKAGES = 1, OPT_SUITE, OPT_SUDO, OPT_PLAIN, OPT_NET, OPT_WITH, OPT_JSON };

const struct opt template_opts[] = {
	{ "packages", 0, "LIST",
	  "debian: what to install, with commas; '@agent' stands for the recipe's", OPT_PACKAGES },
	{ "suite", 0, "NAME", "debian: which release (default: the host's, else stable)",
	  OPT_SUITE },
	{ "sudo", 0, NULL,
	  "keep owners: 'sudo' and package managers work in sandboxes of it; needs subordinate ids",
	  OPT_SUDO },
	{ "plain", 0, NULL, "agent, debian: all of it is one user's, even where there are such ids",
	  OPT_PLAIN },
	{ "net", 0, NULL, "build: its steps have the host's network; else they have none",
	  OPT_NET },
	{ "with", 0, "TOOL", "build: buildah or podman (default: the first that is here)",
	  OPT_WITH },
	{ "json", 0, NULL, "ls: print JSON", OPT_JSON },
	{ NULL, 0, NULL, NULL, 0 },
};

/* What an agent's work needs most. */
static const char agent_packages[] = "bash,build-essential,ca-certificates,curl,file,gh,git,golang-"
				     "go,jq,less,locales,make,nodejs,npm,"
				     "openssh-client,patch,pkg-config,procps,python3,python3-pip,"
				     "python3-venv,ripgrep,rsync,tree,unzip,xz-utils";

#define PACKAGES_MAX (16 * KIB)

struct ctx {
	struct host host;
	const char *packages, *suite;
	const char *with;
	bool as_json, is_plain, has_net;
	bool is_sudo; /* it has ids of its own */
	char **words; /* behind the subcommand, NULL-ended */
	size_t n;
};

static int usage(struct err *e, const char *text)
{
	return err_set(e, ERR_USAGE, EINVAL, "template: %s", text);
}

static int check_name(const char *name, struct err *e)
{
	return image_is_tag(name) ? 0
				  : usage(e, "a name has letters, digits, '.', '_', '-' and ':' "
					     "only, at most 128");
}

/* ---- tools of the host ---- */

/* As the user would run it; its words are the user's to see. */
static int run_tool(const char *const *argv, struct err *e)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		(void)dup2(2, 1);
		(void)execvp(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	if (pid < 0)
		return err_sys(e, "fork");
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_sys(e, "waitpid");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return err_set(e, ERR_UNSUPPORTED, ENOENT,
			       "this needs '%s', which is not installed", argv[0]);
	return err_set(e, ERR_SYSTEM, ECHILD, "'%s' failed", argv[0]);
}

static bool has_tool(const char *name)
{
	static const char *const places[] = { "/usr/bin", "/usr/sbin", "/usr/local/bin", "/bin" };

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		_free_ char *path = mem_fmt("%s/%s", places[i], name);

		if (access(path, X_OK) == 0)
			return true;
	}
	return false;
}

/* ---- import ---- */

static int write_info(const char *dir, const char *source, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(64 * KIB);
	_free_ char *path = mem_fmt("%s/info", dir);
	_close_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r;

	buf_printf(&b, "{\"created\":%llu,\"source\":", (unsigned long long)time(NULL));
	buf_json(&b, source);
	buf_puts(&b, "}\n");
	r = fd < 0 ? -errno : io_write_all(fd, b.p, b.n);
	return r < 0 ? err_set(e, ERR_SYSTEM, -r, "'%s': %s", path, strerrordesc_np(-r)) : 0;
}

static bool is_layout(const char *dir)
{
	_free_ char *path = mem_fmt("%s/index.json", dir);

	return access(path, F_OK) == 0;
}

/* The tree of a root file system is copied by cp, which needs no help with names. */
static void import_words(struct image_job *j, bool is_tree)
{
	static const char *const copy[] = {
		"cp",  "-R",       "--preserve=timestamps,links", "--no-target-directory",
		"/in", "/out/root"
	};
	static const char *const unpack[] = { "/vitrine-image", "unpack", "root", "/in", "/out" };

	for (size_t i = 0; is_tree && i < ARRAY_LEN(copy); i++)
		image_word(j, copy[i]);
	for (size_t i = 0; !is_tree && i < ARRAY_LEN(unpack); i++)
		image_word(j, unpack[i]);
}

/* With ids of its own it is made ready for its user, by the root of those ids. */
static int settle(const struct ctx *c, const struct bench *b, struct err *e)
{
	_cleanup_(image_job_done) struct image_job j = { .state_dir = c->host.state_dir,
							 .is_as_root = true };
	const struct facts *f = &c->host.facts;
	struct facts live = *f;
	_free_ char *found = NULL, *sudo = NULL;
	struct ids ids;
	int r = program_find("vitrine-sudo", &found, e);

	if (r == 0)
		r = path_real(found, &sudo, e);
	if (r < 0)
		return r;
	live.inner_root = ROOT_SETUID;
	ids = plan_ids(&live);
	image_view(&j, mem_fmt("%s:/out:rw", b->part));
	image_view(&j, mem_fmt("%s:/sudo:ro", sudo));
	image_word(&j, "/vitrine-image");
	image_word(&j, "settle");
	image_word(&j, "/out/root");
	image_word(&j, f->is_root ? "agent" : f->user);
	image_own_word(&j, mem_fmt("%u", ids.uid_in));
	image_own_word(&j, mem_fmt("%u", ids.gid_in));
	image_word(&j, f->home);
	image_word(&j, f->shell);
	image_word(&j, "/sudo");
	return image_run(&j, FD_NONE, e);
}

static int put_in_place(const struct ctx *c, const struct bench *b, const char *name, struct err *e)
{
	_free_ char *all = mem_fmt("%s/templates", c->host.state_dir);
	_free_ char *path = mem_fmt("%s/%s", all, name);
	int r = path_make(all, 0700);

	if (r < 0)
		return err_set(e, ERR_SYSTEM, -r, "'%s': %s", all, strerrordesc_np(-r));
	if (rename(b->part, path) < 0)
		return errno == ENOTEMPTY || errno == EEXIST ? err_set(e, ERR_CONFLICT, EEXIST,
								       "there is a template '%s' "
								       "already; 'vitrine template "
								       "rm %s' removes it",
								       name, name)
							     : err_sys(e, "'%s'", path);
	(void)printf("%s\n", name);
	return 0;
}

/* A tool of the host that writes an archive beside the empty directory. */
struct maker {
	const char *const *argv;
	const char *file, *name, *source;
};

static int import_from(const struct ctx *c, struct bench *b, const char *path,
		       const struct maker *m, struct err *e)
{
	_cleanup_(image_job_done) struct image_job j = { .state_dir = c->host.state_dir,
							 .is_as_root = c->is_sudo };
	_free_ char *in = mem_fmt("%s/in", b->part), *real = NULL, *usr = NULL;
	struct stat st;
	int r = path_real(path, &real, e);

	if (r == 0 && c->is_sudo)
		r = bench_give(b, e);
	if (r < 0)
		return r;
	if (stat(real, &st) < 0)
		return err_sys(e, "'%s'", real);
	image_view(&j, mem_fmt("%s:/out:rw", b->part));
	image_view(&j, mem_fmt("%s:/in:ro", real));
	import_words(&j, S_ISDIR(st.st_mode) && !is_layout(real));
	r = image_run(&j, FD_NONE, e);
	if (r < 0)
		return err_wrap(e, r, "'%.200s'", path);
	(void)path_remove(AT_FDCWD,
			  in); /* the archive's files; if they stay they only take space */
	if (c->is_sudo)
		r = settle(c, b, e);
	if (r < 0)
		return r;
	usr = mem_fmt("%s/root/usr", b->part);
	if (lstat(usr, &st) < 0)
		return err_set(e, ERR_DENIED, EINVAL,
			       "'%.200s' holds no root file system: there is no /usr", path);
	r = write_info(b->part, m->source, e);
	return r < 0 ? r : put_in_place(c, b, m->name, e);
}

static int is_new(const struct ctx *c, const char *name, struct err *e)
{
	_free_ char *path = mem_fmt("%s/templates/%s", c->host.state_dir, name);
	int r = check_name(name, e);

	if (r < 0)
		return r;
	return access(path, F_OK) == 0 ? err_set(e, ERR_CONFLICT, EEXIST,
						 "there is a template '%s' already; 'vitrine "
						 "template rm "
						 "%s' removes it",
						 name, name)
				       : 0;
}

static int cmd_import(struct ctx *c, struct err *e)
{
	_cleanup_(bench_close) struct bench b = BENCH_NONE;
	int r = c->n == 2 ? is_new(c, c->words[1], e)
			  : usage(e, "'vitrine template import DIR|IMAGE.tar NAME'");

	if (r == 0)
		r = bench_open(&b, c->host.state_dir, e);
	return r < 0 ? r
		     : import_from(c, &b, c->words[0],
				   &(struct maker){ .name = c->words[1], .source = c->words[0] },
				   e);
}

/* ---- makers ---- */

static int make_and_import(struct ctx *c, struct bench *b, const struct maker *m, struct err *e)
{
	int r = run_tool(m->argv, e);

	if (r == 0)
		r = import_from(c, b, m->file, m, e);
	(void)path_remove(AT_FDCWD, m->file); /* else the next bench does it */
	return r;
}

/* "a,@agent,b" with the recipe in its place; only what can be the name of a package. */
static int expand_packages(const char *list, struct buf *out, struct err *e)
{
	for (const char *p = list; *p;) {
		size_t n = strcspn(p, ",");
		_free_ char *word = mem_strn(p, n);

		if (!str_eq(word, "@agent") && (n == 0 || strspn(word, "abcdefghijklmnopqrstuvwxyz0"
								       "123456789+.-:") != n))
			return usage(e, "--packages takes names of packages with commas between");
		buf_printf(out, "%s%s", out->n ? "," : "",
			   str_eq(word, "@agent") ? agent_packages : word);
		p += n;
		p += *p == ',';
	}
	return out->is_over ? usage(e, "--packages is too long") : 0;
}

/* The release this host is, from /etc/os-release. */
static char *host_suite(void)
{
	_cleanup_(buf_done) struct buf b = BUF(64 * KIB);
	struct err ignored;
	const char *p;

	if (io_read_file("/etc/os-release", &b, &ignored) < 0)
		return mem_str("stable");
	p = strstr(buf_cstr(&b), "VERSION_CODENAME=");
	p = p ? p + strlen("VERSION_CODENAME=") : NULL;
	return p && strcspn(p, "\n\"") > 0 ? mem_strn(p, strcspn(p, "\n\"")) : mem_str("stable");
}

/* Packages come from where the host's own come from. */
static const char *host_sources(void)
{
	static const char *const files[] = { "/etc/apt/sources.list.d/debian.sources",
					     "/etc/apt/sources.list.d/ubuntu.sources",
					     "/etc/apt/sources.list" };
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		if (stat(files[i], &st) == 0 && st.st_size > 0)
			return files[i];
	return NULL;
}

static int debian(struct ctx *c, const char *name, const char *packages, struct err *e)
{
	_cleanup_(bench_close) struct bench b = BENCH_NONE;
	_cleanup_(buf_done) struct buf list = BUF(PACKAGES_MAX);
	_free_ char *suite = c->suite ? mem_str(c->suite) : host_suite();
	_free_ char *include = NULL, *tar = NULL, *source = NULL;
	int r = is_new(c, name, e);

	if (r == 0)
		r = expand_packages(packages, &list, e);
	if (r == 0 && strspn(suite, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(suite))
		r = usage(e, "--suite takes the name of a release");
	if (r == 0)
		r = bench_open(&b, c->host.state_dir, e);
	if (r < 0)
		return r;
	include = mem_fmt("--include=%s", buf_cstr(&list));
	tar = mem_fmt("%s.tar", b.part);
	source = mem_fmt("debian %s", suite);
	return make_and_import(
		c, &b,
		&(struct maker){ .argv = (const char *const[]){ "mmdebstrap", "--variant=minbase",
								"--format=tar", include, suite, tar,
								host_sources(), NULL },
				 .file = tar,
				 .name = name,
				 .source = source },
		e);
}

static int cmd_debian(struct ctx *c, struct err *e)
{
	return c->n == 1 ? debian(c, c->words[0], c->packages ? c->packages : "ca-certificates", e)
			 : usage(e, "'vitrine template debian NAME [--packages LIST]'");
}

static int cmd_agent(struct ctx *c, struct err *e)
{
	return c->n <= 1 ? debian(c, c->n ? c->words[0] : "agent", "@agent", e)
			 : usage(e, "'vitrine template agent [NAME]'");
}

/* ---- build ---- */

/* Where control groups are not all of version 2, crun runs nothing and runc does. */
static const char *build_runtime(void)
{
	struct statfs fs;

	if (statfs("/sys/fs/cgroup", &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC)
		return NULL;
	return has_tool("runc") ? "runc" : NULL;
}

static int pick_builder(const struct ctx *c, const char **ret, struct err *e)
{
	if (c->with && !str_eq(c->with, "buildah") && !str_eq(c->with, "podman"))
		return usage(e, "--with takes 'buildah' or 'podman'");
	*ret = c->with                                      ? c->with
	       : !has_tool("buildah") && has_tool("podman") ? "podman"
							    : "buildah";
	return 0;
}

/* Its steps run in containers of that tool, as narrow as it makes them: no network, and of the usual capabilities those
 * only that our own root inside has too. */
static int build(const struct ctx *c, const char *tool, const char *context, const char *tag,
		 struct err *e)
{
	static const char *const fixed[] = { "--isolation=oci",      "--cap-drop=mknod",
					     "--cap-drop=net_raw",   "--cap-drop=audit_write",
					     "--cap-drop=setpcap",   "--cap-drop=net_bind_service",
					     "--cap-drop=sys_chroot" };
	const char *runtime = build_runtime(), *argv[24];
	size_t n = 0;

	argv[n++] = tool;
	if (runtime && str_eq(tool, "podman")) {
		argv[n++] = "--runtime";
		argv[n++] = runtime;
	}
	argv[n++] = "build";
	if (runtime && str_eq(tool, "buildah")) {
		argv[n++] = "--runtime";
		argv[n++] = runtime;
	}
	for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
		argv[n++] = fixed[i];
	argv[n++] = c->has_net ? "--network=host" : "--network=none";
	argv[n++] = "-f";
	argv[n++] = c->words[0];
	argv[n++] = "-t";
	argv[n++] = tag;
	argv[n++] = context;
	argv[n] = NULL;
	return run_tool(argv, e);
}

static char *context_of(const char *file)
{
	const char *slash = strrchr(file, '/');

	return slash == file ? mem_str("/")
	       : slash       ? mem_strn(file, (size_t)(slash - file))
			     : mem_str(".");
}

static int cmd_build(struct ctx *c, struct err *e)
{
	_cleanup_(bench_close) struct bench b = BENCH_NONE;
	_free_ char *context = NULL, *tag = NULL, *tar = NULL, *ref = NULL, *source = NULL;
	const char *tool = NULL;
	int r = c->n == 2 ? is_new(c, c->words[1], e)
			  : usage(e, "'vitrine template build DOCKERFILE NAME'");

	if (r == 0)
		r = pick_builder(c, &tool, e);
	if (r == 0 && access(c->words[0], R_OK) < 0)
		r = err_set(e, ERR_USAGE, errno, "'%.200s': %s", c->words[0],
			    strerrordesc_np(errno));
	if (r == 0)
		r = bench_open(&b, c->host.state_dir, e);
	if (r < 0)
		return r;
	context = context_of(c->words[0]);
	tag = mem_fmt("localhost/vitrine-template:%s", path_name(b.part) + 6);
	tar = mem_fmt("%s.tar", b.part);
	ref = mem_fmt("oci-archive:%s", tar);
	source = mem_fmt("build %s", c->words[0]);
	r = build(c, tool, context, tag, e);
	if (r == 0)
		r = make_and_import(
			c, &b,
			&(struct maker){
				.argv = (const char *const[]){ tool, "push", tag, ref, NULL },
				.file = tar,
				.name = c->words[1],
				.source = source },
			e);
	if (r == 0) /* the image has done its work */
		(void)run_tool((const char *const[]){ tool, "rmi", tag, NULL }, &(struct err){ 0 });
	return r;
}

/* ---- registries ---- */

static char *with_transport(const char *ref)
{
	static const char *const known[] = { "docker://",       "oci:", "oci-archive:",
					     "docker-archive:", "dir:", "containers-storage:" };

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (str_starts(ref, known[i]))
			return mem_str(ref);
	return mem_fmt("docker://%s", ref);
}

static int cmd_pull(struct ctx *c, struct err *e)
{
	_cleanup_(bench_close) struct bench b = BENCH_NONE;
	_free_ char *from = NULL, *tar = NULL, *to = NULL;
	int r = c->n == 2 ? is_new(c, c->words[1], e)
			  : usage(e, "'vitrine template pull IMAGE NAME'");

	if (r == 0)
		r = bench_open(&b, c->host.state_dir, e);
	if (r < 0)
		return r;
	from = with_transport(c->words[0]);
	tar = mem_fmt("%s.tar", b.part);
	to = mem_fmt("oci-archive:%s:pulled", tar);
	return make_and_import(
		c, &b,
		&(struct maker){
			.argv = (const char *const[]){ "skopeo", "copy", "-q", from, to, NULL },
			.file = tar,
			.name = c->words[1],
			.source = c->words[0] },
		e);
}

static int has_own_ids(const struct ctx *c, const char *root, bool *ret, struct err *e)
{
	struct stat st;

	if (lstat(root, &st) < 0)
		return err_sys(e, "'%s'", root);
	*ret = st.st_uid != c->host.facts.uid;
	return 0;
}

/* The root as an image of one layer; the tar of it to `out`, the layout to the bench. */
static int pack(const struct ctx *c, const struct bench *b, const char *name, int out,
		struct err *e)
{
	_cleanup_(image_job_done) struct image_job j = { .state_dir = c->host.state_dir };
	static const char *const words[] = { "--", "root", "/", "/tmp", "/v/root" };
	_free_ char *root = NULL;
	int r = template_find(c->host.state_dir, name, &root, e);

	if (r == 0)
		r = has_own_ids(c, root, &j.is_as_root, e);
	if (r == 0 && j.is_as_root)
		r = bench_give(b, e);
	if (r < 0)
		return r;
	image_view(&j, mem_fmt("%s:/out:rw", b->part));
	image_view(&j, mem_fmt("%s:/v/root:ro", root));
	image_word(&j, "/vitrine-image");
	image_word(&j, "pack");
	image_word(&j, "/out");
	image_word(&j, name);
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		image_word(&j, words[i]);
	return image_run(&j, out, e);
}

static int cmd_push(struct ctx *c, struct err *e)
{
	_cleanup_(bench_close) struct bench b = BENCH_NONE;
	_free_ char *from = NULL, *to = NULL;
	int r = c->n == 2 ? check_name(c->words[0], e)
			  : usage(e, "'vitrine template push NAME IMAGE'");

	if (r == 0)
		r = bench_open(&b, c->host.state_dir, e);
	if (r == 0)
		r = pack(c, &b, c->words[0], FD_NONE, e);
	if (r < 0)
		return r;
	from = mem_fmt("oci:%s:%s", b.part, c->words[0]);
	to = with_transport(c->words[1]);
	return run_tool((const char *const[]){ "skopeo", "copy", "-q", from, to, NULL }, e);
}

static int cmd_export_template(struct ctx *c, struct err *e)
{
	_cleanup_(bench_close) struct bench b = BENCH_NONE;
	_free_ char *part = NULL;
	_close_ int fd = FD_NONE;
	int r = c->n == 2 ? check_name(c->words[0], e)
			  : usage(e, "'vitrine template export NAME FILE.tar'");

	if (r == 0)
		r = bench_open(&b, c->host.state_dir, e);
	if (r < 0)
		return r;
	part = mem_fmt("%s.part", c->words[1]);
	fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return err_sys(e, "'%s'", part);
	r = pack(c, &b, c->words[0], fd, e);
	if (r == 0 && rename(part, c->words[1]) < 0)
		r = err_sys(e, "'%s'", c->words[1]);
	if (r < 0)
		(void)unlink(part);
	return r;
}

/* ---- ls, rm ---- */

static void list_one(const struct ctx *c, struct table *t, const char *name)
{
	_cleanup_(buf_done) struct buf b = BUF(64 * KIB);
	_free_ char *path = mem_fmt("%s/templates/%s/info", c->host.state_dir, name);
	struct cell *row = table_row(t);
	const struct json *source;
	struct err ignored;
	struct json_doc doc;

	row[0].text = mem_str(name);
	row[1].is_null = true;
	if (io_read_file(path, &b, &ignored) < 0 ||
	    json_parse(buf_cstr(&b), b.n, &doc, &ignored) < 0)
		return;
	source = doc.root->type == JSON_OBJECT ? json_get(doc.root, "source") : NULL;
	row[1].is_null = doc.root->type != JSON_OBJECT ||
			 !json_u64(json_get(doc.root, "created"), &row[1].num);
	row[2].text = source && source->type == JSON_STRING ? mem_str(source->text) : NULL;
	json_done(&doc);
}

static int by_text(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

static int cmd_list(struct ctx *c, struct err *e)
{
	static const struct column columns[] = { { "name", "Name", "NAME", COLUMN_TEXT },
						 { "created", "Created", "CREATED", COLUMN_AGO },
						 { "source", "Source", "MADE FROM", COLUMN_TEXT } };
	_cleanup_(table_done) struct table t = { .columns = columns,
						 .n_columns = ARRAY_LEN(columns) };
	_cleanup_(buf_done) struct buf out = BUF(16 * MIB);
	_free_ char *dir = mem_fmt("%s/templates", c->host.state_dir);
	DIR *d = c->n == 0 ? opendir(dir) : NULL;
	char **names = NULL;
	size_t n = 0;
	struct dirent *en;
	int r;

	if (c->n > 0)
		return usage(e, "'vitrine template ls' takes no words");
	while (d && (en = readdir(d)) != NULL)
		if (image_is_tag(en->d_name)) {
			names = mem_grow(names, n + 1, sizeof(*names));
			names[n++] = mem_str(en->d_name);
		}
	if (d)
		(void)closedir(d);
	if (n > 0)
		qsort(names, n, sizeof(*names), by_text);
	for (size_t i = 0; i < n; i++) {
		list_one(c, &t, names[i]);
		free(names[i]);
	}
	free(names);
	r = table_print(&t, &(struct table_how){ .as_json = c->as_json }, &out, e);
	return r < 0 ? r : cli_print(&out, e);
}

/* A sandbox that still names it says so when it is started. */
static int cmd_remove(struct ctx *c, struct err *e)
{
	_cleanup_(bench_close) struct bench b = BENCH_NONE;
	_free_ char *root = NULL, *dir = NULL, *away = NULL;
	int r = c->n == 1 ? template_find(c->host.state_dir, c->words[0], &root, e)
			  : usage(e, "'vitrine template rm NAME'");

	if (r == 0)
		r = bench_open(&b, c->host.state_dir, e);
	if (r < 0)
		return r;
	dir = path_parent(root);
	away = mem_fmt("%s/gone", b.part);
	return rename(dir, away) < 0 ? err_sys(e, "'%s'", dir) : 0; /* the bench takes it with it */
}

/* ---- words ---- */

static int dispatch(struct ctx *c, const char *word, struct err *e)
{
	if (str_eq(word, "ls"))
		return cmd_list(c, e);
	if (str_eq(word, "import"))
		return cmd_import(c, e);
	if (str_eq(word, "debian"))
		return cmd_debian(c, e);
	if (str_eq(word, "agent"))
		return cmd_agent(c, e);
	if (str_eq(word, "build"))
		return cmd_build(c, e);
	if (str_eq(word, "pull"))
		return cmd_pull(c, e);
	if (str_eq(word, "push"))
		return cmd_push(c, e);
	if (str_eq(word, "export"))
		return cmd_export_template(c, e);
	if (str_eq(word, "rm"))
		return cmd_remove(c, e);
	return usage(e, "one of ls, import, debian, agent, build, pull, push, export, rm");
}

/* A Debian without its package manager is half of one: where there are ids for it, it has them. */
static int choose_ids(struct ctx *c, const char *word, struct err *e)
{
	bool is_debian = str_eq(word, "agent") || str_eq(word, "debian");
	struct err why = ERR_INIT;

	if (c->is_sudo && c->is_plain)
		return usage(e, "--sudo and --plain contradict each other");
	if (c->is_sudo)
		return host_root(&c->host, ROOT_JOB, e);
	if (!is_debian || c->is_plain)
		return 0;
	c->is_sudo = host_root(&c->host, ROOT_JOB, &why) == 0;
	if (!c->is_sudo)
		(void)fprintf(stderr,
			      "vitrine: all of it will be one user's, without 'sudo' inside: %s\n",
			      why.msg);
	return 0;
}

int cmd_template(int argc, char **argv, struct err *e)
{
	_free_ char **words = mem_new((size_t)argc + 1, sizeof(*words));
	struct ctx c = { .words = words };
	struct opts o;
	int id, r;

	opts_init(&o, template_opts, argc, argv);
	for (;;) {
		id = opts_next(&o, e);
		if (id < 0)
			return id;
		if (id == OPT_PACKAGES)
			c.packages = o.value;
		else if (id == OPT_SUITE)
			c.suite = o.value;
		else if (id == OPT_SUDO)
			c.is_sudo = true;
		else if (id == OPT_PLAIN)
			c.is_plain = true;
		else if (id == OPT_NET)
			c.has_net = true;
		else if (id == OPT_WITH)
			c.with = o.value;
		else if (id == OPT_JSON)
			c.as_json = true;
		else if (o.at >= argc)
			break;
		else
			words[c.n++] = argv[o.at++];
	}
	if (c.n == 0)
		return usage(e, "one of ls, import, debian, agent, build, pull, push, export, rm");
	c.words++;
	c.n--;
	r = host_init(&c.host, NULL, e);
	if (r == 0)
		r = choose_ids(&c, words[0], e);
	if (r == 0)
		r = dispatch(&c, words[0], e);
	host_done(&c.host);
	return r;
}
