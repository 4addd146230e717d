/* SPDX-License-Identifier: Apache-2.0 */
/* gate/turn.h - the loop of front and of dial: readiness of many descriptors, then a look at the deadlines
 *
 * What a callback frees may still stand in the list of this turn: it is only taken out (source_close) and freed in
 * the tick, which runs when the list is done.
 */
#ifndef VITRINE_GATE_TURN_H
#define VITRINE_GATE_TURN_H

#include "sys/poller.h"

struct source {
	int fd;
	unsigned what; /* POLLER_x being waited for */
	bool is_added;
	void (*fn)(struct source *s, unsigned ready);
};

#define SOURCE_NONE ((struct source){ .fd = FD_NONE })

struct turn {
	int poller;
	/* Called after every turn; milliseconds until it wants to be called again at the latest, -1: never. */
	int (*tick)(void *arg);
	void *arg;
};

#define holder_of(p, type, member) ((type *)(void *)((char *)(p)-offsetof(type, member)))

/* Starts to wait for `what` (0: only for its end). The source owns fd. */
int source_open(struct turn *t, struct source *s, int take_fd,
		void (*fn)(struct source *s, unsigned ready), unsigned what);
void source_want(struct turn *t, struct source *s, unsigned what);
/* Not waited for any more; the descriptor is the caller's again. */
int source_take(struct turn *t, struct source *s);
void source_close(struct turn *t, struct source *s);

_Noreturn void turn_run(struct turn *t);

#endif
