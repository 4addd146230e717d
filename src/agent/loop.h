/* SPDX-License-Identifier: Apache-2.0 */
/* agent/loop.h - when a loop goes on, waits, or stops; pure
 *
 * What is known of a loop is the sum of its finished iterations, folded in their order. Whoever resumes one folds the
 * records that are on disk and is where the other stopped: there is no state beside them.
 */
#ifndef VITRINE_AGENT_LOOP_H
#define VITRINE_AGENT_LOOP_H

#include "base/buf.h"
#include "base/err.h"

enum loop_stop {
	LOOP_GOES_ON,
	LOOP_MARKER, /* the agent said that it is done */
	LOOP_CHECK,  /* --until succeeded */
	LOOP_MAX,    /* iterations */
	LOOP_TIME,   /* time of all iterations */
	LOOP_COST,
	LOOP_TOKENS,
	LOOP_STILL,   /* so many iterations changed nothing */
	LOOP_FAILING, /* so many failed in the same way */
	LOOP_BUSY,    /* the service was busy so many times in a row */
	LOOP_ASKED,   /* 'vitrine loop stop' */
	LOOP_SIGNAL,  /* whoever ran it was interrupted; the iteration that ran is run again */
	LOOP_STOP_COUNT_
};

/* How one iteration ended. */
enum loop_outcome {
	LOOP_OK,
	LOOP_FAILED,
	LOOP_LIMITED, /* the service said: later. Not counted */
	LOOP_OUTCOME_COUNT_
};

const char *loop_stop_name(enum loop_stop s);     /* "marker", "check", "max", ... */
const char *loop_stop_sentence(enum loop_stop s); /* for people */
/* Something from outside ended it, not its own conditions and not its user's wish. */
bool loop_stop_is_interruption(enum loop_stop s);
const char *loop_outcome_name(enum loop_outcome o);

struct loop_conf {
	uint64_t max;  /* iterations */
	uint64_t time; /* ns; 0: no limit, as for all that follow */
	uint64_t cost; /* millionths of a dollar */
	uint64_t tokens;
	uint64_t still;    /* iterations without a change */
	uint64_t failures; /* identical ones in a row */
	uint64_t backoff;  /* ns before the first repetition; doubles */
	bool has_marker, has_check;
};

struct loop_result {
	enum loop_outcome outcome;
	int status;
	bool is_marked, is_checked; /* said the marker; --until succeeded */
	uint64_t n_changed;         /* files */
	uint64_t duration;          /* ns */
	uint64_t cost, tokens_in, tokens_out;
	uint64_t failure; /* what it failed with, as a number; 0: it did not */
};

struct loop_sum {
	uint64_t iterations; /* finished and counted */
	uint64_t tries;      /* with those that were not counted */
	uint64_t failed;
	uint64_t time, cost, tokens_in, tokens_out;
	uint64_t still, same, busy; /* in a row */
	uint64_t failure;
	bool is_marked, is_checked;
};

void loop_fold(struct loop_sum *s, const struct loop_result *r);

/* What to do next. *ret_wait: ns to wait before the next iteration. */
enum loop_stop loop_decide(const struct loop_conf *c, const struct loop_sum *s, uint64_t *ret_wait);

#define LOOP_BUSY_MAX 12
#define LOOP_WAIT_MAX ((uint64_t)1800 * NS_PER_SEC)

/* A number for what a failed run said, the same for what differs in numbers only (times, pids, line numbers). */
uint64_t loop_failure(int status, const char *text, size_t n);

/* Does the text hold one of the words by which services say "later"? `words`: the preset's, NUL-separated, may be NULL. */
bool loop_is_busy(const char *text, const char *words);

#endif
