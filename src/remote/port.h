/* SPDX-License-Identifier: Apache-2.0 */
/* remote/port.h - where a stream of the link meets a descriptor
 *
 * A source reads a descriptor when its stream has room; a sink writes what came and opens the window by what it wrote.
 * Both work on descriptors of others, which may be blocking: those are touched only when they are ready, and written
 * in pieces that a ready pipe takes whole.
 */
#ifndef VITRINE_REMOTE_PORT_H
#define VITRINE_REMOTE_PORT_H

#include "base/buf.h"
#include "remote/link.h"

struct port;
typedef void port_fn(void *arg);

/* Takes the descriptor. */
struct port *source_new(struct loop *l, int take_fd);
struct port *sink_new(struct loop *l, int take_fd);
/* The same for a socket, which has both: `p` made of a copy of its descriptor. When all is written, the other end is
 * told; when reading breaks off, so does the stream. */
void port_is_socket(struct port *p);
void port_free(struct port *p);
/* setsockopt() on what is left of it. */
void port_option(struct port *p, int level, int name, const void *value, unsigned n);

/* Joins it to its stream (NULL: the stream has gone). */
void port_join(struct port *p, struct stream *s);

/* What stream_pull wants; `arg` is the source. */
ssize_t source_pull(void *source, void *p, size_t n);
/* The writers are dead: what is there now is the last of it. */
void source_finish(struct port *p);
bool source_is_ended(const struct port *p);
/* Nobody reads any more: closes it, so that whoever writes learns of it. */
void source_close(struct port *p);

/* 0, or -EPIPE: nobody takes it (it counts as consumed all the same). */
int sink_put(struct port *p, const void *data, size_t n);
/* No more comes: closes the descriptor when all is written. `fn` is called then, now or later. */
void sink_finish(struct port *p, port_fn *fn, void *arg);
bool sink_is_done(const struct port *p);
/* Nobody will ask again: what it holds is still written, then it frees itself. NULL is fine. */
void sink_abandon(struct port *p);

#endif
