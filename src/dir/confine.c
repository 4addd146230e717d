/* SPDX-License-Identifier: Apache-2.0 */
/* dir/confine.c - what vitrine-dir may still ask of the kernel once it reads requests
 *
 * Landlock: this directory and no other file. System calls: those that serve files, reading, writing and memory;
 * nothing that makes a socket, a process or a mount. No capability, also where root started it: what root owns is
 * still root's, what belongs to others is not.
 */
#include <linux/capability.h>
#include <sys/syscall.h>

#include "base/sabotage.h"
#include "dir/serve.h"
#include "sys/confine.h"

static const int allowed[] = {
	SYS_read,         SYS_write,           SYS_close,         SYS_sendmsg,  SYS_mmap,
	SYS_munmap,       SYS_mremap,          SYS_brk,           SYS_madvise,  SYS_fcntl,
	SYS_fstat,        SYS_newfstatat,      SYS_pread64,       SYS_pwrite64, SYS_openat,
	SYS_openat2,      SYS_lseek,           SYS_getdents64,    SYS_mkdirat,  SYS_unlinkat,
	SYS_renameat2,    SYS_readlinkat,      SYS_fstatfs,       SYS_fchmod,   SYS_ftruncate,
	SYS_utimensat,    SYS_fsync,           SYS_fdatasync,     SYS_exit,     SYS_exit_group,
	SYS_rt_sigreturn, SYS_restart_syscall, SYS_clock_gettime, SYS_getpid,   SYS_futex,
	SYS_statx,        SYS_getrandom,       SYS_sendto,
#ifdef SYS_renameat
	SYS_renameat,
#endif
#ifdef SYS_readlink
	SYS_readlink,
#endif
#ifdef SYS_unlink
	SYS_unlink,
#endif
};

static int drop_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 }, { 0 } };

	return syscall(SYS_capset, &head, none) < 0 ? -errno : 0;
}

int dir_confine(int root, struct err *e)
{
	char path[40];
	const char *const none[] = { NULL }, *const tree[] = { path, NULL };
	struct confine_program c = {
		.read = none, .write = tree, .net = CONFINE_FREE, .is_alone = true
	};
	int r = drop_capabilities();

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", root);
	if (r < 0)
		return err_set(e, ERR_SYSTEM, -r, "capabilities: %s", strerrordesc_np(-r));
	if (sabotaged("dir-confine"))
		return 0;
	r = confine_program(&c, e);
	if (r < 0)
		return r;
	r = confine_calls(allowed, ARRAY_LEN(allowed));
	return r < 0 ? err_set(e, ERR_SYSTEM, -r, "system call filter: %s", strerrordesc_np(-r))
		     : 0;
}
