/* SPDX-License-Identifier: Apache-2.0 */
/* store/eventdb.c - see eventdb.h
 *
 * A run's streams are held in memory while it is written: an event costs one hash and one insert. Heads and counts go
 * to the stream's row when the transaction ends, in the same commit as the events.
 */
#include "store/eventdb.h"

#include "base/loop.h"

/* ---- the database ---- */

int eventdb_open(struct eventdb *d, const char *path, enum db_mode mode, struct err *e)
{
	int r;

	*d = (struct eventdb){ 0 };
	r = db_open(&d->db, path, mode, &schema_events, e);
	if (r < 0 || mode == DB_READ)
		return r;
	r = stmt_open(&d->insert, &d->db,
		      "INSERT INTO event(stream, nr, number, time, type, frame, hash)"
		      " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
		      e);
	if (r == 0)
		r = stmt_open(&d->update, &d->db,
			      "UPDATE stream SET state=?2, ended=?3, events=?4, head=?5, bytes=?6, "
			      "change=?7, status=?8, reason=?9, argv=?10, cpu=?11, "
			      "memory_peak=?12, bytes_in=?13, bytes_out=?14 WHERE id=?1",
			      e);
	if (r < 0)
		eventdb_close(d);
	return r;
}

void eventdb_close(struct eventdb *d)
{
	stmt_close(&d->insert);
	stmt_close(&d->update);
	db_close(&d->db);
}

int eventdb_begin(struct eventdb *d, struct err *e)
{
	int r = db_begin(&d->db, e);

	if (r == 0)
		r = db_number(&d->db, "SELECT value FROM meta WHERE key='change'", 0, &d->change,
			      e);
	d->change++;
	return r;
}

int eventdb_commit(struct eventdb *d, struct err *e)
{
	_cleanup_(stmt_close) struct stmt s = { 0 };
	int r = stmt_open(&s, &d->db, "UPDATE meta SET value=?1 WHERE key='change'", e);

	if (r < 0)
		return r;
	stmt_num(&s, 1, d->change);
	r = stmt_do(&s, e);
	return r < 0 ? r : db_commit(&d->db, e);
}

/* ---- a run ---- */

static void stream_free(struct stream *s)
{
	if (s == NULL)
		return;
	free(s->reason);
	free(s->argv);
	free(s);
}

void run_done(struct run *r)
{
	for (size_t i = 0; i < r->n; i++)
		stream_free(r->streams[i]);
	free(r->streams);
	free(r->sandbox);
	free(r->boot);
	*r = (struct run){ 0 };
}

static struct stream *add_stream(struct run *r, int64_t session)
{
	struct stream *s = mem_new(1, sizeof(*s));

	*s = (struct stream){ .session = session, .reason = mem_str(""), .argv = mem_str("") };
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): a vector of pointers */
	vec_reserve(r->streams, r->n, r->cap);
	r->streams[r->n++] = s;
	return s;
}

static void set_text(char **at, const char *text)
{
	free(*at);
	*at = mem_str(text);
}

static int load_streams(struct run *r, struct err *e)
{
	_cleanup_(stmt_close) struct stmt q = { 0 };
	int rc = stmt_open(&q, &r->db->db,
			   "SELECT id, session, state, ended, events, head, bytes, status, reason, "
			   "argv, cpu, memory_peak, bytes_in, bytes_out FROM stream WHERE run=?1",
			   e);

	if (rc < 0)
		return rc;
	stmt_num(&q, 1, r->id);
	while ((rc = stmt_step(&q, e)) == 1) {
		struct stream *s = add_stream(r, (int64_t)stmt_get_num(&q, 1));
		size_t n;
		const void *head = stmt_get_blob(&q, 5, &n);

		s->id = stmt_get_num(&q, 0);
		s->state = (unsigned)stmt_get_num(&q, 2);
		s->ended = stmt_get_num(&q, 3);
		s->chain.n = stmt_get_num(&q, 4);
		if (n != SHA256_BYTES)
			return err_set(e, ERR_SYSTEM, EBADMSG, "'%s': a head is damaged",
				       r->db->db.path);
		memcpy(s->chain.head, head, n);
		s->bytes = stmt_get_num(&q, 6);
		s->status = stmt_get_num(&q, 7);
		set_text(&s->reason, stmt_get_text(&q, 8));
		set_text(&s->argv, stmt_get_text(&q, 9));
		s->cpu = stmt_get_num(&q, 10);
		s->memory_peak = stmt_get_num(&q, 11);
		s->bytes_in = stmt_get_num(&q, 12);
		s->bytes_out = stmt_get_num(&q, 13);
	}
	return rc;
}

static int load_row(struct run *r, struct err *e)
{
	_cleanup_(stmt_close) struct stmt q = { 0 };
	int rc = stmt_open(&q, &r->db->db,
			   "SELECT id, sandbox, boot, named, state, part, number FROM run WHERE "
			   "run=?1",
			   e);

	if (rc < 0)
		return rc;
	stmt_text(&q, 1, r->name.run);
	rc = stmt_step(&q, e);
	if (rc <= 0)
		return rc < 0 ? rc : -ENOENT;
	r->id = stmt_get_num(&q, 0);
	set_text(&r->sandbox, stmt_get_text(&q, 1));
	set_text(&r->boot, stmt_get_text(&q, 2));
	r->is_named = stmt_get_num(&q, 3) != 0;
	r->state = (unsigned)stmt_get_num(&q, 4);
	r->name.part = (uint32_t)stmt_get_num(&q, 5);
	r->number = (uint32_t)stmt_get_num(&q, 6);
	return 0;
}

static int make_row(struct run *r, const struct run_facts *facts, struct err *e)
{
	_cleanup_(stmt_close) struct stmt q = { 0 };
	int rc = stmt_open(&q, &r->db->db,
			   "INSERT INTO run(run, sandbox, named, boot, started) "
			   "VALUES(?1, ?2, ?3, ?4, ?5)",
			   e);

	if (rc < 0)
		return rc;
	r->sandbox = mem_str(facts->sandbox);
	r->boot = mem_str(facts->boot);
	r->is_named = facts->is_named;
	stmt_text(&q, 1, r->name.run);
	stmt_text(&q, 2, r->sandbox);
	stmt_num(&q, 3, r->is_named);
	stmt_text(&q, 4, r->boot);
	stmt_num(&q, 5, facts->started_ns);
	rc = stmt_do(&q, e);
	r->id = (uint64_t)sqlite3_last_insert_rowid(r->db->db.raw);
	return rc;
}

int run_load(struct run *r, struct eventdb *d, const char *name, const struct run_facts *facts,
	     struct err *e)
{
	int rc;

	*r = (struct run){ .db = d };
	(void)snprintf(r->name.run, sizeof(r->name.run), "%s", name);
	rc = load_row(r, e);
	if (rc == 0)
		rc = load_streams(r, e);
	else if (rc == -ENOENT)
		rc = facts ? make_row(r, facts, e)
			   : err_set(e, ERR_NOTFOUND, ENOENT, "no run '%s'", name);
	if (rc < 0)
		run_done(r);
	return rc;
}

static int save_stream(struct stream *s, struct eventdb *d, struct err *e)
{
	struct stmt *q = &d->update;

	stmt_num(q, 1, s->id);
	stmt_num(q, 2, s->state);
	stmt_num(q, 3, s->ended);
	stmt_num(q, 4, s->chain.n);
	stmt_blob(q, 5, s->chain.head, SHA256_BYTES);
	stmt_num(q, 6, s->bytes);
	stmt_num(q, 7, d->change);
	stmt_num(q, 8, s->status);
	stmt_text(q, 9, s->reason);
	stmt_text(q, 10, s->argv);
	stmt_num(q, 11, s->cpu);
	stmt_num(q, 12, s->memory_peak);
	stmt_num(q, 13, s->bytes_in);
	stmt_num(q, 14, s->bytes_out);
	s->is_changed = false;
	return stmt_do(q, e);
}

int run_save(struct run *r, struct err *e)
{
	_cleanup_(stmt_close) struct stmt q = { 0 };
	int rc = stmt_open(&q, &r->db->db,
			   "UPDATE run SET state=?2, part=?3, number=?4 WHERE id=?1", e);

	if (rc < 0)
		return rc;
	stmt_num(&q, 1, r->id);
	stmt_num(&q, 2, r->state);
	stmt_num(&q, 3, r->name.part);
	stmt_num(&q, 4, r->number);
	rc = stmt_do(&q, e);
	for (size_t i = 0; i < r->n && rc == 0; i++)
		if (r->streams[i]->is_changed)
			rc = save_stream(r->streams[i], r->db, e);
	return rc;
}

/* ---- events ---- */

static int make_stream(struct run *r, int64_t session, uint64_t time, struct stream **ret,
		       struct err *e)
{
	_cleanup_(stmt_close) struct stmt q = { 0 };
	struct stream *s;
	int rc = stmt_open(&q, &r->db->db,
			   "INSERT INTO stream(run, session, started, head, base, change) "
			   "VALUES(?1, ?2, ?3, ?4, ?4, ?5)",
			   e);

	if (rc < 0)
		return rc;
	s = add_stream(r, session);
	chain_init(&s->chain, r->name.run, session);
	stmt_num(&q, 1, r->id);
	stmt_num(&q, 2, (uint64_t)session);
	stmt_num(&q, 3, time);
	stmt_blob(&q, 4, s->chain.head, SHA256_BYTES);
	stmt_num(&q, 5, r->db->change);
	rc = stmt_do(&q, e);
	s->id = (uint64_t)sqlite3_last_insert_rowid(r->db->db.raw);
	*ret = s;
	return rc;
}

static int find_stream(struct run *r, const struct event_head *h, struct stream **ret,
		       struct err *e)
{
	int64_t session = h->session == EVENT_NO_SESSION ? CHAIN_NO_SESSION : h->session;

	for (size_t i = r->n; i-- > 0;)
		if (r->streams[i]->session == session) {
			*ret = r->streams[i];
			return 0;
		}
	return make_stream(r, session, h->time_ns, ret, e);
}

static void note_argv(struct stream *s, const struct event *ev)
{
	_cleanup_(buf_done) struct buf b = BUF(MIB);
	const struct event_field *f = event_get(ev, EK_ARGV);

	for (size_t at = 0; f && at < f->n; at += strnlen(f->p + at, f->n - at) + 1) {
		if (at > 0)
			buf_putc(&b, ' ');
		buf_esc(&b, f->p + at, strnlen(f->p + at, f->n - at));
	}
	set_text(&s->argv, buf_cstr(&b));
}

/* What the summary of a session is made of. */
static void note(struct stream *s, const struct event *ev)
{
	_free_ char *reason = NULL;

	if (ev->head.type == EV_SESSION_STARTED)
		note_argv(s, ev);
	if (ev->head.type != EV_SESSION_ENDED && ev->head.type != EV_SESSION_LOST &&
	    ev->head.type != EV_SANDBOX_STOPPED && ev->head.type != EV_SANDBOX_LOST)
		return;
	reason = event_get_text(ev, EK_REASON);
	set_text(&s->reason, reason ? reason : "");
	s->status = event_get_num(ev, EK_STATUS);
	s->cpu = event_get_num(ev, EK_CPU);
	s->memory_peak = event_get_num(ev, EK_MEMORY_PEAK);
	s->bytes_in = event_get_num(ev, EK_BYTES_IN);
	s->bytes_out = event_get_num(ev, EK_BYTES_OUT);
	s->ended = ev->head.time_ns;
	if (s->session != CHAIN_NO_SESSION)
		s->state = ev->head.type == EV_SESSION_LOST ? STATE_LOST : STATE_ENDED;
}

int run_append(struct run *r, const struct event *ev, const void *frame, size_t n, struct err *e)
{
	struct stmt *q = &r->db->insert;
	struct stream *s = NULL;
	int rc = find_stream(r, &ev->head, &s, e);

	if (rc < 0)
		return rc;
	chain_add(&s->chain, frame, n);
	s->bytes += n;
	s->is_changed = true;
	if (ev->head.number >= r->number)
		r->number = ev->head.number + 1;
	note(s, ev);
	stmt_num(q, 1, s->id);
	stmt_num(q, 2, s->chain.n);
	stmt_num(q, 3, ev->head.number);
	stmt_num(q, 4, ev->head.time_ns);
	stmt_num(q, 5, ev->head.type);
	stmt_blob(q, 6, frame, n);
	stmt_blob(q, 7, s->chain.head, SHA256_BYTES);
	return stmt_do(q, e);
}

int run_say(struct run *r, uint32_t session, enum event_type t, const struct event_field *f,
	    size_t n, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(EVENT_MAX_BYTES);
	struct event_head h = { .type = (uint16_t)t,
				.session = session,
				.time_ns = clock_real(),
				.number = r->number };
	struct event ev;

	event_encode(&h, f, n, &b);
	bug_on(event_decode(b.p, b.n, &ev) != (ssize_t)b.n);
	return run_append(r, &ev, b.p, b.n, e);
}
