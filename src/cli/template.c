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
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include "base/io.h"
#include "base/json.h"
#include "base/path.h"
#include "base/program.h"
#include "cli/cli.h"
#include "cli/image.h"
#include "cli/table.h"
#include "cli/template.h"
#include "core/facts.h"

enum { OPT_PACKAGES = 1, OPT_SUITE, OPT_SUDO, OPT_PLAIN, OPT_NET, OPT_WITH };

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
	TABLE_OPTS("ls: print JSON", "ls: print the names only"),
	{ NULL, 0, NULL, NULL, 0 },
};

int template_usage(struct err *e, const char *text)
{
	return err_set(e, ERR_USAGE, EINVAL, "template: %s", text);
}

int template_check_name(const char *name, struct err *e)
{
	return image_is_tag(name) ? 0
				  : template_usage(e, "a name has letters, digits, '.', '_', '-' "
						      "and ':' "
						      "only, at most 128");
}

/* ---- import ---- */

static int write_info(const char *dir, const struct maker *m, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(64 * KIB);
	_free_ char *path = mem_fmt("%s/info", dir);
	_close_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	_free_ char *made = NULL;
	uint64_t id = 0;
	int r;

	if (m->id == NULL && getrandom(&id, sizeof(id), 0) != (ssize_t)sizeof(id))
		return err_sys(e, "getrandom");
	made = mem_fmt("%016llx", (unsigned long long)id);
	buf_printf(&b, "{\"id\":\"%s\",\"created\":%llu,\"source\":", m->id ? m->id : made,
		   (unsigned long long)time(NULL));
	buf_json(&b, m->source);
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
static void import_words(struct image_job *j, const char *part, bool is_tree)
{
	static const char *const copy[] = {
		"cp",  "-R",       "--preserve=timestamps,links", "--no-target-directory",
		"/in", "/out/root"
	};
	const char *const unpack[] = { "/vitrine-image", "unpack", part ? part : "root", "/in",
				       "/out" };

	for (size_t i = 0; is_tree && i < ARRAY_LEN(copy); i++)
		image_word(j, copy[i]);
	for (size_t i = 0; !is_tree && i < ARRAY_LEN(unpack); i++)
		image_word(j, unpack[i]);
}

/* With ids of its own it is made ready for its user, by the root of those ids. */
static int settle(const struct template_ctx *c, const struct bench *b, struct err *e)
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

static int put_in_place(const struct template_ctx *c, const struct bench *b, const struct maker *m,
			struct err *e)
{
	const char *name = m->name;
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
	if (!m->is_quiet)
		(void)printf("%s\n", name);
	return 0;
}

int template_import(const struct template_ctx *c, struct bench *b, const char *path,
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
	r = image_view_path(&j, b, real, "/in", e);
	import_words(&j, m->part, S_ISDIR(st.st_mode) && !is_layout(real));
	if (r == 0)
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
	r = write_info(b->part, m, e);
	return r < 0 ? r : put_in_place(c, b, m, e);
}

int template_is_new(const struct template_ctx *c, const char *name, struct err *e)
{
	_free_ char *path = mem_fmt("%s/templates/%s", c->host.state_dir, name);
	int r = template_check_name(name, e);

	if (r < 0)
		return r;
	return access(path, F_OK) == 0 ? err_set(e, ERR_CONFLICT, EEXIST,
						 "there is a template '%s' already; 'vitrine "
						 "template rm "
						 "%s' removes it",
						 name, name)
				       : 0;
}

static int cmd_import(struct template_ctx *c, struct err *e)
{
	_cleanup_(bench_close) struct bench b = BENCH_NONE;
	int r = c->n == 2 ? template_is_new(c, c->words[1], e)
			  : template_usage(e, "'vitrine template import DIR|IMAGE.tar NAME'");

	if (r == 0)
		r = bench_open(&b, c->host.state_dir, e);
	return r < 0 ? r
		     : template_import(
			       c, &b, c->words[0],
			       &(struct maker){ .name = c->words[1], .source = c->words[0] }, e);
}

/* The root as an image of one layer; the tar of it to `out`, the layout to the bench. */
int template_pack(const struct template_ctx *c, const struct bench *b, const char *name, int out,
		  struct err *e)
{
	_cleanup_(image_job_done) struct image_job j = { .state_dir = c->host.state_dir };
	static const char *const words[] = { "0:0", "--", "root", "/", "/tmp", "/v/root" };
	_free_ char *root = NULL;
	int r = template_find(c->host.state_dir, name, &root, e);

	if (r == 0)
		r = template_is_rooted(root, c->host.facts.uid, &j.is_as_root, e);
	if (r == 0 && j.is_as_root)
		r = bench_give(b, e);
	if (r < 0)
		return r;
	image_view(&j, mem_fmt("%s:/out:rw", b->part));
	r = image_view_path(&j, b, root, "/v/root", e);
	if (r < 0)
		return r;
	image_word(&j, "/vitrine-image");
	image_word(&j, "pack");
	image_word(&j, "/out");
	image_word(&j, name);
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		image_word(&j, words[i]);
	return image_run(&j, out, e);
}

static int cmd_export_template(struct template_ctx *c, struct err *e)
{
	_cleanup_(bench_close) struct bench b = BENCH_NONE;
	_free_ char *part = NULL;
	_close_ int fd = FD_NONE;
	int r = c->n == 2 ? template_check_name(c->words[0], e)
			  : template_usage(e, "'vitrine template export NAME FILE.tar'");

	if (r == 0)
		r = bench_open(&b, c->host.state_dir, e);
	if (r < 0)
		return r;
	part = mem_fmt("%s.part", c->words[1]);
	fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return err_sys(e, "'%s'", part);
	bench_file(&b, part);
	r = template_pack(c, &b, c->words[0], fd, e);
	if (r == 0 && rename(part, c->words[1]) < 0)
		r = err_sys(e, "'%s'", c->words[1]);
	if (r < 0)
		(void)unlink(part);
	return r;
}

/* ---- ls, rm ---- */

static void list_one(const struct template_ctx *c, struct table *t, const char *name)
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

static int cmd_list(struct template_ctx *c, struct err *e)
{
	static const struct column columns[] = { { "name", "Name", "NAME", COLUMN_TEXT },
						 { "created", "Created", "CREATED", COLUMN_AGO },
						 { "source", "Source", "MADE FROM", COLUMN_TEXT } };
	_cleanup_(table_done) struct table t = { .columns = columns,
						 .n_columns = ARRAY_LEN(columns) };
	_free_ char *dir = mem_fmt("%s/templates", c->host.state_dir);
	DIR *d = c->n == 0 ? opendir(dir) : NULL;
	char **names = NULL;
	size_t n = 0;
	struct dirent *en;

	if (c->n > 0)
		return template_usage(e, "'vitrine template ls' takes no words");
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
	return table_show(&t, &c->how, e);
}

/* A sandbox that still names it says so when it is started. */
static int cmd_remove(struct template_ctx *c, struct err *e)
{
	_cleanup_(bench_close) struct bench b = BENCH_NONE;
	_free_ char *root = NULL, *dir = NULL, *away = NULL;
	int r = c->n == 1 ? template_find(c->host.state_dir, c->words[0], &root, e)
			  : template_usage(e, "'vitrine template rm NAME'");

	if (r == 0)
		r = bench_open(&b, c->host.state_dir, e);
	if (r < 0)
		return r;
	dir = path_parent(root);
	away = mem_fmt("%s/gone", b.part);
	return rename(dir, away) < 0 ? err_sys(e, "'%s'", dir) : 0; /* the bench takes it with it */
}

/* ---- words ---- */

static int dispatch(struct template_ctx *c, const char *word, struct err *e)
{
	if (str_eq(word, "ls"))
		return cmd_list(c, e);
	if (str_eq(word, "import"))
		return cmd_import(c, e);
	if (str_eq(word, "debian"))
		return template_debian(c, e);
	if (str_eq(word, "agent"))
		return template_agent(c, e);
	if (str_eq(word, "build"))
		return template_build(c, e);
	if (str_eq(word, "pull"))
		return template_pull(c, e);
	if (str_eq(word, "push"))
		return template_push(c, e);
	if (str_eq(word, "export"))
		return cmd_export_template(c, e);
	if (str_eq(word, "rm"))
		return cmd_remove(c, e);
	return template_usage(e, "one of ls, import, debian, agent, build, pull, push, export, rm");
}

/* A Debian without its package manager is half of one: where there are ids for it, it has them. */
static int choose_ids(struct template_ctx *c, const char *word, struct err *e)
{
	bool is_debian = str_eq(word, "agent") || str_eq(word, "debian");
	struct err why = ERR_INIT;

	if (c->is_sudo && c->is_plain)
		return template_usage(e, "--sudo and --plain contradict each other");
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
	struct template_ctx c = { .words = words };
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
		else if (id > 0)
			(void)table_opt(&c.how, &o, id);
		else if (o.at >= argc)
			break;
		else
			words[c.n++] = argv[o.at++];
	}
	if (c.n == 0)
		return template_usage(e, "one of ls, import, debian, agent, build, pull, push, "
					 "export, rm");
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
