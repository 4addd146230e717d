/* SPDX-License-Identifier: Apache-2.0 */
/* base/libc.h - what glibc has and musl (1.2.3) has not: names for system calls, nothing more
 *
 * The program people start is linked statically with musl where it is installed: glibc asks the processor about its
 * caches before main, which a virtual machine answers slowly (0.5 ms here, more than all of our own set-up code).
 * Tests with sanitizers use glibc.
 */
#ifndef VITRINE_BASE_LIBC_H
#define VITRINE_BASE_LIBC_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Is this descriptor the root of a mount? (statx, of which musl knows nothing: its second word holds the answer.) */
static inline int fd_is_mount_root(int fd)
{
	uint64_t stx[32] = { 0 };

	return syscall(SYS_statx, fd, "", AT_EMPTY_PATH, 0U, stx) == 0 && (stx[1] & 0x2000) != 0;
}

#ifndef __GLIBC__

static inline const char *strerrordesc_np(int num)
{
	return strerror(num);
}

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#define RENAME_EXCHANGE 2
static inline int renameat2(int from_dir, const char *from, int to_dir, const char *to,
			    unsigned flags)
{
	return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}
#endif

#ifndef OPEN_TREE_CLONE
#define OPEN_TREE_CLONE 1
#define OPEN_TREE_CLOEXEC O_CLOEXEC
#define MOVE_MOUNT_F_EMPTY_PATH 0x4
#define MOVE_MOUNT_T_EMPTY_PATH 0x40
#define FSOPEN_CLOEXEC 1
#define FSMOUNT_CLOEXEC 1
#define FSCONFIG_SET_FLAG 0
#define FSCONFIG_SET_STRING 1
#define FSCONFIG_CMD_CREATE 6
#define MOUNT_ATTR_RDONLY 0x1
#define MOUNT_ATTR_NOSUID 0x2
#define MOUNT_ATTR_NODEV 0x4
#define MOUNT_ATTR_NOEXEC 0x8
#define MOUNT_ATTR_IDMAP 0x100000
#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

struct mount_attr {
	uint64_t attr_set, attr_clr, propagation, userns_fd;
};

static inline int open_tree(int dir, const char *path, unsigned flags)
{
	return (int)syscall(SYS_open_tree, dir, path, flags);
}

static inline int move_mount(int from, const char *from_path, int to, const char *to_path,
			     unsigned flags)
{
	return (int)syscall(SYS_move_mount, from, from_path, to, to_path, flags);
}

static inline int fsopen(const char *name, unsigned flags)
{
	return (int)syscall(SYS_fsopen, name, flags);
}

static inline int fsconfig(int fd, unsigned cmd, const char *key, const void *value, int aux)
{
	return (int)syscall(SYS_fsconfig, fd, cmd, key, value, aux);
}

static inline int fsmount(int fd, unsigned flags, unsigned attrs)
{
	return (int)syscall(SYS_fsmount, fd, flags, attrs);
}

static inline int mount_setattr(int dir, const char *path, unsigned flags, struct mount_attr *attr,
				size_t size)
{
	return (int)syscall(SYS_mount_setattr, dir, path, flags, attr, size);
}
#endif

#endif /* __GLIBC__ */

#endif
