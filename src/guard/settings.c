/* SPDX-License-Identifier: Apache-2.0 */
/* guard/settings.c - the user's rules and the project's, in that order behind the built-in ones
 *
 * $XDG_CONFIG_HOME/vitrine/guard.json is the user's: it may add rules, switch some off and extend what counts as safe.
 * .vitrine-guard.json in the project or a directory above it may only add; it lies where the agent can write, so
 * nothing in it can make the guard weaker, and a broken one is an error rather than nothing.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "guard/guard.h"

#define FILE_MAX_BYTES ((size_t)256 * KIB)
#define PROJECT_FILE ".vitrine-guard.json"

static int add_file(struct guard *g, const char *path, bool is_users, struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF(FILE_MAX_BYTES);
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct rules *r;
	struct stat st;
	int x;

	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : err_sys(e, "'%s'", path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(e, ERR_CONFIG, EINVAL, "'%s' is not a file", path);
	x = io_read_fd(fd, &text, e);
	if (x < 0)
		return err_wrap(e, x, "'%s'", path);
	r = arena_new(&g->mem, struct rules);
	x = rules_load(&g->mem, buf_cstr(&text), text.n, is_users, r, e);
	if (x < 0)
		return err_wrap(e, x, "%s", path);
	g->sets[g->n_sets++] = r;
	if (r->is_strict)
		g->level = LEVEL_STRICT;
	if (is_users)
		g->off = r->off;
	return 1;
}

static const char *config_dir(struct guard *g)
{
	const char *xdg = getenv("XDG_CONFIG_HOME");

	return xdg && xdg[0] == '/' ? xdg : arena_fmt(&g->mem, "%s/.config", g->home);
}

/* The nearest one on the way up; the home directory and what is above it are no project. */
static int add_project(struct guard *g, const char *cwd, struct err *e)
{
	_free_ char *dir = path_join("/", cwd);

	for (int i = 0; i < 64; i++) {
		_free_ char *path = path_join(dir, PROJECT_FILE);
		char *up;
		int r = add_file(g, path, false, e);

		if (r != 0)
			return r;
		if (str_eq(dir, "/") || str_eq(dir, g->home))
			break;
		up = path_parent(dir);
		free(dir);
		dir = up;
	}
	return 0;
}

static const char *absolute_env(struct guard *g, const char *name, const char *otherwise)
{
	const char *s = getenv(name);
	_free_ char *clean = NULL;

	if (s == NULL || s[0] != '/')
		return otherwise;
	clean = path_join("/", s);
	return arena_strn(&g->mem, clean, strlen(clean));
}

/* The variable alone could be set by a project's settings; process 1 is ours only in a sandbox. */
bool guard_is_inside(void)
{
	_cleanup_(buf_done) struct buf name = BUF(64);
	struct err e = ERR_INIT;

	return getenv("VITRINE") && io_read_file("/proc/1/comm", &name, &e) >= 0 &&
	       str_starts(buf_cstr(&name), "vitrine");
}

int guard_init(struct guard *g, const char *cwd, struct err *e)
{
	_free_ char *clean = NULL;
	int r;

	guard_init_plain(g, "/root", NULL);
	g->home = absolute_env(g, "HOME", "/root");
	g->tmp = absolute_env(g, "TMPDIR", "/tmp");
	g->is_inside = guard_is_inside();
	if (cwd && cwd[0] == '/') {
		clean = path_join("/", cwd);
		g->cwd = arena_strn(&g->mem, clean, strlen(clean));
	}
	r = add_file(g, arena_fmt(&g->mem, "%s/vitrine/guard.json", config_dir(g)), true, e);
	if (r >= 0 && g->cwd)
		r = add_project(g, g->cwd, e);
	return r < 0 ? r : 0;
}
