/* SPDX-License-Identifier: Apache-2.0 */
/* view/scan.h - between scan.c and scan_git.c */
#ifndef VITRINE_VIEW_SCAN_H
#define VITRINE_VIEW_SCAN_H

#include "view/view.h"
#include "view/ws.h"

struct scanner {
	struct ws ws;
	const struct policy *p;
	struct scan *s;
	const struct made *made; /* may be NULL */
	bool is_config; /* what is added now is a git configuration */
	int failed;     /* from a callback that cannot say so itself */
	struct err err;
};

#define RULE_UNREADABLE "unreadable"

/* What looking up a pointer's target failed with: does it lead nowhere, so that nothing is to be protected? Else the
 * start is refused with scan_unseen(): what cannot be looked at is not harmless. */
bool scan_is_nowhere(int r);
int scan_unseen(int r, const char *rel, struct err *e);
/* What its owner closed to us git cannot read for us either, and nobody inside can change that. */
bool scan_is_anothers(int r, int dir_fd, const char *name);

/* Adds one hit; scan_add also what a link leads to. st is the lstat of rel. */
int scan_put(struct scanner *sc, char *rel, enum hit_kind kind, const char *rule,
	     const struct stat *st, struct err *e);
int scan_add(struct scanner *sc, char *rel, enum hit_kind kind, const char *rule,
	     const struct stat *st, struct err *e);

/* All that a git dir implies, and what a .git file points to. */
int scan_gitdir(struct scanner *sc, int fd, const char *rel, struct err *e);
int scan_gitfile(struct scanner *sc, int dir_fd, const char *name, const char *rel, struct err *e);
/* A scan_ref_fn: protects what is named, where it exists. */
int scan_ref(void *arg, char *rel, unsigned flags, struct err *e);

/* Calls fn with every path below the workspace that a config names as hooks, include, attributes or in a command: as text,
 * normalised, whether it exists or not. Includes are read too, and what the configs outside name counts for this work tree.
 * A config that is not there names nothing itself. */
struct scan_config {
	const struct ws *ws;
	const struct scan *scan; /* for what the configs outside name; NULL: nothing */
	const char *gitdir;      /* the repository, below the workspace */
	const char *name;        /* the file in it */
	bool is_new;             /* made inside: only core.worktree is taken from it */
};
enum {
	REF_CONFIG = BIT(3), /* more configuration */
	REF_HOOKS = BIT(0),  /* a directory of hooks */
	REF_FILE = BIT(1),   /* in a command: counts only when it is no directory */
	REF_UNSURE =
		BIT(2), /* may be any word: counts only for a file that was there at the start */
};
typedef int (*scan_ref_fn)(void *arg, char *rel, unsigned flags, struct err *e);
int scan_config_refs(const struct scan_config *c, scan_ref_fn fn, void *arg, struct err *e);

/* Configs outside the workspace: reads those of the user, and of a repository above; of the git dir that a .git file leads to;
 * and calls fn as above for all that counts for one work tree only. */
int refs_load(struct scan *s, const struct ws *ws, struct err *e);
int refs_load_gitfile(struct scan *s, const struct ws *ws, const char *rel, struct err *e);
int refs_outside(const struct scan *s, const struct ws *ws, scan_ref_fn fn, void *arg,
		 struct err *e);
void refs_done(struct scan *s);

#endif
