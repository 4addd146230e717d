/* SPDX-License-Identifier: Apache-2.0 */
/* core/settings.c - see settings.h
 *
 * The question behind every check: could a process inside a sandbox have written these bytes? If so they may only
 * tighten. The user's file is the user's as long as nobody else can write it and it is not in the workspace; the
 * project file is opened beneath the workspace, following nothing, and is as good as its pin in the trust list. Each
 * file is read once, and what was read is what is hashed and merged.
 *
 * On the start path: with no files at all this costs two failed opens and one that succeeds.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/json.h"
#include "base/path.h"
#include "base/sabotage.h"
#include "core/def.h"
#include "core/own.h"
#include "core/settings.h"
#include "core/trust.h"

#define READ_FLAGS (O_RDONLY | O_NONBLOCK | O_NOCTTY)

/* The path of what fd refers to, as the kernel knows it. */
static int fd_path(int fd, char **ret, struct err *e)
{
	char link[32], path[4096];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path));
	if (n < 0)
		return err_sys(e, "readlink '%s'", link);
	if ((size_t)n >= sizeof(path) || path[0] != '/')
		return err_set(e, ERR_SYSTEM, ENAMETOOLONG, "a path that is too long");
	*ret = mem_strn(path, (size_t)n);
	return 0;
}

static int read_regular(int fd, const char *name, struct buf *out, struct stat *st, struct err *e)
{
	int r;

	if (fstat(fd, st) < 0)
		return err_sys(e, "stat '%s'", name);
	if (!S_ISREG(st->st_mode))
		return err_set(e, ERR_CONFIG, EINVAL, "'%s' is not a regular file", name);
	r = io_read_fd(fd, out, e);
	return r < 0 ? err_wrap(e, r, "'%s'", name) : 0;
}

static int check_writers(const struct stat *st, const char *name, struct err *e)
{
	if (st->st_uid != geteuid() && st->st_uid != 0)
		return err_set(e, ERR_CONFIG, EPERM, "'%s' belongs to another user", name);
	if (st->st_mode & 022)
		return err_set(e, ERR_CONFIG, EPERM,
			       "'%s' can be written by others; try: chmod go-w '%s'", name, name);
	return 0;
}

/* A policy that widens is the user's word. So it may be a link (dotfiles are), but what it leads to lies in no directory
 * that others may write, and in none that a sandbox may. `plain`: where it lies when it is no link, or NULL. */
static int check_place(const struct settings_in *in, const char *name, const char *plain, int fd,
		       struct err *e)
{
	_free_ char *real = NULL, *who = NULL;
	int r = fd_path(fd, &real, e);

	if (r == 0)
		r = own_check_folder(real, e);
	/* What may write the configuration directory itself does not start. */
	if (r < 0 || sabotaged("own") || (plain && str_eq(real, plain)))
		return r;
	who = in->state_dir ? def_may_write(in->state_dir, real) : NULL;
	if (in->workspace && path_is_beneath(real, in->workspace))
		return err_set(e, ERR_CONFIG, EPERM,
			       "'%.200s' leads to '%.200s' in the workspace, where an agent could "
			       "write it",
			       name, real);
	return who ? err_set(e, ERR_CONFIG, EPERM,
			     "'%.200s' is '%.200s', where the sandbox '%.64s' may write; move it "
			     "elsewhere, or 'vitrine rm %.64s'",
			     name, real, who, who)
		   : 0;
}

/* A file out of the workspace. */
static int merge_project(struct policy *p, const struct settings_in *in, const char *name,
			 const char *path, const struct buf *text, struct err *e)
{
	int r = in->config_dir ? trust_check(in->config_dir, path, buf_cstr(text), text->n, e) : 0;

	if (r < 0)
		return err_wrap(e, r, "trust list");
	return policy_merge_text(p, name, buf_cstr(text), text->n, LAYER_PROJECT, r > 0, e);
}

/* --policy FILE. */
static int load_named(struct policy *p, const struct settings_in *in, struct err *e)
{
	_close_ int fd = open(in->policy_file, READ_FLAGS | O_CLOEXEC);
	_cleanup_(buf_done) struct buf text = BUF(JSON_MAX_BYTES);
	_free_ char *path = NULL;
	struct stat st;
	int r;

	if (fd < 0) {
		r = err_sys(e, "policy '%s'", in->policy_file);
		e->kind = ERR_USAGE;
		return r;
	}
	r = read_regular(fd, in->policy_file, &text, &st, e);
	if (r < 0)
		return r;
	r = fd_path(fd, &path, e);
	if (r < 0)
		return r;
	if (in->workspace && path_is_beneath(path, in->workspace))
		return merge_project(p, in, in->policy_file, path, &text, e);
	r = check_writers(&st, in->policy_file, e);
	if (r == 0)
		r = check_place(in, in->policy_file, NULL, fd, e);
	if (r < 0)
		return r;
	return policy_merge_text(p, in->policy_file, buf_cstr(&text), text.n, LAYER_USER, true, e);
}

static int load_user(struct policy *p, int dir, const char *real_dir, const struct settings_in *in,
		     struct err *e)
{
	_free_ char *plain = path_join(real_dir, SETTINGS_USER_NAME);
	_close_ int fd = openat(dir, SETTINGS_USER_NAME, READ_FLAGS | O_CLOEXEC);
	_cleanup_(buf_done) struct buf text = BUF(JSON_MAX_BYTES);
	_free_ char *name = mem_fmt("%s/%s", in->config_dir, SETTINGS_USER_NAME);
	struct stat st;
	int r;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, "open '%s'", name);
	r = read_regular(fd, name, &text, &st, e);
	if (r < 0)
		return r;
	r = check_writers(&st, name, e);
	if (r == 0)
		r = check_place(in, name, plain, fd, e);
	if (r < 0)
		return r;
	return policy_merge_text(p, name, buf_cstr(&text), text.n, LAYER_USER, true, e);
}

static int load_config(struct policy *p, const struct settings_in *in, struct err *e)
{
	_close_ int dir = open(in->config_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	_free_ char *real = NULL;
	int r;

	if (dir < 0)
		return errno == ENOENT ? 0 : err_sys(e, "open '%s'", in->config_dir);
	r = fd_path(dir, &real, e);
	if (r < 0)
		return r;
	if (in->workspace && path_is_beneath(real, in->workspace))
		return err_set(e, ERR_CONFIG, EPERM,
			       "the configuration directory '%s' lies inside the workspace, where "
			       "an agent could write it",
			       real);
	return in->policy_file ? 0 : load_user(p, dir, real, in, e);
}

int settings_read_project(const char *workspace, struct buf *out, char **ret_path, struct err *e)
{
	_close_ int dir = open(workspace, O_PATH | O_DIRECTORY | O_CLOEXEC), fd = FD_NONE;
	_free_ char *real = NULL;
	struct stat st;
	int r;

	if (dir < 0) {
		r = err_sys(e, "workspace '%s'", workspace);
		return r == -ENOENT ? -ENOTDIR : r;
	}
	fd = path_open_beneath(dir, SETTINGS_PROJECT_NAME, READ_FLAGS, e);
	if (fd == -ENOENT) {
		*e = ERR_INIT;
		return fd;
	}
	if (fd == -ELOOP)
		return err_set(e, ERR_CONFIG, ELOOP,
			       "%s is a symbolic link; it must be a regular file",
			       SETTINGS_PROJECT_NAME);
	if (fd < 0)
		return fd;
	r = read_regular(fd, SETTINGS_PROJECT_NAME, out, &st, e);
	if (r < 0)
		return r;
	r = fd_path(dir, &real, e);
	if (r < 0)
		return r;
	*ret_path = path_join(real, SETTINGS_PROJECT_NAME);
	return 0;
}

static int load_project(struct policy *p, const struct settings_in *in, struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF(JSON_MAX_BYTES);
	_free_ char *path = NULL;
	int r = settings_read_project(in->workspace, &text, &path, e);

	if (r == -ENOENT)
		return 0;
	return r < 0 ? r : merge_project(p, in, SETTINGS_PROJECT_NAME, path, &text, e);
}

int settings_load(struct policy *p, const struct settings_in *in, struct err *e)
{
	int r = 0;

	if (in->config_dir)
		r = load_config(p, in, e);
	if (r < 0)
		return r;
	if (in->policy_file)
		r = load_named(p, in, e);
	if (r >= 0 && in->preset)
		r = in->preset(p, in->arg, e);
	if (r < 0 || !in->use_project || in->workspace == NULL)
		return r;
	return load_project(p, in, e);
}
