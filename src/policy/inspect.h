/* SPDX-License-Identifier: Apache-2.0 */
/* policy/inspect.h - which hosts are inspected: those that are listed, and those that a path or git rule names */
#ifndef VITRINE_POLICY_INSPECT_H
#define VITRINE_POLICY_INSPECT_H

#include "policy/policy.h"

typedef void inspect_fn(void *arg, const char *host);

/* Calls fn for each, maybe more than once, but for those of inspect.never. */
void inspect_each(const struct policy *p, inspect_fn *fn, void *arg);
/* For one more host, of a secret. */
void inspect_add(const struct policy *p, const char *host, inspect_fn *fn, void *arg);

/* Path and git rules as people read them, a line each behind `word`. */
void inspect_show(const struct policy *p, const char *word, struct buf *out);

/* A rule that needs inspection of a host that is never inspected is refused, not forgotten. */
int inspect_validate(const struct policy *p, struct err *e);

#endif
