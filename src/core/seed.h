/* SPDX-License-Identifier: Apache-2.0 */
/* core/seed.h - what an agent finds in an empty home: settings of the preset, and the guard in its hooks */
#ifndef VITRINE_CORE_SEED_H
#define VITRINE_CORE_SEED_H

#include "agent/preset.h"
#include "plan/plan.h"

/* Where this program lies inside, for hooks: the same on every host, because it stands in files that last. */
#define SEED_PROGRAM "/.vitrine/vitrine"

struct seed_in {
	const char *state_dir, *name, *workspace, *self_exe;
	const struct secret_fact *secrets;
	size_t n_secrets;
	char *const *
		layers; /* of the home, as layers_paths() gives them; NULL: it is a plain directory */
};

/* Writes the files that are not there. What is there, whoever made it, is left as it is. */
int seed_home(const struct seed_in *in, const struct preset *p, struct err *e);

#endif
