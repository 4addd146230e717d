/* SPDX-License-Identifier: Apache-2.0 */
/* base/arena.c - see arena.h */
#include "base/arena.h"

#include <stdarg.h>

/* As much again as there is: most texts are small, and one that is not takes few blocks. */
#define BLOCK_MIN ((size_t)4 * KIB)
#define BLOCK_MAX ((size_t)64 * KIB)

struct arena_block {
	struct arena_block *next;
	size_t used, cap;
	_Alignas(16) unsigned char data[];
};

static size_t block_size(const struct arena *a, size_t n)
{
	size_t usual = a->total < BLOCK_MIN ? BLOCK_MIN : a->total;

	if (usual > BLOCK_MAX)
		usual = BLOCK_MAX;
	return n > usual ? n : usual;
}

void *arena_take(struct arena *a, size_t n)
{
	struct arena_block *b = a->blocks;
	void *p;

	n = (n + 15) & ~(size_t)15;
	if (b == NULL || b->cap - b->used < n) {
		size_t cap = block_size(a, n);

		b = mem_new(1, sizeof(*b) + cap);
		b->cap = cap;
		b->next = a->blocks;
		a->blocks = b;
		a->total += cap;
		a->is_over |= a->max > 0 && a->total > a->max;
	}
	p = b->data + b->used;
	b->used += n;
	return p;
}

char *arena_strn(struct arena *a, const char *s, size_t n)
{
	char *p = arena_take(a, n + 1);

	memcpy(p, s, n);
	return p;
}

/* Nothing is cut: what a guard reads may be in the end of a text. */
char *arena_fmt(struct arena *a, const char *fmt, ...)
{
	va_list ap, again;
	char line[KIB], *p;
	int n;

	va_start(ap, fmt);
	va_copy(again, ap);
	/* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start() is in the line above */
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	bug_on(n < 0);
	p = arena_take(a, (size_t)n + 1);
	if ((size_t)n < sizeof(line))
		memcpy(p, line, (size_t)n + 1);
	else
		/* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_copy() is above */
		(void)vsnprintf(p, (size_t)n + 1, fmt, again);
	va_end(again);
	return p;
}

void arena_done(struct arena *a)
{
	while (a->blocks) {
		struct arena_block *b = a->blocks;

		a->blocks = b->next;
		free(b);
	}
	a->total = 0;
}

void text_add(struct text *t, const char *s, size_t n)
{
	if (t->n + n + 1 > t->cap) {
		size_t cap = t->cap * 2 > t->n + n + 1 ? t->cap * 2 : t->n + n + 16;
		char *p = arena_take(t->mem, cap);

		if (t->n)
			memcpy(p, t->p, t->n);
		t->p = p;
		t->cap = cap;
	}
	memcpy(t->p + t->n, s, n);
	t->n += n;
	t->p[t->n] = '\0';
}

void text_putc(struct text *t, char c)
{
	text_add(t, &c, 1);
}
