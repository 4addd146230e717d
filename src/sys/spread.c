/* SPDX-License-Identifier: Apache-2.0 */
/* sys/spread.c - a newborn process begins at once, on another processor
 *
 * The kernel leaves a newborn on its parent's processor more often than not, where it waits until the parent blocks or
 * an idle processor comes and fetches it. For work that is meant to be done beside the parent's that is half a
 * millisecond lost, a tenth of a whole start. So the parent moves it: for a moment the child may run anywhere but
 * here. To wake a processor that sleeps costs a tenth of that.
 */
#include "sys/spread.h"

struct spread spread_look(void)
{
	struct spread s = { .is_known = false };

	/* It fails on a machine with more processors than fit the set, which is then left to its own ways. */
	s.is_known = sched_getaffinity(0, sizeof(s.all), &s.all) == 0;
	return s;
}

void spread_child(const struct spread *s, pid_t child)
{
	int here = sched_getcpu();
	cpu_set_t others = s->all;

	if (!s->is_known || here < 0 || here >= CPU_SETSIZE)
		return;
	CPU_CLR((size_t)here, &others);
	if (CPU_COUNT(&others) > 0)
		(void)sched_setaffinity(child, sizeof(others), &others);
}

void spread_end(const struct spread *s)
{
	if (s->is_known)
		(void)sched_setaffinity(0, sizeof(s->all), &s->all);
}
