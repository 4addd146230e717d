/* SPDX-License-Identifier: Apache-2.0 */
/* policy/brokerrule.h - what the broker may do outside, as text in a policy
 *
 *     fetch     URL [secret=NAME]
 *     push      URL REF [create] [update] [delete] [force] [approve] [no-scan] [secret=NAME]
 *     gh        OWNER/REPO [approve] [secret=NAME] [program=/PATH]
 *     commands  NAME=[checkout] [network] /PROGRAM WORD...
 *
 * A URL is https://, ssh://, USER@HOST:PATH, an absolute path, or http:// of this machine's loopback. In a REF, * stands
 * for anything; it never reaches out of the name space it is written in: refs/heads/x* is about branches, tags need
 * refs/tags/. create and update (fast-forward only) hold when no operation is named; delete and force are never implied.
 *
 * A WORD of a command is what its argument must look like: itself, or a pattern in which * and ? stand for anything but
 * a leading '-'. [WORD] may be left out, "..." at the end lets the last one be repeated. Everything here is pure.
 */
#ifndef VITRINE_POLICY_BROKERRULE_H
#define VITRINE_POLICY_BROKERRULE_H

#include "base/err.h"

enum broker_kind { BROKER_FETCH, BROKER_PUSH, BROKER_GH, BROKER_COMMAND, BROKER_KIND_COUNT_ };

enum broker_op {
	BROKER_CREATE = 1,
	BROKER_UPDATE = 2,
	BROKER_DELETE = 4,
	BROKER_FORCE = 8,
	BROKER_APPROVE = 16, /* a person looks at it first */
	BROKER_NO_SCAN = 32, /* new content is not searched for secrets */
};

struct broker_rule {
	enum broker_kind kind;
	char *url; /* as given, without a slash or ".git" at its end; OWNER/REPO; the command's name */
	char *ref;                     /* push */
	char *secret;                  /* or NULL */
	unsigned op;                   /* enum broker_op */
	bool is_checkout, has_network; /* of a command */
	char **words;                  /* command: program and patterns, NULL-ended */
	size_t n_words;
	char *text;
};

struct broker_rules {
	struct broker_rule *v;
	size_t n, cap;
};

int broker_rules_add(struct broker_rules *r, enum broker_kind kind, const char *text,
		     struct err *e);
void broker_rules_done(struct broker_rules *r);

/* The same repository is spelled in few ways: what all of them are compared as. NULL: no URL we would ever use. */
char *broker_url(const char *url);

/* NULL: none. */
const struct broker_rule *broker_may_fetch(const struct broker_rules *r, const char *url);
const struct broker_rule *broker_names(const struct broker_rules *r,
				       const char *url); /* in any rule */
const struct broker_rule *broker_gh(const struct broker_rules *r, const char *repo);
const struct broker_rule *broker_command(const struct broker_rules *r, const char *name);
/* The first rule that permits op (one bit of enum broker_op) on this ref. */
const struct broker_rule *broker_may_push(const struct broker_rules *r, const char *url,
					  const char *ref, enum broker_op op);

/* Do these arguments fit the command's words? On refusal, what and which would. */
int broker_check_args(const struct broker_rule *r, const char *const *argv, size_t n,
		      struct err *e);

/* A name that git and every forge take as a ref, with nothing to be misread in it. */
bool broker_is_ref(const char *ref);

#endif
