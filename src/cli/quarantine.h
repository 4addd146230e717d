/* SPDX-License-Identifier: Apache-2.0 */
/* cli/quarantine.h - what other verbs ask the quarantine */
#ifndef VITRINE_CLI_QUARANTINE_H
#define VITRINE_CLI_QUARANTINE_H

#include "base/base.h"

/* How many things of this sandbox lie there that were taken at or after `since` (seconds since 1970). */
size_t quarantine_count(const char *state_dir, const char *name, uint64_t since);

#endif
