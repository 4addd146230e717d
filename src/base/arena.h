/* SPDX-License-Identifier: Apache-2.0 */
/* base/arena.h - memory for one thing: taken in pieces, given back at once
 *
 * A text is parsed or a command judged and then forgotten as a whole, so nothing in it is freed by itself, and nothing
 * leaks on an error. There may be a ceiling, far above what the largest accepted text needs: going over it is remembered,
 * and the caller, who looks once at the end, refuses the text.
 */
#ifndef VITRINE_BASE_ARENA_H
#define VITRINE_BASE_ARENA_H

#include "base/base.h"

struct arena {
	struct arena_block *blocks;
	size_t total, max; /* max 0: no ceiling */
	bool is_over;
};

#define ARENA(ceiling) ((struct arena){ .max = (ceiling) })

/* Zeroed and aligned; never NULL. */
void *arena_take(struct arena *a, size_t n);
char *arena_strn(struct arena *a, const char *s, size_t n);
char *arena_fmt(struct arena *a, const char *fmt, ...) PRINTF(2, 3);
void arena_done(struct arena *a);

#define arena_new(a, type) ((type *)arena_take((a), sizeof(type)))

/* Text that grows in an arena, always NUL-ended. */
struct text {
	struct arena *mem;
	char *p;
	size_t n, cap;
};

void text_putc(struct text *t, char c);
void text_add(struct text *t, const char *s, size_t n);

#endif
