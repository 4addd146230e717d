/* SPDX-License-Identifier: Apache-2.0 */
/* keep/feed.h - what a session shows: kept for a while, recorded, and seen by any number of viewers
 *
 * The last bytes stay in a ring, so that a viewer who comes later sees the screen. With one viewer nothing is lost:
 * the command waits for them. With several the fastest sets the pace; one who falls behind loses the middle and sees
 * the ring again. With none, all goes on.
 */
#ifndef VITRINE_KEEP_FEED_H
#define VITRINE_KEEP_FEED_H

#include "base/loop.h"
#include "keep/record.h"
#include "keep/screen.h"

#define FEED_RING ((size_t)64 * 1024)
#define FEED_VIEWERS 8

struct feed;

enum viewer_hold {
	HOLD_QUESTION = 1, /* a question is on the screen */
	HOLD_SUSPEND = 2,  /* the client is a stopped job: the terminal is the shell's */
};

struct viewer {
	struct feed *feed;
	int out; /* owned */
	struct watch *on_out;
	char *buf;
	size_t at, n;
	bool is_behind; /* lost something: sees the ring once it has caught up */
	bool is_broken;
	unsigned
		held; /* HOLD_*: while there is a reason the viewer gets nothing, and the command waits */
};

struct feed {
	struct loop *loop;
	char *ring;
	size_t at, n; /* where the next byte goes; how many are there */
	uint64_t bytes;
	struct screen screen; /* the modes that a terminal is in now */
	struct viewer *viewers[FEED_VIEWERS];
	struct record record;
	void (*on_room)(void *arg); /* a viewer has caught up */
	void *arg;
};

struct feed *feed_new(struct loop *l, void (*on_room)(void *arg), void *arg);
void feed_free(struct feed *f); /* ends its viewers too */

void feed_add(struct feed *f, const char *p, size_t n);
size_t feed_room(const struct feed *f);

/* From now on all of it goes to this record, what is in the ring first. */
void feed_record(struct feed *f, int sessions, uint32_t number);

/* Takes out. `sees_past`: the ring comes first. NULL: no place left. */
struct viewer *feed_view(struct feed *f, int take_out, bool sees_past);
void feed_leave(struct feed *f, struct viewer *v);
/* Each reason is set and cleared by itself; output flows again when none is left. */
void viewer_hold(struct viewer *v, enum viewer_hold why, bool is_held);
size_t feed_n_viewers(const struct feed *f);

/* The command is dead: viewers get what is left; slow ones have until then (0: no time). False: something is left. */
bool feed_drain(struct feed *f, uint64_t until);

#endif
