/* SPDX-License-Identifier: Apache-2.0 */
/* engine/engine.h - what carries out a plan, and what each engine can honour
 *
 * An engine honours every step of a plan or is refused by name. The table says which steps each one claims; the
 * same table is printed by `vitrine engines`.
 */
#ifndef VITRINE_ENGINE_ENGINE_H
#define VITRINE_ENGINE_ENGINE_H

#include "plan/plan.h"

/* What a plan may ask for. */
enum engine_step {
	STEP_MOUNTS, /* only the mounts that are named, read-only where read-only */
	STEP_HIDE,   /* hidden and protected names in the workspace */
	STEP_REMASK, /* they stay so when the host replaces them */
	STEP_NO_NETWORK,
	STEP_ENV,   /* environment from an allowlist */
	STEP_IDS,   /* no id of the host's root inside */
	STEP_CALLS, /* system call allowlist */
	STEP_LANDLOCK,
	STEP_PIDS,
	STEP_MEMORY,
	STEP_TIME,
	STEP_DISK,
	STEP_PTY,  /* a terminal of its own */
	STEP_EXEC, /* further commands in a running sandbox */
	STEP_COUNT_
};

enum engine_strength { STRENGTH_PROCESS, STRENGTH_KERNEL, STRENGTH_VM, STRENGTH_COUNT_ };

struct engine {
	const char *name;
	const char *summary;
	enum engine_strength strength;
	unsigned steps; /* BIT(STEP_x) */
	bool needs_root;
};

extern const struct engine engines[]; /* ends with a NULL name */

const struct engine *engine_find(const char *name);
const char *engine_step_name(enum engine_step s);
const char *engine_strength_name(enum engine_strength s);

/* The steps this plan asks for. */
unsigned engine_steps_of(const struct plan *p);

/* ERR_UNSUPPORTED that names the first step the engine cannot honour. */
int engine_check(const struct engine *en, const struct plan *p, struct err *e);

#endif
