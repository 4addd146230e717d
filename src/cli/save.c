/* SPDX-License-Identifier: Apache-2.0 */
/* cli/save.c - save, load: what a sandbox keeps to itself, as an image that others can read
 *
 * An image of a sandbox has one layer for its home and, under review, one for what it changed in the workspace. One of a
 * template's has two more below: the template's root, and what was installed above it; so it is complete, and whoever loads
 * it needs no template. It is made and read by vitrine-image behind walls; from here come only the directories it may see. A
 * loaded image brings files and nothing else: no flag, no policy, no secret of whoever saved it is in it or believed.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "agent/preset.h"
#include "base/io.h"
#include "base/path.h"
#include "cli/cli.h"
#include "cli/image.h"
#include "cli/review.h"
#include "cli/template.h"

enum { OPT_OUT = 1, OPT_WORKSPACE };

const struct opt save_opts[] = {
	{ "output", 'o', "FILE", "write a tar that other tools read, instead of keeping it here",
	  OPT_OUT },
	{ NULL, 0, NULL, NULL, 0 },
};

const struct opt load_opts[] = {
	{ "workspace", 0, "DIR", "the new sandbox's workspace (default: the current directory)",
	  OPT_WORKSPACE },
	{ NULL, 0, NULL, NULL, 0 },
};

/* ---- save ---- */

/* A stack, top first, as words and views. */
static void add_stack(struct image_job *j, const struct layers *l, const struct stack *s,
		      char letter)
{
	for (size_t i = 0; i < s->n; i++) {
		image_view(j, mem_fmt("%s/layers/%s/fs:/v/%c%zu:ro", l->state_dir, s->v[i], letter,
				      i));
		image_own_word(j, mem_fmt("/v/%c%zu", letter, i));
	}
}

static void add_home(struct image_job *j, const struct spot *s)
{
	const struct layers *l = &s->review.layers;

	image_word(j, "--");
	image_word(j, "home");
	image_word(j, s->host.home);
	image_word(j, "/tmp"); /* nothing lies below it: inside, this is empty */
	if (l->home.n > 0) {
		add_stack(j, l, &l->home, 'h');
		return;
	}
	image_view(j, mem_fmt("%s/sandboxes/%s/home:/v/h:ro", s->host.state_dir, s->sandbox));
	image_word(j, "/v/h");
}

static void add_workspace(struct image_job *j, const struct spot *s)
{
	const struct layers *l = &s->review.layers;

	if (l->ws.n == 0)
		return;
	image_word(j, "--");
	image_word(j, "workspace");
	image_word(j, s->host.workspace);
	image_word(j, "/v/base");
	image_view(j, mem_fmt("%s:/v/base:ro", s->host.workspace));
	add_stack(j, l, &l->ws, 'w');
}

/* ---- the system above a template ---- */

/* What the sandbox starts from instead of the host's own system. */
struct system {
	char *root;     /* NULL: the host's */
	bool is_rooted; /* it has ids of its own */
	struct ids ids; /* who its user is in it */
};

/* What was installed says above which template; a sandbox that never ran has its flag only. */
static int find_system(const struct spot *s, struct system *ret, struct err *e)
{
	const struct layers *l = &s->review.layers;
	const char *name = def_flag(&s->def, "--template=");
	struct facts f = s->host.facts;
	int r = 0;

	if (l->sys.n > 0 && l->below[0])
		r = template_of_mark(s->host.state_dir, f.uid, l->below, &ret->root, e);
	else if (name)
		r = template_find(s->host.state_dir, name, &ret->root, e);
	if (r == 0 && ret->root)
		r = template_is_rooted(ret->root, f.uid, &ret->is_rooted, e);
	f.inner_root = ret->is_rooted ? ROOT_SETUID : ROOT_NONE;
	ret->ids = plan_ids(&f);
	return r < 0 ? err_wrap(e, r, "'%s'", s->sandbox) : 0;
}

/* A plain template's sandbox writes in its /usr alone. */
static int add_system(struct image_job *j, const struct bench *b, const struct spot *s,
		      const struct system *y, struct err *e)
{
	const struct layers *l = &s->review.layers;
	const char *const root[] = { "--", "root", "/", "/tmp", "/v/root" };
	int r = image_view_path(j, b, y->root, "/v/root", e);

	for (size_t i = 0; i < ARRAY_LEN(root); i++)
		image_word(j, root[i]);
	if (l->sys.n == 0)
		return r;
	image_word(j, "--");
	image_word(j, "system");
	image_word(j, y->is_rooted ? "/" : "/usr");
	image_word(j, y->is_rooted ? "/v/root" : "/v/root/usr");
	add_stack(j, l, &l->sys, 's');
	return r;
}

/* ---- packing ---- */

struct parcel {
	const struct spot *s;
	const char *tag;
	struct system y;
};

static void begin_words(struct image_job *j, const struct parcel *p, const struct bench *b)
{
	image_view(j, mem_fmt("%s:/out:rw", b->part));
	image_word(j, "/vitrine-image");
	image_word(j, "pack");
	image_word(j, "/out");
	image_word(j, p->tag);
	if (p->y.root)
		image_own_word(j, mem_fmt("%u:%u", p->y.ids.uid_in, p->y.ids.gid_in));
	else
		image_word(j, "1000:1000");
	image_own_word(j, mem_fmt("org.vitrine.agent=%s", p->s->def.agent));
	image_own_word(j, mem_fmt("org.vitrine.home=%s", p->s->host.home));
	image_own_word(j, mem_fmt("org.vitrine.workspace=%s", p->s->host.workspace));
	if (p->y.root)
		image_word(j,
			   p->y.is_rooted ? "org.vitrine.system=sudo" : "org.vitrine.system=plain");
}

/* Who has to read it next is not the root of those ids; nobody else can come here. */
static int open_up(const struct bench *b, struct err *e)
{
	bug_on(b->part == NULL);
	return chmod(b->part, 0755) < 0 ? err_sys(e, "'%s'", b->part) : 0;
}

/* Home and workspace. A root inside may have left files of its own in the home: who is root of those ids can read them. For a
 * sandbox of the host's root there are none, and the root of its ids could not read the rest. */
static int pack_own(const struct parcel *p, const struct bench *b, int out, struct err *e)
{
	_cleanup_(image_job_done) struct image_job j = { .state_dir = p->s->host.state_dir };

	j.is_as_root = p->y.is_rooted && !p->s->host.facts.is_root;
	begin_words(&j, p, b);
	add_home(&j, p->s);
	add_workspace(&j, p->s);
	return image_run(&j, out, e);
}

/* The system below and what `own` holds above it. */
static int pack_whole(const struct parcel *p, const struct bench *b, const struct bench *own,
		      int out, struct err *e)
{
	_cleanup_(image_job_done) struct image_job j = { .state_dir = p->s->host.state_dir };
	int r = p->y.is_rooted ? bench_give(b, e) : 0;

	if (r < 0)
		return r;
	j.is_as_root = p->y.is_rooted;
	begin_words(&j, p, b);
	r = add_system(&j, b, p->s, &p->y, e);
	if (r < 0)
		return r;
	image_view(&j, mem_fmt("%s:/v/own:ro", own->part));
	image_word(&j, "--");
	image_word(&j, "layout");
	image_word(&j, "/v/own");
	r = image_run(&j, out, e);
	return r < 0 ? r : open_up(b, e);
}

static int pack(const struct spot *s, const struct bench *b, const char *tag, int out,
		struct err *e)
{
	_cleanup_(bench_close) struct bench own = BENCH_NONE;
	struct parcel p = { .s = s, .tag = tag };
	int r = find_system(s, &p.y, e);

	if (r == 0 && p.y.root) {
		r = bench_more(b, &own, e);
		if (r == 0)
			r = pack_own(&p, &own, FD_NONE, e);
		if (r == 0)
			r = open_up(&own, e);
		if (r == 0)
			r = pack_whole(&p, b, &own, out, e);
	} else if (r == 0) {
		r = pack_own(&p, b, out, e);
	}
	free(p.y.root);
	return r;
}

/* In place of an older one of that name. */
static int keep(const struct bench *b, const char *tag, struct err *e)
{
	_free_ char *path = mem_fmt("%s/%s", b->dir, tag);

	if (rename(b->part, path) == 0)
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return err_sys(e, "'%s'", path);
	/* Both change places; the old one goes with the bench. */
	return renameat2(AT_FDCWD, b->part, AT_FDCWD, path, RENAME_EXCHANGE) < 0
		       ? err_sys(e, "'%s'", path)
		       : 0;
}

static int save_to_file(const struct spot *s, const struct bench *b, const char *tag,
			const char *file, struct err *e)
{
	_free_ char *part = mem_fmt("%s.part", file);
	_close_ int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	int r;

	if (fd < 0)
		return err_sys(e, "'%s'", part);
	bench_file(b, part);
	r = pack(s, b, tag, fd, e);
	if (r == 0 && (fsync(fd) < 0 || rename(part, file) < 0))
		r = err_sys(e, "'%s'", file);
	if (r < 0)
		(void)unlink(part);
	return r;
}

static int save(struct spot *s, const char *tag, const char *file, struct err *e)
{
	_cleanup_(bench_close) struct bench b = BENCH_NONE;
	int r = spot_own(s, e);

	if (r == 0 && s->is_clone)
		r = err_set(e, ERR_UNSUPPORTED, ENOTSUP,
			    "'%s' works in a clone, which borrows objects that an image would "
			    "lack; "
			    "'vitrine fetch %s' takes its commits out",
			    s->sandbox, s->sandbox);
	if (r == 0)
		r = bench_open(&b, s->host.state_dir, e);
	if (r < 0)
		return r;
	r = file ? save_to_file(s, &b, tag, file, e) : pack(s, &b, tag, FD_NONE, e);
	if (r == 0 && file == NULL)
		r = keep(&b, tag, e);
	if (r == 0)
		(void)printf("%s\n", file ? file : tag);
	return r;
}

/* Options before, between and behind the words, of which there are at most two. */
static int parse(struct opts *o, const char **ret_value, char *words[2], struct err *e)
{
	int n = 0;

	for (;;) {
		int id = opts_next(o, e);

		if (id < 0)
			return id;
		if (id > 0)
			*ret_value = o->value;
		else if (o->at >= o->argc)
			return n;
		else if (n == 2)
			return err_set(e, ERR_USAGE, EINVAL, "'%.64s' is one word too many",
				       o->argv[o->at]);
		else
			words[n++] = o->argv[o->at++];
	}
}

int cmd_save(int argc, char **argv, struct err *e)
{
	_cleanup_(spot_close) struct spot s = SPOT_NONE;
	char *words[3] = { NULL };
	const char *file = NULL;
	char *name[2] = { NULL, NULL };
	char *const *rest = name;
	struct opts o;
	int r;

	opts_init(&o, save_opts, argc, argv);
	r = parse(&o, &file, words, e);
	if (r >= 0 && r != 2)
		r = err_set(e, ERR_USAGE, EINVAL, "save: 'vitrine save NAME TAG [-o FILE.tar]'");
	if (r >= 0 && !image_is_tag(words[1]))
		r = err_set(e, ERR_USAGE, EINVAL,
			    "'%.80s' cannot be a tag: letters, digits, '.', '_', '-' and ':' only",
			    words[1]);
	if (r < 0)
		return r;
	name[0] = words[0];
	r = spot_open(&s, NULL, false, &rest, e);
	if (r == 0 && s.sandbox == NULL)
		r = err_set(e, ERR_NOTFOUND, ENOENT,
			    "there is no sandbox '%.64s'; 'vitrine ls' lists them", words[0]);
	return r < 0 ? r : save(&s, words[1], file, e);
}

/* ---- load ---- */

/* A file, or what `save` keeps here under that tag. */
static int find_image(const char *state_dir, const char *word, char **ret, struct err *e)
{
	if (image_is_saved(state_dir, word)) {
		*ret = mem_fmt("%s/images/%s", state_dir, word);
		return 0;
	}
	return path_real(word, ret, e) < 0
		       ? err_set(e, ERR_NOTFOUND, ENOENT,
				 "'%.200s' is neither a file nor the tag of a saved image", word)
		       : 0;
}

static int unpack(const struct host *h, const struct bench *b, const char *image, struct err *e)
{
	_cleanup_(image_job_done) struct image_job j = { .state_dir = h->state_dir };
	int r = image_view_path(&j, b, image, "/in", e);

	if (r < 0)
		return r;
	image_view(&j, mem_fmt("%s:/out:rw", b->part));
	image_word(&j, "/vitrine-image");
	image_word(&j, "unpack");
	image_word(&j, "sandbox");
	image_word(&j, "/in");
	image_word(&j, "/out");
	return image_run(&j, FD_NONE, e);
}

/* What is gone from the tree below is marked as the kernel's overlay marks it. The names are foreign. */
static int mark_gone(const char *tree, const char *list, struct err *e)
{
	_cleanup_(buf_done) struct buf names = BUF(256 * MIB);
	_close_ int root = open(tree, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	_close_ int fd = open(list, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int r = root < 0 || fd < 0 ? err_sys(e, "'%s'", list) : io_read_fd(fd, &names, e);

	for (const char *p = names.p; r == 0 && p && p < names.p + names.n; p += strlen(p) + 1) {
		const char *slash = strrchr(p, '/'), *name = slash ? slash + 1 : p;
		_free_ char *dir = mem_strn(p, slash ? (size_t)(slash - p) : 0);
		_close_ int at = tree_open(root, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);

		if (at < 0 || name[0] == '\0' || str_eq(name, ".") || str_eq(name, ".."))
			continue; /* its directory is not there: nothing of it shows anyway */
		if (mknodat(at, name, S_IFCHR, makedev(0, 0)) < 0 && errno != EEXIST)
			r = err_sys(e, "a mark in '%s'", tree);
	}
	return r;
}

/* Where the part is there at all. */
static int take_part(const struct bench *b, const char *part, char **ret, struct err *e)
{
	_free_ char *tree = mem_fmt("%s/%s", b->part, part);
	_free_ char *list = mem_fmt("%s/whites-%s", b->part, part);
	struct stat st;
	int r;

	if (lstat(tree, &st) < 0)
		return 0;
	r = S_ISDIR(st.st_mode) ? mark_gone(tree, list, e)
				: err_set(e, ERR_DENIED, ENOTDIR, "'%s' is no directory", tree);
	if (r == 0)
		*ret = take(tree);
	return r;
}

static char *read_agent(const struct host *h, const struct bench *b)
{
	_cleanup_(buf_done) struct buf text = BUF(4 * KIB);
	_free_ char *path = mem_fmt("%s/meta", b->part);
	_close_ int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct err ignored;

	if (fd < 0 || io_read_fd(fd, &text, &ignored) < 0 ||
	    !preset_is_there(h->config_dir, buf_cstr(&text)))
		return mem_str("shell");
	return mem_str(buf_cstr(&text));
}

/* "sudo ID" or "plain ID", as vitrine-image wrote it; false: it holds no system. */
static bool read_system(const struct bench *b, bool *ret_is_sudo, char id[17])
{
	_cleanup_(buf_done) struct buf text = BUF(4 * KIB);
	_free_ char *path = mem_fmt("%s/system", b->part);
	_close_ int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct err ignored;
	const char *p;

	if (fd < 0 || io_read_fd(fd, &text, &ignored) < 0)
		return false;
	*ret_is_sudo = str_starts(buf_cstr(&text), "sudo ");
	p = strchr(buf_cstr(&text), ' ');
	if (p == NULL || strlen(p + 1) != 16 || strspn(p + 1, "0123456789abcdef") != 16)
		return false;
	(void)snprintf(id, 17, "%s", p + 1);
	return true;
}

/* Its system becomes a template. `as` NULL: named after what it holds, so that loaded twice, or left by one that was killed,
 * it is the same. *ret: its name; NULL: it holds no system. */
static int load_system(struct template_ctx *c, const struct bench *b, const char *image,
		       const char *word, const char *as, char **ret, struct err *e)
{
	_cleanup_(bench_close) struct bench more = BENCH_NONE;
	_free_ char *name = NULL, *source = NULL, *there = NULL;
	struct err why = ERR_INIT;
	bool is_sudo = false;
	char id[17];
	int r = 0;

	*ret = NULL;
	if (!read_system(b, &is_sudo, id))
		return 0;
	c->is_sudo = is_sudo && host_root(&c->host, ROOT_JOB, &why) == 0;
	if (is_sudo && !c->is_sudo)
		(void)fprintf(stderr,
			      "vitrine: its system will be one user's, without 'sudo' inside: %s\n",
			      why.msg);
	name = as ? mem_str(as) : mem_fmt("saved-%s%s", id, is_sudo && !c->is_sudo ? "-plain" : "");
	if (template_find(c->host.state_dir, name, &there, &why) < 0) {
		source = mem_fmt("load %s", word);
		r = bench_more(b, &more, e);
		if (r == 0)
			r = template_import(c, &more, image,
					    &(struct maker){ .name = name,
							     .source = source,
							     .part = "system",
							     .id = id,
							     .is_quiet = true },
					    e);
	}
	if (r == 0)
		*ret = take(name);
	return r;
}

/* Home, and what waits for review in the workspace, where the image has them. */
static int load_layers(const struct host *h, const struct bench *b, const char *name,
		       bool *ret_is_review, struct err *e)
{
	_free_ char *home = NULL, *ws = NULL;
	struct stat st;
	int r = take_part(b, "home", &home, e);

	if (r == 0)
		r = take_part(b, "workspace", &ws, e);
	if (r < 0)
		return r;
	if ((home && chmod(home, 0700) < 0) ||
	    (ws && (fstat(h->ws_fd, &st) < 0 || chmod(ws, st.st_mode & 07777) < 0)))
		return err_sys(e, "'%s'", b->part);
	*ret_is_review = ws != NULL;
	return layers_import(h->state_dir, name, home, ws, e);
}

static int load(struct template_ctx *c, const char *image, const char *word, const char *name,
		struct err *e)
{
	const struct host *h = &c->host;
	_cleanup_(bench_close) struct bench b = BENCH_NONE;
	_cleanup_(def_done) struct def d = { .name = mem_str(name),
					     .workspace = mem_str(h->workspace) };
	_free_ char *template = NULL;
	bool is_review = false;
	int r = bench_open(&b, h->state_dir, e);

	if (r == 0)
		r = unpack(h, &b, image, e);
	if (r == 0)
		r = load_system(c, &b, image, word, NULL, &template, e);
	if (r == 0) {
		_free_ char *flag = template ? mem_fmt("--template=%s", template) : NULL;

		d.agent = read_agent(h, &b);
		if (flag)
			def_add_flag(&d, flag);
		r = load_layers(h, &b, name, &is_review, e);
	}
	if (r < 0)
		return r;
	if (is_review)
		def_add_flag(&d, "--mode=review");
	r = def_create(h->state_dir, &d, e);
	if (r == 0)
		(void)printf("%s\n", name);
	return r;
}

int saved_begin(const struct host *host, const char *tag, const char *workspace, const char *name,
		struct saved *ret, struct err *e)
{
	struct template_ctx c = { .host = { .ws_fd = FD_NONE } };
	_cleanup_(bench_close) struct bench b = BENCH_NONE;
	_free_ char *image = NULL, *template = NULL;
	int r = host_init(&c.host, NULL, e); /* the caller's has no workspace yet */

	if (r == 0)
		r = host_workspace(&c.host, workspace, e);
	if (r == 0)
		r = plan_check_workspace(&c.host.facts, e);
	if (r == 0)
		r = find_image(host->state_dir, tag, &image, e);
	if (r == 0)
		r = bench_open(&b, host->state_dir, e);
	if (r == 0)
		r = unpack(&c.host, &b, image, e);
	if (r == 0)
		r = load_system(&c, &b, image, tag, tag, &template, e);
	if (r == 0)
		r = load_layers(&c.host, &b, name, &ret->is_review, e);
	ret->has_system = template != NULL;
	host_done(&c.host);
	return r;
}

int cmd_load(int argc, char **argv, struct err *e)
{
	char *words[3] = { NULL };
	const char *workspace = NULL;
	struct template_ctx c = { .host = { .ws_fd = FD_NONE } };
	_cleanup_(def_done) struct def there = { 0 };
	struct host *h = &c.host;
	_free_ char *image = NULL;
	struct err ignored;
	struct opts o;
	int r;

	opts_init(&o, load_opts, argc, argv);
	r = parse(&o, &workspace, words, e);
	if (r >= 0 && r != 2)
		r = err_set(e, ERR_USAGE, EINVAL, "load: 'vitrine load FILE.tar|TAG NAME'");
	if (r >= 0 && !def_is_name(words[1]))
		r = err_set(e, ERR_USAGE, EINVAL,
			    "'%.80s' cannot be a name: letters, digits, '_', '.' and '-' only",
			    words[1]);
	if (r < 0)
		return r;
	r = host_init(h, NULL, e);
	if (r == 0)
		r = host_workspace(h, workspace, e);
	if (r == 0)
		r = plan_check_workspace(&h->facts, e);
	if (r == 0 && def_read(h->state_dir, words[1], &there, &ignored) == 0)
		r = err_set(e, ERR_CONFLICT, EEXIST, "there is a sandbox '%s' already", words[1]);
	if (r == 0)
		r = find_image(h->state_dir, words[0], &image, e);
	if (r == 0)
		r = load(&c, image, words[0], words[1], e);
	host_done(h);
	return r;
}
