/* SPDX-License-Identifier: Apache-2.0 */
/* sys/spread.h - a newborn process begins at once, on another processor */
#ifndef SYS_SPREAD_H
#define SYS_SPREAD_H

#include <sched.h>
#include <stdbool.h>
#include <sys/types.h>

/* Which processors are ours; looked at before the child is made, so that parent and child both know. */
struct spread {
	cpu_set_t all;
	bool is_known;
};

struct spread spread_look(void);

/* By the parent, right after it made `child`: away from here. Does nothing where there is one processor only, and nothing
 * here can fail in a way that matters. */
void spread_child(const struct spread *s, pid_t child);

/* By the child, before it makes anybody itself: every processor is allowed again. */
void spread_end(const struct spread *s);

#endif
