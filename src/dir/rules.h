/* SPDX-License-Identifier: Apache-2.0 */
/* dir/rules.h - what the inside may do to which name of a served git dir. Pure.
 *
 * Paths are relative to the git dir, clean, and "" is the git dir itself. The rules hold at every depth, because
 * submodules (modules/NAME) and linked worktrees (worktrees/NAME) are git dirs of their own. Names are compared without
 * regard to case, for file systems that do the same.
 */
#ifndef VITRINE_DIR_RULES_H
#define VITRINE_DIR_RULES_H

#include "base/buf.h"
#include "base/err.h"

/* Names that the server makes and nobody else sees. */
#define DIR_OWN_NAME ".vitrine-tmp-"

enum dir_kind {
	DIR_PLAIN,
	DIR_CONFIG, /* a git configuration: read, and replaced by its lock file after a judgement */
	DIR_LOCK, /* what becomes a configuration: only the inside's own file may be read or written, see serve.c */
	DIR_READONLY, /* hooks, and what the plan protects */
	DIR_HIDDEN,   /* what the plan hides: there, and unreadable */
	DIR_OWN,      /* of the server: it does not exist */
	DIR_KIND_COUNT_
};

/* What the plan says about single names, beside what is true of every git dir. */
struct dir_rule {
	char *rel;
	enum dir_kind kind; /* DIR_PLAIN: pinned, it may not be renamed or removed */
};

struct dir_rules {
	struct dir_rule *v;
	size_t n, cap;
	char *workspace; /* absolute path; the git dir is "/.git" below it */
};

void dir_rules_add(struct dir_rules *r, enum dir_kind kind, const char *rel);
void dir_rules_done(struct dir_rules *r);

enum dir_kind dir_kind_of(const struct dir_rules *r, const char *rel);

/* Is it the lock of a configuration by its exact name? The others of that kind may also be names of directories. */
bool dir_is_lock(const char *rel);

enum dir_act {
	DIR_READ,   /* open for reading, or list */
	DIR_WRITE,  /* open for writing, change the size */
	DIR_CREATE, /* a file or a directory that is not there */
	DIR_REMOVE,
	DIR_SET,  /* mode and times */
	DIR_LINK, /* a symbolic or a hard link */
	DIR_ACT_COUNT_
};

enum dir_answer {
	DIR_YES,
	DIR_IF_OWN /* only if the inside made that very file, or it is a directory */
};

/* enum dir_answer or -errno. */
int dir_may(const struct dir_rules *r, const char *rel, enum dir_act act);

enum dir_move {
	DIR_MOVE,
	DIR_MOVE_OWN, /* only if the inside made that very file, or it is a directory */
	DIR_JUDGE,    /* a lock file onto its configuration: its content decides (dir_judge) */
};
/* flags: RENAME_*. enum dir_move or -errno. */
int dir_may_move(const struct dir_rules *r, const char *from, const char *to, unsigned flags);

/* May `now` take the place of the configuration at rel, whose text on the host is `host` (NULL: there is none)? Adds to
 * ret what is to be written, with the host's own values where the inside was shown placeholders. 0, or -EPERM and the
 * reason in e. */
struct dir_text {
	const char *p;
	size_t n;
};
int dir_judge(const struct dir_rules *r, const char *rel, const struct dir_text *host,
	      const struct dir_text *now, struct buf *ret, struct err *e);

#endif
