/* SPDX-License-Identifier: Apache-2.0 */
/* guard/record.h - every decision is recorded: one line of JSON in $XDG_STATE_HOME/vitrine/guard.log
 *
 * guard_record() is the only way there, so that the lines can go to the journal of events as well. The file is the
 * owner's alone and bounded: at GUARD_LOG_MAX it becomes guard.log.1, and what that held is gone.
 */
#ifndef VITRINE_GUARD_RECORD_H
#define VITRINE_GUARD_RECORD_H

#include "guard/hook.h"

#define GUARD_LOG_MAX (4 * MIB)

/* 0 or -errno; `took_us` is the time the judgement took. */
int guard_record(const struct hook_call *c, const struct judgement *j, uint64_t took_us,
		 struct err *e);

/* The directory of the log; made when missing. */
int guard_state_dir(char **ret, struct err *e);

/* Sums over the log, as text or JSON. */
int guard_stats(bool is_json, struct buf *out, struct err *e);

#endif
