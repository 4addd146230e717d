/* SPDX-License-Identifier: Apache-2.0 */
/* keep/journal.h - what a keeper puts on record, before anything of SQLite is near
 *
 * Events are frames (event/event.h) appended to STATE/journal/RUN.PART. A write that returned is on record: it
 * survives kill -9 of the keeper. The part being written is locked (flock); `vitrine-store ingest` takes up every part
 * whose lock is free and moves it into the sandbox's event database. Nothing is opened or written before the first
 * batch is due, so recording costs nothing on the way to the command's start.
 *
 * The lock belongs to the open file: whatever the keeper forks must exec (or exit) soon, or a dead keeper's journal
 * looks alive.
 */
#ifndef VITRINE_KEEP_JOURNAL_H
#define VITRINE_KEEP_JOURNAL_H

#include "base/loop.h"
#include "event/event.h"

#define JOURNAL_PART_BYTES (4 * MIB)
#define JOURNAL_BATCH_NS (50 * NS_PER_MS)

struct journal;

/* Opens nothing. Strings are copied. With l == NULL batches are written when they are large, and at the end. */
struct journal *journal_new(const char *state_dir, const char *sandbox, bool is_named,
			    struct loop *l);

/* So that journal_closing() is one system call: when there is time. */
void journal_ready(struct journal *j);
/* Before anybody hears that the run is over: whoever reads events from now on waits for journal_end(), a second at
 * most, and so finds the end of a run that has just ended. (A shared lock on the folder of journals.) */
void journal_closing(struct journal *j);

/* The run's id: 18 hexadecimal digits, increasing with time. A session is called RUN-SESSION. */
const char *journal_run(const struct journal *j);

/* An observation: on record after at most JOURNAL_BATCH_NS. Never fails; while the disk is full some are kept, the
 * rest counted, and the event journal.lost says how many once there is room again. */
void journal_event(struct journal *j, uint32_t session, enum event_type t,
		   const struct event_field *f, size_t n);

/* A verdict: on record when it returns 0, together with every observation before it. On failure nothing is recorded
 * and the act must be refused. */
int journal_verdict(struct journal *j, uint32_t session, enum event_type t,
		    const struct event_field *f, size_t n, struct err *e);

/* One frame as another process of the sandbox (gate, guard, receiver) sent it. Its type decides whether it is a
 * verdict; time, number and session are ours. -EBADMSG: not a frame it may send; other failures as above. */
int journal_frame(struct journal *j, uint32_t session, const void *frame, size_t n, struct err *e);

/* Everything so far on record now. 0 or -errno. */
int journal_flush(struct journal *j);

/* Writes what is left and the end frame, unlocks, frees; then lets `vitrine-store ingest` run where that is due (a
 * named sandbox that ran for a while, or many journals lying about), without waiting. Call it after the client has its status. NULL is
 * fine. */
void journal_end(struct journal *j);

/* A whole journal with one event, for what a command does to a named sandbox without a keeper; synced. 0 or -errno: the
 * caller knows whether what it does must be on record. */
int journal_once(const char *state_dir, const char *sandbox, enum event_type t,
		 const struct event_field *f, size_t n);

/* Has every journal of ended runs taken up now, and waits for it; nothing when vitrine-store is not there. */
void journal_settle(const char *state_dir);

#endif
