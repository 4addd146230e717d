/* SPDX-License-Identifier: Apache-2.0 */
/* engine/mapped.c - root's sandboxes behind other walls
 *
 * A tool that root starts would have root's rights over the host while it works, and most cannot show a directory with
 * other owners than it has. So both are done before the tool is there. The keeper makes a tree of each directory that
 * the plan shows, by the native engine's own code: what belongs to root belongs in it to an id that nobody else has. The
 * child that becomes the tool puts them, in a mount namespace of its own, below a directory that everybody may look
 * into, and then takes that id for itself. From there on the tool is an ordinary user's: it can reach what is in
 * that place and what the host shows to anybody, and nothing of root's.
 *
 * The place is a small tmpfs over /tmp. Nothing of it is in the host's mount table, and it is gone with the last process
 * that is in it.
 */
#include "engine/mapped.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "base/path.h"

/* ---- the keeper ---- */

/* What nobody inside can own: the system, our init, what was made for the inside. */
static int plain_tree(const char *src, struct err *e)
{
	int tree = open_tree(AT_FDCWD, src, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

	return tree < 0 ? err_sys(e, "'%s'", src) : tree;
}

static bool is_shown(const struct mount *m)
{
	return m->kind == MOUNT_BIND;
}

static int open_mounts(const struct plan *p, const struct native *n, struct mapped *m,
		       struct err *e)
{
	m->trees = mem_new(p->n_mounts, sizeof(*m->trees));
	for (size_t i = 0; i < p->n_mounts; i++)
		m->trees[i] = FD_NONE;
	m->n = p->n_mounts;
	for (size_t i = 0; i < p->n_mounts; i++) {
		const struct mount *at = &p->mounts[i];

		if (!is_shown(at))
			continue;
		m->trees[i] = at->flags & MOUNT_IDMAP ? native_tree(at, n->idmap, e)
						      : plain_tree(at->src, e);
		if (m->trees[i] < 0)
			return m->trees[i];
	}
	return 0;
}

/* A directory of ours. Without further attributes: a tool that did not know of one could not mount it anew. */
static int own_tree(const char *src, const struct native *n, struct err *e)
{
	_close_ int tree = plain_tree(src, e);
	int r = tree < 0 ? tree : native_map_tree(tree, src, 0, n->idmap, e);

	return r < 0 ? r : take_fd(tree);
}

static int open_all(const struct mapped_in *in, const struct native *n, struct mapped *m,
		    struct err *e)
{
	int r = open_mounts(in->plan, n, m, e);

	if (r < 0)
		return r;
	m->dir = own_tree(in->dir, n, e);
	if (m->dir < 0)
		return m->dir;
	m->skel = in->has_own_skel ? own_tree(in->skel, n, e) : plain_tree(in->skel, e);
	return m->skel < 0 ? m->skel : 0;
}

int mapped_open(const struct mapped_in *in, struct native *n, struct mapped *ret, struct err *e)
{
	int r = native_idmap(&in->plan->ids, n, e);

	if (r == 0)
		r = open_all(in, n, ret, e);
	native_idmap_end(n);
	return r;
}

void mapped_done(struct mapped *m)
{
	for (size_t i = 0; i < m->n; i++)
		fd_close(m->trees[i]);
	free(m->trees);
	fd_close(m->skel);
	fd_close(m->dir);
	*m = MAPPED_NONE;
}

/* ---- the child ---- */

static int enter(void)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", MAPPED_PLACE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=1m") < 0 ||
	    chdir("/") < 0)
		return -errno;
	return 0;
}

static int put(int tree, const char *path)
{
	struct stat st;
	int r = fstat(tree, &st) < 0 ? -errno : path_make_point(path, S_ISDIR(st.st_mode));

	if (r == 0 && move_mount(tree, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		r = -errno;
	return r;
}

int mapped_place(const struct mapped *m, const struct plan *p, const char **where)
{
	mode_t mask = umask(022);
	int r = enter();

	*where = MAPPED_PLACE;
	if (r == 0)
		r = put(m->skel, MAPPED_SKEL);
	if (r == 0)
		r = put(m->dir, MAPPED_DIR);
	for (size_t i = 0; r == 0 && i < m->n; i++) {
		char path[64];

		(void)snprintf(path, sizeof(path), MAPPED_PLACE "/%zu", i);
		*where = p->mounts[i].src;
		r = m->trees[i] < 0 ? 0 : put(m->trees[i], path);
	}
	(void)umask(mask);
	return r;
}

/* Other ids end what the kernel was told of our parent's death and of who may look at us: the tool needs both. */
int mapped_become(const struct ids *ids)
{
	pid_t parent = getppid();

	if (setgroups(0, NULL) < 0 || setresgid(ids->gid_out, ids->gid_out, ids->gid_out) < 0 ||
	    setresuid(ids->uid_out, ids->uid_out, ids->uid_out) < 0)
		return -errno;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0)
		return -errno;
	return getppid() == parent ? 0 : -ESRCH;
}
