/* SPDX-License-Identifier: Apache-2.0 */
/* policy/addr.h - host names and addresses in their one spelling
 *
 * A name or address from outside has many spellings and a rule must not be dodged by choosing another: everything is
 * brought into one form here or refused. An IPv4 address is kept as its IPv4-mapped IPv6 form, so there is one kind
 * of address and one kind of prefix.
 */
#ifndef VITRINE_POLICY_ADDR_H
#define VITRINE_POLICY_ADDR_H

#include "base/buf.h"
#include "base/err.h"

#define HOST_MAX 253  /* bytes of a name */
#define ADDR_TEXT 48  /* bytes of an address as text, with its NUL */
#define HOST_TEXT 256 /* a name or an address as text, with its NUL */

struct addr {
	uint8_t b[16];
};

/* What a range is for; everything but public is refused unless a rule names it. */
enum addr_class {
	ADDR_PUBLIC,
	ADDR_LOOPBACK,
	ADDR_LINK_LOCAL, /* metadata services of clouds live here */
	ADDR_PRIVATE,
	ADDR_SHARED, /* carriers' NAT, and a metadata service */
	ADDR_MULTICAST,
	ADDR_RESERVED,
	ADDR_CLASS_COUNT_
};

/* A name (lower case, no dot at the end) or an address. */
struct host_id {
	bool is_addr;
	struct addr addr;
	char name[HOST_TEXT];
};

bool addr_is_v4(const struct addr *a);
bool addr_eq(const struct addr *a, const struct addr *b);
struct addr addr_from_v4(const uint8_t v4[4]);
bool addr_in(const struct addr *a, const struct addr *net, unsigned bits);
void addr_text(const struct addr *a, char ret[ADDR_TEXT]);

/* Strict: four decimal numbers without leading zeros, or IPv6 as in RFC 4291 without a zone. */
int addr_parse(const char *s, size_t n, struct addr *ret);

/* The class, and the prefix length of the range that gave it (0 for public). An address that carries another one
 * (mapped, NAT64, 6to4, Teredo) has the class of the worse of the two. */
enum addr_class addr_classify(const struct addr *a, unsigned *ret_bits);
const char *addr_class_name(enum addr_class c);

/* Anything a client may give as a host; -EINVAL with the reason in *ret_why. One dot at the end is taken away. */
int host_parse(const char *s, size_t n, struct host_id *ret, const char **ret_why);

/* "host:port", "[v6]:port"; the port must be there unless `port` is given (not 0) as the default. */
int host_port_parse(const char *s, size_t n, uint16_t port, struct host_id *ret, uint16_t *ret_port,
		    const char **ret_why);

#endif
