/* SPDX-License-Identifier: Apache-2.0 */
/* keep/keys.h - the keys that detach a terminal from its session */
#ifndef VITRINE_KEEP_KEYS_H
#define VITRINE_KEEP_KEYS_H

#include "base/err.h"
#include "keep/keep.h"

struct keys {
	uint8_t seq[KEEP_KEYS];
	size_t n;  /* 0: nothing detaches */
	size_t at; /* so many of them have come */
};

void keys_set(struct keys *k, const uint8_t seq[KEEP_KEYS]);

/* "ctrl-p,ctrl-q", "a", "ctrl-@" is not one: letters, digits and ctrl- with a letter or one of [\]^_ . "none": no keys. */
int keys_parse(const char *text, uint8_t ret[KEEP_KEYS], struct err *e);

/* Looks at typed bytes; may hold back the beginning of the sequence and give it later, so `out` needs room for
 * KEEP_KEYS more. True: the sequence is complete; nothing behind it counts. */
bool keys_feed(struct keys *k, const char *in, size_t n, char *out, size_t *ret_n);

#endif
