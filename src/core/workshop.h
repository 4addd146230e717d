/* SPDX-License-Identifier: Apache-2.0 */
/* core/workshop.h - a tool of the host, run behind Vitrine's own walls
 *
 * What must read bytes of a sandbox (git, tar) is run in a sandbox of its own: an ephemeral one without a network, with
 * no file of the host but the system's and those that the job names, no policy of the user's, and a clean environment.
 * Its state lies in `workshop/` of the state directory, so that nothing of it shows among the user's runs.
 */
#ifndef VITRINE_CORE_WORKSHOP_H
#define VITRINE_CORE_WORKSHOP_H

#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

#define WORKSHOP_VIEWS_MAX 80
#define WORKSHOP_ENV_MAX 16

struct job {
	const char *state_dir; /* the user's */
	const char
		*views[WORKSHOP_VIEWS_MAX]; /* "HOST:/inside:ro" or ":rw", as `run -v` takes them */
	const char *env[WORKSHOP_ENV_MAX];  /* "K=V", beside PATH and HOME */
	const char *const *argv;            /* NULL-ended; a path is one inside */
	uint64_t seconds;                   /* then it is ended */
	bool is_as_root;                    /* it is root of the account's subordinate ids */
	int in, out, err;                   /* pipes, or FD_NONE for /dev/null */
};

/* For a program that is not `vitrine` itself: where that lies. Kept, not copied. */
void workshop_use(const char *vitrine);

/* Starts it; -errno when that fails. The caller waits for it. It is killed when the caller's process ends. */
pid_t workshop_start(const struct job *j, struct err *e);

/* Starts another command of this very program (`vitrine exec ...`) with the caller's environment. */
pid_t workshop_self(const char *const *argv, int in, int out, int err, struct err *e);

/* Its exit status as a shell counts it; 128+n for a signal. */
int workshop_wait(pid_t pid);

/* To its end, without input: 0, or an error that ends with its last line on stderr. `out` may be NULL; what is over
 * its ceiling is refused. */
int workshop_run(struct job *j, struct buf *out, struct err *e);

/* Removes a directory with all that is in it, also what belongs to ids of a root inside. 0 when it is gone. */
int workshop_remove(const char *state_dir, const char *path, struct err *e);

/* What a root inside has made in the workspace, or given away there, is its owner's again. Not root's: there it cannot be. */
int workshop_give_back(const char *state_dir, const char *workspace, struct err *e);

/* Reads from pipes until all are closed or the time is over. */
struct listen {
	int fd; /* taken */
	struct buf *to;
	bool is_tail; /* what goes over the ceiling is thrown away */
};
int workshop_listen(struct listen *v, size_t n, uint64_t seconds, struct err *e);

/* The last line of what a tool said, fit for a message. */
char *workshop_last_line(const struct buf *b);

#endif
