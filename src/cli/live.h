/* SPDX-License-Identifier: Apache-2.0 */
/* cli/live.h - talking to sandboxes that last: finding, waking, asking */
#ifndef VITRINE_CLI_LIVE_H
#define VITRINE_CLI_LIVE_H

#include "cli/client.h"
#include "cli/run.h"

struct words {
	char **v; /* NULL-ended once something is in it */
	size_t n;
};

void words_add(struct words *w, char *take_text);
void words_free(struct words *w);

/* "K=V", or "K" with the caller's value; a variable the caller has not is left out. */
void words_add_env(struct words *w, const char *text);
/* What a program on this terminal must know of it. */
void live_terminal_env(struct words *w);

/* Where a command begins inside: workdir seen from the workspace, else the caller's directory where it lies in it. */
char *live_cwd(const struct def *d, const char *cwd, const char *workdir);

/* A connection to the keeper of this sandbox, which is started to wait for requests where it does not run. `is_kept`:
 * it stays when the connection is gone. */
int live_wake(const struct host *h, const char *name, bool is_kept, struct err *e);

/* A machine that was saved goes on from that folder; it must not run. */
int live_again(const struct host *h, const char *name, const char *folder, struct err *e);

/* The same for who wants more than one thing of it: it does not end before the connection does. */
int live_hold(const struct host *h, const char *name, bool is_kept, struct err *e);

/* What one live sandbox says of itself. */
struct live {
	bool is_running;
	struct keep_msg state;
	struct keep_msg *sessions;
	size_t n;
};

/* is_running is false when nobody answers. */
int live_ask(const char *state_dir, const char *name, struct live *ret, struct err *e);

/* Waits until no process holds the lock of the sandbox's folder, or the folder is gone: 0. -EBUSY: a process holds it for
 * longer than `wait_ns`. */
int live_wait_free(const char *state_dir, const char *name, uint64_t wait_ns, struct err *e);
void live_done(struct live *l);

#endif
