/* SPDX-License-Identifier: Apache-2.0 */
/* gate/sniff.c - the first bytes of a tunnel: do they ask for the name the tunnel was made for?
 *
 * A server may serve many names on one address, and what decides is inside the tunnel: the server name of TLS, the
 * Host of HTTP. So nothing of the client's reaches the server before its first message has been understood: TLS must
 * ask for the tunnel's own name, HTTP is read request by request. On a port of HTTP nothing else passes unless the rule
 * says /raw: forgiving servers take much for a request that is none by the book, and a name in it could be any.
 * On other ports what begins neither like TLS nor like a request passes as bytes; empty lines in front of a request, which
 * servers skip, are refused there too. A server that speaks first (ssh, mail) is heard at once.
 */
#include "base/loop.h"
#include "base/sabotage.h"
#include "gate/front.h"
#include "gate/hello.h"

#define HELLO_NS (15 * NS_PER_SEC)
#define TLS_PORTS(p)                                                                               \
	((p) == 443 || (p) == 8443 || (p) == 853 || (p) == 993 || (p) == 995 || (p) == 465)

/* The ports that IANA gives to HTTP. */
static bool is_http_port(uint16_t port)
{
	return port == 80 || port == 591 || port == 8008 || port == 8080;
}

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

/* The first message is not complete; it has HELLO_NS from its first byte on. */
static bool wait_for_more(struct conn *c)
{
	if (c->due == 0)
		c->due = clock_now() + HELLO_NS;
	return false;
}

static bool refuse_non_http(struct conn *c)
{
	char text[384];

	gate_say(text, sizeof(text),
		 "not HTTP on port %u of %s, a port of HTTP; --allow %s:%u/raw would let other "
		 "protocols pass",
		 c->port, c->host, c->host, c->port);
	return refuse(c, text);
}

static bool sniff_tls(struct conn *c)
{
	struct buf *in = &c->half[CLIENT].in;
	char name[HOST_TEXT], text[384];

	switch (hello_parse((const uint8_t *)in->p, in->n, name)) {
	case HELLO_MORE:
		return wait_for_more(c);
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

/* Empty lines and blanks that a forgiving server skips before a request. */
static size_t blanks_in_front(const struct buf *in)
{
	size_t n = 0;

	while (n < in->n &&
	       (in->p[n] == '\r' || in->p[n] == '\n' || in->p[n] == ' ' || in->p[n] == '\t'))
		n++;
	return n;
}

/* A connection for a name, neither refused nor beginning like TLS. */
static bool sniff_text(struct conn *c)
{
	struct buf *in = &c->half[CLIENT].in;
	bool is_strict = is_http_port(c->port) && !c->is_raw, needs_more = false;
	size_t blanks = blanks_in_front(in);

	if (is_strict && blanks > 0)
		return refuse_non_http(c);
	if (blanks == in->n)
		return wait_for_more(c);
	if (looks_like_http(in->p + blanks, in->n - blanks, &needs_more)) {
		/* The server's side must be read as answers too, so it may not have spoken yet. */
		if (c->half[SERVER].bytes > 0)
			return refuse(c, "HTTP where the server spoke first");
		if (blanks > 0)
			return refuse(c, "empty lines or blanks in front of a request of HTTP");
		http_start(c);
		return true;
	}
	if (needs_more)
		return wait_for_more(c);
	return is_strict ? refuse_non_http(c) : sniff_tls(c);
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
	if (in->p[0] == 22 && (c->is_raw || !is_http_port(c->port)))
		return sniff_tls(c);
	return sniff_text(c);
}
