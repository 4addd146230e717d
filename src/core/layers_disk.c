/* SPDX-License-Identifier: Apache-2.0 */
/* core/layers_disk.c - what a sandbox keeps on the disk: its folder, its layers and those of its checkpoints
 *
 * A walk by descriptors, which follows no link and stays on one file system. It is bounded in names and in depth, for what
 * is walked through belongs to the inside.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "core/layers.h"

#define DEPTH_MAX 200 /* a descriptor is open on each level... */
#define LATER_MAX                                                                                  \
	200 /* ...and for each directory that lies deeper, which is walked through when those are closed */

struct walk {
	struct disk_use use;
	uint64_t max_names;
	int later[LATER_MAX];
	size_t n_later;
};

static void walk_dir(struct walk *w, int take_fd, dev_t dev, int depth);

/* A file with many names takes its room once: each has its share. All its names lie in layers, since no link leads from one
 * mount to another; so together they are counted in full. */
static uint64_t share_of(const struct stat *st)
{
	return (uint64_t)st->st_blocks * 512 /
	       (S_ISREG(st->st_mode) && st->st_nlink > 1 ? (uint64_t)st->st_nlink : 1);
}

static void walk_below(struct walk *w, int at, const char *name, dev_t dev, int depth)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return;
	if (depth < DEPTH_MAX) {
		walk_dir(w, fd, dev, depth);
	} else if (w->n_later < LATER_MAX) {
		w->later[w->n_later++] = fd;
	} else {
		w->use.is_cut = true;
		fd_close(fd);
	}
}

static void walk_dir(struct walk *w, int take_fd, dev_t dev, int depth)
{
	DIR *d = fdopendir(take_fd);
	struct dirent *en;

	if (d == NULL) {
		fd_close(take_fd);
		return;
	}
	while (!w->use.is_cut && (en = readdir(d)) != NULL) {
		struct stat st;

		if (str_eq(en->d_name, ".") || str_eq(en->d_name, "..") ||
		    fstatat(dirfd(d), en->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		w->use.names++;
		w->use.bytes += share_of(&st);
		w->use.is_cut = w->use.names >= w->max_names;
		if (S_ISDIR(st.st_mode) && (dev == 0 || st.st_dev == dev))
			walk_below(w, dirfd(d), en->d_name, st.st_dev, depth + 1);
	}
	(void)closedir(d);
}

static void walk_tree(struct walk *w, const char *path)
{
	walk_below(w, AT_FDCWD, path, 0, 0);
	while (w->n_later > 0) {
		int fd = w->later[--w->n_later];
		struct stat st;

		if (w->use.is_cut || fstat(fd, &st) < 0)
			fd_close(fd);
		else
			walk_dir(w, fd, st.st_dev, 0);
	}
}

struct disk_use layers_disk(const char *state_dir, const char *name, uint64_t max_names)
{
	_free_ char *path = mem_fmt("%s/sandboxes/%s", state_dir, name);
	struct walk w = { .max_names = max_names };
	char(*ids)[LAYER_ID_BYTES] = NULL;
	size_t n = 0;

	walk_tree(&w, path);
	layers_named(state_dir, name, &ids, &n);
	for (size_t i = 0; i < n; i++) {
		_free_ char *layer = mem_fmt("%s/layers/%s", state_dir, ids[i]);

		walk_tree(&w, layer);
	}
	free(ids);
	return w.use;
}

/* ---- as root of its ids ---- */

struct asked {
	const char *state_dir, *name;
	uint64_t max_names;
	struct disk_use use; /* the answer */
};

static void count(void *arg)
{
	struct asked *a = arg;

	a->use = layers_disk(a->state_dir, a->name, a->max_names);
}

/* Where that cannot be, what the caller can see is still counted. */
struct disk_use layers_disk_rooted(const char *state_dir, const char *name, uint64_t max_names,
				   const struct id_map *uids, const struct id_map *gids)
{
	struct asked *a =
		mmap(NULL, sizeof(*a), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct disk_use use;
	struct err ignored;

	if (geteuid() == 0 || a == MAP_FAILED) {
		use = layers_disk(state_dir, name, max_names);
	} else {
		*a = (struct asked){ .state_dir = state_dir, .name = name, .max_names = max_names };
		use = subids_run(uids, gids, count, a, &ignored) == 0
			      ? a->use
			      : layers_disk(state_dir, name, max_names);
	}
	if (a != MAP_FAILED)
		(void)munmap(a, sizeof(*a));
	return use;
}
