/* SPDX-License-Identifier: Apache-2.0 */
/* core/shown.h - what a person was shown of the changes that wait, so that nothing else is taken over
 *
 * A change is known by one hash over its path and what would be there afterwards: type, mode, content or target.
 * `sandboxes/NAME/ws.shown` holds those of the changes that `diff` showed last. A token is a hash over a set of them.
 */
#ifndef VITRINE_CORE_SHOWN_H
#define VITRINE_CORE_SHOWN_H

#include "tree/tree.h"

#define SHOWN_TOKEN_BYTES 33 /* 32 hex digits and a NUL */

struct shown {
	uint8_t (*v)[SHA256_BYTES]; /* sorted */
	size_t n, cap;
};

/* The changes between two indexes, hashed both, below `only` (NULL: all). */
void shown_of(const struct tree_index *before, const struct tree_index *after, char *const *only,
	      struct shown *ret);
void shown_join(struct shown *s, const struct shown *more);
bool shown_has(const struct shown *s, const struct change *c);
void shown_token(const struct shown *s, char ret[static SHOWN_TOKEN_BYTES]);
void shown_done(struct shown *s);

/* Below the folder of a sandbox. What is damaged or not there was not shown. */
void shown_load(int dir, struct shown *ret);
int shown_save(int dir, const struct shown *s, struct err *e);

#endif
