/* SPDX-License-Identifier: Apache-2.0 */
/* tools/judge.h - is this call of a tool the ordinary thing, or one that is better softened or kept from?
 *
 * Pure: words and a few facts in, one decision out. Advice, not a wall: who calls /usr/bin/rm by its path meets the walls
 * of the sandbox and nothing else. So it errs on the side of the ordinary thing.
 */
#ifndef VITRINE_TOOLS_JUDGE_H
#define VITRINE_TOOLS_JUDGE_H

#include "base/buf.h"

enum act {
	ACT_PASS,     /* run the real program */
	ACT_SAVE,     /* keep the files it names in the trash, then run it */
	ACT_SAVE_GIT, /* keep uncommitted changes as a ref, then run it */
	ACT_DROP,     /* run it without argv[drop] */
	ACT_REFUSE,
	ACT_COUNT_
};

struct place {
	const char *home, *cwd, *workspace; /* absolute and clean; workspace may be NULL */
	bool has_broker;
	bool is_config_closed; /* the repository's configuration cannot be written */
};

struct decision {
	enum act act;
	const char *say;        /* ACT_REFUSE: why, and what to do instead; ACT_DROP: a note */
	const char *files[256]; /* ACT_SAVE */
	size_t n_files;
	int drop;
};

/* argv[0] is the tool's name. A name nobody knows passes. */
void judge(const struct place *p, int argc, char *const *argv, struct decision *ret);

/* Where git's own word stands: 0 when there is none. */
int judge_git_word(int argc, char *const *argv);

#endif
