/* SPDX-License-Identifier: Apache-2.0 */
/* base/raw.h - a system call that touches nothing but registers
 *
 * For a process that shares our memory: libc would write its errno over ours. Returns what the kernel returns, -errno
 * included.
 */
#ifndef VITRINE_BASE_RAW_H
#define VITRINE_BASE_RAW_H

static inline long raw_call5(long number, long a, long b, long c, long d, long e)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return ret;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4)
			 : "memory");
	return x0;
#else
#error "base/raw.h: no system calls for this processor yet"
#endif
}

static inline long raw_call(long number, long a, long b, long c, long d)
{
	return raw_call5(number, a, b, c, d, 0);
}

#endif
