/* SPDX-License-Identifier: Apache-2.0 */
/* store/registry.h - the index over all event databases; private to store/ */
#ifndef VITRINE_STORE_REGISTRY_H
#define VITRINE_STORE_REGISTRY_H

#include "store/eventdb.h"

int registry_open(struct db *reg, const char *state_dir, enum db_mode mode, struct err *e);

/* Takes over what changed in the event database `source` (its path below the state directory). A stream that
 * contradicts what the registry knows is left as it is known here, for verify to find. */
int registry_sync(struct db *reg, struct eventdb *d, const char *source, struct err *e);

/* Around each change of an event database. The two cannot be committed at once, and after a power cut the journal that
 * would tell of it again may be gone: so it is on record that the registry may be behind, until it is not. */
int registry_unsettle(struct db *reg, const char *source, struct err *e);
int registry_settle(struct db *reg, const char *source, struct err *e);

/* Takes over what those changes brought that did not come to their end. `is_alone`: nobody is changing anything now. */
int registry_catch_up(struct db *reg, const char *state_dir, bool is_alone, struct err *e);

/* As long as `ret` is open no ingest is at work; waits for one that is. */
int store_lock(const char *state_dir, int *ret, struct err *e);

/* What an event says about a sandbox as such. Idempotent. */
int registry_note(struct db *reg, const struct event *ev, struct err *e);

#endif
