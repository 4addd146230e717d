/* SPDX-License-Identifier: Apache-2.0 */
/* seal/gunzip.h - the first member of a gzip stream, piece by piece and bounded by the reader */
#ifndef VITRINE_SEAL_GUNZIP_H
#define VITRINE_SEAL_GUNZIP_H

#include "base/err.h"

struct gunzip;
typedef int gunzip_fn(void *arg, const char *p, size_t n, struct err *e);

struct gunzip *gunzip_new(void);
void gunzip_free(struct gunzip *g);

/* Hands what n bytes decode to to fn, in pieces of at most 4 KiB, until fn returns other than 0. Returns that, or 0
 * when all was taken, or -EBADMSG for what is not gzip. */
int gunzip_feed(struct gunzip *g, const char *p, size_t n, gunzip_fn *fn, void *arg, struct err *e);

#endif
