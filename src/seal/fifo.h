/* SPDX-License-Identifier: Apache-2.0 */
/* seal/fifo.h - bytes in order, with a fixed room: who fills it asks for room first, which is the back-pressure */
#ifndef VITRINE_SEAL_FIFO_H
#define VITRINE_SEAL_FIFO_H

#include "base/str.h"

struct fifo {
	char *p;
	size_t at, n, cap, max;
};

#define FIFO(room) ((struct fifo){ .max = (room) })

void fifo_done(struct fifo *f); /* wipes: what went through may have been a secret */
size_t fifo_room(const struct fifo *f);
struct str fifo_view(const struct fifo *f);
void fifo_add(struct fifo *f, const void *p, size_t n); /* n must fit */
/* As above, growing beyond the room: for our own bounded messages. */
void fifo_force(struct fifo *f, const void *p, size_t n);
void fifo_take(struct fifo *f, size_t n);
/* A place for up to *n more bytes, and then how many were put there. */
char *fifo_space(struct fifo *f, size_t *ret_n);
void fifo_filled(struct fifo *f, size_t n);

#endif
