/* SPDX-License-Identifier: Apache-2.0 */
/* view/outcome.h - may this come out? One decision for everything that goes from a sandbox to the host
 *
 * The sweep of a workspace written in place, apply, undo, restore and cp ask here. The caller gathers facts: the policy,
 * what the host has and protects (outcome_host_load), and the tree as it would be afterwards, through callbacks. The
 * answer needs no file system of its own, so it can be asked about a tree that does not exist yet.
 */
#ifndef VITRINE_VIEW_OUTCOME_H
#define VITRINE_VIEW_OUTCOME_H

#include <sys/stat.h>

#include "base/buf.h"
#include "view/git.h"
#include "view/view.h"

/* ---- one file of a repository ---- */

/* What a pointer in a file of the directory `base` means: 0 and the path below the workspace; -ENOENT the same, but
 * nothing is there; any other error: it leads out, or through a symbolic link. See ws_target(). */
typedef int (*outcome_target_fn)(void *arg, const char *base, const char *text, char **ret_rel);

struct outcome_part {
	enum git_what what;
	const char *dir; /* the git dir; of a .git file the directory it lies in */
	const char *abs; /* path of the workspace */
	int status;      /* of reading it: 0, -EMSGSIZE over outcome_part_max(), -errno */
	const char *text;
	size_t n;
	outcome_target_fn target;
	void *arg;
};

size_t outcome_part_max(enum git_what what);

/* Would git on the host do no more than read data because of this file? NULL, or why not, to be freed. *ret_follow is
 * another git dir that git reads because of it, to be held to the same rules, or NULL. Hooks are not a file:
 * outcome_is_hook(). */
char *outcome_part(const struct outcome_part *p, char **ret_follow);
/* Of a configuration that outcome_part() objects to: adds to ret what of it may come out all the same, which is all but
 * single entries. False: it is no configuration, or nothing of it can be judged. */
bool outcome_part_rest(const struct outcome_part *p, struct buf *ret);
/* As outcome_part(), for a file called .git. */
char *outcome_gitfile(const struct outcome_part *p, char **ret_follow);

/* Would git run this entry of a hooks directory? `type` is DT_*. */
bool outcome_is_hook(const char *name, unsigned char type, mode_t mode);

/* ---- what the host has ---- */

struct outcome_host {
	char *abs; /* path of the workspace */
	struct scan scan;
	char **named; /* paths that the git configuration of the host names, whether they exist or not */
	size_t n, cap;
};

/* One walk of the workspace, as at a start. */
int outcome_host_load(int ws_fd, const struct policy *p, struct outcome_host *ret, struct err *e);
/* Of a directory that is not walked: what the configuration of the repository at its top names, and no more. */
int outcome_host_top(int fd, struct outcome_host *ret, struct err *e);
void outcome_host_done(struct outcome_host *h);

/* ---- a path ---- */

#define OUTCOME_DEPTH_MAX 256

/* What was found about a directory; the next path most often lies in the same one. */
struct outcome_dir {
	char *rel;
	const char *rule; /* protects all that is in it */
	bool is_git, is_nogit;
};

struct outcome_tree {
	const struct policy *p;
	const struct outcome_host *host;
	/* The tree as it would be afterwards. DT_*, DT_UNKNOWN where nothing is. */
	unsigned char (*type)(void *arg, const char *rel, mode_t *ret_mode);
	int (*read)(void *arg, const char *rel, struct buf *out); /* 0, -EMSGSIZE, -errno */
	bool (*is_old)(void *arg, const char *rel); /* is on the host and stays as it is */
	void *arg;
	struct outcome_dir dirs[OUTCOME_DEPTH_MAX];
	size_t depth;
};

/* May the change of this path (made, replaced or removed) reach the host? NULL, or why not, to be freed. */
char *outcome_why(struct outcome_tree *o, const char *rel);
void outcome_done(struct outcome_tree *o);

#endif
