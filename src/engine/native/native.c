/* SPDX-License-Identifier: Apache-2.0 */
/* engine/native/native.c - the keeper's side: clone3, skeleton, id-mapped trees
 *
 * Whatever needs the host's privileges happens here; init only builds from what it was given.
 */
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/path.h"
#include "base/raw.h"
#include "base/sabotage.h"
#include "base/title.h"
#include "engine/native/native.h"

static uint64_t clone_flags(void)
{
	static const struct {
		uint64_t flag;
		const char *wall;
	} table[] = {
		{ CLONE_NEWUSER, "" },     { CLONE_NEWNS, "" },
		{ CLONE_NEWPID, "pidns" }, { CLONE_NEWIPC, "ipcns" },
		{ CLONE_NEWUTS, "utsns" }, { CLONE_NEWCGROUP, "cgroupns" },
	};
	uint64_t flags = CLONE_PIDFD; /* the network comes later: see child.c */

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (!sabotaged(table[i].wall))
			flags |= table[i].flag;
	return flags;
}

static int write_proc(pid_t pid, const char *file, const char *text)
{
	_close_ int fd = FD_NONE;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd < 0 ? -errno : io_write_all(fd, text, strlen(text));
}

static int open_ns(pid_t pid, const char *name)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* ---- id-mapped trees: only root needs them, only root can make them ---- */

static _Alignas(16) char carrier_stack[4 * KIB];

/* Shares our memory, so libc and its errno are not for it. If the keeper is killed meanwhile nobody else would end us. */
static int carry(void *keeper)
{
	(void)raw_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0);
	while (raw_call(SYS_getppid, 0, 0, 0, 0) == *(const pid_t *)keeper)
		(void)raw_call(SYS_ppoll, 0, 0, 0, 0);
	return 0;
}

/* A user namespace in which the files' owner (root) is the sandbox's outer id; a short-lived child carries it. */
int native_idmap(const struct ids *ids, struct native *n, struct err *e)
{
	static pid_t keeper;
	char map[64];
	int r;

	keeper = getpid();
	n->carrier = clone(carry, carrier_stack + sizeof(carrier_stack),
			   CLONE_VM | CLONE_NEWUSER | SIGCHLD, &keeper);
	r = n->carrier < 0 ? -errno : 0;
	(void)snprintf(map, sizeof(map), "0 %u 1\n", ids->uid_out);
	if (r == 0)
		r = write_proc(n->carrier, "uid_map", map);
	if (r == 0)
		r = write_proc(n->carrier, "gid_map", map);
	if (r == 0)
		n->idmap = open_ns(n->carrier, "user");
	if (r == 0 && n->idmap < 0)
		r = -errno;
	if (n->carrier > 0)
		(void)kill(n->carrier, SIGKILL);
	return r == 0 ? 0
		      : err_set(e, ERR_UNSUPPORTED, -r, "user namespace for mapped ids: %s",
				strerrordesc_np(-r));
}

/* It was killed when it had done its part; there is always something better to do than to wait for its end. */
void native_idmap_end(struct native *n)
{
	fd_close(take_fd(n->idmap));
	if (n->carrier > 0)
		(void)waitpid(n->carrier, NULL, 0);
	n->carrier = 0;
}

int native_map_tree(int tree, const char *src, uint64_t attrs, int userns, struct err *e)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP | attrs,
				   .propagation = MS_PRIVATE,
				   .userns_fd = (uint64_t)userns };

	if (mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0)
		return err_set(e, ERR_UNSUPPORTED, errno,
			       "'%s': its file system cannot map ids (%s), so root cannot be kept "
			       "out of it; run as an ordinary "
			       "user or with --user NAME",
			       src, strerrordesc_np(errno));
	return 0;
}

int native_tree(const struct mount *m, int userns, struct err *e)
{
	uint64_t attrs = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
			 (m->flags & MOUNT_RO ? MOUNT_ATTR_RDONLY : 0);
	_close_ int tree =
		open_tree(AT_FDCWD, m->src, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	struct stat st;
	int r;

	if (tree < 0 || fstat(tree, &st) < 0)
		return err_sys(e, "'%s'", m->src);
	if (m->flags & MOUNT_VERIFY && (st.st_dev != m->dev || st.st_ino != m->ino))
		return err_set(e, ERR_CONFLICT, ESTALE, "'%s' was replaced while we looked at it",
			       m->src);
	r = native_map_tree(tree, m->src, attrs, userns, e);
	return r < 0 ? r : take_fd(tree);
}

static int send_trees(const struct plan *p, struct native *n, struct err *e)
{
	for (size_t i = 0; i < p->n_mounts; i++) {
		struct init_msg m = { .type = INIT_TREE, .a = (int32_t)i };
		_close_ int tree = FD_NONE;

		if (!(p->mounts[i].flags & MOUNT_IDMAP))
			continue;
		tree = native_tree(&p->mounts[i], n->idmap, e);
		if (tree < 0)
			return tree;
		if (init_send(n->ctl, &m, &tree, 1) < 0)
			return err_sys(e, "control socket");
	}
	native_idmap_end(n);
	return 0;
}

static int map_one(const struct ids *ids, pid_t pid, struct err *e)
{
	char map[64];
	int r;

	(void)snprintf(map, sizeof(map), "%u %u 1\n", ids->uid_in, ids->uid_out);
	r = write_proc(pid, "uid_map", map);
	if (r == 0) {
		(void)snprintf(map, sizeof(map), "%u %u 1\n", ids->gid_in, ids->gid_out);
		r = write_proc(pid, "gid_map", map);
	}
	return r < 0 ? err_set(e, ERR_SYSTEM, -r, "map ids: %s", strerrordesc_np(-r)) : 0;
}

/* An id that is not ours must be mapped from outside: root's sandbox, and one with a root inside. */
static int map_ids(const struct ids *ids, pid_t pid, int ctl, struct err *e)
{
	struct init_msg mapped = { .type = INIT_MAPPED };
	int r = ids->root == ROOT_NONE ? map_one(ids, pid, e)
				       : subids_write(pid, &ids->uids, &ids->gids, e);

	if (r < 0)
		return r;
	/* When memory runs out, what is inside goes first. Once it has other ids it may not say so itself. */
	(void)write_proc(pid, "oom_score_adj", "300");
	return init_send(ctl, &mapped, NULL, 0) < 0 ? err_sys(e, "control socket") : 0;
}

/* ---- start ---- */

static int clone_init(struct child *c, const int *ctl, const struct cgroup *cg, struct native *n,
		      struct err *e)
{
	int pidfd = FD_NONE;
	struct clone_args args = { .flags = clone_flags(),
				   .exit_signal = SIGCHLD,
				   .pidfd = (uint64_t)(uintptr_t)&pidfd };
	int cgroup = cg ? cgroup_fd(cg) : FD_NONE;

	if (cgroup >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)cgroup;
	}
	n->pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (n->pid == 0) {
		c->ctl = ctl[1];
		fd_close(ctl[0]);
		title_set("vitrine init");
		child_main(c);
	}
	fd_close(cgroup);
	if (n->pid < 0 && (errno == EPERM || errno == ENOSPC || errno == EACCES))
		return err_set(e, ERR_UNSUPPORTED, errno,
			       "this host does not let us make namespaces (%s); 'vitrine doctor' "
			       "says why and what helps",
			       strerrordesc_np(errno));
	if (n->pid < 0)
		return err_sys(e, "clone3");
	n->pidfd = pidfd;
	return 0;
}

/* They are how a mask is put back. */
static int open_namespaces(struct native *n, struct err *e)
{
	if (n->user_ns < 0)
		n->user_ns = open_ns(n->pid, "user");
	if (n->mnt_ns < 0)
		n->mnt_ns = open_ns(n->pid, "mnt");
	return n->user_ns < 0 || n->mnt_ns < 0 ? err_sys(e, "the namespaces of init") : 0;
}

int native_pair(int ret_ctl[2], struct err *e)
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret_ctl) < 0
		       ? err_sys(e, "socketpair")
		       : 0;
}

int native_begin(const struct ids *ids, const struct cgroup *cg, const int take_ctl[2], int turn,
		 struct native *ret, struct err *e)
{
	_cleanup_(native_done) struct native n = NATIVE_NONE;
	struct child c = { .ids = *ids,
			   .turn = turn,
			   .served = FD_NONE,
			   .resolver = FD_NONE,
			   .notices = FD_NONE,
			   .needs_go = cg != NULL };
	int r;

	n.ctl = take_ctl[0];
	n.uid_in = ids->is_root && ids->root == ROOT_NONE ? ids->uid_in : 0;
	n.gid_in = ids->gid_in;
	r = clone_init(&c, take_ctl, cg, &n, e);
	fd_close(take_ctl[1]);
	/* Once it has other ids, only root could do this. */
	if (r == 0 && ids_are_given(ids))
		r = open_namespaces(&n, e);
	if (r == 0 && ids_are_given(ids))
		r = map_ids(ids, n.pid, n.ctl, e);
	if (r == 0 && ids->is_root)
		r = native_idmap(ids, &n, e);
	if (r < 0)
		return r;
	*ret = n;
	n = NATIVE_NONE;
	return 0;
}

int native_plan(int ctl, const struct plan *p)
{
	struct init_msg m = { .type = INIT_PLAN, .plan = p };

	bug_on(p->ns != NS_ALL);
	return init_send(ctl, &m, NULL, 0);
}

static int send_stdio(int ctl, const struct stdio *io)
{
	struct init_msg m = {
		.type = INIT_STDIO, .flags = io->flags, .rows = io->rows, .cols = io->cols
	};
	int fds[PACKET_FDS];
	size_t n = 0;

	for (int i = 0; i < 3; i++)
		if (!(io->flags & BIT(i)))
			fds[n++] = io->fd[i];
	return init_send(ctl, &m, fds, n);
}

int native_go(struct native *n, const struct plan *p, const struct stdio *io, struct err *e)
{
	/* Init locks itself when it has its stdio from us, and then cannot be looked at. */
	int r = open_namespaces(n, e);

	if (r < 0)
		return r;
	if (n->skel < 0) {
		n->skel = skel_open(p, e);
		if (n->skel < 0)
			return n->skel;
		r = native_plan(n->ctl, p);
	}
	if (r == 0 && p->ids.is_root)
		r = send_trees(p, n, e);
	if (r == 0)
		r = send_stdio(n->ctl, io);
	return r < 0 && e->kind == ERR_NONE ? err_sys(e, "control socket") : r;
}

void native_done(struct native *n)
{
	if (n->pidfd >= 0) {
		(void)syscall(SYS_pidfd_send_signal, n->pidfd, SIGKILL, NULL,
			      0); /* it may be dead already */
		(void)waitpid(n->pid, NULL, 0);
	}
	native_idmap_end(n);
	if (n->tool > 0) { /* a start that failed half-way */
		(void)kill(n->tool, SIGKILL);
		(void)waitpid(n->tool, NULL, 0);
	}
	fd_close(n->pidfd);
	fd_close(n->ctl);
	fd_close(n->user_ns);
	fd_close(n->mnt_ns);
	fd_close(n->skel);
	fd_close(n->words);
	fd_close(n->alive);
	fd_close(n->monitor);
	fd_close(n->files[0]);
	fd_close(n->files[1]);
	*n = NATIVE_NONE;
}

/* ---- masks ---- */

#define COVER_TRIES 100

/* The name may have kept its cover: then it is a mount of its own already. */
static bool is_covered(int root, const struct mount *m)
{
	_close_ int at =
		path_openat2(root, m->dst + 1, O_PATH | O_NOFOLLOW,
			     RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

	return at >= 0 && fd_is_mount_root(at);
}

/* In a child of the keeper: the root of the sandbox, in its namespaces. Root becomes the sandbox's user, as the mate did:
 * an id that is not known inside cannot ask a served git dir for anything. */
static int enter_view(const struct native *n)
{
	int root;

	if (setns(n->user_ns, CLONE_NEWUSER) < 0 || setns(n->mnt_ns, CLONE_NEWNS) < 0)
		_exit(errno);
	if (n->uid_in && (syscall(SYS_setresgid, n->gid_in, n->gid_in, n->gid_in) < 0 ||
			  syscall(SYS_setresuid, n->uid_in, n->uid_in, n->uid_in) < 0))
		_exit(errno);
	root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		_exit(errno);
	return root;
}

static _Noreturn void cover_child(const struct native *n, const struct mount *m)
{
	int root = enter_view(n), r, tries = 0;

	/* What was opened may be replaced before it is covered: the host may save many times in a row. A name that is gone
	 * has nothing to cover, and is covered when it comes back. */
	do {
		r = is_covered(root, m) ? 0 : mounts_cover(root, m);
	} while (r == -ENOENT && tries++ < COVER_TRIES);
	_exit(r < 0 && r != -ENOENT ? -r : 0);
}

static int await_helper(pid_t pid, const char *what, const struct mount *m, struct err *e)
{
	int status = 0;

	if (waitpid(pid, &status, 0) < 0 || !WIFEXITED(status))
		return err_set(e, ERR_SYSTEM, ECHILD, "%s '%s': helper died", what, m->dst);
	if (WEXITSTATUS(status) != 0)
		return err_set(e, ERR_SYSTEM, WEXITSTATUS(status), "%s '%s': %s", what, m->dst,
			       strerrordesc_np(WEXITSTATUS(status)));
	return 0;
}

int native_cover(const struct native *n, const struct mount *m, struct err *e)
{
	pid_t pid = fork();

	if (pid < 0)
		return err_sys(e, "fork");
	if (pid == 0)
		cover_child(n, m);
	return await_helper(pid, "cover", m, e);
}

int native_parts(const struct native *n, const struct mount *m, const int trees[SERVED_PARTS],
		 struct err *e)
{
	pid_t pid = fork();

	if (pid < 0)
		return err_sys(e, "fork");
	if (pid == 0) {
		int r = served_attach_parts(enter_view(n), m, trees);

		_exit(r < 0 ? -r : 0);
	}
	return await_helper(pid, "attach the parts of", m, e);
}
