/* SPDX-License-Identifier: Apache-2.0 */
/* view/view.h - what in a workspace must be hidden or protected, found by one walk; and what appeared meanwhile
 *
 * scan_run() walks the workspace once (directory reads only, no stat per file) and reports every path the
 * policy hides or protects, the ancestors that must be pinned against renames, and hard-link aliases. Nothing
 * is written on the host. The result is a fact that plan/ turns into mounts.
 *
 * sweep_run() walks it again after the last process has died and moves what appeared under a protected name
 * into the quarantine directory.
 */
#ifndef VITRINE_VIEW_VIEW_H
#define VITRINE_VIEW_VIEW_H

#include <sys/types.h>
#include <time.h>

#include "policy/policy.h"
#include "view/index.h"
#include "view/made.h"

enum hit_kind {
	HIT_HIDE,    /* make unreadable */
	HIT_PROTECT, /* make read-only */
	HIT_PIN,     /* an ancestor of one of the above: may not be renamed or removed */
	HIT_KIND_COUNT_
};

struct hit {
	char *rel; /* path below the workspace, no leading slash */
	enum hit_kind kind;
	bool is_dir;
	bool is_config; /* a git configuration */
	bool is_gitdir; /* of a repository of the host's */
	/* What is to be shown inside in its place: a configuration without its secrets. NULL: the file itself. */
	char *shown;
	bool is_alias; /* found only because it shares an inode with a hit that has a name of its own */
	/* A symbolic link: no mount can cover it. Its target, when it lies in the workspace, is a hit of its own; one
	 * outside does not exist in the sandbox. The link can be replaced inside: sweep finds and removes that. */
	bool is_link;
	const char *
		rule; /* the glob, or "git" for what a repository implies; borrowed from policy or static */
	dev_t dev;
	ino_t ino;
	/* Of a link: a number is given to the next file at once, so more is needed to know it again. */
	int64_t size;
	struct timespec changed;
};

/* What a git config outside the workspace says that may concern it. */
struct named_ref {
	int what; /* enum gitcfg_ref */
	char *text;
	char *top; /* the work tree that it counts for; NULL: every one */
};

struct scan {
	struct hit *
		v; /* sorted: parents before children; no path twice (HIDE beats PROTECT beats PIN) */
	size_t n, cap;
	uint64_t dirs, files; /* seen */
	uint64_t skipped;     /* directories of others that this user cannot read either */
	struct matcher
		*matcher; /* the patterns compiled, for the sweep; NULL in one made by hand */
	struct named_ref *refs;
	size_t n_refs, cap_refs;
	char *unlisted; /* by scan_sockets(): a directory of ours that can be passed but not listed */
	struct timespec began; /* what changes later is not in here */
	struct index *index;   /* the directories that were seen; NULL in one made by hand */
	bool is_indexed; /* its list is kept in the state directory from one sandbox to the next */
	bool has_live;   /* `live` is the mark of this sandbox (index_live_claim) */
	unsigned live;
};

/* A directory of the host that was granted for writing: protected as the workspace is. */
struct ground {
	char *real;   /* its path on the host, without links */
	char *inside; /* where it is seen */
	dev_t dev;
	ino_t ino;
	struct scan scan; /* hits are relative to it */
};

#define SCAN_HITS_MAX 20000
/* Longest path of a hit. What matches deeper down takes the ancestor of this length with it. */
#define SCAN_REL_MAX 3072

/* ws_fd: the workspace directory, O_PATH will do. Symbolic links are not followed, file systems mounted in the
 * workspace are walked (they are visible inside). A directory of ours that we may not read is hidden as a whole
 * (rule "unreadable"): inside it could be made readable. One of somebody else's is skipped and counted.
 * ERR_UNSUPPORTED when a rule matches more than SCAN_HITS_MAX paths. */
int scan_run(int ws_fd, const struct policy *p, struct scan *ret, struct err *e);
/* The same where sandboxes made repositories before: those that are in `made` are left to the sweep. Directories that did
 * not change since an earlier sweep are taken from the list that it left in the state directory (index.h); NULL: none. */
int scan_run_made(int ws_fd, const struct policy *p, const struct made *made, const char *state_dir,
		  struct scan *ret, struct err *e);
/* Is the directory a repository's git dir, or a bare repository? */
bool scan_is_gitdir(int dir_fd);
void scan_done(struct scan *s);

/* Sockets that lie in a directory tree: each is a HIDE hit by this rule. The workspace's own are found by scan_run();
 * this is for other directories that are shown inside. */
#define VIEW_SOCKET_RULE "host socket"
int scan_sockets(int root_fd, struct scan *ret, struct err *e);

/* The hit with exactly this path, or NULL. */
const struct hit *scan_find(const struct scan *s, const char *rel);
bool scan_has_below(const struct scan *s,
		    const char *rel); /* some hit lies below; "": there is one at all */

/* Is rel a HIDE or PROTECT hit, or below one? Then nothing inside could have written there. */
bool scan_covers(const struct scan *s, const char *rel);

/* What is to be shown of a git configuration, as the host has it now: 0 the file itself, > 0 *ret, < 0 nothing. */
int scan_shown(int ws_fd, const char *rel, char **ret);

/* After the host replaced or removed a hit (fswatch says so): looks at it again. 1: it is there and dev, ino and
 * is_dir are those of now, mask it again; 0: it is gone and so are the hits below it, what appears there is new. */
int scan_refresh(struct scan *s, int ws_fd, const char *rel, struct err *e);

/* Takes rel and what is below it out: what is there from now on is new. */
void scan_forget(struct scan *s, const char *rel);

struct swept {
	char *rel;
	char *rule;  /* the glob or reason, e.g. "git config key core.fsmonitor" */
	char *saved; /* where it lies now, below the quarantine directory; NULL when it could not be moved and was removed */
};

/* In each quarantine: one JSON object in a line for all that was ever taken there. */
#define QUARANTINE_LIST "names.jsonl"
/* FD_NONE: it cannot be opened, and the event alone records it. */
int sweep_open_list(int quarantine_fd);
/* `name`: the path as people know it. */
void sweep_list(int list_fd, const char *name, const struct swept *s);

#define SWEEP_LEFT_MAX 100

struct sweep {
	struct swept *v;
	size_t n, cap;
	const char *
		dir; /* where the quarantine is made when it is first needed and q_fd is FD_NONE; borrowed */
	int dir_fd;   /* opened then; FD_NONE before */
	bool is_last; /* nothing inside lives any more: what is unfinished stays so */
	/* What the last sweep_run() could not take, or not look into, with the reason in `rule`. At most SWEEP_LEFT_MAX
	 * are kept, all are counted. */
	struct swept *left;
	size_t n_left, cap_left;
	uint64_t left_count;
	/* In the last sweep: repositories and .git files that are not the host's, and nothing is to be said against. */
	struct made made;
	/* Called before anything is taken, so that it is on record first; may be NULL. */
	void (*on_take)(void *arg, const char *rel, const char *rule);
	void *arg;
	/* The directories that the last sweep_run() saw; NULL when it was not whole. */
	struct index *index;
	/* sweep_run() also looks for set-user-id and set-group-id files with this (setid.h); NULL: it does not. */
	struct setid *setid;
};

/* Moves every protected path that is on disk now and was not covered by `before` into q_fd (opened quarantine
 * directory, may be on another file system). Follows no link, stays beneath ws_fd, and is safe while a hostile
 * process still runs. Adds to *out. On failure the rest was still swept, e names the first path that is left and
 * out->left all of them. What we lack to look into a directory of ours, the workspace too, we give ourselves.
 *
 * A path that was a hit and is another file now is left alone: its mount made it impossible to replace from inside,
 * so the host did it (an editor's save). What the host *removed* must be taken out of `before` (scan_refresh), else
 * a successor made inside would be taken for the host's. */
int sweep_run(int ws_fd, int q_fd, const struct policy *p, const struct scan *before,
	      struct sweep *out, struct err *e);
/* The same for one path (relative) that was just seen to appear. Returns 1 when something was moved. */
int sweep_one(int ws_fd, int q_fd, const struct policy *p, const struct scan *before,
	      const char *rel, struct sweep *out, struct err *e);
void sweep_done(struct sweep *s);
/* The inside may have closed the workspace itself (chmod 000 .): gives ourselves the right to look into it again. */
void sweep_unlock(int ws_fd);

#endif
