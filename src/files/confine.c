/* SPDX-License-Identifier: Apache-2.0 */
/* files/confine.c - what vitrine-files may still ask of the kernel once it reads what a guest says
 *
 * Landlock: this tree and no other. System calls: those that serve files, reading, writing, waiting and memory; nothing that
 * makes a socket, a process or a mount.
 */
#include <sys/syscall.h>

#include "base/sabotage.h"
#include "files/serve.h"
#include "sys/confine.h"

static const int allowed[] = {
	SYS_read,      SYS_write,      SYS_close,        SYS_ppoll,           SYS_recvmsg,
	SYS_sendmsg,   SYS_mmap,       SYS_munmap,       SYS_mremap,          SYS_brk,
	SYS_madvise,   SYS_fcntl,      SYS_fstat,        SYS_newfstatat,      SYS_pread64,
	SYS_pwrite64,  SYS_openat,     SYS_openat2,      SYS_lseek,           SYS_getdents64,
	SYS_mkdirat,   SYS_mknodat,    SYS_symlinkat,    SYS_linkat,          SYS_unlinkat,
	SYS_renameat2, SYS_readlinkat, SYS_fstatfs,      SYS_fchownat,        SYS_fchmodat,
	SYS_truncate,  SYS_ftruncate,  SYS_utimensat,    SYS_fsync,           SYS_fdatasync,
	SYS_exit,      SYS_exit_group, SYS_rt_sigreturn, SYS_restart_syscall, SYS_clock_gettime,
	SYS_getpid,    SYS_futex,      SYS_statx,
#ifdef SYS_open
	SYS_open,
#endif
#ifdef SYS_poll
	SYS_poll,
#endif
#ifdef SYS_readlink
	SYS_readlink,
#endif
#ifdef SYS_renameat
	SYS_renameat,
#endif
};

int files_confine(const char *root, struct err *e)
{
	const char *const none[] = { NULL }, *const tree[] = { root, NULL };
	struct confine_program c = { .read = none, .write = tree, .net = CONFINE_OFFLINE };
	int r;

	if (sabotaged("files"))
		return 0;
	r = confine_program(&c, e);
	if (r < 0)
		return r;
	r = confine_calls(allowed, ARRAY_LEN(allowed));
	return r < 0 ? err_set(e, ERR_SYSTEM, -r, "system call filter: %s", strerrordesc_np(-r))
		     : 0;
}
