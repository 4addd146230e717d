/* SPDX-License-Identifier: Apache-2.0 */
/* engine/link/confine.c - what vitrine-link may still ask of the kernel once it reads from inside
 *
 * Reading, writing, waiting, memory, passing descriptors to the keeper and the gate, and socket pairs to pass. Nothing that
 * opens, connects, starts or signals: taken over by what it decodes, it can lie to its keeper about its own sandbox
 * and nothing else.
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/sabotage.h"
#include "engine/link/outer.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "say which audit architecture this is"
#endif

static const int allowed[] = {
	SYS_read,          SYS_write,        SYS_close,
	SYS_ppoll,         SYS_recvmsg,      SYS_sendmsg,
	SYS_mmap,          SYS_munmap,       SYS_mremap,
	SYS_brk,           SYS_madvise,      SYS_fcntl,
	SYS_fstat,         SYS_newfstatat,   SYS_pread64,
	SYS_clock_gettime, SYS_socketpair,   SYS_exit_group,
	SYS_exit,          SYS_rt_sigreturn, SYS_restart_syscall,
	SYS_getpid,        SYS_futex,        SYS_shutdown,
#ifdef SYS_poll
	SYS_poll,
#endif
};

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)

int link_confine(void)
{
	struct sock_filter prog[8 + 2 * ARRAY_LEN(allowed)];
	struct sock_fprog f = { .filter = prog };
	unsigned short n = 0;

	if (sabotaged("link") || sabotaged("link-gate"))
		return 0;
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
	(void)setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
	(void)prctl(PR_SET_DUMPABLE, 0);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &f) < 0 ? -errno : 0;
}
