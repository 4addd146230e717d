/* SPDX-License-Identifier: Apache-2.0 */
/* gate/socks.c - SOCKS5 (RFC 1928): CONNECT without a password, by name or by address; nothing else */
#include "gate/front.h"

enum {
	SOCKS_OK = 0,
	SOCKS_FAILED = 1,
	SOCKS_RULE = 2,
	SOCKS_UNREACHABLE = 4,
	SOCKS_COMMAND = 7,
	SOCKS_ADDRESS = 8
};

static void drop(struct buf *b, size_t n)
{
	memmove(b->p, b->p + n, b->n - n);
	b->n -= n;
	b->p[b->n] = '\0';
}

void socks_answer(struct conn *c, unsigned code)
{
	char answer[10] = { 5, (char)code, 0, 1 };

	if (code == SOCKS_OK)
		conn_put(c, CLIENT, answer, sizeof(answer));
	else
		conn_last_words(c, answer, sizeof(answer));
}

static bool hello(struct conn *c)
{
	struct buf *in = &c->half[CLIENT].in;
	size_t n;

	if (in->p[0] != 5) {
		conn_alert(c, "SOCKS4 is not spoken here; SOCKS5 is");
		conn_last_words(c, "\0\133\0\0\0\0\0\0", 8);
		return false;
	}
	if (in->n < 2 || in->n < 2U + (unsigned char)in->p[1])
		return false;
	n = 2U + (unsigned char)in->p[1];
	if (memchr(in->p + 2, 0, n - 2) == NULL) {
		conn_last_words(c, "\5\377", 2);
		return false;
	}
	drop(in, n);
	c->socks_step = 1;
	conn_put(c, CLIENT, "\5\0", 2);
	return !c->is_dead;
}

/* Bytes of the whole request, known from its first five; 0: not an address type there is. */
static size_t request_length(const unsigned char *p)
{
	return p[3] == 1 ? 10 : p[3] == 4 ? 22 : p[3] == 3 ? 7U + p[4] : 0;
}

static bool read_target(struct conn *c, const unsigned char *p, size_t n)
{
	struct host_id h = { .is_addr = true };
	const char *why;

	c->port = (uint16_t)(p[n - 2] << 8 | p[n - 1]);
	if (p[3] == 3 && host_parse((const char *)p + 5, p[4], &h, &why) < 0)
		return false;
	if (p[3] == 1)
		h.addr = addr_from_v4(p + 4);
	if (p[3] == 4)
		memcpy(h.addr.b, p + 4, 16);
	if (h.is_addr)
		addr_text(&h.addr, h.name);
	memcpy(c->host, h.name, sizeof(c->host));
	return c->port != 0;
}

static bool request(struct conn *c)
{
	struct buf *in = &c->half[CLIENT].in;
	const unsigned char *p = (const unsigned char *)in->p;
	size_t n = in->n < 5 ? 0 : request_length(p);

	if (in->n < 5)
		return false;
	if (p[0] != 5 || p[2] != 0 || n == 0) {
		socks_answer(c, n == 0 ? SOCKS_ADDRESS : SOCKS_FAILED);
		return false;
	}
	if (in->n < n)
		return false;
	if (p[1] != 1) {
		conn_alert(c, "SOCKS: only CONNECT, no BIND and no UDP");
		socks_answer(c, SOCKS_COMMAND);
		return false;
	}
	if (!read_target(c, p, n)) {
		conn_alert(c, "SOCKS: not a host that can be asked for");
		socks_answer(c, SOCKS_FAILED);
		return false;
	}
	drop(in, n);
	c->via = VIA_SOCKS;
	c->half[CLIENT].mode = MODE_WAIT;
	conn_ask(c);
	return false;
}

bool socks_input(struct conn *c)
{
	if (c->half[CLIENT].in.n == 0)
		return false;
	return c->socks_step == 0 ? hello(c) : request(c);
}
