/* SPDX-License-Identifier: Apache-2.0 */
/* http/body.c - see body.h
 *
 * Chunks are read by a machine with one state per byte that may come next. A size is 1 to 15 hex digits, which
 * cannot overflow; CR LF follows it at once.
 */
#include "http/body.h"

#define bad(e, ...) err_set((e), ERR_DENIED, EBADMSG, __VA_ARGS__)

enum state { SIZE, SIZE_LF, DATA, DATA_CR, DATA_LF, TRAILER, TRAILER_LF };

void http_body_init(struct http_body *b, const struct http_framing *f)
{
	*b = (struct http_body){ .kind = f->kind,
				 .state = SIZE,
				 .left = f->kind == HTTP_LENGTH ? f->length : 0,
				 .is_done = f->kind == HTTP_NO_BODY };
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static int size_byte(struct http_body *b, char c, struct err *e)
{
	int v = hex_value(c);

	if (v >= 0 && b->digits < 15) {
		b->left = b->left * 16 + (uint64_t)v;
		b->digits++;
		return 0;
	}
	if (c != '\r' || b->digits == 0)
		return bad(e, "a chunk size is not 1 to 15 hex digits alone on their line");
	b->state = SIZE_LF;
	return 0;
}

static int trailer_byte(struct http_body *b, char c, struct err *e)
{
	if (++b->trailer > HTTP_TRAILER_MAX)
		return bad(e, "the trailers are over %zu bytes", HTTP_TRAILER_MAX);
	if (c == '\r') {
		b->state = TRAILER_LF;
		return 0;
	}
	if (((unsigned char)c < 0x20 && c != '\t') || c == 0x7f ||
	    (b->line == 0 && (c == ' ' || c == '\t' || c == ':')))
		return bad(e, "a trailer line is malformed");
	b->line++;
	return 0;
}

static void next_chunk(struct http_body *b)
{
	b->state = SIZE;
	b->left = 0;
	b->digits = 0;
}

static int framing_byte(struct http_body *b, char c, struct err *e)
{
	switch ((enum state)b->state) {
	case SIZE:
		return size_byte(b, c, e);
	case SIZE_LF:
		b->state = b->left ? DATA : TRAILER;
		break;
	case DATA_CR:
		b->state = DATA_LF;
		return c == '\r' ? 0 : bad(e, "a chunk is longer than its size");
	case DATA_LF:
		next_chunk(b);
		break;
	case TRAILER:
		return trailer_byte(b, c, e);
	case TRAILER_LF:
		b->is_done = b->line == 0;
		b->line = 0;
		b->state = TRAILER;
		break;
	case DATA:
		bug_on(true);
	}
	return c == '\n' ? 0 : bad(e, "a line in a chunked body does not end in CR LF");
}

/* What of n bytes at p belongs to the body and is not framing. */
static struct str take_data(struct http_body *b, const char *p, size_t n)
{
	size_t got = b->kind != HTTP_UNTIL_CLOSE && b->left < n ? (size_t)b->left : n;

	if (b->kind != HTTP_UNTIL_CLOSE)
		b->left -= got;
	if (b->kind == HTTP_LENGTH)
		b->is_done = b->left == 0;
	else if (b->kind == HTTP_CHUNKED && b->left == 0)
		b->state = DATA_CR;
	return (struct str){ .p = p, .n = got };
}

int http_body_next(struct http_body *b, const char *p, size_t n, size_t *ret_used,
		   struct str *ret_data, struct err *e)
{
	struct str data = { .p = p };
	size_t used = 0;

	while (used < n && !b->is_done && data.n == 0) {
		int r;

		if (b->kind != HTTP_CHUNKED || b->state == DATA) {
			data = take_data(b, p + used, n - used);
			used += data.n;
			continue;
		}
		r = framing_byte(b, p[used], e);
		if (r < 0)
			return r;
		used++;
	}
	*ret_used = used;
	*ret_data = data;
	return b->is_done;
}

int http_body_eof(const struct http_body *b, struct err *e)
{
	if (b->is_done || b->kind == HTTP_UNTIL_CLOSE)
		return 0;
	return bad(e, "the connection ended in the middle of a body");
}

void http_put_chunk(struct buf *b, struct str data)
{
	if (data.n == 0)
		return;
	buf_printf(b, "%zx\r\n", data.n);
	buf_add(b, data.p, data.n);
	buf_puts(b, "\r\n");
}

void http_put_last_chunk(struct buf *b)
{
	buf_puts(b, "0\r\n\r\n");
}
