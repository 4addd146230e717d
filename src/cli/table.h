/* SPDX-License-Identifier: Apache-2.0 */
/* cli/table.h - listings: one set of columns, printed for people, as JSON, by a format, or as names only */
#ifndef VITRINE_CLI_TABLE_H
#define VITRINE_CLI_TABLE_H

#include "cli/cli.h"

enum column_kind { COLUMN_TEXT, COLUMN_NUMBER, COLUMN_BYTES, COLUMN_NS, COLUMN_AGO, COLUMN_BOOL };

struct column {
	const char *key;   /* in JSON */
	const char *field; /* in --format: {{.Field}} */
	const char *title; /* for people; NULL: not shown */
	enum column_kind kind;
};

struct cell {
	char *text;   /* COLUMN_TEXT; foreign bytes; NULL: not known */
	uint64_t num; /* the others; of COLUMN_AGO seconds since 1970 */
	bool is_null;
};

struct table {
	const struct column *columns;
	size_t n_columns;
	struct cell *cells;
	size_t n_rows;
};

struct table_how {
	bool as_json, is_quiet;
	const char *format;
};

/* The next row's cells, all empty. */
struct cell *table_row(struct table *t);
void table_done(struct table *t);

/* is_quiet prints the first column. */
int table_print(const struct table *t, const struct table_how *how, struct buf *out, struct err *e);

/* "{{.Name}}\t{{.Status}}" for one row; fields that are not there are a usage error. */
int table_format(const struct table *t, size_t row, const char *format, struct buf *out,
		 struct err *e);

void text_bytes(uint64_t n, struct buf *out);     /* 1.5 MiB */
void text_duration(uint64_t ns, struct buf *out); /* 2m 5s */

#endif
