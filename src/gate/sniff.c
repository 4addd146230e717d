/* SPDX-License-Identifier: Apache-2.0 */
/* gate/sniff.c - the first bytes of a tunnel: do they ask for the name the tunnel was made for?
 *
 * A server may serve many names on one address, and what decides is inside the tunnel: the server name of TLS, the
 * Host of HTTP. So nothing of the client's reaches the server before its first message has been understood: TLS must
 * ask for the tunnel's own name, HTTP is read request by request. Everything else passes as bytes; a server that
 * speaks first (ssh, mail) is heard at once.
 */
#include "base/loop.h"
#include "base/sabotage.h"
#include "gate/front.h"
#include "gate/hello.h"

#define HELLO_NS (15 * NS_PER_SEC)
#define TLS_PORTS(p)                                                                               \
	((p) == 443 || (p) == 8443 || (p) == 853 || (p) == 993 || (p) == 995 || (p) == 465)

static bool pass(struct conn *c)
{
	c->half[CLIENT].mode = MODE_RAW;
	c->due = 0;
	return false;
}

static bool refuse(struct conn *c, const char *text)
{
	conn_alert(c, text);
	conn_close(c);
	return false;
}

static bool sniff_tls(struct conn *c)
{
	struct buf *in = &c->half[CLIENT].in;
	char name[HOST_TEXT], text[384];

	switch (hello_parse((const uint8_t *)in->p, in->n, name)) {
	case HELLO_MORE:
		if (c->due == 0)
			c->due = clock_now() + HELLO_NS;
		return false;
	case HELLO_NAME:
		if (str_eq(name, c->host))
			return pass(c);
		gate_say(text, sizeof(text), "TLS asks for %s in a tunnel made for %s", name,
			 c->host);
		return refuse(c, text);
	case HELLO_NO_NAME:
		gate_say(text, sizeof(text), "TLS asks for no name in a tunnel made for %s",
			 c->host);
		return refuse(c, text);
	case HELLO_NOT_TLS:
		if (TLS_PORTS(c->port))
			conn_alert(c, "not TLS on a port for TLS; passed on");
		return pass(c);
	case HELLO_BAD:
	case HELLO_RESULT_COUNT_:
		break;
	}
	return refuse(c, "begins like TLS and is not a ClientHello");
}

bool sniff_input(struct conn *c)
{
	struct buf *in = &c->half[CLIENT].in;
	bool needs_more = false;

	if (in->n == 0)
		return false;
	if (c->is_refused) {
		/* Only listened to for as long as it takes to know how to tell it. */
		if (looks_like_http(in->p, in->n, &needs_more)) {
			http_start(c);
			return true;
		}
		if (!needs_more)
			conn_close(c);
		return false;
	}
	/* Without a name there is nothing to compare: an address was allowed as such. */
	if (c->host[0] == '\0' || sabotaged("gate-sniff"))
		return pass(c);
	if (in->p[0] == 22)
		return sniff_tls(c);
	if (looks_like_http(in->p, in->n, &needs_more)) {
		/* The server's side must be read as answers too, so it may not have spoken yet. */
		if (c->half[SERVER].bytes > 0)
			return refuse(c, "HTTP where the server spoke first");
		http_start(c);
		return true;
	}
	if (needs_more)
		return false;
	return sniff_tls(c);
}
