/* SPDX-License-Identifier: Apache-2.0 */
/* engine/vm/view.c - what the machine may see of the host, as one directory
 *
 * In a user and mount namespace of its own the plan's view is built below dir/view, as the native engine builds its
 * root: the skeleton, the binds, the layers as one tree, the covers, one tmpfs for all private space. QEMU hands out that
 * directory and knows no other; read-only is the mount's, on this side, where the guest cannot change it. /proc and /dev
 * are the guest's.
 */
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "base/sabotage.h"
#include "engine/native/native.h"
#include "engine/vm/vm.h"
#include "sys/userns.h"

/* The user's own number stays what it is: it is the files' owner, on both sides. Root's sandboxes have another outside. */
static int enter(const struct ids *ids)
{
	/* Whoever breaks out of the guest is QEMU, which needs no network and nobody's queues. */
	int alone = sabotaged("netns") ? 0 : CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
	int r = userns_enter(ids->is_root ? ids->uid_in : geteuid(),
			     ids->is_root ? ids->gid_in : getegid(), CLONE_NEWNS | alone);

	if (r == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		r = -errno;
	return r;
}

static int bind(const char *src, const char *dst, bool is_ro)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
					       (is_ro ? MOUNT_ATTR_RDONLY : 0) };
	_close_ int tree =
		open_tree(AT_FDCWD, src,
			  OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_SYMLINK_NOFOLLOW);

	if (tree < 0 ||
	    mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0 ||
	    move_mount(tree, "", AT_FDCWD, dst, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -errno;
	return 0;
}

static int make_private(const struct plan *p, const char *dir)
{
	char options[96];

	(void)snprintf(options, sizeof(options), "mode=0755,size=%llu,nr_inodes=%llu",
		       (unsigned long long)(p->private_bytes - plan_shm_part(p->private_bytes)),
		       (unsigned long long)(p->private_inodes - plan_shm_part(p->private_inodes)));
	return mount("tmpfs", dir, "tmpfs", MS_NOSUID | MS_NODEV,
		     p->private_bytes ? options : "mode=0755") < 0
		       ? -errno
		       : 0;
}

static int add_private(const struct mount *m, const char *private, const char *dst)
{
	_free_ char *own = mem_fmt("%s/%s", private, m->src);

	if (mkdir(own, 0700) < 0 || chmod(own, render_mode(m)) < 0)
		return -errno;
	return bind(own, dst, false);
}

/* A name over itself is what is seen there, which need not be what the host has: layers may lie between. */
static bool is_over_itself(const struct mount *m)
{
	return m->kind == MOUNT_PROTECT || m->kind == MOUNT_PIN;
}

static int add_mount(const struct render_in *in, const struct mount *m, const char *private,
		     const char *view)
{
	_free_ char *dst = mem_fmt("%s%s", view, m->dst);
	_free_ char *src = is_over_itself(m) ? mem_str(dst) : render_source(in, m);
	int r;

	if (m->kind == MOUNT_PRIVATE)
		return add_private(m, private, dst);
	r = bind(src, dst, m->flags & MOUNT_RO || m->kind == MOUNT_HIDE);
	return r == -ENOENT && m->flags & MOUNT_GONE_OK ? 0 : r;
}

static int layer_of(const struct child *c, const struct render_in *in, size_t i)
{
	_free_ char *src = render_source(in, &c->plan->mounts[i]);
	int tree;

	if (in->place == NULL)
		return mounts_source(c, i);
	tree = open_tree(AT_FDCWD, src, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	return tree < 0 ? -errno : tree;
}

/* Mount i, where layers are trees of their own until their overlay comes. */
static int add_one(struct child *c, const struct render_in *in, size_t i, const char *private,
		   const char *view)
{
	const struct mount *m = &c->plan->mounts[i];
	_free_ char *dst = mem_fmt("%s%s", view, m->dst);
	int r = 0;

	if (path_is_beneath(m->dst, "/proc") || path_is_beneath(m->dst, "/dev"))
		return 0;
	if (m->flags & MOUNT_MKDIR)
		r = path_make_point(dst, m->flags & MOUNT_DIR);
	if (r < 0)
		return r;
	if (m->kind == MOUNT_OVERLAY)
		return mounts_overlay(c, i);
	if (m->kind != MOUNT_LAYER)
		return add_mount(in, m, private, view);
	c->trees[i] = layer_of(c, in, i);
	return c->trees[i] < 0 ? c->trees[i] : 0;
}

static int open_root(struct child *c, const char *view)
{
	c->trees = mem_new(c->plan->n_mounts, sizeof(*c->trees));
	for (size_t i = 0; i < c->plan->n_mounts; i++)
		c->trees[i] = FD_NONE;
	c->root = open(view, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return c->root < 0 ? -errno : 0;
}

/* The process becomes the machine's program afterwards: what is allocated here goes with it. */
int vm_view(const struct render_in *in, const char **where)
{
	const struct plan *p = in->plan;
	struct child c = { .plan = p, .root = FD_NONE };
	_free_ char *view = mem_fmt("%s/view", in->dir);
	_free_ char *private = mem_fmt("%s/.vitrine/private", view);
	int r = enter(&p->ids);

	*where = "a user namespace";
	if (r == 0) {
		*where = in->skel;
		r = bind(in->skel, view, true);
	}
	if (r == 0)
		r = open_root(&c, view);
	if (r == 0) {
		*where = "private space";
		r = make_private(p, private);
	}
	for (size_t i = 0; r == 0 && i < p->n_mounts; i++) {
		*where = p->mounts[i].dst;
		r = add_one(&c, in, i, private, view);
	}
	return r;
}
