/* SPDX-License-Identifier: Apache-2.0 */
/* base/base.h - the handful of words every file uses: ownership, sizes, bugs
 *
 * A variable declared with one of the attributes below is released on every way out of its scope; success
 * hands it on with take() or take_fd(). FD_NONE is -EBADF, so that a forgotten descriptor returned as a
 * result reads as the error it is.
 */
#ifndef VITRINE_BASE_BASE_H
#define VITRINE_BASE_BASE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/libc.h"

#define KIB ((uint64_t)1024)
#define MIB (KIB * 1024)
#define GIB (MIB * 1024)
#define TIB (GIB * 1024)
#define NS_PER_SEC ((uint64_t)1000000000)
#define NS_PER_MS ((uint64_t)1000000)

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define BIT(n) (1U << (n))
#define BIT64(n) (1ULL << (n))
#define PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define UNUSED __attribute__((unused))

/* Ownership. */
#define _cleanup_(fn) __attribute__((cleanup(fn)))
#define _free_ _cleanup_(free_ptr_)
#define _close_ _cleanup_(close_ptr_)

#define FD_NONE (-EBADF)

#define take(p)                                                                                    \
	({                                                                                         \
		__typeof__(p) *take_p_ = &(p);                                                     \
		__typeof__(p) take_v_ = *take_p_;                                                  \
		*take_p_ = NULL;                                                                   \
		take_v_;                                                                           \
	})

static inline int take_fd_(int *fd)
{
	int v = *fd;

	*fd = FD_NONE;
	return v;
}
#define take_fd(fd) take_fd_(&(fd))

void mem_free(void *p);
#define free(p) mem_free(p) /* see mem_share() */

static inline void free_ptr_(void *p)
{
	void *v;

	/* The attribute gives us a pointer to a pointer of any type; copying is the legal way to read it. */
	memcpy(&v, p, sizeof(v));
	free(v);
}

/* Closing keeps errno, so a cleanup never hides the failure that caused it. */
static inline void fd_close(int fd)
{
	int saved = errno;

	if (fd >= 0)
		(void)close(fd);
	errno = saved;
}

static inline void close_ptr_(int *fd)
{
	fd_close(*fd);
}

/* Broken invariants stop the program, in release builds too. */
_Noreturn void bug_at(const char *file, int line, const char *what);
#define bug_on(cond)                                                                               \
	do {                                                                                       \
		if (__builtin_expect(!!(cond), 0))                                                 \
			bug_at(__FILE__, __LINE__, #cond);                                         \
	} while (0)

/* Arithmetic on values an outsider can influence. */
#define add_ok(a, b, r) (!__builtin_add_overflow((a), (b), (r)))
#define mul_ok(a, b, r) (!__builtin_mul_overflow((a), (b), (r)))

/* Memory. Running out aborts: no caller can do better, and outside sizes are bounded before they get here. */
void *mem_new(size_t n, size_t size);
void *mem_grow(void *p, size_t n, size_t size);
char *mem_str(const char *s);
char *mem_strn(const char *s, size_t n);
char *mem_fmt(const char *fmt, ...) PRINTF(1, 2);

/* From here on what mem_* gives out is seen by every child forked since, at the same address, until one of the calls
 * below. Once in a program's life. 0 or -errno. */
int mem_share(size_t size);
bool mem_share_is_whole(void);   /* nothing had to be put elsewhere since */
void mem_share_give(void *root); /* what children find; from here on nobody changes any of it */
void *mem_share_root(void);
int mem_share_take(
	void); /* a private copy of all of it: this process cannot change what others see */
int mem_share_fd(void); /* to be kept open by who will call mem_share_take() */
bool mem_is_shared(const void *p);
void mem_share_end(void); /* ordinary memory again; a child's first act */

/* Make room for one more element of *v, which has n of *cap in use. */
#define vec_reserve(v, n, cap)                                                                     \
	do {                                                                                       \
		if ((n) == (cap)) {                                                                \
			(cap) = (cap) ? (cap)*2 : 8;                                               \
			(v) = mem_grow((v), (cap), sizeof(*(v)));                                  \
		}                                                                                  \
	} while (0)

static inline bool str_eq(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

static inline bool str_starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

static inline bool str_ends(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

#include "base/banned.h"

#endif
