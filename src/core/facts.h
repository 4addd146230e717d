/* SPDX-License-Identifier: Apache-2.0 */
/* core/facts.h - look at the host once, so that planning needs not */
#ifndef VITRINE_CORE_FACTS_H
#define VITRINE_CORE_FACTS_H

#include "core/account.h"
#include "core/place.h"
#include "core/worktree.h"
#include "plan/plan.h"
#include "sys/cgroup.h"
#include "view/view.h"

/* Owns what struct facts borrows. */
struct host {
	struct facts facts;
	struct account account; /* of whom we dropped to */
	bool is_dropped;
	struct scan scan;
	struct sweep mended; /* what a killed keeper had left, and host_look() took */
	struct cgroup_host cgroups;
	struct ground *grounds; /* directories that are granted for writing */
	size_t n_grounds;
	struct worktree worktree; /* when facts.worktree.common is set */
	char *worktree_place;
	char *etc_tree;              /* facts.etc_tree */
	struct own_trust *own_trust; /* facts.own_trust */
	char *trust_why;             /* one of the caller's certificates cannot be used inside */
	char *worktree_why;   /* the workspace is a linked one, and its repository is not opened */
	struct places places; /* what workspace and grants lead to now */
	int ws_fd;
	char *user, *home, *shell, *workspace, *cwd, *self_exe, *init_exe, *tools_exe, *state_dir,
		*config_dir, *config_real, *policy_real;
	char *home_note;    /* a file of settings that could not be read, for the person */
	char *root_dir;     /* of a template; set before host_look() */
	bool is_only_shown; /* set before host_look(): nothing is made on the host for it */
};

/* Who we are and where our things lie; drops to the user of sudo or to `user` first. No workspace yet. In two halves
 * for who is in a hurry: the ids are known after the first. */
int host_init(struct host *h, const char *user, struct err *e);
int host_become(struct host *h, const char *user, struct err *e);
int host_locate(struct host *h, struct err *e);
/* Ids for a root inside: the account's subordinate ones, root's own range. */
int host_root(struct host *h, enum root_kind kind, struct err *e);
/* The root file system to start from. One with ids of its own has a root inside, in a sandbox with a name. */
int host_template(struct host *h, char *take_root_dir, bool is_named, struct err *e);
/* Resolves and opens the workspace (NULL: the current directory). */
int host_workspace(struct host *h, const char *path, struct err *e);
/* All that plan_build() needs, once the policy is final: entries, scan, limits. */
int host_look(struct host *h, const struct policy *p, struct err *e);
/* Between facts.c and grants.c: one entry; the covers of a scan; what the policy grants, looked at. */
struct entry *host_look_at(struct entries *l, char *take_path, bool wants_none);
struct cover *host_covers(const struct scan *s, bool only_hidden, size_t *ret_n);
/* A keeper that was killed while it guarded `dir` may have left what it was about to mend: taken, see `mended`. */
int host_mend(struct host *h, const char *dir, int fd, struct err *e);
int host_grants(struct host *h, const struct policy *p, struct err *e);
/* homefiles.c */
void host_home_files(struct host *h);
/* 1: the text of a plain file of a size that a person writes; 0: there is none; < 0: something else lies there. */
int host_read_setting(const char *path, struct buf *out);
void host_home_files_done(struct host *h);
int host_worktree(struct host *h, const struct policy *p, struct err *e);
/* For an engine other than native: finds the init that runs behind its walls. */
int host_engine(struct host *h, struct err *e);
/* For safe tools and the broker: finds the program they are inside. */
int host_tools(struct host *h, struct err *e);
void host_done(struct host *h);

#endif
