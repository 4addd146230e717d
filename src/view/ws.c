/* SPDX-License-Identifier: Apache-2.0 */
/* view/ws.c - see ws.h
 *
 * ws_resolve() walks component by component instead of asking the kernel once, because an absolute link into
 * the workspace is valid inside the sandbox (the path is the same there) but not "beneath" for openat2. The
 * text so far is always a real path, so ".." is the textual parent; above the workspace only the names of its
 * own ancestors are accepted, without looking at them.
 */
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>

#include "base/io.h"
#include "base/path.h"
#include "view/walk.h"
#include "view/ws.h"

#define LINKS_MAX 40

int ws_init(struct ws *ws, int fd, struct err *e)
{
	char proc[64], abs[PATH_MAX];
	ssize_t n;

	(void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	n = readlink(proc, abs, sizeof(abs));
	if (n < 0)
		return err_sys(e, "read '%s'", proc);
	if ((size_t)n >= sizeof(abs))
		return err_set(e, ERR_UNSUPPORTED, ENAMETOOLONG,
			       "the workspace path is longer than %d bytes", PATH_MAX);
	abs[n] = '\0';
	if (!path_is_clean(abs))
		return err_set(e, ERR_SYSTEM, ENOENT, "the workspace has no path");
	*ws = (struct ws){ .fd = fd, .abs = mem_str(abs) };
	return 0;
}

void ws_done(struct ws *ws)
{
	free(ws->abs);
	*ws = (struct ws){ .fd = FD_NONE };
}

char *ws_rel(const char *dir, const char *name)
{
	return dir[0] ? mem_fmt("%s/%s", dir, name) : mem_str(name);
}

int ws_lstat(int ws_fd, const char *rel, struct stat *ret)
{
	_close_ int fd = walk_open(ws_fd, rel, O_PATH | O_NOFOLLOW);

	if (fd < 0)
		return fd;
	return fstat(fd, ret) < 0 ? -errno : 0;
}

int ws_read(int dir_fd, const char *rel, struct buf *ret)
{
	_close_ int fd = walk_open(dir_fd, rel, O_RDONLY | O_NONBLOCK | O_NOCTTY);

	return io_read_regular(fd, ret);
}

/* Replaces *todo (whose first `used` bytes are done) by the target of the link fd and the rest. */
static int follow(int fd, char **todo, size_t used)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(fd, "", target, sizeof(target));
	char *next;

	if (n < 0)
		return -errno;
	/* The kernel bounds each link's text, not all that is left to do: resolve() counts the links. */
	if ((size_t)n >= sizeof(target))
		return -ENAMETOOLONG;
	target[n] = '\0';
	next = mem_fmt("%s/%s", target, *todo + used);
	free(*todo);
	*todo = next;
	return next[0] == '/';
}

/* One step down. Returns 1 when cand is a link that was put into *todo: `*ret_is_abs` says from where to go on. */
static int descend(const struct ws *ws, const char *cand, char **todo, size_t used,
		   bool *ret_is_abs)
{
	_close_ int fd = FD_NONE;
	struct stat st;
	int r;

	if (path_is_beneath(ws->abs, cand))
		return 0;
	if (!path_is_beneath(cand, ws->abs))
		return -EXDEV;
	fd = walk_open(ws->fd, path_below(cand, ws->abs), O_PATH | O_NOFOLLOW);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISLNK(st.st_mode))
		return 0;
	r = follow(fd, todo, used);
	if (r < 0)
		return r;
	*ret_is_abs = r;
	return 1;
}

static int resolve(const struct ws *ws, char **out, char **todo)
{
	size_t at = 0, links = 0;

	while ((*todo)[at]) {
		const char *comp = *todo + at;
		size_t n = strcspn(comp, "/");
		_free_ char *name = mem_strn(comp, n);
		_free_ char *cand = path_join(*out, n ? name : ".");
		bool is_abs = false;
		int r = 0;

		at += n;
		while ((*todo)[at] == '/')
			at++;
		if (!str_eq(cand, *out) && n && !str_eq(name, ".."))
			r = descend(ws, cand, todo, at, &is_abs);
		if (r < 0)
			return r;
		if (r > 0 && ++links > LINKS_MAX)
			return -ELOOP;
		if (r > 0)
			at = 0;
		if (r == 0 || is_abs) {
			free(*out);
			*out = is_abs ? mem_str("/") : take(cand);
		}
	}
	return 0;
}

int ws_resolve(const struct ws *ws, const char *base, const char *text, char **ret_rel)
{
	_free_ char *out = text[0] == '/' ? mem_str("/") : path_join(ws->abs, base);
	_free_ char *todo = mem_str(text);
	int r = strlen(text) > PATH_MAX ? -ENAMETOOLONG : resolve(ws, &out, &todo);

	if (r < 0)
		return r;
	if (!path_is_beneath(out, ws->abs) || str_eq(out, ws->abs))
		return -EXDEV;
	*ret_rel = mem_str(path_below(out, ws->abs));
	return 0;
}

static int real_rel(const struct ws *ws, int fd, char **ret_rel)
{
	_cleanup_(ws_done) struct ws at = { .fd = FD_NONE };
	struct err e = ERR_INIT;
	int r = ws_init(&at, fd, &e);

	if (r < 0)
		return r;
	bug_on(at.abs == NULL);
	if (!path_is_beneath(at.abs, ws->abs) || str_eq(at.abs, ws->abs))
		return -EXDEV;
	*ret_rel = mem_str(path_below(at.abs, ws->abs));
	return 0;
}

int ws_target(const struct ws *ws, const char *base, const char *text, char **ret_rel)
{
	size_t n = strlen(ws->abs);
	_free_ char *rel = NULL, *clean = NULL;
	_close_ int fd = FD_NONE;

	if (text[0] == '/' && (strncmp(text, ws->abs, n) != 0 || text[n] != '/'))
		return -EXDEV;
	rel = text[0] == '/' ? mem_str(text + n + 1) : ws_rel(base, text);
	fd = path_openat2(ws->fd, rel[0] ? rel : ".", O_PATH | O_NOFOLLOW,
			  RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	if (fd >= 0) {
		struct stat st;

		if (fstat(fd, &st) < 0)
			return -errno;
		return S_ISLNK(st.st_mode) ? -ELOOP : real_rel(ws, fd, ret_rel);
	}
	if (fd != -ENOENT)
		return fd;
	/* Not there (yet): as text, then. */
	clean = path_join(ws->abs, rel);
	if (!path_is_beneath(clean, ws->abs) || str_eq(clean, ws->abs))
		return -EXDEV;
	*ret_rel = mem_str(path_below(clean, ws->abs));
	return -ENOENT;
}
