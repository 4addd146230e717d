/* SPDX-License-Identifier: Apache-2.0 */
/* sys/confine_put.h - a short system call filter, word by word; for confine.c and confine_program.c
 *
 * Nothing is allocated: filters are put on between fork and exec too.
 */
#ifndef SYS_CONFINE_PUT_H
#define SYS_CONFINE_PUT_H

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include "base/base.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "no calling convention is known for this machine"
#endif

struct prog {
	struct sock_filter v[160];
	unsigned short n;
};

static inline void put(struct prog *p, uint16_t code, uint8_t jt, uint8_t jf, uint32_t k)
{
	bug_on(p->n == ARRAY_LEN(p->v));
	p->v[p->n++] = (struct sock_filter){ code, jt, jf, k };
}

static inline void put_load(struct prog *p, size_t at)
{
	put(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)at);
}

static inline void put_return(struct prog *p, uint32_t action)
{
	put(p, BPF_RET | BPF_K, 0, 0, action);
}

#define DENY (SECCOMP_RET_ERRNO | EPERM)

static inline int put_on(struct prog *p)
{
	struct sock_fprog prog = { .len = p->n, .filter = p->v };

	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0 ? -errno : 0;
}

#endif
