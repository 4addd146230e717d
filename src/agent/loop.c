/* SPDX-License-Identifier: Apache-2.0 */
/* agent/loop.c - see loop.h
 *
 * Success is asked before every limit: an iteration that reached the goal and used up the budget has reached the goal.
 */
#include "agent/loop.h"

#include "base/sha256.h"

static const char *const stop_names[LOOP_STOP_COUNT_] = {
	"none",   "marker", "check",   "max",  "time",    "cost",
	"tokens", "still",  "failing", "busy", "stopped", "signal"
};
static const char *const stop_sentences[LOOP_STOP_COUNT_] = {
	[LOOP_GOES_ON] = "it goes on",
	[LOOP_MARKER] = "the agent said that it is done",
	[LOOP_CHECK] = "the check succeeded",
	[LOOP_MAX] = "that was the last iteration it may do",
	[LOOP_TIME] = "its time is used up",
	[LOOP_COST] = "its money is used up",
	[LOOP_TOKENS] = "its tokens are used up",
	[LOOP_STILL] = "nothing changed any more",
	[LOOP_FAILING] = "it kept failing in the same way",
	[LOOP_BUSY] = "the service stayed busy",
	[LOOP_ASKED] = "it was asked to stop",
	[LOOP_SIGNAL] = "it was interrupted",
};

const char *loop_stop_name(enum loop_stop s)
{
	bug_on(s >= LOOP_STOP_COUNT_);
	return stop_names[s];
}

const char *loop_stop_sentence(enum loop_stop s)
{
	bug_on(s >= LOOP_STOP_COUNT_);
	return stop_sentences[s];
}

bool loop_stop_is_interruption(enum loop_stop s)
{
	return s == LOOP_GOES_ON || s == LOOP_BUSY || s == LOOP_SIGNAL;
}

const char *loop_outcome_name(enum loop_outcome o)
{
	bug_on(o >= LOOP_OUTCOME_COUNT_);
	return o == LOOP_OK ? "ok" : o == LOOP_FAILED ? "failed" : "limited";
}

/* Sums that an agent's own report enters must not wrap. */
static void add(uint64_t *to, uint64_t n)
{
	if (!add_ok(*to, n, to))
		*to = UINT64_MAX;
}

void loop_fold(struct loop_sum *s, const struct loop_result *r)
{
	s->tries++;
	add(&s->time, r->duration);
	add(&s->cost, r->cost);
	add(&s->tokens_in, r->tokens_in);
	add(&s->tokens_out, r->tokens_out);
	if (r->outcome == LOOP_LIMITED) {
		s->busy++;
		return;
	}
	s->busy = 0;
	s->iterations++;
	s->failed += r->outcome == LOOP_FAILED;
	s->still = r->n_changed ? 0 : s->still + 1;
	if (r->outcome != LOOP_FAILED)
		s->same = 0;
	else
		s->same = s->same > 0 && r->failure == s->failure ? s->same + 1 : 1;
	s->failure = r->failure;
	s->is_marked = r->is_marked;
	s->is_checked = r->is_checked;
}

static bool is_over(uint64_t limit, uint64_t used)
{
	return limit && used >= limit;
}

static uint64_t back_off(const struct loop_conf *c, uint64_t times)
{
	uint64_t wait = c->backoff;

	for (uint64_t i = 1; i < times && wait < LOOP_WAIT_MAX; i++)
		wait *= 2;
	return wait < LOOP_WAIT_MAX ? wait : LOOP_WAIT_MAX;
}

enum loop_stop loop_decide(const struct loop_conf *c, const struct loop_sum *s, uint64_t *ret_wait)
{
	uint64_t tokens = s->tokens_in;

	*ret_wait = 0;
	add(&tokens, s->tokens_out);
	if (c->has_check && s->is_checked)
		return LOOP_CHECK;
	/* With a check it is the check that decides; the agent's word alone is not enough. */
	if (c->has_marker && !c->has_check && s->is_marked)
		return LOOP_MARKER;
	if (is_over(c->max, s->iterations))
		return LOOP_MAX;
	if (is_over(c->time, s->time))
		return LOOP_TIME;
	if (is_over(c->cost, s->cost))
		return LOOP_COST;
	if (is_over(c->tokens, tokens))
		return LOOP_TOKENS;
	if (is_over(c->failures, s->same))
		return LOOP_FAILING;
	if (is_over(c->still, s->still))
		return LOOP_STILL;
	if (s->busy >= LOOP_BUSY_MAX)
		return LOOP_BUSY;
	if (s->busy)
		*ret_wait = back_off(c, s->busy);
	return LOOP_GOES_ON;
}

/* ---- what a failed run said ---- */

#define FAILURE_TAIL (4 * KIB)

uint64_t loop_failure(int status, const char *text, size_t n)
{
	_cleanup_(buf_done) struct buf b = BUF(2 * FAILURE_TAIL);
	size_t from = n > FAILURE_TAIL ? n - FAILURE_TAIL : 0;
	uint8_t hash[SHA256_BYTES];
	uint64_t id;

	buf_printf(&b, "%d ", status);
	for (size_t i = from; i < n; i++)
		if (text[i] < '0' || text[i] > '9')
			buf_putc(&b, text[i]);
	sha256(b.p, b.n, hash);
	memcpy(&id, hash, sizeof(id));
	return id ? id : 1;
}

static const char busy_words[] = "rate_limit\0rate limit exceeded\0Rate limit "
				 "reached\0overloaded_error\0"
				 "Too Many Requests\0status 429\0status code 429\0HTTP 429\0";

static bool holds_any(const char *text, const char *words)
{
	for (; words && *words; words += strlen(words) + 1)
		if (strstr(text, words))
			return true;
	return false;
}

bool loop_is_busy(const char *text, const char *words)
{
	return holds_any(text, busy_words) || holds_any(text, words);
}
