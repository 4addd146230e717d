/* SPDX-License-Identifier: Apache-2.0 */
/* history/events_guard.c - the guard's log of the bare host (guard/record.h) in the form of events
 *
 * A hook has milliseconds and no keeper, so its decisions go to a log of their own and not through the journal. Here they
 * become guard.decision events for whoever reads: the same fields, the same forms of output. They are in no chain; the
 * number of each is its line in the two files of the log, and `run` is "guard".
 */
#include "history/events_guard.h"
#include "base/io.h"
#include "base/json.h"
#include "base/loop.h"
#include "base/num.h"

#define LOG_MAX_BYTES (16 * MIB)

/* "1794765757.182": seconds and thousandths. */
static uint64_t time_of(const struct json *o)
{
	const struct json *v = json_get(o, "time");
	_free_ char *copy = v && v->type == JSON_NUMBER ? mem_strn(v->text, v->n) : NULL;
	char *dot = copy ? strchr(copy, '.') : NULL;
	uint64_t s = 0, ms = 0;
	struct err e = ERR_INIT;

	if (dot == NULL || strlen(dot) != 4)
		return 0;
	*dot = '\0';
	if (num_parse(copy, 0, 1ULL << 33, &s, &e) < 0)
		return 0;
	for (const char *d = dot + 1; *d; d++)
		ms = ms * 10 + (uint64_t)(*d >= '0' && *d <= '9' ? *d - '0' : 0);
	return s * NS_PER_SEC + ms * NS_PER_MS;
}

static int tell(const struct guard_events *g, const struct json *o, uint32_t number)
{
	struct event ev = {
		.head = { .type = EV_GUARD_DECISION, .number = number, .time_ns = time_of(o) }
	};
	struct event_origin from = { .run = "guard" };

	if (ev.head.time_ns < g->since_ns)
		return 0;
	ev.fields[ev.n++] = EVENT_STR(VERDICT, json_text(o, "verdict", ""));
	ev.fields[ev.n++] = EVENT_STR(TOOL, json_text(o, "tool", ""));
	ev.fields[ev.n++] = EVENT_STR(AGENT, json_text(o, "agent", ""));
	ev.fields[ev.n++] = EVENT_STR(RULE, json_text(o, "rule", ""));
	ev.fields[ev.n++] = EVENT_STR(INPUT, json_text(o, "command", ""));
	return g->tell(g->arg, &ev, &from);
}

/* The lines of one file that are whole; `number` counts them. Below `from` they are only counted. */
static int read_lines(const struct guard_events *g, const char *text, uint32_t from,
		      uint32_t *number)
{
	const char *end;
	int r = 0;

	for (const char *at = text; r == 0 && (end = strchr(at, '\n')); at = end + 1) {
		_cleanup_(json_done) struct json_doc doc = { 0 };
		struct err ignored = ERR_INIT;

		if (++*number <= from ||
		    json_parse_foreign(at, (size_t)(end - at), &doc, &ignored) < 0 ||
		    doc.root->type != JSON_OBJECT)
			continue;
		r = tell(g, doc.root, *number);
	}
	return r;
}

static uint32_t count_lines(const struct buf *b)
{
	uint32_t n = 0;

	for (size_t i = 0; i < b->n; i++)
		n += b->p[i] == '\n';
	return n;
}

int guard_events(const struct guard_events *g, const char *state_dir, struct err *e)
{
	static const char *const names[] = { "guard.log.1", "guard.log" };
	uint32_t number = 0, all = 0, from = 0;
	struct buf text[2] = { BUF(LOG_MAX_BYTES), BUF(LOG_MAX_BYTES) };
	int r = 0;

	for (size_t i = 0; i < 2 && r == 0; i++) {
		_free_ char *path = mem_fmt("%s/%s", state_dir, names[i]);

		r = io_read_file(path, &text[i], e);
		r = r == -ENOENT ? 0 : r < 0 ? r : 0;
		all += count_lines(&text[i]);
	}
	if (g->tail && all > g->tail)
		from = all - (uint32_t)g->tail;
	for (size_t i = 0; i < 2 && r == 0; i++)
		r = read_lines(g, buf_cstr(&text[i]), from, &number);
	buf_done(&text[0]);
	buf_done(&text[1]);
	return r;
}
