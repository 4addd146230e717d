/* SPDX-License-Identifier: Apache-2.0 */
/* keep/tell.c - what happened in the sandbox, as events for its journal
 *
 * Observations are batched and cost the sandbox nothing; what must be on record before it is done says so by its
 * return value. Text that came from inside goes into the journal as it is: readers escape it.
 */
#include <signal.h>

#include "base/num.h"
#include "core/hint.h"
#include "keep/keeper.h"

#define WIDER_MAX 64

#define TELL(k, session, type, ...)                                                                \
	do {                                                                                       \
		const struct event_field tell_[] = { __VA_ARGS__ };                                \
		if ((k)->journal)                                                                  \
			journal_event((k)->journal, (session), EV_##type, tell_,                   \
				      ARRAY_LEN(tell_));                                           \
	} while (0)

struct wider {
	struct keeper *k;
	size_t n;
};

/* Nobody reads a thousand; the policy itself is there to be looked at. */
static void tell_wider(void *arg, const char *key, const char *value, enum layer layer)
{
	struct wider *w = arg;

	if (w->n++ < WIDER_MAX)
		TELL(w->k, EVENT_NO_SESSION, POLICY_WIDENED, EVENT_STR(SETTING, key),
		     EVENT_STR(LAYER, layer_name(layer)), EVENT_STR(TARGET, value));
}

static void tell_policy(struct keeper *k)
{
	struct wider w = { .k = k };

	policy_each_widening(k->in->policy, tell_wider, &w);
	if (w.n > WIDER_MAX)
		TELL(k, EVENT_NO_SESSION, NOTE,
		     EVENT_STR(MESSAGE, "policy: more values are wider than are listed here"),
		     EVENT_STR(REASON, "policy.widened"));
}

static void tell_saved(struct keeper *k)
{
	const struct keeper_saved *s = &k->in->saved;
	char id[24];

	if (s->checkpoint == 0)
		return;
	(void)snprintf(id, sizeof(id), "%llu", (unsigned long long)s->checkpoint);
	TELL(k, EVENT_NO_SESSION, CHECKPOINT_MADE, EVENT_STR(CHECKPOINT, id),
	     EVENT_NUM(BYTES, s->bytes), EVENT_NUM(COUNT, s->files),
	     EVENT_STR(MESSAGE, "before the start"));
}

void tell_started(struct keeper *k)
{
	const struct plan *p = k->in->plan;

	TELL(k, EVENT_NO_SESSION, SANDBOX_STARTED, EVENT_STR(NAME, p->name),
	     EVENT_STR(ENGINE, p->engine), EVENT_STR(WORKSPACE, p->workspace),
	     EVENT_STR(USER, p->user), EVENT_STR(VERSION, VITRINE_VERSION));
	tell_saved(k);
	tell_policy(k);
}

static uint64_t most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* A sandbox that ended because its last command did ended as that did. */
void tell_stopped(struct keeper *k, int status)
{
	bool is_own = k->why != END_EXIT;
	uint64_t in, out;

	gate_bytes(k, &in, &out);
	TELL(k, EVENT_NO_SESSION, SANDBOX_STOPPED, EVENT_STR(NAME, k->in->plan->name),
	     EVENT_STR(REASON, end_reason_name(is_own ? k->why : k->last_why)),
	     EVENT_NUM(STATUS, is_own ? status : k->last_status), EVENT_STR(MESSAGE, k->err.msg),
	     EVENT_NUM(DURATION, k->started_ns ? clock_now() - k->started_ns : 0),
	     EVENT_NUM(CPU, most(k->usage.cpu_ns, k->ended_cpu_ns)),
	     EVENT_NUM(MEMORY_PEAK, most(k->usage.memory_peak, k->ended_rss)),
	     EVENT_NUM(BYTES_IN, in), EVENT_NUM(BYTES_OUT, out));
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
		TELL(k, session_number(s), SESSION_STARTED, argv, EVENT_NUM(PID, s->pid),
		     EVENT_IS(IS_TTY, s->pty != 0), EVENT_STR(USER, p->user));
	free(s->words);
	s->words = NULL;
	s->n_words = 0;
}

static bool is_on_host(const char *path)
{
	return access(path, F_OK) == 0;
}

/* The walls of the native engine are the kernel's: it tells those inside and nobody else. What can be known from here
 * is that the filter killed it, or what its last words look like. */
static void tell_wall(struct keeper *k, const struct session *s, int status, enum end_reason why)
{
	_cleanup_(buf_done) struct buf b = BUF(8 * KIB);
	const char *tail = NULL;
	size_t n = session_tail(s, &tail);

	if (why == END_SIGNAL && status == 128 + SIGSYS)
		TELL(k, session_number(s), WALL_REFUSED, EVENT_STR(WALL, "system calls"),
		     EVENT_STR(MESSAGE, "the filter ended it"));
	else if (why == END_EXIT && n > 0 && hint_find(k->in->plan, tail, n, is_on_host, &b))
		TELL(k, session_number(s), WALL_HINTED, EVENT_STR(MESSAGE, buf_cstr(&b)));
}

void tell_session_ended(struct keeper *k, const struct session *s, int status, enum end_reason why)
{
	k->last_status = status;
	k->last_why = why;
	k->ended_cpu_ns += s->cpu_ns ? s->cpu_ns : s->live_cpu_ns;
	k->ended_rss = most(k->ended_rss, s->max_rss);
	TELL(k, session_number(s), SESSION_ENDED, EVENT_NUM(STATUS, status),
	     EVENT_STR(REASON, end_reason_name(why)),
	     EVENT_NUM(DURATION, clock_now() - s->began_ns),
	     EVENT_NUM(CPU, s->cpu_ns ? s->cpu_ns : s->live_cpu_ns),
	     EVENT_NUM(MEMORY_PEAK, s->max_rss), EVENT_NUM(WRITTEN, s->written),
	     EVENT_NUM(BYTES_OUT, session_output(s)));
	if (status != 0)
		tell_wall(k, s, status, why);
}

void tell_viewer(struct keeper *k, const struct session *s, bool has_come, const char *why)
{
	size_t n = s->feed ? feed_n_viewers(s->feed) : 0;

	if (has_come)
		TELL(k, session_number(s), SESSION_ATTACHED, EVENT_NUM(COUNT, n));
	else
		TELL(k, session_number(s), SESSION_DETACHED, EVENT_NUM(COUNT, n ? n - 1 : 0),
		     EVENT_STR(REASON, why));
}

void tell_limit(struct keeper *k, enum limit_id id, uint64_t value)
{
	TELL(k, EVENT_NO_SESSION, LIMIT_HIT, EVENT_STR(LIMIT, limit_name(id)),
	     EVENT_NUM(MAX, k->in->plan->limits[id].max), EVENT_NUM(VALUE, value));
}

void tell_sample(struct keeper *k)
{
	uint64_t in, out;

	gate_bytes(k, &in, &out);
	TELL(k, EVENT_NO_SESSION, RESOURCE_SAMPLE, EVENT_NUM(CPU, k->usage.cpu_ns),
	     EVENT_NUM(MEMORY, k->usage.memory), EVENT_NUM(MEMORY_PEAK, k->usage.memory_peak),
	     EVENT_NUM(PROCESSES, k->usage.processes), EVENT_NUM(BYTES_IN, in),
	     EVENT_NUM(BYTES_OUT, out));
}

void tell_process(struct keeper *k, const char *pid, const struct process *p, const char *argv,
		  size_t n)
{
	uint32_t session = EVENT_NO_SESSION;
	struct err ignored = ERR_INIT;
	uint64_t number = 0;

	(void)num_parse(pid, 1, INT32_MAX, &number, &ignored); /* the kernel's own */
	for (size_t i = 0; i < INIT_SESSIONS; i++)
		if (k->sessions[i].is_used && k->sessions[i].pid > 0 &&
		    (uint64_t)k->sessions[i].pid == p->sid)
			session = session_number(&k->sessions[i]);
	TELL(k, session, PROCESS_EXEC, EVENT_NUM(PID, number), EVENT_NUM(PPID, p->ppid),
	     EVENT_STR(TITLE, p->name),
	     ((struct event_field){ .key = EK_ARGV, .kind = EVENT_LIST, .p = argv, .n = n }));
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

void tell_set_id(struct keeper *k, const char *path, const char *why)
{
	TELL(k, EVENT_NO_SESSION, WALL_REFUSED, EVENT_STR(WALL, "set-id"), EVENT_STR(PATH, path),
	     EVENT_STR(MESSAGE, why));
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
static uint32_t origin_number(const struct origin *o)
{
	return o->session ? session_number(o->session) : EVENT_NO_SESSION;
}

static int tell_net_verdict(struct keeper *k, const struct gate_msg *m, const char *address,
			    const struct origin *o)
{
	struct err e = ERR_INIT;
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
	return k->journal ? journal_verdict(k->journal, origin_number(o), EV_NET_VERDICT, f, n, &e)
			  : 0;
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
		journal_event(k->journal, origin_number(o), EV_NET_CONNECT, f, n);
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
		journal_event(k->journal, origin_number(o), EV_NET_REQUEST, f, n);
}

int tell_net(struct keeper *k, const struct gate_msg *m)
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
		return tell_net_verdict(k, m, address, &o);
	return 0;
}

void tell_note(struct keeper *k, const char *reason, const char *text)
{
	TELL(k, EVENT_NO_SESSION, NOTE, EVENT_STR(MESSAGE, text), EVENT_STR(REASON, reason));
}

void tell_gate(struct keeper *k, const char *reason)
{
	TELL(k, EVENT_NO_SESSION, NET_GATE, EVENT_STR(REASON, reason));
}
