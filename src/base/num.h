/* SPDX-License-Identifier: Apache-2.0 */
/* base/num.h - numbers, sizes and durations from text; whole input or an error, no leniency */
#ifndef VITRINE_BASE_NUM_H
#define VITRINE_BASE_NUM_H

#include "base/err.h"

/* Decimal digits only: no sign, no spaces, no leading zeros, no hex. */
int num_parse(const char *s, uint64_t min, uint64_t max, uint64_t *ret, struct err *e);

/* "512k", "2g", "1.5g"(no), "100": bytes in powers of 1024, suffix k m g t, an optional "b" or "ib" behind it. */
int num_size(const char *s, uint64_t *ret_bytes, struct err *e);

/* "90", "90s", "10m", "2h", "1d", "500ms": nanoseconds; a bare number is seconds. */
int num_duration(const char *s, uint64_t *ret_ns, struct err *e);

/* "2", "0.5", "1.25": thousandths. */
int num_milli(const char *s, uint64_t *ret_milli, struct err *e);

#endif
