/* SPDX-License-Identifier: Apache-2.0 */
/* seal/login.h - logins made inside: tokens are taken out of the answer that gives them out
 *
 * An agent that logs in posts to an endpoint of its service, and the answer holds tokens. They go into the vault and to
 * the keeper; the program inside gets the same answer with placeholders of the same length in their place, which work
 * from then on: in header fields for the login's hosts, and in bodies for the endpoints' (a token is refreshed there).
 */
#ifndef VITRINE_SEAL_LOGIN_H
#define VITRINE_SEAL_LOGIN_H

#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "seal/vault.h"

#define LOGINS_MAX 8
#define LOGIN_ANSWER_MAX ((size_t)64 * 1024)
#define LOGIN_SEED 32

struct login {
	char *name;
	char **hosts;     /* tokens are for these */
	char **endpoints; /* host/path */
	char **doors;     /* the endpoints' hosts */
	char **tokens;    /* keys of the answer, wherever they stand */
	size_t n_hosts, n_endpoints, n_doors, n_tokens;
};

struct logins {
	struct login v[LOGINS_MAX];
	size_t n;
	uint8_t seed[LOGIN_SEED]; /* of the placeholders */
};

/* One of "logins" in the terms; ERR_CONFIG. */
int logins_add(struct logins *l, const struct json *o, struct err *e);
void logins_done(struct logins *l);

/* The login whose endpoint that is, or NULL. path may have a query. */
const struct login *logins_find(const struct logins *l, const char *host, struct str path);

/* Takes every token out of the answer in *text, which keeps its length, and into the vault. How many there were;
 * -EBADMSG: it cannot be told where they stand. */
int login_take(const struct logins *all, const struct login *l, struct vault *v, struct buf *text,
	       struct err *e);

#endif
