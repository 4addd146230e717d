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

/* The options of every listing, for its table; the ids are above those that a verb gives its own. `quiet` says what
 * --quiet prints. */
enum { TABLE_OPT_JSON = 0x7000, TABLE_OPT_QUIET, TABLE_OPT_FORMAT };

/* clang-format off */
#define TABLE_OPTS(json, quiet)                                                                    \
	{ "json", 0, NULL, json, TABLE_OPT_JSON },                                                 \
	{ "quiet", 'q', NULL, quiet, TABLE_OPT_QUIET },                                            \
	{ "format", 0, "TEXT", "print each row by a text with {{.Field}}s", TABLE_OPT_FORMAT }
/* clang-format on */

/* True when the option just parsed was one of them. */
bool table_opt(struct table_how *how, const struct opts *o, int id);

/* --quiet or --format: what a listing prints for people and as JSON may be richer than rows, these never are. */
bool table_is_asked(const struct table_how *how);

/* Is this field printed? What costs much to find out is left out where it is not. */
bool table_wants(const struct table_how *how, const char *field);

/* The next row's cells, all empty. */
struct cell *table_row(struct table *t);
void table_done(struct table *t);

/* is_quiet prints the first column. A format is checked even where there are no rows. */
int table_print(const struct table *t, const struct table_how *how, struct buf *out, struct err *e);
int table_show(const struct table *t, const struct table_how *how, struct err *e); /* to stdout */

/* "{{.Name}}\t{{.Status}}" for one row; fields that are not there are a usage error. */
int table_format(const struct table *t, size_t row, const char *format, struct buf *out,
		 struct err *e);

void text_bytes(uint64_t n, struct buf *out);     /* 1.5 MiB */
void text_duration(uint64_t ns, struct buf *out); /* 2m 5s */

#endif
