/* SPDX-License-Identifier: Apache-2.0 */
/* remote/outer_flow.h - vitrine-link's own: streams, what they are for, and the sessions they belong to */
#ifndef VITRINE_REMOTE_OUTER_FLOW_H
#define VITRINE_REMOTE_OUTER_FLOW_H

#include "gate/wire.h"
#include "remote/outer.h"

enum role {
	ROLE_NONE,
	ROLE_START,
	ROLE_MAIN,
	ROLE_STDIO,
	ROLE_FREEZE,
	ROLE_SAMPLES,
	ROLE_GATE,
	ROLE_FILE,
	ROLE_PARK,
	ROLE_COUNT_
};

struct session {
	struct outer *outer;
	uint32_t id;
	bool is_used, has_started, has_exit, has_told;
	bool is_again; /* its command was there before the link was */
	int status;
	uint64_t cpu_ns, rss, written;
	struct flow *main;
	struct flow *stdio[4]; /* 0, 1, 2, the terminal */
	struct port *tail[3];  /* sinks whose streams have ended: still being written */
};

/* A stream and what it is for. */
struct flow {
	struct outer *outer;
	enum role role;
	struct session *session;
	int which;
	struct stream *stream;
	struct port *from, *to;
	struct buf body; /* ours, to be sent */
	size_t at;
	bool is_sent; /* all of it, to its end */
	bool is_wide;
	/* Of ROLE_GATE, some of ROLE_FILE: */
	struct gate_msg *hello; /* for the gate, which has not heard of it yet */
	int theirs;             /* the gate's end, to go with it */
	uint32_t id;
	bool is_joined, has_end, is_cut; /* has a connection; has said all; the gate broke it off */
	uint16_t from_port,
		to_port; /* of the connection inside; 0: it is none of the inside's making */
	uint32_t opens;  /* the gate's number for it: it asked us to connect inside */
	struct flow *next, *prev;
};

/* The way to the gate. */
struct outer_gate {
	int fd;  /* FD_NONE: there is none, or none any more */
	int ear; /* the receiver of what the inside says of itself; FD_NONE: there is none */
	struct watch *on_in, *on_out;
	struct flow *flows; /* all of ROLE_GATE */
	size_t n_waiting, n_joined, most;
	uint32_t last_id;
};

struct outer {
	struct loop *loop;
	struct link *link;
	int ctl;
	int wait_ms; /* for a keeper that has much to read */
	struct watch *on_ctl;
	bool is_idle;  /* has no first command */
	bool is_named; /* lasts longer than its first command */
	bool is_started, is_down, has_failed, has_samples;
	unsigned sample_ms, asked_ms; /* wanted from the start; asked for */
	struct link_sample sample;
	size_t sample_n;
	struct outer_gate gate;
	bool is_parking;    /* nothing more is said, because the link will end */
	bool is_parting;    /* it does: what its streams were joined to stays */
	int in, out;        /* while there is no link */
	struct head *later; /* requests for when there is one again */
	size_t n_later;
	struct session sessions[INIT_SESSIONS];
};

/* outer.c */
extern const struct link_ops outer_ops;
struct head outer_request(const char *method, const char *fmt, ...) PRINTF(2, 3);
struct flow *outer_ask(struct outer *o, enum role role, const struct head *h, stream_pull *pull);
void outer_tell(struct outer *o, const struct init_msg *m, const int *fds, size_t n);
/* The bytes of a memfd of the keeper's, whole; 0 or -EBADMSG. */
int outer_read(int fd, struct buf *b);
/* What came for a flow goes to its descriptor. Whoever has closed that makes the inside hear of it. */
int outer_pass(struct flow *f, const void *p, size_t n);
/* The first reason is the one that the keeper hears. */
void outer_fail(struct outer *o, const char *what);

/* outer_park.c: the link ends, and begins anew. */
void park_begin(struct outer *o);
void park_answer(struct outer *o, const struct head *h);
void park_parted(void *outer);
/* Keeps what a stream of a command was joined to. False: it is no such stream. */
bool park_keep(struct flow *f);
void park_again(struct outer *o, const struct init_msg *m);
/* While there is no link: what can wait waits, the rest is refused. */
void park_message(struct outer *o, const struct init_msg *m);
void outer_refuse(struct outer *o, uint32_t session, int error);
void outer_ask_short(struct outer *o, enum role role, const struct head *h);
void outer_ask_samples(struct outer *o, unsigned ms);
ssize_t outer_pull(void *flow, void *p, size_t n);

/* outer_gate.c: connections of the inside, to and from the gate. */
size_t gate_most(size_t files); /* connections at once, of a process that may have so many files */
void gate_open(struct outer *o, int take_fd);
void gate_ear(struct outer *o, int take_fd);
int gate_head(struct flow *f, const struct head *h);
void gate_end(struct flow *f);
void gate_gone(struct flow *f);
void gate_refill(struct outer *o);

/* outer_file.c: what `vitrine cp` asks for. `which` is the act, `id` the keeper's number for it. */
void file_ask(struct outer *o, const struct init_msg *m, int fd);
int file_head(struct flow *f, const struct head *h, bool is_trailer);
int file_data(struct flow *f, const void *p, size_t n);
void file_end(struct flow *f);
void file_gone(struct flow *f);

#endif
