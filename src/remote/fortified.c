/* SPDX-License-Identifier: Apache-2.0 */
/* remote/fortified.c - two names that a library made for glibc asks for, where we link musl (tools/musl)
 *
 * They are printf's with a word about the room there is. The library's own sizes are the same word; here they are held
 * against each other, and what glibc ends a program for ends it here too.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/base.h"

int __fprintf_chk(FILE *f, int level, const char *fmt, ...) PRINTF(3, 4);
int __vsnprintf_chk(char *p, size_t n, int level, size_t room, const char *fmt, va_list ap)
	PRINTF(5, 0);

int __fprintf_chk(FILE *f, int level, const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = vfprintf(f, fmt, ap);
	va_end(ap);
	return r;
}

int __vsnprintf_chk(char *p, size_t n, int level, size_t room, const char *fmt, va_list ap)
{
	bug_on(n > room);
	return vsnprintf(p, n, fmt, ap);
}
