/* SPDX-License-Identifier: Apache-2.0 */
/* view/sweep.h - between sweep.c and sweep_git.c */
#ifndef VITRINE_VIEW_SWEEP_H
#define VITRINE_VIEW_SWEEP_H

#include "view/match.h"
#include "view/view.h"
#include "view/ws.h"

#define SWEEP_REST_STAYS                                                                           \
	"; the rest of the file stays" /* behind the rule of a config that lost an entry */

struct sweeper {
	struct ws ws;
	int q_fd;
	const struct policy *p;
	const struct scan *before;
	struct matcher m;
	struct sweep *out;
	unsigned moved;
	int failed; /* the first path that is left, with its story */
	struct err err;
};

/* Takes name out of dir_fd. Failure is remembered, not returned: the rest is swept all the same. */
void sweep_take(struct sweeper *sw, int dir_fd, const char *name, const char *rel,
		const char *rule);
/* The same without a sweeper, into the quarantine of `out`. 0 or -errno. */
int sweep_put_away(struct sweep *out, int dir_fd, const char *name, const char *rel,
		   const char *rule);
/* The same for a path below dir_fd (which is `base` below the workspace). */
void sweep_take_below(struct sweeper *sw, int dir_fd, const char *base, const char *name,
		      const char *rule);

/* A symbolic link under a protected name: leave the one that was there and leads where it led, take any other. */
void sweep_link(struct sweeper *sw, int dir_fd, const char *name, const char *rel, const char *rule,
		const struct stat *st);

/* Remembers a directory of ours, or a file in a repository, that could not be looked into. */
void sweep_unseen(struct sweeper *sw, int r, const char *rel);

int sweep_gitdir(struct sweeper *sw, int fd, const char *rel, struct err *e);
int sweep_gitfile(struct sweeper *sw, int dir_fd, const char *name, const char *rel, struct err *e);

/* A scan_ref_fn: takes what a config of the host names and was not there before. */
int sweep_ref(void *arg, char *rel, unsigned flags, struct err *e);

#endif
