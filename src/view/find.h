/* SPDX-License-Identifier: Apache-2.0 */
/* view/find.h - the walk that scan and sweep share: policy matches and git dirs, in one pass
 *
 * Internal to view/. Callbacks are made after a directory was read to its end, so they may move what they are
 * shown.
 */
#ifndef VITRINE_VIEW_FIND_H
#define VITRINE_VIEW_FIND_H

#include "view/match.h"
#include "view/view.h"
#include "view/walk.h"

enum {
	FIND_HIDE = BIT(1),    /* look for hide patterns */
	FIND_PROTECT = BIT(2), /* look for protect patterns and git dirs */
	FIND_NOGIT = BIT(4),   /* in a repository that the policy takes back: no git dirs */
};

struct find_spot {
	int dir_fd;
	const char *name;
	const char *rel;
	unsigned char type; /* DT_* as the directory said; may be outdated */
	enum hit_kind kind;
	const char *rule; /* "git" for a .git file or link */
};

struct find_ops {
	int (*match)(void *arg, const struct find_spot *s, struct err *e);
	/* A git dir (rel may be "": the workspace itself is a bare repository). */
	int (*gitdir)(void *arg, int fd, const char *rel, struct err *e);
	/* A regular file of a directory that was read. rel is its directory's, below root_fd. May be NULL. */
	void (*file)(void *arg, int dir_fd, const char *rel, const char *name);
	/* As in walk.h. */
	int (*refused)(void *arg, int parent_fd, const char *rel, const char *name, int num);
};

struct find_job {
	int root_fd;
	const char *under; /* where root_fd lies below the workspace; "" for the workspace itself */
	unsigned want;     /* FIND_* */
	const struct policy *p;
	const struct matcher *m;
	const struct find_ops *ops;
	void *arg;
	const struct walk_list *list; /* of a walk of the whole workspace; may be NULL */
};

int find_run(const struct find_job *job, struct walk_stats *stats, struct err *e);

/* The rule of a file that is hidden only when a token stands in it. */
#define FIND_TOKEN_RULE "a token in it"
#define FIND_GIT_RULE "git"

/* Does the policy protect a repository whose git dir is rel (a .git directory or a bare one)? */
bool find_git_wanted(const struct policy *p, const char *rel);

#endif
