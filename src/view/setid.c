/* SPDX-License-Identifier: Apache-2.0 */
/* view/setid.c - see setid.h
 *
 * One walk with a stat for each regular file, also in what the policy protects and in git's own directories. A file is
 * opened by its name before its mode is changed, so a name that is swapped meanwhile leads nowhere else. A directory that
 * cannot be read is opened up for the walk when the inside closed it: what is in it can be reached by its name all the same.
 */
#include "view/setid.h"

#include <fcntl.h>

#include "view/quarantine.h"
#include "view/walk.h"
#include "view/ws.h"

#define BITS (S_ISUID | S_ISGID)

static int64_t changed_at(const struct stat *st)
{
	return (int64_t)st->st_ctim.tv_sec * (int64_t)NS_PER_SEC + st->st_ctim.tv_nsec;
}

static bool is_wanted(struct setid *s, const struct stat *st)
{
	if (!S_ISREG(st->st_mode) || !(st->st_mode & BITS))
		return false;
	if (changed_at(st) >= s->since)
		return true;
	s->spared++;
	return false;
}

static void strip(struct setid *s, int fd, const char *rel)
{
	struct stat st;
	char path[64];

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !(st.st_mode & BITS))
		return;
	if (s->on_found)
		s->on_found(s->arg, rel, st.st_mode & BITS);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (chmod(path, st.st_mode & 07777 & ~(mode_t)BITS) < 0)
		s->failed++;
	else
		s->taken++;
}

static unsigned on_entry(void *arg, struct walk_dir *d, const char *name, size_t len,
			 unsigned char type)
{
	struct setid *s = arg;
	_free_ char *rel = NULL;
	_close_ int fd = FD_NONE;
	struct stat st;

	(void)len;
	if (type == DT_DIR)
		return 1;
	if (type != DT_REG || fstatat(d->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !is_wanted(s, &st))
		return 0;
	rel = ws_rel(d->rel, name);
	fd = openat(d->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		strip(s, fd, rel);
	else if (errno != ENOENT)
		s->failed++;
	return 0;
}

static int on_refused(void *arg, int parent_fd, const char *rel, const char *name, int num)
{
	const struct setid *s = arg;
	struct stat st;
	int fd;

	(void)rel;
	if (num != EACCES || fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    changed_at(&st) < s->since || quarantine_loosen(parent_fd, name) < 0)
		return FD_NONE; /* the host closed it, or it is another user's: nothing of the inside's is in it */
	fd = walk_opendir(parent_fd, name);
	return fd >= 0 ? fd : FD_NONE;
}

int setid_strip(int fd, struct setid *s, struct err *e)
{
	static const struct walk_ops ops = { .entry = on_entry, .refused = on_refused };
	struct walk_stats stats = { 0 };
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(e, "stat");
	if (S_ISDIR(st.st_mode))
		return walk_run(fd, 1, &ops, s, &stats, e);
	if (is_wanted(s, &st))
		strip(s, fd, "");
	return 0;
}
