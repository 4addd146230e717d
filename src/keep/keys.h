/* SPDX-License-Identifier: Apache-2.0 */
/* keep/keys.h - the keys that detach a terminal from its session */
#ifndef VITRINE_KEEP_KEYS_H
#define VITRINE_KEEP_KEYS_H

#include "base/err.h"
#include "keep/keep.h"

#define KEYS_HELD 256 /* typed bytes that may turn out to be the sequence */

struct keys {
	uint8_t seq[KEEP_KEYS];
	size_t n;             /* 0: nothing detaches */
	size_t at;            /* so many of them have come */
	char held[KEYS_HELD]; /* as they were typed */
	size_t n_held;
};

void keys_set(struct keys *k, const uint8_t seq[KEEP_KEYS]);

/* "ctrl-p,ctrl-q", "a", "ctrl-@" is not one: letters, digits and ctrl- with a letter or one of [\]^_ . "none": no keys. */
int keys_parse(const char *text, uint8_t ret[KEEP_KEYS], struct err *e);

/* Looks at typed bytes, as plain ones or in the encodings of kitty and xterm (CSI u, modifyOtherKeys); may hold back the
 * beginning of the sequence and give it later, so `out` needs room for KEYS_HELD more. True: the sequence is complete; nothing behind it counts. */
bool keys_feed(struct keys *k, const char *in, size_t n, char *out, size_t *ret_n);

/* This key was pressed, plain or in one of those encodings; answers of a terminal are no keys. */
bool keys_has(const char *p, size_t n, uint8_t key);

#endif
