/* SPDX-License-Identifier: Apache-2.0 */
/* view/git.h - what git on the host would take up from a repository: one table for scan, sweep and fswatch
 *
 * Internal to view/. A "git dir" is what git itself takes for one: a `.git` directory, or any directory with a valid
 * HEAD and either objects and refs (a bare repository, .git/modules/NAME) or commondir (.git/worktrees/NAME).
 */
#ifndef VITRINE_VIEW_GIT_H
#define VITRINE_VIEW_GIT_H

#include <sys/stat.h>

#include "base/err.h"

struct git_name {
	const char *text;
	unsigned bits; /* MATCH_GIT_* */
};

extern const struct git_name git_names[];
extern const size_t git_names_n;

enum git_what {
	GIT_CONFIG,
	GIT_HOOKS,
	GIT_ATTRIBUTES,
	GIT_GRAFTS,
	GIT_COMMONDIR,
	GIT_GITDIR,
	GIT_ALTERNATES,
	GIT_TODO,       /* the steps of a rebase that is not over */
	GIT_VIA_LINK,   /* a link where the directory of one of the above should be */
	GIT_UNREADABLE, /* the directory of one of the above, and it cannot be looked into */
	GIT_WHAT_COUNT_
};

/* Is `.git` in this list the rule that stands for all of the above? */
bool git_is_rule(const char *rule);

/* Could a directory with names of these MATCH_GIT_* bits be a git dir, by the types of its names? Never no where git
 * says yes; git_is_repo() decides. */
bool git_bits_are_repo(unsigned bits);
/* A name only counts with a type git may accept for it: the bits that remain. */
unsigned git_bits_of_type(unsigned bits, unsigned char type);
bool git_is_repo(int dir_fd);

extern const char *const git_hook_names[]; /* NULL-ended */
bool git_is_hook_name(const char *name);

/* The table of parts, by number; NULL at its end. */
const char *git_part_name(size_t i, enum git_what *ret);

/* Calls fn for every part that exists, by its name below the git dir (lstat in *st). Stops at a negative result. */
typedef int (*git_part_fn)(void *arg, const char *name, enum git_what what, const struct stat *st,
			   struct err *e);
int git_parts(int dir_fd, git_part_fn fn, void *arg, struct err *e);

/* The path in a pointer file ("gitdir: x" with prefix, commondir and gitdir without): trimmed, or NULL when it is
 * not exactly one plain line. */
char *git_pointer(const char *text, size_t n, const char *prefix);
/* The same as git reads it: whatever bytes there are, up to the first NUL. */
char *git_pointer_any(const char *text, size_t n, const char *prefix);

#endif
