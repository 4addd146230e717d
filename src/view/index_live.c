/* SPDX-License-Identifier: Apache-2.0 */
/* view/index_live.c - which sandboxes may write in a tree now
 *
 * One small file for each tree, with a byte for each sandbox: set before the sandbox starts, cleared when the tree was
 * swept to its end. A lock on the byte belongs to an open file, so it goes with the last process that holds it, however
 * that ends. A byte that is set and not locked is of a keeper that died, or could not sweep to the end: the tree's files
 * are removed, and the next start reads every directory.
 */
#include <dirent.h>
#include <fcntl.h>

#include "base/path.h"
#include "base/sabotage.h"
#include "view/index_own.h"
#include "view/walk.h"

#define SLOTS 64
#define SUFFIX ".live"

static int lock_slot(int fd, int how, short type, unsigned slot, short *ret_type)
{
	struct flock l = { .l_type = type, .l_whence = SEEK_SET, .l_start = slot, .l_len = 1 };

	if (fcntl(fd, how, &l) < 0)
		return -errno;
	if (ret_type)
		*ret_type = l.l_type;
	return 0;
}

static bool put_mark(int fd, unsigned slot, bool is_set)
{
	return pwrite(fd, is_set ? "\1" : "", 1, (off_t)slot) == 1;
}

static int open_live(const char *state_dir, const struct index *x, int flags)
{
	_close_ int dir = index_folder(state_dir), fd = FD_NONE;
	char stem[INDEX_STEM_MAX], name[INDEX_STEM_MAX + sizeof(SUFFIX)];
	struct stat st;

	if (dir == -ENOENT && flags & O_CREAT) {
		_free_ char *path = mem_fmt("%s/" INDEX_FOLDER, state_dir);
		int r = path_make(path, 0700);

		dir = r < 0 ? r : index_folder(state_dir);
	}
	if (dir < 0)
		return dir;
	index_stem(x, stem);
	(void)snprintf(name, sizeof(name), "%s" SUFFIX, stem);
	fd = openat(dir, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | flags, 0600);
	if (fd < 0)
		return -errno;
	return index_is_ours(fd, &st) ? take_fd(fd) : -EPERM;
}

/* Every list of the tree, whatever rules it is for. */
static void remove_lists(const char *state_dir, const struct index *x)
{
	_close_ int dir = index_folder(state_dir), fd = dir < 0 ? dir : walk_opendir(dir, ".");
	char stem[INDEX_STEM_MAX];
	const struct dirent *de;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (d == NULL)
		return;
	(void)take_fd(fd); /* the stream's now */
	index_stem(x, stem);
	while ((de = readdir(d)) != NULL)
		if (str_starts(de->d_name, stem) && de->d_name[strlen(stem)] == '-')
			(void)unlinkat(dir, de->d_name, 0);
	(void)closedir(d);
}

bool index_live_check(const char *state_dir, const struct index *x)
{
	_close_ int fd = open_live(state_dir, x, 0);
	unsigned char v[SLOTS] = { 0 };
	bool is_dead[SLOTS] = { 0 }, has_dead = false;

	if (fd < 0 || pread(fd, v, sizeof(v), 0) < 0)
		return false;
	for (unsigned i = 0; i < SLOTS; i++) {
		short type = F_WRLCK;

		if (!v[i])
			continue;
		if (lock_slot(fd, F_OFD_GETLK, F_WRLCK, i, &type) < 0 || type == F_UNLCK)
			has_dead = is_dead[i] = true;
	}
	if (!has_dead || sabotaged("index-live"))
		return true;
	remove_lists(state_dir, x);
	for (unsigned i = 0; i < SLOTS; i++)
		if (is_dead[i] && lock_slot(fd, F_OFD_SETLK, F_WRLCK, i, NULL) == 0)
			(void)put_mark(fd, i, false); /* tried again by the next start */
	return false;
}

int index_live_claim(const char *state_dir, const struct index *x, unsigned *ret_slot)
{
	_close_ int fd = open_live(state_dir, x, O_CREAT);

	if (fd < 0)
		return fd;
	for (unsigned i = 0; i < SLOTS; i++) {
		unsigned char was = 0;

		if (lock_slot(fd, F_OFD_SETLK, F_WRLCK, i, NULL) < 0)
			continue;
		/* A mark of a keeper that died stays until the next start has seen it. */
		if (pread(fd, &was, 1, (off_t)i) < 0 || was) {
			(void)lock_slot(fd, F_OFD_SETLK, F_UNLCK, i, NULL);
			continue;
		}
		if (!put_mark(fd, i, true))
			return -EIO;
		/* Shared, so that the keeper can take it too while we still hold it. */
		(void)lock_slot(fd, F_OFD_SETLK, F_RDLCK, i, NULL);
		*ret_slot = i;
		return take_fd(fd);
	}
	/* Who has no mark leaves no trace of its death: nothing may be trusted then. */
	remove_lists(state_dir, x);
	return -ENOSPC;
}

int index_live_join(const char *state_dir, const struct index *x, unsigned slot)
{
	_close_ int fd = open_live(state_dir, x, 0);
	int r = fd < 0 ? fd : lock_slot(fd, F_OFD_SETLK, F_RDLCK, slot, NULL);

	return r < 0 ? r : take_fd(fd);
}

void index_live_leave(int fd, unsigned slot)
{
	if (fd < 0)
		return;
	/* A mark that stays makes the next start read everything. */
	if (put_mark(fd, slot, false))
		(void)lock_slot(fd, F_OFD_SETLK, F_UNLCK, slot, NULL);
	fd_close(fd);
}
