/* SPDX-License-Identifier: Apache-2.0 */
/* view/gitcfg.h - git configuration files: read one, and say whether a new one is harmless
 *
 * Pure and fuzzed: the text comes from inside. gitcfg.c knows the grammar, gitcfg_keys.c is the one decision about keys.
 */
#ifndef VITRINE_VIEW_GITCFG_H
#define VITRINE_VIEW_GITCFG_H

#include "base/buf.h"
#include "base/err.h"

#define GITCFG_NEW_MAX (64 * KIB) /* a new config larger than this is not harmless */

struct gitcfg_item {
	const char *section; /* lower case */
	const char *sub;     /* as written; NULL when there is none */
	const char *key;     /* lower case */
	const char *value;   /* NULL: a key without "=", that is, true */
	/* Where it stands in the text: from the key to behind the end of the line; a comment behind the value, or NULL. */
	const char *at, *comment, *end;
};

enum gitcfg_grammar {
	GITCFG_GIT,    /* all that git itself accepts */
	GITCFG_STRICT, /* only what `git config` writes: one way to say a thing */
};

/* Calls fn for each entry; a non-zero result ends the reading and is returned. -EINVAL: not in the grammar. */
typedef int (*gitcfg_fn)(void *arg, const struct gitcfg_item *it);
int gitcfg_read(const char *text, size_t n, enum gitcfg_grammar grammar, gitcfg_fn fn, void *arg);

/* Adds the text to ret without the entries that are not to be kept, and without sections that have none left. 0; -EINVAL:
 * not in the strict grammar, or larger than a new config may be; -EMSGSIZE: ret is too small. */
typedef bool (*gitcfg_keep_fn)(void *arg, const struct gitcfg_item *it);
int gitcfg_cut(const char *text, size_t n, gitcfg_keep_fn keep, void *arg, struct buf *ret);

/* Does every entry only describe, and none name something to run, to include or to open elsewhere? Returns NULL, or
 * why not ("git config key core.fsmonitor"), to be freed. is_beneath says whether a path in the config, as git
 * would resolve it, stays in the workspace; it is asked for core.worktree. */
typedef bool (*gitcfg_path_fn)(void *arg, const char *path);
char *gitcfg_objection(const char *text, size_t n, gitcfg_path_fn is_beneath, void *arg);
/* Adds to ret what of the text may stay: all but the entries that gitcfg_objection() objects to. False: nothing may. */
bool gitcfg_rest(const char *text, size_t n, gitcfg_path_fn is_beneath, void *arg, struct buf *ret);
/* The same for one entry; no path is taken to stay in the workspace. */
bool gitcfg_is_harmless(const struct gitcfg_item *it);

/* Does the value name something that git would run or read as more configuration or attributes? */
enum gitcfg_ref {
	GITCFG_REF_NONE,
	GITCFG_REF_HOOKS,   /* a directory of hooks, relative to the work tree */
	GITCFG_REF_INCLUDE, /* another config file, relative to this one */
	GITCFG_REF_FILE,    /* a file, relative to the work tree */
	GITCFG_REF_COMMAND, /* a shell command that may name files, relative to the work tree */
	GITCFG_REF_WORKTREE,
	GITCFG_REF_ALIAS, /* the same behind "!", else words of git's */
	GITCFG_REF_COUNT_
};
enum gitcfg_ref gitcfg_refers(const struct gitcfg_item *it);

#endif
