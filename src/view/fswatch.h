/* SPDX-License-Identifier: Apache-2.0 */
/* view/fswatch.h - while a sandbox runs: what appears under a protected name, and which masks the host broke
 *
 * The parents of all hits are watched from fswatch_open() on. The rest of the workspace follows in slices
 * (fswatch_step), shallow directories first and FSWATCH_DIRS_MAX at most; new directories are added as they appear.
 * Names that were made between the scan and the watch on their directory are reported when the watch is added.
 * This is an early warning: what it misses (bounds, overflow) the final sweep finds.
 */
#ifndef VITRINE_VIEW_FSWATCH_H
#define VITRINE_VIEW_FSWATCH_H

#include "view/view.h"

#define FSWATCH_DIRS_MAX 8192

enum fswatch_kind {
	/* rel may be protected, or hidden, and is new or was written: sweep_one(); hide it again if the host took away
	 * what was hidden there. */
	FSWATCH_APPEARED,
	/* rel is a hit and was created, removed or moved, by the host: scan_refresh() it and, when it is a directory,
	 * the hits below it; then mask again. */
	FSWATCH_REPLACED,
	FSWATCH_OVERFLOW, /* events were lost, rel is "": sweep_run(), and look at every hit */
	FSWATCH_KIND_COUNT_
};

struct fswatch;

/* ws_fd, p and s are borrowed until fswatch_free(); s may be changed by scan_refresh() in between. */
int fswatch_open(int ws_fd, const struct policy *p, const struct scan *s, struct fswatch **ret,
		 struct err *e);
void fswatch_free(struct fswatch *w);

/* Readable when fswatch_read() has something to do. */
int fswatch_fd(const struct fswatch *w);

/* Adds watches for about `ns` nanoseconds. 1: more to do, 0: done. Names that are met in directories which are themselves
 * new, or were changed since the scan, are reported like events. */
typedef void (*fswatch_fn)(void *arg, enum fswatch_kind kind, const char *rel);
int fswatch_step(struct fswatch *w, uint64_t ns, fswatch_fn fn, void *arg, struct err *e);

/* Reads what is there, without waiting. The number of reports, or -errno. After it there may be new directories: step. */
int fswatch_read(struct fswatch *w, fswatch_fn fn, void *arg, struct err *e);

/* All directories are watched, or there were too many. */
bool fswatch_is_complete(const struct fswatch *w);
size_t fswatch_count(const struct fswatch *w);

#endif
