/* SPDX-License-Identifier: Apache-2.0 */
/* sys/freeze.h - stops every process below one, in a way that none of them can end
 *
 * SIGSTOP ends with the next SIGCONT, and the kernel sends that for whoever asks: a timer, a descriptor's owner, a child's
 * exit signal. A thread that is stopped under ptrace goes on only when its tracer lets it. A helper process, forked
 * for the time of one freeze, is that tracer; freeze.c says how it finds every thread.
 */
#ifndef VITRINE_SYS_FREEZE_H
#define VITRINE_SYS_FREEZE_H

#include <sys/types.h>

#include "base/err.h"

struct freeze {
	pid_t pid; /* of the helper; 0: none */
	int fd;    /* readable: freeze_result() has something to say */
};

#define FREEZE_NONE ((struct freeze){ .fd = FD_NONE })

struct freeze_result {
	int error;        /* 0: everything stands still */
	unsigned killed;  /* processes that could not be stopped and were ended */
	unsigned threads; /* that stand still */
};

/* Begins to stop all descendants of `root`, which is pid 1 of a pid namespace and itself goes on: it must start nothing
 * meanwhile. Its user and mount namespaces are what the helper enters. */
int freeze_begin(struct freeze *f, pid_t root, int user_ns, int mnt_ns, struct err *e);
/* 1: *ret; 0: the helper is dead and everything goes on. error -EPERM: this host lets nobody be traced; -ENOSYS: its
 * kernel does not tell who is whose child; then nothing was stopped. */
int freeze_result(const struct freeze *f, struct freeze_result *ret);
/* Everything goes on. Also when it was never stopped. */
void freeze_end(struct freeze *f);

#endif
