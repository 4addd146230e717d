/* SPDX-License-Identifier: Apache-2.0 */
/* core/own.c - see own.h
 *
 * On the start path: one lstat for each component and one for each entry of the directory, some twenty calls.
 */
#include <dirent.h>
#include <fcntl.h>

#include "base/io.h"
#include "base/path.h"
#include "base/sabotage.h"
#include "core/own.h"

#define OVERFLOW_UID 65534

/* In a user namespace that does not map root, what is root's shows the id that stands for all that are not mapped. */
static bool is_unmapped(uid_t id)
{
	_cleanup_(buf_done) struct buf map = BUF(64 * KIB);
	struct err ignored = ERR_INIT;

	return id == OVERFLOW_UID && io_read_file("/proc/self/uid_map", &map, &ignored) >= 0 &&
	       strstr(buf_cstr(&map), "4294967295") == NULL;
}

const char *own_why_not(const struct stat *st, uid_t uid, gid_t gid)
{
	if (st->st_uid != uid && st->st_uid != 0 && !is_unmapped(st->st_uid))
		return "belongs to another user";
	if (st->st_mode & S_IWOTH && !(S_ISDIR(st->st_mode) && st->st_mode & S_ISVTX))
		return "can be written by everybody";
	if (st->st_mode & S_IWGRP && st->st_gid != gid && !(st->st_mode & S_ISVTX))
		return "can be written by another group";
	return NULL;
}

static int refuse(const char *path, const char *why, struct err *e)
{
	return err_set(e, ERR_DENIED, EPERM,
		       "'%.200s' %s, so Vitrine's own state would not be yours alone: chown or "
		       "chmod "
		       "go-w it, or set XDG_STATE_HOME to a directory of your own",
		       path, why);
}

struct me {
	uid_t uid;
	gid_t gid;
};

/* One directory on the way. 1: it is a link of the system's, 0: it is right, -ENOENT: not there yet. */
static int check_one(const struct me *me, const char *path, bool is_last, struct err *e)
{
	const char *why;
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? -ENOENT : err_sys(e, "'%s'", path);
	if (S_ISLNK(st.st_mode))
		return st.st_uid == 0 && me->uid != 0 && !is_last
			       ? 1
			       : refuse(path, "is a symbolic link", e);
	if (!S_ISDIR(st.st_mode))
		return refuse(path, "is not a directory", e);
	why = own_why_not(&st, me->uid, me->gid);
	/* Of the last one everything is ours. */
	if (why == NULL && is_last && st.st_uid != me->uid)
		why = "belongs to another user";
	if (why == NULL && is_last && st.st_mode & (S_IWGRP | S_IWOTH))
		why = "can be written by others";
	return why ? refuse(path, why, e) : 0;
}

/* *ret_real: as far as the way exists, when a link of the system's was on it. */
static int check_way(const struct me *me, const char *path, char **ret_real, struct err *e)
{
	_free_ char *head = mem_str(path);
	bool has_link = false;

	for (size_t n = 1, all = strlen(path);; n++) {
		int r;

		if (n < all && path[n] != '/')
			continue;
		head[n] = '\0';
		r = check_one(me, head, n == all, e);
		if (r == -ENOENT)
			break;
		if (r < 0)
			return r;
		if (r == 1 && !has_link) {
			_free_ char *real = NULL, *whole = NULL;

			r = path_real(head, &real, e);
			if (r < 0)
				return r;
			whole = mem_fmt("%s%s", real, path + n);
			*ret_real = take(whole);
			return 1;
		}
		if (n >= all)
			break;
		head[n] = '/';
	}
	return 0;
}

static int check_entry(const struct me *me, int dir, const char *folder, const char *name,
		       struct err *e)
{
	_free_ char *path = NULL;
	const char *why = NULL;
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_sys(e, "'%s/%s'", folder, name);
	if (S_ISLNK(st.st_mode))
		why = "is a symbolic link";
	else if (st.st_uid != me->uid)
		why = "belongs to another user";
	else if (st.st_mode & (S_IWGRP | S_IWOTH))
		why = "can be written by others";
	if (why == NULL)
		return 0;
	path = mem_fmt("%s/%s", folder, name);
	return refuse(path, why, e);
}

static int check_entries(const struct me *me, const char *path, struct err *e)
{
	DIR *d = opendir(path);
	struct dirent *en;
	int r = 0;

	if (d == NULL)
		return errno == ENOENT ? 0 : err_sys(e, "'%s'", path);
	while (r == 0 && (en = readdir(d)) != NULL)
		if (!str_eq(en->d_name, ".") && !str_eq(en->d_name, ".."))
			r = check_entry(me, dirfd(d), path, en->d_name, e);
	(void)closedir(d);
	return r;
}

#define LINKS_MAX 40

int own_check_state(char **path, struct err *e)
{
	const struct me me = { geteuid(), getegid() };
	int r = 1;

	if (sabotaged("own"))
		return 0;
	for (int i = 0; r == 1; i++) {
		char *real = NULL;

		if (i == LINKS_MAX)
			return err_set(e, ERR_SYSTEM, ELOOP, "'%s': too many links", *path);
		r = check_way(&me, *path, &real, e);
		if (r == 1) {
			free(*path);
			*path = real;
		}
	}
	return r < 0 ? r : check_entries(&me, *path, e);
}

int own_check_folder(const char *real, struct err *e)
{
	_free_ char *folder = path_parent(real);
	const char *why;
	struct stat st;

	if (sabotaged("own"))
		return 0;
	if (lstat(folder, &st) < 0)
		return err_sys(e, "'%s'", folder);
	why = S_ISDIR(st.st_mode) ? own_why_not(&st, geteuid(), getegid()) : "is not a directory";
	return why ? err_set(e, ERR_CONFIG, EPERM,
			     "'%.200s' lies in '%.200s', which %s; try: chmod go-w '%.200s'", real,
			     folder, why, folder)
		   : 0;
}
