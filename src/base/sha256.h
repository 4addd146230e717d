/* SPDX-License-Identifier: Apache-2.0 */
/* base/sha256.h - SHA-256 (FIPS 180-4) of bytes in memory
 *
 * For pins of trusted project files on the start path, which links no OpenSSL. Not made for secrets: no claim about
 * timing.
 */
#ifndef VITRINE_BASE_SHA256_H
#define VITRINE_BASE_SHA256_H

#include "base/base.h"

#define SHA256_BYTES 32
#define SHA256_HEX_BYTES 65 /* with the NUL */

void sha256(const void *p, size_t n, uint8_t ret[static SHA256_BYTES]);
/* Many inputs will follow: worth asking the processor what it can do. */
void sha256_expect_much(void);

/* The same without the processor's own instructions: what a test compares with. */
void sha256_plain(const void *p, size_t n, uint8_t ret[static SHA256_BYTES]);
void sha256_hex(const void *p, size_t n, char ret[static SHA256_HEX_BYTES]);

#endif
