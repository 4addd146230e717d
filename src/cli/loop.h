/* SPDX-License-Identifier: Apache-2.0 */
/* cli/loop.h - shared by the files of vitrine-loop */
#ifndef VITRINE_CLI_LOOP_H
#define VITRINE_CLI_LOOP_H

#include <signal.h>

#include "agent/loopdir.h"
#include "agent/preset.h"
#include "core/facts.h"

struct loop {
	struct host host;
	char *name; /* of the sandbox */
	struct loopdir dir;
	struct loop_def def;
	struct preset preset;
	struct loop_sum sum;
	char *program; /* vitrine */
	bool is_quiet, as_json;
};

/* ---- loop_tool.c: vitrine, run by us ---- */

struct tool {
	char *const *argv; /* words behind "vitrine", NULL-ended */
	int out, err; /* where its output goes, in full up to TOOL_OUTPUT_MAX; FD_NONE: nowhere */
	struct buf *text; /* its standard output as well, up to the buffer's ceiling; may be NULL */
	struct buf *errors; /* and what it complained about */
};

#define TOOL_OUTPUT_MAX (64 * MIB)

/* Set by SIGINT, SIGTERM and SIGHUP once loop_signals() was called. */
extern volatile sig_atomic_t loop_signal;
void loop_signals(void);

/* Its exit status, 128+n for signals; a signal to us is handed on. < 0: it could not be run. */
int loop_tool(const struct loop *l, const struct tool *t, struct err *e);

/* ---- loop_run.c ---- */

/* From where it is to its end. The reason, or < 0. */
int loop_drive(struct loop *l, struct err *e);

/* ---- loop_tree.c ---- */

/* What the workspace's changes are now, one line per file: 16 hex digits of what changed, a blank, the name. */
int loop_tree(const struct loop *l, uint64_t checkpoint, struct buf *out, struct err *e);
/* Names in which two such texts differ; the first `max` of them in *ret, NULL-ended. Returns how many. */
uint64_t loop_tree_compare(const char *before, const char *now, size_t max, char ***ret);

/* ---- loop_show.c ---- */

int loop_summary(const struct loop *l, enum loop_stop why, struct err *e);
int loop_report(const struct loop *l, struct err *e);
void loop_say_record(const struct loop *l, const struct loop_record *r);

#endif
