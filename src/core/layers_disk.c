/* SPDX-License-Identifier: Apache-2.0 */
/* core/layers_disk.c - what a sandbox keeps on the disk: its folder, its layers and those of its checkpoints
 *
 * A walk by descriptors, which follows no link and stays on one file system. It is bounded in names and in depth, for what
 * is walked through belongs to the inside.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "core/layers.h"

#define DEPTH_MAX 500 /* a descriptor is open on each level */

static void walk(struct disk_use *u, uint64_t max_names, int dirfd, const char *name, dev_t dev,
		 int depth)
{
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *en;

	if (d == NULL) {
		fd_close(fd);
		return;
	}
	while (!u->is_cut && (en = readdir(d)) != NULL) {
		struct stat st;

		if (str_eq(en->d_name, ".") || str_eq(en->d_name, "..") ||
		    fstatat(fd, en->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		u->names++;
		u->bytes += (uint64_t)st.st_blocks * 512;
		u->is_cut = u->names >= max_names;
		if (!S_ISDIR(st.st_mode) || (dev != 0 && st.st_dev != dev))
			continue;
		if (depth >= DEPTH_MAX)
			u->is_cut = true;
		else
			walk(u, max_names, fd, en->d_name, st.st_dev, depth + 1);
	}
	(void)closedir(d);
}

struct disk_use layers_disk(const char *state_dir, const char *name, uint64_t max_names)
{
	_free_ char *path = mem_fmt("%s/sandboxes/%s", state_dir, name);
	char(*ids)[LAYER_ID_BYTES] = NULL;
	struct disk_use u = { 0 };
	size_t n = 0;

	walk(&u, max_names, AT_FDCWD, path, 0, 0);
	layers_named(state_dir, name, &ids, &n);
	for (size_t i = 0; i < n; i++) {
		_free_ char *layer = mem_fmt("%s/layers/%s", state_dir, ids[i]);

		walk(&u, max_names, AT_FDCWD, layer, 0, 0);
	}
	free(ids);
	return u;
}
