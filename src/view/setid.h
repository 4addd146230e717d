/* SPDX-License-Identifier: Apache-2.0 */
/* view/setid.h - no set-user-id and no set-group-id bit outlives the sandbox that made it
 *
 * Inside such a bit means nothing: the mounts are nosuid. On the host the file belongs to the caller, so whoever runs it
 * there gets the caller's user or group. The system call filter refuses chmod() with the set-user-id bit; it cannot refuse
 * the set-group-id bit, which directories use, nor see the mode of openat2(). So the bits are taken off regular files when
 * nothing inside lives any more.
 */
#ifndef VITRINE_VIEW_SETID_H
#define VITRINE_VIEW_SETID_H

#include <sys/stat.h>

#include "base/err.h"

struct setid {
	/* Files whose inode last changed before this (realtime, ns) are the host's own and stay, counted in `spared`; 0: all
	 * are taken. */
	int64_t since;
	/* Called before a bit is taken off; `bits` are those of the mode that go. */
	void (*on_found)(void *arg, const char *rel, mode_t bits);
	void *arg;
	uint64_t taken, spared;
	uint64_t failed; /* still there */
};

/* A tree, or one file. Follows no link, stays beneath fd (O_PATH will do). Adds to the counts. */
int setid_strip(int fd, struct setid *s, struct err *e);

#endif
