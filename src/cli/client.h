/* SPDX-License-Identifier: Apache-2.0 */
/* cli/client.h - the client's half of a session: terminal, signals, and the end */
#ifndef VITRINE_CLI_CLIENT_H
#define VITRINE_CLI_CLIENT_H

#include "keep/keep.h"

struct outcome {
	int status;
	enum end_reason why;
	bool has_hint;    /* one was shown while the command ran */
	bool is_detached; /* the session goes on without us */
	bool was_stopped; /* by `vitrine stop` */
	bool has_screen;  /* `screen` says what is set on the terminal */
	uint64_t screen;
	bool has_begun; /* the command was executed */
	uint32_t session;
	uint64_t v[KEEP_VALUES];
	struct err err;
	struct buf
		notes; /* what the keeper had to say: strings, each with its NUL; foreign bytes */
};

/* How to talk to a session. */
struct talk {
	unsigned flags; /* enum keep_flags */
	const uint8_t *keys;
	bool leaves_on_hangup; /* a terminal that closes leaves the session running */
	bool is_unsent; /* set by client_exec(): the keeper closed the connection before the request */
};

/* Serves until the session ends or is left. Signals go to the command; a terminal is raw meanwhile and restored
 * after. */
int client_serve(int conn, const struct talk *t, struct outcome *out, struct err *e);

/* Asks the keeper behind conn for another command. A keeper that is ending may have closed the connection: that is no
 * failure, and client_serve() then ends with END_CLOSING where the keeper did not answer before. */
int client_exec(int conn, struct talk *t, char *const *argv, char *const *env, const char *cwd,
		struct err *e);

/* Asks to see a session that runs; 0: the newest. */
int client_attach(int conn, const struct talk *t, uint32_t session, struct err *e);

/* Sends a message without descriptors and waits for one of this type; -EPIPE: the keeper is gone. */
int client_ask(int conn, struct keep_msg *m, enum keep_msg_type want, struct err *e);

#endif
