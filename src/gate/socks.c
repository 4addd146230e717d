/* SPDX-License-Identifier: Apache-2.0 */
/* gate/socks.c - a client that speaks SOCKS5: CONNECT without a password, by name or by address; nothing else */
#include "gate/socks_msg.h"

#include "gate/front.h"

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
	ssize_t n = socks_parse_hello((const uint8_t *)in->p, in->n);

	if (n == -EBADMSG) {
		conn_alert(c, "SOCKS4 is not spoken here; SOCKS5 is");
		conn_last_words(c, "\0\133\0\0\0\0\0\0", 8);
	} else if (n < 0) {
		conn_last_words(c, "\5\377", 2);
	}
	if (n <= 0)
		return false;
	conn_drop_input(c, CLIENT, (size_t)n);
	c->socks_step = 1;
	conn_put(c, CLIENT, "\5\0", 2);
	return !c->is_dead;
}

static bool request(struct conn *c)
{
	struct buf *in = &c->half[CLIENT].in;
	struct socks_request r;
	ssize_t n = socks_parse_request((const uint8_t *)in->p, in->n, &r);

	if (n == 0)
		return false;
	if (n < 0 || r.code != SOCKS_OK) {
		conn_alert(c, r.code == SOCKS_COMMAND ? "SOCKS: only CONNECT, no BIND and no UDP"
						      : "SOCKS: not a host that can be asked for");
		socks_answer(c, r.code);
		return false;
	}
	memcpy(c->host, r.host.name, sizeof(c->host));
	c->port = r.port;
	conn_drop_input(c, CLIENT, (size_t)n);
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
