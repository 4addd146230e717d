/* SPDX-License-Identifier: Apache-2.0 */
/* engine/native/native.h - namespaces, mounts, Landlock and seccomp by our own system calls
 *
 * native_start() runs in the keeper. It clones init, which builds the view, locks itself in, proves the lock and
 * starts the first command; every later command is started by the same init, inside the same walls, so nothing
 * ever joins a sandbox from outside. Keeper and init speak over one SOCK_SEQPACKET pair in fixed-size messages;
 * the keeper treats what comes from init as foreign.
 */
#ifndef VITRINE_ENGINE_NATIVE_NATIVE_H
#define VITRINE_ENGINE_NATIVE_NATIVE_H

#include "plan/plan.h"
#include "sys/cgroup.h"
#include "sys/netns.h"
#include "sys/packet.h"

#define INIT_SESSIONS 64 /* commands running at once in one sandbox */

enum init_msg_type {
	/* from init */
	INIT_FAILED = 1, /* err: set-up stopped, nothing ran */
	INIT_STARTED, /* session; a = pid inside; with one descriptor when it has a terminal: its master side */
	INIT_NOT_STARTED, /* session; a = errno of execve; b = 1: chdir failed */
	INIT_EXITED,      /* session; a = wait status */
	INIT_PROC, /* with one descriptor: the sandbox's own /proc, before the first command runs */
	INIT_NET, /* a: has IPv6; b: TCP is redirected; descriptors as in enum netns_socket; before the first command */
	INIT_NET_MORE, /* session = port, with one listener: a port of the host's loopback; 0: two, see gate/inside.c */
	INIT_FROZEN, /* every process but init has been sent SIGSTOP */
	/* to init */
	INIT_GO, /* control groups are in place: start the first command */
	INIT_START, /* session; flags; descriptors: request, then the stdio ones that are not the terminal's */
	INIT_SIGNAL, /* session; a = signal, to the process group of the session */
	INIT_FREEZE,
	INIT_THAW,
	INIT_MSG_COUNT_
};

enum init_flags {
	INIT_PTY_IN = 1, /* which of 0, 1, 2 is the session's own terminal */
	INIT_PTY_OUT = 2,
	INIT_PTY_ERR = 4,
};

struct init_msg {
	uint32_t type;
	uint32_t session;
	int32_t a, b;
	uint32_t flags;
	uint16_t rows, cols;
	struct err err;
};

/* A command for init, as bytes of a sealed memfd: this header, then argc + envc NUL-ended strings and the cwd. */
#define REQUEST_MAX (4 * MIB)
struct request_head {
	uint32_t magic, argc, envc, bytes;
};
#define REQUEST_MAGIC 0x76727131U

struct stdio {
	int fd[3];      /* what the first command gets, where it is not its own terminal */
	unsigned flags; /* enum init_flags */
	uint16_t rows, cols;
};

struct native {
	pid_t pid; /* of init, outside */
	int pidfd;
	int ctl;             /* the keeper's end */
	int user_ns, mnt_ns; /* for putting masks back */
	int skel;            /* holds a shared lock while the skeleton is in use */
};

#define NATIVE_NONE                                                                                \
	((struct native){ .pidfd = FD_NONE,                                                        \
			  .ctl = FD_NONE,                                                          \
			  .user_ns = FD_NONE,                                                      \
			  .mnt_ns = FD_NONE,                                                       \
			  .skel = FD_NONE })

/* Makes init. The command starts when native_go() is called or, without control groups, by itself. */
int native_start(const struct plan *p, const struct stdio *io, const struct cgroup *cg,
		 struct native *ret, struct err *e);
void native_done(struct native *n);

/* Puts the cover of mount `m` back after the host replaced the file below it. The sandbox must be frozen. */
int native_cover(const struct native *n, const struct mount *m, struct err *e);

int init_send(int fd, const struct init_msg *m, const int *fds, size_t n_fds);
/* 1: a message; 0: the peer is gone; < 0: not a message, end the sandbox. At most 4 descriptors, FD_NONE where none. */
int init_recv(int fd, struct init_msg *m, int fds[PACKET_FDS]);

/* ---- inside the engine ---- */

/* The skeleton's directory in the state directory, made when missing; returns an O_PATH fd with a shared lock. */
int skel_open(const struct plan *p, char *ret_path, size_t path_size, struct err *e);

struct child {
	const struct plan *plan;
	const struct stdio *io;
	const char *skel_path;
	const int *idmapped; /* per mount: a detached tree from the keeper, or FD_NONE */
	int ctl;
	int root;    /* the new root */
	int private; /* the sandbox's tmpfs */
	int *trees;  /* per mount: its source, opened while the host is still visible */
	bool needs_go, needs_proc;
	pid_t net_maker; /* makes the network namespace while we build the view */
	mode_t umask;    /* the caller's, for the commands */
	char where[256]; /* what the step was working on, for its error */
};

_Noreturn void child_main(struct child *c);
_Noreturn void init_main(struct child *c);
int lock_all(struct child *c); /* caps, no_new_privs, landlock, seccomp; 0 or -errno */
int lock_prove(char *where,
	       size_t size); /* try what is forbidden; -EPERM... or 0 when every door is closed */
int mounts_open(struct child *c);
int mounts_attach(struct child *c);
int mounts_cover(int root, const struct mount *m);

#endif
