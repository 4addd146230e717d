/* SPDX-License-Identifier: Apache-2.0 */
/* guard/guard.h - advice before action: may this command be run?
 *
 * A command is read (shell.h), then judged twice: walk.h looks for danger in everything that would run, and
 * guard_proves_safe() asks whether it consists only of literal calls that look and do not touch. Danger wins. What is
 * neither is unknown: allowed at the level `standard`, a question at `strict`. The guard is advice; the walls around
 * the agent do not depend on it.
 */
#ifndef VITRINE_GUARD_GUARD_H
#define VITRINE_GUARD_GUARD_H

#include "guard/walk.h"

enum guard_level { LEVEL_STANDARD, LEVEL_STRICT };

struct guard {
	struct arena mem;            /* settings; lives as long as the guard */
	const struct rules *sets[8]; /* built in, the user's, the project's */
	size_t n_sets;
	const char *off;
	enum guard_level level;
	const char *home, *cwd, *tmp;
};

struct judgement {
	enum verdict verdict;
	enum intent intent;
	const char *rule;    /* its id; "" when nothing was found */
	const char *say;     /* one sentence for the agent */
	const char *command; /* the part that was meant */
	bool is_proved;      /* safe by the first pass */
	struct found all[WALK_MAX_FINDINGS];
	size_t n_all;
};

/* Settings and rules: built in, the user's file, the project's. Everything foreign in them is checked here. */
int guard_init(struct guard *g, const char *cwd, struct err *e);
/* Built-in rules only, a fixed home and no file: for tests and fuzzers. */
void guard_init_plain(struct guard *g, const char *home, const char *cwd);
void guard_done(struct guard *g);

/* The judgement lives in mem. */
void guard_command(const struct guard *g, struct arena *mem, const char *text, size_t n,
		   struct judgement *ret);
/* A tool that reads or writes one file. */
void guard_file(const struct guard *g, struct arena *mem, const char *path, bool is_write,
		struct judgement *ret);

void guard_walk_begin(const struct guard *g, struct arena *mem, struct walk *ret);
bool guard_proves_safe(const struct guard *g, struct arena *mem, const struct node *script);

#endif
