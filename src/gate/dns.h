/* SPDX-License-Identifier: Apache-2.0 */
/* gate/dns.h - DNS messages: the question of a client inside, our answer, and the answers of real servers
 *
 * Strict: one question, class IN, names of the letters a host name has. Everything else is not a message.
 */
#ifndef VITRINE_GATE_DNS_H
#define VITRINE_GATE_DNS_H

#include "base/buf.h"
#include "policy/addr.h"

#define DNS_MAX 1232      /* of a datagram, ours and theirs */
#define DNS_ADDRS 16      /* taken from one answer */
#define DNS_TCP_MAX 16384 /* of a message over TCP */

enum { DNS_A = 1, DNS_PTR = 12, DNS_AAAA = 28 };
enum {
	DNS_OK = 0,
	DNS_FORMERR = 1,
	DNS_SERVFAIL = 2,
	DNS_NXDOMAIN = 3,
	DNS_NOTIMP = 4,
	DNS_REFUSED = 5
};

struct dns_query {
	uint16_t id;
	uint16_t type;
	bool wants_recursion;
	bool has_edns;
	bool is_host; /* the name is one a host may have; else it can only be refused */
	char name[HOST_TEXT];
	uint8_t raw[256]; /* the question's name as it came, for the answer (case and all) */
	size_t raw_n;
};

/* 0, or -EBADMSG: not a question (nothing is to be answered). */
int dns_parse_query(const uint8_t *p, size_t n, struct dns_query *ret);

/* An answer: code, and for DNS_OK addresses of the type asked for. `why` goes along as an extended error. */
void dns_put_answer(struct buf *b, const struct dns_query *q, unsigned code, const struct addr *v,
		    size_t n, const char *why);

/* A question of our own. */
void dns_put_query(struct buf *b, uint16_t id, const char *name, uint16_t type);

struct dns_answer {
	unsigned code;
	bool is_cut; /* ask again over TCP */
	struct addr v[DNS_ADDRS];
	size_t n;
	uint32_t ttl; /* the least one */
};

/* The answer to exactly that question; CNAMEs are followed within the message. -EBADMSG: something else, ignore it. */
int dns_parse_answer(const uint8_t *p, size_t n, uint16_t id, const char *name, uint16_t type,
		     struct dns_answer *ret);

#endif
