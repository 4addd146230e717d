/* SPDX-License-Identifier: Apache-2.0 */
/* cli/template_make.c - templates by tools of the host: mmdebstrap, buildah, podman, skopeo
 *
 * They make namespaces and mounts of their own, so they cannot run behind our walls: they run as the user's tools, with
 * their own. What they made is an archive, which template_import() reads behind ours.
 */
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/io.h"
#include "base/path.h"
#include "base/program.h"
#include "cli/cli.h"
#include "cli/template.h"

/* What an agent's work needs most. */
static const char agent_packages[] = "bash,build-essential,ca-certificates,curl,file,gh,git,golang-"
				     "go,jq,less,locales,make,nodejs,npm,"
				     "openssh-client,patch,pkg-config,procps,python3,python3-pip,"
				     "python3-venv,ripgrep,rsync,tree,unzip,xz-utils";

#define PACKAGES_MAX (16 * KIB)

/* ---- tools of the host ---- */

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

/* ---- makers ---- */

static int make_and_import(struct template_ctx *c, struct bench *b, const struct maker *m,
			   struct err *e)
{
	int r = program_run(m->argv, NULL, e);

	if (r == 0)
		r = template_import(c, b, m->file, m, e);
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
			return template_usage(e, "--packages takes names of packages with commas "
						 "between");
		buf_printf(out, "%s%s", out->n ? "," : "",
			   str_eq(word, "@agent") ? agent_packages : word);
		p += n;
		p += *p == ',';
	}
	return out->is_over ? template_usage(e, "--packages is too long") : 0;
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

static int debian(struct template_ctx *c, const char *name, const char *packages, struct err *e)
{
	_cleanup_(bench_close) struct bench b = BENCH_NONE;
	_cleanup_(buf_done) struct buf list = BUF(PACKAGES_MAX);
	_free_ char *suite = c->suite ? mem_str(c->suite) : host_suite();
	_free_ char *include = NULL, *tar = NULL, *source = NULL;
	int r = template_is_new(c, name, e);

	if (r == 0)
		r = expand_packages(packages, &list, e);
	if (r == 0 && strspn(suite, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(suite))
		r = template_usage(e, "--suite takes the name of a release");
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

int template_debian(struct template_ctx *c, struct err *e)
{
	return c->n == 1 ? debian(c, c->words[0], c->packages ? c->packages : "ca-certificates", e)
			 : template_usage(e, "'vitrine template debian NAME [--packages LIST]'");
}

int template_agent(struct template_ctx *c, struct err *e)
{
	return c->n <= 1 ? debian(c, c->n ? c->words[0] : "agent", "@agent", e)
			 : template_usage(e, "'vitrine template agent [NAME]'");
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

static int pick_builder(const struct template_ctx *c, const char **ret, struct err *e)
{
	if (c->with && !str_eq(c->with, "buildah") && !str_eq(c->with, "podman"))
		return template_usage(e, "--with takes 'buildah' or 'podman'");
	*ret = c->with                                      ? c->with
	       : !has_tool("buildah") && has_tool("podman") ? "podman"
							    : "buildah";
	return 0;
}

/* Its steps run in containers of that tool, as narrow as it makes them: no network, and of the usual capabilities those
 * only that our own root inside has too. */
static int build(const struct template_ctx *c, const char *tool, const char *context,
		 const char *tag, struct err *e)
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
	return program_run(argv, NULL, e);
}

static char *context_of(const char *file)
{
	const char *slash = strrchr(file, '/');

	return slash == file ? mem_str("/")
	       : slash       ? mem_strn(file, (size_t)(slash - file))
			     : mem_str(".");
}

int template_build(struct template_ctx *c, struct err *e)
{
	_cleanup_(bench_close) struct bench b = BENCH_NONE;
	_free_ char *context = NULL, *tag = NULL, *tar = NULL, *ref = NULL, *source = NULL;
	const char *tool = "";
	int r = c->n == 2 ? template_is_new(c, c->words[1], e)
			  : template_usage(e, "'vitrine template build DOCKERFILE NAME'");

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
		(void)program_run((const char *const[]){ tool, "rmi", tag, NULL }, NULL,
				  &(struct err){ 0 });
	return r;
}

/* ---- registries ---- */

/* skopeo ends with `time="..." level=fatal msg="..."`: the message, its quotes made plain again; else the last line. */
static char *skopeo_reason(const struct buf *said)
{
	_cleanup_(buf_done) struct buf raw = BUF(64 * KIB), out = BUF(64 * KIB);
	_free_ char *last = workshop_last_line(said);
	const char *p = strstr(buf_cstr(said), "level=fatal msg=\"");

	if (p == NULL)
		return mem_str(last[0] ? last : "it failed without a word");
	for (p += strlen("level=fatal msg=\""); *p && *p != '"' && *p != '\n'; p++) {
		bool is_quoted = p[0] == '\\' && p[1];

		p += is_quoted;
		buf_putc(&raw, (char)(is_quoted && strchr("nrt", *p) ? ' ' : *p));
	}
	buf_esc(&out, buf_cstr(&raw), raw.n < 300 ? raw.n : 300); /* a registry's words are in it */
	return mem_str(buf_cstr(&out));
}

/* What people can do about the commonest; all others are told as skopeo tells them. In pairs, and no pointers: those would
 * cost every start of this program something. */
static const char skopeo_known[] =
	"does not resolve to an image\0there is no such image here\0"
	"manifest unknown\0there is no such image or tag in the registry\0"
	"name unknown\0there is no such image in the registry\0"
	"connection refused\0the registry cannot be reached: nobody answers there\0"
	"no such host\0the registry cannot be reached: its name is not known\0"
	"i/o timeout\0the registry cannot be reached: no answer\0"
	"gave HTTP response to HTTPS client\0the registry speaks no TLS; registries.conf can say "
	"that it "
	"is insecure (docs/TEMPLATES.md)\0"
	"certificate signed by unknown authority\0the registry's certificate is not trusted; its "
	"authority "
	"belongs into certs.d (docs/TEMPLATES.md)\0"
	"unauthorized\0the registry wants a login: 'skopeo login' keeps one\0"
	"authentication required\0the registry wants a login: 'skopeo login' keeps one\0";

static int skopeo_failed(const char *image, const struct buf *said, struct err *e)
{
	_free_ char *reason = skopeo_reason(said);

	for (const char *p = skopeo_known; *p;) {
		const char *means = p + strlen(p) + 1;

		if (strstr(reason, p))
			return err_set(e, ERR_SYSTEM, ECHILD, "'%.200s': %s", image, means);
		p = means + strlen(means) + 1;
	}
	return err_set(e, ERR_SYSTEM, ECHILD, "'%.200s': skopeo: %s", image, reason);
}

static int skopeo_copy(const char *image, const char *from, const char *to, struct err *e)
{
	_cleanup_(buf_done) struct buf said = BUF(64 * KIB);
	int r = program_hear((const char *const[]){ "skopeo", "copy", "-q", from, to, NULL }, &said,
			     e);

	return r == -ECHILD ? skopeo_failed(image, &said, e) : r;
}

static char *with_transport(const char *ref)
{
	static const char *const known[] = { "docker://",       "oci:", "oci-archive:",
					     "docker-archive:", "dir:", "containers-storage:",
					     "docker-daemon:" };

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (str_starts(ref, known[i]))
			return mem_str(ref);
	return mem_fmt("docker://%s", ref);
}

static int pull(struct template_ctx *c, const char *image, const char *from, const char *name,
		bool is_quiet, struct err *e)
{
	_cleanup_(bench_close) struct bench b = BENCH_NONE;
	_free_ char *tar = NULL, *to = NULL;
	int r = template_is_new(c, name, e);

	if (r == 0)
		r = bench_open(&b, c->host.state_dir, e);
	if (r < 0)
		return r;
	tar = mem_fmt("%s.tar", b.part);
	to = mem_fmt("oci-archive:%s:pulled", tar);
	r = skopeo_copy(image, from, to, e);
	if (r == 0)
		r = template_import(
			c, &b, tar,
			&(struct maker){ .name = name, .source = image, .is_quiet = is_quiet }, e);
	(void)path_remove(AT_FDCWD, tar); /* else the next bench does it */
	return r;
}

int template_pull(struct template_ctx *c, struct err *e)
{
	_free_ char *from = NULL, *name = NULL;

	if (c->n != 1 && c->n != 2)
		return template_usage(e, "'vitrine template pull IMAGE [NAME]'");
	from = with_transport(c->words[0]);
	name = c->n == 2 ? mem_str(c->words[1]) : template_name(c->words[0]);
	return pull(c, c->words[0], from, name, false, e);
}

int template_take_local(const struct host *h, const char *image, struct err *e)
{
	static const char *const places[][2] = { { "docker", "docker-daemon:" },
						 { "podman", "containers-storage:" } };
	/* The host stays the caller's. */
	struct template_ctx c = { .host = *h };
	_free_ char *name = template_name(image);
	/* Docker names an image without a tag by this one. */
	_free_ char *whole =
		strchr(path_name(image), ':') ? mem_str(image) : mem_fmt("%s:latest", image);
	int r = err_set(e, ERR_NOTFOUND, ENOENT,
			"--load-local-template: neither docker nor podman is installed here");

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		_free_ char *from = mem_fmt("%s%s", places[i][1], whole);

		if (!has_tool(places[i][0]))
			continue;
		*e = ERR_INIT;
		r = pull(&c, image, from, name, true, e);
		if (r == 0)
			return 0;
	}
	return r;
}

int template_push(struct template_ctx *c, struct err *e)
{
	_cleanup_(bench_close) struct bench b = BENCH_NONE;
	_cleanup_(buf_done) struct buf version = BUF(4 * KIB);
	_free_ char *from = NULL, *to = NULL;
	int r = c->n == 2 ? template_check_name(c->words[0], e)
			  : template_usage(e, "'vitrine template push NAME IMAGE'");

	if (r == 0) /* packing takes a while; whoever lacks it should not wait for that */
		r = program_hear((const char *const[]){ "skopeo", "--version", NULL }, &version, e);
	if (r == 0)
		r = bench_open(&b, c->host.state_dir, e);
	if (r == 0)
		r = template_pack(c, &b, c->words[0], FD_NONE, e);
	if (r < 0)
		return r;
	from = mem_fmt("oci:%s:%s", b.part, c->words[0]);
	to = with_transport(c->words[1]);
	return skopeo_copy(c->words[1], from, to, e);
}
