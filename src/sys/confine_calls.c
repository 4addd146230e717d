/* SPDX-License-Identifier: Apache-2.0 */
/* sys/confine_calls.c - see confine.h: a list of system calls, and the end of the process for any other */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "sys/confine.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "say which audit architecture this is"
#endif

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)

int confine_calls(const int *allowed, size_t n_allowed)
{
	struct sock_filter prog[8 + 2 * CONFINE_CALLS];
	struct sock_fprog f = { .filter = prog };
	unsigned short n = 0;

	bug_on(n_allowed > CONFINE_CALLS);
	prog[n++] = (struct sock_filter)LOAD(arch);
	prog[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
	prog[n++] = (struct sock_filter)RETURN(SECCOMP_RET_KILL_PROCESS);
	prog[n++] = (struct sock_filter)LOAD(nr);
	for (size_t i = 0; i < n_allowed; i++) {
		prog[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							 (unsigned)allowed[i], 0, 1);
		prog[n++] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
	}
	prog[n++] = (struct sock_filter)RETURN(SECCOMP_RET_KILL_PROCESS);
	f.len = n;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &f) < 0 ? -errno : 0;
}
