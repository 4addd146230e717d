/* SPDX-License-Identifier: Apache-2.0 */
/* engine/native/mounts.c - the file view, with the new mount API
 *
 * Every source becomes a detached tree (a descriptor) while the host is visible; then the trees are attached below
 * the new root, parents first. A target inside a directory that the agent can write is hostile ground: it is opened
 * beneath the root without following any link, and the mount goes onto that descriptor, never onto a name.
 */
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/sabotage.h"
#include "engine/native/native.h"

#define SAFE (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

static uint64_t attrs_of(const struct mount *m)
{
	uint64_t a = (m->flags & MOUNT_SUID ? 0 : MOUNT_ATTR_NOSUID) | MOUNT_ATTR_NODEV;

	if (m->kind == MOUNT_DEVICE)
		return 0; /* one character device: nothing to execute, and it must stay a device */
	if (m->flags & MOUNT_NOEXEC)
		a |= MOUNT_ATTR_NOEXEC;
	if (m->flags & MOUNT_RO)
		a |= MOUNT_ATTR_RDONLY;
	return a;
}

static int set_attrs(int tree, uint64_t attrs)
{
	struct mount_attr attr = { .attr_set = attrs };

	return mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0
		       ? -errno
		       : 0;
}

int mounts_clone(int dir, const char *path, uint64_t attrs)
{
	_close_ int tree = open_tree(dir, path,
				     OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE |
					     AT_SYMLINK_NOFOLLOW | (path[0] ? 0 : AT_EMPTY_PATH));
	int r;

	if (tree < 0)
		return -errno;
	r = attrs ? set_attrs(tree, attrs) : 0;
	return r < 0 ? r : take_fd(tree);
}

static int verify(int tree, const struct mount *m)
{
	struct stat st;

	if (!(m->flags & MOUNT_VERIFY))
		return 0;
	if (fstat(tree, &st) < 0)
		return -errno;
	return st.st_dev == m->dev && st.st_ino == m->ino ? 0 : -ESTALE;
}

/* The sandbox's own writable space: one tmpfs, so that one size bounds all of it. */
static int make_private(const struct plan *p)
{
	static const struct {
		const char *name;
		mode_t mode;
	} dirs[] = { { "tmp", 01777 },
		     { "var-tmp", 01777 },
		     { "shm", 01777 },
		     { "run", 0755 },
		     { "home", 0700 } };
	_close_ int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
	_close_ int tree = FD_NONE;
	char text[32];

	if (fs < 0)
		return -errno;
	if (p->private_bytes && !sabotaged("disk")) {
		(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)p->private_bytes);
		if (fsconfig(fs, FSCONFIG_SET_STRING, "size", text, 0) < 0)
			return -errno;
		(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)p->private_inodes);
		if (fsconfig(fs, FSCONFIG_SET_STRING, "nr_inodes", text, 0) < 0)
			return -errno;
	}
	if (fsconfig(fs, FSCONFIG_SET_STRING, "mode", "0755", 0) < 0 ||
	    fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	tree = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (tree < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) /* the umask is 0 here */
		if (mkdirat(tree, dirs[i].name, dirs[i].mode) < 0)
			return -errno;
	return take_fd(tree);
}

static int make_proc(void)
{
	_close_ int fs = fsopen("proc", FSOPEN_CLOEXEC);
	int tree;

	if (sabotaged("proc") || sabotaged("pidns"))
		return mounts_clone(AT_FDCWD, "/proc", 0);
	if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	tree = fsmount(fs, FSMOUNT_CLOEXEC,
		       MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	return tree < 0 ? -errno : tree;
}

/* The kernel has kernel.pty.max terminals for all (4096, a quarter of them reserved for the host's own devpts). */
#define PTYS_MAX "256"

static int make_pts(void)
{
	_close_ int fs = fsopen("devpts", FSOPEN_CLOEXEC);
	int tree;

	if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "ptmxmode", "0666", 0) < 0 ||
	    fsconfig(fs, FSCONFIG_SET_STRING, "mode", "0600", 0) < 0 ||
	    (!sabotaged("ptys") && fsconfig(fs, FSCONFIG_SET_STRING, "max", PTYS_MAX, 0) < 0) ||
	    fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	tree = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	return tree < 0 ? -errno : tree;
}

int mounts_source(const struct child *c, size_t i)
{
	const struct mount *m = &c->plan->mounts[i];
	int tree, r;

	if (c->trees[i] >= 0)
		return c->trees[i];
	tree = mounts_clone(AT_FDCWD, m->src, attrs_of(m));
	if (tree < 0)
		return tree;
	r = verify(tree, m);
	if (r < 0) {
		fd_close(tree);
		return r;
	}
	return tree;
}

int mounts_open(struct child *c)
{
	const struct plan *p = c->plan;
	char skel[4096];
	int r = skel_path(p, skel, sizeof(skel));

	(void)snprintf(c->where, sizeof(c->where), "the root directory");
	if (r < 0)
		return r;
	c->root = mounts_clone(AT_FDCWD, skel,
			       MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY);
	if (c->root < 0)
		return c->root;
	/* Onto itself: a place that is sure to exist, and that only we look at. */
	if (move_mount(c->root, "", AT_FDCWD, skel, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -errno;
	for (size_t i = 0; i < p->n_mounts; i++) {
		const struct mount *m = &p->mounts[i];

		if (m->kind != MOUNT_BIND && m->kind != MOUNT_DEVICE && m->kind != MOUNT_LAYER)
			continue;
		(void)snprintf(c->where, sizeof(c->where), "'%.140s'", m->src);
		c->trees[i] = mounts_source(c, i);
		if (c->trees[i] < 0)
			return c->trees[i];
	}
	return 0;
}

/* A mount point in our own space: the directories on the way and the point itself. */
int mounts_point(int root, const struct mount *m)
{
	_close_ int fd = FD_NONE;
	char parent[4096];
	size_t n = (size_t)(path_name(m->dst) - m->dst);
	int r;

	if (m->flags & MOUNT_DIR)
		return path_mkdirs(root, m->dst, 0755);
	if (n >= sizeof(parent))
		return -ENAMETOOLONG;
	memcpy(parent, m->dst, n);
	parent[n] = '\0';
	r = path_mkdirs(root, parent, 0755);
	if (r < 0)
		return r;
	fd = openat(root, m->dst + 1, O_CREAT | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? -errno : 0;
}

/* A tree that nothing was done with is taken apart when it is closed, which waits for every processor: milliseconds. In
 * the old root, over its own source, it goes with that, when nobody waits. */
static void leave_behind(int tree, const struct mount *m)
{
	if (m->src)
		(void)move_mount(tree, "", AT_FDCWD, m->src,
				 MOVE_MOUNT_F_EMPTY_PATH); /* else it is slow */
}

static int attach(int tree, int root, const struct mount *m)
{
	_close_ int at = FD_NONE;

	/* The skeleton is ours and read-only: its names lead where we made them lead. */
	if (m->flags & MOUNT_SKEL)
		return move_mount(tree, "", root, m->dst + 1, MOVE_MOUNT_F_EMPTY_PATH) < 0 ? -errno
											   : 0;
	at = path_openat2(root, m->dst + 1, O_PATH | O_NOFOLLOW, SAFE);
	if (at < 0 &&
	    (!(m->flags & MOUNT_GONE_OK) || (at != -ENOENT && at != -ELOOP && at != -ENOTDIR)))
		return at;
	if (at < 0) {
		leave_behind(tree, m);
		return 0;
	}
	if (move_mount(tree, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return -errno;
	return 0;
}

int mounts_cover(int root, const struct mount *m)
{
	_close_ int at = path_openat2(root, m->dst + 1, O_PATH | O_NOFOLLOW, SAFE);
	_close_ int tree = FD_NONE;
	char cover[64];
	struct stat st;
	int r;

	if (at < 0)
		return at == -ENOENT && m->flags & MOUNT_GONE_OK ? 0 : at;
	if (fstat(at, &st) < 0)
		return -errno;
	if (S_ISLNK(st.st_mode))
		return 0; /* a link's target is covered by its own name */
	(void)snprintf(cover, sizeof(cover), ".vitrine/%s",
		       S_ISDIR(st.st_mode)    ? "dir"
		       : m->flags & MOUNT_DIR ? "file"
					      : m->src);
	if (m->kind == MOUNT_HIDE) /* part of the skeleton, and read-only like it */
		tree = mounts_clone(root, cover, 0);
	else
		tree = mounts_clone(at, "", m->flags & MOUNT_RO ? MOUNT_ATTR_RDONLY : 0);
	if (tree < 0)
		return tree;
	r = move_mount(tree, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
	return r < 0 ? -errno : 0;
}

/* ---- layers ---- */

/* Puts the layers before mount `i` into their places and returns how many there are. */
static int place_layers(struct child *c, size_t i, int at)
{
	size_t first = i, n;
	char name[24];

	while (first > 0 && c->plan->mounts[first - 1].kind == MOUNT_LAYER)
		first--;
	n = i - first;
	for (size_t k = 0; k < n; k++) {
		(void)snprintf(name, sizeof(name), "%zu", k);
		if (move_mount(c->trees[first + k], "", at, name, MOVE_MOUNT_F_EMPTY_PATH) < 0)
			return -errno;
		fd_close(c->trees[first + k]);
	}
	return (int)n;
}

static void lift_layers(int n)
{
	char name[24];

	for (int k = 0; k < n; k++) {
		(void)snprintf(name, sizeof(name), "%d", k);
		(void)umount2(name,
			      MNT_DETACH | UMOUNT_NOFOLLOW); /* checked by what is visible inside */
	}
}

/* `volatile`: what is not on disk yet when the machine dies is lost, as with any other file system that nobody syncs;
 * without it every first write to a file waits for the disk. Names are short, because all of them must fit a page. */
static int mount_overlay(int n, int target, bool may_suid)
{
	char options[1024] = "userxattr,volatile,upperdir=0/fs,workdir=0/work,lowerdir=1";
	size_t at = strlen(options);
	char path[64];

	for (int k = 2; k < n; k++)
		at += (size_t)snprintf(options + at, sizeof(options) - at, ":%d", k);
	if (at >= sizeof(options))
		return -E2BIG;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", target);
	return mount("overlay", path, "overlay", (may_suid ? 0 : MS_NOSUID) | MS_NODEV, options) < 0
		       ? -errno
		       : 0;
}

/* One layer with nothing below it needs no overlay. */
static int bind_layer(int target)
{
	_close_ int tree = mounts_clone(AT_FDCWD, "0/fs", 0);

	if (tree < 0)
		return tree;
	return move_mount(tree, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) <
			       0
		       ? -errno
		       : 0;
}

/* The kernel takes layers by name, seen from the working directory; they are in place only for this moment. */
int mounts_overlay(struct child *c, size_t i)
{
	const struct mount *m = &c->plan->mounts[i];
	_close_ int at = openat(c->root, ".vitrine/layers", O_PATH | O_DIRECTORY | O_CLOEXEC);
	_close_ int target =
		path_openat2(c->root, m->dst + 1, O_PATH | O_NOFOLLOW | O_DIRECTORY, SAFE);
	int n, r;

	if (at < 0 || target < 0)
		return at < 0 ? -errno : target;
	n = place_layers(c, i, at);
	if (n < 0)
		return n;
	if (fchdir(at) < 0)
		return -errno;
	r = n > 1 ? mount_overlay(n, target, m->flags & MOUNT_SUID) : bind_layer(target);
	if (!sabotaged("layers"))
		lift_layers(n);
	return r;
}

/* A part of what is there already, at a place of its own. */
static int clone_part(const struct child *c, const struct mount *m)
{
	_close_ int at = path_openat2(c->root, m->src, O_PATH | O_NOFOLLOW, SAFE);

	return at < 0 ? at : mounts_clone(at, "", attrs_of(m));
}

/* When all parts are in their places the whole is not needed any more. */
static int drop_system(const struct child *c)
{
	if (c->plan->ids.root != ROOT_SETUID)
		return 0;
	if (fchdir(c->root) < 0 || umount2(&PLAN_SYSTEM[1], MNT_DETACH | UMOUNT_NOFOLLOW) < 0)
		return -errno;
	return 0;
}

static bool is_left_out(const struct mount *m)
{
	return (m->kind == MOUNT_HIDE && sabotaged("hide")) ||
	       (m->kind == MOUNT_PROTECT && sabotaged("protect")) ||
	       (m->kind == MOUNT_PIN && sabotaged("pins"));
}

static int attach_one(struct child *c, size_t i)
{
	const struct mount *m = &c->plan->mounts[i];
	_close_ int made = FD_NONE;
	int r;

	if (m->flags & MOUNT_MKDIR) {
		r = mounts_point(c->root, m);
		if (r < 0)
			return r;
	}
	switch (m->kind) {
	case MOUNT_BIND:
	case MOUNT_DEVICE:
		r = attach(c->trees[i], c->root, m);
		fd_close(c->trees[i]);
		return r;
	case MOUNT_PRIVATE:
		if (sabotaged("tmp") && str_eq(m->src, "tmp"))
			made = mounts_clone(AT_FDCWD, "/tmp", 0);
		else if (sabotaged("home") && str_eq(m->src, "home"))
			made = mounts_clone(AT_FDCWD, m->dst, 0);
		else
			made = mounts_clone(c->private, m->src, 0);
		break;
	case MOUNT_PROC:
		made = make_proc();
		break;
	case MOUNT_PTS:
		made = make_pts();
		break;
	case MOUNT_PART:
		made = clone_part(c, m);
		break;
	case MOUNT_LAYER: /* with its overlay */
		return 0;
	case MOUNT_OVERLAY:
		return mounts_overlay(c, i);
	case MOUNT_SERVE:
		return served_attach(c, m);
	case MOUNT_HIDE:
	case MOUNT_PROTECT:
	case MOUNT_PIN:
		if (m->flags & MOUNT_SERVED && c->served >= 0)
			return 0;
		return is_left_out(m) ? 0 : mounts_cover(c->root, m);
	case MOUNT_KIND_COUNT_:
		bug_on(true);
	}
	return made < 0 ? made : attach(made, c->root, m);
}

int mounts_attach(struct child *c)
{
	const struct plan *p = c->plan;

	(void)snprintf(c->where, sizeof(c->where), "private space");
	c->private = make_private(p);
	if (c->private < 0)
		return c->private;
	/* It needs a place of its own: to let go of a tree that is mounted nowhere waits for all processors. */
	if (move_mount(c->private, "", c->root, ".vitrine/private", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -errno;
	for (size_t i = 0; i < p->n_mounts; i++) {
		int r;

		(void)snprintf(c->where, sizeof(c->where), "'%.140s'", p->mounts[i].dst);
		r = attach_one(c, i);
		if (r == -EPERM && p->mounts[i].kind == MOUNT_PROC)
			(void)snprintf(c->where, sizeof(c->where),
				       "no fresh /proc (a container that covers parts of its own "
				       "/proc does not allow one; start it "
				       "with --security-opt systempaths=unconfined or use another "
				       "engine)");
		if (r < 0)
			return r;
	}
	if (sabotaged("dev")) {
		int dev = mounts_clone(AT_FDCWD, "/dev", 0);

		if (dev < 0 || move_mount(dev, "", c->root, "dev", MOVE_MOUNT_F_EMPTY_PATH) < 0)
			return -errno;
	}
	fd_close(c->private);
	fd_close(c->served); /* its number still says that there is one */
	return drop_system(c);
}
