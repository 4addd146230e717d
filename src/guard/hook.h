/* SPDX-License-Identifier: Apache-2.0 */
/* guard/hook.h - what agents say before they use a tool, and how each wants to be answered
 *
 * One question in, one answer out. Agents differ in the names of their fields, in how a refusal is written, and in
 * what they make of a hook that fails: most then run the tool. So every failure of ours is a refusal in the agent's
 * own words, and where an agent does not know "ask", or nobody is there to be asked, "ask" is a refusal, too.
 */
#ifndef VITRINE_GUARD_HOOK_H
#define VITRINE_GUARD_HOOK_H

#include "base/buf.h"
#include "guard/guard.h"

enum agent {
	AGENT_UNKNOWN,
	AGENT_CLAUDE,
	AGENT_CODEX,
	AGENT_GEMINI,
	AGENT_COPILOT,
	AGENT_CURSOR,
	AGENT_OPENCODE,
	AGENT_DROID,
	AGENT_QWEN,
	AGENT_GOOSE,
	AGENT_PI,
	AGENT_COUNT_
};

#define HOOK_MAX_ACTS 64

enum tool_kind { TOOL_OTHER, TOOL_SHELL, TOOL_READ, TOOL_WRITE };

struct hook_call {
	enum agent agent;
	enum tool_kind kind;
	const char *event; /* as the agent calls it */
	const char *tool;
	const char *command;                 /* TOOL_SHELL */
	const char *path;                    /* TOOL_READ, TOOL_WRITE: for the record */
	struct tool_act acts[HOOK_MAX_ACTS]; /* all that it would do */
	size_t n_acts;
	bool is_cut;     /* and more */
	const char *cwd; /* may be "" */
	const char *session;
	bool is_unattended; /* the agent will not ask anyone */
};

const char *agent_name(enum agent a);
/* "claude, codex or gemini": every name, for messages. */
#define AGENT_NAMES "claude, codex, gemini, copilot, cursor, opencode, droid, qwen, goose or pi"
/* AGENT_UNKNOWN when there is none of this name. */
enum agent agent_find(const char *name);

/* Reads a call. `told` is what the command line said, and wins over what the text looks like. Strings live in mem. */
int hook_read(struct arena *mem, const char *text, size_t n, enum agent told, struct hook_call *ret,
	      struct err *e);

/* The answer for stdout (possibly nothing) and for stderr; returns the exit status. */
int hook_answer(const struct hook_call *call, const struct judgement *j, struct buf *out,
		struct buf *err);

/* A refusal without a call, for when reading it failed or something broke. No allocation: for signal handlers. */
int hook_refusal(enum agent a, const char *why, char *out, size_t n);

#endif
