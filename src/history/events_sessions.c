/* SPDX-License-Identifier: Apache-2.0 */
/* history/events_sessions.c - see events_sessions.h
 *
 * Whoever keeps a session's count and head elsewhere can tell later that its events are still those: `events --verify`
 * compares the chain with what this machine remembers, these lines with what it has told.
 */
#include "history/events_sessions.h"

#include "event/event.h"

static const char *const states[] = {
	[STORE_OPEN] = "open", [STORE_ENDED] = "ended", [STORE_LOST] = "lost"
};

static void put_number(struct buf *out, const char *key, uint64_t n)
{
	buf_printf(out, ",\"%s\":%llu", key, (unsigned long long)n);
}

static void put_text(struct buf *out, const char *key, const char *text)
{
	buf_printf(out, ",\"%s\":", key);
	buf_json(out, text);
}

static void put_time(struct buf *out, const char *key, uint64_t ns)
{
	buf_printf(out, ",\"%s\":", key);
	if (ns == 0) {
		buf_puts(out, "null");
		return;
	}
	buf_putc(out, '"');
	event_time(ns, out);
	buf_putc(out, '"');
}

static void put_json(const struct store_session *s, struct buf *out)
{
	buf_printf(out, "{\"session\":\"%s-%u\"", s->run, s->session);
	put_text(out, "sandbox", s->sandbox);
	buf_printf(out, ",\"named\":%s", s->is_named ? "true" : "false");
	put_text(out, "state", states[s->state]);
	put_time(out, "started", s->started_ns);
	put_time(out, "ended", s->ended_ns);
	put_number(out, "status", s->status);
	put_text(out, "reason", s->reason);
	put_text(out, "command", s->argv);
	put_number(out, "cpu_ns", s->cpu_ns);
	put_number(out, "memory_peak", s->memory_peak);
	put_number(out, "bytes_in", s->bytes_in);
	put_number(out, "bytes_out", s->bytes_out);
	put_number(out, "events", s->events);
	put_number(out, "dropped", s->dropped);
	put_text(out, "head", s->head);
	buf_puts(out, "}\n");
}

static void put_line(const struct store_session *s, struct buf *out)
{
	event_time(s->started_ns, out);
	buf_printf(out, "  %s-%u  ", s->run, s->session);
	buf_esc(out, s->sandbox, strlen(s->sandbox));
	buf_printf(out, "  %s", states[s->state]);
	if (s->state == STORE_ENDED)
		buf_printf(out, " %llu", (unsigned long long)s->status);
	buf_printf(out, "  %llu events  %.16s  ", (unsigned long long)s->events, s->head);
	buf_esc(out, s->argv, strlen(s->argv));
	buf_putc(out, '\n');
}

void session_summary(const struct store_session *s, enum sessions_as as, struct buf *out)
{
	if (as == SESSIONS_JSON)
		put_json(s, out);
	else if (as == SESSIONS_IDS)
		buf_printf(out, "%s-%u\n", s->run, s->session);
	else
		put_line(s, out);
}
