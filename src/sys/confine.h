/* SPDX-License-Identifier: Apache-2.0 */
/* sys/confine.h - a process gives up what it does not need, before its first foreign byte
 *
 * no_new_privs, an empty Landlock domain (no file, and where the kernel knows it no signal and no abstract socket
 * outside), and a system call filter that allows a fixed small set plus what is promised. What is not allowed answers
 * EPERM. The filter knows the kernel's own calling convention only; any other ends the process.
 */
#ifndef VITRINE_SYS_CONFINE_H
#define VITRINE_SYS_CONFINE_H

#include "base/err.h"

/* Always: read, write, send and receive on what is open, wait, memory without execution, the time, exit. */
enum confine_promise {
	CONFINE_ACCEPT = 1,  /* accept connections on listeners it was given */
	CONFINE_CONNECT = 2, /* make and connect TCP and UDP sockets */
	CONFINE_LISTEN = 4,  /* bind and listen */
};

int confine(unsigned promises, struct err *e);

/* Tries what must not work: files, processes, and sockets where they are not promised. ERR_BUG names the open door. */
int confine_prove(unsigned promises, struct err *e);

/* ---- confine_calls.c ---- */

#define CONFINE_CALLS 64 /* at most */

/* Those system calls and no other: one that is not in the list ends the process. no_new_privs must be set. 0 or -errno. */
int confine_calls(const int *allowed, size_t n_allowed);

/* ---- confine_program.c ---- */

/* What of a network a program gets that is not ours. Each has less than the next. */
enum confine_net {
	CONFINE_OFFLINE, /* no socket of any kind but what it was given */
	CONFINE_WEB, /* the addresses of names, and TCP to `ports` (any port, where the kernel knows none: before 6.7) */
	CONFINE_ONLINE, /* connections wherever it likes, unix sockets as well; it waits for none */
	CONFINE_FREE,   /* no filter at all: Vitrine itself */
};

#define CONFINE_PORTS 8

struct confine_program {
	const char *const *
		read; /* files beneath may be read and run; what does not exist is left out; NULL-ended */
	const char *const *write; /* and changed as well */
	enum confine_net net;
	uint16_t ports[CONFINE_PORTS]; /* 0-ended */
	bool is_alone; /* with CONFINE_FREE too: no signals and no abstract sockets outside, where the kernel knows it */
};

/* For a child that will exec somebody else's program. Where it has a filter, it may call what a sandbox may (docs/SYSCALLS.md).
 * Refused where the kernel knows no Landlock. */
int confine_program(const struct confine_program *c, struct err *e);

#endif
