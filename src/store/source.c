/* SPDX-License-Identifier: Apache-2.0 */
/* store/source.c - see source.h
 *
 * A journal is followed part by part while its keeper writes it. An ingest may take a part away before we have read
 * it; then the rest of it is in the database, found by the number of the first event we have not seen. So nothing is
 * missed and nothing is shown twice, whoever does what meanwhile.
 */
#include "store/source.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/num.h"

#define CHUNK_BYTES ((size_t)256 * KIB)

/* ---- the filter ---- */

static bool type_passes(const struct store_filter *f, unsigned type)
{
	for (size_t i = 0; i < f->n_types; i++)
		if (f->types[i] == type)
			return true;
	return f->n_types == 0;
}

static bool session_passes(const char *want, const struct event *ev, const char *run)
{
	const char *dash = strchr(want, '-');
	size_t n = dash ? (size_t)(dash - want) : strlen(want);
	struct err ignored = ERR_INIT;
	uint64_t number = 0;

	if (str_eq(want, "sandbox"))
		return ev->head.session == EVENT_NO_SESSION;
	if (ev->head.session == EVENT_NO_SESSION)
		return false;
	if (dash == NULL && n < 6)
		return num_parse(want, 0, UINT32_MAX, &number, &ignored) == 0 &&
		       number == ev->head.session;
	if (strncmp(run, want, n) != 0)
		return false;
	return dash == NULL || (num_parse(dash + 1, 0, UINT32_MAX, &number, &ignored) == 0 &&
				number == ev->head.session);
}

bool filter_passes(const struct store_filter *f, const struct event *ev,
		   const struct event_origin *from)
{
	return ev->head.time_ns >= f->since_ns && type_passes(f, ev->head.type) &&
	       (f->session == NULL || session_passes(f->session, ev, from->run));
}

/* ---- a database ---- */

struct source *source_database(const char *path, const struct store_filter *f,
			       const struct open_runs *open)
{
	struct source *s = mem_new(1, sizeof(*s));

	*s = (struct source){ .path = mem_str(path),
			      .filter = f,
			      .open = open,
			      .fd = FD_NONE,
			      .text = BUF(2 * CHUNK_BYTES) };
	return s;
}

static void drop_rows(struct source *s)
{
	for (size_t i = 0; i < s->n_rows; i++) {
		free(s->rows[i].run);
		free(s->rows[i].sandbox);
		free(s->rows[i].frame);
	}
	s->n_rows = 0;
	s->at_row = 0;
}

void source_free(struct source *s)
{
	if (s == NULL)
		return;
	drop_rows(s);
	source_free(s->rest);
	fd_close(s->fd);
	buf_done(&s->text);
	free(s->sandbox);
	free(s->path);
	free(s->dir);
	free(s);
}

static void put_types(const struct store_filter *f, struct buf *sql)
{
	for (size_t i = 0; i < f->n_types; i++)
		buf_printf(sql, "%s%u", i ? ", " : " AND e.type IN (", f->types[i]);
	if (f->n_types > 0)
		buf_putc(sql, ')');
}

/* Rows behind last_id. For the rest of a journal: of its run alone, from the first number not yet seen. */
static int open_page(struct source *s, struct eventdb *d, struct stmt *q, struct err *e)
{
	_cleanup_(buf_done) struct buf sql = BUF(64 * KIB);
	int r;

	buf_puts(&sql, "SELECT e.id, r.run, r.sandbox, e.frame FROM event e JOIN stream t ON "
		       "e.stream=t.id JOIN run r ON t.run=r.id WHERE e.id>?1 AND e.time>=?2");
	put_types(s->filter, &sql);
	if (s->part.run[0])
		buf_puts(&sql, " AND r.run=?3 AND e.number>=?4");
	buf_printf(&sql, " ORDER BY e.id LIMIT %zu", PAGE_ROWS);
	r = stmt_open(q, &d->db, buf_cstr(&sql), e);
	if (r < 0)
		return r;
	stmt_num(q, 1, s->last_id);
	stmt_num(q, 2, s->filter->since_ns);
	if (s->part.run[0]) {
		stmt_text(q, 3, s->part.run);
		stmt_num(q, 4, s->next);
	}
	return 0;
}

/* Opening a database for nothing costs a follower of many sandboxes too much: has anything been written at all? */
static void look(const struct source *s, uint64_t ret[static 4])
{
	_free_ char *wal = mem_fmt("%s-wal", s->path);
	const char *paths[] = { s->path, wal };

	for (size_t i = 0; i < 2; i++) {
		struct stat st;

		ret[2 * i] = 0;
		ret[2 * i + 1] = 0;
		if (stat(paths[i], &st) < 0)
			continue;
		ret[2 * i] = (uint64_t)st.st_size;
		ret[2 * i + 1] =
			(uint64_t)st.st_mtim.tv_sec * NS_PER_SEC + (uint64_t)st.st_mtim.tv_nsec;
	}
}

static int load_rows(struct source *s, struct err *e)
{
	_cleanup_(eventdb_close) struct eventdb d = { 0 };
	_cleanup_(stmt_close) struct stmt q = { 0 };
	struct err why = ERR_INIT;
	int r;

	drop_rows(s);
	r = eventdb_open(&d, s->path, DB_READ, &why);
	if (r == -ENOENT || r == -EAGAIN)
		return 0; /* not there yet */
	if (r < 0) {
		*e = why;
		return r;
	}
	r = open_page(s, &d, &q, e);
	while (r == 0 && s->n_rows < PAGE_ROWS && (r = stmt_step(&q, e)) == 1) {
		struct row *row = &s->rows[s->n_rows++];
		const char *frame = stmt_get_blob(&q, 3, &row->n);

		row->id = stmt_get_num(&q, 0);
		row->run = mem_str(stmt_get_text(&q, 1));
		row->sandbox = mem_str(stmt_get_text(&q, 2));
		row->frame = mem_strn(frame, row->n);
		s->last_id = row->id;
		r = 0;
	}
	return r < 0 ? r : (int)s->n_rows;
}

static int load_page(struct source *s, struct err *e)
{
	uint64_t now[4];
	int r;

	look(s, now);
	if (memcmp(now, s->seen, sizeof(now)) == 0)
		return 0;
	r = load_rows(s, e);
	/* Looked at before it was read: what came in between is seen next time. */
	if (r == 0)
		memcpy(s->seen, now, sizeof(now));
	return r;
}

/* The journal shows it. */
static bool is_in_journal(const struct source *s, const struct row *row)
{
	for (size_t i = 0; s->open && i < s->open->n; i++)
		if (str_eq(s->open->v[i].run, row->run))
			return s->event.head.number >= s->open->v[i].start;
	return false;
}

static int next_row(struct source *s, struct err *e)
{
	for (;;) {
		struct row *row;
		int r = s->at_row < s->n_rows ? 1 : load_page(s, e);

		if (r <= 0)
			return r;
		row = &s->rows[s->at_row++];
		/* What verify is for does not stop a reader. */
		if (event_decode(row->frame, row->n, &s->event) != (ssize_t)row->n)
			continue;
		s->from = (struct event_origin){ .run = row->run, .sandbox = row->sandbox };
		if (!is_in_journal(s, row) && filter_passes(s->filter, &s->event, &s->from))
			return 1;
	}
}

/* ---- a journal ---- */

struct source *source_journal(const char *state_dir, const struct event_part *part,
			      const char *sandbox, const char *database, uint32_t start,
			      const struct store_filter *f)
{
	struct source *s = source_database(database, f, NULL);

	s->is_journal = true;
	s->dir = mem_fmt("%s/journal", state_dir);
	s->part = *part;
	s->sandbox = mem_str(sandbox);
	s->next = start;
	return s;
}

static int open_part(struct source *s, struct err *e)
{
	_cleanup_(buf_done) struct buf name = BUF(KIB);
	_free_ char *path = NULL;

	event_part_name(&s->part, &name);
	path = mem_fmt("%s/%s", s->dir, buf_cstr(&name));
	s->fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	s->offset = 0;
	s->text.n = 0;
	s->at = 0;
	if (s->fd < 0 && errno != ENOENT)
		return err_sys(e, "'%s'", path);
	return s->fd >= 0;
}

/* More bytes behind those we have. 1, or 0 when there are none now. */
static int read_more(struct source *s, struct err *e)
{
	_free_ char *chunk = mem_new(CHUNK_BYTES, 1);
	size_t left = s->text.n - s->at;
	ssize_t n;

	if (s->at > 0 && left > 0)
		memmove(s->text.p, s->text.p + s->at, left);
	s->text.n = left;
	s->at = 0;
	do
		n = pread(s->fd, chunk, CHUNK_BYTES, (off_t)s->offset);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_sys(e, "read a journal");
	buf_add(&s->text, chunk, (size_t)n);
	s->offset += (uint64_t)n;
	return n > 0;
}

/* The part was taken up: the database tells the rest of it, and which part comes next. */
static bool turn_to_database(struct source *s)
{
	_cleanup_(eventdb_close) struct eventdb d = { 0 };
	_cleanup_(run_done) struct run run = { 0 };
	struct err ignored = ERR_INIT;

	if (eventdb_open(&d, s->path, DB_READ, &ignored) < 0 ||
	    run_load(&run, &d, s->part.run, NULL, &ignored) < 0)
		return false;
	s->is_done = run.state != STATE_OPEN;
	if (run.name.part <= s->part.part)
		return false;
	source_free(s->rest);
	s->rest = source_database(s->path, s->filter, NULL);
	memcpy(s->rest->part.run, s->part.run, sizeof(s->part.run));
	s->rest->next = s->next;
	s->part.part = run.name.part;
	s->next = run.number;
	return true;
}

/* One frame of the journal, whatever it is. 1, 0: none now, < 0. */
static int next_frame(struct source *s, struct err *e)
{
	ssize_t used = 0;
	int r = s->fd < 0 ? open_part(s, e) : 1;

	while (r > 0 && used == 0) {
		if (s->at < s->text.n)
			used = event_decode(s->text.p + s->at, s->text.n - s->at, &s->event);
		if (used == 0)
			r = read_more(s, e);
	}
	if (r <= 0)
		return r;
	if (used < 0)
		return 0; /* torn: ingest will say so */
	s->at += (size_t)used;
	return 1;
}

static int next_of_rest(struct source *s, struct err *e)
{
	int r = next_row(s->rest, e);

	if (r == 1) {
		s->event = s->rest->event;
		s->from = s->rest->from;
		return 1;
	}
	source_free(s->rest);
	s->rest = NULL;
	return r;
}

/* Read to its end, and then taken up by an ingest: if anything follows, the database has it. */
static bool was_taken_up(const struct source *s)
{
	struct stat st;

	return s->fd >= 0 && fstat(s->fd, &st) == 0 && st.st_nlink == 0;
}

static int next_of_journal(struct source *s, struct err *e)
{
	int r;

	for (;;) {
		r = s->rest ? next_of_rest(s, e) : 0;
		if (r != 0)
			return r;
		r = next_frame(s, e);
		if (r == 0 && was_taken_up(s))
			fd_close(take_fd(s->fd));
		if (r == 0 && s->fd < 0 && turn_to_database(s))
			continue;
		if (r <= 0)
			return r;
		if (s->event.head.type == EV_JOURNAL_NEXT) {
			fd_close(take_fd(s->fd));
			s->part.part++;
			continue;
		}
		if (s->event.head.type == EV_JOURNAL_OPENED ||
		    s->event.head.type == EV_JOURNAL_ENDED || s->event.head.number < s->next)
			continue;
		s->next = s->event.head.number + 1;
		s->from = (struct event_origin){ .run = s->part.run, .sandbox = s->sandbox };
		if (filter_passes(s->filter, &s->event, &s->from))
			return 1;
	}
}

int source_next(struct source *s, struct err *e)
{
	int r = s->is_journal ? next_of_journal(s, e) : next_row(s, e);

	s->is_at_end = r <= 0;
	return r;
}
