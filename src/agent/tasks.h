/* SPDX-License-Identifier: Apache-2.0 */
/* agent/tasks.h - what a project's own task list says is open and done; pure, for foreign bytes */
#ifndef VITRINE_AGENT_TASKS_H
#define VITRINE_AGENT_TASKS_H

#include "base/buf.h"
#include "base/err.h"

#define TASKS_MAX 4096
#define TASK_TEXT_MAX 200

struct task {
	bool is_done;
	char *text;
};

struct tasks {
	struct task *v; /* the first TASKS_MAX */
	size_t n, cap;
	uint64_t open, done; /* all */
};

void tasks_done(struct tasks *t);

/* "- [ ] text", "* [x] text", "1. [X] text", however deep; not in fenced code. */
void tasks_markdown(struct tasks *t, const char *text, size_t n);
/* Beads: one JSON object per line with "title" and "status". */
void tasks_beads(struct tasks *t, const char *text, size_t n);

/* Where task lists are looked for, relative to the workspace; NULL-ended. */
extern const char *const tasks_files[];
#define TASKS_BEADS ".beads/issues.jsonl"

#endif
