/* SPDX-License-Identifier: Apache-2.0 */
/* cli/client.h - the client's half of a session: terminal, signals, and the end */
#ifndef VITRINE_CLI_CLIENT_H
#define VITRINE_CLI_CLIENT_H

#include "keep/keep.h"

struct outcome {
	int status;
	enum end_reason why;
	struct err err;
	struct buf
		notes; /* what the keeper had to say: strings, each with its NUL; foreign bytes */
};

/* Serves until the session ends. Signals go to the command; a terminal is raw meanwhile and restored after. */
int client_serve(int conn, unsigned flags, struct outcome *out, struct err *e);

/* Asks the keeper behind conn for another command. */
int client_exec(int conn, unsigned flags, char *const *argv, char *const *env, const char *cwd,
		struct err *e);

#endif
