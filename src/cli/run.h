/* SPDX-License-Identifier: Apache-2.0 */
/* cli/run.h - what `run` and `explain` share: options -> policy -> facts -> plan */
#ifndef VITRINE_CLI_RUN_H
#define VITRINE_CLI_RUN_H

#include "cli/cli.h"
#include "core/facts.h"
#include "core/secrets.h"

extern const struct opt run_opts[];

struct run {
	struct policy policy;
	struct host host;
	struct secrets secrets;
	struct plan plan;
	bool has_plan;
	const char *name, *workdir, *workspace, *user, *policy_file;
	bool as_json, is_rm;
	unsigned flags; /* enum keep_flags */
	char *const *command;
};

/* Parses argv of the verb and prepares everything up to the plan; starts nothing. */
int run_prepare(struct run *r, int argc, char **argv, struct err *e);
/* Lets go of all but the plan. */
void run_forget(struct run *r);
void run_done(struct run *r);

#endif
