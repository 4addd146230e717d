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
#include "policy/pathrule.h"
#include "seal/vault.h"

#define LOGINS_MAX 8
#define LOGIN_ANSWER_MAX ((size_t)64 * 1024)
#define WATCHED_ANSWER_MAX ((size_t)1024 * 1024)
#define LOGIN_SEED 32

struct login {
	char *name;
	char **hosts;     /* tokens are for these */
	char **endpoints; /* host/path: a POST there gives out tokens */
	char **doors;     /* the endpoints' hosts */
	char **tokens;    /* keys of the answer, wherever they stand */
	char **closed; /* host/prefix: below it nothing but the endpoints and the pages is asked for */
	char **marks;            /* how a token begins */
	struct path_rules pages; /* METHOD host/path: known requests below closed */
	struct path_rules
		texts; /* requests whose answers are models' words: never looked through for marks */
	size_t n_hosts, n_endpoints, n_doors, n_tokens, n_closed, n_marks;
};

struct logins {
	struct login v[LOGINS_MAX];
	size_t n;
	uint8_t seed[LOGIN_SEED]; /* of the placeholders */
};

/* One of "logins" in the terms; ERR_CONFIG. */
int logins_add(struct logins *l, const struct json *o, struct err *e);
void logins_done(struct logins *l);

/* The login whose endpoint that is, or NULL. path may have a query, and is in its canonical form. */
const struct login *logins_find(const struct logins *l, const char *host, struct str path);

/* Does a login have an endpoint on this host? */
bool logins_cover(const struct logins *l, const char *host);
/* Is this a host that a login's tokens are for, or that gives them out? Also before anybody has logged in. */
bool logins_concern(const struct logins *l, const char *host);

/* May it be asked for? 0, or -EACCES with the sentence: it lies where a login gives out tokens, and is no request that the
 * agent is known to make. Letters are compared without their case, because some servers do. */
int logins_judge(const struct logins *l, const char *host, struct str method, struct str path,
		 struct err *e);

/* The login whose tokens an answer of JSON to this request must not hold, or NULL. */
const struct login *logins_watch(const struct logins *l, const char *host, struct str path);

/* How the token begins that stands in the text and is no placeholder, or NULL: one of the marks, followed by as much as a
 * token has. A mark of few letters is one only where a word begins: "rt_" stands in "report_to" too. Also a token that is
 * written with the escapes of JSON or of an address, up to four times over, or in UTF-16; and one in which the text ends, where
 * it may be cut. */
const char *login_token_in(const struct login *l, const struct vault *v, struct str text,
			   bool may_be_cut);

/* Takes every token out of the answer in *text, which keeps its length, and into the vault. How many there were;
 * -EBADMSG: it cannot be told where they stand. An answer of failure need not be JSON, but holds no token. */
int login_take(const struct logins *all, const struct login *l, struct vault *v, bool is_success,
	       struct buf *text, struct err *e);

#endif
