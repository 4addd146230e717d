/* SPDX-License-Identifier: Apache-2.0 */
/* history/events_guard.h - what the guard decided on the bare host, as events */
#ifndef VITRINE_HISTORY_EVENTS_GUARD_H
#define VITRINE_HISTORY_EVENTS_GUARD_H

#include "event/event.h"

struct guard_events {
	uint64_t since_ns, tail; /* tail: only the last so many; 0: all */
	int (*tell)(void *arg, const struct event *ev, const struct event_origin *from);
	void *arg;
};

/* Each in its order, until one of them is answered with other than 0, which is returned. */
int guard_events(const struct guard_events *g, const char *state_dir, struct err *e);

#endif
