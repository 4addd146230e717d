/* SPDX-License-Identifier: Apache-2.0 */
/* core/trust.c - see trust.h
 *
 * Readers open the list and look; a missing one is an empty one. Writers hold a lock on the directory, write the new
 * list beside the old one and rename it over, so a reader sees one or the other and two writers lose nothing. Both
 * work on descriptors and judge what they have opened, not what a name meant a moment ago.
 */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "base/sha256.h"
#include "core/trust.h"
#include "policy/policy.h"

#define LIST_NAME "trusted"
#define LIST_NEW "trusted.new"
#define LIST_MAX_BYTES MIB

/* Ours (or root's) and nobody else's to write. */
static int check_owner(int fd, const char *what, mode_t type, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(e, "stat '%s'", what);
	if ((st.st_mode & S_IFMT) != type)
		return err_set(e, ERR_CONFIG, EINVAL, "'%s' is not a %s", what,
			       type == S_IFDIR ? "directory" : "regular file");
	if ((st.st_uid != geteuid() && st.st_uid != 0) || (st.st_mode & 022))
		return err_set(e, ERR_CONFIG, EPERM,
			       "'%s' belongs to or is writable by somebody else", what);
	return 0;
}

/* fd, or -ENOENT when there is no such directory (with no story: that is no failure). */
static int open_dir(const char *config_dir, struct err *e)
{
	_close_ int fd = open(config_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return errno == ENOENT ? -ENOENT : err_sys(e, "open '%s'", config_dir);
	r = check_owner(fd, config_dir, S_IFDIR, e);
	return r < 0 ? r : take_fd(fd);
}

static int read_list(int dir, struct buf *out, struct err *e)
{
	_close_ int fd =
		openat(dir, LIST_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, "open '" LIST_NAME "'");
	r = check_owner(fd, LIST_NAME, S_IFREG, e);
	if (r < 0)
		return r;
	r = io_read_fd(fd, out, e);
	return r < 0 ? err_wrap(e, r, "'" LIST_NAME "'") : 0;
}

int trust_read(const char *config_dir, struct buf *out, struct err *e)
{
	_close_ int dir = open_dir(config_dir, e);

	if (dir == -ENOENT)
		return 0;
	return dir < 0 ? dir : read_list(dir, out, e);
}

static bool has_line(const char *list, const char *line)
{
	size_t n = strlen(line);

	while (*list) {
		size_t len = strcspn(list, "\n");

		if (len == n && memcmp(list, line, n) == 0)
			return true;
		list += len + (list[len] == '\n');
	}
	return false;
}

/* "HASH  PATH" for the content. */
static int make_line(const char *path, const char *text, size_t n, char **ret, struct err *e)
{
	char hex[SHA256_HEX_BYTES];

	sha256_hex(text, n, hex);
	return policy_trust_line(hex, path, ret, e);
}

int trust_check(const char *config_dir, const char *path, const char *text, size_t n, struct err *e)
{
	_cleanup_(buf_done) struct buf list = BUF(LIST_MAX_BYTES);
	_free_ char *line = NULL;
	int r = trust_read(config_dir, &list, e);

	if (r < 0 || list.n == 0)
		return r;
	/* The list is text; a NUL would end it early for us and not for a person looking at it. */
	if (memchr(list.p, '\0', list.n))
		return err_set(e, ERR_CONFIG, EINVAL, "'" LIST_NAME "' holds a NUL byte");
	r = make_line(path, text, n, &line, e);
	return r < 0 ? r : has_line(buf_cstr(&list), line);
}

/* Every directory on the way, ours private. */
static int make_dirs(const char *path, struct err *e)
{
	_free_ char *p = mem_str(path);

	for (char *c = p + 1; *c; c++) {
		if (*c != '/')
			continue;
		*c = '\0';
		if (mkdir(p, 0700) < 0 && errno != EEXIST)
			return err_sys(e, "mkdir '%s'", p);
		*c = '/';
	}
	if (mkdir(p, 0700) < 0 && errno != EEXIST)
		return err_sys(e, "mkdir '%s'", p);
	return 0;
}

static int write_list(int dir, const struct buf *list, struct err *e)
{
	_close_ int fd = FD_NONE;
	int r;

	if (list->is_over)
		return err_set(e, ERR_CONFIG, E2BIG, "too many trusted files");
	/* The directory is ours alone and locked: a leftover of this name is from a writer that died. */
	fd = openat(dir, LIST_NEW, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(e, "create '" LIST_NEW "'");
	if (fchmod(fd, 0600) < 0)
		return err_sys(e, "chmod '" LIST_NEW "'");
	r = io_write_all(fd, buf_cstr(list), list->n);
	if (r < 0) {
		errno = -r;
		return err_sys(e, "write '" LIST_NEW "'");
	}
	if (fsync(fd) < 0)
		return err_sys(e, "fsync '" LIST_NEW "'");
	if (renameat(dir, LIST_NEW, dir, LIST_NAME) < 0)
		return err_sys(e, "rename '" LIST_NEW "'");
	return 0;
}

/* Copies every line but those that pin path; true when there was one. */
static bool copy_others(const char *list, const char *path, struct buf *out)
{
	bool is_found = false;

	while (*list) {
		size_t len = strcspn(list, "\n"), n = strlen(path);
		bool is_pin = len > n + 2 && memcmp(list + len - n, path, n) == 0 &&
			      memcmp(list + len - n - 2, "  ", 2) == 0;

		if (is_pin)
			is_found = true;
		else if (len > 0)
			buf_printf(out, "%.*s\n", (int)len, list);
		list += len + (list[len] == '\n');
	}
	return is_found;
}

/* Replaces the pin of path by `line`, or removes it when that is NULL. 1: there was one. */
static int change(int dir, const char *path, const char *line, struct err *e)
{
	_cleanup_(buf_done) struct buf old = BUF(LIST_MAX_BYTES), new = BUF(LIST_MAX_BYTES);
	bool is_found;
	int r;

	if (flock(dir, LOCK_EX) < 0)
		return err_sys(e, "lock the configuration directory");
	r = read_list(dir, &old, e);
	if (r < 0)
		return r;
	is_found = copy_others(buf_cstr(&old), path, &new);
	if (line)
		buf_printf(&new, "%s\n", line);
	else if (!is_found)
		return 0;
	r = write_list(dir, &new, e);
	return r < 0 ? r : is_found;
}

static int check_place(const char *config_dir, const char *workspace, struct err *e)
{
	if (path_is_beneath(config_dir, workspace))
		return err_set(e, ERR_CONFIG, EPERM,
			       "the configuration directory '%s' lies inside the workspace, where "
			       "an agent "
			       "could write it",
			       config_dir);
	return 0;
}

int trust_add(const char *config_dir, const char *path, const char *text, size_t n, struct err *e)
{
	_close_ int dir = FD_NONE;
	_free_ char *line = NULL, *workspace = path_parent(path), *real = NULL;
	int r = make_line(path, text, n, &line, e);

	if (r < 0)
		return r;
	/* By name before anything is made, and again by what the name turns out to be. */
	r = check_place(config_dir, workspace, e);
	if (r < 0)
		return r;
	r = make_dirs(config_dir, e);
	if (r < 0)
		return r;
	r = path_real(config_dir, &real, e);
	if (r < 0)
		return r;
	r = check_place(real, workspace, e);
	if (r < 0)
		return r;
	dir = open_dir(config_dir, e);
	if (dir == -ENOENT)
		return err_set(e, ERR_SYSTEM, ENOENT, "'%s' has gone", config_dir);
	if (dir < 0)
		return dir;
	r = change(dir, path, line, e);
	return r < 0 ? r : 0;
}

int trust_remove(const char *config_dir, const char *path, struct err *e)
{
	_close_ int dir = open_dir(config_dir, e);

	if (dir == -ENOENT)
		return 0;
	return dir < 0 ? dir : change(dir, path, NULL, e);
}
