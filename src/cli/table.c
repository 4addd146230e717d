/* SPDX-License-Identifier: Apache-2.0 */
/* cli/table.c - see table.h */
#include <time.h>

#include "base/utf8.h"
#include "cli/table.h"

bool table_wants(const struct table_how *how, const char *field)
{
	if (how->is_quiet)
		return false;
	return how->as_json || how->format == NULL || strstr(how->format, field) != NULL;
}

struct cell *table_row(struct table *t)
{
	struct cell *row;

	t->cells = mem_grow(t->cells, (t->n_rows + 1) * t->n_columns, sizeof(*t->cells));
	row = t->cells + t->n_rows++ * t->n_columns;
	for (size_t i = 0; i < t->n_columns; i++)
		row[i] = (struct cell){ 0 };
	return row;
}

void table_done(struct table *t)
{
	for (size_t i = 0; i < t->n_rows * t->n_columns; i++)
		free(t->cells[i].text);
	free(t->cells);
	*t = (struct table){ 0 };
}

/* ---- options ---- */

bool table_opt(struct table_how *how, const struct opts *o, int id)
{
	switch (id) {
	case TABLE_OPT_JSON:
		how->as_json = true;
		return true;
	case TABLE_OPT_QUIET:
		how->is_quiet = true;
		return true;
	case TABLE_OPT_FORMAT:
		how->format = o->value;
		return true;
	default:
		return false;
	}
}

bool table_is_asked(const struct table_how *how)
{
	return how->is_quiet || how->format;
}

/* ---- values ---- */

void text_bytes(uint64_t n, struct buf *out)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	uint64_t tenths = n * 10;
	size_t u = 0;

	if (n >= UINT64_MAX / 10) {
		buf_printf(out, "%llu B", (unsigned long long)n);
		return;
	}
	while (tenths >= 10240 && u + 1 < ARRAY_LEN(units)) {
		tenths /= 1024;
		u++;
	}
	if (u == 0)
		buf_printf(out, "%llu B", (unsigned long long)n);
	else
		buf_printf(out, "%llu.%llu %s", (unsigned long long)(tenths / 10),
			   (unsigned long long)(tenths % 10), units[u]);
}

void text_duration(uint64_t ns, struct buf *out)
{
	uint64_t s = ns / NS_PER_SEC;

	if (s < 60)
		buf_printf(out, "%llu.%02llus", (unsigned long long)s,
			   (unsigned long long)(ns % NS_PER_SEC / 10000000));
	else if (s < 3600)
		buf_printf(out, "%llum %llus", (unsigned long long)(s / 60),
			   (unsigned long long)(s % 60));
	else if (s < 86400)
		buf_printf(out, "%lluh %llum", (unsigned long long)(s / 3600),
			   (unsigned long long)(s % 3600 / 60));
	else
		buf_printf(out, "%llud %lluh", (unsigned long long)(s / 86400),
			   (unsigned long long)(s % 86400 / 3600));
}

static void put_ago(uint64_t then, struct buf *out)
{
	uint64_t now = (uint64_t)time(NULL), s = now > then ? now - then : 0;

	if (s < 60)
		buf_printf(out, "%llus ago", (unsigned long long)s);
	else if (s < 3600)
		buf_printf(out, "%llum ago", (unsigned long long)(s / 60));
	else if (s < 86400)
		buf_printf(out, "%lluh ago", (unsigned long long)(s / 3600));
	else
		buf_printf(out, "%llud ago", (unsigned long long)(s / 86400));
}

static void put_cell(const struct column *c, const struct cell *v, struct buf *out)
{
	if (v->is_null || (c->kind == COLUMN_TEXT && v->text == NULL)) {
		buf_putc(out, '-');
		return;
	}
	switch (c->kind) {
	case COLUMN_TEXT:
		buf_esc(out, v->text, strlen(v->text));
		break;
	case COLUMN_NUMBER:
		buf_printf(out, "%llu", (unsigned long long)v->num);
		break;
	case COLUMN_BYTES:
		text_bytes(v->num, out);
		break;
	case COLUMN_NS:
		text_duration(v->num, out);
		break;
	case COLUMN_AGO:
		put_ago(v->num, out);
		break;
	case COLUMN_BOOL:
		buf_puts(out, v->num ? "yes" : "no");
		break;
	}
}

static void put_json(const struct column *c, const struct cell *v, struct buf *out)
{
	if (v->is_null || (c->kind == COLUMN_TEXT && v->text == NULL))
		buf_puts(out, "null");
	else if (c->kind == COLUMN_TEXT)
		buf_json(out, v->text);
	else if (c->kind == COLUMN_BOOL)
		buf_puts(out, v->num ? "true" : "false");
	else
		buf_printf(out, "%llu", (unsigned long long)v->num);
}

/* ---- forms ---- */

static const struct cell *row_of(const struct table *t, size_t row)
{
	return t->cells + row * t->n_columns;
}

static int put_field(const struct table *t, size_t row, const char *name, size_t n, struct buf *out,
		     struct err *e)
{
	_cleanup_(buf_done) struct buf all = BUF(KIB);

	for (size_t i = 0; i < t->n_columns; i++)
		if (strlen(t->columns[i].field) == n && memcmp(t->columns[i].field, name, n) == 0) {
			put_cell(&t->columns[i], &row_of(t, row)[i], out);
			return 0;
		}
	for (size_t i = 0; i < t->n_columns; i++)
		buf_printf(&all, "%s%s", i ? ", " : "", t->columns[i].field);
	return err_set(e, ERR_USAGE, EINVAL,
		       "--format: there is no field '%.*s' here; there are %s",
		       (int)(n < 40 ? n : 40), name, buf_cstr(&all));
}

int table_format(const struct table *t, size_t row, const char *format, struct buf *out,
		 struct err *e)
{
	for (const char *p = format; *p; p++) {
		const char *end = str_starts(p, "{{") ? strstr(p, "}}") : NULL;
		int r;

		if (p[0] == '\\' && (p[1] == 't' || p[1] == 'n')) {
			buf_putc(out, *++p == 't' ? '\t' : '\n');
			continue;
		}
		if (!str_starts(p, "{{")) {
			buf_putc(out, *p);
			continue;
		}
		for (p += 2; *p == ' '; p++)
			;
		if (end == NULL || *p != '.')
			return err_set(e, ERR_USAGE, EINVAL,
				       "--format: a field is written {{.Name}}");
		r = put_field(t, row, p + 1, strcspn(p + 1, " }"), out, e);
		if (r < 0)
			return r;
		p = end + 1;
	}
	buf_putc(out, '\n');
	return 0;
}

static void print_json(const struct table *t, struct buf *out)
{
	buf_putc(out, '[');
	for (size_t r = 0; r < t->n_rows; r++) {
		buf_puts(out, r ? ",\n {" : "{");
		for (size_t i = 0; i < t->n_columns; i++) {
			buf_printf(out, "%s\"%s\":", i ? "," : "", t->columns[i].key);
			put_json(&t->columns[i], &row_of(t, r)[i], out);
		}
		buf_putc(out, '}');
	}
	buf_puts(out, "]\n");
}

/* How many places text takes; escaped text has no wide surprises beyond UTF-8 itself. */
static size_t width(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

/* One field for people; row 0 is the head. */
static void put_people(const struct table *t, size_t row, size_t i, struct buf *out)
{
	if (row == 0)
		buf_puts(out, t->columns[i].title);
	else
		put_cell(&t->columns[i], &row_of(t, row - 1)[i], out);
}

static size_t width_of(const struct table *t, size_t i)
{
	size_t most = 0;

	for (size_t row = 0; row <= t->n_rows; row++) {
		_cleanup_(buf_done) struct buf b = BUF(64 * KIB);
		size_t w;

		put_people(t, row, i, &b);
		w = width(buf_cstr(&b));
		most = w > most ? w : most;
	}
	return most;
}

static void print_people(const struct table *t, struct buf *out)
{
	_free_ size_t *widths = mem_new(t->n_columns, sizeof(*widths));

	for (size_t i = 0; i < t->n_columns; i++)
		widths[i] = t->columns[i].title ? width_of(t, i) : 0;
	for (size_t row = 0; row <= t->n_rows; row++) {
		for (size_t i = 0; i < t->n_columns; i++) {
			_cleanup_(buf_done) struct buf b = BUF(64 * KIB);

			if (t->columns[i].title == NULL)
				continue;
			put_people(t, row, i, &b);
			buf_puts(out, buf_cstr(&b));
			for (size_t w = width(buf_cstr(&b));
			     i + 1 < t->n_columns && w < widths[i] + 2; w++)
				buf_putc(out, ' ');
		}
		buf_putc(out, '\n');
	}
}

/* On a row of nothing, so that a wrong field is told today and not on the day when there is something to list. */
static int check_format(const struct table *t, const char *format, struct err *e)
{
	_cleanup_(table_done) struct table one = { .columns = t->columns,
						   .n_columns = t->n_columns };
	_cleanup_(buf_done) struct buf ignored = BUF(64 * KIB);

	(void)table_row(&one);
	return table_format(&one, 0, format, &ignored, e);
}

int table_print(const struct table *t, const struct table_how *how, struct buf *out, struct err *e)
{
	int r = 0;

	if (how->format) {
		r = t->n_rows == 0 ? check_format(t, how->format, e) : 0;
		for (size_t i = 0; r == 0 && i < t->n_rows; i++)
			r = table_format(t, i, how->format, out, e);
	} else if (how->is_quiet) {
		for (size_t i = 0; i < t->n_rows; i++) {
			put_cell(&t->columns[0], row_of(t, i), out);
			buf_putc(out, '\n');
		}
	} else if (how->as_json) {
		print_json(t, out);
	} else {
		print_people(t, out);
	}
	return r;
}

int table_show(const struct table *t, const struct table_how *how, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF(16 * MIB);
	int r = table_print(t, how, &out, e);

	return r < 0 ? r : cli_print(&out, e);
}
