/* SPDX-License-Identifier: Apache-2.0 */
/* plan/guest.h - the half of a plan that is carried out inside, as bytes for the link
 *
 * An engine other than native builds the outer walls (namespaces or a machine, mounts, no network); our init, pid 1
 * behind them, sets the limits, closes the inner locks (capabilities, no_new_privs, Landlock, system calls) and starts
 * the commands. What it needs for that is here: NUL-ended strings "key value", in any order, nothing else allowed.
 */
#ifndef VITRINE_PLAN_GUEST_H
#define VITRINE_PLAN_GUEST_H

#include "base/buf.h"
#include "plan/plan.h"

#define GUEST_MAX (4 * MIB)

/* What the plan does not say: how much of the lock the engine's kernel can take. */
struct guest_walls {
	bool has_own_kernel; /* not the host's: it may lack what guards the host's, Landlock among it */
	bool has_cgroups; /* the engine counts processes: ours would be counted with the user's others */
	bool is_elsewhere; /* the engine may be another machine's: init looks whether the workspace is the one that was meant */
	uint64_t
		ws_mtime; /* for that, besides its number: one of the two is kept by every way to share a directory */
	unsigned umask;
	unsigned sample_ms; /* 0: no samples are wanted */
};

void guest_encode(const struct plan *p, const struct guest_walls *w, struct buf *out);

/* Fills the fields of a plan that init uses (env, cwd, access, limits, ids, debug, landlock_abi); plan_done() frees
 * it. ERR_CONFIG on anything it does not know. */
int guest_decode(const char *p, size_t n, struct plan *ret, struct guest_walls *walls,
		 struct err *e);

#endif
