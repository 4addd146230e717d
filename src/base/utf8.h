/* SPDX-License-Identifier: Apache-2.0 */
/* base/utf8.h - one character of UTF-8 */
#ifndef VITRINE_BASE_UTF8_H
#define VITRINE_BASE_UTF8_H

#include "base/base.h"

/* Decodes the character at p (n > 0 bytes are there). Its length, or 0 when it is not valid: cut short, overlong, a
 * surrogate, or above U+10FFFF. ret may be NULL. */
size_t utf8_decode(const void *p, size_t n, uint32_t *ret);

#endif
