/* SPDX-License-Identifier: Apache-2.0 */
/* view/scan_refs.c - what git configurations name in the workspace: hooks, includes, scripts in commands
 *
 * Git reads more than the config of a repository: the user's own files and the system's, what these include, the config of
 * the repository that a linked worktree or a submodule belongs to, and that of a repository the workspace lies in. All of
 * them are the host's and out of reach of the inside, but a relative path in them (core.hooksPath = tools/hooks,
 * filter.x.clean = python3 tools/clean.py) means a file of the workspace. They are read once, at the scan; what they name
 * is kept with it (struct named_ref), for the sweep to hold new files against.
 *
 * A path counts from the top of a work tree, and from the git dir. A condition of includeIf is taken to be met. Each read is
 * bounded, and so are the depth and the number of includes; a file that git cannot read stops git as well: what came
 * before the mistake counts, the rest does not.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "base/sabotage.h"
#include "shell/named.h"
#include "view/git.h"
#include "view/gitcfg.h"
#include "view/scan.h"

#define CONFIG_MAX (1 * MIB)
#define POINTER_MAX (1 * MIB) /* as large as git reads */
#define INCLUDE_DEPTH 10      /* git itself fails on a longer chain */
#define INCLUDE_FILES 256

/* ---- paths ---- */

struct refs {
	const struct ws *ws;
	const char *gitdir; /* absolute; NULL: none in the workspace */
	const char *top;    /* absolute path of the work tree; NULL: none */
	scan_ref_fn fn;
	void *arg;
	int failed;
	struct err *e;
};

static const char *home_dir(void)
{
	const char *home = getenv("HOME");

	return home && path_is_clean(home) ? home : NULL;
}

static char *expand_home(const char *text)
{
	const char *home = home_dir();

	if (text[0] != '~' || text[1] != '/' || home == NULL)
		return mem_str(text);
	return path_join(home, text + 2);
}

static int report(struct refs *x, const char *base, const char *text, unsigned flags)
{
	_free_ char *full = expand_home(text), *abs = NULL, *rel = NULL;

	if (base == NULL || full[0] == '~')
		return 0;
	abs = path_join(base, full);
	if (!path_is_beneath(abs, x->ws->abs))
		return 0;
	rel = mem_str(path_below(abs, x->ws->abs));
	/* husky keeps generated stubs in "_" that run the scripts beside it. */
	if (flags & REF_HOOKS && str_ends(rel, "/_"))
		rel[strlen(rel) - 2] = '\0';
	/* The workspace, or what holds the repository itself, cannot be read-only. */
	if (rel[0] == '\0' || (x->gitdir && path_is_beneath(x->gitdir, abs)))
		return 0;
	return x->fn(x->arg, rel, flags, x->e);
}

static int report_from_top(struct refs *x, const char *text, unsigned flags)
{
	int r = report(x, x->top, text, flags);

	/* In a bare repository, and for absolute paths, this is the one. */
	return r < 0 ? r : report(x, x->gitdir, text, flags);
}

static void on_named(void *arg, const char *dir, const char *path, bool is_sure)
{
	struct refs *x = arg;
	unsigned flags = REF_FILE | (is_sure ? 0 : REF_UNSURE);
	_free_ char *text = dir[0] && path[0] != '/' ? mem_fmt("%s/%s", dir, path) : mem_str(path);

	if (x->failed >= 0 && strlen(text) < SCAN_REL_MAX)
		x->failed = report_from_top(x, text, flags);
}

/* An alias without "!" is a command of git's. */
static void report_command(struct refs *x, const char *value, bool is_alias)
{
	_free_ char *text = mem_fmt("%s%s", is_alias && value[0] != '!' ? "git " : "",
				    value + (value[0] == '!'));

	if (!sabotaged("interpreters"))
		shell_named(text, on_named, x);
}

static int report_value(struct refs *x, enum gitcfg_ref what, const char *value)
{
	switch (what) {
	case GITCFG_REF_HOOKS:
		x->failed = report_from_top(x, value, REF_HOOKS);
		break;
	case GITCFG_REF_INCLUDE: /* made absolute when it was read */
	case GITCFG_REF_FILE:
		x->failed = report_from_top(x, value, what == GITCFG_REF_INCLUDE ? REF_CONFIG : 0);
		break;
	case GITCFG_REF_COMMAND:
	case GITCFG_REF_ALIAS:
		report_command(x, value, what == GITCFG_REF_ALIAS);
		break;
	case GITCFG_REF_WORKTREE:
	case GITCFG_REF_NONE:
	case GITCFG_REF_COUNT_:
		break;
	}
	return x->failed;
}

/* ---- files ---- */

/* Any file of the host; NULL in *ret where there is none that could be read as a config. */
static int read_abs(const char *path, size_t max, struct buf *ret)
{
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	*ret = BUF(max);
	return fd < 0 ? -errno : io_read_regular(fd, ret);
}

typedef int (*item_fn)(void *arg, enum gitcfg_ref what, const char *value);

/* A config and all that it includes. */
struct source {
	const struct ws *ws;
	bool is_alone; /* what it includes is not read */
	char *dir;     /* of the file that is being read */
	unsigned depth;
	unsigned *files; /* that may still be read */
	item_fn fn;
	void *arg;
	int failed;
	struct err *e;
};

static int read_source(struct source *s, const char *path);

static int on_include(struct source *s, const char *text)
{
	_free_ char *full = expand_home(text), *abs = path_join(s->dir, full), *dir = NULL;
	struct source inner = *s;
	int r = s->fn(s->arg, GITCFG_REF_INCLUDE, abs);

	if (r < 0 || full[0] == '~' || s->depth >= INCLUDE_DEPTH)
		return r;
	if (*s->files == 0)
		return err_set(s->e, ERR_UNSUPPORTED, E2BIG,
			       "git config in '%.300s' includes more than %d files", s->dir,
			       INCLUDE_FILES);
	dir = path_parent(abs);
	inner.dir = dir;
	inner.depth++;
	(*s->files)--;
	return read_source(&inner, abs);
}

static int on_source_item(void *arg, const struct gitcfg_item *it)
{
	struct source *s = arg;
	enum gitcfg_ref what = gitcfg_refers(it);

	if (what == GITCFG_REF_INCLUDE)
		s->failed = s->is_alone ? 0 : on_include(s, it->value);
	else if (what != GITCFG_REF_NONE)
		s->failed = s->fn(s->arg, what, it->value);
	return s->failed < 0 ? 1 : 0;
}

bool scan_is_anothers(int r, int dir_fd, const char *name)
{
	struct stat st;

	return r == -EACCES && ws_lstat(dir_fd, name, &st) == 0 && st.st_uid != geteuid();
}

/* Returns 1 when it was read, 0 when git does not read it either. In the workspace no link is followed but as the inside
 * would follow it, and what cannot be looked at is not harmless. */
static int read_any(const struct source *s, const char *path, struct buf *ret)
{
	_free_ char *rel = NULL;
	int r;

	if (!path_is_beneath(path, s->ws->abs)) {
		r = read_abs(path, CONFIG_MAX, ret);
		return r < 0 && r != -EMSGSIZE ? 0 : r < 0 ? r : 1;
	}
	r = ws_resolve(s->ws, "", path, &rel);
	if (r == 0)
		r = ws_read(s->ws->fd, rel, ret);
	if (r >= 0 || r == -EMSGSIZE)
		return r < 0 ? r : 1;
	if (r == -EINVAL || s->is_alone || scan_is_nowhere(r) ||
	    (rel && scan_is_anothers(r, s->ws->fd, rel)))
		return 0;
	return scan_unseen(r, path_below(path, s->ws->abs), s->e);
}

/* A file that is there and cannot be looked at is not harmless: in the workspace, where the inside can have closed or leased
 * it, the start is refused. */
static int read_source(struct source *s, const char *path)
{
	_cleanup_(buf_done) struct buf b = BUF(CONFIG_MAX);
	int r = read_any(s, path, &b);

	if (r == -EMSGSIZE)
		return s->is_alone ? 0 /* it is not left there */
				   : err_set(s->e, ERR_UNSUPPORTED, EMSGSIZE,
					     "git config '%.300s' is larger than 1 MiB", path);
	if (r <= 0)
		return r;
	(void)gitcfg_read(buf_cstr(&b), b.n, GITCFG_GIT, on_source_item, s);
	return s->failed;
}

static int read_config(const struct ws *ws, const char *path, item_fn fn, void *arg, struct err *e)
{
	_free_ char *dir = path_parent(path);
	unsigned files = INCLUDE_FILES;
	struct source s = { .ws = ws, .dir = dir, .files = &files, .fn = fn, .arg = arg, .e = e };

	return read_source(&s, path);
}

/* ---- outside the workspace ---- */

struct keeping {
	struct scan *s;
	const struct ws *ws;
	const char *top; /* NULL: of every work tree */
};

static int keep_ref(void *arg, enum gitcfg_ref what, const char *value)
{
	struct keeping *k = arg;
	struct scan *s = k->s;

	if (what == GITCFG_REF_WORKTREE ||
	    (what == GITCFG_REF_INCLUDE && !path_is_beneath(value, k->ws->abs)))
		return 0;
	vec_reserve(s->refs, s->n_refs, s->cap_refs);
	s->refs[s->n_refs++] = (struct named_ref){ .what = (int)what,
						   .text = mem_str(value),
						   .top = k->top ? mem_str(k->top) : NULL };
	return 0;
}

/* The files that git reads for this user whatever the repository. A variable moves one of them; in another shell it may not be
 * set, so both places count. */
static int keep_users(struct keeping *k, struct err *e)
{
	const char *home = home_dir(), *xdg = getenv("XDG_CONFIG_HOME"),
		   *global = getenv("GIT_CONFIG_GLOBAL"), *system = getenv("GIT_CONFIG_SYSTEM");
	char *paths[] = { mem_str("/etc/gitconfig"),
			  system ? mem_str(system) : NULL,
			  global ? mem_str(global) : NULL,
			  xdg ? path_join(xdg, "git/config") : NULL,
			  home ? path_join(home, ".config/git/config") : NULL,
			  home ? path_join(home, ".gitconfig") : NULL };
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		bool is_again = false;

		for (size_t j = 0; j < i; j++)
			is_again = is_again || (paths[i] && paths[j] && str_eq(paths[i], paths[j]));
		if (r >= 0 && paths[i] && paths[i][0] == '/' && !is_again)
			r = read_config(k->ws, paths[i], keep_ref, k, e);
	}
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		free(paths[i]);
	return r;
}

/* The configs of a git dir that does not lie in the workspace. */
static int keep_gitdir(struct keeping *k, const char *gitdir, struct err *e)
{
	_free_ char *config = path_join(gitdir, "config"),
		    *own = path_join(gitdir, "config.worktree"),
		    *pointer = path_join(gitdir, "commondir"), *text = NULL, *common = NULL;
	_cleanup_(buf_done) struct buf b = BUF(POINTER_MAX);
	int r = read_config(k->ws, config, keep_ref, k, e);

	if (r >= 0)
		r = read_config(k->ws, own, keep_ref, k, e);
	if (r < 0 || read_abs(pointer, POINTER_MAX, &b) < 0)
		return r;
	text = git_pointer(buf_cstr(&b), b.n, "");
	common = text ? path_join(gitdir, text) : NULL;
	if (common == NULL)
		return r;
	free(config);
	config = path_join(common, "config");
	return read_config(k->ws, config, keep_ref, k, e);
}

static int keep_dotgit(struct keeping *k, const char *dotgit, struct err *e)
{
	_free_ char *dir = path_parent(dotgit), *text = NULL, *gitdir = NULL;
	_cleanup_(buf_done) struct buf b = BUF(POINTER_MAX);
	struct stat st;

	if (stat(dotgit, &st) < 0)
		return 0;
	if (S_ISDIR(st.st_mode))
		return keep_gitdir(k, dotgit, e);
	if (read_abs(dotgit, POINTER_MAX, &b) < 0)
		return 0;
	text = git_pointer(buf_cstr(&b), b.n, "gitdir: ");
	gitdir = text ? path_join(dir, text) : NULL;
	return gitdir && !path_is_beneath(gitdir, k->ws->abs) ? keep_gitdir(k, gitdir, e) : 0;
}

/* A repository whose work tree the workspace is a part of. */
static int keep_above(struct scan *s, const struct ws *ws, struct err *e)
{
	_free_ char *dir = mem_str(ws->abs);

	while (!str_eq(dir, "/")) {
		char *up = path_parent(dir);
		_free_ char *dotgit = path_join(up, ".git");

		free(dir);
		dir = up;
		if (access(dotgit, F_OK) == 0) {
			struct keeping k = { .s = s, .ws = ws, .top = dir };
			int r = keep_dotgit(&k, dotgit, e);

			return r < 0 ? r : keep_users(&k, e);
		}
	}
	return 0;
}

int refs_load(struct scan *s, const struct ws *ws, struct err *e)
{
	struct keeping k = { .s = s, .ws = ws };
	int r = keep_users(&k, e);

	return r < 0 ? r : keep_above(s, ws, e);
}

int refs_load_gitfile(struct scan *s, const struct ws *ws, const char *rel, struct err *e)
{
	_free_ char *dotgit = path_join(ws->abs, rel), *top = path_parent(dotgit);
	struct keeping k = { .s = s, .ws = ws, .top = top };

	return sabotaged("outside") ? 0 : keep_dotgit(&k, dotgit, e);
}

void refs_done(struct scan *s)
{
	for (size_t i = 0; i < s->n_refs; i++) {
		free(s->refs[i].text);
		free(s->refs[i].top);
	}
	free(s->refs);
	s->refs = NULL;
	s->n_refs = s->cap_refs = 0;
}

/* ---- who asks ---- */

static int report_kept(struct refs *x, const struct scan *s, bool has_top)
{
	int r = 0;

	for (size_t i = 0; s && r >= 0 && i < s->n_refs; i++) {
		const struct named_ref *g = &s->refs[i];

		if ((g->top != NULL) != has_top)
			continue;
		if (g->top)
			x->top = g->top;
		r = report_value(x, (enum gitcfg_ref)g->what, g->text);
	}
	return r;
}

int refs_outside(const struct scan *s, const struct ws *ws, scan_ref_fn fn, void *arg,
		 struct err *e)
{
	struct refs x = { .ws = ws, .fn = fn, .arg = arg, .e = e };

	return report_kept(&x, s, true);
}

struct reading {
	struct refs x;
	char *top;
	bool is_new;
};

static int on_item(void *arg, enum gitcfg_ref what, const char *value)
{
	struct reading *r = arg;
	_free_ char *rel = NULL, *below = NULL;

	if (what == GITCFG_REF_WORKTREE) {
		below = mem_str(path_below(r->x.gitdir, r->x.ws->abs));
		if (ws_resolve(r->x.ws, below, value, &rel) == 0) {
			free(r->top);
			r->top = path_join(r->x.ws->abs, rel);
			r->x.top = r->top;
		}
		return 0;
	}
	return r->is_new ? 0 : report_value(&r->x, what, value);
}

int scan_config_refs(const struct scan_config *c, scan_ref_fn fn, void *arg, struct err *e)
{
	_free_ char *gitdir = path_join(c->ws->abs, c->gitdir), *path = path_join(gitdir, c->name),
		    *dir = mem_str(gitdir);
	struct reading y = {
		.x = { .ws = c->ws, .gitdir = gitdir, .fn = fn, .arg = arg, .e = e },
		.is_new = c->is_new,
	};
	unsigned files = INCLUDE_FILES;
	struct source s = { .ws = c->ws,
			    .is_alone = c->is_new,
			    .dir = dir,
			    .files = &files,
			    .fn = on_item,
			    .arg = &y,
			    .e = e };
	int r;

	if (str_eq(path_name(gitdir), ".git"))
		y.x.top = y.top = path_parent(gitdir);
	r = read_source(&s, path);
	if (r >= 0 && str_eq(c->name, "config"))
		r = report_kept(&y.x, c->scan, false);
	free(y.top);
	return r;
}
