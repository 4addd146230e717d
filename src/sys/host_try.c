/* SPDX-License-Identifier: Apache-2.0 */
/* sys/host_try.c - see host_try.h
 *
 * The child writes one struct attempt to a pipe and ends; a child that hangs is killed at the deadline, one that a
 * filter of the host kills is reported as such. Walled children are pid 1 of their own pid namespace, so whatever
 * they start ends with them. An attempt changes nothing outside: mounts stay in the child's own namespace, and
 * kernel.pid_max is written with the value it has, because on older kernels it is everybody's.
 */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/path.h"
#include "sys/host.h"
#include "sys/host_try.h"
#include "sys/netns.h"

#define DEADLINE_MS 3000
#define WALLS                                                                                      \
	(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |                \
	 CLONE_NEWCGROUP | CLONE_NEWNET)

/* Only the first failure counts: what follows is its consequence. */
static void failed(struct attempt *a, const char *step)
{
	if (a->num != 0)
		return;
	a->num = errno > 0 ? errno : EIO;
	(void)snprintf(a->step, sizeof(a->step), "%s", step);
}

static bool put_file(const char *path, const char *text)
{
	_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

static void map_ids(struct attempt *a, uid_t uid, gid_t gid)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "0 %u 1", uid);
	if (!put_file("/proc/self/uid_map", text))
		failed(a, "map the user id");
	if (!put_file("/proc/self/setgroups", "deny"))
		failed(a, "give up setgroups");
	(void)snprintf(text, sizeof(text), "0 %u 1", gid);
	if (!put_file("/proc/self/gid_map", text))
		failed(a, "map the group id");
}

static pid_t start_child(bool is_walled)
{
	struct clone_args args = { .flags = WALLS, .exit_signal = SIGCHLD };

	return is_walled ? (pid_t)syscall(SYS_clone3, &args, sizeof(args)) : fork();
}

static _Noreturn void child_main(try_fn fn, bool is_walled, int out, uid_t uid, gid_t gid)
{
	struct attempt a = { 0 };

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (is_walled)
		map_ids(&a, uid, gid);
	if (a.num == 0)
		fn(&a);
	_exit(io_write_all(out, &a, sizeof(a)) < 0);
}

static void wait_for(pid_t pid, int in, struct attempt *a)
{
	struct pollfd p = { .fd = in, .events = POLLIN };
	int status = 0, ready;

	do {
		ready = poll(&p, 1, DEADLINE_MS);
	} while (ready < 0 && errno == EINTR);
	if (ready <= 0 || io_read(in, a, sizeof(*a)) != (ssize_t)sizeof(*a)) {
		*a = (struct attempt){ .num = ready <= 0 ? ETIMEDOUT : ECHILD };
		if (ready <= 0)
			(void)kill(pid, SIGKILL);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (a->num == ETIMEDOUT)
		(void)snprintf(a->step, sizeof(a->step), "no end within %d s", DEADLINE_MS / 1000);
	else if (a->num == ECHILD)
		(void)snprintf(a->step, sizeof(a->step), "ended by signal %d",
			       WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	a->step[sizeof(a->step) - 1] = '\0';
}

struct attempt try_in_child(try_fn fn, bool is_walled)
{
	struct attempt a = { 0 };
	uid_t uid = geteuid();
	gid_t gid = getegid();
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0) {
		failed(&a, "pipe");
		return a;
	}
	pid = start_child(is_walled);
	if (pid == 0)
		child_main(fn, is_walled, ends[1], uid, gid);
	if (pid < 0)
		failed(&a, is_walled ? "make the namespaces" : "fork");
	fd_close(ends[1]);
	if (pid > 0)
		wait_for(pid, ends[0], &a);
	fd_close(ends[0]);
	return a;
}

/* --- in namespaces --- */

void try_nothing(struct attempt *a)
{
	(void)a;
}

static void loopback_up(struct attempt *a)
{
	_close_ int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq r = { .ifr_flags = IFF_UP };

	memcpy(r.ifr_name, "lo", sizeof("lo"));
	if (s < 0 || ioctl(s, SIOCSIFFLAGS, &r) < 0)
		failed(a, "bring up the loopback interface");
}

/* After this /tmp is an empty tmpfs that only we see. */
static void scratch(struct attempt *a)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		failed(a, "cut off the host's mounts");
	if (a->num == 0 && mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=1m") < 0)
		failed(a, "mount a tmpfs");
}

void try_private_mounts(struct attempt *a)
{
	scratch(a);
	if (a->num == 0)
		loopback_up(a);
}

static void mount_proc(struct attempt *a)
{
	scratch(a);
	if (a->num)
		return;
	if (mkdir("/tmp/proc", 0755) < 0 ||
	    mount("proc", "/tmp/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		failed(a, "mount a fresh /proc");
}

void try_proc(struct attempt *a)
{
	char self[16] = "";

	mount_proc(a);
	/* It must be ours: a /proc in which we are not process 1 shows somebody else's processes. */
	if (a->num == 0 &&
	    (readlink("/tmp/proc/self", self, sizeof(self) - 1) < 0 || !str_eq(self, "1"))) {
		errno = ESRCH;
		failed(a, "be process 1 in the fresh /proc");
	}
}

void try_mount_api(struct attempt *a)
{
	struct mount_attr read_only = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID };
	_close_ int tree = FD_NONE, fs = FD_NONE, mnt = FD_NONE;

	scratch(a);
	if (a->num)
		return;
	tree = open_tree(AT_FDCWD, "/usr", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	if (tree < 0)
		failed(a, "open_tree");
	else if (mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &read_only,
			       sizeof(read_only)) < 0)
		failed(a, "mount_setattr");
	else if (mkdir("/tmp/usr", 0755) < 0 ||
		 move_mount(tree, "", AT_FDCWD, "/tmp/usr", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		failed(a, "move_mount");
	fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
	if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		failed(a, "fsopen");
	mnt = a->num ? FD_NONE : fsmount(fs, FSMOUNT_CLOEXEC, 0);
	if (mnt < 0)
		failed(a, "fsmount");
	if (a->num == 0 && open("/tmp/usr/vitrine", O_WRONLY | O_CREAT | O_CLOEXEC, 0600) >= 0) {
		errno = EINVAL;
		failed(a, "find the read-only tree read-only");
	}
}

void try_overlay(struct attempt *a)
{
	scratch(a);
	if (a->num)
		return;
	if (mkdir("/tmp/l", 0755) < 0 || mkdir("/tmp/u", 0755) < 0 || mkdir("/tmp/w", 0755) < 0 ||
	    mkdir("/tmp/m", 0755) < 0 || mknod("/tmp/l/f", S_IFREG | 0644, 0) < 0 ||
	    mkdir("/tmp/l/d", 0755) < 0)
		failed(a, "prepare");
	else if (mount("overlay", "/tmp/m", "overlay", 0,
		       "lowerdir=/tmp/l,upperdir=/tmp/u,workdir=/tmp/w,userxattr") < 0)
		failed(a, "mount overlay");
	else if (!put_file("/tmp/m/f", "x") || unlink("/tmp/m/f") < 0 || rmdir("/tmp/m/d") < 0)
		failed(a, "copy up and remove");
	else if (access("/tmp/l/f", F_OK) < 0)
		failed(a, "keep the lower layer");
}

/* Nobody answers; it is gone before anybody could ask. */
void try_fuse(struct attempt *a)
{
	_close_ int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC), fs = FD_NONE, tree = FD_NONE;
	char text[24];

	(void)snprintf(text, sizeof(text), "%d", fuse);
	if (fuse < 0) {
		failed(a, "open /dev/fuse");
		return;
	}
	fs = fsopen("fuse", FSOPEN_CLOEXEC);
	if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "fd", text, 0) < 0 ||
	    fsconfig(fs, FSCONFIG_SET_STRING, "rootmode", "40000", 0) < 0 ||
	    fsconfig(fs, FSCONFIG_SET_STRING, "user_id", "0", 0) < 0 ||
	    fsconfig(fs, FSCONFIG_SET_STRING, "group_id", "0", 0) < 0 ||
	    fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		failed(a, "mount fuse");
	else if ((tree = fsmount(fs, FSMOUNT_CLOEXEC, 0)) < 0)
		failed(a, "mount fuse");
}

/* Since 6.14 each pid namespace has its own. Before, root would write the host's, hence the same value again. */
void try_pid_max(struct attempt *a)
{
	_cleanup_(buf_done) struct buf now = BUF(64);
	struct err e = ERR_INIT;

	mount_proc(a);
	if (a->num)
		return;
	if (host_kernel() < HOST_KERNEL(6, 14)) {
		errno = ENOSYS;
		failed(a, "kernel.pid_max is the host's before Linux 6.14");
		return;
	}
	if (io_read_file("/tmp/proc/sys/kernel/pid_max", &now, &e) < 0 ||
	    !put_file("/tmp/proc/sys/kernel/pid_max", buf_cstr(&now)))
		failed(a, "write kernel.pid_max");
}

/* --- alone --- */

static int landlock_create(const struct landlock_ruleset_attr *attr, size_t size, unsigned flags)
{
	return (int)syscall(SYS_landlock_create_ruleset, attr, size, flags);
}

void try_redirect(struct attempt *a)
{
	struct netns n = { 0 };
	int r = netns_loopback();

	if (r == 0)
		r = netns_open(&n);
	if (r < 0 || !n.has_redirect) {
		errno = r < 0 ? -r : EOPNOTSUPP;
		failed(a, r < 0 ? "make the gate's sockets" : "redirect connections");
	}
	a->value = n.has_v6;
}

void try_landlock(struct attempt *a)
{
	struct landlock_ruleset_attr attr = { .handled_access_fs = LANDLOCK_ACCESS_FS_READ_FILE };
	int abi = landlock_create(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	_close_ int rules = FD_NONE, file = FD_NONE;

	if (abi < 1) {
		failed(a, "ask for Landlock");
		return;
	}
	a->value = (uint64_t)abi;
	rules = landlock_create(&attr, sizeof(attr.handled_access_fs), 0);
	if (rules < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_landlock_restrict_self, rules, 0) < 0) {
		failed(a, "restrict ourselves");
		return;
	}
	file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	if (file >= 0 || errno != EACCES) {
		errno = EINVAL;
		failed(a, "find a file closed that we closed");
	}
}

/* getppid gives EXDEV, or waits for an answer: a call that cannot fail makes the effect plain. */
static int install(unsigned action, unsigned flags)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = ARRAY_LEN(code), .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);
}

void try_seccomp(struct attempt *a)
{
	if (install(SECCOMP_RET_ERRNO | EXDEV, 0) < 0) {
		failed(a, "install a filter");
		return;
	}
	if (syscall(SYS_getppid) != -1 || errno != EXDEV) {
		errno = EINVAL;
		failed(a, "see the filter work");
	}
}

void try_seccomp_notify(struct attempt *a)
{
	struct seccomp_notif_sizes sizes;
	_close_ int fd = FD_NONE;

	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) < 0) {
		failed(a, "ask for notifications");
		return;
	}
	fd = install(SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER);
	if (fd < 0)
		failed(a, "listen for notifications");
}

void try_openat2(struct attempt *a)
{
	int fd = path_openat2(AT_FDCWD, "/", O_PATH | O_DIRECTORY,
			      RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

	if (fd < 0) {
		errno = -fd;
		failed(a, "openat2");
	}
	fd_close(fd);
}

void try_clone3(struct attempt *a)
{
	struct clone_args args = { .exit_signal = SIGCHLD };
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	if (pid == 0)
		_exit(0);
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		failed(a, "clone3");
}

void try_pidfd(struct attempt *a)
{
	pid_t pid = fork();
	_close_ int fd = FD_NONE;
	siginfo_t info;

	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	fd = pid < 0 ? FD_NONE : (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0) {
		failed(a, "pidfd_open");
		if (pid > 0)
			(void)kill(pid, SIGKILL);
	} else if (syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) < 0) {
		failed(a, "pidfd_send_signal");
		(void)kill(pid, SIGKILL);
	} else if (waitid(P_PIDFD, (id_t)fd, &info, WEXITED) < 0) {
		failed(a, "wait for a pidfd");
	}
}

/* A user namespace to take the mapping from: a child that stands in one while we write its map. Fd or -1. */
static int mapped_namespace(struct attempt *a)
{
	struct clone_args args = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	char path[64];
	int fd = -1;

	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)pause();
		_exit(0);
	}
	if (pid < 0) {
		failed(a, "make a user namespace");
		return -1;
	}
	(void)snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)pid);
	if (put_file(path, "0 100000 1")) {
		(void)snprintf(path, sizeof(path), "/proc/%d/gid_map", (int)pid);
		if (put_file(path, "0 100000 1")) {
			(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
			fd = open(path, O_RDONLY | O_CLOEXEC);
		}
	}
	if (fd < 0)
		failed(a, "write an id map");
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	return fd;
}

/* On the file system of the current directory, which is what a workspace would be on. */
void try_idmap(struct attempt *a)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP };
	_close_ int ns = mapped_namespace(a), tree = FD_NONE;

	if (ns < 0)
		return;
	tree = open_tree(AT_FDCWD, ".", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	attr.userns_fd = (uint64_t)ns;
	if (tree < 0)
		failed(a, "open_tree");
	else if (mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		failed(a, "map the owners of files");
}
