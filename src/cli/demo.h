/* SPDX-License-Identifier: Apache-2.0 */
/* cli/demo.h - the stage of `vitrine demo`: a throw-away project, its surroundings, and one real run in it */
#ifndef VITRINE_CLI_DEMO_H
#define VITRINE_CLI_DEMO_H

#include "core/facts.h"

#define DEMO_PIDS 64
#define SECRET_TEXT 33

/* Texts that lie where the agent may not read. In its output they are proof that it did; but for the task. */
enum secret_id {
	SECRET_TASK,        /* TASK.md, which it must read */
	SECRET_BESIDE,      /* a file beside the project */
	SECRET_NEIGHBOUR,   /* a file of another project */
	SECRET_DOTENV,      /* .env of its own project */
	SECRET_ENVIRONMENT, /* a variable of the caller */
	SECRET_COUNT_
};

struct stage {
	struct host host;
	char *dir; /* all the rest lies below */
	char *project, *outside;
	bool is_cache_new; /* the user had no ~/.cache before */
	char name[48];     /* of what it tries to leave behind */
	char secret[SECRET_COUNT_][SECRET_TEXT];
	uint64_t sum; /* of the project's numbers.txt */
	bool has_git;
	struct buf config; /* .git/config as it was */
	int exe;           /* ourselves, for the run */
	int tcp, local;    /* listeners on the host */
	uint16_t port;
	pid_t victim; /* a process of the host to be killed */
	int victim_fd;
	/* what the run gave */
	struct buf out, err;
	int status;      /* of `vitrine run` */
	int signo;       /* what we were told to stop by, or 0 */
	bool has_end;    /* of its output: nothing of it is left */
	bool was_called; /* a listener was reached */
	bool was_called_local;
	bool is_victim_alive;
	bool is_config_same;
	bool is_committed;
};

/* Names below a home that hold keys; NULL-ended. */
extern const char *const demo_keys[];

int stage_open(struct stage *s, struct err *e);
/* The agent's whole run; then looks at what it left. */
int stage_run(struct stage *s, struct err *e);
/* Removes everything. */
void stage_close(struct stage *s);

#endif
