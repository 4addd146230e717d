/* SPDX-License-Identifier: Apache-2.0 */
/* seal/terms.h - what seal has been told, as one piece that is replaced as a whole
 *
 *     { "allow": ["GET api.test/x"], "deny": [], "git": {"fetch": [], "push": []},
 *       "secrets": [{"name": "n", "placeholder": "p...", "hosts": ["h"], "headers": [], "in": ["header"]}],
 *       "logins": [{"name": "n", "hosts": ["h"], "endpoints": ["h/path"], "tokens": ["access_token"], ...}] }
 *
 * Exchanges keep a reference to the rules they began with. What they mask comes from the newest ones: a long answer can
 * hold a value that was set after its request.
 */
#ifndef VITRINE_SEAL_TERMS_H
#define VITRINE_SEAL_TERMS_H

#include "policy/pathrule.h"
#include "seal/git.h"
#include "seal/login.h"
#include "seal/vault.h"

struct terms;

/* Tokens were taken: the answer as the server gave it; empty: it was no success, and nobody is logged in by it. */
typedef void terms_login_fn(void *arg, struct terms *r, const char *name, struct str answer);

struct terms {
	unsigned refs;
	struct path_rules paths;
	struct git_rules git;
	struct vault vault;
	struct logins logins;
	terms_login_fn *on_login;
	void *arg;
	struct terms *newer; /* those that replaced these; a reference */
};

/* Empty ones; their memory for secrets is reserved here, so two are made before confinement. */
struct terms *terms_new(void);
int terms_parse(struct terms *r, const char *text, size_t n, struct err *e);
struct terms *terms_ref(struct terms *r);
void terms_unref(struct terms *r);
/* Those in force now. */
struct terms *terms_newest(struct terms *r);

/* The set of secrets one of whose hosts has git rules: they do not write unless a path rule lists the request. */
uint64_t terms_guarded(const struct terms *r);

#endif
