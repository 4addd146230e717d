/* SPDX-License-Identifier: Apache-2.0 */
/* loop/loop.h - shared by the files of vitrine-loop */
#ifndef VITRINE_LOOP_LOOP_H
#define VITRINE_LOOP_LOOP_H

#include <signal.h>
#include <time.h>

#include "agent/loopdir.h"
#include "agent/preset.h"
#include "cli/pending.h"
#include "core/facts.h"

#define LOOP_TOLD_MAX 64
#define LOOP_NOTIFIERS_MAX 8

/* Questions that --notify has reported, the newest LOOP_TOLD_MAX of them, and the commands that still report one. */
struct loop_asked {
	char ids[LOOP_TOLD_MAX][PENDING_ID_CHARS + 1];
	size_t n; /* all that were reported */
	uint64_t looked;
	struct {
		pid_t pid; /* 0: free */
		uint64_t until;
	} running[LOOP_NOTIFIERS_MAX];
};

struct loop {
	struct host host;
	char *name; /* of the sandbox */
	struct loopdir dir;
	struct loop_def def;
	struct preset preset;
	struct loop_sum sum;
	char *program; /* vitrine */
	bool is_quiet, as_json;
	bool is_behind; /* nobody waits for it */
	struct loop_asked *asked;
};

/* ---- loop_tool.c: vitrine, run by us ---- */

struct tool {
	char *const *argv; /* words behind "vitrine", NULL-ended */
	int out, err; /* where its output goes, in full up to TOOL_OUTPUT_MAX; FD_NONE: nowhere */
	struct buf *text; /* its standard output as well, up to the buffer's ceiling; may be NULL */
	struct buf *errors; /* and what it complained about */
	bool may_ask;       /* what it runs may lead to questions, see loop_notify.c */
	bool is_last;       /* for the time after a signal: it is not handed on */
};

#define TOOL_OUTPUT_MAX (64 * MIB)

/* Set by SIGINT, SIGTERM and SIGHUP once loop_signals() was called. */
extern volatile sig_atomic_t loop_signal;
void loop_signals(void);

/* Its exit status, 128+n for signals; a signal to us is handed on. < 0: it could not be run. */
int loop_tool(const struct loop *l, const struct tool *t, struct err *e);

/* ---- loop_notify.c ---- */

/* what: end, limit. Waits for the command, some seconds at most, and for those that report questions; a failure is a
 * complaint. */
void loop_notify(const struct loop *l, const char *what, const char *reason, const char *sentence);
/* Reports the broker's questions that are new, without waiting for the commands; looks once a second at most. */
void loop_look_for_questions(const struct loop *l);

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
void loop_put_record(const struct loop *l, const struct loop_record *r, struct buf *out);
/* A line where the record that was folded last is the second failure of the same kind in a row. */
void loop_put_repeated(const struct loop *l, const struct loop_sum *s, struct buf *out);
/* 0: the goal was reached; 3: it stopped before; 128+n: a signal. */
int loop_exit_status(const struct loop *l, enum loop_stop why);

void loop_put_cost(uint64_t micros, struct buf *out);
/* A file of the workspace as the sandbox has it. `layers`: layers_paths(), NULL in direct mode. -ENOENT: not there, or
 * deleted inside. */
int loop_open_inside(const struct loop *l, char *const *layers, const char *rel);
const char *loop_state(const struct loop *l);

/* ---- loop_since.c ---- */

/* What happened since then, in all sandboxes. */
int loop_since(struct loop *l, uint64_t since_ns, bool as_json, struct err *e);

/* ---- loop_night.c: a loop that nobody waits for, and how to look at one ---- */

/* Goes on in a process that no logout ends. Returns 1 there; 0 in the caller, when the other one has the lock. */
int loop_detach(struct loop *l, struct err *e);
/* What the iterations did. is_followed: until the loop ends; has_output: also what the agent prints meanwhile. Returns
 * the loop's exit status where it was followed. */
int loop_logs(struct loop *l, bool is_followed, bool has_output, struct err *e);
/* After the iteration that runs, or at once. */
int loop_ask_stop(struct loop *l, bool is_now, struct err *e);

#endif
