/* SPDX-License-Identifier: Apache-2.0 */
/* seal/fifo.c - see fifo.h */
#include "seal/fifo.h"

void fifo_done(struct fifo *f)
{
	if (f->p)
		explicit_bzero(f->p, f->cap);
	free(f->p);
	*f = (struct fifo){ .max = f->max };
}

size_t fifo_room(const struct fifo *f)
{
	return f->n < f->max ? f->max - f->n : 0;
}

struct str fifo_view(const struct fifo *f)
{
	/* One that never held anything has no memory to point into. */
	return (struct str){ .p = f->p ? f->p + f->at : "", .n = f->n };
}

/* Room for `more` bytes behind the others, by moving them to the front or to a larger place. */
static void make_place(struct fifo *f, size_t more)
{
	char *old = f->p;
	size_t cap = f->cap;

	if (f->at + f->n + more <= f->cap)
		return;
	if (f->n + more > f->cap) {
		f->cap = f->n + more < 4096 ? 4096 : 2 * (f->n + more);
		f->p = mem_new(f->cap, 1);
		if (f->n > 0)
			memcpy(f->p, old + f->at, f->n);
		if (old)
			explicit_bzero(old, cap);
		free(old);
	} else {
		memmove(f->p, f->p + f->at, f->n);
	}
	f->at = 0;
}

void fifo_force(struct fifo *f, const void *p, size_t n)
{
	if (n == 0)
		return;
	make_place(f, n);
	memcpy(f->p + f->at + f->n, p, n);
	f->n += n;
}

void fifo_add(struct fifo *f, const void *p, size_t n)
{
	bug_on(n > fifo_room(f));
	fifo_force(f, p, n);
}

void fifo_take(struct fifo *f, size_t n)
{
	bug_on(n > f->n);
	f->at += n;
	f->n -= n;
	if (f->n == 0)
		f->at = 0;
}

char *fifo_space(struct fifo *f, size_t *ret_n)
{
	size_t n = fifo_room(f);

	if (n > 16384)
		n = 16384;
	make_place(f, n);
	*ret_n = n;
	return f->p + f->at + f->n;
}

void fifo_filled(struct fifo *f, size_t n)
{
	f->n += n;
}
