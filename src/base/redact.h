/* SPDX-License-Identifier: Apache-2.0 */
/* base/redact.h - a text without the secrets in it: a command for the record, a git config to be shown inside */
#ifndef VITRINE_BASE_REDACT_H
#define VITRINE_BASE_REDACT_H

#include "base/buf.h"

/* Adds text to out with everything that looks like a secret replaced by "***". At most `max` bytes of it are looked
 * at; what is cut off is marked. */
void redact(const char *text, size_t max, struct buf *out);

/* The same for all of text, with a mark of the caller's. Says whether there was a secret. */
bool redact_with(const char *text, const char *mark, struct buf *out);

/* Does a file of settings hold a secret itself? Stricter than the above: a key that is named after a secret counts only with
 * a value that is neither a variable nor a word such as "true". */
bool redact_has_token(const char *text);

#endif
