/* SPDX-License-Identifier: Apache-2.0 */
/* http/body.h - the body of an HTTP/1 message, piece by piece
 *
 * The decoder keeps no bytes: it points at the data in what the caller shows it, and takes no more than it is shown.
 * A caller whose peer does not read shows it nothing, which is all the back-pressure there is.
 *
 *     while (n > 0 && there is room) {
 *             r = http_body_next(&body, p, min(n, room), &used, &data, e);
 *             ... send data; p += used; n -= used; stop when r != 0
 *     }
 */
#ifndef VITRINE_HTTP_BODY_H
#define VITRINE_HTTP_BODY_H

#include "http/head.h"

#define HTTP_TRAILER_MAX ((size_t)8 * 1024)

struct http_body {
	enum http_framing_kind kind;
	int state;
	uint64_t left;  /* of the length, or of this chunk */
	size_t digits;  /* of the size being read */
	size_t trailer; /* bytes of trailers so far */
	size_t line;    /* bytes of this trailer line */
	bool is_done;
};

void http_body_init(struct http_body *b, const struct http_framing *f);

/* One step: *ret_used bytes of p are dealt with, *ret_data (maybe empty) is body. 1 when the body is complete, 0 when
 * more is to come (or to be asked for again), -EBADMSG. A chunk has no extension; trailer fields are checked for form
 * and dropped. n may be 0. */
int http_body_next(struct http_body *b, const char *p, size_t n, size_t *ret_used,
		   struct str *ret_data, struct err *e);

/* The sender closed. 0 when that is a proper end of this body, else -EBADMSG. */
int http_body_eof(const struct http_body *b, struct err *e);

/* Data as one chunk; nothing for no data, because that would be the end. */
void http_put_chunk(struct buf *b, struct str data);
void http_put_last_chunk(struct buf *b);

#endif
