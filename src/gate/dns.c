/* SPDX-License-Identifier: Apache-2.0 */
/* gate/dns.c - see dns.h */
#include "gate/dns.h"

#define HEADER 12
#define CLASS_IN 1
#define TYPE_CNAME 5
#define TYPE_OPT 41
#define TTL 60 /* of our own answers: an address stays its name's as long as the sandbox runs */

struct cursor {
	const uint8_t *p;
	size_t n, at;
};

static bool get16(struct cursor *c, uint16_t *ret)
{
	if (c->n - c->at < 2)
		return false;
	*ret = (uint16_t)(c->p[c->at] << 8 | c->p[c->at + 1]);
	c->at += 2;
	return true;
}

static bool get32(struct cursor *c, uint32_t *ret)
{
	uint16_t hi, lo;

	if (!get16(c, &hi) || !get16(c, &lo))
		return false;
	*ret = (uint32_t)hi << 16 | lo;
	return true;
}

static bool skip(struct cursor *c, size_t n)
{
	if (c->n - c->at < n)
		return false;
	c->at += n;
	return true;
}

/* A name as dotted text. Pointers only lead back, so this ends. Bytes that a host name has not make the name "?",
 * which equals nothing; a dot inside a label would be a way to be taken for another name. */
static bool get_name(struct cursor *c, char ret[HOST_TEXT])
{
	size_t at = c->at, n = 0, limit = c->n;
	bool has_jumped = false, is_odd = false;

	for (;;) {
		uint8_t len;

		if (at >= limit)
			return false;
		len = c->p[at];
		if (len >= 0xc0) {
			size_t to;

			if (at + 1 >= c->n)
				return false;
			to = (size_t)(len & 0x3f) << 8 | c->p[at + 1];
			if (to >= at)
				return false;
			if (!has_jumped)
				c->at = at + 2;
			has_jumped = true;
			limit = at; /* strictly back */
			at = to;
			continue;
		}
		if (len > 63 || at + 1 + len > c->n)
			return false;
		at++;
		if (len == 0)
			break;
		if (n + len + 1 > HOST_MAX + 1)
			return false;
		for (size_t i = 0; i < len; i++) {
			char ch = (char)c->p[at + i];

			if (ch >= 'A' && ch <= 'Z')
				ch = (char)(ch + 32);
			is_odd |= !((ch >= 'a' && ch <= 'z') || (ch >= '0' && ch <= '9') ||
				    ch == '-' || ch == '_');
			ret[n++] = ch;
		}
		ret[n++] = '.';
		at += len;
	}
	if (!has_jumped)
		c->at = at;
	n -= n > 0; /* the last dot */
	ret[n] = '\0';
	if (is_odd)
		memcpy(ret, "?", 2);
	return true;
}

/* ---- questions from inside ---- */

static bool get_question(struct cursor *c, struct dns_query *q)
{
	size_t from = c->at;
	uint16_t class;

	if (!get_name(c, q->name))
		return false;
	q->raw_n = c->at - from;
	/* As long as its text: there was no pointer in it. */
	if (q->raw_n > sizeof(q->raw) ||
	    (!str_eq(q->name, "?") && q->raw_n != strlen(q->name) + (q->name[0] ? 2 : 1)))
		return false;
	memcpy(q->raw, c->p + from, q->raw_n);
	return get16(c, &q->type) && get16(c, &class) && class == CLASS_IN;
}

int dns_parse_query(const uint8_t *p, size_t n, struct dns_query *ret)
{
	struct cursor c = { .p = p, .n = n };
	struct dns_query q = { 0 };
	uint16_t flags, count[4];
	struct host_id h;
	const char *why;

	if (!get16(&c, &q.id) || !get16(&c, &flags))
		return -EBADMSG;
	for (int i = 0; i < 4; i++)
		if (!get16(&c, &count[i]))
			return -EBADMSG;
	/* A question, opcode 0, one of it, no answers. */
	if (flags & 0x8000 || (flags >> 11 & 15) != 0 || count[0] != 1 || count[1] || count[2] ||
	    count[3] > 1)
		return -EBADMSG;
	q.wants_recursion = flags & 0x0100;
	if (!get_question(&c, &q))
		return -EBADMSG;
	if (count[3] == 1) {
		uint16_t type;

		if (c.n - c.at < 11 || c.p[c.at] != 0)
			return -EBADMSG;
		c.at++;
		if (!get16(&c, &type))
			return -EBADMSG;
		q.has_edns = type == TYPE_OPT;
	}
	q.is_host = host_parse(q.name, strlen(q.name), &h, &why) == 0 && !h.is_addr;
	*ret = q;
	return 0;
}

/* ---- our answers ---- */

static void put16(struct buf *b, unsigned v)
{
	buf_putc(b, (char)(v >> 8));
	buf_putc(b, (char)v);
}

static void put_opt(struct buf *b, const char *why)
{
	size_t n = why ? strlen(why) : 0;

	buf_putc(b, 0);
	put16(b, TYPE_OPT);
	put16(b, DNS_MAX);
	put16(b, 0);
	put16(b, 0);
	put16(b, n ? (unsigned)(6 + n) : 0);
	if (n == 0)
		return;
	put16(b, 15); /* extended error */
	put16(b, (unsigned)(2 + n));
	put16(b, 18); /* prohibited */
	buf_add(b, why, n);
}

void dns_put_answer(struct buf *b, const struct dns_query *q, unsigned code, const struct addr *v,
		    size_t n, const char *why)
{
	put16(b, q->id);
	put16(b, 0x8080 | (q->wants_recursion ? 0x0100U : 0) | code);
	put16(b, 1);
	put16(b, (unsigned)n);
	put16(b, 0);
	put16(b, q->has_edns);
	buf_add(b, q->raw, q->raw_n);
	put16(b, q->type);
	put16(b, CLASS_IN);
	for (size_t i = 0; i < n; i++) {
		bool is_v4 = q->type == DNS_A;

		put16(b, 0xc000 | HEADER);
		put16(b, q->type);
		put16(b, CLASS_IN);
		put16(b, 0);
		put16(b, TTL);
		put16(b, is_v4 ? 4 : 16);
		buf_add(b, v[i].b + (is_v4 ? 12 : 0), is_v4 ? 4 : 16);
	}
	if (q->has_edns)
		put_opt(b, why);
}

/* ---- questions of our own ---- */

void dns_put_query(struct buf *b, uint16_t id, const char *name, uint16_t type)
{
	put16(b, id);
	put16(b, 0x0100);
	put16(b, 1);
	put16(b, 0);
	put16(b, 0);
	put16(b, 1);
	while (*name) {
		size_t n = strcspn(name, ".");

		buf_putc(b, (char)n);
		buf_add(b, name, n);
		name += n + (name[n] == '.');
	}
	buf_putc(b, 0);
	put16(b, type);
	put16(b, CLASS_IN);
	put_opt(b, NULL);
}

struct record {
	char name[HOST_TEXT];
	uint16_t type, class, len;
	uint32_t ttl;
	size_t at;
};

static bool get_record(struct cursor *c, struct record *r)
{
	if (!get_name(c, r->name) || !get16(c, &r->type) || !get16(c, &r->class) ||
	    !get32(c, &r->ttl) || !get16(c, &r->len))
		return false;
	r->at = c->at;
	return skip(c, r->len);
}

static void take_address(const struct cursor *c, const struct record *r, struct dns_answer *ret)
{
	struct addr a = { 0 };

	if (ret->n == DNS_ADDRS)
		return;
	if (r->type == DNS_A && r->len == 4)
		a = addr_from_v4(c->p + r->at);
	else if (r->type == DNS_AAAA && r->len == 16)
		memcpy(a.b, c->p + r->at, 16);
	else
		return;
	ret->v[ret->n++] = a;
	if (r->ttl < ret->ttl)
		ret->ttl = r->ttl;
}

/* One pass per link of the chain of names: records may come in any order. */
static bool follow(struct cursor c, unsigned count, char name[HOST_TEXT], uint16_t type,
		   struct dns_answer *ret)
{
	char next[HOST_TEXT] = "";

	for (unsigned i = 0; i < count; i++) {
		struct record r;

		if (!get_record(&c, &r))
			return false;
		if (r.class != CLASS_IN || !str_eq(r.name, name))
			continue;
		if (r.type == type) {
			take_address(&c, &r, ret);
		} else if (r.type == TYPE_CNAME) {
			struct cursor at = { .p = c.p, .n = c.n, .at = r.at };

			if (!get_name(&at, next))
				return false;
			if (r.ttl < ret->ttl)
				ret->ttl = r.ttl;
		}
	}
	memcpy(name, next, sizeof(next));
	return true;
}

int dns_parse_answer(const uint8_t *p, size_t n, uint16_t id, const char *name, uint16_t type,
		     struct dns_answer *ret)
{
	struct cursor c = { .p = p, .n = n };
	uint16_t got_id, flags, count[4], got_type, class;
	char at[HOST_TEXT];
	struct dns_answer a = { .ttl = 3600 };

	if (!get16(&c, &got_id) || !get16(&c, &flags))
		return -EBADMSG;
	for (int i = 0; i < 4; i++)
		if (!get16(&c, &count[i]))
			return -EBADMSG;
	if (got_id != id || !(flags & 0x8000) || count[0] != 1 || !get_name(&c, at) ||
	    !get16(&c, &got_type) || !get16(&c, &class) || !str_eq(at, name) || got_type != type ||
	    class != CLASS_IN)
		return -EBADMSG;
	a.code = flags & 15;
	a.is_cut = flags & 0x0200;
	for (int i = 0; a.n == 0 && at[0] && i < 12; i++)
		if (!follow(c, count[1], at, type, &a)) {
			if (!a.is_cut)
				return -EBADMSG;
			break;
		}
	*ret = a;
	return 0;
}
