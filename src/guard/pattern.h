/* SPDX-License-Identifier: Apache-2.0 */
/* guard/pattern.h - patterns as rules write them: '*' any text, '?' one byte, '[a-z]' one of these, '\' takes the next one as it is
 *
 * What fnmatch(3) says without flags, or with FNM_CASEFOLD. A '*' also covers '/' and a dot in front.
 */
#ifndef VITRINE_GUARD_PATTERN_H
#define VITRINE_GUARD_PATTERN_H

#include "base/base.h"

/* The first n bytes of `pattern` against the whole of s. */
bool pattern_fits(const char *pattern, size_t n, const char *s);
/* All of `pattern` against s, which has n bytes, without a difference between upper and lower case (of ASCII letters). */
bool pattern_fits_fold(const char *pattern, const char *s, size_t n);

/* May a text that fits `pattern` begin with "dir/"? The letters before the first star decide; case does not count. */
bool pattern_leads_below(const char *pattern, const char *dir);

#endif
