/* SPDX-License-Identifier: Apache-2.0 */
/* keep/relay.h - bytes between a client's descriptor and a command's, one direction
 *
 * Reads only while there is room and writes only when the other side takes it, so neither side can make the
 * keeper grow or wait. Regular files are never waited for: they are always ready.
 */
#ifndef VITRINE_KEEP_RELAY_H
#define VITRINE_KEEP_RELAY_H

#include "base/loop.h"

struct feed;

#define RELAY_BUF ((size_t)64 * 1024)
#define RELAY_TAIL 2048

struct relay {
	struct loop *loop;
	int from, to;      /* owned; to may be FD_NONE: what comes goes to the feed alone */
	struct feed *feed; /* sees all that passes, and says how much may come; NULL: none */
	struct watch *on_from, *on_to;
	char *buf;
	size_t at, n;
	bool is_eof; /* from has ended */
	bool is_broken; /* to takes nothing more; what comes is thrown away so the writer is not stopped */
	bool is_done;
	bool is_input;         /* towards the command */
	bool is_paused;        /* reads nothing for now: the terminal belongs to somebody else */
	uint64_t bytes;        /* taken from `from` */
	uint64_t last_ns;      /* when something last moved */
	char tail[RELAY_TAIL]; /* the last bytes, for explaining a failure */
	size_t tail_n;
	void (*fn)(void *arg); /* called when bytes moved or it ended */
	void *arg;
	/* May change what was read before it is passed on; false: read no more. */
	bool (*filter)(void *arg, char *p, size_t *n);
	void *filter_arg;
	/* Nobody reads `to` any more. True: then nobody shall write to `from` either, as in a pipe without us. */
	bool (*on_broken)(void *arg);
	void *broken_arg;
};

/* Takes both descriptors. `keeps_tail` remembers the last bytes. */
struct relay *relay_new(struct loop *l, int take_from, int take_to, void (*fn)(void *arg),
			void *arg);
void relay_free(struct relay *r);
/* There may be room again. */
void relay_kick(struct relay *r);
/* Moves what is there, for the end, when the writers are dead; waits for a slow reader until `until` (0: not at all). False:
 * something is left. */
bool relay_drain(struct relay *r, uint64_t until);

/* The same file with an open file description of our own and O_NONBLOCK, where the kernel gives us one; takes fd. */
int relay_own_description(int take_fd);
ssize_t relay_write_some(int fd, const void *p, size_t n);

#endif
