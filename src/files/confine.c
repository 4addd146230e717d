/* SPDX-License-Identifier: Apache-2.0 */
/* files/confine.c - what vitrine-files may still ask of the kernel once it reads what a guest says
 *
 * Landlock: this tree and no other. System calls: those that serve files, reading, writing, waiting and memory; nothing that
 * makes a socket, a process or a mount.
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/sabotage.h"
#include "files/serve.h"
#include "sys/confine.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "say which audit architecture this is"
#endif

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

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)

static int filter(void)
{
	struct sock_filter prog[8 + 2 * ARRAY_LEN(allowed)];
	struct sock_fprog f = { .filter = prog };
	unsigned short n = 0;

	prog[n++] = (struct sock_filter)LOAD(arch);
	prog[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
	prog[n++] = (struct sock_filter)RETURN(SECCOMP_RET_KILL_PROCESS);
	prog[n++] = (struct sock_filter)LOAD(nr);
	for (size_t i = 0; i < ARRAY_LEN(allowed); i++) {
		prog[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							 (unsigned)allowed[i], 0, 1);
		prog[n++] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
	}
	prog[n++] = (struct sock_filter)RETURN(SECCOMP_RET_KILL_PROCESS);
	f.len = n;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &f) < 0 ? -errno : 0;
}

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
	r = filter();
	return r < 0 ? err_set(e, ERR_SYSTEM, -r, "system call filter: %s", strerrordesc_np(-r))
		     : 0;
}
