/* SPDX-License-Identifier: Apache-2.0 */
/* files/p9.h - 9P2000.L, as far as a Linux kernel speaks it: requests taken apart, answers put together. Pure.
 *
 * A request is foreign bytes: it is looked up in one table that says which fields it has, every length is checked against
 * what has come, and a name is one component or the request is refused. What is not in the table ends the connection.
 */
#ifndef VITRINE_FILES_P9_H
#define VITRINE_FILES_P9_H

#include "base/buf.h"

#define P9_HEAD 7             /* size[4] type[1] tag[2] */
#define P9_MSIZE 131072U      /* the longest message */
#define P9_IO (P9_MSIZE - 24) /* what may be read or written by one */
#define P9_WALK_MAX 16
#define P9_NO_FID UINT32_MAX

enum p9_type {
	P9_LERROR = 6,
	P9_STATFS = 8,
	P9_LOPEN = 12,
	P9_LCREATE = 14,
	P9_SYMLINK = 16,
	P9_MKNOD = 18,
	P9_RENAME = 20,
	P9_READLINK = 22,
	P9_GETATTR = 24,
	P9_SETATTR = 26,
	P9_XATTRWALK = 30,
	P9_XATTRCREATE = 32,
	P9_READDIR = 40,
	P9_FSYNC = 50,
	P9_LOCK = 52,
	P9_GETLOCK = 54,
	P9_LINK = 70,
	P9_MKDIR = 72,
	P9_RENAMEAT = 74,
	P9_UNLINKAT = 76,
	P9_VERSION = 100,
	P9_AUTH = 102,
	P9_ATTACH = 104,
	P9_FLUSH = 108,
	P9_WALK = 110,
	P9_READ = 116,
	P9_WRITE = 118,
	P9_CLUNK = 120,
	P9_REMOVE = 122,
};

#define P9_NUMBERS 10

struct p9_request {
	uint8_t type;
	uint16_t tag;
	uint64_t n[P9_NUMBERS]; /* its numbers, in order */
	char *s[P9_WALK_MAX];   /* its names and texts, in order; freed by p9_done() */
	size_t n_s;
	const uint8_t *data; /* of a write: in the message */
	size_t n_data;
	bool is_bad_name; /* well formed, but a name is none: to be refused, nothing else */
};

/* Bytes of the message that begins here: 0 when even that is not known yet, < 0: no message of ours. */
int p9_length(const void *p, size_t n, size_t *ret);
/* One whole message. 0, or -EBADMSG: this peer speaks something else. */
int p9_parse(const void *p, size_t n, struct p9_request *ret);
void p9_done(struct p9_request *q);

/* One component: no '/', not "", "." or "..". */
bool p9_is_name(const char *name);

/* ---- answers ---- */

struct p9_qid {
	uint8_t type;
	uint32_t version;
	uint64_t path;
};

void p9_begin(struct buf *b, uint8_t type, uint16_t tag); /* type: of the request */
void p9_put1(struct buf *b, uint8_t v);
void p9_put2(struct buf *b, uint16_t v);
void p9_put4(struct buf *b, uint32_t v);
void p9_put8(struct buf *b, uint64_t v);
void p9_put_text(struct buf *b, const char *s, size_t n);
void p9_put_qid(struct buf *b, const struct p9_qid *q);
void p9_end(struct buf *b);
void p9_error(struct buf *b, uint16_t tag, int error); /* instead of what was begun */

#endif
