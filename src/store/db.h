/* SPDX-License-Identifier: Apache-2.0 */
/* store/db.h - SQLite behind a narrow door: every failure is mapped once, to a number and a sentence
 *
 * Private to store/. Busy databases are waited for up to DB_WAIT_MS. WAL is used where memory is shared between
 * processes, that is not on network file systems; there the old rollback journal works, with readers that wait.
 */
#ifndef VITRINE_STORE_DB_H
#define VITRINE_STORE_DB_H

#include <sqlite3.h>

#include "base/err.h"

#define DB_WAIT_MS 10000

struct db {
	sqlite3 *raw;
	char *path;
	bool is_wal;
};

enum db_mode {
	DB_READ,   /* must exist; never changed, also on a read-only file system */
	DB_WRITE,  /* must exist */
	DB_CREATE, /* made when it does not */
};

/* What one kind of database must look like: its steps from nothing, the last one the present. */
struct db_schema {
	int32_t app_id;
	const char *what; /* for messages: "the registry" */
	const char *const *steps;
	int n;
	bool is_without_wal; /* as if it lay on a network */
};

/* Opens, checks whose it is, and migrates when it may write. -ENOENT; -EAGAIN when it shall only be read and nobody has made
 * it whole yet; ERR_UNSUPPORTED when a newer Vitrine made it. */
int db_open(struct db *d, const char *path, enum db_mode mode, const struct db_schema *schema,
	    struct err *e);
void db_close(struct db *d);

/* Is this magic number of statfs() one of a network file system (or of one that may be)? */
bool db_is_network(uint64_t fs_type);

int db_exec(struct db *d, const char *sql, struct err *e);
int db_begin(struct db *d, struct err *e); /* for writing, at once */
int db_commit(struct db *d, struct err *e);
void db_rollback(struct db *d);

/* Statements. */
struct stmt {
	sqlite3_stmt *raw;
	struct db *db;
};
int stmt_open(struct stmt *s, struct db *d, const char *sql, struct err *e);
void stmt_close(struct stmt *s);
void stmt_num(struct stmt *s, int at, uint64_t v);
void stmt_text(struct stmt *s, int at, const char *v); /* NULL is NULL; borrowed until the step */
void stmt_blob(struct stmt *s, int at, const void *p, size_t n);
/* 1: a row; 0: the end, and the statement is ready to be used again; < 0. */
int stmt_step(struct stmt *s, struct err *e);
/* Runs one that gives no rows. */
int stmt_do(struct stmt *s, struct err *e);
void stmt_reset(struct stmt *s);
uint64_t stmt_get_num(const struct stmt *s, int at);
const char *stmt_get_text(const struct stmt *s, int at); /* "" for NULL; until the next step */
const void *stmt_get_blob(const struct stmt *s, int at, size_t *ret_n);

/* One number from one row; `otherwise` when there is none. */
int db_number(struct db *d, const char *sql, uint64_t otherwise, uint64_t *ret, struct err *e);

#endif
