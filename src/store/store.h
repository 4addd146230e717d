/* SPDX-License-Identifier: Apache-2.0 */
/* store/store.h - what happened, for those who ask: ingest, history, events, verify
 *
 * For vitrine-store alone (it links SQLite). The folders below sandboxes/ are the truth about which sandboxes exist;
 * what is here is history: an index made from the journals, and every event.
 */
#ifndef VITRINE_STORE_STORE_H
#define VITRINE_STORE_STORE_H

#include "base/buf.h"
#include "base/err.h"
#include "event/event.h"

/* How long and how much, from the policy; 0: without bound. */
struct store_bounds {
	uint64_t max_age_ns, max_bytes;
};

/* ---- taking up journals ---- */

struct ingest_done {
	uint64_t events, files, lost_runs, dropped;
	bool is_busy; /* another ingest was at work, and we did not wait */
};

/* Moves every journal whose keeper has let go of it into its event database. Idempotent, crash-safe. With is_waiting
 * another ingest is waited for. On failure what could be taken up has been; the rest waits. */
int store_ingest(const char *state_dir, const struct store_bounds *bounds, bool is_waiting,
		 struct ingest_done *ret, struct err *e);

/* Takes databases into the registry that it has never seen: after it was lost, or when a folder was copied here. */
int store_reconcile(const char *state_dir, struct err *e);

/* For who was told -EBADMSG: where it was the registry, it is set aside as vitrine.db.damaged and made anew from the
 * databases. 1: done, try again; 0: it is whole, the damage lies elsewhere. */
int store_mend(const char *state_dir, struct err *e);

/* ---- history, for ls and inspect ---- */

enum store_state { STORE_OPEN, STORE_ENDED, STORE_LOST };

struct store_session {
	const char *run, *sandbox, *reason,
		*argv; /* borrowed until the callback returns; argv is escaped */
	uint32_t session;
	bool is_named;
	enum store_state state;
	uint64_t started_ns, ended_ns, status;
	uint64_t cpu_ns, memory_peak, bytes_in, bytes_out;
	uint64_t events, dropped; /* how many were recorded; how many of them are gone */
	char head[65];            /* hash of the last one */
};

struct store_sandbox {
	const char *name, *agent, *workspace;
	uint64_t created_ns, removed_ns, seen_ns; /* 0: unknown, not removed, never */
};

/* Non-zero from a callback ends the walk and is returned. */
typedef int store_session_fn(void *arg, const struct store_session *s);
typedef int store_sandbox_fn(void *arg, const struct store_sandbox *s);

/* Newest first; sandbox == NULL: all, runs without a name too. Nothing recorded yet is not an error. */
int store_sessions(const char *state_dir, const char *sandbox, uint64_t limit, store_session_fn *fn,
		   void *arg, struct err *e);
int store_sandboxes(const char *state_dir, store_sandbox_fn *fn, void *arg, struct err *e);

/* ---- events ---- */

struct store_filter {
	const char *sandbox; /* NULL: all */
	const char *
		session; /* RUN-N, a prefix of RUN, or N; "sandbox": what belongs to none; NULL: all */
	const char *file; /* read this database only */
	uint64_t since_ns;
	uint64_t tail; /* 0: all */
	const uint16_t *types;
	size_t n_types;
	bool is_following;
};

/* One event with where it comes from. Non-zero ends the walk. */
typedef int store_event_fn(void *arg, const struct event *ev, const struct event_origin *from);

/* In the order of time over all sources, databases and journals; with is_following it goes on until fn ends it.
 * `idle` is called when there is nothing new, so that a buffered writer can write; it may be NULL. */
int store_events(const char *state_dir, const struct store_filter *f, store_event_fn *fn,
		 int (*idle)(void *arg), void *arg, struct err *e);

/* ---- verify ---- */

struct verify_done {
	uint64_t databases, streams, events, dropped, wrong;
};

/* One sentence per wrong place. */
typedef void store_wrong_fn(void *arg, const char *where, const char *what);

/* Of the filter `sandbox` and `file` count: with neither all databases, and the registry's list of what there should
 * be. */
int store_verify(const char *state_dir, const struct store_filter *f, store_wrong_fn *fn, void *arg,
		 struct verify_done *ret, struct err *e);

/* A name that may stand in a path of ours. */
bool store_name_ok(const char *name);

#endif
