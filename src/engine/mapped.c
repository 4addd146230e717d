/* SPDX-License-Identifier: Apache-2.0 */
/* engine/mapped.c - root's sandboxes behind other walls
 *
 * A tool that root starts would have root's rights over the host while it works, and most cannot show a directory with
 * other owners than it has. So both are done before the tool is there. The keeper makes a tree of each directory that
 * the plan shows, by the native engine's own code: what belongs to root belongs in it to an id that nobody else has. The
 * child that becomes the tool puts them, in a mount namespace of its own, below a directory that everybody may look
 * into, and then takes that id for itself. From there on the tool is an ordinary user's: it can reach what is in
 * that place and what the host shows to anybody, and nothing of root's. A container engine, which for an ordinary user wants
 * a range of ids, gets one that belongs to nobody.
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
#include <sys/wait.h>

#include "base/path.h"
#include "base/sabotage.h"

/* ---- the keeper ---- */

/* What nobody inside can own: the system, our init, what was made for the inside. */
static int plain_tree(const char *src, struct err *e)
{
	int tree = open_tree(AT_FDCWD, src, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

	return tree < 0 ? err_sys(e, "'%s'", src) : tree;
}

static bool is_shown(const struct mount *m)
{
	return m->kind == MOUNT_BIND || m->kind == MOUNT_LAYER;
}

int mapped_open(const struct plan *p, int idmap, struct mapped *m, struct err *e)
{
	m->idmap = idmap;
	m->trees = mem_new(p->n_mounts, sizeof(*m->trees));
	for (size_t i = 0; i < p->n_mounts; i++)
		m->trees[i] = FD_NONE;
	m->n = p->n_mounts;
	for (size_t i = 0; i < p->n_mounts; i++) {
		const struct mount *at = &p->mounts[i];

		if (!is_shown(at))
			continue;
		m->trees[i] = at->flags & MOUNT_IDMAP ? native_tree(at, idmap, e)
						      : plain_tree(at->src, e);
		if (m->trees[i] < 0)
			return m->trees[i];
	}
	return 0;
}

/* Without further attributes: a tool that did not know of one could not mount it anew. */
int mapped_add(struct mapped *m, const char *src, const char *at, bool is_own, struct err *e)
{
	_close_ int tree = plain_tree(src, e);
	int r = tree < 0 ? tree : is_own ? native_map_tree(tree, src, 0, m->idmap, e) : 0;

	if (r < 0)
		return r;
	bug_on(m->n_also == MAPPED_ALSO_MAX);
	m->also[m->n_also++] = (struct mapped_also){ at, take_fd(tree) };
	return 0;
}

void mapped_done(struct mapped *m)
{
	for (size_t i = 0; i < m->n; i++)
		fd_close(m->trees[i]);
	free(m->trees);
	for (size_t i = 0; i < m->n_also; i++)
		fd_close(m->also[i].tree);
	*m = MAPPED_NONE;
}

/* ---- the child ---- */

static int enter(void)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", MAPPED_PLACE, "tmpfs", MS_NOSUID, "mode=0755,size=16m") < 0 ||
	    chdir("/") < 0)
		return -errno;
	return 0;
}

/* The file system of the host's devices cannot map ids: the same device by another node, over the first. */
static int give_device(const char *path, const struct ids *ids)
{
	static const char node[] = MAPPED_PLACE "/device";
	struct stat st;

	if (stat(path, &st) < 0 || mknod(node, (st.st_mode & S_IFMT) | 0600, st.st_rdev) < 0 ||
	    chown(node, ids->uid_out, ids->gid_out) < 0 ||
	    mount(node, path, NULL, MS_BIND, NULL) < 0)
		return -errno;
	return 0;
}

/* What a tool keeps for itself, and what it shares with others of the same user, is gone with it. */
static int make_own(const struct ids *ids)
{
	if (mount("none", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777,size=1m") < 0 ||
	    mkdir(MAPPED_OWN, 0700) < 0 || chown(MAPPED_OWN, ids->uid_out, ids->gid_out) < 0)
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
	if (r == 0 && m->wants_ids)
		r = make_own(&p->ids);
	if (r == 0 && m->device) {
		*where = m->device;
		r = give_device(m->device, &p->ids);
	}
	for (size_t i = 0; r == 0 && i < m->n_also; i++) {
		*where = m->also[i].at;
		r = put(m->also[i].tree, m->also[i].at);
	}
	for (size_t i = 0; r == 0 && i < m->n; i++) {
		char path[64];

		(void)snprintf(path, sizeof(path), MAPPED_PLACE "/%zu", i);
		*where = p->mounts[i].src;
		r = m->trees[i] < 0 ? 0 : put(m->trees[i], path);
	}
	(void)umask(mask);
	return r;
}

/* Maps the ids of its parent's new namespace, when that is there: who is in it may not. */
static _Noreturn void map_parent(const struct ids *ids, int told)
{
	struct id_map uids = { .v = { { 0, ids->uid_out, 1 },
				      { 1, PLAN_ROOT_SUBIDS + 1, SUBIDS_COUNT - 1 } },
			       .n = 2 };
	struct id_map gids = uids;
	struct err ignored = ERR_INIT;
	pid_t parent = getppid();
	char go;

	gids.v[0].out = ids->gid_out;
	_exit(read(told, &go, 1) != 1 || subids_write(parent, &uids, &gids, &ignored) < 0);
}

/* A namespace in which the sandbox's outer id is 0, and the ids after it are some that nothing on this host belongs to. */
static int enter_range(const struct ids *ids)
{
	int told[2], status = 0, r = 0;
	pid_t pid;

	if (pipe2(told, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		fd_close(told[1]);
		map_parent(ids, told[0]);
	}
	if (pid < 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 || write(told[1], "g", 1) != 1)
		r = -errno;
	fd_close(told[0]);
	fd_close(told[1]);
	if (pid > 0 && waitpid(pid, &status, 0) != pid && r == 0)
		r = -errno;
	return r < 0 ? r : status == 0 ? 0 : -EPERM;
}

/* Other ids end what the kernel was told of our parent's death and of who may look at us: the tool needs both. */
int mapped_become(const struct mapped *m, const struct ids *ids)
{
	uid_t uid = m->wants_ids ? 0 : ids->uid_out;
	gid_t gid = m->wants_ids ? 0 : ids->gid_out;
	const gid_t roots = 0;
	pid_t parent = getppid();
	int r = m->wants_ids ? enter_range(ids) : 0;

	if (r < 0)
		return r;
	if (setgroups(sabotaged("mapped-ids") ? 1 : 0, &roots) < 0 ||
	    setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return -errno;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0)
		return -errno;
	return getppid() == parent ? 0 : -ESRCH;
}

/* Which mount does this one's place lie in? The last before it that is above it. */
static size_t holder_of(const struct plan *p, size_t at)
{
	size_t i = at;

	while (i-- > 0)
		if (p->mounts[i].flags & MOUNT_DIR &&
		    path_is_beneath(p->mounts[at].dst, p->mounts[i].dst))
			return i;
	return at;
}

static int make_point(const struct plan *p, size_t i, size_t holder)
{
	struct mount point = p->mounts[i];
	_close_ int root = FD_NONE;
	char path[64];

	(void)snprintf(path, sizeof(path), MAPPED_PLACE "/%zu", holder);
	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	point.dst += strlen(p->mounts[holder].dst);
	return root < 0 ? -errno : mounts_point(root, &point);
}

int mapped_points(const struct mapped *m, const struct plan *p, const char **where)
{
	int r = 0;

	for (size_t i = 0; m->wants_ids && r == 0 && i < p->n_mounts; i++) {
		size_t holder = holder_of(p, i);

		*where = p->mounts[i].dst;
		if (p->mounts[i].flags & MOUNT_MKDIR && m->trees[holder] >= 0 &&
		    p->mounts[holder].flags & MOUNT_IDMAP)
			r = make_point(p, i, holder);
	}
	return r;
}
