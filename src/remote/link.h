/* SPDX-License-Identifier: Apache-2.0 */
/* remote/link.h - HTTP/2 over one byte stream, between vitrine-link outside and vitrine-init inside
 *
 * The outer side asks, the inner side answers; what the inner side wants to start itself (connections to the gate) it
 * answers into requests that wait for it. Each thing that flows has a stream of its own, and with it its own flow
 * control: a reader that stops stops its writer and nobody else.
 *
 *     POST /start                 the guest half of the plan; 200 when the lock holds, 500 with `error` when not
 *     POST /session/N             `stdio`, `size`; body: the request of engine/native/spawn.h
 *                                 200 `pid`, trailer `exit` (wait status), `cpu`, `rss`, `written`; or 422 `errno`, `step`
 *     POST /session/N/0           body: its standard input
 *     GET  /session/N/1, /2       body of the answer: its standard output, its errors
 *     POST /session/N/tty         both bodies: its terminal
 *     POST /session/N/signal/S    204;  POST /session/N/size/RxC   204
 *     POST /freeze, /thaw         204
 *     GET  /samples/MS            body: now and each MS milliseconds, some of struct link_sample; SAMPLE_ALL is the last of a look
 *     POST /look                  204: and a look now
 *     POST /gate                  waits until something inside connects: then 200 `way` (tcp, dns, host; said: not the
 *                                 gate but the receiver of what the inside says of itself), `from`, `to`,
 *                                 `v6`, who it is as far as init can see (`pid`, `exe`, `session`), and both bodies are what it says and hears. A few of these always wait.
 *     POST /connect/PORT          200, and both bodies are a connection to that port inside; or 502
 *     POST /file/OP               `mode`, `paths`: so many bytes of the body are the paths of enum file_op; 200 `errno`, and
 *                                 of what is read `mode`, `size` and as body its bytes, or a directory's names (base/listing.h);
 *                                 of what is made the rest of the request's body is its bytes, and the trailer `errno` says
 *                                 what became of them. Outside that is a socket: the bytes, and at last four of errno.
 *
 *     POST /again                 200 `net`: the plan holds, somebody else has told it
 *     POST /park                  of a machine that can be saved: 204 when nothing of its files is on the way. Then both sides part
 *                                 (link_part), commands and their pipes stay, and the machine can be stopped anywhere. It goes on
 *                                 with struct link_again (engine/vm/wake.h), a new link, and for each session the requests above with
 *                                 the field `again`: 404 where there is nothing of that kind any more. Connections to the gate
 *                                 are not among them.
 *
 * Both sides treat the other as foreign: names, values and sizes are bounded, anything else ends the link, and an
 * ended link ends the sandbox.
 */
#ifndef VITRINE_REMOTE_LINK_H
#define VITRINE_REMOTE_LINK_H

#include <sys/types.h>

#include "base/err.h"
#include "base/loop.h"

#define LINK_WAITING 32 /* requests for connections to the gate that wait at once */

enum link_side { LINK_OUTER, LINK_INNER };

#define HEAD_FIELDS 8
#define HEAD_VALUE 512

/* A request, a response or its trailers. Only names of our own, lower case. */
struct head {
	char method[8];
	char path[64];
	unsigned status;
	struct head_field {
		char name[16];
		char value[HEAD_VALUE];
	} v[HEAD_FIELDS];
	size_t n;
};

/* Value of a field, NULL when it is not there. */
const char *head_get(const struct head *h, const char *name);
/* As a number in a range; 0 or -EBADMSG. */
int head_number(const struct head *h, const char *name, uint64_t max, uint64_t *ret);
void head_add(struct head *h, const char *name, const char *fmt, ...) PRINTF(3, 4);

struct link;
struct stream;

struct link_ops {
	/* A request has come (inner), or a response, or trailers. < 0 ends the link. */
	int (*on_head)(void *arg, struct stream *s, const struct head *h, bool is_trailer);
	/* Bytes; they count as held until stream_consumed(). < 0 ends the link. */
	int (*on_data)(void *arg, struct stream *s, const void *p, size_t n);
	/* The peer has said all on this stream. */
	int (*on_end)(void *arg, struct stream *s);
	/* The stream is no more; the pointer dies with the call. */
	void (*on_gone)(void *arg, struct stream *s);
	/* The link is no more. */
	void (*on_down)(void *arg, const char *why);
	/* Both sides have parted: nothing is on the way, and nothing may be said. The owner frees the link, here or later. */
	void (*on_parted)(void *arg);
};

/* What a stream sends is pulled: > 0 bytes, 0 nothing now (stream_wake() later), or one of these. */
#define PULL_END (-1)
#define PULL_RESET (-2) /* it broke off */
typedef ssize_t stream_pull(void *arg, void *p, size_t n);

/* Takes both descriptors, which may be the same. */
struct link *link_new(enum link_side side, struct loop *l, int take_in, int take_out,
		      const struct link_ops *ops, void *arg);
void link_free(struct link *l);
/* The descriptors, which the link has done with, are the caller's again. */
void link_release(struct link *l, int *ret_in, int *ret_out);
/* Outer side: this link shall end in order. Who wants to part has stopped sending bodies. */
void link_part(struct link *l);
/* Inner side: the peer may part from now on. */
void link_may_part(struct link *l);
/* All that was said has left. */
bool link_is_flushed(const struct link *l);
/* Bytes from the peer, without a descriptor: for the fuzzers. < 0: the link is down. */
int link_feed(struct link *l, const void *p, size_t n);

/* Outer side: a request. Without `pull` it has no body. NULL: too many streams. */
struct stream *link_request(struct link *l, const struct head *h, stream_pull *pull, void *arg);
/* Inner side. Without `pull` the answer is the head alone, unless `stays`: then stream_trailers() ends it. */
int stream_respond(struct stream *s, const struct head *h, stream_pull *pull, bool stays);
int stream_trailers(struct stream *s, const struct head *h);

void stream_wake(struct stream *s);
void stream_consumed(struct stream *s, size_t n);
void stream_reset(struct stream *s);
/* More may be on its way to us than is usual (64 KiB): fewer turns for the same bytes. When its head has come. */
#define WIDE_STDIO (1024 * 1024)
#define WIDE_GATE (256 * 1024)
#define WIDE_GATES 64 /* so many at once; what is held for all of them is bounded */
void stream_widen(struct stream *s, int32_t window);
void stream_set_arg(struct stream *s, void *arg); /* for pull, and for whoever asks */
void *stream_arg(const struct stream *s);

/* What is used inside, as sent: each look is one of all, one of each session that runs, and one of each process that was
 * not there at the look before. */
enum sample_kind { SAMPLE_ALL = 1, SAMPLE_SESSION, SAMPLE_PROCESS };

struct link_sample {
	uint32_t kind;
	uint32_t session; /* SAMPLE_NO_SESSION: of none that we started */
	uint64_t memory, cpu_ns, pids;
	uint32_t pid, ppid, n_words; /* of a process: bytes of its arguments, each ended by NUL */
	char name[16];
	char words[444];
};

#define SAMPLE_NO_SESSION UINT32_MAX

#endif
