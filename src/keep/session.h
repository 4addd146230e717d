/* SPDX-License-Identifier: Apache-2.0 */
/* keep/session.h - one command in the sandbox and the client that asked for it */
#ifndef VITRINE_KEEP_SESSION_H
#define VITRINE_KEEP_SESSION_H

#include "base/loop.h"
#include "keep/keep.h"
#include "keep/relay.h"

struct session {
	uint32_t id;
	bool is_used;
	int client; /* FD_NONE: detached */
	struct watch *on_client;
	int user[3];  /* the client's descriptors that are relayed; FD_NONE elsewhere */
	int near[3];  /* our end of a pipe to the command; FD_NONE elsewhere */
	unsigned pty; /* enum init_flags */
	int master;   /* of its terminal */
	struct relay *relays[4];
	size_t n_relays;
	bool has_asked, has_begun, has_ended;
};

/* Decides and prepares: fills io for init (descriptors there are the caller's to close after handing them over). */
int session_open(struct session *s, const int client_stdio[3], unsigned flags, struct stdio *io,
		 struct err *e);

/* The command runs: starts moving bytes. Takes master (FD_NONE when it has no terminal). */
void session_begin(struct session *s, struct loop *l, int take_master, void (*fn)(void *arg),
		   void *arg);

/* From now on its output is thrown away: it has had its share. */
void session_mute(struct session *s);

/* The command is dead: what it wrote still goes out. */
void session_drain(struct session *s);
void session_close(struct session *s);

uint64_t
session_output(const struct session *s); /* bytes to stdout and stderr that went through us */
uint64_t session_last_ns(const struct session *s); /* when a byte last moved, 0: never seen one */
/* The last bytes of its error output that we saw. */
size_t session_tail(const struct session *s, const char **ret);
void session_resize(const struct session *s, uint16_t rows, uint16_t cols);

#endif
