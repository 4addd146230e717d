/* SPDX-License-Identifier: Apache-2.0 */
/* view/scan_git.c - what an existing repository implies for the scan
 *
 * The parts that make git on the host run something are protected where they exist. What does not exist is not
 * created; that it appears is the sweep's business. Pointers are followed one step at a time: a .git file to its
 * git dir, commondir to the shared one, the config to the hooks directory and the scripts it names (scan_refs.c). Each step
 * stays in the workspace; what lies outside does not exist inside, and is only read for what it names.
 */
#include <fcntl.h>

#include "base/path.h"
#include "view/find.h"
#include "view/git.h"
#include "view/scan.h"

#define POINTER_MAX (1 * MIB) /* as large as git reads */
#define GITDIR_DEPTH 3

struct gitdir {
	struct scanner *sc;
	int fd;
	const char *rel;
	unsigned depth;
	bool has_config;
	bool is_made; /* by a sandbox: its parts are not protected; what others say of it counts */
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

	if (r == -EINVAL || (r < 0 && (scan_is_nowhere(r) || scan_is_anothers(r, g->fd, name))))
		return 0;
	if (r < 0)
		return scan_unseen(r, name, e);
	text = git_pointer_any(buf_cstr(&b), b.n, prefix);
	return text ? follow(g->sc, g->rel, text, g->depth, e) : 0;
}

int scan_ref(void *arg, char *rel, unsigned flags, struct err *e)
{
	struct scanner *sc = arg;
	_free_ char *target = NULL;
	struct stat st = { 0 };
	int r = ws_lstat(sc->ws.fd, rel, &st);

	/* A link on the way. */
	if (r == -ELOOP) {
		r = ws_resolve(&sc->ws, "", rel, &target);
		if (r == 0)
			r = ws_lstat(sc->ws.fd, target, &st);
	}
	if (r < 0)
		return scan_is_nowhere(r) ? 0 : scan_unseen(r, rel, e);
	if (flags & REF_FILE && S_ISDIR(st.st_mode))
		return 0;
	sc->is_config = flags & REF_CONFIG;
	r = scan_add(sc, target ? target : rel, HIT_PROTECT, FIND_GIT_RULE, &st, e);
	sc->is_config = false;
	return r;
}

static int config_refs(struct gitdir *g, const char *name, struct err *e)
{
	const struct scan_config c = {
		.ws = &g->sc->ws, .scan = g->sc->s, .gitdir = g->rel, .name = name
	};

	g->has_config = g->has_config || str_eq(name, "config");
	return scan_config_refs(&c, scan_ref, g->sc, e);
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
	g->sc->is_config = what == GIT_CONFIG;
	r = g->is_made ? 0 : scan_add(g->sc, rel, HIT_PROTECT, FIND_GIT_RULE, st, e);
	g->sc->is_config = false;
	if (r < 0)
		return r;
	if (what == GIT_CONFIG)
		return config_refs(g, name, e);
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
	g.is_made = made_has_gitdir(sc->made, fd, copy);
	if (rel[0] && !g.is_made && fstat(fd, &st) == 0) {
		size_t n = sc->s->n;

		r = scan_put(sc, copy, HIT_PIN, FIND_GIT_RULE, &st, e);
		/* A path that is too long, or gone by now, adds none. */
		if (r >= 0 && sc->s->n > n)
			sc->s->v[sc->s->n - 1].is_gitdir = true;
	}
	if (r >= 0)
		r = git_parts(fd, on_part, &g, e);
	return r < 0 || g.has_config ? r : config_refs(&g, "config", e);
}

int scan_gitdir(struct scanner *sc, int fd, const char *rel, struct err *e)
{
	return gitdir_at(sc, fd, rel, 0, e);
}

int scan_gitfile(struct scanner *sc, int dir_fd, const char *name, const char *rel, struct err *e)
{
	_free_ char *base = path_parent(rel);
	const struct gitdir at = { .sc = sc, .fd = dir_fd, .rel = base };
	int r = refs_load_gitfile(sc->s, &sc->ws, rel, e);

	return r < 0 ? r : follow_file(&at, name, "gitdir: ", e);
}
