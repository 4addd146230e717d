/* SPDX-License-Identifier: Apache-2.0 */
/* broker/wire.h - what passes between the inside and the broker: one request, then frames
 *
 * A request is "VBR1", the length of the rest as u32 little-endian, and words, each ended by NUL: at least one, at most
 * WIRE_WORDS, WIRE_BYTES in all. The first says what is wanted:
 *
 *     about URL                       is there a rule for this repository?
 *     git-list URL                    its branches and tags
 *     git-fetch URL                   then the connection is git's own, as to git-upload-pack
 *     git-push URL [dry-run] -- [+]OID:REF ...      an empty OID deletes
 *     gh ARG...                       gh pr create
 *     run NAME ARG...                 a command of the user's
 *
 * Frames are a letter, a zero byte, a length as u16 little-endian, and so many bytes. Nothing is ever cut short or
 * skipped: what is not exactly this ends the connection. Everything here is pure.
 */
#ifndef VITRINE_BROKER_WIRE_H
#define VITRINE_BROKER_WIRE_H

#include "base/buf.h"
#include "base/err.h"

#define WIRE_MAGIC "VBR1"
#define WIRE_HEAD ((size_t)8)
#define WIRE_BYTES ((size_t)64 * 1024)
#define WIRE_WORDS 256
#define WIRE_FRAME_MAX ((size_t)32 * 1024)

enum wire_kind {
	WIRE_OUT = 'O',     /* for standard output */
	WIRE_ERR = 'E',     /* for standard error */
	WIRE_RESULT = 'R',  /* one line: of a push, "ok REF" or "error REF why" */
	WIRE_END = 'X',     /* one byte: the exit status; the last frame */
	WIRE_SERVE = 'U',   /* to the inside: run git-upload-pack on your repository now */
	WIRE_DATA = 'D',    /* its bytes, both ways; without any: that way has ended */
	WIRE_CONNECT = 'C', /* from here on the connection is git's own */
};

struct request {
	char *text;
	const char *words[WIRE_WORDS]; /* into text */
	size_t n;
};

/* Length of the words that follow the head of WIRE_HEAD bytes; -EBADMSG. */
ssize_t request_length(const uint8_t head[WIRE_HEAD]);
/* The words. -EBADMSG; control characters other than tab and newline are refused. */
int request_parse(const char *p, size_t n, struct request *ret);
void request_done(struct request *r);
/* false: too long or too many. */
bool request_make(const char *const *words, size_t n, struct buf *out);

struct frame {
	uint8_t kind;
	uint16_t n;
};

#define FRAME_HEAD ((size_t)4)
void frame_put_head(uint8_t head[FRAME_HEAD], enum wire_kind kind, size_t n);
/* -EBADMSG: a letter nobody knows, or too long. */
int frame_head(const uint8_t head[FRAME_HEAD], struct frame *ret);

/* Blocking, whole or not at all; -errno. */
int frame_send(int fd, enum wire_kind kind, const void *p, size_t n);
/* 1, or 0 at the end, or -errno. data has room for WIRE_FRAME_MAX. */
int frame_recv(int fd, struct frame *ret, char *data);

#endif
