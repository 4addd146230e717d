/* SPDX-License-Identifier: Apache-2.0 */
/* base/mem.c - allocation that cannot fail quietly, and the end of the line for bugs */
#include <stdarg.h>

#include "base/base.h"

_Noreturn void bug_at(const char *file, int line, const char *what)
{
	(void)fprintf(stderr, "vitrine: bug: %s (%s:%d)\n", what, file, line);
	abort();
}

void *mem_new(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size ? size : 1);

	bug_on(p == NULL);
	return p;
}

void *mem_grow(void *p, size_t n, size_t size)
{
	void *q = reallocarray(p, n, size);

	bug_on(q == NULL);
	return q;
}

char *mem_str(const char *s)
{
	return mem_strn(s, strlen(s));
}

char *mem_strn(const char *s, size_t n)
{
	char *p = mem_new(n + 1, 1);

	memcpy(p, s, n);
	return p;
}

char *mem_fmt(const char *fmt, ...)
{
	va_list ap;
	char *p = NULL;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&p, fmt, ap);
	va_end(ap);
	bug_on(n < 0);
	return p;
}
