/* SPDX-License-Identifier: Apache-2.0 */
/* base/buf.h - bytes we own: growing, always NUL-ended, with a ceiling given at birth
 *
 * Going over the ceiling is remembered (is_over) and the bytes are not added, so a writer checks once at the
 * end. Nothing is ever cut silently.
 */
#ifndef VITRINE_BASE_BUF_H
#define VITRINE_BASE_BUF_H

#include "base/base.h"

struct buf {
	char *p; /* never NULL after the first byte; buf_cstr() for the empty case */
	size_t n;
	size_t cap;
	size_t max;
	bool is_over;
};

#define BUF(ceiling) ((struct buf){ .max = (ceiling) })

void buf_done(struct buf *b);
void buf_add(struct buf *b, const void *p, size_t n);
void buf_puts(struct buf *b, const char *s);
void buf_putc(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF(2, 3);

/* Foreign bytes for people: control characters, ESC, C1 and invalid UTF-8 become \xNN, \n becomes \\n. */
void buf_esc(struct buf *b, const char *s, size_t n);

/* A JSON string with quotes; invalid UTF-8 becomes U+FFFD. */
void buf_json(struct buf *b, const char *s);
void buf_json_n(struct buf *b, const char *s, size_t n); /* NUL may be inside */

const char *buf_cstr(const struct buf *b);
char *buf_take(struct buf *b);

#endif
