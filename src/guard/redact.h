/* SPDX-License-Identifier: Apache-2.0 */
/* guard/redact.h - a command for the record, without the secrets in it */
#ifndef VITRINE_GUARD_REDACT_H
#define VITRINE_GUARD_REDACT_H

#include "base/buf.h"

/* Adds text to out with everything that looks like a secret replaced by "***". At most `max` bytes of it are looked
 * at; what is cut off is marked. */
void redact(const char *text, size_t max, struct buf *out);

#endif
