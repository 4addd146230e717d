/* SPDX-License-Identifier: Apache-2.0 */
/* base/base64.h - RFC 4648, the plain alphabet with padding; strict when reading */
#ifndef VITRINE_BASE_BASE64_H
#define VITRINE_BASE_BASE64_H

#include "base/buf.h"
#include "base/str.h"

void base64_put(struct buf *b, struct str data);
/* false when it is not exactly what base64_put() would have written. */
bool base64_read(struct str text, struct buf *b);

#endif
