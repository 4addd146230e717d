/* SPDX-License-Identifier: Apache-2.0 */
/* keep/screen.h - what a session's output has done to a terminal: modes, keyboard protocols, the alternate screen
 *
 * Pure. Three uses: a viewer that attaches later gets the screen without what a terminal would answer; a terminal that is
 * left is put back as it was; and nothing else is changed on it. The bytes come from inside and may be anything: the state is
 * bounded, and what is not known to be silent is not repeated.
 */
#ifndef VITRINE_KEEP_SCREEN_H
#define VITRINE_KEEP_SCREEN_H

#include "base/buf.h"
#include "base/str.h"

#define SCREEN_SEQUENCE 256 /* bytes of one control sequence that are looked at */
#define SCREEN_KEYBOARDS 8  /* entries of a keyboard stack, as in kitty's protocol */

struct screen_parser {
	uint8_t state, more;
	bool is_long; /* the sequence has more bytes than are kept */
	uint16_t n;
	char seq[SCREEN_SEQUENCE];
};

struct screen {
	struct screen_parser parser;
	uint64_t set;                           /* see screen_bits() */
	uint8_t keyboards[2][SCREEN_KEYBOARDS]; /* flags that were pushed: main screen, alternate */
	uint8_t n_keyboards[2];
	uint8_t cursor_style;
};

void screen_follow(struct screen *s, const char *p, size_t n);

/* A program that draws the whole screen is shown: a line that is printed would stand in the middle of it. */
bool screen_is_alternate(const struct screen *s);

/* What is set, in one number, for screen_put_reset(). */
uint64_t screen_bits(const struct screen *s);
/* The terminal may be in any state: its keeper died. */
#define SCREEN_UNKNOWN UINT64_MAX

/* How a terminal is left. */
enum screen_leave {
	SCREEN_ENDED, /* the command ended by itself: only what it left behind is reset */
	SCREEN_LEFT, /* the session goes on, or was cut off: colours and the lines below the cursor too */
};

/* The bytes that undo what is set; none where nothing is. */
void screen_put_reset(uint64_t bits, enum screen_leave how, struct buf *out);

/* What shows a terminal the present screen: the last output in two pieces, without queries, bells, clipboard, notifications and
 * what other screens showed; then the modes. `s` has followed all of it. `is_again`: the terminal has seen the session before
 * and lost a part of it; keyboard flags are not pushed a second time. */
void screen_put_replay(const struct screen *s, const struct str part[2], bool is_again,
		       struct buf *out);

#endif
