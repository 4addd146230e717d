/* SPDX-License-Identifier: Apache-2.0 */
/* remote/inner_lock.c - the inner locks: the same as the native engine's, closed by the same code
 *
 * The engine has built the view and taken the network away. Here init opens the way to the gate (inner_net.c), takes the
 * sandbox's ids where it was started as root of its own small world, sets the limits it hands down, and closes
 * capabilities, no_new_privs, Landlock and system calls; then it tries each door. Only after that a command can be
 * asked for.
 */
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "base/io.h"
#include "remote/inner.h"

static int write_map(const char *file, unsigned inside)
{
	_close_ int fd = openat(AT_FDCWD, file, O_WRONLY | O_CLOEXEC);
	char map[32];

	(void)snprintf(map, sizeof(map), "%u 0 1\n", inside);
	return fd < 0 ? -errno : io_write_all(fd, map, strlen(map));
}

/* Root of a namespace that has no other id: a namespace of our own, in which the same id has the plan's number. */
static int map_ids(const struct plan *p)
{
	_close_ int groups = FD_NONE;
	int r;

	if (unshare(CLONE_NEWUSER) < 0)
		return -errno;
	groups = open("/proc/self/setgroups", O_WRONLY | O_CLOEXEC);
	if (groups >= 0)
		(void)io_write_all(groups, "deny", 4); /* it may be so already */
	r = write_map("/proc/self/gid_map", p->ids.gid_in);
	return r < 0 ? r : write_map("/proc/self/uid_map", p->ids.uid_in);
}

static int take_ids(const struct plan *p)
{
	if (geteuid() == p->ids.uid_in && getegid() == p->ids.gid_in)
		return 0;
	return geteuid() == 0 ? map_ids(p) : -EPERM;
}

static int step_ids(struct child *c)
{
	return take_ids(c->plan);
}

static void write_number(const char *path, const char *number)
{
	_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		(void)io_write_all(fd, number, strlen(number));
}

/* The same settings as the native engine's, where we are root of a user namespace of our own and they are ours to make;
 * a container engine with none has said so in its table. */
static int step_settle(struct child *c)
{
	if (!c->has_own_kernel) {
		write_number("/proc/sys/user/max_user_namespaces", "0");
		write_number("/proc/sys/user/max_inotify_instances", "64");
		write_number("/proc/sys/user/max_inotify_watches", "65536");
		write_number("/proc/self/oom_score_adj", "300");
		/* A link to the kernel's memory that bubblewrap makes; nothing there could be read, but nothing needs it. */
		(void)unlink("/dev/core");
	}
	return 0;
}

static int step_limits(struct child *c)
{
	return rlimits_set(c->plan, !c->has_own_kernel);
}

static int step_lock(struct child *c)
{
	int r = lock_begin(c);

	if (r == 0)
		r = lock_files(c);
	return r < 0 ? r : lock_end(c);
}

static int step_prove(struct child *c)
{
	return lock_prove(c->plan, c->where, sizeof(c->where));
}

/* In a machine of our own we are really root, and the plan's id is a number like any other. */
static int become(const struct ids *ids)
{
	/* While we may: with the id goes the right to take capabilities out of reach for good. */
	for (int cap = 0; prctl(PR_CAPBSET_READ, cap) >= 0; cap++)
		if (prctl(PR_CAPBSET_DROP, cap) < 0)
			return -errno;
	if (setgroups(0, NULL) < 0 || setresgid(ids->gid_in, ids->gid_in, ids->gid_in) < 0 ||
	    setresuid(ids->uid_in, ids->uid_in, ids->uid_in) < 0)
		return -errno;
	return 0;
}

/* An engine on another machine shows the directory of this name that it has there. Who shares one between two machines keeps its
 * number or at least its time. */
static int check_workspace(const struct server *sv, struct err *e)
{
	struct stat st = { 0 };

	if (!sv->walls.is_elsewhere ||
	    (stat(sv->plan.workspace, &st) == 0 &&
	     (st.st_ino == sv->plan.ws_ino || (uint64_t)st.st_mtime == sv->walls.ws_mtime)))
		return 0;
	return err_set(e, ERR_CONFLICT, ESTALE,
		       "'%s' is another directory on the engine's side, which must have this "
		       "machine's files under the same names",
		       sv->plan.workspace);
}

/* In a virtual machine init builds the view, which other engines have built before they started it. */
static int enter_machine_view(struct server *sv, struct err *e)
{
	int r = vm_view_enter(&sv->plan, &sv->steward);

	if (r == 0)
		r = sv->plan.has_containers ? vm_containers(&sv->plan) : become(&sv->plan.ids);
	return r < 0 ? err_set(e, ERR_SYSTEM, -r, "the machine's view: %s: %s", vm_where(),
			       strerrordesc_np(-r))
		     : 0;
}

int server_lock(struct server *sv, const struct buf *guest, struct err *e)
{
	static const struct {
		const char *name;
		int (*fn)(struct child *c);
	} steps[] = {
		{ "take ids", step_ids },         { "settle", step_settle },
		{ "set limits", step_limits },    { "lock", step_lock },
		{ "prove the lock", step_prove },
	};
	struct child c = { .plan = &sv->plan };
	int r = guest_decode(buf_cstr(guest), guest->n, &sv->plan, &sv->walls, e);

	if (r == 0)
		r = check_workspace(sv, e);
	if (r < 0)
		return r;
	c.has_own_kernel = sv->walls.has_own_kernel;
	sv->begins_clean = c.has_own_kernel && !sv->is_vm;
	if (sv->is_vm && (sv->plan.net.has_gate || sv->plan.has_containers))
		vm_load_extra();
	/* While we have the rights of whoever owns the network namespace. */
	r = net_open(sv);
	if (r < 0)
		return err_set(e, ERR_SYSTEM, -r, "the way to the gate: %s", strerrordesc_np(-r));
	if (sv->plan.has_containers && !sv->is_vm)
		return err_set(e, ERR_UNSUPPORTED, ENOTSUP, "containers inside need a machine");
	if (sv->is_vm)
		r = enter_machine_view(sv, e);
	if (r < 0)
		return r;
	(void)umask(sv->walls.umask);
	/* What is inside owns this kernel, as it asked to: there is nothing to lock, and no limit that it could not lift. */
	for (size_t i = 0; i < ARRAY_LEN(steps) && !sv->plan.has_containers; i++) {
		c.where[0] = '\0';
		r = steps[i].fn(&c);
		if (r < 0)
			return err_set(e, ERR_SYSTEM, -r, "%s: %s%s%s", steps[i].name, c.where,
				       c.where[0] ? ": " : "", strerrordesc_np(-r));
	}
	sv->is_locked = true;
	return 0;
}
