/* SPDX-License-Identifier: Apache-2.0 */
/* store/schema.c - the tables, as steps from one schema to the next
 *
 * A step that has been released is never edited; what is missing is added by a new one at the end. The test starts
 * from every earlier schema and must arrive at the same tables as a new database.
 *
 * Event database (one per sandbox; runs/events.db for runs without a name). A `run` is one life of a keeper. A `stream`
 * is one session of a run, or (session -1) what belongs to none; each has its own hash chain, so a whole session can
 * go without breaking another. `event.nr` is the place in the stream, from 1; `event.number` the keeper's own count.
 * `stream.change` rises with every change, so that the registry knows what it has not seen.
 *
 * Registry (vitrine.db): an index for listings, and a second place for head and count of every stream.
 */
#include "store/schema.h"

static const char *const event_steps[] = {
	"CREATE TABLE run(id INTEGER PRIMARY KEY, run TEXT NOT NULL UNIQUE, sandbox TEXT NOT NULL,"
	" named INTEGER NOT NULL, boot TEXT NOT NULL, started INTEGER NOT NULL,"
	" state INTEGER NOT NULL DEFAULT 0, part INTEGER NOT NULL DEFAULT 0,"
	" number INTEGER NOT NULL DEFAULT 0);"
	"CREATE TABLE stream(id INTEGER PRIMARY KEY, run INTEGER NOT NULL, session INTEGER NOT "
	"NULL,"
	" state INTEGER NOT NULL DEFAULT 0, started INTEGER NOT NULL, ended INTEGER NOT NULL "
	"DEFAULT 0,"
	" events INTEGER NOT NULL DEFAULT 0, head BLOB NOT NULL, dropped INTEGER NOT NULL DEFAULT "
	"0,"
	" base BLOB NOT NULL, bytes INTEGER NOT NULL DEFAULT 0, change INTEGER NOT NULL,"
	" status INTEGER NOT NULL DEFAULT 0, reason TEXT NOT NULL DEFAULT '',"
	" argv TEXT NOT NULL DEFAULT '', UNIQUE(run, session));"
	"CREATE TABLE event(id INTEGER PRIMARY KEY, stream INTEGER NOT NULL, nr INTEGER NOT NULL,"
	" number INTEGER NOT NULL, time INTEGER NOT NULL, type INTEGER NOT NULL,"
	" frame BLOB NOT NULL, hash BLOB NOT NULL);"
	"CREATE TABLE meta(key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
	"INSERT INTO meta VALUES('change', 0);",
	/* 2: what a session used, for its summary; a way to all events of one stream */
	"ALTER TABLE stream ADD COLUMN cpu INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE stream ADD COLUMN memory_peak INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE stream ADD COLUMN bytes_in INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE stream ADD COLUMN bytes_out INTEGER NOT NULL DEFAULT 0;"
	"CREATE UNIQUE INDEX event_stream ON event(stream, nr);"
	"CREATE INDEX stream_change ON stream(change);",
};

const struct db_schema schema_events = {
	.app_id = 0x56455654, /* "VEVT" */
	.what = "an event database",
	.steps = event_steps,
	.n = ARRAY_LEN(event_steps),
};

static const char *const registry_steps[] = {
	"CREATE TABLE sandbox(name TEXT PRIMARY KEY, created INTEGER NOT NULL DEFAULT 0,"
	" removed INTEGER NOT NULL DEFAULT 0, seen INTEGER NOT NULL DEFAULT 0,"
	" agent TEXT NOT NULL DEFAULT '', workspace TEXT NOT NULL DEFAULT '') WITHOUT ROWID;"
	"CREATE TABLE session(run TEXT NOT NULL, session INTEGER NOT NULL, source TEXT NOT NULL,"
	" sandbox TEXT NOT NULL, named INTEGER NOT NULL, state INTEGER NOT NULL, started INTEGER "
	"NOT NULL,"
	" ended INTEGER NOT NULL, status INTEGER NOT NULL, reason TEXT NOT NULL, argv TEXT NOT "
	"NULL,"
	" events INTEGER NOT NULL, head BLOB NOT NULL, dropped INTEGER NOT NULL,"
	" gone INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(run, session)) WITHOUT ROWID;"
	"CREATE TABLE source(name TEXT PRIMARY KEY, change INTEGER NOT NULL) WITHOUT ROWID;",
	/* 2: what a session used; listings by sandbox and time */
	"ALTER TABLE session ADD COLUMN cpu INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE session ADD COLUMN memory_peak INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE session ADD COLUMN bytes_in INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE session ADD COLUMN bytes_out INTEGER NOT NULL DEFAULT 0;"
	"CREATE INDEX session_sandbox ON session(sandbox, started);"
	"CREATE INDEX session_source ON session(source);",
	/* 3: databases that may be ahead of the registry, because whoever changed them did not come to its end */
	"CREATE TABLE unsettled(source TEXT PRIMARY KEY) WITHOUT ROWID;",
};

const struct db_schema schema_registry = {
	.app_id = 0x56524547, /* "VREG" */
	.what = "the registry",
	.steps = registry_steps,
	.n = ARRAY_LEN(registry_steps),
};
