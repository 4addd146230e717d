/* SPDX-License-Identifier: Apache-2.0 */
/* sys/spread.h - which processor the few processes of a start begin on */
#ifndef SYS_SPREAD_H
#define SYS_SPREAD_H

#include <stdbool.h>
#include <sys/types.h>

/* By the first of them, before it makes the second. What is remembered here goes on to all that are forked from it.
 * Nothing in this file can fail in a way that matters, and nothing happens where there is one processor only. */
void spread_begin(void);

/* By a parent, right after it made `child`, which is to work beside it. */
void spread_child(pid_t child);

/* By a parent that is about to wait, for a child that waits already: it is to be woken here. */
void spread_back(pid_t child);

/* For work that nobody waits for: while this is on, waking us takes the processor from nobody. Children inherit that: the
 * sandbox is made before, and a child that becomes another program calls spread_before_exec(), which changes no memory. */
void spread_behind(bool is_behind);
void spread_before_exec(void);

/* By one that shares its parent's memory, which is not to be told that it is over: every processor is allowed again. */
void spread_free(void);

/* By everybody who lives on, before it runs anything that is not ours: every processor is allowed again. */
void spread_end(void);

#endif
