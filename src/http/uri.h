/* SPDX-License-Identifier: Apache-2.0 */
/* http/uri.h - who is asked: authorities and request targets, in one spelling
 *
 * A host comes out in lower case, without a trailing dot, of letters, digits, '-', '_' and '.' alone, or as the inside
 * of [ ]. Percent-encoding, user names, empty labels and everything beyond ASCII are refused: the host that is judged
 * is the host that is asked. Numbers that libc would take for an address ("127.1") are left to the rules.
 */
#ifndef VITRINE_HTTP_URI_H
#define VITRINE_HTTP_URI_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define HTTP_HOST_MAX 253

struct http_authority {
	char host[HTTP_HOST_MAX + 1];
	bool is_v6;    /* it stood in [ ] */
	uint16_t port; /* 0: none was given */
};

enum http_form { HTTP_ORIGIN, HTTP_ABSOLUTE, HTTP_AUTHORITY, HTTP_ASTERISK, HTTP_FORM_COUNT_ };

struct http_target {
	enum http_form form;
	bool is_https;                   /* of HTTP_ABSOLUTE */
	struct http_authority authority; /* of HTTP_ABSOLUTE and HTTP_AUTHORITY */
	struct str path;                 /* with the query; "/" when an absolute form has none */
};

/* host, host:port, [v6], [v6]:port. -EBADMSG. */
int http_parse_authority(struct str s, struct http_authority *ret, struct err *e);

/* CONNECT takes an authority with a port and nothing else; '*' is for OPTIONS; other methods take the rest. */
int http_parse_target(struct str method, struct str target, struct http_target *ret, struct err *e);

/* Is the path, without its query, in its one canonical form? No empty, "." or ".." part, no '\\' and no ';', and an encoding
 * only of what cannot stand for itself. Encoded slashes and percent signs mean themselves to some servers and separators to
 * others, letters beyond ASCII become plain ones where a server folds them, and some cut dots and blanks off the end of a part: `is_strict`
 * refuses these too. -EBADMSG with
 * the sentence. */
int http_check_canonical(struct str path, bool is_strict, struct err *e);

/* The path with its encodings read, and read once more: what a server could see in it that decodes twice. */
void http_decode_twice(struct str path, struct buf *out);

/* A Host field or :authority names host and port; default_port stands for a missing one. */
bool http_authority_is(const struct http_authority *a, const char *host, uint16_t port,
		       uint16_t default_port);

#endif
