/* SPDX-License-Identifier: Apache-2.0 */
/* event/render.c - an event as JSON for machines and as a line for people
 *
 * Both walk the fields as they stand in the frame and take their names from the table, so nothing is shown that is
 * not recorded and nothing recorded is hidden. Almost every text comes from inside: it reaches a terminal only
 * through buf_esc(), and a JSON string only through buf_json_n().
 */
#include "event/event.h"

static void put_date(struct buf *out, uint64_t days)
{
	/* Days since 1970 to a date: years that begin in March, so that the leap day comes last. */
	uint64_t z = days + 719468, era = z / 146097, doe = z % 146097;
	uint64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	uint64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	uint64_t mp = (5 * doy + 2) / 153, day = doy - (153 * mp + 2) / 5 + 1;
	uint64_t month = mp < 10 ? mp + 3 : mp - 9;
	uint64_t year = yoe + era * 400 + (month <= 2 ? 1 : 0);

	buf_printf(out, "%04u-%02u-%02u", (unsigned)year, (unsigned)month, (unsigned)day);
}

static void put_clock(struct buf *out, uint64_t ns)
{
	unsigned s = (unsigned)(ns / NS_PER_SEC % 86400);

	put_date(out, ns / NS_PER_SEC / 86400);
	buf_printf(out, "T%02u:%02u:%02u", s / 3600, s / 60 % 60, s % 60);
}

void event_time(uint64_t ns, struct buf *out)
{
	put_clock(out, ns);
	buf_printf(out, ".%09uZ", (unsigned)(ns % NS_PER_SEC));
}

static void put_type(const struct event *ev, struct buf *out)
{
	const struct event_type_def *d = event_type_def(ev->head.type);

	if (d)
		buf_puts(out, d->name);
	else
		buf_printf(out, "type_%u", ev->head.type);
}

static void put_key(const struct event_field *f, struct buf *out)
{
	const struct event_key_def *d = event_key_def(f->key);

	if (d)
		buf_puts(out, d->name);
	else
		buf_printf(out, "field_%u", f->key);
}

/* ---- JSON ---- */

static void json_list(const struct event_field *f, struct buf *out)
{
	buf_putc(out, '[');
	for (size_t at = 0; at < f->n;) {
		size_t n = strnlen(f->p + at, f->n - at);

		if (at > 0)
			buf_putc(out, ',');
		buf_json_n(out, f->p + at, n);
		at += n + 1;
	}
	buf_putc(out, ']');
}

static void json_value(const struct event_field *f, struct buf *out)
{
	switch ((enum event_kind)f->kind) {
	case EVENT_TEXT:
		buf_json_n(out, f->p, f->n);
		break;
	case EVENT_U64:
		buf_printf(out, "%llu", (unsigned long long)f->num);
		break;
	case EVENT_BOOL:
		buf_puts(out, f->num ? "true" : "false");
		break;
	case EVENT_LIST:
		json_list(f, out);
		break;
	case EVENT_KIND_COUNT_:
		break;
	}
}

static void json_session(const struct event *ev, const char *run, struct buf *out)
{
	if (ev->head.session == EVENT_NO_SESSION)
		buf_puts(out, ",\"session\":null");
	else
		buf_printf(out, ",\"session\":\"%s-%u\"", run, ev->head.session);
}

void event_json(const struct event *ev, const struct event_origin *from, struct buf *out)
{
	buf_puts(out, "{\"time\":\"");
	event_time(ev->head.time_ns, out);
	buf_puts(out, "\",\"type\":\"");
	put_type(ev, out);
	buf_puts(out, "\",\"sandbox\":");
	buf_json(out, from->sandbox ? from->sandbox : "");
	json_session(ev, from->run ? from->run : "", out);
	buf_printf(out, ",\"run\":\"%s\",\"number\":%u,\"data\":{", from->run ? from->run : "",
		   ev->head.number);
	for (size_t i = 0; i < ev->n; i++) {
		buf_puts(out, i ? ",\"" : "\"");
		put_key(&ev->fields[i], out);
		buf_puts(out, "\":");
		json_value(&ev->fields[i], out);
	}
	buf_puts(out, "}}");
}

/* ---- people ---- */

/* Quoted where blanks or quotes would blur where it ends. */
static void line_text(const char *p, size_t n, struct buf *out)
{
	_cleanup_(buf_done) struct buf b = BUF(4 * EVENT_MAX_BYTES);
	bool is_plain = n > 0;

	buf_esc(&b, p, n);
	for (size_t i = 0; i < b.n; i++)
		is_plain = is_plain && b.p[i] != ' ' && b.p[i] != '"' && b.p[i] != '=';
	if (is_plain) {
		buf_add(out, b.p, b.n);
		return;
	}
	buf_putc(out, '"');
	for (size_t i = 0; i < b.n; i++) {
		if (b.p[i] == '"')
			buf_putc(out, '\\');
		buf_putc(out, b.p[i]);
	}
	buf_putc(out, '"');
}

static void line_list(const struct event_field *f, struct buf *out)
{
	buf_putc(out, '[');
	for (size_t at = 0; at < f->n;) {
		size_t n = strnlen(f->p + at, f->n - at);

		if (at > 0)
			buf_putc(out, ' ');
		line_text(f->p + at, n, out);
		at += n + 1;
	}
	buf_putc(out, ']');
}

static void line_field(const struct event_field *f, struct buf *out)
{
	buf_putc(out, ' ');
	put_key(f, out);
	buf_putc(out, '=');
	if (f->kind == EVENT_TEXT)
		line_text(f->p, f->n, out);
	else if (f->kind == EVENT_LIST)
		line_list(f, out);
	else
		json_value(f, out);
}

void event_line(const struct event *ev, const struct event_origin *from, struct buf *out)
{
	put_clock(out, ev->head.time_ns);
	buf_printf(out, ".%03uZ ", (unsigned)(ev->head.time_ns % NS_PER_SEC / NS_PER_MS));
	if (from->sandbox)
		buf_esc(out, from->sandbox, strlen(from->sandbox));
	else
		buf_putc(out, '-');
	if (ev->head.session != EVENT_NO_SESSION)
		buf_printf(out, "/%u", ev->head.session);
	buf_putc(out, ' ');
	put_type(ev, out);
	for (size_t i = 0; i < ev->n; i++)
		line_field(&ev->fields[i], out);
}
