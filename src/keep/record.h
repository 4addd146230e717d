/* SPDX-License-Identifier: Apache-2.0 */
/* keep/record.h - a session's output on disk: sessions/N/output, at most two files of 4 MiB
 *
 * When `output` is full it becomes `output.1`, over the one before, and a new one begins: the end is always there.
 * A disk that takes no more ends the record, never the session.
 */
#ifndef VITRINE_KEEP_RECORD_H
#define VITRINE_KEEP_RECORD_H

#include "base/base.h"

#define RECORD_MAX (4 * MIB)

struct record {
	int dir, fd;
	uint64_t n;
	bool has_failed;
};

#define RECORD_NONE ((struct record){ .dir = FD_NONE, .fd = FD_NONE })

/* Below the directory `sessions`. What fails is remembered in has_failed. */
void record_open(struct record *r, int sessions, uint32_t number);
void record_add(struct record *r, const char *p, size_t n);
void record_close(struct record *r);

#endif
