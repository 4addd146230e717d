/* SPDX-License-Identifier: Apache-2.0 */
/* secret/secret.h - credentials on the host: what they are for, where their values are, and what stands for them inside
 *
 * A secret is a description, in STATE/secrets/NAME.json (owner only), and a value, which lies in the desktop keyring,
 * in STATE/secrets/NAME.value (owner only; not encrypted: whoever can read the user's files can read it), or stays where
 * it comes from: a file, a variable, the output of a command. A description never holds the value. The value goes to
 * vitrine-seal, to the broker where a rule of it names the secret, and nowhere else; inside, a placeholder of the same shape stands for it.
 */
#ifndef VITRINE_SECRET_SECRET_H
#define VITRINE_SECRET_SECRET_H

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"

#define SECRET_VALUE_MAX ((size_t)16 * 1024)
#define SECRET_VALUE_MIN                                                                           \
	8 /* a shorter one would be found by chance and could not be masked (seal/mask.h) */
#define SECRET_NAME_MAX 64
#define SECRETS_MAX 64
#define SECRET_SEED 32

enum secret_source {
	SECRET_STORED,  /* in our owner-only file */
	SECRET_KEYRING, /* in the desktop's, by secret-tool */
	SECRET_FILE,
	SECRET_VARIABLE,
	SECRET_COMMAND,
	SECRET_LOGIN, /* an agent's own token store, by login.c */
	SECRET_SOURCE_COUNT_
};

struct secret_list {
	char **v;
	size_t n;
};

struct secret {
	char *name;
	struct secret_list env;     /* variables that hold the placeholder inside */
	struct secret_list hosts;   /* name or *.name; it goes nowhere else */
	struct secret_list headers; /* only in these; none: in any */
	struct secret_list places;  /* header, query, body */
	enum secret_source source;
	char *from;     /* path, variable or command; NULL for the first two */
	uint64_t cache; /* ns a command's output is used for */
	char *npm; /* "//HOST/PATH/:_authToken": the setting that names the variable inside; or NULL */
	char *around; /* what the variable holds, with "{}" for the placeholder; NULL: the placeholder alone */
	char *shape; /* '?' for a character of alphabet, others as they are */
	char *alphabet;
};

void secret_done(struct secret *s);
void secret_list_add(struct secret_list *l, const char *text);
const char *secret_source_name(enum secret_source s);

/* Letters, digits, '-' and '_', beginning with a letter. */
int secret_check_name(const char *name, struct err *e);
/* Everything but the value: names of variables, hosts, fields. */
int secret_check(const struct secret *s, struct err *e);

/* ---- shape.c: pure ---- */

/* Keeps the known beginning ("sk-ant-"), the length, the dots and which kinds of characters there are; not which stands
 * where. Too short a value gets a shape of its own. */
void secret_take_shape(struct secret *s, struct str value);
/* The same, but of a JWT only the signature is left out: who reads the claims finds them. */
void secret_take_claims(struct secret *s, struct str value);
/* What stands for it in the sandbox that has this seed. Always the same. */
void secret_placeholder(const struct secret *s, const uint8_t seed[SECRET_SEED], struct buf *out);

/* ---- service.c: what is known without being told ---- */

struct secret_service {
	const char *name;
	const char *env[4], *hosts[8], *places[3];
};

extern const struct secret_service secret_services[]; /* ends with a NULL name */
const struct secret_service *secret_service_find(const char *name);
/* Fills in what the caller has not said. */
void secret_apply_service(struct secret *s);

/* ---- login.c: subscriptions an agent was logged in to on the host ---- */

struct secret_login {
	const char *name,
		*path; /* below home; NULL: the host's own lies where we do not read (a keyring) */
	const char *access[2]; /* keys down to the access token */
	const char *tokens[4]; /* every key that holds a token, wherever it stands */
	const char *expires;   /* a number of milliseconds since 1970, or NULL */
	const char *refreshed; /* a time as text, or NULL */
	const char *env[2], *hosts[6];
	const char *endpoint, *client; /* where a token that has ended is renewed, as whom */
	const char *
		form; /* the client's word for itself: the endpoint wants a form, not JSON; or NULL */
	const char *answers[4]; /* what the endpoint calls each of tokens */
	const char *gives[4];   /* host/path of what gives out tokens to who logs in */
	const char *closed[8];  /* host/prefix: below it only `gives` and `pages` are asked for */
	const char *pages[12];  /* METHOD host/path: what the agent is known to ask for there */
	const char *marks[6];   /* how a token begins */
	const char *texts[12];  /* METHOD host/path: requests whose answers are models' words */
	const char *fresh;      /* a store made from such an answer (capture.c) */
};

extern const struct secret_login secret_logins[]; /* ends with a NULL name */
const struct secret_login *secret_login_find(const char *name);
/* Whether the host has that store, or we keep one that was made inside; what it is for, without a look into it. */
bool secret_login_is_there(const struct secret_login *l, const char *home, const char *state_dir,
			   struct secret *ret);
/* -ENOENT: no such login here. */
int secret_login_describe(const char *name, const char *home, const char *state_dir,
			  struct secret *ret, struct err *e);
int secret_login_value(const struct secret *s, struct buf *ret, struct err *e);
/* The store as it lies inside. */
int secret_login_file(const struct secret *s, const uint8_t seed[SECRET_SEED],
		      const char *placeholder, struct buf *out, struct err *e);

/* The time now, as a JSON text. */
void secret_put_now(struct buf *out);

/* ---- capture.c: logins made inside ---- */

/* Where we keep the one of that name. */
char *secret_login_kept(const char *state_dir, const char *name);
/* One of "logins" in what vitrine-seal is told. */
void secret_login_terms(const struct secret_login *l, struct buf *out);
/* Keeps what an endpoint answered, in the agent's own form. 1: kept; 0: nothing in it that lasts (no token, or one that ends and
 * no refresh token);
 * -EEXIST: there is one, and it may not be replaced. */
int secret_login_keep(const struct secret_login *l, const char *state_dir, struct str answer,
		      bool may_replace, struct err *e);
/* The claims of a JWT; false when it is none. */
bool secret_claims(const char *token, struct json_doc *ret);

/* ---- describe.c: as text ---- */

void secret_write(const struct secret *s, struct buf *out);
int secret_read(const char *text, size_t n, struct secret *ret, struct err *e);
/* One of "secrets" in what vitrine-seal is told (seal/terms.h). */
void secret_terms(const struct secret *s, const char *placeholder, struct buf *out);

/* ---- store.c: on disk and in the keyring ---- */

int secret_save(const char *state_dir, struct secret *s, struct str value, struct err *e);
/* Also a login that the host has and nobody has described. */
int secret_load(const char *state_dir, const char *name, struct secret *ret, struct err *e);
int secret_remove(const char *state_dir, const char *name, struct err *e);
/* Names, sorted; each to be freed. */
int secret_names(const char *state_dir, struct secret_list *ret, struct err *e);
void secret_list_done(struct secret_list *l);
/* The value itself. *ret has room for SECRET_VALUE_MAX and is wiped by the caller (secret_wipe). */
int secret_value(const char *state_dir, const struct secret *s, struct buf *ret, struct err *e);
void secret_wipe(struct buf *b);
struct buf secret_buf(void); /* never grows, so no copy is left behind */
struct buf secret_buf_of(size_t max);

/* The seed of a sandbox: the same for a name, another for every other. */
int secret_seed(const char *state_dir, const char *sandbox, uint8_t ret[SECRET_SEED],
		struct err *e);

/* ---- command.c ---- */

/* Runs argv with `in` as its input and takes its output, without one trailing newline; bounded in size and time. */
int secret_run(const char *const *argv, struct str in, struct buf *out, struct err *e);

#endif
