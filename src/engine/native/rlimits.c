/* SPDX-License-Identifier: Apache-2.0 */
/* engine/native/rlimits.c - the limits a process sets itself and hands down to all it starts. Raw calls: see mate.c. */
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/raw.h"
#include "base/sabotage.h"
#include "engine/native/native.h"

int rlimit_set(int which, uint64_t value)
{
	struct { /* the kernel's own */
		uint64_t cur, max;
	} old = { 0, 0 }, new = { value, value };
	long r = raw_call(SYS_prlimit64, 0, which, 0, (long)&old);

	if (r < 0)
		return (int)r;
	if (new.max > old.max) /* no limit is the largest number */
		new.cur = new.max = old.max;
	return (int)raw_call(SYS_prlimit64, 0, which, (long)&new, 0);
}

int rlimits_set(const struct plan *p, bool shares_kernel)
{
	const struct plan_limit *l = p->limits;
	int r = rlimit_set(RLIMIT_CORE, 0);

	if (r == 0 && l[LIMIT_PIDS].is_set && !sabotaged("pids"))
		r = rlimit_set(RLIMIT_NPROC, l[LIMIT_PIDS].max + 1); /* init is one of them */
	if (r == 0 && l[LIMIT_CPU_TIME].is_set)
		r = rlimit_set(RLIMIT_CPU, (l[LIMIT_CPU_TIME].max + NS_PER_SEC - 1) / NS_PER_SEC);
	/* Per-user kernel objects that no namespace counts: the user must keep some for themselves. Of another kernel
	 * than the host's they may use up what they like. */
	if (r == 0 && shares_kernel)
		r = rlimit_set(RLIMIT_MSGQUEUE, 819200);
	if (r == 0 && shares_kernel)
		r = rlimit_set(RLIMIT_SIGPENDING, 4096);
	if (r == 0 && shares_kernel && !sabotaged("locked"))
		r = rlimit_set(RLIMIT_MEMLOCK,
			       MIB); /* of shared memory; a process's own is counted apart */
	return r;
}
