/* SPDX-License-Identifier: Apache-2.0 */
/* http/uri.c - see uri.h */
#include "http/uri.h"

#define bad(e, ...) err_set((e), ERR_DENIED, EBADMSG, __VA_ARGS__)

static bool is_host_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static char lower(char c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static int parse_name(struct str s, char host[HTTP_HOST_MAX + 1], struct err *e)
{
	size_t label = 0;

	if (s.n > 1 && s.p[s.n - 1] == '.')
		s.n--;
	if (s.n == 0 || s.n > HTTP_HOST_MAX)
		return bad(e, "a host name is empty or over %d bytes", HTTP_HOST_MAX);
	for (size_t i = 0; i < s.n; i++) {
		char c = lower(s.p[i]);

		if (c != '.' && !is_host_char(c))
			return bad(e, "a host name holds more than letters, digits, '-', '_', '.'");
		label = c == '.' ? 0 : label + 1;
		if (label > 63 || (c == '.' && (i == 0 || i + 1 == s.n || s.p[i - 1] == '.')))
			return bad(e, "a label of a host name is empty or over 63 bytes");
		host[i] = c;
	}
	host[s.n] = '\0';
	return 0;
}

static int parse_v6(struct str s, char host[HTTP_HOST_MAX + 1], struct err *e)
{
	bool has_colon = false;

	if (s.n < 2 || s.n > 45)
		return bad(e, "not an IPv6 address in brackets");
	for (size_t i = 0; i < s.n; i++) {
		char c = lower(s.p[i]);

		if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || c == ':' || c == '.'))
			return bad(e, "not an IPv6 address in brackets");
		has_colon |= c == ':';
		host[i] = c;
	}
	host[s.n] = '\0';
	return has_colon ? 0 : bad(e, "not an IPv6 address in brackets");
}

static int parse_port(struct str s, uint16_t *ret, struct err *e)
{
	uint32_t v = 0;

	if (s.n == 0 || s.n > 5 || s.p[0] == '0')
		return bad(e, "a port is a number from 1 to 65535");
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return bad(e, "a port is a number from 1 to 65535");
		v = v * 10 + (uint32_t)(s.p[i] - '0');
	}
	if (v > UINT16_MAX)
		return bad(e, "a port is a number from 1 to 65535");
	*ret = (uint16_t)v;
	return 0;
}

int http_parse_authority(struct str s, struct http_authority *ret, struct err *e)
{
	struct http_authority a = { 0 };
	bool is_v6 = s.n > 0 && s.p[0] == '[';
	size_t end = is_v6 ? str_find(s, ']') : str_find(s, ':');
	struct str rest;
	int r;

	if (is_v6 && end == s.n)
		return bad(e, "a bracket is not closed");
	a.is_v6 = is_v6;
	r = is_v6 ? parse_v6(str_from(str_first(s, end), 1), a.host, e)
		  : parse_name(str_first(s, end), a.host, e);
	if (r < 0)
		return r;
	rest = str_from(s, is_v6 ? end + 1 : end);
	if (rest.n > 0 && rest.p[0] != ':')
		return bad(e, "something stands behind the bracket");
	if (rest.n > 0) {
		r = parse_port(str_from(rest, 1), &a.port, e);
		if (r < 0)
			return r;
	}
	*ret = a;
	return 0;
}

/* A path with its query: visible ASCII, no fragment. */
static bool is_path(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] <= 0x20 || (unsigned char)s.p[i] >= 0x7f || s.p[i] == '#')
			return false;
	return s.n > 0 && s.p[0] == '/';
}

static int parse_absolute(struct str s, struct http_target *ret, struct err *e)
{
	size_t end = 0;
	int r;

	while (end < s.n && s.p[end] != '/' && s.p[end] != '?' && s.p[end] != '#')
		end++;
	r = http_parse_authority(str_first(s, end), &ret->authority, e);
	if (r < 0)
		return r;
	ret->path = end < s.n ? str_from(s, end) : STR("/");
	return is_path(ret->path) ? 0 : bad(e, "the path of the target is malformed");
}

int http_parse_target(struct str method, struct str target, struct http_target *ret, struct err *e)
{
	struct http_target t = { 0 };
	bool is_http = target.n >= 7 && strncasecmp(target.p, "http://", 7) == 0;
	bool is_https = target.n >= 8 && strncasecmp(target.p, "https://", 8) == 0;
	int r = 0;

	if (str_is(method, "CONNECT")) {
		t.form = HTTP_AUTHORITY;
		r = http_parse_authority(target, &t.authority, e);
		if (r >= 0 && t.authority.port == 0)
			r = bad(e, "CONNECT needs host:port");
	} else if (is_http || is_https) {
		t.form = HTTP_ABSOLUTE;
		t.is_https = is_https;
		r = parse_absolute(str_from(target, is_https ? 8 : 7), &t, e);
	} else if (str_is(target, "*")) {
		t.form = HTTP_ASTERISK;
		t.path = target;
		r = str_is(method, "OPTIONS") ? 0 : bad(e, "'*' is a target of OPTIONS only");
	} else {
		t.form = HTTP_ORIGIN;
		t.path = target;
		r = is_path(target) ? 0 : bad(e, "the target is neither a path nor http://host/");
	}
	if (r < 0)
		return r;
	*ret = t;
	return 0;
}

/* ---- the one form of a path ---- */

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = lower(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_unreserved(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '.' || c == '_' || c == '~';
}

static const char *encoding_objection(struct str s, bool is_strict)
{
	int high = s.n >= 3 ? hex_digit(s.p[1]) : -1, low = s.n >= 3 ? hex_digit(s.p[2]) : -1;
	int c = high * 16 + low;

	if (high < 0 || low < 0)
		return "a '%' that begins no encoding";
	if (is_unreserved(c))
		return "an encoding of a character that stands for itself";
	if (c < 0x20 || c == 0x7f || c == '\\' || c == ';')
		return "an encoded control character, '\\' or ';'";
	if (is_strict && c >= 0x80)
		return "a character beyond ASCII";
	return is_strict && (c == '/' || c == '%') ? "an encoded '/' or '%'" : NULL;
}

/* A part of the path that begins behind a slash: what is wrong with it? */
static const char *part_objection(struct str s, bool is_strict)
{
	struct str part = str_first(s, str_find(s, '/'));

	if (part.n == 0)
		return "an empty part ('//')";
	if (str_is(part, ".") || str_is(part, ".."))
		return "a part '.' or '..'";
	/* Some servers cut these off. */
	if (is_strict && (part.p[part.n - 1] == '.' || str_has_prefix(part, "%20") ||
			  (part.n >= 3 && memcmp(part.p + part.n - 3, "%20", 3) == 0)))
		return "a part with a dot at its end or a blank at either end";
	return NULL;
}

int http_check_canonical(struct str target, bool is_strict, struct err *e)
{
	struct str path = str_first(target, str_find(target, '?'));
	const char *why = path.n > 0 && path.p[0] == '/' ? NULL : "no '/' at its beginning";

	for (size_t i = 0; i < path.n && why == NULL; i++) {
		struct str rest = str_from(path, i);

		if (path.p[i] == '/' && rest.n > 1)
			why = part_objection(str_from(rest, 1), is_strict);
		else if (path.p[i] == '%')
			why = encoding_objection(rest, is_strict);
		else if (path.p[i] == '\\' || path.p[i] == ';')
			why = "a '\\' or ';'";
	}
	return why ? bad(e,
			 "the path has %s, and servers read that in more than one way; send it in "
			 "its plain form",
			 why)
		   : 0;
}

static void decode(struct str s, struct buf *out)
{
	for (size_t i = 0; i < s.n; i++) {
		int high = i + 2 < s.n && s.p[i] == '%' ? hex_digit(s.p[i + 1]) : -1;
		int low = high >= 0 ? hex_digit(s.p[i + 2]) : -1;

		if (low >= 0)
			buf_putc(out, (char)(unsigned char)(high * 16 + low));
		else
			buf_putc(out, s.p[i]);
		i += low >= 0 ? 2 : 0;
	}
}

void http_decode_twice(struct str path, struct buf *out)
{
	_cleanup_(buf_done) struct buf once = BUF(path.n);

	decode(path, &once);
	decode((struct str){ .p = buf_cstr(&once), .n = once.n }, out);
}

bool http_authority_is(const struct http_authority *a, const char *host, uint16_t port,
		       uint16_t default_port)
{
	return str_eq(a->host, host) && (a->port ? a->port : default_port) == port;
}
