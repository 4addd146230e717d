/* SPDX-License-Identifier: Apache-2.0 */
/* base/err.c - filling in a struct err
 *
 * Nothing here allocates, so it may be used between clone and exec.
 */
#include <stdarg.h>

#include "base/err.h"

static const char *const kind_names[ERR_KIND_COUNT_] = {
	[ERR_NONE] = "none",
	[ERR_USAGE] = "usage",
	[ERR_CONFIG] = "config",
	[ERR_DENIED] = "denied",
	[ERR_UNSUPPORTED] = "unsupported",
	[ERR_NOTFOUND] = "notfound",
	[ERR_CONFLICT] = "conflict",
	[ERR_SYSTEM] = "system",
	[ERR_BUG] = "bug",
};

const char *err_kind_name(enum err_kind kind)
{
	bug_on(kind >= ERR_KIND_COUNT_);
	return kind_names[kind];
}

int err_exit_code(const struct err *e)
{
	return e->kind == ERR_USAGE || e->kind == ERR_CONFIG ? 2 : 125;
}

void err_put_(struct err *e, enum err_kind kind, int num, const char *fmt, ...)
{
	va_list ap;

	e->kind = kind;
	e->num = num;
	va_start(ap, fmt);
	/* A message that is too long is cut; the kind and number are what code looks at. */
	(void)vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
}

void err_put_sys_(struct err *e, int num, const char *fmt, ...)
{
	va_list ap;
	int n;

	e->kind = ERR_SYSTEM;
	e->num = num;
	va_start(ap, fmt);
	n = vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(e->msg))
		(void)snprintf(e->msg + n, sizeof(e->msg) - (size_t)n, ": %s",
			       strerrordesc_np(num) ? strerrordesc_np(num) : "unknown error");
}

void err_prefix_(struct err *e, const char *fmt, ...)
{
	char old[sizeof(e->msg)];
	va_list ap;
	int n;

	memcpy(old, e->msg, sizeof(old));
	va_start(ap, fmt);
	n = vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(e->msg))
		(void)snprintf(e->msg + n, sizeof(e->msg) - (size_t)n, ": %s", old);
}
