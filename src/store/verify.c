/* SPDX-License-Identifier: Apache-2.0 */
/* store/verify.c - is every event there, unchanged and in its place?
 *
 * The chain of each stream is computed anew from its base and compared with the hash of each row, so the first wrong
 * place is named; from there it goes on with the hash as stored, to find the next. Then come what a chain alone cannot
 * show: its end against count and head (cut off), the rows of the streams themselves, what the registry remembers, and
 * that whatever the policy removed is told by an event.
 */
#include <dirent.h>
#include <stdarg.h>

#include "base/path.h"
#include "store/registry.h"
#include "store/store.h"

/* Named per stream; a damaged database has enough to say without all of them. */
#define WRONG_MAX 20

struct verify {
	store_wrong_fn *fn;
	void *arg;
	struct verify_done *done;
	const char *source;
	struct eventdb *db;
};

/* One stream as its row says. */
struct claim {
	uint64_t id, events, dropped;
	int64_t session;
	char run[EVENT_RUN_CHARS + 1];
	uint8_t head[SHA256_BYTES], base[SHA256_BYTES];
	unsigned n_wrong;
};

static void PRINTF(3, 4) wrong(struct verify *v, struct claim *c, const char *fmt, ...)
{
	char where[256], what[512];
	va_list ap;

	v->done->wrong++;
	if (c && ++c->n_wrong > WRONG_MAX)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (c && c->session >= 0)
		(void)snprintf(where, sizeof(where), "%s: session %s-%lld", v->source, c->run,
			       (long long)c->session);
	else if (c)
		(void)snprintf(where, sizeof(where), "%s: run %s", v->source, c->run);
	else
		(void)snprintf(where, sizeof(where), "%s", v->source);
	v->fn(v->arg, where, what);
}

/* ---- one row ---- */

/* The columns people search by must be the frame's own. */
static const char *row_fault(const struct stmt *q, const struct claim *c, const void *frame,
			     size_t n)
{
	struct event ev;
	int64_t session;

	if (event_decode(frame, n, &ev) != (ssize_t)n)
		return "is not an event";
	session = ev.head.session == EVENT_NO_SESSION ? CHAIN_NO_SESSION : ev.head.session;
	if (session != c->session)
		return "belongs to another session";
	if (ev.head.number != stmt_get_num(q, 1) || ev.head.time_ns != stmt_get_num(q, 2) ||
	    ev.head.type != stmt_get_num(q, 3))
		return "has columns that disagree with its content";
	return NULL;
}

static void check_row(struct verify *v, struct claim *c, const struct stmt *q, struct chain *chain)
{
	uint64_t nr = stmt_get_num(q, 0);
	size_t n, n_hash;
	const void *frame = stmt_get_blob(q, 4, &n), *hash = stmt_get_blob(q, 5, &n_hash);
	const char *fault = row_fault(q, c, frame, n);

	v->done->events++;
	if (nr > chain->n + 1)
		wrong(v, c, "events %llu to %llu are missing", (unsigned long long)chain->n + 1,
		      (unsigned long long)nr - 1);
	else if (nr <= chain->n)
		wrong(v, c, "event %llu is in the wrong place", (unsigned long long)nr);
	if (fault)
		wrong(v, c, "event %llu %s", (unsigned long long)nr, fault);
	if (n_hash != SHA256_BYTES || n > EVENT_MAX_BYTES) {
		wrong(v, c, "event %llu is damaged", (unsigned long long)nr);
		chain->n = nr;
		return;
	}
	if (nr == chain->n + 1) {
		chain_add(chain, frame, n);
		if (memcmp(chain->head, hash, SHA256_BYTES) != 0)
			wrong(v, c, "event %llu was edited or moved: its hash does not follow",
			      (unsigned long long)nr);
	}
	chain->n = nr;
	memcpy(chain->head, hash, SHA256_BYTES);
}

/* ---- one stream ---- */

static void check_end(struct verify *v, struct claim *c, const struct chain *chain)
{
	if (chain->n < c->events)
		wrong(v, c, "cut off: %llu events were recorded, only %llu are there",
		      (unsigned long long)c->events, (unsigned long long)chain->n);
	else if (chain->n > c->events)
		wrong(v, c, "%llu events were recorded, but %llu are there",
		      (unsigned long long)c->events, (unsigned long long)chain->n);
	else if (memcmp(chain->head, c->head, SHA256_BYTES) != 0)
		wrong(v, c, "the last event's hash is not the recorded head");
}

/* Whatever went before must be told by an event with that very hash. */
static int check_dropped(struct verify *v, struct claim *c, struct err *e)
{
	_cleanup_(stmt_close) struct stmt q = { 0 };
	char hex[SHA256_HEX_BYTES];
	uint64_t also_gone = 0;
	int r = db_number(&v->db->db, "SELECT count(*) FROM stream WHERE session<0 AND dropped>0",
			  0, &also_gone, e);

	if (r == 0)
		r = stmt_open(&q, &v->db->db, "SELECT frame FROM event WHERE type=?1", e);
	if (r < 0)
		return r;
	chain_hex(c->base, hex);
	stmt_num(&q, 1, EV_EVENTS_DROPPED);
	while ((r = stmt_step(&q, e)) == 1) {
		size_t n;
		const void *frame = stmt_get_blob(&q, 0, &n);
		_free_ char *hash = NULL;
		struct event ev;

		if (event_decode(frame, n, &ev) != (ssize_t)n)
			continue;
		hash = event_get_text(&ev, EK_HASH);
		if (hash && str_eq(hash, hex))
			return 0;
	}
	if (r == 0 && also_gone == 0)
		wrong(v, c, "%llu events are gone and no event says why",
		      (unsigned long long)c->dropped);
	return r;
}

static int check_stream(struct verify *v, struct claim *c, struct err *e)
{
	_cleanup_(stmt_close) struct stmt q = { 0 };
	struct chain chain = { .n = c->dropped };
	int r = stmt_open(&q, &v->db->db,
			  "SELECT nr, number, time, type, frame, hash FROM event WHERE stream=?1 "
			  "ORDER BY nr",
			  e);

	if (r < 0)
		return r;
	if (c->dropped == 0)
		chain_init(&chain, c->run, c->session);
	else
		memcpy(chain.head, c->base, SHA256_BYTES);
	stmt_num(&q, 1, c->id);
	while ((r = stmt_step(&q, e)) == 1)
		check_row(v, c, &q, &chain);
	if (r < 0)
		return r;
	check_end(v, c, &chain);
	v->done->streams++;
	v->done->dropped += c->dropped;
	return c->dropped > 0 ? check_dropped(v, c, e) : 0;
}

/* What the registry remembers of this stream; -1 when it knows nothing of it. */
static int check_registry(struct verify *v, struct claim *c, struct db *reg, struct err *e)
{
	_cleanup_(stmt_close) struct stmt q = { 0 };
	const void *head;
	size_t n;
	int r = stmt_open(&q, reg, "SELECT events, head FROM session WHERE run=?1 AND session=?2",
			  e);

	if (r < 0)
		return r;
	stmt_text(&q, 1, c->run);
	stmt_num(&q, 2, (uint64_t)c->session);
	r = stmt_step(&q, e);
	if (r < 0)
		return r;
	if (r == 0) {
		wrong(v, c, "the registry does not know it");
		return 0;
	}
	head = stmt_get_blob(&q, 1, &n);
	if (stmt_get_num(&q, 0) != c->events)
		wrong(v, c, "the registry remembers %llu events, the database %llu",
		      (unsigned long long)stmt_get_num(&q, 0), (unsigned long long)c->events);
	else if (n != SHA256_BYTES || memcmp(head, c->head, n) != 0)
		wrong(v, c, "the registry remembers another head");
	return 0;
}

/* ---- one database ---- */

static bool read_claim(const struct stmt *q, struct claim *c)
{
	size_t n_head, n_base;
	const void *head = stmt_get_blob(q, 5, &n_head), *base;

	*c = (struct claim){ .id = stmt_get_num(q, 0),
			     .session = (int64_t)stmt_get_num(q, 2),
			     .events = stmt_get_num(q, 3),
			     .dropped = stmt_get_num(q, 4) };
	(void)snprintf(c->run, sizeof(c->run), "%s", stmt_get_text(q, 1));
	if (n_head != SHA256_BYTES)
		return false;
	memcpy(c->head, head, n_head);
	base = stmt_get_blob(q, 6, &n_base);
	if (n_base != SHA256_BYTES)
		return false;
	memcpy(c->base, base, n_base);
	return true;
}

/* Rows of streams are never removed, and every event has one. */
static int check_whole(struct verify *v, struct err *e)
{
	static const struct {
		const char *sql, *what;
	} counts[] = {
		{ "SELECT ifnull(max(id), 0) - count(*) FROM stream", "%llu sessions are missing "
								      "as a whole" },
		{ "SELECT count(*) FROM event WHERE stream NOT IN (SELECT id FROM stream)", "%llu "
											    "events"
											    " belon"
											    "g to "
											    "no "
											    "sessio"
											    "n" },
		{ "SELECT ifnull(max(id), 0) - count(*) FROM run", "%llu runs are missing" },
	};

	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		uint64_t n = 0;
		int r = db_number(&v->db->db, counts[i].sql, 0, &n, e);

		if (r < 0)
			return r;
		if (n > 0)
			wrong(v, NULL, counts[i].what, (unsigned long long)n);
	}
	return 0;
}

static int check_database(struct verify *v, struct db *reg, struct err *e)
{
	_cleanup_(stmt_close) struct stmt q = { 0 };
	int r = check_whole(v, e);

	if (r == 0)
		r = stmt_open(&q, &v->db->db,
			      "SELECT s.id, r.run, s.session, s.events, s.dropped, s.head, s.base "
			      "FROM stream s LEFT JOIN run r ON s.run=r.id ORDER BY s.id",
			      e);
	while (r == 0 && (r = stmt_step(&q, e)) == 1) {
		struct claim c;

		if (!read_claim(&q, &c)) {
			wrong(v, &c, "its head is damaged");
			r = 0;
			continue;
		}
		r = check_stream(v, &c, e);
		if (r == 0 && reg)
			r = check_registry(v, &c, reg, e);
	}
	return r;
}

/* A database SQLite cannot read is a finding, not a failure to look. */
static int verify_file(struct verify *v, const char *path, struct db *reg, struct err *e)
{
	_cleanup_(eventdb_close) struct eventdb d = { 0 };
	struct err why = ERR_INIT;
	int r = eventdb_open(&d, path, DB_READ, &why);

	v->db = &d;
	v->done->databases++;
	if (r == 0)
		r = check_database(v, reg, &why);
	v->db = NULL;
	if (r == -EBADMSG) {
		wrong(v, NULL, "damaged: %s", why.msg);
		return 0;
	}
	if (r < 0)
		*e = why;
	return r;
}

/* ---- all ---- */

static int verify_source(struct verify *v, const char *state_dir, const char *source,
			 struct db *reg, struct err *e)
{
	_free_ char *path = mem_fmt("%s/%s", state_dir, source);

	v->source = source;
	return access(path, F_OK) < 0 ? 0 : verify_file(v, path, reg, e);
}

static int verify_sandboxes(struct verify *v, const char *state_dir, struct db *reg, struct err *e)
{
	_free_ char *path = mem_fmt("%s/sandboxes", state_dir);
	DIR *d = opendir(path);
	struct dirent *en;
	int r = 0;

	while (d && r == 0 && (en = readdir(d)) != NULL) {
		_free_ char *source = mem_fmt("sandboxes/%s/events.db", en->d_name);

		if (store_name_ok(en->d_name))
			r = verify_source(v, state_dir, source, reg, e);
	}
	if (d)
		(void)closedir(d);
	return r;
}

/* Databases that were removed without a word. */
static int check_sources(struct verify *v, const char *state_dir, struct db *reg, struct err *e)
{
	_cleanup_(stmt_close) struct stmt q = { 0 };
	int r = stmt_open(&q, reg,
			  "SELECT source, count(*), sum(events) FROM session WHERE gone=0 GROUP BY "
			  "source",
			  e);

	while (r == 0 && (r = stmt_step(&q, e)) == 1) {
		_free_ char *path = mem_fmt("%s/%s", state_dir, stmt_get_text(&q, 0));

		v->source = stmt_get_text(&q, 0);
		if (access(path, F_OK) < 0)
			wrong(v, NULL,
			      "is missing, with %llu sessions and %llu events; no event says that "
			      "the sandbox was removed",
			      (unsigned long long)stmt_get_num(&q, 1),
			      (unsigned long long)stmt_get_num(&q, 2));
		r = 0;
	}
	return r;
}

/* 1, 0, or < 0: the database cannot be asked. */
static int has_stream(struct eventdb *d, const char *run, uint64_t session)
{
	_cleanup_(stmt_close) struct stmt s = { 0 };
	struct err ignored = ERR_INIT;
	int r = d->db.raw == NULL ? -ENOENT
				  : stmt_open(&s, &d->db,
					      "SELECT 1 FROM stream s JOIN run r ON s.run=r.id "
					      "WHERE r.run=?1 AND s.session=?2",
					      &ignored);

	if (r < 0)
		return r;
	stmt_text(&s, 1, run);
	stmt_num(&s, 2, session);
	return stmt_step(&s, &ignored);
}

/* Sessions the registry knows and their database does not. One that cannot be read has been told of before. */
static int check_known(struct verify *v, const char *state_dir, struct db *reg, struct err *e)
{
	_cleanup_(stmt_close) struct stmt q = { 0 };
	_cleanup_(eventdb_close) struct eventdb d = { 0 };
	_free_ char *open = NULL;
	int r = stmt_open(&q, reg,
			  "SELECT source, run, session FROM session WHERE gone=0 ORDER BY source",
			  e);

	while (r == 0 && (r = stmt_step(&q, e)) == 1) {
		_free_ char *path = mem_fmt("%s/%s", state_dir, stmt_get_text(&q, 0));
		struct claim c = { .session = (int64_t)stmt_get_num(&q, 2) };
		struct err ignored = ERR_INIT;

		if (open == NULL || !str_eq(open, path)) {
			eventdb_close(&d);
			free(open);
			open = take(path);
			if (eventdb_open(&d, open, DB_READ, &ignored) < 0)
				d = (struct eventdb){ 0 };
		}
		(void)snprintf(c.run, sizeof(c.run), "%s", stmt_get_text(&q, 1));
		v->source = stmt_get_text(&q, 0);
		if (has_stream(&d, c.run, (uint64_t)c.session) == 0)
			wrong(v, &c, "is in the registry but not in the database");
		r = 0;
	}
	return r;
}

int store_verify(const char *state_dir, const struct store_filter *f, store_wrong_fn *fn, void *arg,
		 struct verify_done *ret, struct err *e)
{
	struct verify v = { .fn = fn, .arg = arg, .done = ret, .source = f->file };
	_cleanup_(db_close) struct db reg = { 0 };
	_free_ char *source = NULL;
	int r;

	sha256_expect_much(); /* one for each event */
	*ret = (struct verify_done){ 0 };
	if (f->file)
		return verify_file(&v, f->file, NULL, e);
	r = registry_open(&reg, state_dir, DB_READ, e);
	if (r == -ENOENT)
		return 0; /* nothing has been recorded yet */
	if (r < 0)
		return r;
	if (f->sandbox) {
		source = mem_fmt("sandboxes/%s/events.db", f->sandbox);
		return verify_source(&v, state_dir, source, &reg, e);
	}
	r = verify_source(&v, state_dir, "runs/events.db", &reg, e);
	if (r == 0)
		r = verify_sandboxes(&v, state_dir, &reg, e);
	if (r == 0)
		r = check_sources(&v, state_dir, &reg, e);
	return r < 0 ? r : check_known(&v, state_dir, &reg, e);
}
