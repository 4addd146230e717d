/* SPDX-License-Identifier: Apache-2.0 */
/* core/secrets.h - the secrets a policy names, for one sandbox: placeholders for the plan, values for the keeper */
#ifndef VITRINE_CORE_SECRETS_H
#define VITRINE_CORE_SECRETS_H

#include "plan/plan.h"
#include "secret/secret.h"

struct secrets {
	struct secret *v;
	struct secret_fact *facts; /* of these, and then of logins that are not there yet */
	char **placeholders, **terms, **texts, **logins;
	size_t n, n_facts;
};

/* Is there such a secret? One of a known service (secret/service.c) is also there when the caller's environment holds its
 * variable: it is taken from there at every start, and inside the variable holds the placeholder. A login is of use even when it is
 * not there: it can be made inside. */
bool secrets_has(const char *state_dir, const char *name);
int secrets_look(struct secrets *s, const char *state_dir, const char *sandbox,
		 const struct policy *p, struct err *e);
/* Reads the values, from wherever they are. As late as possible: only when a sandbox is about to start. The array is
 * the caller's own, on its stack: *s may lie in memory that others share. */
int secrets_fetch(const struct secrets *s, const char *state_dir, struct buf values[SECRETS_MAX],
		  struct err *e);
void secrets_wipe(struct buf values[SECRETS_MAX]);
void secrets_done(struct secrets *s);

#endif
