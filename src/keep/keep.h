/* SPDX-License-Identifier: Apache-2.0 */
/* keep/keep.h - the keeper: the process outside the walls that owns one running sandbox
 *
 * It lives exactly as long as its sandbox runs. The CLI is its client: over a SOCK_SEQPACKET connection, in
 * fixed-size messages, it hands over its stdio and gets back the end. Dying clients end nothing; a dying keeper ends
 * everything inside.
 *
 * A run without a name ends with its command. A named sandbox ends when its last session has ended and no client is
 * connected any more, unless it was started to stay (`vitrine start`); then it ends when it is told to.
 */
#ifndef VITRINE_KEEP_KEEP_H
#define VITRINE_KEEP_KEEP_H

#include "engine/native/native.h"
#include "view/view.h"

#define KEEP_KEYS 8 /* the longest sequence that detaches */
#define KEEP_VALUES 12

/* The note that says how many names were quarantined, when they are too many to be named one by one. */
#define QUARANTINE_TOTAL "quarantined in all: "
#define STORY_LEFT_DIR                                                                             \
	"runs/ended" /* below the state directory: how sandboxes ended whose folder is gone */

enum keep_msg_type {
	/* from the client */
	KEEP_PLAN =
		1, /* the first client's first word: struct keeper_in is in shared memory; descriptors: the workspace and, where
		    * init has the plan already, the skeleton */
	KEEP_EXEC, /* flags, rows, cols, keys; descriptors: request, stdin, stdout, stderr */
	KEEP_ATTACH, /* session (0: the newest), flags, rows, cols, keys; descriptors: stdin, stdout */
	KEEP_SIGNAL, /* a = signal for the client's session */
	KEEP_RESIZE, /* rows, cols */
	KEEP_DETACH, /* the client goes, its session stays */
	KEEP_STOP,   /* a = seconds until what did not end is killed; answered when all is over */
	KEEP_WAIT,   /* session (0: the sandbox): answered by KEEP_ENDED */
	KEEP_STATUS, /* answered by KEEP_STATE, KEEP_SESSION..., KEEP_DONE */
	KEEP_STAY,   /* the sandbox stays without sessions; answered by KEEP_DONE */
	KEEP_NET,    /* a = enum net_op; err.msg: a rule; answered by KEEP_NET_DONE */
	KEEP_FILE,   /* a = enum file_op, b = mode; one descriptor: the paths */
	KEEP_PAUSE, /* answered by KEEP_DONE when all inside stand still; they go on when the connection ends */
	KEEP_PARK, /* a machine shall be saved; answered by a KEEP_SAVED for each session, KEEP_PARKED. It goes on when the
		    * connection ends */
	/* to the client */
	KEEP_STARTED, /* session; the command runs, or the sandbox that has none stands */
	KEEP_NOTE,    /* err.msg: one line for the person; a: at once */
	KEEP_ENDED, /* a = exit status, b = enum end_reason, v; err.msg: the story of END_ERROR, or the command's last words */
	KEEP_DETACHED,
	KEEP_STATE,   /* flags = enum state_flags, v */
	KEEP_SESSION, /* session, a = pid inside, flags, v; err.msg: the command */
	KEEP_FILE_DONE, /* a = errno or 0; with one descriptor where the operation gives one: it, or behind other walls a
			 * socket (remote/link.h), of what b = mode and VALUE_FILE_SIZE say */
	KEEP_NET_DONE, /* a = errno or 0, err; with one descriptor for NET_SHOW: the rules */
	KEEP_DONE,
	KEEP_SAVED, /* session, a = pid, b = its number for init, flags: on a terminal; rows, cols, v; err.msg: the command */
	KEEP_PARKED, /* nothing of it is on the way; four descriptors: its monitor, who serves its files (twice), its key */
	KEEP_SUSPENDED, /* to a client with KEEP_JOBS: its command was stopped by a key; SIGCONT from the client lets it go on */
	KEEP_MSG_COUNT_
};

enum net_op { NET_SHOW = 1, NET_ALLOW, NET_DENY, NET_OPEN, NET_SHUT };

/* What stands where in v. */
enum keep_value {
	VALUE_STARTED,   /* seconds since 1970 */
	VALUE_CPU_NS,    /* used so far */
	VALUE_MEMORY,    /* bytes, now; in KEEP_ENDED: the most one process had */
	VALUE_PEAK,      /* bytes, the most that was seen of all together */
	VALUE_PROCESSES, /* now */
	VALUE_OUTPUT,    /* bytes that went through the keeper */
	VALUE_SESSIONS,  /* that run */
	VALUE_VIEWERS,
	VALUE_NET_IN,
	VALUE_NET_OUT,
	VALUE_WALL_NS,   /* how long it ran */
	VALUE_FILE_SIZE, /* in KEEP_FILE_DONE */
	VALUE_COUNT_
};

enum end_reason {
	END_EXIT,
	END_SIGNAL,
	END_TIME,
	END_IDLE,
	END_MEMORY,
	END_OUTPUT,
	END_CPU_TIME,
	END_DISK,
	END_STOPPED, /* the keeper was asked to end */
	END_ERROR,
	END_CLOSING, /* not begun: the sandbox is just ending, ask again */
	END_REASON_COUNT_
};

enum keep_flags {
	KEEP_WANT_TTY = 1,   /* -t */
	KEEP_WANT_STDIN = 2, /* -i */
	KEEP_SEE_OUTPUT = 4, /* a limit counts it, or it is recorded: nothing passes unseen */
	KEEP_BEHIND = 8,     /* -d: nobody is there, it runs behind the scenes */
	KEEP_RECORD = 16,    /* its output is kept */
	KEEP_VIEW_ONLY = 32, /* attach: look and do not touch */
	KEEP_TIED = 64,      /* the sandbox ends with its first client, however that ends */
	KEEP_JOBS = 128,     /* the client can be suspended as a job of its shell */
};

enum state_flags {
	STATE_KEPT = 1,
	STATE_TTY = 2,
	STATE_RECORDED = 4,
	STATE_NAMED = 8,
	STATE_NET = 16, /* it has a gate */
	STATE_SCREEN =
		32, /* in KEEP_ENDED, KEEP_DETACHED: keys holds what is set on the terminal, see keep/screen.h */
	STATE_STOPPED =
		64 /* in KEEP_ENDED: by `vitrine stop`, whatever status the command had the time for */
};

struct keep_msg {
	uint32_t type;
	int32_t a, b;
	uint32_t flags;
	uint32_t session;
	uint16_t rows, cols;
	uint8_t keys
		[KEEP_KEYS]; /* the sequence that detaches; its end is a 0 or the end of the array */
	uint64_t v[KEEP_VALUES];
	struct err err;
};

const char *end_reason_name(enum end_reason r);

int keep_send(int fd, const struct keep_msg *m, const int *fds, size_t n_fds);
int keep_recv(int fd, struct keep_msg *m, int fds[PACKET_FDS]);

/* The value of a secret, on its way to vitrine-seal. */
struct keep_secret {
	const char *name;
	struct buf *value; /* wiped when it has been told */
};

/* What was saved before the start. */
struct keeper_saved {
	uint64_t checkpoint; /* 0: nothing had changed */
	uint64_t files, bytes;
};

/* Everything the keeper takes over from the process that forks it. */
struct keeper_in {
	struct plan *plan; /* without argv: the sandbox stands ready and runs nothing */
	const struct policy *policy;
	struct scan *scan;
	struct ground *grounds; /* other directories that can be written */
	size_t n_grounds;
	const struct cgroup_host *cgroups;
	int ws_fd;
	int client;                       /* the first client's connection */
	int stdio[3];                     /* the first client's */
	unsigned flags;                   /* enum keep_flags */
	const struct keep_secret *values; /* not in shared memory */
	size_t n_values;
	char **env; /* the caller's, for secrets that are read anew; NULL: none is */
	struct keeper_saved saved;
	const char *again; /* the folder of a saved machine that goes on; NULL: none does */
	bool is_rm;        /* a named sandbox goes with its last session */
	bool is_kept;      /* started to stay */
	uint16_t rows, cols;
	uint8_t keys[KEEP_KEYS];
};

/* Before either of the two below, once: says in the state directory that something may write to the directories that were
 * looked through. */
void masks_mark(struct keeper_in *in);

/* Forks the keeper; returns in the client with its end of the connection. */
int keeper_spawn(struct keeper_in *in, struct err *e);

/* The same in two halves, so that namespaces are made while the plan is: forks a keeper that makes init and waits.
 * After mem_share(); everything in struct keeper_in is then made before keeper_give() and never changed again. */
struct early {
	int conn; /* to the keeper; FD_NONE: none was begun */
	pid_t keeper;
	int init; /* the keeper's end to init */
	int turn; /* an eventfd: the keeper's turn */
};
#define EARLY_NONE ((struct early){ .conn = FD_NONE, .init = FD_NONE, .turn = FD_NONE })

int keeper_begin(const struct ids *ids, struct early *ret, struct err *e);
/* Init hears the plan from us where it needs nothing from the keeper first. */
int keeper_give(struct early *early, struct keeper_in *in, struct err *e);
/* There will be no plan: returns when nothing of it is left. */
void keeper_drop(struct early *early);

/* Connects to the keeper of a running sandbox. -ENOENT: it does not run. */
int keep_connect(const char *state_dir, const char *name, struct err *e);

/* ---- stdio ---- */

/* What a client's descriptor may be for a command inside. A host terminal never goes in, nor a socket or a file: a
 * socket can be pointed elsewhere, a file can be opened anew with other rights through /proc. */
enum stdio_kind { STDIO_PASS, STDIO_RELAY, STDIO_PTY, STDIO_NULL, STDIO_KIND_COUNT_ };
bool is_same_file(int a, int b);
void stdio_decide(const int fd[3], unsigned flags, enum stdio_kind ret[3]);

#endif
