/* SPDX-License-Identifier: Apache-2.0 */
/* http/head.h - the head of an HTTP/1 message, read strictly and written in one way
 *
 * Everything a second reader could understand differently is refused: bare LF or CR, folded lines, space before a
 * colon, control characters, two lengths, a length beside chunks, other transfer codings, versions but 1.0 and 1.1.
 * Views in a head point into the caller's bytes, which must stay as they are while the head is used.
 */
#ifndef VITRINE_HTTP_HEAD_H
#define VITRINE_HTTP_HEAD_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define HTTP_HEAD_MAX ((size_t)32 * 1024)
#define HTTP_FIELDS_MAX 128
#define HTTP_METHOD_MAX 32

struct http_field {
	struct str name, value;
};

struct http_head {
	unsigned minor;            /* HTTP/1.minor: 0 or 1 */
	struct str method, target; /* of a request */
	unsigned status;           /* of a response; 0 in a request */
	struct str reason;
	struct http_field v[HTTP_FIELDS_MAX];
	size_t n;
};

/* Bytes of a complete head with its empty line; 0 when more must come; -EBADMSG when it can become none, -EMSGSIZE
 * when it is over HTTP_HEAD_MAX or HTTP_FIELDS_MAX. Wrong bytes are refused as soon as they are there. */
ssize_t http_parse_request(const char *p, size_t n, struct http_head *ret, struct err *e);
ssize_t http_parse_response(const char *p, size_t n, struct http_head *ret, struct err *e);

/* The value of the only field called name: 1, 0 when there is none, -EBADMSG when there are several. */
int http_field_one(const struct http_head *h, const char *name, struct str *ret);
/* The first field called name, or NULL. */
const struct http_field *http_field_first(const struct http_head *h, const char *name);
/* One of the comma-separated words of the fields called name is word (case aside). */
bool http_field_has(const struct http_head *h, const char *name, const char *word);

/* A field that ends at this hop: the fixed list and what Connection names. Host and the lengths are never named away. */
bool http_field_is_hop(const struct http_head *h, struct str name);

/* The rules of one field, for other sources of them (HTTP/2, configuration). */
bool http_is_token(struct str s);
bool http_is_value(struct str s);

enum http_framing_kind {
	HTTP_NO_BODY,
	HTTP_LENGTH,
	HTTP_CHUNKED,
	HTTP_UNTIL_CLOSE,
	HTTP_FRAMING_COUNT_
};

struct http_framing {
	enum http_framing_kind kind;
	uint64_t length; /* of HTTP_LENGTH, > 0 */
};

/* How the body behind a head is delimited. A response needs the method it answers. */
int http_request_framing(const struct http_head *h, struct http_framing *ret, struct err *e);
int http_response_framing(const struct http_head *h, struct str method, struct http_framing *ret,
			  struct err *e);

/* Whether the connection may carry another message behind this one. */
bool http_is_persistent(const struct http_head *h);

/* Writing. Names and values have been checked by whoever made them. */
void http_put_request(struct buf *b, struct str method, struct str target);
void http_put_status(struct buf *b, unsigned status, struct str reason);
void http_put_field(struct buf *b, struct str name, struct str value);
void http_put_end(struct buf *b);

/* A whole answer of our own, closing the connection. has_body is false for HEAD. */
void http_put_answer(struct buf *b, unsigned status, const char *type, const char *body,
		     bool has_body);

/* "OK", "Forbidden": the few we say ourselves; "" otherwise. */
const char *http_reason(unsigned status);

#endif
