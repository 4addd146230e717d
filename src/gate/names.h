/* SPDX-License-Identifier: Apache-2.0 */
/* gate/names.h - every allowed name gets an address of its own inside, and the address leads back to the name */
#ifndef VITRINE_GATE_NAMES_H
#define VITRINE_GATE_NAMES_H

#include "policy/addr.h"

#define NAMES_MAX 65536 /* in the life of a sandbox */

struct names {
	char **v;
	size_t n, cap;
	uint32_t *slots; /* index + 1 by hash; 0: free */
	size_t n_slots;
};

void names_init(struct names *t);
void names_done(struct names *t);

/* The name's two addresses, given out when it has none. -ENOSPC when there are no more. */
int names_address(struct names *t, const char *name, struct addr *ret4, struct addr *ret6);

/* Is it from our ranges, and if so whose is it? NULL with *ret_ours: nobody's. */
const char *names_find(const struct names *t, const struct addr *a, bool *ret_ours);

#endif
