/* SPDX-License-Identifier: Apache-2.0 */
/* store/schema.h - the two kinds of database; private to store/ */
#ifndef VITRINE_STORE_SCHEMA_H
#define VITRINE_STORE_SCHEMA_H

#include "store/db.h"

extern const struct db_schema schema_events;
extern const struct db_schema schema_registry;

/* state of a run or stream */
enum { STATE_OPEN, STATE_ENDED, STATE_LOST };

#endif
