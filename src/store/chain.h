/* SPDX-License-Identifier: Apache-2.0 */
/* store/chain.h - each event's hash covers the one before it; private to store/
 *
 * Pure. The first link names run and session, so that chains cannot be exchanged; each further one covers its place,
 * so that none can be moved.
 */
#ifndef VITRINE_STORE_CHAIN_H
#define VITRINE_STORE_CHAIN_H

#include "base/sha256.h"

#define CHAIN_NO_SESSION ((int64_t)-1)

struct chain {
	uint64_t n; /* events so far */
	uint8_t head[SHA256_BYTES];
};

void chain_init(struct chain *c, const char *run, int64_t session);
void chain_add(struct chain *c, const void *frame, size_t n);
void chain_hex(const uint8_t hash[static SHA256_BYTES], char ret[static SHA256_HEX_BYTES]);

#endif
