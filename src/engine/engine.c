/* SPDX-License-Identifier: Apache-2.0 */
/* engine/engine.c - the table of engines, and the question whether one can carry out a plan */
#include "engine/engine.h"

const struct engine engines[] = {
	{ "native", "namespaces, Landlock and a system call filter by Vitrine itself",
	  STRENGTH_PROCESS, BIT(STEP_COUNT_) - 1, false },
	{ NULL, NULL, STRENGTH_PROCESS, 0, false },
};

static const char *const step_names[STEP_COUNT_] = {
	[STEP_MOUNTS] = "mounts",      [STEP_HIDE] = "hide and protect",
	[STEP_REMASK] = "re-mask",     [STEP_NO_NETWORK] = "no network",
	[STEP_ENV] = "environment",    [STEP_IDS] = "mapped ids",
	[STEP_CALLS] = "system calls", [STEP_LANDLOCK] = "landlock",
	[STEP_PIDS] = "pids limit",    [STEP_MEMORY] = "memory limit",
	[STEP_TIME] = "time limits",   [STEP_DISK] = "disk limit",
	[STEP_PTY] = "terminal",       [STEP_EXEC] = "exec",
};

static const char *const strength_names[STRENGTH_COUNT_] = {
	"shared kernel",
	"user-space kernel",
	"own kernel",
};

const struct engine *engine_find(const char *name)
{
	for (const struct engine *en = engines; en->name; en++)
		if (str_eq(en->name, name))
			return en;
	return NULL;
}

const char *engine_step_name(enum engine_step s)
{
	bug_on(s >= STEP_COUNT_);
	return step_names[s];
}

const char *engine_strength_name(enum engine_strength s)
{
	bug_on(s >= STRENGTH_COUNT_);
	return strength_names[s];
}

unsigned engine_steps_of(const struct plan *p)
{
	static const struct {
		enum limit_id limit;
		enum engine_step step;
	} limits[] = {
		{ LIMIT_PIDS, STEP_PIDS }, { LIMIT_MEMORY, STEP_MEMORY }, { LIMIT_TIME, STEP_TIME },
		{ LIMIT_IDLE, STEP_TIME }, { LIMIT_DISK, STEP_DISK },
	};
	unsigned steps = BIT(STEP_MOUNTS) | BIT(STEP_NO_NETWORK) | BIT(STEP_ENV) | BIT(STEP_IDS) |
			 BIT(STEP_CALLS) | BIT(STEP_LANDLOCK) | BIT(STEP_PTY) | BIT(STEP_EXEC);

	for (size_t i = 0; i < ARRAY_LEN(limits); i++)
		if (p->limits[limits[i].limit].is_set)
			steps |= BIT(limits[i].step);
	for (size_t i = 0; i < p->n_mounts; i++)
		if (p->mounts[i].kind == MOUNT_HIDE || p->mounts[i].kind == MOUNT_PROTECT)
			steps |= BIT(STEP_HIDE) | BIT(STEP_REMASK);
	return steps;
}

int engine_check(const struct engine *en, const struct plan *p, struct err *e)
{
	unsigned missing = engine_steps_of(p) & ~en->steps;

	for (enum engine_step s = 0; s < STEP_COUNT_; s++)
		if (missing & BIT(s))
			return err_set(e, ERR_UNSUPPORTED, ENOTSUP, "engine '%s' cannot honour: %s",
				       en->name, engine_step_name(s));
	return 0;
}
