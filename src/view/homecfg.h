/* SPDX-License-Identifier: Apache-2.0 */
/* view/homecfg.h - settings of the user's home that come inside: of git, npm, pip and cargo, and no token among them
 *
 * Each file is read whole and written anew from what a table allows: a key that is not in the table, a value that is not
 * of the key's form, and a file that cannot be read with certainty come not inside. User and password of a URL are left
 * out; a URL with a query, a fragment or a path that looks like a token is left out whole. No host is opened by any of it.
 * Of git's, npm's and pip's settings nothing names a command; cargo's name the linker and the runner of builds, which run
 * inside as everything does there. Pure and fuzzed.
 */
#ifndef VITRINE_VIEW_HOMECFG_H
#define VITRINE_VIEW_HOMECFG_H

#include "base/buf.h"

#define HOMECFG_MAX (256 * KIB) /* a file larger than this is not read */

/* Where a git config is read: conditions of includeIf are about the repository, and paths may begin with "~/". */
struct homecfg_place {
	const char *home, *workspace;
	/* The text of an included file, or false: there is none. May be NULL: nothing is included. */
	bool (*read)(void *arg, const char *path, struct buf *out);
	void *arg;
};

/* Adds what may be seen of the file to out. 0; -EINVAL: the file cannot be read with certainty, and nothing was added. */
int homecfg_git(const char *path, const char *text, size_t n, const struct homecfg_place *place,
		struct buf *out);
int homecfg_npm(const char *text, size_t n, struct buf *out);
int homecfg_pip(const char *text, size_t n, struct buf *out);
int homecfg_cargo(const char *text, size_t n, struct buf *out);

/* A token among the settings, for `vitrine secret import`. */
struct homecfg_token {
	const char *
		key; /* npm: "//HOST/PATH/:_authToken"; pip: "index-url"; cargo: a registry's name, "" for the default one */
	const char *host;   /* NULL: the file does not name it (cargo) */
	const char *value;  /* NULL: there is one that cannot be taken over */
	const char *around; /* pip: the setting as it is inside, with "{}" where the token stood */
};

/* Calls fn for each token of the file. 0; < 0: what fn returned, or -EINVAL where the file cannot be read with certainty. */
typedef int homecfg_token_fn(void *arg, const struct homecfg_token *t);
int homecfg_npm_tokens(const char *text, size_t n, homecfg_token_fn *fn, void *arg);
int homecfg_pip_tokens(const char *text, size_t n, homecfg_token_fn *fn, void *arg);
int homecfg_cargo_tokens(const char *text, size_t n, homecfg_token_fn *fn, void *arg);

/* ---- homecfg_value.c: between the files of homecfg ---- */

/* What a value may be. */
enum homecfg_form {
	FORM_BOOL,
	FORM_NUMBER,
	FORM_WORD, /* letters, digits and - . _ */
	FORM_NAME, /* of a person: one line in which redact() finds no token */
	FORM_TEXT, /* one line without a token; git, npm, pip and cargo only show or compare it */
	FORM_URL, /* SCHEME://HOST/PATH, of http, https, ssh or git: written without user and password */
	FORM_URLS, /* several of them */
	FORM_HOSTS,
};

/* Adds the value as it may be seen, or returns false: it may not. */
bool homecfg_value(enum homecfg_form form, const char *value, struct buf *out);
/* A URL of the list with user and password: where the password (or the user, where there is none) begins and ends; false: the
 * URL has none, or is none. */
bool homecfg_url_secret(const char *url, size_t n, size_t *ret_from, size_t *ret_to);
/* In quotes, as git and TOML read them: a backslash before a quote and before a backslash. */
void homecfg_quote(struct buf *out, const char *text);
/* Looks like a token: long, and of letters and digits without sense. */
bool homecfg_is_token(const char *p, size_t n);

#endif
