/* SPDX-License-Identifier: Apache-2.0 */
/* store/retain.h - what is too old or too much goes, whole sessions first, never silently; private to store/ */
#ifndef VITRINE_STORE_RETAIN_H
#define VITRINE_STORE_RETAIN_H

#include "store/eventdb.h"
#include "store/store.h"

/* 1 when something went (added to *dropped, in events), 0 when nothing had to, < 0. */
int retain(struct eventdb *d, const struct store_bounds *bounds, uint64_t *dropped, struct err *e);

#endif
