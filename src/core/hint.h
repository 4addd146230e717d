/* SPDX-License-Identifier: Apache-2.0 */
/* core/hint.h - a command failed: was it a wall, which one, and what would open it
 *
 * Nothing inside tells us; the last words of the command do. A guess, worded as one, and only when the words fit a
 * wall of this very plan.
 */
#ifndef VITRINE_CORE_HINT_H
#define VITRINE_CORE_HINT_H

#include "plan/plan.h"

/* The last output (n bytes, foreign) of a command that failed under plan p. exists() asks the host. Adds one line
 * without its end and returns true, or returns false. */
bool hint_find(const struct plan *p, const char *tail, size_t n, bool (*exists)(const char *path),
	       struct buf *out);

/* In front of a hint that is shown while the command runs. */
#define HINT_WORD "hint: "

/* A name was asked for in a sandbox that has no network: one line for the person. The name is foreign. */
void hint_no_network(const char *name, struct buf *out);

#endif
