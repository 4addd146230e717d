/* SPDX-License-Identifier: Apache-2.0 */
/* gate/resolve.h - names to addresses, asked of the host's own name servers
 *
 * Only names that a rule allows come here. An answer is remembered for as long as it says (at least 5 s, at most
 * 5 min), so that the address that was judged is the one that is dialled.
 */
#ifndef VITRINE_GATE_RESOLVE_H
#define VITRINE_GATE_RESOLVE_H

#include "gate/dns.h"
#include "gate/turn.h"

struct resolver;

/* n is 0 and code says why when there is no address. */
typedef void resolved_fn(void *arg, const struct addr *v, size_t n, unsigned code);

struct resolver *resolver_new(struct turn *t);

/* resolv.conf, a line "---", hosts. */
void resolver_config(struct resolver *r, const char *text);
bool resolver_is_stale(const struct resolver *r); /* never configured, or half a minute ago */

/* Calls fn at once or later, exactly once. */
void resolver_find(struct resolver *r, const char *name, resolved_fn *fn, void *arg);

/* Time-outs; milliseconds to the next one, -1: none. */
int resolver_tick(struct resolver *r);

#endif
