/* SPDX-License-Identifier: Apache-2.0 */
/* seal/pkt.h - git's pkt-lines: four hex digits of length, then the line */
#ifndef VITRINE_SEAL_PKT_H
#define VITRINE_SEAL_PKT_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define PKT_MAX 65520

enum pkt_kind { PKT_LINE, PKT_FLUSH, PKT_DELIM, PKT_END, PKT_KIND_COUNT_ };

struct pkt {
	enum pkt_kind kind;
	struct str data; /* of PKT_LINE */
};

/* The packet at the start of p: its bytes, 0 when more must come, -EBADMSG. */
ssize_t pkt_next(const char *p, size_t n, struct pkt *ret, struct err *e);

/* data is at most PKT_MAX - 4 bytes. */
void pkt_put(struct buf *b, struct str data);
void pkt_put_flush(struct buf *b);

#endif
