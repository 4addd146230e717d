/* SPDX-License-Identifier: Apache-2.0 */
/* gate/lookup.c - the name server inside
 *
 * Answers come from the address that was asked, whichever it was. An allowed name gets its own address from dial; any
 * other does not exist, and no question about it goes anywhere. What is asked for but an address (mail, services,
 * keys) has no answer.
 */
#include "base/loop.h"
#include "gate/dns.h"
#include "gate/front.h"
#include "sys/datagram.h"

#define DNS_ASKS_MAX 256
#define DNS_NS (15 * NS_PER_SEC)

/* A question that dial is thinking about. */
struct dns_ask {
	uint32_t id;
	struct dns_query q;
	struct conn *c; /* over TCP; else: */
	struct datagram from;
	uint64_t due;
	struct dns_ask *next;
};

static void send_answer(struct front *f, struct dns_ask *a, const struct buf *b)
{
	char length[2] = { (char)(b->n >> 8), (char)b->n };

	if (a->c == NULL) {
		datagram_answer(f->dns.fd, &a->from, b->p, b->n);
		return;
	}
	conn_put(a->c, CLIENT, length, 2);
	if (!a->c->is_dead)
		conn_put(a->c, CLIENT, b->p, b->n);
	if (!a->c->is_dead) {
		a->c->half[CLIENT].mode = MODE_DNS;
		a->c->due = clock_now() + DNS_NS;
	}
	/* Where dial was asked we come from its answer, and the next question may have been waiting; else our caller
	 * goes on by itself. */
	if (!a->c->is_dead && a->id)
		conn_again(a->c, CLIENT);
	if (!a->c->is_dead && a->id)
		conn_watch(a->c);
}

static void answer(struct front *f, struct dns_ask *a, unsigned code, const struct addr *v,
		   size_t n, const char *why)
{
	_cleanup_(buf_done) struct buf b = BUF(4 * KIB);

	dns_put_answer(&b, &a->q, code, v, n, why);
	send_answer(f, a, &b);
}

/* Asks dial, or answers at once what needs no asking. Takes over *from. */
static void begin(struct front *f, const struct dns_ask *from)
{
	struct gate_msg m = { .type = GATE_NAME, .via = VIA_DNS };
	struct dns_ask now = *from, *a;

	if (str_eq(now.q.name, "localhost") && (now.q.type == DNS_A || now.q.type == DNS_AAAA)) {
		struct addr here = { .b = { [15] = 1 } };

		if (now.q.type == DNS_A)
			here = addr_from_v4((const uint8_t[4]){ 127, 0, 0, 1 });
		answer(f, &now, DNS_OK, &here, 1, NULL);
		return;
	}
	if (!now.q.is_host || f->n_dns_asks >= DNS_ASKS_MAX) {
		answer(f, &now, now.q.is_host ? DNS_SERVFAIL : DNS_NXDOMAIN, NULL, 0, NULL);
		return;
	}
	a = mem_new(1, sizeof(*a));
	*a = now;
	a->id = m.id = front_next_id(f);
	a->due = clock_now() + DNS_NS;
	a->next = f->dns_asks;
	f->dns_asks = a;
	f->n_dns_asks++;
	memcpy(m.host, a->q.name, sizeof(m.host));
	if (gate_send(f->dial.fd, &m, NULL, 0) < 0)
		_exit(0);
}

void dns_answered(struct front *f, const struct gate_msg *m)
{
	for (struct dns_ask **at = &f->dns_asks; *at; at = &(*at)->next) {
		struct dns_ask *a = *at;
		bool has_v4 = a->q.type == DNS_A;
		bool has_any = has_v4 || (a->q.type == DNS_AAAA && f->has_v6);

		if (a->id != m->id)
			continue;
		*at = a->next;
		f->n_dns_asks--;
		if (m->verdict == GATE_ALLOWED)
			answer(f, a, DNS_OK, has_v4 ? &m->fake4 : &m->fake6, has_any, NULL);
		else
			answer(f, a, m->verdict == GATE_REFUSED ? DNS_NXDOMAIN : m->flags & 15,
			       NULL, 0, m->text);
		free(a);
		return;
	}
}

/* ---- datagrams ---- */

static void on_datagram(struct source *s, unsigned ready)
{
	struct front *f = holder_of(s, struct front, dns);

	(void)ready;
	for (int i = 0; i < 32; i++) {
		uint8_t in[DNS_MAX];
		struct dns_ask a = { 0 };
		ssize_t n = datagram_recv(s->fd, in, sizeof(in), &a.from);

		if (n < 0 && n != -EMSGSIZE)
			return;
		if (n >= 0 && dns_parse_query(in, (size_t)n, &a.q) == 0)
			begin(f, &a);
	}
}

void dns_start(struct front *f, int take_udp)
{
	if (source_open(&f->turn, &f->dns, take_udp, on_datagram, POLLER_READ) < 0)
		_exit(125);
}

/* ---- TCP ---- */

bool dns_stream_input(struct conn *c)
{
	struct buf *in = &c->half[CLIENT].in;
	struct dns_ask a = { .c = c };
	size_t n = in->n < 2 ? 0 : (size_t)(unsigned char)in->p[0] << 8 | (unsigned char)in->p[1];

	if (in->n < 2 || (n <= DNS_MAX && in->n < n + 2))
		return false;
	if (n > DNS_MAX || dns_parse_query((const uint8_t *)in->p + 2, n, &a.q) < 0) {
		conn_close(c);
		return false;
	}
	conn_drop_input(c, CLIENT, n + 2);
	c->half[CLIENT].mode = MODE_WAIT;
	begin(c->f, &a);
	return !c->is_dead && c->half[CLIENT].mode == MODE_DNS;
}

/* ---- ends ---- */

void dns_forget(struct front *f, const struct conn *c)
{
	for (struct dns_ask **at = &f->dns_asks; *at;) {
		struct dns_ask *a = *at;

		if (a->c != c) {
			at = &a->next;
			continue;
		}
		*at = a->next;
		f->n_dns_asks--;
		free(a);
	}
}

uint64_t dns_tick(struct front *f, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (struct dns_ask **at = &f->dns_asks; *at;) {
		struct dns_ask *a = *at;

		if (a->due > now) {
			next = a->due < next ? a->due : next;
			at = &a->next;
			continue;
		}
		*at = a->next;
		f->n_dns_asks--;
		free(a);
	}
	return next;
}
