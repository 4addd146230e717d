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
	int failed; /* from a callback that cannot say so itself */
	struct err err;
};

#define RULE_UNREADABLE "unreadable"

/* What looking up a pointer's target failed with: does it lead nowhere, so that nothing is to be protected? Else the
 * start is refused with scan_unseen(): what cannot be looked at is not harmless. */
bool scan_is_nowhere(int r);
int scan_unseen(int r, const char *rel, struct err *e);

/* Adds one hit; scan_add also what a link leads to. st is the lstat of rel. */
int scan_put(struct scanner *sc, char *rel, enum hit_kind kind, const char *rule,
	     const struct stat *st, struct err *e);
int scan_add(struct scanner *sc, char *rel, enum hit_kind kind, const char *rule,
	     const struct stat *st, struct err *e);

/* All that a git dir implies, and what a .git file points to. */
int scan_gitdir(struct scanner *sc, int fd, const char *rel, struct err *e);
int scan_gitfile(struct scanner *sc, int dir_fd, const char *name, const char *rel, struct err *e);

/* Calls fn with every path below the workspace that a config names as hooks, include, attributes or command: as text,
 * normalised, whether it exists or not. Includes are read too. */
struct scan_config {
	const struct ws *ws;
	int dir_fd;
	const char *gitdir; /* the repository: dir_fd as a path */
	const char *name;   /* the file in it */
};
typedef int (*scan_ref_fn)(void *arg, char *rel, struct err *e);
int scan_config_refs(const struct scan_config *c, scan_ref_fn fn, void *arg, struct err *e);

#endif
