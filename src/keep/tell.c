/* SPDX-License-Identifier: Apache-2.0 */
/* keep/tell.c - what happened in the sandbox, as events for its journal
 *
 * Observations are batched and cost the sandbox nothing; what must be on record before it is done says so by its
 * return value. Text that came from inside goes into the journal as it is: readers escape it.
 */
#include "keep/keeper.h"

#define TELL(k, session, type, ...)                                                                \
	do {                                                                                       \
		const struct event_field tell_[] = { __VA_ARGS__ };                                \
		if ((k)->journal)                                                                  \
			journal_event((k)->journal, (session), EV_##type, tell_,                   \
				      ARRAY_LEN(tell_));                                           \
	} while (0)

/* A session's number in the journal: that of the folder where it has one. */
static uint32_t number(const struct session *s)
{
	return s->number ? s->number : s->id;
}

void tell_started(struct keeper *k)
{
	const struct plan *p = k->in->plan;

	TELL(k, EVENT_NO_SESSION, SANDBOX_STARTED, EVENT_STR(NAME, p->name),
	     EVENT_STR(ENGINE, p->engine), EVENT_STR(WORKSPACE, p->workspace),
	     EVENT_STR(USER, p->user), EVENT_STR(VERSION, VITRINE_VERSION));
}

void tell_stopped(struct keeper *k, int status)
{
	TELL(k, EVENT_NO_SESSION, SANDBOX_STOPPED, EVENT_STR(NAME, k->in->plan->name),
	     EVENT_STR(REASON, end_reason_name(k->why)), EVENT_NUM(STATUS, status),
	     EVENT_STR(MESSAGE, k->err.msg),
	     EVENT_NUM(DURATION, k->started_ns ? clock_now() - k->started_ns : 0),
	     EVENT_NUM(CPU, k->usage.cpu_ns), EVENT_NUM(MEMORY_PEAK, k->usage.memory_peak));
}

void tell_session_started(struct keeper *k, struct session *s)
{
	_cleanup_(buf_done) struct buf b = BUF(64 * KIB);
	const struct plan *p = k->in->plan;
	struct event_field argv = {
		.key = EK_ARGV, .kind = EVENT_LIST, .p = s->words, .n = s->n_words
	};

	if (s->id == 0)
		tell_started(k);
	if (s->id == 0)
		argv = event_list(EK_ARGV, (const char *const *)p->argv, &b);
	if (argv.n > 0)
		TELL(k, number(s), SESSION_STARTED, argv, EVENT_NUM(PID, s->pid),
		     EVENT_IS(IS_TTY, s->pty != 0), EVENT_STR(USER, p->user));
	free(s->words);
	s->words = NULL;
	s->n_words = 0;
}

void tell_session_ended(struct keeper *k, const struct session *s, int status, enum end_reason why)
{
	TELL(k, number(s), SESSION_ENDED, EVENT_NUM(STATUS, status),
	     EVENT_STR(REASON, end_reason_name(why)),
	     EVENT_NUM(DURATION, clock_now() - s->began_ns),
	     EVENT_NUM(CPU, s->cpu_ns ? s->cpu_ns : s->live_cpu_ns),
	     EVENT_NUM(MEMORY_PEAK, s->max_rss), EVENT_NUM(BYTES_OUT, session_output(s)));
}

void tell_viewer(struct keeper *k, const struct session *s, bool has_come, const char *why)
{
	size_t n = s->feed ? feed_n_viewers(s->feed) : 0;

	if (has_come)
		TELL(k, number(s), SESSION_ATTACHED, EVENT_NUM(COUNT, n));
	else
		TELL(k, number(s), SESSION_DETACHED, EVENT_NUM(COUNT, n ? n - 1 : 0),
		     EVENT_STR(REASON, why));
}

void tell_limit(struct keeper *k, enum limit_id id, uint64_t value)
{
	TELL(k, EVENT_NO_SESSION, LIMIT_HIT, EVENT_STR(LIMIT, limit_name(id)),
	     EVENT_NUM(MAX, k->in->plan->limits[id].max), EVENT_NUM(VALUE, value));
}

void tell_sample(struct keeper *k)
{
	TELL(k, EVENT_NO_SESSION, RESOURCE_SAMPLE, EVENT_NUM(CPU, k->usage.cpu_ns),
	     EVENT_NUM(MEMORY, k->usage.memory), EVENT_NUM(MEMORY_PEAK, k->usage.memory_peak),
	     EVENT_NUM(PROCESSES, k->usage.processes));
}

/* Taking it away is the safe thing to do, so it is done even where it cannot be written down first. */
void tell_quarantined(void *keeper, const char *rel, const char *rule)
{
	struct keeper *k = keeper;
	const struct event_field f[] = { EVENT_STR(PATH, rel), EVENT_STR(RULE, rule) };
	struct err ignored = ERR_INIT;

	if (k->journal)
		(void)journal_verdict(k->journal, EVENT_NO_SESSION, EV_FILE_QUARANTINED, f,
				      ARRAY_LEN(f), &ignored);
}

void tell_masked(struct keeper *k, const char *path)
{
	TELL(k, EVENT_NO_SESSION, FILE_MASKED, EVENT_STR(PATH, path),
	     EVENT_STR(REASON, "the host replaced it"));
}

int tell_copied(struct keeper *k, const char *inside, const char *outside, bool is_out)
{
	const struct event_field f[] = { EVENT_STR(PATH, is_out ? inside : outside),
					 EVENT_STR(TARGET, is_out ? outside : inside),
					 EVENT_IS(IS_OUT, is_out) };
	struct err e = ERR_INIT;

	if (k->journal == NULL)
		return 0;
	return journal_verdict(k->journal, EVENT_NO_SESSION, EV_FILE_COPIED, f, ARRAY_LEN(f), &e);
}

/* The gate has decided; it waits for nobody, so a verdict that cannot be written down is only counted by the journal. */
static uint32_t session_number(const struct origin *o)
{
	return o->session ? number(o->session) : EVENT_NO_SESSION;
}

static void tell_net_verdict(struct keeper *k, const struct gate_msg *m, const char *address,
			     const struct origin *o)
{
	struct err ignored = ERR_INIT;
	struct event_field f[12] = {
		EVENT_STR(VERDICT, m->verdict == GATE_ALLOWED ? "allow" : "deny"),
		EVENT_STR(HOST, m->host[0] ? m->host : address),
		EVENT_NUM(PORT, m->port),
		EVENT_STR(RULE, m->rule),
		EVENT_STR(PROTOCOL, gate_via_name(m->via)),
		EVENT_STR(REASON, gate_event_name(m->event)),
		EVENT_STR(MESSAGE, m->text),
		EVENT_STR(ADDRESS, address),
	};
	size_t n = 8;

	if (m->method[0]) {
		f[n++] = EVENT_STR(METHOD, m->method);
		f[n++] = EVENT_STR(REQUEST, m->path);
	}
	if (o->pid) {
		f[n++] = EVENT_NUM(PID, o->pid);
		f[n++] = EVENT_STR(EXE, o->exe);
	}
	if (k->journal)
		(void)journal_verdict(k->journal, session_number(o), EV_NET_VERDICT, f, n,
				      &ignored);
}

static void tell_net_connect(struct keeper *k, const struct gate_msg *m, const char *address,
			     const struct origin *o)
{
	struct event_field f[11] = {
		EVENT_STR(HOST, m->host[0] ? m->host : address),
		EVENT_NUM(PORT, m->port),
		EVENT_STR(ADDRESS, address),
		EVENT_STR(PROTOCOL, gate_via_name(m->via)),
		EVENT_NUM(BYTES_IN, m->down),
		EVENT_NUM(BYTES_OUT, m->up),
		EVENT_NUM(DURATION, m->ns),
		EVENT_STR(RULE, m->rule),
		EVENT_STR(REASON, m->text),
	};
	size_t n = 9;

	if (o->pid) {
		f[n++] = EVENT_NUM(PID, o->pid);
		f[n++] = EVENT_STR(EXE, o->exe);
	}
	if (k->journal)
		journal_event(k->journal, session_number(o), EV_NET_CONNECT, f, n);
}

static void tell_net_request(struct keeper *k, const struct gate_msg *m, const char *address,
			     const struct origin *o)
{
	struct event_field f[12] = {
		EVENT_STR(HOST, m->host[0] ? m->host : address),
		EVENT_STR(METHOD, m->method),
		EVENT_NUM(PORT, m->port),
		EVENT_STR(REQUEST, m->path),
		EVENT_NUM(CODE, m->code),
		EVENT_NUM(BYTES_IN, m->down),
		EVENT_NUM(BYTES_OUT, m->up),
		EVENT_NUM(DURATION, m->ns),
		EVENT_STR(RULE, m->rule),
	};
	size_t n = 9;

	if (m->text[0])
		f[n++] = EVENT_STR(MESSAGE, m->text);
	if (o->pid) {
		f[n++] = EVENT_NUM(PID, o->pid);
		f[n++] = EVENT_STR(EXE, o->exe);
	}
	if (k->journal)
		journal_event(k->journal, session_number(o), EV_NET_REQUEST, f, n);
}

void tell_net(struct keeper *k, const struct gate_msg *m)
{
	struct origin o = origin_of(k, m);
	char address[ADDR_TEXT] = "";

	if (m->has_addr)
		addr_text(&m->addr, address);
	if (m->event == EVENT_CLOSE || m->verdict == GATE_FAILED)
		tell_net_connect(k, m, address, &o);
	else if (m->event == EVENT_REQUEST)
		tell_net_request(k, m, address, &o);
	else
		tell_net_verdict(k, m, address, &o);
}

void tell_note(struct keeper *k, const char *reason, const char *text)
{
	TELL(k, EVENT_NO_SESSION, NOTE, EVENT_STR(MESSAGE, text), EVENT_STR(REASON, reason));
}

void tell_gate(struct keeper *k, const char *reason)
{
	TELL(k, EVENT_NO_SESSION, NET_GATE, EVENT_STR(REASON, reason));
}
