/* SPDX-License-Identifier: Apache-2.0 */
/* engine/args.c - see args.h */
#include <stdarg.h>

#include "engine/args.h"

static void take_arg(struct args *a, char *text)
{
	if (a->n + 2 > a->cap) {
		a->cap = a->cap ? a->cap * 2 : 64;
		a->v = mem_grow(a->v, a->cap, sizeof(*a->v));
	}
	a->v[a->n++] = text;
	a->v[a->n] = NULL;
}

void args_add(struct args *a, const char *text)
{
	take_arg(a, mem_str(text));
}

void args_addf(struct args *a, const char *fmt, ...)
{
	va_list ap;
	char *text = NULL;

	va_start(ap, fmt);
	bug_on(vasprintf(&text, fmt, ap) < 0);
	va_end(ap);
	take_arg(a, text);
}

void args_put(struct args *a, ...)
{
	const char *text;
	va_list ap;

	va_start(ap, a);
	while ((text = va_arg(ap, const char *)) != NULL)
		args_add(a, text);
	va_end(ap);
}

void args_done(struct args *a)
{
	for (size_t i = 0; i < a->n; i++)
		free(a->v[i]);
	free(a->v);
	*a = (struct args){ 0 };
}

void args_print(const struct args *a, struct buf *out)
{
	for (size_t i = 0; i < a->n; i++) {
		bool is_new = i > 0 && a->v[i][0] == '-';

		buf_puts(out, i == 0 ? "" : is_new ? "\n  " : " ");
		buf_esc(out, a->v[i], strlen(a->v[i]));
	}
	buf_putc(out, '\n');
}
