/* SPDX-License-Identifier: Apache-2.0 */
/* keep/keep.h - the keeper: the process outside the walls that owns one running sandbox
 *
 * It lives exactly as long as its sandbox. The CLI is its client: over a SOCK_SEQPACKET connection, in fixed-size
 * messages, it hands over its stdio and gets back the end. Dying clients end nothing; a dying keeper ends
 * everything inside.
 */
#ifndef VITRINE_KEEP_KEEP_H
#define VITRINE_KEEP_KEEP_H

#include "engine/native/native.h"
#include "view/view.h"

enum keep_msg_type {
	/* from the client */
	KEEP_EXEC = 1, /* flags, rows, cols; descriptors: request, stdin, stdout, stderr */
	KEEP_SIGNAL,   /* a = signal for the client's session */
	KEEP_RESIZE,   /* rows, cols */
	/* to the client */
	KEEP_STARTED, /* the command runs */
	KEEP_NOTE,    /* err.msg: one line for the person */
	KEEP_ENDED, /* a = exit status, b = enum end_reason; err.msg: the story of END_ERROR, or the command's last words */
	KEEP_MSG_COUNT_
};

enum end_reason {
	END_EXIT,
	END_SIGNAL,
	END_TIME,
	END_IDLE,
	END_MEMORY,
	END_OUTPUT,
	END_CPU_TIME,
	END_STOPPED, /* the keeper was asked to end */
	END_ERROR,
	END_REASON_COUNT_
};

enum keep_flags {
	KEEP_WANT_TTY = 1,   /* -t */
	KEEP_WANT_STDIN = 2, /* -i */
	KEEP_SEE_OUTPUT = 4, /* a limit counts it: nothing passes unseen */
};

struct keep_msg {
	uint32_t type;
	int32_t a, b;
	uint32_t flags;
	uint16_t rows, cols;
	struct err err;
};

const char *end_reason_name(enum end_reason r);

int keep_send(int fd, const struct keep_msg *m, const int *fds, size_t n_fds);
int keep_recv(int fd, struct keep_msg *m, int fds[PACKET_FDS]);

/* The value of a secret, on its way to vitrine-seal. */
struct keep_value {
	const char *name;
	struct buf *value; /* wiped when it has been told */
};

/* Everything the keeper takes over from the process that forks it. */
struct keeper_in {
	struct plan *plan;
	const struct policy *policy;
	struct scan *scan;
	const struct cgroup_host *cgroups;
	int ws_fd;
	int client;     /* the first client's connection */
	int stdio[3];   /* the first client's */
	unsigned flags; /* enum keep_flags */
	const struct keep_value *values;
	size_t n_values;
	bool is_rm; /* a named sandbox goes with its command */
	uint16_t rows, cols;
};

/* Forks the keeper; returns in the client with its end of the connection. */
int keeper_spawn(struct keeper_in *in, struct err *e);

/* Connects to the keeper of a running sandbox. */
int keep_connect(const char *state_dir, const char *name, struct err *e);

/* ---- stdio ---- */

/* What a client's descriptor may be for a command inside. A host terminal never goes in, nor a socket or a file: a
 * socket can be pointed elsewhere, a file can be opened anew with other rights through /proc. */
enum stdio_kind { STDIO_PASS, STDIO_RELAY, STDIO_PTY, STDIO_NULL, STDIO_KIND_COUNT_ };
bool is_same_file(int a, int b);
void stdio_decide(const int fd[3], unsigned flags, enum stdio_kind ret[3]);

#endif
