/* SPDX-License-Identifier: Apache-2.0 */
/* http/head.c - see head.h
 *
 * A head is looked at line by line as it arrives. Lines end in CR LF and in nothing else; a lone CR or LF, or a NUL,
 * is refused on sight, so a slow writer cannot hold a connection with bytes that will never be a head.
 */
#include "http/head.h"

#define bad(e, ...) err_set((e), ERR_DENIED, EBADMSG, __VA_ARGS__)

static bool is_token_char(unsigned char c)
{
	static const char extra[] = "!#$%&'*+-.^_`|~";

	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       (c != '\0' && strchr(extra, c) != NULL);
}

bool http_is_token(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!is_token_char((unsigned char)s.p[i]))
			return false;
	return s.n > 0;
}

bool http_is_value(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

/* The line at the start of s without its CR LF: its length, or -EAGAIN, or -EBADMSG. */
static ssize_t line_length(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '\n' || s.p[i] == '\0')
			return -EBADMSG;
		if (s.p[i] != '\r')
			continue;
		if (i + 1 == s.n)
			return -EAGAIN;
		return s.p[i + 1] == '\n' ? (ssize_t)i : -EBADMSG;
	}
	return -EAGAIN;
}

static int parse_field(struct str line, struct http_head *h, struct err *e)
{
	size_t colon = str_find(line, ':');
	struct http_field f = { .name = str_first(line, colon) };

	if (colon == line.n || !http_is_token(f.name))
		return bad(e, "a header line has no valid name");
	f.value = str_trim(str_from(line, colon + 1));
	if (!http_is_value(f.value))
		return bad(e, "a header value holds a control character");
	if (h->n == HTTP_FIELDS_MAX)
		return err_set(e, ERR_DENIED, EMSGSIZE, "more than %d header fields",
			       HTTP_FIELDS_MAX);
	h->v[h->n++] = f;
	return 0;
}

static int parse_version(struct str s, unsigned *ret_minor, struct err *e)
{
	if (!str_is(s, "HTTP/1.1") && !str_is(s, "HTTP/1.0"))
		return bad(e, "the version is neither HTTP/1.1 nor HTTP/1.0");
	*ret_minor = (unsigned)(s.p[7] - '0');
	return 0;
}

static bool is_target(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] <= 0x20 || (unsigned char)s.p[i] >= 0x7f)
			return false;
	return s.n > 0;
}

static int parse_request_line(struct str line, struct http_head *h, struct err *e)
{
	size_t first = str_find(line, ' '), second;
	struct str rest;

	h->method = str_first(line, first);
	if (first == line.n || !http_is_token(h->method) || h->method.n > HTTP_METHOD_MAX)
		return bad(e, "the request line does not begin with a method");
	rest = str_from(line, first + 1);
	second = str_find(rest, ' ');
	h->target = str_first(rest, second);
	if (second == rest.n || !is_target(h->target))
		return bad(e, "the request line has no valid target");
	return parse_version(str_from(rest, second + 1), &h->minor, e);
}

static int parse_status_line(struct str line, struct http_head *h, struct err *e)
{
	int r = parse_version(str_first(line, 8), &h->minor, e);

	if (r < 0)
		return r;
	line = str_from(line, 8);
	if (line.n < 4 || line.p[0] != ' ' || (line.n > 4 && line.p[4] != ' '))
		return bad(e, "the status line has no status");
	for (size_t i = 1; i <= 3; i++) {
		if (line.p[i] < '0' || line.p[i] > '9')
			return bad(e, "the status is not a number of three digits");
		h->status = h->status * 10 + (unsigned)(line.p[i] - '0');
	}
	if (h->status < 100)
		return bad(e, "the status is below 100");
	h->reason = line.n > 5 ? str_from(line, 5) : STR("");
	return http_is_value(h->reason) ? 0 : bad(e, "the reason holds a control character");
}

typedef int start_fn(struct str line, struct http_head *h, struct err *e);

static ssize_t parse_head(const char *p, size_t n, start_fn *start, struct http_head *ret,
			  struct err *e)
{
	struct str all = { .p = p, .n = n < HTTP_HEAD_MAX ? n : HTTP_HEAD_MAX }, rest = all;
	bool is_first = true;

	*ret = (struct http_head){ 0 };
	for (;;) {
		ssize_t len = line_length(rest);
		struct str line;
		int r;

		if (len == -EAGAIN && n >= HTTP_HEAD_MAX)
			return err_set(e, ERR_DENIED, EMSGSIZE, "the head is over %zu bytes",
				       HTTP_HEAD_MAX);
		if (len == -EAGAIN)
			return 0;
		if (len < 0)
			return bad(e, "a line does not end in CR LF, or holds a NUL");
		line = str_first(rest, (size_t)len);
		rest = str_from(rest, (size_t)len + 2);
		if (line.n == 0 && !is_first)
			return (ssize_t)(all.n - rest.n);
		r = is_first ? start(line, ret, e) : parse_field(line, ret, e);
		if (r < 0)
			return r;
		is_first = false;
	}
}

ssize_t http_parse_request(const char *p, size_t n, struct http_head *ret, struct err *e)
{
	return parse_head(p, n, parse_request_line, ret, e);
}

ssize_t http_parse_response(const char *p, size_t n, struct http_head *ret, struct err *e)
{
	return parse_head(p, n, parse_status_line, ret, e);
}

const struct http_field *http_field_first(const struct http_head *h, const char *name)
{
	for (size_t i = 0; i < h->n; i++)
		if (str_is_nocase(h->v[i].name, name))
			return &h->v[i];
	return NULL;
}

int http_field_one(const struct http_head *h, const char *name, struct str *ret)
{
	const struct http_field *found = http_field_first(h, name);

	if (!found)
		return 0;
	for (const struct http_field *f = found + 1; f < h->v + h->n; f++)
		if (str_is_nocase(f->name, name))
			return -EBADMSG;
	*ret = found->value;
	return 1;
}

/* The next word of a comma-separated list; false at its end. */
static bool next_word(struct str *list, struct str *ret)
{
	while (list->n > 0) {
		size_t comma = str_find(*list, ',');

		*ret = str_trim(str_first(*list, comma));
		*list = str_from(*list, comma < list->n ? comma + 1 : comma);
		if (ret->n > 0)
			return true;
	}
	return false;
}

static bool has_word(const struct http_head *h, const char *name, struct str word)
{
	for (size_t i = 0; i < h->n; i++) {
		struct str list = h->v[i].value, w;

		if (!str_is_nocase(h->v[i].name, name))
			continue;
		while (next_word(&list, &w))
			if (str_same_nocase(w, word))
				return true;
	}
	return false;
}

bool http_field_has(const struct http_head *h, const char *name, const char *word)
{
	return has_word(h, name, str_of(word));
}

bool http_field_is_hop(const struct http_head *h, struct str name)
{
	static const char *const hop[] = { "Connection",        "Keep-Alive",
					   "Proxy-Connection",  "Proxy-Authorization",
					   "Transfer-Encoding", "TE",
					   "Trailer",           "Upgrade",
					   "HTTP2-Settings",    "Proxy-Authenticate" };
	static const char *const never[] = { "Host", "Content-Length", "Authorization", "Cookie" };

	for (size_t i = 0; i < ARRAY_LEN(hop); i++)
		if (str_is_nocase(name, hop[i]))
			return true;
	for (size_t i = 0; i < ARRAY_LEN(never); i++)
		if (str_is_nocase(name, never[i]))
			return false;
	return has_word(h, "Connection", name);
}

/* 1 and a length, 0 for none. Digits only, and one field only: even two equal ones are refused. */
static int content_length(const struct http_head *h, uint64_t *ret, struct err *e)
{
	struct str v;
	uint64_t n = 0;
	int r = http_field_one(h, "Content-Length", &v);

	if (r == 0)
		return 0;
	if (r < 0)
		return bad(e, "more than one Content-Length");
	if (v.n == 0 || v.n > 18)
		return bad(e, "Content-Length is not a number");
	for (size_t i = 0; i < v.n; i++) {
		if (v.p[i] < '0' || v.p[i] > '9')
			return bad(e, "Content-Length is not a number");
		n = n * 10 + (uint64_t)(v.p[i] - '0');
	}
	*ret = n;
	return 1;
}

/* What both kinds of message say alike; HTTP_FRAMING_COUNT_ when they say nothing. */
static int stated_framing(const struct http_head *h, struct http_framing *ret, struct err *e)
{
	struct str te;
	uint64_t length = 0;
	int has_te = http_field_one(h, "Transfer-Encoding", &te);
	int has_length = content_length(h, &length, e);

	if (has_length < 0)
		return has_length;
	if (has_te < 0 || (has_te && !str_is_nocase(te, "chunked")))
		return bad(e, "a transfer coding other than 'chunked' alone");
	if (has_te && has_length)
		return bad(e, "both Content-Length and Transfer-Encoding");
	if (has_te && h->minor == 0)
		return bad(e, "Transfer-Encoding in HTTP/1.0");
	*ret = (struct http_framing){ .kind = HTTP_FRAMING_COUNT_ };
	if (has_te)
		ret->kind = HTTP_CHUNKED;
	else if (has_length)
		*ret = (struct http_framing){ .kind = length ? HTTP_LENGTH : HTTP_NO_BODY,
					      .length = length };
	return 0;
}

int http_request_framing(const struct http_head *h, struct http_framing *ret, struct err *e)
{
	struct http_framing f;
	int r = stated_framing(h, &f, e);

	if (r < 0)
		return r;
	if (f.kind == HTTP_FRAMING_COUNT_)
		f.kind = HTTP_NO_BODY;
	*ret = f;
	return 0;
}

int http_response_framing(const struct http_head *h, struct str method, struct http_framing *ret,
			  struct err *e)
{
	struct http_framing f;
	int r = stated_framing(h, &f, e);

	if (r < 0)
		return r;
	if (h->status < 200 || h->status == 204 || h->status == 304 || str_is(method, "HEAD") ||
	    (str_is(method, "CONNECT") && h->status < 300))
		f = (struct http_framing){ .kind = HTTP_NO_BODY };
	else if (f.kind == HTTP_FRAMING_COUNT_)
		f.kind = HTTP_UNTIL_CLOSE;
	*ret = f;
	return 0;
}

bool http_is_persistent(const struct http_head *h)
{
	if (http_field_has(h, "Connection", "close"))
		return false;
	return h->minor == 1 || http_field_has(h, "Connection", "keep-alive");
}

static void put(struct buf *b, struct str s)
{
	buf_add(b, s.p, s.n);
}

void http_put_request(struct buf *b, struct str method, struct str target)
{
	put(b, method);
	buf_putc(b, ' ');
	put(b, target);
	buf_puts(b, " HTTP/1.1\r\n");
}

void http_put_status(struct buf *b, unsigned status, struct str reason)
{
	buf_printf(b, "HTTP/1.1 %03u ", status);
	put(b, reason);
	buf_puts(b, "\r\n");
}

void http_put_field(struct buf *b, struct str name, struct str value)
{
	put(b, name);
	buf_puts(b, ": ");
	put(b, value);
	buf_puts(b, "\r\n");
}

void http_put_end(struct buf *b)
{
	buf_puts(b, "\r\n");
}

const char *http_reason(unsigned status)
{
	static const struct {
		unsigned status;
		const char *text;
	} known[] = { { 200, "OK" },
		      { 400, "Bad Request" },
		      { 403, "Forbidden" },
		      { 405, "Method Not Allowed" },
		      { 407, "Proxy Authentication Required" },
		      { 408, "Request Timeout" },
		      { 413, "Content Too Large" },
		      { 421, "Misdirected Request" },
		      { 431, "Request Header Fields Too Large" },
		      { 501, "Not Implemented" },
		      { 502, "Bad Gateway" },
		      { 503, "Service Unavailable" },
		      { 504, "Gateway Timeout" } };

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (known[i].status == status)
			return known[i].text;
	return "";
}

void http_put_answer(struct buf *b, unsigned status, const char *type, const char *body,
		     bool has_body)
{
	http_put_status(b, status, str_of(http_reason(status)));
	http_put_field(b, STR("Content-Type"), str_of(type));
	buf_printf(b, "Content-Length: %zu\r\nConnection: close\r\n\r\n", strlen(body));
	if (has_body)
		buf_puts(b, body);
}
