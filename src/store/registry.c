/* SPDX-License-Identifier: Apache-2.0 */
/* store/registry.c - see registry.h
 *
 * Every writer takes the lock once, briefly. Deleting vitrine.db loses nothing but the second copy of heads and counts:
 * the next ingest finds no `source` row, begins at change 0 and fills it again from the databases. So one that is damaged is
 * set aside and made anew (store_mend).
 */
#include "store/registry.h"

#include <dirent.h>

#include "store/store.h"

int registry_open(struct db *reg, const char *state_dir, enum db_mode mode, struct err *e)
{
	_free_ char *path = mem_fmt("%s/vitrine.db", state_dir);

	return db_open(reg, path, mode, &schema_registry, e);
}

/* ---- streams ---- */

/* Does the database still hold, at the place the registry remembers, the hash it remembers? */
static int is_consistent(struct db *reg, struct eventdb *d, const struct stmt *row, struct err *e)
{
	_cleanup_(stmt_close) struct stmt known = { 0 }, q = { 0 };
	uint64_t n;
	size_t n_head, n_hash;
	const void *head, *hash;
	int r = stmt_open(&known, reg,
			  "SELECT events, head FROM session WHERE run=?1 AND session=?2", e);

	if (r < 0)
		return r;
	stmt_text(&known, 1, stmt_get_text(row, 1));
	stmt_num(&known, 2, stmt_get_num(row, 2));
	r = stmt_step(&known, e);
	if (r <= 0)
		return r < 0 ? r : 1;
	n = stmt_get_num(&known, 0);
	if (n > stmt_get_num(row, 10))
		return 0;
	if (n <= stmt_get_num(row, 12))
		return 1; /* gone since, as the policy wants */
	r = stmt_open(&q, &d->db, "SELECT hash FROM event WHERE stream=?1 AND nr=?2", e);
	if (r < 0)
		return r;
	stmt_num(&q, 1, stmt_get_num(row, 0));
	stmt_num(&q, 2, n);
	r = stmt_step(&q, e);
	if (r <= 0)
		return r;
	head = stmt_get_blob(&known, 1, &n_head);
	hash = stmt_get_blob(&q, 0, &n_hash);
	return n_head == n_hash && memcmp(head, hash, n_head) == 0;
}

/* Columns of `row` from 1 on go to the same places of the upsert; the source stands behind them. */
enum { ROW_COLUMNS = 17 };

static int take_row(struct stmt *up, const struct stmt *row, const char *source, struct err *e)
{
	for (int i = 1; i < ROW_COLUMNS; i++) {
		size_t n;

		if (i == 1 || i == 3 || i == 8 || i == 9)
			stmt_text(up, i, stmt_get_text(row, i));
		else if (i == 11) {
			const void *head = stmt_get_blob(row, i, &n);

			stmt_blob(up, i, head, n);
		} else
			stmt_num(up, i, stmt_get_num(row, i));
	}
	stmt_text(up, ROW_COLUMNS, source);
	return stmt_do(up, e);
}

static int sync_rows(struct db *reg, struct eventdb *d, const char *source, uint64_t last,
		     struct err *e)
{
	_cleanup_(stmt_close) struct stmt q = { 0 }, up = { 0 };
	int r = stmt_open(&q, &d->db,
			  "SELECT s.id, r.run, s.session, r.sandbox, s.state, s.started, s.ended, "
			  "s.status, s.reason, s.argv, s.events, s.head, s.dropped, s.cpu, "
			  "s.memory_peak, s.bytes_in, s.bytes_out, r.named FROM stream s JOIN run "
			  "r "
			  "ON s.run=r.id WHERE s.change>?1",
			  e);

	if (r == 0)
		r = stmt_open(&up, reg,
			      "INSERT INTO session(run, session, sandbox, state, started, ended, "
			      "status, reason, argv, events, head, dropped, cpu, memory_peak, "
			      "bytes_in, bytes_out, source, named) VALUES(?1, ?2, ?3, ?4, ?5, ?6, "
			      "?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18) ON "
			      "CONFLICT DO UPDATE SET state=?4, ended=?6, status=?7, reason=?8, "
			      "argv=?9, events=?10, head=?11, dropped=?12, cpu=?13, "
			      "memory_peak=?14, bytes_in=?15, bytes_out=?16, source=?17",
			      e);
	if (r < 0)
		return r;
	stmt_num(&q, 1, last);
	while ((r = stmt_step(&q, e)) == 1) {
		r = is_consistent(reg, d, &q, e);
		stmt_num(&up, 18, stmt_get_num(&q, 17));
		if (r > 0)
			r = take_row(&up, &q, source, e);
		if (r < 0)
			return r;
	}
	return r;
}

static int set_change(struct db *reg, const char *source, uint64_t change, struct err *e)
{
	_cleanup_(stmt_close) struct stmt q = { 0 };
	int r = stmt_open(&q, reg,
			  "INSERT INTO source VALUES(?1, ?2) ON CONFLICT DO UPDATE SET change=?2",
			  e);

	if (r < 0)
		return r;
	stmt_text(&q, 1, source);
	stmt_num(&q, 2, change);
	return stmt_do(&q, e);
}

static int last_change(struct db *reg, const char *source, uint64_t *ret, struct err *e)
{
	_cleanup_(stmt_close) struct stmt q = { 0 };
	int r = stmt_open(&q, reg, "SELECT change FROM source WHERE name=?1", e);

	if (r < 0)
		return r;
	stmt_text(&q, 1, source);
	r = stmt_step(&q, e);
	*ret = r == 1 ? stmt_get_num(&q, 0) : 0;
	return r < 0 ? r : 0;
}

static int sync_all(struct db *reg, struct eventdb *d, const char *source, struct err *e)
{
	uint64_t last = 0, change = 0;
	int r = last_change(reg, source, &last, e);

	if (r == 0)
		r = db_number(&d->db, "SELECT value FROM meta WHERE key='change'", 0, &change, e);
	if (r < 0 || last == change)
		return r;
	/* A database that is younger than we know is another one under the same name. */
	r = sync_rows(reg, d, source, change < last ? 0 : last, e);
	return r < 0 ? r : set_change(reg, source, change, e);
}

int registry_sync(struct db *reg, struct eventdb *d, const char *source, struct err *e)
{
	int r = db_begin(reg, e);

	if (r < 0)
		return r;
	r = sync_all(reg, d, source, e);
	if (r == 0)
		r = db_commit(reg, e);
	if (r < 0)
		db_rollback(reg);
	return r;
}

/* ---- changes that did not come to their end ---- */

static int run_sql(struct db *reg, const char *sql, const char *a, const char *b, uint64_t time,
		   struct err *e)
{
	_cleanup_(stmt_close) struct stmt q = { 0 };
	int r = stmt_open(&q, reg, sql, e);

	if (r < 0)
		return r;
	stmt_text(&q, 1, a);
	if (sqlite3_bind_parameter_count(q.raw) >= 2)
		stmt_text(&q, 2, b);
	if (sqlite3_bind_parameter_count(q.raw) >= 3)
		stmt_num(&q, 3, time);
	return stmt_do(&q, e);
}

int registry_unsettle(struct db *reg, const char *source, struct err *e)
{
	return run_sql(reg, "INSERT OR IGNORE INTO unsettled VALUES(?1)", source, NULL, 0, e);
}

int registry_settle(struct db *reg, const char *source, struct err *e)
{
	return run_sql(reg, "DELETE FROM unsettled WHERE source=?1", source, NULL, 0, e);
}

/* The first of them behind `after`, or NULL. */
static int next_unsettled(struct db *reg, const char *after, char **ret, struct err *e)
{
	_cleanup_(stmt_close) struct stmt q = { 0 };
	int r = stmt_open(&q, reg, "SELECT min(source) FROM unsettled WHERE source>?1", e);

	if (r < 0)
		return r;
	stmt_text(&q, 1, after);
	r = stmt_step(&q, e);
	if (r < 0)
		return r;
	*ret = r == 1 && *stmt_get_text(&q, 0) ? mem_str(stmt_get_text(&q, 0)) : NULL;
	return 0;
}

/* One that cannot be read tells of itself to whoever reads it; it stays on the list. */
static int catch_up_with(struct db *reg, const char *state_dir, const char *source, bool is_alone,
			 struct err *e)
{
	_free_ char *path = mem_fmt("%s/%s", state_dir, source);
	_cleanup_(eventdb_close) struct eventdb d = { 0 };
	struct err ignored = ERR_INIT;

	if (access(path, F_OK) == 0) {
		if (eventdb_open(&d, path, DB_WRITE, &ignored) < 0 ||
		    registry_sync(reg, &d, source, &ignored) < 0)
			return 0;
	}
	return is_alone ? registry_settle(reg, source, e) : 0;
}

int registry_catch_up(struct db *reg, const char *state_dir, bool is_alone, struct err *e)
{
	_free_ char *source = mem_str("");
	int r = 0;

	while (r == 0) {
		char *next = NULL;

		r = next_unsettled(reg, source, &next, e);
		free(source);
		source = next;
		if (r < 0 || next == NULL)
			break;
		r = catch_up_with(reg, state_dir, source, is_alone, e);
	}
	return r;
}

/* ---- databases that are new here ---- */

/* One the registry has never seen; what it knows is kept up to date by ingest alone. */
static int sync_new(struct db *reg, const char *state_dir, const char *source, struct err *e)
{
	_free_ char *path = mem_fmt("%s/%s", state_dir, source);
	_cleanup_(eventdb_close) struct eventdb d = { 0 };
	uint64_t last = 0;
	int r;

	if (access(path, F_OK) < 0)
		return 0;
	r = last_change(reg, source, &last, e);
	if (r < 0 || last > 0)
		return r;
	r = eventdb_open(&d, path, DB_WRITE, e);
	return r < 0 ? r : registry_sync(reg, &d, source, e);
}

int store_reconcile(const char *state_dir, struct err *e)
{
	_free_ char *sandboxes = mem_fmt("%s/sandboxes", state_dir);
	_cleanup_(db_close) struct db reg = { 0 };
	struct dirent *en;
	DIR *d;
	int r;

	if (access(state_dir, F_OK) < 0)
		return 0;
	r = registry_open(&reg, state_dir, DB_CREATE, e);
	if (r == 0)
		r = registry_catch_up(&reg, state_dir, false, e);
	if (r == 0)
		r = sync_new(&reg, state_dir, "runs/events.db", e);
	d = opendir(sandboxes);
	while (d && r == 0 && (en = readdir(d)) != NULL) {
		_free_ char *source = mem_fmt("sandboxes/%s/events.db", en->d_name);

		if (store_name_ok(en->d_name))
			r = sync_new(&reg, state_dir, source, e);
	}
	if (d)
		(void)closedir(d);
	return r;
}

/* ---- damage ---- */

/* It reads all of it. Somebody else's file under that name is not damaged, and not ours to move. */
static bool is_damaged(const char *state_dir)
{
	_cleanup_(db_close) struct db reg = { 0 };
	_cleanup_(stmt_close) struct stmt q = { 0 };
	struct err why = ERR_INIT;
	int r = registry_open(&reg, state_dir, DB_WRITE, &why);

	if (r == 0)
		r = stmt_open(&q, &reg, "PRAGMA quick_check(1)", &why);
	if (r == 0)
		r = stmt_step(&q, &why);
	if (r == 1)
		return !str_eq(stmt_get_text(&q, 0), "ok");
	return r == -EBADMSG && why.kind == ERR_SYSTEM;
}

/* The log first: a new registry that found the log of the old one would take it for its own. */
static int set_aside(const char *state_dir, struct err *e)
{
	static const char *const parts[] = { "-wal", "-shm", "" };

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		_free_ char *from = mem_fmt("%s/vitrine.db%s", state_dir, parts[i]);
		_free_ char *to = mem_fmt("%s/vitrine.db.damaged%s", state_dir, parts[i]);

		if (rename(from, to) < 0 && errno != ENOENT)
			return err_sys(e, "'%s' to '%s'", from, to);
	}
	return 0;
}

int store_mend(const char *state_dir, struct err *e)
{
	_close_ int lock = FD_NONE; /* nobody else may mend it meanwhile, or fill it */
	int r = store_lock(state_dir, &lock, e);

	if (r < 0)
		return r;
	if (!is_damaged(state_dir))
		return 0;
	r = set_aside(state_dir, e);
	if (r == 0)
		r = store_reconcile(state_dir, e);
	return r < 0 ? r : 1;
}

/* ---- sandboxes ---- */

static int note_seen(struct db *reg, const struct event *ev, const char *name, struct err *e)
{
	_cleanup_(stmt_close) struct stmt q = { 0 };
	_free_ char *agent = event_get_text(ev, EK_AGENT), *ws = event_get_text(ev, EK_WORKSPACE);
	int r = stmt_open(&q, reg,
			  "INSERT INTO sandbox(name, created, seen, agent, workspace) VALUES(?1, "
			  "?2, ?3, ?4, ?5) ON CONFLICT DO UPDATE SET seen=max(seen, ?3), "
			  "created=iif(?2>0, ?2, created), removed=iif(removed<?3, 0, removed), "
			  "agent=iif(?4='', agent, ?4), workspace=iif(?5='', workspace, ?5)",
			  e);

	if (r < 0)
		return r;
	stmt_text(&q, 1, name);
	stmt_num(&q, 2, ev->head.type == EV_SANDBOX_CREATED ? ev->head.time_ns : 0);
	stmt_num(&q, 3, ev->head.time_ns);
	stmt_text(&q, 4, agent ? agent : "");
	stmt_text(&q, 5, ws ? ws : "");
	return stmt_do(&q, e);
}

/* The events of a removed sandbox go with its folder: what the registry knows of them is all that is left. */
static int note_removed(struct db *reg, const struct event *ev, const char *name, struct err *e)
{
	_free_ char *source = mem_fmt("sandboxes/%s/events.db", name);
	int r = run_sql(reg,
			"UPDATE sandbox SET removed=max(removed, ?3) WHERE name=?1 AND ?2 IS NULL",
			name, NULL, ev->head.time_ns, e);

	if (r == 0)
		r = run_sql(reg,
			    "UPDATE session SET gone=1 WHERE source=?1 AND ?2 IS NULL AND "
			    "started<?3",
			    source, NULL, ev->head.time_ns, e);
	if (r == 0)
		r = registry_settle(reg, source, e);
	return r < 0 ? r : run_sql(reg, "DELETE FROM source WHERE name=?1", source, NULL, 0, e);
}

static int note_renamed(struct db *reg, const char *name, const char *target, struct err *e)
{
	_free_ char *from = mem_fmt("sandboxes/%s/events.db", name);
	_free_ char *to = mem_fmt("sandboxes/%s/events.db", target);
	int r = run_sql(reg, "UPDATE OR REPLACE sandbox SET name=?2 WHERE name=?1", name, target, 0,
			e);

	if (r == 0)
		r = run_sql(reg, "UPDATE session SET source=?2 WHERE source=?1 AND gone=0", from,
			    to, 0, e);
	if (r == 0)
		r = run_sql(reg, "UPDATE OR REPLACE unsettled SET source=?2 WHERE source=?1", from,
			    to, 0, e);
	return r < 0 ? r
		     : run_sql(reg, "UPDATE OR REPLACE source SET name=?2 WHERE name=?1", from, to,
			       0, e);
}

int registry_note(struct db *reg, const struct event *ev, struct err *e)
{
	_free_ char *name = event_get_text(ev, EK_NAME), *target = event_get_text(ev, EK_TARGET);
	unsigned t = ev->head.type;

	if (name == NULL || !store_name_ok(name))
		return 0;
	if (t == EV_SANDBOX_CREATED || t == EV_SANDBOX_STARTED || t == EV_SANDBOX_STOPPED)
		return note_seen(reg, ev, name, e);
	if (t == EV_SANDBOX_REMOVED)
		return note_removed(reg, ev, name, e);
	if (t == EV_SANDBOX_RENAMED && target && store_name_ok(target))
		return note_renamed(reg, name, target, e);
	return 0;
}

/* ---- listings ---- */

static int open_for_listing(struct db *reg, const char *state_dir, struct err *e)
{
	struct err why = ERR_INIT;
	int r = registry_open(reg, state_dir, DB_READ, &why);

	if (r == -ENOENT || r == -EAGAIN)
		return 0; /* nothing has been recorded yet */
	if (r < 0)
		*e = why;
	return r < 0 ? r : 1;
}

static void fill_session(const struct stmt *q, struct store_session *s)
{
	size_t n;
	const void *head = stmt_get_blob(q, 15, &n);

	*s = (struct store_session){ .run = stmt_get_text(q, 0),
				     .session = (uint32_t)stmt_get_num(q, 1),
				     .sandbox = stmt_get_text(q, 2),
				     .is_named = stmt_get_num(q, 3) != 0,
				     .state = (enum store_state)stmt_get_num(q, 4),
				     .started_ns = stmt_get_num(q, 5),
				     .ended_ns = stmt_get_num(q, 6),
				     .status = stmt_get_num(q, 7),
				     .reason = stmt_get_text(q, 8),
				     .argv = stmt_get_text(q, 9),
				     .cpu_ns = stmt_get_num(q, 10),
				     .memory_peak = stmt_get_num(q, 11),
				     .bytes_in = stmt_get_num(q, 12),
				     .bytes_out = stmt_get_num(q, 13),
				     .events = stmt_get_num(q, 14),
				     .dropped = stmt_get_num(q, 16) };
	if (n == SHA256_BYTES)
		chain_hex(head, s->head);
}

int store_sessions(const char *state_dir, const char *sandbox, uint64_t limit, store_session_fn *fn,
		   void *arg, struct err *e)
{
	_cleanup_(db_close) struct db reg = { 0 };
	_cleanup_(stmt_close) struct stmt q = { 0 };
	struct store_session s;
	int r = open_for_listing(&reg, state_dir, e);

	if (r <= 0)
		return r;
	r = stmt_open(&q, &reg,
		      "SELECT run, session, sandbox, named, state, started, ended, status, reason, "
		      "argv, cpu, memory_peak, bytes_in, bytes_out, events, head, dropped FROM "
		      "session WHERE session>=0 AND (?1 IS NULL OR sandbox=?1) ORDER BY started "
		      "DESC LIMIT ?2",
		      e);
	if (r < 0)
		return r;
	stmt_text(&q, 1, sandbox);
	stmt_num(&q, 2, limit ? limit : INT64_MAX);
	while ((r = stmt_step(&q, e)) == 1) {
		fill_session(&q, &s);
		r = fn(arg, &s);
		if (r != 0)
			return r;
	}
	return r;
}

int store_sandboxes(const char *state_dir, store_sandbox_fn *fn, void *arg, struct err *e)
{
	_cleanup_(db_close) struct db reg = { 0 };
	_cleanup_(stmt_close) struct stmt q = { 0 };
	int r = open_for_listing(&reg, state_dir, e);

	if (r <= 0)
		return r;
	r = stmt_open(&q, &reg,
		      "SELECT name, agent, workspace, created, removed, seen FROM sandbox ORDER BY "
		      "name",
		      e);
	while (r == 0 && (r = stmt_step(&q, e)) == 1) {
		struct store_sandbox s = { .name = stmt_get_text(&q, 0),
					   .agent = stmt_get_text(&q, 1),
					   .workspace = stmt_get_text(&q, 2),
					   .created_ns = stmt_get_num(&q, 3),
					   .removed_ns = stmt_get_num(&q, 4),
					   .seen_ns = stmt_get_num(&q, 5) };

		r = fn(arg, &s);
		if (r != 0)
			return r;
	}
	return r;
}
