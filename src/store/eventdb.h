/* SPDX-License-Identifier: Apache-2.0 */
/* store/eventdb.h - one event database: its runs, their streams, their events; private to store/
 *
 * All writing happens between eventdb_begin() and eventdb_commit(); nothing of it is there when the commit fails.
 */
#ifndef VITRINE_STORE_EVENTDB_H
#define VITRINE_STORE_EVENTDB_H

#include "event/event.h"
#include "store/chain.h"
#include "store/db.h"
#include "store/schema.h"

/* A stream while it is being written. */
struct stream {
	uint64_t id;
	int64_t session;
	struct chain chain;
	unsigned state;
	uint64_t ended, bytes, status, cpu, memory_peak, bytes_in, bytes_out;
	char *reason, *argv;
	bool is_changed;
};

struct eventdb {
	struct db db;
	struct stmt insert, update;
	uint64_t change;
};

/* What the opening frame of a journal says of its run. */
struct run_facts {
	const char *sandbox, *boot;
	bool is_named;
	uint64_t started_ns;
};

struct run {
	struct eventdb *db;
	uint64_t id;
	struct event_part name; /* .part: the next one to take */
	char *sandbox, *boot;
	bool is_named;
	unsigned state;
	uint32_t number; /* the next one */
	struct stream **streams;
	size_t n, cap;
};

int eventdb_open(struct eventdb *d, const char *path, enum db_mode mode, struct err *e);
void eventdb_close(struct eventdb *d);
int eventdb_begin(struct eventdb *d, struct err *e);
int eventdb_commit(struct eventdb *d, struct err *e);

/* The run of that name with all its streams; made when it is not there and `facts` are given, else -ENOENT. */
int run_load(struct run *r, struct eventdb *d, const char *name, const struct run_facts *facts,
	     struct err *e);
/* Writes what changed of it. */
int run_save(struct run *r, struct err *e);
void run_done(struct run *r);

/* Appends one event, taking note of what it says about its session. */
int run_append(struct run *r, const struct event *ev, const void *frame, size_t n, struct err *e);

/* The same for an event of the store's own. */
int run_say(struct run *r, uint32_t session, enum event_type t, const struct event_field *f,
	    size_t n, struct err *e);

#endif
