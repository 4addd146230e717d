/* SPDX-License-Identifier: Apache-2.0 */
/* keep/session.h - one command in the sandbox, and the ways its bytes take
 *
 * A command on a terminal of the sandbox's own is seen through a feed by any number of clients, none included. One
 * without gets the client's own pipes where they may go inside, and relays for the rest; a feed looks on where its
 * output is recorded.
 */
#ifndef VITRINE_KEEP_SESSION_H
#define VITRINE_KEEP_SESSION_H

#include "base/loop.h"
#include "keep/feed.h"
#include "keep/keep.h"
#include "keep/relay.h"

#define SESSION_COMMAND 192

struct hearing;
enum look { LOOK_UNSURE, LOOK_YES, LOOK_NO };

struct session {
	uint32_t id;     /* between us and init */
	uint32_t number; /* for people; 0: the sandbox has no name */
	bool is_used;
	int user[3];    /* the client's descriptors that are relayed; FD_NONE elsewhere */
	int near[3];    /* our end of a pipe to the command; FD_NONE elsewhere */
	unsigned pty;   /* enum init_flags */
	unsigned flags; /* enum keep_flags it was asked for with */
	int master;     /* of its terminal */
	int sizer; /* whom to tell its size; FD_NONE: the terminal is ours, and the kernel tells */
	uint16_t rows, cols;
	struct relay *relays[4];
	size_t n_relays;
	void *owner; /* its keeper */
	struct relay *
		out; /* its standard output, where that goes through us and is no terminal; one of relays */
	struct hearing *hearing; /* receiver.c: looks at it */
	enum look look;
	bool has_gap;
	struct feed *feed;
	bool has_begun, has_ended;
	uint64_t drain_until; /* has ended, and somebody still reads: so long */
	int status;
	enum end_reason why;
	int32_t pid;       /* inside */
	uint64_t started;  /* seconds since 1970 */
	uint64_t began_ns; /* monotonic */
	uint64_t cpu_ns, max_rss,
		written; /* when it has ended: of the command and what it waited for */
	uint64_t live_cpu_ns, live_memory, live_processes; /* when last looked at */
	char command[SESSION_COMMAND];                     /* foreign */
	char *words; /* the same as words, each ended by NUL, until it is told */
	size_t n_words;
};

#define SESSION_NONE                                                                               \
	((struct session){ .user = { FD_NONE, FD_NONE, FD_NONE },                                  \
			   .near = { FD_NONE, FD_NONE, FD_NONE },                                  \
			   .master = FD_NONE,                                                      \
			   .sizer = FD_NONE })

/* Its number in the journal: that of the folder where it has one. */
static inline uint32_t session_number(const struct session *s)
{
	return s->number ? s->number : s->id;
}

/* Decides and prepares: fills io for init (descriptors there are the caller's to close after handing them over). */
int session_open(struct session *s, const int client_stdio[3], unsigned flags, struct stdio *io,
		 struct err *e);

/* The command runs: starts moving bytes. Takes master (FD_NONE when it has no terminal). */
void session_begin(struct session *s, struct loop *l, int take_master, void (*fn)(void *arg),
		   void *arg);

/* From now on its output is thrown away: it has had its share. */
void session_mute(struct session *s);

/* The command is dead: what it wrote still goes out; slow readers have until then (0: no time). False: something is left. */
bool session_drain(struct session *s, uint64_t until);
void session_close(struct session *s);

uint64_t
session_output(const struct session *s); /* bytes to stdout and stderr that went through us */
uint64_t session_last_ns(const struct session *s); /* when a byte last moved, 0: never seen one */
/* The last bytes of its error output that we saw. */
size_t session_tail(const struct session *s, const char **ret);
void session_resize(struct session *s, uint16_t rows, uint16_t cols);
/* Makes what runs there paint its screen anew. */
void session_repaint(struct session *s);

#endif
