/* SPDX-License-Identifier: Apache-2.0 */
/* cli/store_opts.h - options of the verbs that vitrine-store carries out */
#ifndef VITRINE_CLI_STORE_OPTS_H
#define VITRINE_CLI_STORE_OPTS_H

#include "cli/cli.h"

enum {
	OPT_FOLLOW = 1,
	OPT_SINCE,
	OPT_TYPE,
	OPT_SESSION,
	OPT_TAIL,
	OPT_SESSIONS,
	OPT_VERIFY,
	OPT_JSON,
	OPT_QUIET,
	OPT_FORMAT,
	OPT_GUARD,
	OPT_FILE,
	OPT_STATE,
	OPT_WAIT
};

extern const struct opt events_opts[];
extern const struct opt ingest_opts[];

int cmd_events(int argc, char **argv, struct err *e);
int cmd_ingest(int argc, char **argv, struct err *e);

#endif
