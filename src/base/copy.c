/* SPDX-License-Identifier: Apache-2.0 */
/* base/copy.c - memcpy, memmove and memset for a program linked with musl
 *
 * musl's use the string instructions, whose start-up costs more than our typical copy of twenty bytes and is worse
 * still in a virtual machine: a quarter of the time to plan a start went there. These move words: small sizes by two
 * overlapping loads, the rest in blocks of 32. Plain C; the compiler must not turn the loops into calls of themselves.
 */
#include <stddef.h>
#include <stdint.h> /* tells which library it is */

#ifndef __GLIBC__

typedef uint64_t __attribute__((may_alias, aligned(1))) word;
typedef uint32_t __attribute__((may_alias, aligned(1))) half;

void *memcpy(void *restrict to, const void *restrict from, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *memset(void *to, int c, size_t n);

/* Up to 16 bytes: all loads come before all stores, so overlap does not matter. */
#define NO_CALLS __attribute__((optimize("no-tree-loop-distribute-patterns")))

static inline __attribute__((always_inline)) void move_small(unsigned char *d,
							     const unsigned char *s, size_t n)
{
	if (n >= 8) {
		uint64_t a = *(const word *)s, b = *(const word *)(s + n - 8);

		*(word *)d = a;
		*(word *)(d + n - 8) = b;
	} else if (n >= 4) {
		uint32_t a = *(const half *)s, b = *(const half *)(s + n - 4);

		*(half *)d = a;
		*(half *)(d + n - 4) = b;
	} else if (n > 0) {
		unsigned char a = s[0], b = s[n / 2], c = s[n - 1];

		d[0] = a;
		d[n / 2] = b;
		d[n - 1] = c;
	}
}

static inline __attribute__((always_inline)) void move_block(unsigned char *d,
							     const unsigned char *s)
{
	uint64_t a = ((const word *)s)[0], b = ((const word *)s)[1];
	uint64_t c = ((const word *)s)[2], e = ((const word *)s)[3];

	((word *)d)[0] = a;
	((word *)d)[1] = b;
	((word *)d)[2] = c;
	((word *)d)[3] = e;
}

/* Both names share this body: a memcpy that calls memmove would be turned into one that calls itself. */
static inline __attribute__((always_inline)) void *move(void *to, const void *from, size_t n)
{
	unsigned char *d = to;
	const unsigned char *s = from;

	if (n <= 16) {
		move_small(d, s, n);
		return to;
	}
	if ((uintptr_t)d - (uintptr_t)s >= n) {
		for (; n >= 32; n -= 32, d += 32, s += 32)
			move_block(d, s);
		for (; n > 16; n -= 8, d += 8, s += 8)
			*(word *)d = *(const word *)s;
		move_small(d, s, n);
		return to;
	}
	for (; n >= 32; n -= 32)
		move_block(d + n - 32, s + n - 32);
	for (; n > 16; n -= 8)
		*(word *)(d + n - 8) = *(const word *)(s + n - 8);
	move_small(d, s, n);
	return to;
}

NO_CALLS void *memmove(void *to, const void *from, size_t n)
{
	return move(to, from, n);
}

NO_CALLS void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
	return move(to, from, n);
}

NO_CALLS void *memset(void *to, int c, size_t n)
{
	unsigned char *d = to;
	uint64_t v = (unsigned char)c * 0x0101010101010101ULL;

	for (; n >= 8; n -= 8, d += 8)
		*(word *)d = v;
	for (; n > 0; n--)
		*d++ = (unsigned char)c;
	return to;
}

#else
typedef int copy_is_the_library_s;
#endif
