/* SPDX-License-Identifier: Apache-2.0 */
/* cli/pending.h - where the broker's questions lie that no person has answered yet (written by broker/approve.c) */
#ifndef VITRINE_CLI_PENDING_H
#define VITRINE_CLI_PENDING_H

#include "base/base.h"

#define PENDING_ID_CHARS 8

/* Is this the name of a question? The files that belong to a question have longer names. */
bool pending_is_id(const char *name);

/* The folder of the questions of a sandbox, or < 0: it has none. */
int pending_open(const char *state_dir, const char *name);

#endif
