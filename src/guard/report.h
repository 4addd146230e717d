/* SPDX-License-Identifier: Apache-2.0 */
/* guard/report.h - a decision, told to the keeper of the sandbox the hook runs in
 *
 * Inside a sandbox with features.telemetry the variable VITRINE_EVENTS holds a port of the loopback, where the keeper's
 * receiver takes reports of tool calls (docs/EVENTS.md). It is the inside that speaks there, and is believed as such.
 */
#ifndef VITRINE_GUARD_REPORT_H
#define VITRINE_GUARD_REPORT_H

#include "guard/hook.h"

/* 0 when there is nobody to tell, or it was taken; -errno otherwise. Waits a moment at most. */
int guard_report(const struct hook_call *c, const struct judgement *j, uint64_t took_us,
		 struct err *e);

#endif
