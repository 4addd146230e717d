/* SPDX-License-Identifier: Apache-2.0 */
/* view/scan_git.c - what an existing repository implies for the scan
 *
 * The parts that make git on the host run something are protected where they exist. What does not exist is not
 * created; that it appears is the sweep's business. Pointers are followed one step at a time: a .git file to its
 * git dir, commondir to the shared one, the config to the hooks directory and the scripts it names. Each step stays
 * in the workspace; what lies outside does not exist inside.
 */
#include <fcntl.h>

#include "base/path.h"
#include "view/find.h"
#include "view/git.h"
#include "view/gitcfg.h"
#include "view/scan.h"

#define CONFIG_MAX (1 * MIB)
#define POINTER_MAX (1 * MIB) /* as large as git reads */
#define INCLUDE_DEPTH 10      /* git itself fails on a longer chain */
#define INCLUDES_MAX 256
#define GITDIR_DEPTH 3

struct refs {
	const struct ws *ws;
	const char *gitdir;
	char *worktree; /* below the workspace; NULL: none of its own */
	char *dir;      /* of the file that is being read */
	unsigned depth;
	unsigned *includes; /* read so far, for all of one config */
	scan_ref_fn fn;
	void *arg;
	int failed;
	struct err *e;
};

static int read_refs(struct refs *x, int dir_fd, const char *name);

/* "!./tool --flag" -> "./tool". Only a word with a slash can be a file of the workspace. */
static char *first_word(const char *command)
{
	size_t n;

	command += *command == '!';
	command += strspn(command, " \t\"'");
	n = strcspn(command, " \t\"';|&<>()");
	return memchr(command, '/', n) ? mem_strn(command, n) : NULL;
}

static int report(struct refs *x, const char *base, const char *text, bool is_hooks)
{
	_free_ char *from = path_join(x->ws->abs, base);
	_free_ char *abs = path_join(from, text);
	_free_ char *rel = NULL;

	if (text[0] == '~' || !path_is_beneath(abs, x->ws->abs))
		return 0;
	rel = mem_str(path_below(abs, x->ws->abs));
	/* husky keeps generated stubs in "_" that run the scripts beside it. */
	if (is_hooks && str_ends(rel, "/_"))
		rel[strlen(rel) - 2] = '\0';
	/* The workspace, or what holds the repository itself, cannot be read-only. */
	if (rel[0] == '\0' || (str_starts(x->gitdir, rel) && strchr("/", x->gitdir[strlen(rel)])))
		return 0;
	return x->fn(x->arg, rel, x->e);
}

static int report_from_worktree(struct refs *x, const char *text, bool is_hooks)
{
	int r = x->worktree ? report(x, x->worktree, text, is_hooks) : 0;

	/* In a bare repository, and for absolute paths, this is the one. */
	return r < 0 ? r : report(x, x->gitdir, text, is_hooks);
}

static int include(struct refs *x, const char *text)
{
	_free_ char *rel = NULL, *dir = NULL;
	struct refs inner = *x;
	int r = report(x, x->dir, text, false);

	if (r < 0 || x->depth >= INCLUDE_DEPTH)
		return r;
	r = ws_resolve(x->ws, x->dir, text, &rel);
	if (r < 0)
		return scan_is_nowhere(r) ? 0 : scan_unseen(r, text, x->e);
	if (++*x->includes > INCLUDES_MAX)
		return err_set(x->e, ERR_UNSUPPORTED, E2BIG,
			       "git config in '%.300s' includes more than %d files", x->gitdir,
			       INCLUDES_MAX);
	dir = path_parent(rel);
	inner.dir = dir;
	inner.depth++;
	r = read_refs(&inner, x->ws->fd, rel);
	x->worktree = inner.worktree;
	return r;
}

static int on_item(void *arg, const struct gitcfg_item *it)
{
	struct refs *x = arg;
	_free_ char *word = NULL;

	switch (gitcfg_refers(it)) {
	case GITCFG_REF_HOOKS:
		x->failed = report_from_worktree(x, it->value, true);
		break;
	case GITCFG_REF_FILE:
		x->failed = report_from_worktree(x, it->value, false);
		break;
	case GITCFG_REF_COMMAND:
		word = first_word(it->value);
		if (word)
			x->failed = report_from_worktree(x, word, false);
		break;
	case GITCFG_REF_INCLUDE:
		x->failed = include(x, it->value);
		break;
	case GITCFG_REF_WORKTREE:
		if (ws_resolve(x->ws, x->gitdir, it->value, &word) == 0) {
			free(x->worktree);
			x->worktree = take(word);
		}
		break;
	case GITCFG_REF_NONE:
	case GITCFG_REF_COUNT_:
		break;
	}
	return x->failed < 0 ? 1 : 0;
}

/* What its owner closed to us git cannot read for us either, and nobody inside can change that. */
static bool is_anothers(int r, int dir_fd, const char *name)
{
	struct stat st;

	return r == -EACCES && ws_lstat(dir_fd, name, &st) == 0 && st.st_uid != geteuid();
}

/* A file that git cannot read stops git as well: what came before the mistake counts, the rest does not. */
static int read_refs(struct refs *x, int dir_fd, const char *name)
{
	_cleanup_(buf_done) struct buf b = BUF(CONFIG_MAX);
	int r = ws_read(dir_fd, name, &b);

	if (r == -EMSGSIZE)
		return err_set(x->e, ERR_UNSUPPORTED, EMSGSIZE,
			       "git config in '%.300s' is larger than 1 MiB", x->gitdir);
	if (r == -EINVAL || (r < 0 && (scan_is_nowhere(r) || is_anothers(r, dir_fd, name))))
		return 0;
	if (r < 0)
		return scan_unseen(r, name, x->e);
	(void)gitcfg_read(buf_cstr(&b), b.n, GITCFG_GIT, on_item, x);
	return x->failed;
}

int scan_config_refs(const struct scan_config *c, scan_ref_fn fn, void *arg, struct err *e)
{
	_free_ char *dir = mem_str(c->gitdir);
	unsigned includes = 0;
	struct refs x = { .ws = c->ws,
			  .gitdir = c->gitdir,
			  .dir = dir,
			  .includes = &includes,
			  .fn = fn,
			  .arg = arg,
			  .e = e };
	int r;

	if (str_eq(path_name(c->gitdir), ".git"))
		x.worktree = path_parent(c->gitdir);
	r = read_refs(&x, c->dir_fd, c->name);
	free(x.worktree);
	return r;
}

struct gitdir {
	struct scanner *sc;
	int fd;
	const char *rel;
	unsigned depth;
};

static int gitdir_at(struct scanner *sc, int fd, const char *rel, unsigned depth, struct err *e);

/* The git dir that a pointer leads to, if it lies in the workspace. */
static int follow(struct scanner *sc, const char *base, const char *text, unsigned depth,
		  struct err *e)
{
	_free_ char *rel = NULL;
	_close_ int fd = FD_NONE;
	int r;

	if (depth >= GITDIR_DEPTH) /* git follows a .git file and a commondir, and no more */
		return 0;
	r = ws_resolve(&sc->ws, base, text, &rel);
	if (r == 0)
		r = fd = walk_open(sc->ws.fd, rel, O_PATH | O_DIRECTORY);
	if (r < 0)
		return scan_is_nowhere(r) ? 0 : scan_unseen(r, text, e);
	return gitdir_at(sc, fd, rel, depth + 1, e);
}

static int follow_file(const struct gitdir *g, const char *name, const char *prefix, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(POINTER_MAX);
	_free_ char *text = NULL;
	int r = ws_read(g->fd, name, &b);

	if (r == -EINVAL || (r < 0 && (scan_is_nowhere(r) || is_anothers(r, g->fd, name))))
		return 0;
	if (r < 0)
		return scan_unseen(r, name, e);
	text = git_pointer_any(buf_cstr(&b), b.n, prefix);
	return text ? follow(g->sc, g->rel, text, g->depth, e) : 0;
}

static int on_ref(void *arg, char *rel, struct err *e)
{
	struct scanner *sc = arg;
	_free_ char *target = NULL;
	struct stat st = { 0 };
	int r = ws_lstat(sc->ws.fd, rel, &st);

	if (r == 0)
		return scan_add(sc, rel, HIT_PROTECT, FIND_GIT_RULE, &st, e);
	/* A link on the way. */
	if (r == -ELOOP)
		r = ws_resolve(&sc->ws, "", rel, &target);
	if (r == 0)
		r = ws_lstat(sc->ws.fd, target, &st);
	if (r < 0)
		return scan_is_nowhere(r) ? 0 : scan_unseen(r, rel, e);
	return scan_add(sc, target, HIT_PROTECT, FIND_GIT_RULE, &st, e);
}

static int on_part(void *arg, const char *name, enum git_what what, const struct stat *st,
		   struct err *e)
{
	struct gitdir *g = arg;
	_free_ char *rel = ws_rel(g->rel, name);
	int r;

	if (what == GIT_UNREADABLE) /* another's stays closed inside as well */
		return st->st_uid == geteuid()
			       ? scan_put(g->sc, rel, HIT_HIDE, RULE_UNREADABLE, st, e)
			       : 0;
	r = scan_add(g->sc, rel, HIT_PROTECT, FIND_GIT_RULE, st, e);
	if (r < 0)
		return r;
	if (what == GIT_CONFIG) {
		const struct scan_config c = {
			.ws = &g->sc->ws, .dir_fd = g->fd, .gitdir = g->rel, .name = name
		};

		return scan_config_refs(&c, on_ref, g->sc, e);
	}
	if (what == GIT_COMMONDIR)
		return follow_file(g, name, "", e);
	return 0;
}

static int gitdir_at(struct scanner *sc, int fd, const char *rel, unsigned depth, struct err *e)
{
	struct gitdir g = { .sc = sc, .fd = fd, .rel = rel, .depth = depth };
	_free_ char *copy = mem_str(rel);
	struct stat st;
	int r = 0;

	g.rel = copy;
	if (rel[0] && fstat(fd, &st) == 0)
		r = scan_put(sc, copy, HIT_PIN, FIND_GIT_RULE, &st, e);
	return r < 0 ? r : git_parts(fd, on_part, &g, e);
}

int scan_gitdir(struct scanner *sc, int fd, const char *rel, struct err *e)
{
	return gitdir_at(sc, fd, rel, 0, e);
}

int scan_gitfile(struct scanner *sc, int dir_fd, const char *name, const char *rel, struct err *e)
{
	_free_ char *base = path_parent(rel);
	const struct gitdir at = { .sc = sc, .fd = dir_fd, .rel = base };

	return follow_file(&at, name, "gitdir: ", e);
}
