/* SPDX-License-Identifier: Apache-2.0 */
/* store/source.h - one place events come from, read a page at a time; private to store/
 *
 * A source stands at one event or is at its end for now. Databases are opened for the time of a page only: two hundred
 * sandboxes cost no descriptors, and nobody is kept from writing.
 */
#ifndef VITRINE_STORE_SOURCE_H
#define VITRINE_STORE_SOURCE_H

#include "store/eventdb.h"
#include "store/store.h"

/* A run with a journal: the database has what is numbered below `start`, the journal the rest. */
struct open_run {
	char run[EVENT_RUN_CHARS + 1];
	uint32_t start;
};

struct open_runs {
	struct open_run *v;
	size_t n, cap;
};

struct row {
	uint64_t id;
	struct event_origin from;
	char *run, *sandbox;
	char *frame;
	size_t n;
};

#define PAGE_ROWS ((size_t)256)

struct source {
	bool is_journal;
	char *path; /* of the database; of a journal: where its events go */
	const struct store_filter *filter;
	const struct open_runs *open;
	bool is_at_end;
	bool is_done;       /* a journal whose run is over: nothing will ever come */
	struct event event; /* where it stands */
	struct event_origin from;
	/* a database */
	uint64_t last_id;
	uint64_t seen[4]; /* size and time of the files when there was nothing new */
	struct row rows[PAGE_ROWS];
	size_t n_rows, at_row;
	/* a journal */
	char *dir;
	struct event_part part;
	char *sandbox;
	int fd;
	uint64_t offset;
	uint32_t next; /* number of the first event not yet seen */
	struct buf text;
	size_t at;
	struct source *rest; /* what was moved to the database under our eyes */
};

struct source *source_database(const char *path, const struct store_filter *f,
			       const struct open_runs *open);
/* takes the descriptor's place from the name; `start` as in struct open_run */
struct source *source_journal(const char *state_dir, const struct event_part *part,
			      const char *sandbox, const char *database, uint32_t start,
			      const struct store_filter *f);
void source_free(struct source *s);

/* To the next event that passes the filter. 1: it stands there; 0: nothing more for now; < 0. */
int source_next(struct source *s, struct err *e);

bool filter_passes(const struct store_filter *f, const struct event *ev,
		   const struct event_origin *from);

#endif
