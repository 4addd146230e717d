/* SPDX-License-Identifier: Apache-2.0 */
/* seal/rules.h - what seal has been told, as one piece that is replaced as a whole
 *
 *     { "allow": ["GET api.test/x"], "deny": [], "git": {"fetch": [], "push": []},
 *       "secrets": [{"name": "n", "placeholder": "p...", "hosts": ["h"], "headers": [], "in": ["header"]}] }
 *
 * Exchanges keep a reference to the rules they began with.
 */
#ifndef VITRINE_SEAL_RULES_H
#define VITRINE_SEAL_RULES_H

#include "seal/git.h"
#include "seal/pathrule.h"
#include "seal/vault.h"

struct rules {
	unsigned refs;
	struct path_rules paths;
	struct git_rules git;
	struct vault vault;
};

/* Empty ones; their memory for secrets is reserved here, so two are made before confinement. */
struct rules *rules_new(void);
int rules_parse(struct rules *r, const char *text, size_t n, struct err *e);
struct rules *rules_ref(struct rules *r);
void rules_unref(struct rules *r);

/* A secret whose hosts have git rules is not for writing to their other pages unless a path rule lists it. */
bool rules_guard_writes(const struct rules *r, uint64_t secrets);

#endif
