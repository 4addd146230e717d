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

/* For a child that will exec somebody else's program: files beneath `read` may be read and run, beneath `write` changed
 * as well, and no others; no new privileges. Paths that do not exist are left out. NULL-ended. Refused where the kernel
 * knows no Landlock. */
int confine_files(const char *const *read, const char *const *write, struct err *e);

#endif
