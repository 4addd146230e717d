/* SPDX-License-Identifier: Apache-2.0 */
/* engine/native/rlimits.c - the limits a process sets itself and hands down to all it starts. Raw calls: see mate.c. */
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/raw.h"
#include "base/sabotage.h"
#include "engine/native/native.h"

static int set(int which, uint64_t cur, uint64_t max)
{
	struct { /* the kernel's own */
		uint64_t cur, max;
	} old = { 0, 0 }, new = { cur, max };
	long r = raw_call(SYS_prlimit64, 0, which, 0, (long)&old);

	if (r < 0)
		return (int)r;
	if (new.max > old.max) /* no limit is the largest number */
		new.max = old.max;
	if (new.cur > new.max)
		new.cur = new.max;
	return (int)raw_call(SYS_prlimit64, 0, which, (long)&new, 0);
}

int rlimit_set(int which, uint64_t value)
{
	return set(which, value, value);
}

/* SIGXCPU at the limit says which limit it was; a second later, where the process goes on, SIGKILL. */
static int set_cpu(uint64_t ns)
{
	uint64_t seconds = (ns + NS_PER_SEC - 1) / NS_PER_SEC;

	return set(RLIMIT_CPU, seconds, seconds + 1);
}

int rlimits_set(const struct plan *p, bool shares_kernel)
{
	const struct plan_limit *l = p->limits;
	int r = rlimit_set(RLIMIT_CORE, 0);

	if (r == 0 && l[LIMIT_PIDS].is_set && !sabotaged("pids"))
		r = rlimit_set(RLIMIT_NPROC, l[LIMIT_PIDS].max + 1); /* init is one of them */
	if (r == 0 && l[LIMIT_CPU_TIME].is_set)
		r = set_cpu(l[LIMIT_CPU_TIME].max);
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
