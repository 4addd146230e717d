/* SPDX-License-Identifier: Apache-2.0 */
/* view/setid.c - see setid.h
 *
 * One stat for each regular file, also in what the policy protects and in git's own directories. A file is opened by its
 * path beneath the root before its mode is changed, so a name that is swapped meanwhile leads nowhere else. A directory that
 * cannot be read is opened up for the walk when the inside closed it: what is in it can be reached by its name all the same.
 */
#include "view/setid.h"

#include <fcntl.h>

#include "base/loop.h"
#include "view/index.h"
#include "view/quarantine.h"
#include "view/walk.h"
#include "view/ws.h"

#define BITS (S_ISUID | S_ISGID)

static bool has_changed(const struct setid *s, const struct stat *st)
{
	return (int64_t)st->st_ctim.tv_sec * (int64_t)NS_PER_SEC + st->st_ctim.tv_nsec >= s->since;
}

static bool has_bits(const struct stat *st)
{
	return S_ISREG(st->st_mode) && (st->st_mode & BITS);
}

static void strip(struct setid *s, int fd, const char *rel)
{
	struct stat st;
	char path[64];

	if (fstat(fd, &st) < 0 || !has_bits(&st))
		return;
	if (!s->on_found(s->arg, rel, st.st_mode & BITS, !has_changed(s, &st)))
		return;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	s->failed += chmod(path, st.st_mode & 07777 & ~(mode_t)BITS) < 0;
}

static void found(struct setid *s, const char *rel)
{
	_close_ int fd = FD_NONE;

	fd = walk_open(s->root_fd, rel, O_PATH | O_NOFOLLOW);
	if (fd >= 0)
		strip(s, fd, rel);
	else
		s->failed += !walk_is_gone(-fd);
}

/* A directory that can be listed and not passed: others may have the right that the inside took from us. The host's own, and
 * another user's, holds nothing of the inside's. */
static bool is_closed_inside(const struct setid *s, int dir_fd)
{
	struct stat st;

	return fstat(dir_fd, &st) < 0 || (st.st_uid == geteuid() && has_changed(s, &st));
}

void setid_look(struct setid *s, int dir_fd, const char *rel, const char *name)
{
	_free_ char *path = NULL;
	struct stat st;
	int r = fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW);

	if (r < 0 && errno == EACCES) {
		if (!is_closed_inside(s, dir_fd))
			return;
		if (quarantine_loosen(dir_fd, ".") == 0)
			r = fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW);
	}
	if (r < 0)
		s->failed += !walk_is_gone(errno);
	if (r < 0 || !has_bits(&st))
		return;
	path = ws_rel(rel, name);
	found(s, path);
}

struct listed {
	struct setid *s;
	bool is_whole;
};

static bool on_listed(void *arg, const char *rel)
{
	struct listed *l = arg;
	_close_ int fd = walk_open(l->s->root_fd, rel, O_PATH | O_NOFOLLOW);
	struct stat st;

	l->is_whole = fd >= 0 && fstat(fd, &st) == 0 && has_bits(&st);
	if (l->is_whole)
		strip(l->s, fd, rel);
	return l->is_whole;
}

bool setid_look_listed(struct setid *s, const struct index *list)
{
	struct listed l = { .s = s, .is_whole = true };

	index_setid_files(list, on_listed, &l);
	return l.is_whole;
}

/* ---- a walk of our own ---- */

struct below {
	struct setid *s;
	const char *rel; /* where the walk begins */
};

static unsigned on_entry(void *arg, struct walk_dir *d, const char *name, size_t len,
			 unsigned char type)
{
	const struct below *b = arg;
	_free_ char *rel = NULL;

	(void)len;
	if (type == DT_REG && b->rel[0] == '\0') {
		setid_look(b->s, d->fd, d->rel, name);
	} else if (type == DT_REG) {
		rel = d->rel[0] ? ws_rel(b->rel, d->rel) : mem_str(b->rel);
		setid_look(b->s, d->fd, rel, name);
	}
	return type == DT_DIR;
}

static int on_refused(void *arg, int parent_fd, const char *rel, const char *name, int num)
{
	const struct below *b = arg;
	struct stat st;
	int fd;

	(void)rel;
	if (num != EACCES || fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !has_changed(b->s, &st) || quarantine_loosen(parent_fd, name) < 0)
		return FD_NONE; /* the host closed it, or it is another user's: nothing of the inside's is in it */
	fd = walk_opendir(parent_fd, name);
	return fd >= 0 ? fd : FD_NONE;
}

int setid_look_below(struct setid *s, int fd, const char *rel, struct err *e)
{
	static const struct walk_ops ops = { .entry = on_entry, .refused = on_refused };
	struct below b = { .s = s, .rel = rel };
	struct walk_stats stats = { 0 };

	return walk_run(fd, 1, &ops, &b, &stats, e);
}

int setid_strip(struct setid *s, struct err *e)
{
	struct stat st;

	if (fstat(s->root_fd, &st) < 0)
		return err_sys(e, "stat");
	if (S_ISDIR(st.st_mode))
		return setid_look_below(s, s->root_fd, "", e);
	strip(s, s->root_fd, "");
	return 0;
}
