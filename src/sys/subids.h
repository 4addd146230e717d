/* SPDX-License-Identifier: Apache-2.0 */
/* sys/subids.h - subordinate ids: a range of ids that an account may map into its user namespaces
 *
 * A sandbox with a root file system of its own has many ids inside. Outside they are ids of such a range, which own
 * nothing but what was made in such sandboxes; the caller's own id stays itself, so that the workspace has its owner.
 */
#ifndef VITRINE_SYS_SUBIDS_H
#define VITRINE_SYS_SUBIDS_H

#include <sys/types.h>

#include "base/err.h"

#define SUBIDS_COUNT 65536U

struct id_range {
	uint32_t in, out, count;
};

struct id_map {
	struct id_range v[3];
	size_t n; /* 0: none */
};

/* The first range of SUBIDS_COUNT ids that `text`, in the form of /etc/subuid, gives to this account. */
bool subids_find(const char *text, const char *user, uid_t uid, uint32_t *ret_first);

/* All of 0 to SUBIDS_COUNT - 1 onto the range that begins with `first`, but `own` onto itself. */
struct id_map subids_map(uint32_t own, uint32_t first);
/* Without an exception: for root, who is nobody inside. */
struct id_map subids_map_all(uint32_t first);

/* What /proc/PID/uid_map takes: a line for each range. */
void subids_text(const struct id_map *m, char *ret, size_t size);

/* Writes both maps of a process that is alone in its new user namespace: root does it, for others newuidmap and newgidmap
 * do. */
int subids_write(pid_t pid, const struct id_map *uids, const struct id_map *gids, struct err *e);

/* Runs fn(arg) in a child that is root of these ids and of nothing else, and waits for it. What it finds out it leaves in
 * memory that both share. 0 when it came to its end. Without maps it stays the caller, with every right over the caller's own
 * files: nothing of those is closed to it. */
int subids_run(const struct id_map *uids, const struct id_map *gids, void (*fn)(void *), void *arg,
	       struct err *e);

#endif
