/* SPDX-License-Identifier: Apache-2.0 */
/* seal/pile.h - header fields of HTTP/2 as they arrive, and then as one head
 *
 * What HTTP/1 would refuse in a name or value is refused here too, so nothing reaches a rule or a server through one
 * version that could not through the other.
 */
#ifndef VITRINE_SEAL_PILE_H
#define VITRINE_SEAL_PILE_H

#include "http/head.h"

struct pile {
	struct buf text;
	struct {
		size_t name, n_name, value, n_value;
	} v[HTTP_FIELDS_MAX];
	size_t n;
	bool is_bad; /* too many, too long, or not a field */
};

void pile_done(struct pile *p); /* wipes */
void pile_clear(struct pile *p);
void pile_add(struct pile *p, struct str name, struct str value);

/* A request head with the pseudo-fields in their places and :authority as Host; -EBADMSG. */
int pile_request(const struct pile *p, struct http_head *ret, struct err *e);
/* A response head. */
int pile_response(const struct pile *p, struct http_head *ret, struct err *e);

#endif
