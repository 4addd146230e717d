/* SPDX-License-Identifier: Apache-2.0 */
/* view/match.h - "could this name matter?", asked for every name of a workspace
 *
 * Internal to view/. A matcher is compiled from the positive patterns of a policy and answers from the last
 * component alone. It may say yes too often, never too rarely: the truth is items_match() on the whole path,
 * which the caller asks only then.
 */
#ifndef VITRINE_VIEW_MATCH_H
#define VITRINE_VIEW_MATCH_H

#include "policy/policy.h"
#include "view/index.h"

enum {
	MATCH_HIDE = BIT(0),
	MATCH_PROTECT = BIT(1),
	/* Names by which git recognises a repository; see git.h. */
	MATCH_GIT_HEAD = BIT(2),
	MATCH_GIT_OBJECTS = BIT(3),
	MATCH_GIT_REFS = BIT(4),
	MATCH_GIT_COMMONDIR = BIT(5),
	MATCH_GIT_PART = BIT(
		6), /* a name in a repository that git acts upon: config, hooks, pre-commit, ... */
	MATCH_ELSEWHERE = BIT(8), /* the name could match, were its directory called otherwise */
	MATCH_TOKEN = BIT(7),     /* hidden when a token stands in it: names_hide_with_token */
};

struct match_name {
	const char *text; /* borrowed from the policy or static */
	uint32_t len, bits;
};

struct match_glob {
	const char *
		dir; /* literal beginning of the pattern up to a slash; "" when it can match anywhere */
	size_t dir_len;
	const char *prefix, *suffix; /* literal ends of the last component */
	size_t prefix_len, suffix_len;
	unsigned bits;
};

struct matcher {
	struct match_name *names; /* open addressing, a power of two */
	size_t names_n, names_size;
	struct match_glob *globs;
	size_t globs_n, globs_cap;
	uint64_t lens[256]; /* by first byte: lengths of literal names, bit 63 for longer ones */
	bool by_first[256]; /* some glob begins with it */
	bool by_last[256];  /* some glob without a prefix ends with it */
	bool by_any;        /* some glob has neither end */
};

/* Borrows the policy's texts. */
void matcher_init(struct matcher *m, const struct policy *p);
void matcher_done(struct matcher *m);

/* All that a matcher of this policy, and of this program, answers from; and who is to see the names. */
void matcher_rules(const struct policy *p, struct index_rules *ret);

/* MATCH_* bits for a name of len bytes in the directory rel (NULL: somewhere). */
unsigned matcher_probe(const struct matcher *m, const char *rel, size_t rel_len, const char *name,
		       size_t len);

/* The text of the rule that decides for rel, or NULL when none does or it was taken back. */
const char *matcher_rule(const struct items *l, const char *rel);

#endif
