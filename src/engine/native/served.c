/* SPDX-License-Identifier: Apache-2.0 */
/* engine/native/served.c - the mount of a git dir that is served by name (dir/)
 *
 * Runs in the mate. /dev/fuse must be opened in the user namespace that mounts, and while we are still the caller: root's
 * ids inside may not open it. Its descriptor goes to the keeper, which gives it to vitrine-dir and keeps none; ours is
 * closed, so that the mount is dead when the server is. Where any of this fails, the git dir's covers are mounted, as
 * for every other directory.
 *
 * Nothing here allocates or logs.
 */
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/path.h"
#include "engine/native/native.h"

#define SAFE (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

static int set_number(int fs, const char *key, unsigned value, const char *format)
{
	char text[24];

	(void)snprintf(text, sizeof(text), format, value);
	return fsconfig(fs, FSCONFIG_SET_STRING, key, text, 0) < 0 ? -errno : 0;
}

/* Everybody inside may use it, and the kernel judges by owner and mode as for any other file. */
static int make_mount(const struct ids *ids, int fuse)
{
	_close_ int fs = fsopen("fuse", FSOPEN_CLOEXEC);
	int r = fs < 0 ? -errno : set_number(fs, "fd", (unsigned)fuse, "%u"), tree;

	if (r == 0)
		r = set_number(fs, "rootmode", S_IFDIR, "%o");
	if (r == 0)
		r = set_number(fs, "user_id", ids->uid_in, "%u");
	if (r == 0)
		r = set_number(fs, "group_id", ids->gid_in, "%u");
	if (r < 0)
		return r;
	if (fsconfig(fs, FSCONFIG_SET_FLAG, "default_permissions", NULL, 0) < 0 ||
	    fsconfig(fs, FSCONFIG_SET_FLAG, "allow_other", NULL, 0) < 0 ||
	    fsconfig(fs, FSCONFIG_SET_STRING, "source", "vitrine-dir", 0) < 0 ||
	    fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	tree = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	return tree < 0 ? -errno : tree;
}

int served_make(struct child *c)
{
	struct init_msg m = { .type = INIT_SERVED };
	_close_ int fuse = FD_NONE;

	if (!c->plan->serves_git)
		return 0;
	fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	c->served = fuse < 0 ? -errno : make_mount(&c->ids, fuse);
	if (c->served < 0)
		m.a = -c->served;
	return init_send(c->ctl, &m, &fuse, c->served >= 0 ? 1 : 0);
}

/* What the git dir has under this name, seen through the mount that the workspace is. */
static int clone_part(int git, const char *name)
{
	_close_ int at = path_openat2(git, name, O_PATH | O_NOFOLLOW | O_DIRECTORY, SAFE);

	if (at == -ENOENT || at == -ENOTDIR || at == -ELOOP)
		return FD_NONE;
	return at < 0 ? at : mounts_clone(at, "", 0);
}

/* The host may have taken it away meanwhile: then it is served like everything else. */
static int attach_part(int served, const char *name, int tree)
{
	_close_ int at = path_openat2(served, name, O_PATH | O_NOFOLLOW | O_DIRECTORY, SAFE);

	if (at == -ENOENT || at == -ENOTDIR || at == -ELOOP || at == -ESTALE)
		return 0;
	if (at < 0)
		return at;
	return move_mount(tree, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0
		       ? -errno
		       : 0;
}

int served_attach_parts(int root, const struct mount *m, const int trees[SERVED_PARTS])
{
	_close_ int served =
		path_openat2(root, m->dst + 1, O_PATH | O_NOFOLLOW | O_DIRECTORY, SAFE);
	struct stat st;
	int r = 0;

	if (served < 0 || fstat(served, &st) < 0)
		return served < 0 ? served : -errno;
	if (st.st_dev == m->dev)
		return 0; /* the host replaced .git: this one is not served */
	for (size_t i = 0; r == 0 && i < SERVED_PARTS; i++)
		if (trees[i] >= 0)
			r = attach_part(served, plan_served_binds[i], trees[i]);
	return r;
}

/* To attach them now would wait for a server, which most commands never need. */
static int hand_out_parts(const struct child *c, const int trees[SERVED_PARTS])
{
	struct init_msg m = { .type = INIT_PARTS };
	int fds[PACKET_FDS];
	size_t n = 0;

	for (size_t i = 0; i < SERVED_PARTS; i++)
		if (trees[i] >= 0) {
			fds[n++] = trees[i];
			m.flags |= BIT(i);
		}
	return init_send(c->ctl, &m, fds, n);
}

/* Objects, refs and logs are the bulk of what git reads and writes: they are attached as they are. */
int served_attach(struct child *c, const struct mount *m)
{
	_close_ int git = FD_NONE;
	int trees[SERVED_PARTS] = { FD_NONE, FD_NONE, FD_NONE }, r = 0;
	struct stat st;

	if (c->served < 0)
		return 0;
	git = path_openat2(c->root, m->dst + 1, O_PATH | O_NOFOLLOW | O_DIRECTORY, SAFE);
	if (git < 0 || fstat(git, &st) < 0)
		return git < 0 ? git : -errno;
	if (st.st_dev != m->dev || st.st_ino != m->ino)
		return -ESTALE;
	for (size_t i = 0; r == 0 && i < SERVED_PARTS; i++) {
		trees[i] = clone_part(git, plan_served_binds[i]);
		r = trees[i] < 0 && trees[i] != FD_NONE ? trees[i] : 0;
	}
	if (r == 0 && move_mount(c->served, "", git, "",
				 MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		r = -errno;
	if (r == 0)
		r = plan_mounts_in_served(c->plan, m) ? served_attach_parts(c->root, m, trees)
						      : hand_out_parts(c, trees);
	for (size_t i = 0; i < SERVED_PARTS; i++)
		fd_close(trees[i]);
	return r;
}
