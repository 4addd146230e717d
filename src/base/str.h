/* SPDX-License-Identifier: Apache-2.0 */
/* base/str.h - a borrowed view of bytes: not NUL-ended, not owned, valid as long as what it looks at */
#ifndef VITRINE_BASE_STR_H
#define VITRINE_BASE_STR_H

#include <strings.h>

#include "base/base.h"

struct str {
	const char *p;
	size_t n;
};

#define STR(literal) ((struct str){ .p = (literal), .n = sizeof(literal) - 1 })

static inline struct str str_of(const char *s)
{
	return (struct str){ .p = s, .n = strlen(s) };
}

static inline bool str_is(struct str a, const char *b)
{
	size_t n = strlen(b);

	return a.n == n && (n == 0 || memcmp(a.p, b, n) == 0);
}

/* ASCII letters alike; for tokens, whose bytes have been checked. */
static inline bool str_is_nocase(struct str a, const char *b)
{
	return a.n == strlen(b) && (a.n == 0 || strncasecmp(a.p, b, a.n) == 0);
}

static inline bool str_same_nocase(struct str a, struct str b)
{
	return a.n == b.n && (a.n == 0 || strncasecmp(a.p, b.p, a.n) == 0);
}

static inline struct str str_from(struct str s, size_t at)
{
	bug_on(at > s.n);
	return (struct str){ .p = s.p + at, .n = s.n - at };
}

static inline struct str str_first(struct str s, size_t n)
{
	return (struct str){ .p = s.p, .n = n < s.n ? n : s.n };
}

/* Index of c, or s.n. */
static inline size_t str_find(struct str s, char c)
{
	const char *at = s.n ? memchr(s.p, c, s.n) : NULL;

	return at ? (size_t)(at - s.p) : s.n;
}

static inline bool str_has_prefix(struct str s, const char *prefix)
{
	size_t n = strlen(prefix);

	return s.n >= n && memcmp(s.p, prefix, n) == 0;
}

/* Without spaces and tabs at both ends. */
static inline struct str str_trim(struct str s)
{
	while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\t'))
		s = str_from(s, 1);
	while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
		s.n--;
	return s;
}

#endif
