/* SPDX-License-Identifier: Apache-2.0 */
/* seal/vault.h - secrets: real values in locked memory, and where they take the place of their placeholders
 *
 * A secret has hosts; only in requests to them, over TLS that was verified, its placeholder becomes its value, in
 * header fields (inside Basic too) and where it was told so in the query or the body. No function here prints.
 */
#ifndef VITRINE_SEAL_VAULT_H
#define VITRINE_SEAL_VAULT_H

#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "seal/mask.h"
#include "seal/swap.h"

#define VAULT_MAX 64                        /* secrets; a set of them is one uint64_t */
#define VAULT_VALUE_MAX ((size_t)16 * 1024) /* bytes of one */
#define VAULT_BYTES                                                                                \
	((size_t)1024 * 1024) /* all values that all secrets have and had: 500 of a usual token */

enum vault_place { VAULT_HEADER = 1, VAULT_QUERY = 2, VAULT_BODY = 4 };

struct vault_entry {
	char *name;
	char *placeholder;
	char **hosts; /* names or *.name */
	size_t n_hosts;
	char **headers; /* only in these; none: in all */
	size_t n_headers;
	char **doors; /* hosts in whose requests' bodies it is swapped as well (login.h) */
	size_t n_doors;
	unsigned places;
	bool is_captured; /* came from an answer, not from the keeper */
	char *value;      /* in the locked memory; NULL: none yet */
	size_t n;
};

/* A value that a secret had before: it is masked for as long as the sandbox lives. */
struct vault_former {
	const struct vault_entry *of;
	const char *value; /* in the locked memory */
	size_t n;
};

struct vault {
	struct vault_entry v[VAULT_MAX];
	size_t n;
	struct vault_former *former;
	size_t n_former, cap_former;
	char *memory; /* locked, not dumped, wiped at the end */
	size_t used, size;
	bool is_locked;
	uint64_t changes; /* how often a value came in */
	struct vault_cached {
		char *host;
		struct words *words;
		uint64_t changes; /* when they were made */
	} cached[8];
	size_t next_cached;
};

/* Reserves the memory; before confinement. */
void vault_init(struct vault *v, size_t bytes);
void vault_done(struct vault *v);

/* One of "secrets" in the configuration; ERR_CONFIG. */
int vault_add(struct vault *v, const struct json *o, struct err *e);
/* The value of an entry that was added; one that it replaces goes on being masked. -ENOENT, -ENOSPC, -EINVAL: a value that
 * cannot be sent, or is shorter than MASK_SHORTEST. */
int vault_set(struct vault *v, const char *name, struct str value);

/* A value that an answer gave out, with what it is for: replaces the one of that name. -ENOSPC, -EINVAL, -EEXIST (the
 * name is the keeper's). */
int vault_capture(struct vault *v, const struct vault_entry *what, const char *placeholder,
		  struct str value);
/* What was captured there holds here too, and every value that a secret had there is masked here. */
/* -ENOSPC: not all of them fit. */
int vault_adopt(struct vault *v, const struct vault *from);

struct vault_entry *vault_find(struct vault *v, const char *name);
bool vault_is_for(const struct vault_entry *s, const char *host);

/* What a request did. */
struct vault_note {
	uint64_t swapped;   /* secrets that went to one of their hosts */
	uint64_t elsewhere; /* placeholders that were seen in a request to another host */
	bool is_over;       /* with the values in it a field or the query is too long */
};

/* The value of a header field as it goes out: NULL when as it is, else to be wiped and freed. */
char *vault_swap_field(const struct vault *v, const char *host, struct str name, struct str value,
		       struct vault_note *note);
/* The same for the query of a target. */
char *vault_swap_query(const struct vault *v, const char *host, struct str target,
		       struct vault_note *note);

/* Does the text begin with one of our placeholders? */
bool vault_is_placeholder(const struct vault *v, struct str text);

/* Does a secret or a captured login belong to this host? */
bool vault_holds_for(const struct vault *v, const char *host);

/* Words to be masked in answers of host: all values that its secrets have and had, as they are and within Basic. */
struct words *vault_words(struct vault *v, const char *host);
/* What a body is, by its Content-Type: a value is written accordingly. */
enum vault_text { VAULT_PLAIN, VAULT_FORM, VAULT_JSON };

/* What is swapped in bodies sent to it (of a login: to its endpoint alone; of the secrets in the set `but` none). */
struct swap *vault_body_swap(const struct vault *v, const char *host, enum vault_text kind,
			     bool is_endpoint, uint64_t but);

void wipe_free(char *s);

#endif
