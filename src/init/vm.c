/* SPDX-License-Identifier: Apache-2.0 */
/* init/vm.c - the first process of a machine: its kernel has nothing but us and a few modules
 *
 * boot     proc and devices; load the modules; the link is the port named "vitrine"
 * view     when the plan has come: the shared directory becomes the root, with a /proc and a /dev of this kernel
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "init/init.h"

static void load(const char *path)
{
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		(void)syscall(SYS_finit_module, fd, "",
			      0); /* a bus that is not there is no error */
}

static void load_all(void)
{
	for (int i = 0; i < 100; i++) {
		char path[32];

		(void)snprintf(path, sizeof(path), "/modules/%02d.ko", i);
		if (access(path, F_OK) < 0)
			break;
		load(path);
	}
}

/* The kernel makes the port a moment after its driver has come. */
static int open_port(void)
{
	struct timespec nap = { .tv_nsec = 2000000 };

	for (int i = 0; i < 5000; i++) {
		int fd = open("/dev/vport0p1", O_RDWR | O_CLOEXEC);

		if (fd < 0)
			fd = open("/dev/vport1p1", O_RDWR | O_CLOEXEC);
		if (fd >= 0)
			return fd;
		(void)nanosleep(&nap, NULL);
	}
	return FD_NONE;
}

bool vm_is_one(const char *name)
{
	return str_eq(name, "/init");
}

int vm_boot(void)
{
	(void)mkdir("/proc", 0755);
	(void)mkdir("/dev", 0755);
	if (mount("proc", "/proc", "proc", 0, NULL) < 0)
		return FD_NONE;
	(void)mount("devtmpfs", "/dev", "devtmpfs", 0, NULL); /* some kernels have done so */
	load_all();
	return open_port();
}

/* ---- the view ---- */

static int make_dev(void)
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
	if (mkdir("/v/dev/pts", 0755) < 0 || mkdir("/v/dev/shm", 0755) < 0 ||
	    mount("devpts", "/v/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
		  "ptmxmode=0666,mode=0600") < 0 ||
	    mount("tmpfs", "/v/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") < 0)
		return -errno;
	return 0;
}

static int hide(const char *name)
{
	if (access(name, F_OK) < 0)
		return 0;
	return mount("/v/.vitrine/file", name, NULL, MS_BIND, NULL) < 0 ? -errno : 0;
}

int vm_view_enter(void)
{
	int r;

	if (mkdir("/v", 0755) < 0 ||
	    mount("view", "/v", "9p", MS_NOSUID | MS_NODEV,
		  "trans=virtio,version=9p2000.L,msize=262144,cache=mmap") < 0 ||
	    mount("proc", "/v/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return -errno;
	r = hide("/v/proc/keys");
	if (r == 0)
		r = hide("/v/proc/key-users");
	if (r == 0)
		r = make_dev();
	if (r < 0)
		return r;
	if (chdir("/v") < 0 || mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 ||
	    chdir("/") < 0)
		return -errno;
	return sethostname("vitrine", 7) < 0 ? -errno : 0;
}
