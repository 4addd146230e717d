/* SPDX-License-Identifier: Apache-2.0 */
/* remote/inner_vm.c - the first process of a machine: its kernel has nothing but us and a few modules
 *
 * boot     proc and devices; load the modules; the link is the port named "vitrine"
 * wake     a seed of its own: this machine may be one of many that go on from the same moment
 * view     when the plan has come: the shared directory becomes the root, with a /proc and a /dev of this kernel
 */
#include <dirent.h>
#include <fcntl.h>
#include <linux/random.h>
#include <poll.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "base/io.h"
#include "base/path.h"
#include "engine/vm/wake.h"
#include "remote/inner.h"
#include "remote/inner_steward.h"

static void load(const char *path)
{
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		(void)syscall(SYS_finit_module, fd, "",
			      0); /* a bus that is not there is no error */
}

static void load_all(const char *prefix)
{
	for (int i = 0; i < 100; i++) {
		char path[32];

		(void)snprintf(path, sizeof(path), "/modules/%s%02d.ko", prefix, i);
		if (access(path, F_OK) < 0)
			break;
		load(path);
		(void)unlink(path); /* once is enough, and memory is the machine's */
	}
}

void vm_load_extra(void)
{
	load_all("x");
}

/* The kernel makes the port a moment after its driver has come. */
static int open_port(int number)
{
	struct timespec nap = { .tv_nsec = 2000000 };

	for (int i = 0; i < 5000; i++) {
		char path[32];
		int fd;

		(void)snprintf(path, sizeof(path), "/dev/vport%dp%d", i % 2, number);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd >= 0)
			return fd;
		if (i % 2)
			(void)nanosleep(&nap, NULL);
	}
	return FD_NONE;
}

bool vm_is_one(const char *name)
{
	return str_eq(name, "/init");
}

/* ---- wake ---- */

/* All of it, however it comes. A port whose other side is not there yet reads as ended: wait for it. */
bool vm_read(int fd, void *to, size_t n)
{
	char *p = to;

	while (n > 0) {
		struct pollfd waiting = { .fd = fd, .events = POLLIN };
		struct timespec nap = { .tv_nsec = 1000000 };
		ssize_t r = poll(&waiting, 1, -1) < 0 ? -1 : read(fd, p, n);

		if (r < 0 && errno != EINTR && errno != EAGAIN)
			return false;
		if (r == 0)
			(void)nanosleep(&nap, NULL);
		p += r > 0 ? r : 0;
		n -= r > 0 ? (size_t)r : 0;
	}
	return true;
}

/* Counted as good randomness, and taken up at once: a kernel that was kept believes that it has enough of its own. */
bool vm_seed(const uint8_t *bytes, size_t n)
{
	struct { /* struct rand_pool_info, with its bytes */
		int entropy_bits, n;
		uint8_t bytes[sizeof(((struct link_wake *)NULL)->seed)];
	} pool = { .entropy_bits = (int)n * 8, .n = (int)n };
	_close_ int fd = open("/dev/random", O_RDWR | O_CLOEXEC);

	bug_on(n != sizeof(pool.bytes));
	memcpy(pool.bytes, bytes, n);
	return fd >= 0 && ioctl(fd, RNDADDENTROPY, &pool) == 0 && ioctl(fd, RNDRESEEDCRNG) == 0;
}

int vm_wake(int port, bool is_kept)
{
	struct link_wake wake;
	const char awake = LINK_AWAKE;

	if (is_kept)
		vm_load_extra(); /* paid once, for all who come after */
	if (is_kept && io_write_all(port, &awake, 1) < 0)
		return -EIO;
	if (!vm_read(port, &wake, sizeof(wake)) || wake.magic != LINK_WAKE_MAGIC ||
	    !vm_seed(wake.seed, sizeof(wake.seed)))
		return -EIO;
	explicit_bzero(&wake, sizeof(wake));
	return 0;
}

/* ---- boot ---- */

int vm_boot(void)
{
	(void)mkdir("/proc", 0755);
	(void)mkdir("/dev", 0755);
	if (mount("proc", "/proc", "proc", 0, NULL) < 0)
		return FD_NONE;
	(void)mount("devtmpfs", "/dev", "devtmpfs", 0, NULL); /* some kernels have done so */
	load_all("");
	return open_port(1);
}

/* ---- the view ---- */

/* As all private space, within --disk; what is left of it is the other one's. */
static int make_shm(const struct plan *p)
{
	uint64_t bytes = plan_shm_part(p->private_bytes), files = plan_shm_part(p->private_inodes);
	char options[96];

	/* 0 would be no limit at all. */
	(void)snprintf(options, sizeof(options), "mode=1777,size=%llu,nr_inodes=%llu",
		       (unsigned long long)(bytes ? bytes : 1),
		       (unsigned long long)(files ? files : 1));
	if (mkdir("/v/dev/shm", 0755) < 0 ||
	    mount("tmpfs", "/v/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV,
		  p->private_bytes ? options : "mode=1777") < 0)
		return -errno;
	return 0;
}

static int make_dev(const struct plan *p)
{
	static const struct {
		const char *name;
		unsigned minor, major;
	} nodes[] = { { "null", 3, 1 },   { "zero", 5, 1 },    { "full", 7, 1 },
		      { "random", 8, 1 }, { "urandom", 9, 1 }, { "tty", 0, 5 } };
	static const char *const links[][2] = { { "/proc/self/fd", "fd" },
						{ "/proc/self/fd/0", "stdin" },
						{ "/proc/self/fd/1", "stdout" },
						{ "/proc/self/fd/2", "stderr" },
						{ "pts/ptmx", "ptmx" } };
	mode_t old = umask(0);
	char path[32];

	if (mount("tmpfs", "/v/dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=0755,size=64k") < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
		(void)snprintf(path, sizeof(path), "/v/dev/%s", nodes[i].name);
		if (mknod(path, S_IFCHR | 0666, makedev(nodes[i].major, nodes[i].minor)) < 0)
			return -errno;
	}
	for (size_t i = 0; i < ARRAY_LEN(links); i++) {
		(void)snprintf(path, sizeof(path), "/v/dev/%s", links[i][1]);
		if (symlink(links[i][0], path) < 0)
			return -errno;
	}
	(void)umask(old);
	if (mkdir("/v/dev/pts", 0755) < 0 ||
	    mount("devpts", "/v/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
		  "ptmxmode=0666,mode=0600") < 0)
		return -errno;
	return make_shm(p);
}

static int hide(const char *name)
{
	if (access(name, F_OK) < 0)
		return 0;
	return mount("/v/.vitrine/file", name, NULL, MS_BIND, NULL) < 0 ? -errno : 0;
}

/* A machine that was kept has the clock of that day, and files have the host's: a file made now says what it is. */
static int set_clock(const struct plan *p)
{
	static const char path[] = "/v/.vitrine/private/.clock";
	_close_ int fd = FD_NONE;
	struct stat st;
	struct timespec now;

	/* virtiofsd makes files in the name of whoever asks, and knows one id. */
	(void)setfsgid(p->ids.gid_in);
	(void)setfsuid(p->ids.uid_in);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	(void)setfsuid(0);
	(void)setfsgid(0);
	if (fd < 0 || fstat(fd, &st) < 0 || unlink(path) < 0)
		return -errno;
	now = st.st_mtim;
	return clock_settime(CLOCK_REALTIME, &now) < 0 ? -errno : 0;
}

/* What it was about when it failed. */
static const char *place = "";

const char *vm_where(void)
{
	return place;
}

#define SHARE_NAPS 5000 /* of 2 ms and more */
#define SHARE_OPTIONS "trans=virtio,version=9p2000.L,msize=262144,cache="
#define STREAM_OPTIONS "trans=fd,rfdno=%d,wfdno=%d,version=9p2000.L,msize=131072,cache=%s"

static bool can_write_system(const struct plan *p)
{
	for (size_t i = 0; i < p->n_access; i++)
		if (p->access[i].kind == ACCESS_WRITE && path_is_beneath(p->access[i].path, "/usr"))
			return true;
	return false;
}

/* A board without a firmware tells its kernel of no device that comes later: it is asked to look. */
static void look_for_devices(void)
{
	struct err ignored = ERR_INIT;

	(void)mkdir("/sys", 0755);
	if (mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return;
	(void)io_write_file("/sys/bus/pci/rescan", "1", &ignored);
	(void)umount2("/sys", MNT_DETACH);
}

/* Served by QEMU, or else by virtiofsd: a machine has the one or the other. A machine that was kept gets the latter's device when
 * it goes on, so it may be a moment till the kernel has found it. */
static bool is_virtiofs;

static int mount_share(void)
{
	struct timespec nap = { .tv_nsec = 2000000 };

	if (mount("view", "/v", "9p", MS_NOSUID | MS_NODEV, SHARE_OPTIONS "mmap") == 0)
		return 0;
	for (int i = 0; i < SHARE_NAPS; i++) {
		is_virtiofs = mount("view", "/v", "virtiofs", MS_NOSUID | MS_NODEV, NULL) == 0;
		if (is_virtiofs)
			return 0;
		if (errno != EINVAL) /* that is: no such device */
			return -1;
		look_for_devices();
		(void)nanosleep(&nap, NULL);
	}
	return -1;
}

/* Where there is no such share, or something in it can be written, /usr is part of the view like everything else. */
static int mount_system(const struct plan *p)
{
	const unsigned long flags = MS_NOSUID | MS_NODEV | MS_RDONLY;

	if (can_write_system(p))
		return 0;
	if (!is_virtiofs)
		return mount("system", "/v/usr", "9p", flags, SHARE_OPTIONS "loose") == 0 ||
				       errno == ENOENT
			       ? 0
			       : -errno;
	if (mount("system", "/v/usr", "virtiofs", flags, NULL) == 0)
		return 0;
	look_for_devices(); /* it was there before the view */
	return mount("system", "/v/usr", "virtiofs", flags, NULL) == 0 || errno == EINVAL ? 0
											  : -errno;
}

/* ---- the same of a machine that can be saved ---- */

static int mount_stream(int kernel, const char *dst, unsigned long flags, const char *cache)
{
	place = dst;
	char options[128];

	(void)snprintf(options, sizeof(options), STREAM_OPTIONS, kernel, kernel, cache);
	return mount("view", dst, "9p", MS_NOSUID | MS_NODEV | flags, options) < 0 ? -errno : 0;
}

/* As many ports as the machine has. */
static int mount_live(const struct plan *p, int *ret_steward)
{
	bool has_system = access("/dev/vport0p3", F_OK) == 0 || access("/dev/vport1p3", F_OK) == 0;
	int ports[STEWARD_WAYS] = { open_port(2), has_system ? open_port(3) : FD_NONE };
	int kernel[STEWARD_WAYS] = { FD_NONE, FD_NONE };
	int r;

	if (ports[0] < 0 || (has_system && ports[1] < 0))
		return -ENODEV;
	*ret_steward = steward_start(ports, has_system ? 2 : 1, kernel);
	r = *ret_steward < 0 ? *ret_steward : mount_stream(kernel[0], "/v", 0, "mmap");
	if (r == 0 && has_system && !can_write_system(p))
		r = mount_stream(kernel[1], "/v/usr", MS_RDONLY, "loose");
	fd_close(kernel[0]); /* the mounts have theirs */
	fd_close(kernel[1]);
	return r;
}

/* The name of a private directory says what it is for; all but the home are as everywhere. */
static unsigned mode_of(const char *name)
{
	return str_eq(name, "home") ? 0700 : str_eq(name, "run") ? 0755 : 01777;
}

static int add_private(const struct plan *p, const struct mount *m)
{
	_free_ char *own = mem_fmt("/private/%s", m->src);
	_free_ char *dst = mem_fmt("/v%s", m->dst);

	place = m->dst;
	(void)path_make_point(dst, true); /* it may lie in another one; else it is there */
	if (mkdir(own, 0700) < 0 || chown(own, p->ids.uid_in, p->ids.gid_in) < 0 ||
	    chmod(own, mode_of(m->src)) < 0)
		return -errno;
	return mount(own, dst, NULL, MS_BIND, NULL) < 0 ? -errno : 0;
}

/* What of the host lies below private space: a tree of its own, taken while it can still be seen. */
static int take_through(const struct mount *m, bool *ret_is_dir)
{
	_free_ char *dst = mem_fmt("/v%s", m->dst);
	int tree = (int)syscall(SYS_open_tree, AT_FDCWD, dst,
				1U /* OPEN_TREE_CLONE */ | O_CLOEXEC | AT_SYMLINK_NOFOLLOW);
	struct stat st;

	if (tree < 0 || fstat(tree, &st) < 0)
		return -errno;
	*ret_is_dir = S_ISDIR(st.st_mode);
	return tree;
}

static int add_through(const struct mount *m, int tree, bool is_dir)
{
	_free_ char *dst = mem_fmt("/v%s", m->dst);
	int r = path_make_point(dst, is_dir);

	place = m->dst;
	if (r == 0 && syscall(SYS_move_mount, tree, "", AT_FDCWD, dst, 4U /* F_EMPTY_PATH */) < 0)
		r = -errno;
	return r;
}

/* Private space is this machine's memory, so that it is saved with it. Owners of what is made on the way to a mount are ours. */
static int make_private(const struct plan *p)
{
	_free_ int *trees = mem_new(p->n_mounts + 1, sizeof(*trees));
	_free_ bool *dirs = mem_new(p->n_mounts + 1, sizeof(*dirs));
	char options[96];
	int r = 0;

	(void)snprintf(options, sizeof(options), "mode=0755,size=%llu,nr_inodes=%llu",
		       (unsigned long long)(p->private_bytes - plan_shm_part(p->private_bytes)),
		       (unsigned long long)(p->private_inodes - plan_shm_part(p->private_inodes)));
	if (mkdir("/private", 0755) < 0 || mount("tmpfs", "/private", "tmpfs", MS_NOSUID | MS_NODEV,
						 p->private_bytes ? options : "mode=0755") < 0)
		return -errno;
	for (size_t i = 0; i < p->n_mounts; i++)
		trees[i] = p->mounts[i].kind == MOUNT_PRIVATE
				   ? FD_NONE
				   : take_through(&p->mounts[i], &dirs[i]);
	for (size_t i = 0; r == 0 && i < p->n_mounts; i++)
		if (p->mounts[i].kind == MOUNT_PRIVATE)
			r = add_private(p, &p->mounts[i]);
		else if (trees[i] >= 0) /* a name that has gone covers nothing */
			r = add_through(&p->mounts[i], trees[i], dirs[i]);
	for (size_t i = 0; i < p->n_mounts; i++)
		fd_close(trees[i]);
	return r;
}

static int mount_view(const struct plan *p, int *ret_steward)
{
	if (mkdir("/v", 0755) < 0)
		return -errno;
	if (p->is_live)
		return mount_live(p, ret_steward);
	return mount_share() < 0 ? -errno : 0;
}

int vm_view_enter(const struct plan *p, int *ret_steward)
{
	int r = mount_view(p, ret_steward);

	if (r < 0)
		return r;
	/* The threads of this kernel are no more to be seen than another's would be. */
	if (mount("proc", "/v/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  "hidepid=invisible") < 0)
		return -errno;
	r = netns_loopback();
	if (r == 0 && !p->is_live)
		r = mount_system(p);
	if (r == 0)
		r = set_clock(p);
	if (r == 0 && p->is_live)
		r = make_private(p);
	if (r == 0)
		r = hide("/v/proc/keys");
	if (r == 0)
		r = hide("/v/proc/key-users");
	if (r == 0)
		r = make_dev(p);
	if (r < 0)
		return r;
	place = "root";
	if (chdir("/v") < 0 || mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 ||
	    chdir("/") < 0)
		return -errno;
	return sethostname("vitrine", 7) < 0 ? -errno : 0;
}

/* ---- containers ---- */

static int put_number(const char *path, uint64_t n)
{
	_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);
	char text[24];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
	return fd < 0 ? -errno : io_write_all(fd, text, strlen(text));
}

/* The view is the host's file system, on which no overlay can stand: images lie in this machine's memory. The limit on
 * processes guards the host's kernel, and here it is not the host's; it is set all the same, and root may lift it. */
int vm_containers(const struct plan *p)
{
	static const struct {
		const char *type, *dst, *options;
	} mounts[] = {
		{ "sysfs", "/sys", NULL },
		{ "cgroup2", "/sys/fs/cgroup", NULL },
		{ "tmpfs", "/var/lib/containers", "mode=0700" },
		{ "tmpfs", "/run", "mode=0755" },
	};
	const struct plan_limit *pids = &p->limits[LIMIT_PIDS];

	for (size_t i = 0; i < ARRAY_LEN(mounts); i++)
		if (mount(mounts[i].type, mounts[i].dst, mounts[i].type, MS_NOSUID,
			  mounts[i].options) < 0)
			return -errno;
	return pids->is_set ? put_number("/proc/sys/kernel/threads-max", pids->max + 64) : 0;
}
