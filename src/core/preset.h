/* SPDX-License-Identifier: Apache-2.0 */
/* core/preset.h - what an agent's word stands for: the command a sandbox of it runs, and its variables
 *
 * Plain data, so that presets can come from files: nothing but this struct is known of an agent elsewhere.
 */
#ifndef VITRINE_CORE_PRESET_H
#define VITRINE_CORE_PRESET_H

#include "base/base.h"

struct preset {
	const char *name;
	const char *const *argv; /* NULL-ended */
	const char *const *env;  /* "K=V", NULL-ended; NULL: none */
	const char *summary;
};

extern const struct preset presets[]; /* ends with a NULL name */

const struct preset *preset_find(const char *name); /* NULL: there is none */

/* The command for these words behind "--": words that begin with an option are added to the preset's own command,
 * others take its place, none leave it as it is. NULL-ended, its strings are borrowed; free() the vector. */
const char **preset_command(const struct preset *p, char *const *words);

#endif
