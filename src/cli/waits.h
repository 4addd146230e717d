/* SPDX-License-Identifier: Apache-2.0 */
/* cli/waits.h - work in a sandbox that nobody has taken yet: changes under review, commits of a clone */
#ifndef VITRINE_CLI_WAITS_H
#define VITRINE_CLI_WAITS_H

#include "base/err.h"

struct waits {
	uint64_t changes; /* under review */
	char *branches;   /* of a clone, "main, fix", foreign bytes escaped; NULL: none */
	bool is_unknown;  /* it cannot be read: something may wait */
	struct err why;   /* of is_unknown */
};

/* How waits_text() begins, for programs that read it in `ls --json`. */
#define WAITS_UNKNOWN "work that cannot be listed"
#define WAITS_COMMITS "commits on "

/* Costs what waits, not what is there: of a changed file the content is read where its size is the same as before.
 * `workspace`: of its definition; NULL: that cannot be read. */
void waits_find(const char *state_dir, const char *name, const char *workspace, struct waits *ret);
void waits_done(struct waits *w);

/* "3 changes", "commits on main, fix"; NULL: nothing waits. */
char *waits_text(const struct waits *w);
/* The commands that show and take it. */
char *waits_how(const struct waits *w, const char *name);

#endif
