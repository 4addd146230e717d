/* SPDX-License-Identifier: Apache-2.0 */
/* sys/shared.h - memory inside that is no process's own: /dev/shm, /tmp, System V segments, memfd, shared mappings */
#ifndef VITRINE_SYS_SHARED_H
#define VITRINE_SYS_SHARED_H

#include "base/base.h"

struct shared {
	int tmpfs[2]; /* directories of file systems in memory, FD_NONE: none */
	int sysv;     /* /proc/sysvipc/shm as opened inside: it is that of the opener's namespace */
	int user_ns; /* borrowed: where only who is in it may look at the processes; FD_NONE: we may */
	uint64_t bytes, next_ns;
};

#define SHARED_NONE                                                                                \
	((struct shared){ .tmpfs = { FD_NONE, FD_NONE }, .sysv = FD_NONE, .user_ns = FD_NONE })

/* How much there is now, or was at the last look: one that takes long is made less often, so that all looks together take a
 * twentieth of a processor at most. `proc` is the sandbox's own /proc. */
uint64_t shared_take(struct shared *s, int proc);
/* Takes ownership of one of the three, by what it is; closes what is none of them. */
void shared_add(struct shared *s, int take_fd);
void shared_done(struct shared *s);

#endif
