/* SPDX-License-Identifier: Apache-2.0 */
/* store/db.c - see db.h
 *
 * synchronous=FULL: a journal is removed right after its events are committed, so the commit must be on the disk by
 * then. A commit comes once per part of a journal, not once per event; it can afford that.
 *
 * A database may be a copy from another machine, or one somebody worked on: schema and content are foreign. SQLite is
 * told so (defensive, no trusted schema), no extension is ever loaded, and what is read is checked like a journal.
 */
#include "store/db.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/path.h"

/* ---- failures ---- */

static int number_of(int code, sqlite3 *raw)
{
	switch (code & 0xff) {
	case SQLITE_FULL:
		return ENOSPC;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return EBUSY;
	case SQLITE_READONLY:
		return EROFS;
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return EACCES;
	case SQLITE_NOMEM:
		return ENOMEM;
	case SQLITE_TOOBIG:
		return E2BIG;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
	case SQLITE_SCHEMA:
		return EBADMSG;
	case SQLITE_CONSTRAINT:
		return EEXIST;
	case SQLITE_INTERRUPT:
		return EINTR;
	case SQLITE_CANTOPEN:
	case SQLITE_IOERR:
		return raw && sqlite3_system_errno(raw) > 0 ? sqlite3_system_errno(raw) : EIO;
	default:
		return EIO;
	}
}

static const char *remedy_of(int num)
{
	switch (num) {
	case ENOSPC:
		return "; the disk is full: make room and try again, nothing is lost";
	case EBUSY:
		return "; another program holds it: try again when that has ended";
	case EBADMSG:
		return "; the file is damaged: see 'recovery' in docs/OPERATIONS.md";
	case EROFS:
	case EACCES:
		return "; it cannot be written by this user";
	default:
		return "";
	}
}

static int failed(const struct db *d, int code, struct err *e)
{
	int num = number_of(code, d->raw);
	const char *why = d->raw ? sqlite3_errmsg(d->raw) : sqlite3_errstr(code);

	return err_set(e, num == EBUSY ? ERR_CONFLICT : ERR_SYSTEM, num, "'%s': %s%s", d->path, why,
		       remedy_of(num));
}

/* ---- opening ---- */

bool db_is_network(uint64_t fs_type)
{
	static const uint64_t network[] = {
		NFS_SUPER_MAGIC,
		SMB_SUPER_MAGIC,
		SMB2_SUPER_MAGIC,
		CIFS_SUPER_MAGIC,
		V9FS_MAGIC,
		AFS_SUPER_MAGIC,
		AFS_FS_MAGIC,
		CODA_SUPER_MAGIC,
		NCP_SUPER_MAGIC,
		CEPH_SUPER_MAGIC,
		OCFS2_SUPER_MAGIC,
		FUSE_SUPER_MAGIC,
		0x01161970 /* gfs2 */,
		0x0bd00bd0 /* lustre */,
		0x47504653 /* gpfs */,
		0xaad7aaea /* panfs */,
		0x19830326 /* beegfs */,
		0x786f4256 /* vboxsf */,
	};

	for (size_t i = 0; i < ARRAY_LEN(network); i++)
		if (network[i] == (fs_type & UINT32_MAX))
			return true;
	return false;
}

static bool lies_on_network(const char *path)
{
	_free_ char *dir = path_parent(path);
	struct statfs fs;

	return statfs(dir, &fs) == 0 && db_is_network((uint64_t)fs.f_type);
}

int db_exec(struct db *d, const char *sql, struct err *e)
{
	int code = sqlite3_exec(d->raw, sql, NULL, NULL, NULL);

	return code == SQLITE_OK ? 0 : failed(d, code, e);
}

static int set_up(struct db *d, enum db_mode mode, const struct db_schema *s, struct err *e)
{
	int r;

	(void)sqlite3_busy_timeout(d->raw, DB_WAIT_MS);
	(void)sqlite3_extended_result_codes(d->raw, 1);
	(void)sqlite3_db_config(d->raw, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	(void)sqlite3_db_config(d->raw, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	(void)sqlite3_limit(d->raw, SQLITE_LIMIT_LENGTH, 16 * (int)MIB);
	if (mode == DB_READ)
		return 0;
	d->is_wal = !s->is_without_wal && !lies_on_network(d->path);
	r = db_exec(d, d->is_wal ? "PRAGMA journal_mode=WAL" : "PRAGMA journal_mode=DELETE", e);
	return r < 0 ? r : db_exec(d, "PRAGMA synchronous=FULL", e);
}

static bool has_wal(const char *path)
{
	_free_ char *wal = mem_fmt("%s-wal", path);
	struct stat st;

	return stat(wal, &st) == 0 && st.st_size > 0;
}

/* None of our processes has threads: SQLite need not lock, nor count what it allocates. */
static void no_threads(void)
{
	static bool is_said;

	if (is_said)
		return;
	is_said = true;
	(void)sqlite3_config(SQLITE_CONFIG_SINGLETHREAD); /* else it is only slower */
	(void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

/* Read-only media and foreign files: nobody writes there, so SQLite needs no lock and no memory beside it. */
static int open_raw(struct db *d, enum db_mode mode, bool is_frozen)
{
	int flags = SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
	_free_ char *uri = NULL;

	no_threads();
	flags |= mode == DB_CREATE  ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
		 : mode == DB_WRITE ? SQLITE_OPEN_READWRITE
				    : SQLITE_OPEN_READONLY;
	if (!is_frozen)
		return sqlite3_open_v2(d->path, &d->raw, flags, NULL);
	if (strpbrk(d->path, "?#%") || has_wal(d->path))
		return SQLITE_CANTOPEN; /* would mean something else in a URI; would be left out */
	uri = mem_fmt("file:%s?immutable=1", d->path);
	return sqlite3_open_v2(uri, &d->raw, flags | SQLITE_OPEN_URI, NULL);
}

/* ---- migrations ---- */

static int check_owner(struct db *d, const struct db_schema *s, uint64_t *ret_version,
		       struct err *e)
{
	uint64_t id = 0;
	int r = db_number(d, "PRAGMA application_id", 0, &id, e);

	if (r == 0)
		r = db_number(d, "PRAGMA user_version", 0, ret_version, e);
	if (r < 0)
		return r;
	if (id != (uint64_t)s->app_id && (id != 0 || *ret_version != 0))
		return err_set(e, ERR_CONFIG, EBADMSG, "'%s' is not %s of Vitrine", d->path,
			       s->what);
	if (*ret_version > (uint64_t)s->n)
		return err_set(e, ERR_UNSUPPORTED, EPROTO,
			       "'%s' was made by a newer Vitrine (schema %llu, this one knows %d); "
			       "use that one, or move the file away",
			       d->path, (unsigned long long)*ret_version, s->n);
	return 0;
}

static int take_steps(struct db *d, const struct db_schema *s, struct err *e)
{
	uint64_t version = 0;
	/* Asked again under the lock: another process may have been faster. */
	int r = check_owner(d, s, &version, e);

	for (; r == 0 && version < (uint64_t)s->n; version++) {
		_free_ char *mark = mem_fmt("PRAGMA user_version=%d; PRAGMA application_id=%d",
					    (int)version + 1, s->app_id);

		r = db_exec(d, s->steps[version], e);
		if (r == 0)
			r = db_exec(d, mark, e);
	}
	return r;
}

static int migrate(struct db *d, const struct db_schema *s, enum db_mode mode, struct err *e)
{
	uint64_t version = 0;
	int r = check_owner(d, s, &version, e);

	if (r < 0 || version == (uint64_t)s->n)
		return r;
	/* Its maker has not come to the first step yet: there is nothing to read. */
	if (mode == DB_READ && version == 0)
		return err_set(e, ERR_UNSUPPORTED, EAGAIN, "'%s' is empty, or only being made",
			       d->path);
	if (mode == DB_READ)
		return err_set(e, ERR_UNSUPPORTED, EPROTO,
			       "'%s' has the older schema %llu and cannot be brought up to %d "
			       "here; copy it to where it can be written",
			       d->path, (unsigned long long)version, s->n);
	r = db_begin(d, e);
	if (r < 0)
		return r;
	r = take_steps(d, s, e);
	if (r == 0)
		r = db_commit(d, e);
	if (r < 0)
		db_rollback(d);
	return r;
}

static int try_open(struct db *d, enum db_mode mode, bool is_frozen, const struct db_schema *schema,
		    struct err *e)
{
	int code = open_raw(d, mode, is_frozen);
	int r = code == SQLITE_OK ? set_up(d, mode, schema, e) : failed(d, code, e);

	if (r == 0)
		r = migrate(d, schema, mode, e);
	if (r < 0) {
		(void)sqlite3_close(d->raw);
		d->raw = NULL;
	}
	return r;
}

int db_open(struct db *d, const char *path, enum db_mode mode, const struct db_schema *schema,
	    struct err *e)
{
	struct err first = ERR_INIT;
	int r;

	*d = (struct db){ .path = mem_str(path) };
	if (mode != DB_CREATE && access(path, F_OK) < 0) {
		r = err_sys(e, "'%s'", path);
		db_close(d);
		return r;
	}
	r = try_open(d, mode, false, schema, &first);
	if (r < 0 && mode == DB_READ && access(path, R_OK) == 0 && first.kind == ERR_SYSTEM &&
	    first.num != EBADMSG)
		r = try_open(d, mode, true, schema, &first);
	if (r < 0) {
		*e = first;
		db_close(d);
	}
	return r;
}

void db_close(struct db *d)
{
	if (d->raw)
		(void)sqlite3_close_v2(d->raw);
	free(d->path);
	*d = (struct db){ 0 };
}

/* ---- transactions ---- */

int db_begin(struct db *d, struct err *e)
{
	return db_exec(d, "BEGIN IMMEDIATE", e);
}

int db_commit(struct db *d, struct err *e)
{
	return db_exec(d, "COMMIT", e);
}

void db_rollback(struct db *d)
{
	/* Some failures have rolled back already. */
	if (d->raw && !sqlite3_get_autocommit(d->raw))
		(void)sqlite3_exec(d->raw, "ROLLBACK", NULL, NULL, NULL);
}

/* ---- statements ---- */

int stmt_open(struct stmt *s, struct db *d, const char *sql, struct err *e)
{
	int code = sqlite3_prepare_v3(d->raw, sql, -1, SQLITE_PREPARE_PERSISTENT, &s->raw, NULL);

	s->db = d;
	return code == SQLITE_OK ? 0 : failed(d, code, e);
}

void stmt_close(struct stmt *s)
{
	(void)sqlite3_finalize(s->raw); /* the failure was reported by the step */
	s->raw = NULL;
}

void stmt_num(struct stmt *s, int at, uint64_t v)
{
	bug_on(sqlite3_bind_int64(s->raw, at, (sqlite3_int64)v) != SQLITE_OK);
}

void stmt_text(struct stmt *s, int at, const char *v)
{
	bug_on(sqlite3_bind_text(s->raw, at, v, -1, SQLITE_STATIC) != SQLITE_OK);
}

void stmt_blob(struct stmt *s, int at, const void *p, size_t n)
{
	bug_on(sqlite3_bind_blob64(s->raw, at, p, n, SQLITE_STATIC) != SQLITE_OK);
}

int stmt_step(struct stmt *s, struct err *e)
{
	int code = sqlite3_step(s->raw);
	int r;

	if (code == SQLITE_ROW)
		return 1;
	r = code == SQLITE_DONE ? 0 : failed(s->db, code, e);
	(void)sqlite3_reset(s->raw); /* says again what the step said */
	return r;
}

int stmt_do(struct stmt *s, struct err *e)
{
	int r = stmt_step(s, e);

	bug_on(r == 1);
	return r;
}

void stmt_reset(struct stmt *s)
{
	(void)sqlite3_reset(s->raw);
}

uint64_t stmt_get_num(const struct stmt *s, int at)
{
	return (uint64_t)sqlite3_column_int64(s->raw, at);
}

const char *stmt_get_text(const struct stmt *s, int at)
{
	const unsigned char *t = sqlite3_column_text(s->raw, at);

	return t ? (const char *)t : "";
}

const void *stmt_get_blob(const struct stmt *s, int at, size_t *ret_n)
{
	const void *p = sqlite3_column_blob(s->raw, at);

	*ret_n = (size_t)sqlite3_column_bytes(s->raw, at);
	return p ? p : "";
}

int db_number(struct db *d, const char *sql, uint64_t otherwise, uint64_t *ret, struct err *e)
{
	_cleanup_(stmt_close) struct stmt s = { 0 };
	int r = stmt_open(&s, d, sql, e);

	if (r == 0)
		r = stmt_step(&s, e);
	if (r < 0)
		return r;
	*ret = r == 1 ? stmt_get_num(&s, 0) : otherwise;
	return 0;
}
