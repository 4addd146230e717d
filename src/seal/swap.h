/* SPDX-License-Identifier: Apache-2.0 */
/* seal/swap.h - placeholders in a request's body become values, across any cut and of any length
 *
 * A value may have another length than its placeholder: it changes while the sandbox runs, and a short value has a longer
 * placeholder from the start. So the length of what goes out is known only behind the body; swap_growth() says by how much it
 * differs from what came so far. Half of a placeholder is none and goes out as it is.
 */
#ifndef VITRINE_SEAL_SWAP_H
#define VITRINE_SEAL_SWAP_H

#include "base/str.h"

/* By so much the values may make one body longer. Without a bound, a few kilobytes from inside that hold nothing but a short
 * placeholder of a long value would fill the memory. */
#define SWAP_GROWTH_MAX ((int64_t)256 * 1024)

struct swap;

struct swap *swap_new(void);
void swap_free(struct swap *s); /* wipes */
bool swap_is_empty(const struct swap *s);

/* `word` becomes `by`, which is a value of the secret with this number (below 64). One that is there already stays. No word stands
 * within another: placeholders are drawn by lot. */
void swap_add(struct swap *s, struct str word, struct str by, size_t secret);
/* Has one of the words another length than what it becomes? */
bool swap_resizes(const struct swap *s);

/* n more bytes; *ret is what may go on: in p or in the swap, valid until the next call and while p stands. -EMSGSIZE: the body
 * has grown by more than SWAP_GROWTH_MAX. */
int swap_feed(struct swap *s, const char *p, size_t n, struct str *ret);
/* The end: what was still held back. */
void swap_end(struct swap *s, struct str *ret);

/* Bytes that went out or are held, less those that came. */
int64_t swap_growth(const struct swap *s);
/* The secrets whose values went out. */
uint64_t swap_secrets(const struct swap *s);

#endif
