/* SPDX-License-Identifier: Apache-2.0 */
/* watch/said.h - tool calls as the inside tells of them: a hook's report, a line of an agent's structured output
 *
 * Both become fields of `tool.call` and `guard.decision` events that are marked as said by the inside: an agent may say
 * what it likes there, and leave out what it likes. Pure: text in, fields out.
 */
#ifndef VITRINE_WATCH_SAID_H
#define VITRINE_WATCH_SAID_H

#include "base/err.h"
#include "event/event.h"

#define SAID_MAX_BYTES ((size_t)MIB)

/* One event. Fields are borrowed. < 0 ends the reading and is returned. */
typedef int said_fn(void *arg, enum event_type type, const struct event_field *f, size_t n);

/* A report: {"tool": "Bash", "call": "id", "agent": "claude", "input": any, "output": "text", "code": 0, "duration_ns": 1,
 * "message": "text", "verdict": "allow|ask|deny", "rule": "name"}; only tool is needed, nothing else may be there. It is
 * one tool.call, and one guard.decision where it has a verdict. How many, or -EBADMSG, or what fn said. */
int said_report(const char *text, size_t n, said_fn *fn, void *arg, struct err *e);

/* One line of what agents print when asked for JSON lines (Claude Code, Codex, Gemini CLI, opencode). How many calls it
 * tells of, mostly 0, or what fn said. */
int said_line(const char *text, size_t n, said_fn *fn, void *arg);

#endif
