/* SPDX-License-Identifier: Apache-2.0 */
/* keep/jks.h - certificates as Java's own store, which knows no PEM
 *
 * The oldest of its formats, because every Java reads it and it needs no cryptography: trust stores are read without
 * their password, and then the digest at the end is not looked at.
 */
#ifndef VITRINE_KEEP_JKS_H
#define VITRINE_KEEP_JKS_H

#include "base/buf.h"
#include "base/str.h"

/* Every certificate of a PEM bundle; what is not one is left out. */
void jks_put(struct buf *out, struct str pem);

#endif
