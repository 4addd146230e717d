/* SPDX-License-Identifier: Apache-2.0 */
/* cli/tried.h - which engines start here: found out by starting each of them, and remembered for a while */
#ifndef VITRINE_CLI_TRIED_H
#define VITRINE_CLI_TRIED_H

#include "base/buf.h"
#include "engine/engine.h"

#define TRIED_MAX 32 /* engines in the table */

enum tried_state { TRIED_NOT, TRIED_WORKS, TRIED_FAILS };

struct tried {
	enum tried_state state;
	char *why; /* it does not work: what it said; NULL: nothing */
};

/* Starts `true` with every engine of the table whose `wanted` is set, all at the same time, in empty workspaces. A start
 * that succeeded in the last hour with the same programs counts; a failure is tried again each time. */
void tried_all(const char *state_dir, const bool wanted[TRIED_MAX], struct tried v[TRIED_MAX]);
void tried_done(struct tried v[TRIED_MAX]);

#endif
