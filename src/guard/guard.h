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
	bool is_inside; /* a sandbox of ours */
	const char *home, *cwd, *tmp;
};

/* One thing that a tool would do. */
enum act_kind { ACT_SHELL, ACT_CODE, ACT_SQL, ACT_EFFECT };

struct tool_act {
	enum act_kind kind;
	enum effect_kind effect; /* ACT_EFFECT */
	const char *text;        /* a command, code, a statement, a path */
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
	struct effect effects[WALK_MAX_EFFECTS]; /* the first of them, for people */
	size_t n_effects;
};

/* Settings and rules: built in, the user's file, the project's. Everything foreign in them is checked here. */
int guard_init(struct guard *g, const char *cwd, struct err *e);
/* Built-in rules only, a fixed home and no file: for tests and fuzzers. */
void guard_init_plain(struct guard *g, const char *home, const char *cwd);
void guard_done(struct guard *g);

/* The judgement lives in mem. */
void guard_command(const struct guard *g, struct arena *mem, const char *text, size_t n,
		   struct judgement *ret);
/* A tool, by what it would do. `is_cut`: there was more than can be looked at. */
void guard_tool(const struct guard *g, struct arena *mem, const struct tool_act *acts, size_t n,
		bool is_cut, struct judgement *ret);
/* Do we run in a sandbox of ours? */
bool guard_is_inside(void);

void guard_walk_begin(const struct guard *g, struct arena *mem, struct walk *ret);
bool guard_proves_safe(const struct guard *g, struct arena *mem, const struct node *script);

#endif
