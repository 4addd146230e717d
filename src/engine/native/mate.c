/* SPDX-License-Identifier: Apache-2.0 */
/* engine/native/mate.c - init's mate, who builds the view while init makes the network and locks itself
 *
 * The network namespace is the dearest of all, as dear as the view, and the system call filter half of that; and when
 * the old root goes, the kernel waits until no processor can be looking at it any more. So there are two of us inside
 * until the command begins. The mate shares init's memory and descriptors, so that making it costs little, and all
 * namespaces that it changes; it is never locked, and dead before the first command begins.
 *
 * Nothing here allocates or logs, so the file can be read as a list of system calls. Failure leaves through the control
 * socket as one struct err, and init ends.
 *
 * ids      Must: map the ids, so that files made from here on have an owner.
 * part     Must: let no later mount of the host in.                Need not: know the plan.
 * plan     Waits until there is one. What came before was done meanwhile.
 * serve    Must: make the mount of a served git dir while /dev/fuse can be opened. The keeper starts its server
 *          meanwhile, for whom the view waits.
 * trees    Waits for root's, which the keeper makes.
 * open     Must: open every source while the host is visible.      Must not: change what others see.
 * become   Must: take the sandbox's ids, where they are not our own.
 * build    Must: assemble the tree.
 * enter    Must: pivot into it, and init with us: it shares the mount namespace and its root.
 * settle   Must: hostname and namespace limits, which need capabilities.
 * leave    Must: the old root gone.
 *
 * What it has done it says in one word in that memory. libc's errno is in there too, and as long as the view is not
 * built it is the mate's: init makes its calls raw until then, and the mate from then on.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/raw.h"
#include "base/sabotage.h"
#include "engine/native/native.h"
#include "sys/spread.h"

#define MATE_STACK (128 * KIB) /* what is used of it */

enum { MATE_FAILED = -1, MATE_CALLED, MATE_CAME, MATE_HAS_PLAN, MATE_HAS_VIEW };

static struct {
	struct child c; /* its own */
	pid_t pid;
	int old_root;
	int said; /* how far it is */
} mate;

static _Alignas(16) char stack[MATE_STACK];

/* ---- the word ---- */

static void say(int what)
{
	__atomic_store_n(&mate.said, what, __ATOMIC_RELEASE);
	(void)raw_call(SYS_futex, (long)&mate.said, FUTEX_WAKE, 1, 0);
}

/* Where memory runs out the mate may be killed before it has said anything. */
static bool is_dead(void)
{
	siginfo_t info = { 0 };

	return raw_call5(SYS_waitid, P_PID, mate.pid, (long)&info, WEXITED | WNOHANG | WNOWAIT, 0) <
		       0 ||
	       info.si_pid == mate.pid;
}

/* It has told the keeper why, and we are not to be. */
static int await(int what)
{
	static const struct timespec a_second = { .tv_sec = 1 };
	int said;

	while ((said = __atomic_load_n(&mate.said, __ATOMIC_ACQUIRE)) < what) {
		if (said == MATE_FAILED)
			_exit(125);
		/* The processor that it was sent to is busy; ours is free now. */
		if (said == MATE_CALLED)
			spread_back(mate.pid);
		if (raw_call(SYS_futex, (long)&mate.said, FUTEX_WAIT, said, (long)&a_second) ==
			    -ETIMEDOUT &&
		    is_dead())
			return -EIO;
	}
	return 0;
}

/* ---- the mate ---- */

static int write_text(const char *path, const char *text)
{
	_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return io_write_all(fd, text, strlen(text));
}

/* An ordinary user maps the one id they have. Ids that are not our own the keeper maps, and says so. */
static int step_ids(struct child *c)
{
	const struct ids *ids = &c->ids;
	struct init_msg m;
	int fds[PACKET_FDS];
	char map[64];
	int r;

	if (ids_are_given(ids))
		return child_receive(c, INIT_MAPPED, &m, fds);
	r = write_text("/proc/self/setgroups", "deny");
	if (r < 0)
		return r;
	(void)snprintf(map, sizeof(map), "%u %u 1\n", ids->uid_in, ids->uid_out);
	r = write_text("/proc/self/uid_map", map);
	if (r < 0)
		return r;
	(void)snprintf(map, sizeof(map), "%u %u 1\n", ids->gid_in, ids->gid_out);
	return write_text("/proc/self/gid_map", map);
}

static int step_part(struct child *c)
{
	(void)c;
	/* Later mounts of the host must not appear inside. */
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -errno;
	mate.old_root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (mate.old_root < 0)
		return -errno;
	(void)umask(0); /* our own: modes are what the steps below say */
	return 0;
}

static int step_plan(struct child *c)
{
	struct init_msg m;
	int fds[PACKET_FDS];
	int r = c->given ? 0 : child_receive(c, INIT_PLAN, &m, fds);

	if (r < 0)
		return r;
	if (mem_share_take() < 0)
		return -errno;
	c->plan = c->given;
	say(MATE_HAS_PLAN);
	return 0;
}

/* Root's only: ids are mapped on them, which only root can do. */
static int step_trees(struct child *c)
{
	struct init_msg m;
	int fds[PACKET_FDS];
	void *trees = mmap(NULL, (c->plan->n_mounts + 1) * sizeof(int), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (trees == MAP_FAILED)
		return -errno;
	c->trees = trees;
	for (size_t i = 0; i < c->plan->n_mounts; i++)
		c->trees[i] = FD_NONE;
	for (size_t i = 0; c->ids.is_root && i < c->plan->n_mounts; i++) {
		int r = 0;

		if (!(c->plan->mounts[i].flags & MOUNT_IDMAP))
			continue;
		r = child_receive(c, INIT_TREE, &m, fds);
		if (r < 0)
			return r;
		c->trees[m.a] = fds[0];
	}
	return 0;
}

static int step_open(struct child *c)
{
	return mounts_open(c);
}

static int step_become(struct child *c)
{
	return child_become(c);
}

static int step_build(struct child *c)
{
	return mounts_attach(c);
}

static int step_enter(struct child *c)
{
	if (!sabotaged("pivot") && (fchdir(c->root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0))
		return -errno;
	/* The old root now lies over the new one; what "/" is for us is the new. */
	if (!sabotaged("pivot") && chdir("/") < 0)
		return -errno;
	return 0;
}

/* A sysctl of one of our own namespaces. */
static int set_sysctl(struct child *c, const char *name, uint64_t value)
{
	char path[80], text[24];

	(void)snprintf(path, sizeof(path), "/proc/sys/%s", name);
	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	(void)snprintf(c->where, sizeof(c->where), "%s", path);
	return write_text(path, text);
}

static int step_settle(struct child *c)
{
	static char sys_dir[] = "/proc/sys";
	const struct plan *p = c->plan;
	int r = 0;

	if (!sabotaged("utsns") && sethostname(p->hostname, strlen(p->hostname)) < 0)
		r = -errno;
	/* The filter already refuses new user namespaces; this holds even where a filter would not. */
	if (r == 0 && !sabotaged("userns"))
		r = set_sysctl(c, "user/max_user_namespaces", 0);
	/* inotify objects are counted for each user of the host, whatever the namespace: half of the kernel's usual
	 * bound must do for what runs inside. */
	if (r == 0)
		r = set_sysctl(c, "user/max_inotify_instances", 64);
	if (r == 0)
		r = set_sysctl(c, "user/max_inotify_watches", 65536);
	/* Some of these files belong to a root inside. */
	if (r == 0 && p->ids.root != ROOT_NONE && !sabotaged("sysctl"))
		r = mounts_cover(c->root, &(struct mount){ .kind = MOUNT_PROTECT,
							   .flags = MOUNT_RO | MOUNT_DIR,
							   .dst = sys_dir });
	/* When memory runs out, what is inside goes first: who shares our memory, that is init. */
	(void)write_text("/proc/self/oom_score_adj", "300");
	return r;
}

/* Everything in it goes, for good. */
static bool leave_old_root(void)
{
	return sabotaged("pivot") || (raw_call(SYS_fchdir, mate.old_root, 0, 0, 0) == 0 &&
				      raw_call(SYS_umount2, (long)".", MNT_DETACH, 0, 0) == 0);
}

static const struct step mate_steps[] = {
	/* One below the other, they are a list. */
	/* clang-format off */
	{ "map ids", step_ids },
	{ "part from the host", step_part },
	{ "take the plan", step_plan },
	{ "serve the git dir", served_make },
	{ "take trees", step_trees },
	{ "open sources", step_open },
	{ "take ids", step_become },
	{ "build the view", step_build },
	{ "enter the view", step_enter },
	{ "settle", step_settle },
	/* clang-format on */
};

static int mate_main(void *child)
{
	const uint64_t one = 1;
	struct child *c = child;

	say(MATE_CAME);
	for (size_t i = 0; i < ARRAY_LEN(mate_steps); i++) {
		const char *name = mate_steps[i].name;
		int r;

		c->where[0] = '\0';
		r = mate_steps[i].fn(c);
		if (r == 0)
			continue;
		child_tell(c, name, r);
		say(MATE_FAILED);
		return 1;
	}
	say(MATE_HAS_VIEW);
	/* Before, the keeper would only have been in our way. */
	if (c->turn >= 0)
		(void)raw_call(SYS_write, c->turn, (long)&one, sizeof(one), 0);
	return leave_old_root() ? 0 : 1;
}

/* ---- init ---- */

int mate_begin(struct child *c)
{
	mate.c = *c;
	mate.said = MATE_CALLED;
	mate.pid =
		clone(mate_main, stack + sizeof(stack), CLONE_VM | CLONE_FILES | SIGCHLD, &mate.c);
	if (mate.pid < 0)
		return -errno;
	spread_child(mate.pid); /* it makes nobody, so it need not say spread_end() */
	return 0;
}

int mate_plan(struct child *c)
{
	int r = await(MATE_HAS_PLAN);

	c->plan = mate.c.plan;
	return r;
}

int mate_view(struct child *c)
{
	(void)c;
	return await(MATE_HAS_VIEW);
}

int mate_end(struct child *c)
{
	int status;

	(void)c;
	if (waitpid(mate.pid, &status, 0) < 0)
		return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}
