/* SPDX-License-Identifier: Apache-2.0 */
/* cli/loop_opts.h - options of the verbs that vitrine-loop carries out */
#ifndef VITRINE_CLI_LOOP_OPTS_H
#define VITRINE_CLI_LOOP_OPTS_H

#include "cli/cli.h"

enum {
	LOOP_OPT_PROMPT = 1,
	LOOP_OPT_MAX,
	LOOP_OPT_UNTIL,
	LOOP_OPT_MARKER,
	LOOP_OPT_TIME,
	LOOP_OPT_RUN_TIME,
	LOOP_OPT_COST,
	LOOP_OPT_TOKENS,
	LOOP_OPT_STILL,
	LOOP_OPT_FAILURES,
	LOOP_OPT_BACKOFF,
	LOOP_OPT_MODE,
	LOOP_OPT_NAME,
	LOOP_OPT_RESUME,
	LOOP_OPT_NEW,
	LOOP_OPT_JSON,
	LOOP_OPT_QUIET,
	LOOP_OPT_DETACH,
	LOOP_OPT_NOTIFY,
	LOOP_OPT_FOLLOW,
	LOOP_OPT_NOW,
	LOOP_OPT_WATCH,
	LOOP_OPT_TASKS,
	LOOP_OPT_SINCE,
};

extern const struct opt loop_opts[];
extern const struct opt hint_opts[];
extern const struct opt status_opts[];

int cmd_loop(int argc, char **argv, struct err *e);
int cmd_loop_ls(int argc, char **argv, struct err *e);
int cmd_hint(int argc, char **argv, struct err *e);
int cmd_status(int argc, char **argv, struct err *e);

#endif
