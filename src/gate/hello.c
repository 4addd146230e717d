/* SPDX-License-Identifier: Apache-2.0 */
/* gate/hello.c - see hello.h
 *
 * Reads just enough of the first handshake message. A client may cut it over records as it likes, so the records'
 * payloads are gathered first; every length must fit exactly into what holds it.
 */
#include "gate/hello.h"

#define RECORD_HANDSHAKE 22
#define CLIENT_HELLO 1
#define EXT_SERVER_NAME 0
#define RECORD_MAX 16384

struct view {
	const uint8_t *p;
	size_t n;
};

static bool take_bytes(struct view *v, size_t n, struct view *ret)
{
	if (v->n < n)
		return false;
	*ret = (struct view){ v->p, n };
	v->p += n;
	v->n -= n;
	return true;
}

static bool take_uint(struct view *v, size_t bytes, size_t *ret)
{
	struct view b;
	size_t x = 0;

	if (!take_bytes(v, bytes, &b))
		return false;
	for (size_t i = 0; i < bytes; i++)
		x = x << 8 | b.p[i];
	*ret = x;
	return true;
}

/* A vector with its length in front. */
static bool take_vec(struct view *v, size_t bytes, struct view *ret)
{
	size_t n;

	return take_uint(v, bytes, &n) && take_bytes(v, n, ret);
}

static enum hello_result parse_server_name(struct view ext, char name[HOST_TEXT])
{
	struct view list, host;
	struct host_id h;
	const char *why;
	size_t type;

	/* RFC 6066: a list that in practice holds one host name; anything else could be read in two ways. */
	if (!take_vec(&ext, 2, &list) || ext.n > 0 || !take_uint(&list, 1, &type) || type != 0 ||
	    !take_vec(&list, 2, &host) || list.n > 0)
		return HELLO_BAD;
	if (host_parse((const char *)host.p, host.n, &h, &why) < 0)
		return HELLO_BAD;
	memcpy(name, h.name, HOST_TEXT);
	return HELLO_NAME;
}

static enum hello_result parse_body(struct view v, char name[HOST_TEXT])
{
	enum hello_result r = HELLO_NO_NAME;
	struct view skipped, exts;

	if (!take_bytes(&v, 2 + 32, &skipped) || !take_vec(&v, 1, &skipped) || skipped.n > 32 ||
	    !take_vec(&v, 2, &skipped) || skipped.n % 2 || !take_vec(&v, 1, &skipped))
		return HELLO_BAD;
	if (v.n == 0)
		return HELLO_NO_NAME;
	if (!take_vec(&v, 2, &exts) || v.n > 0)
		return HELLO_BAD;
	while (exts.n > 0) {
		struct view body;
		size_t type;

		if (!take_uint(&exts, 2, &type) || !take_vec(&exts, 2, &body))
			return HELLO_BAD;
		if (type != EXT_SERVER_NAME)
			continue;
		if (r != HELLO_NO_NAME)
			return HELLO_BAD;
		r = parse_server_name(body, name);
		if (r != HELLO_NAME)
			return r;
	}
	return r;
}

enum hello_result hello_parse(const uint8_t *p, size_t n, char name[HOST_TEXT])
{
	static uint8_t gathered[HELLO_MAX];
	size_t have = 0;
	struct view v = { p, n };

	if (n == 0)
		return HELLO_MORE;
	if (p[0] != RECORD_HANDSHAKE || (n > 1 && p[1] != 3))
		return HELLO_NOT_TLS;
	while (v.n > 0) {
		size_t len, want;

		if (v.p[0] != RECORD_HANDSHAKE || (v.n > 1 && v.p[1] != 3))
			return HELLO_BAD;
		if (v.n < 5)
			return HELLO_MORE;
		len = (size_t)v.p[3] << 8 | v.p[4];
		if (len == 0 || len > RECORD_MAX)
			return HELLO_BAD;
		want = v.n - 5 < len ? v.n - 5 : len;
		if (have + want > sizeof(gathered))
			return HELLO_BAD;
		memcpy(gathered + have, v.p + 5, want);
		have += want;
		if (have > 0 && gathered[0] != CLIENT_HELLO)
			return HELLO_BAD;
		if (have >= 4) {
			size_t body =
				(size_t)gathered[1] << 16 | (size_t)gathered[2] << 8 | gathered[3];

			if (body > HELLO_MAX - 4)
				return HELLO_BAD;
			if (have >= body + 4)
				return parse_body((struct view){ gathered + 4, body }, name);
		}
		if (want < len)
			return HELLO_MORE;
		v.p += 5 + len;
		v.n -= 5 + len;
	}
	return HELLO_MORE;
}
