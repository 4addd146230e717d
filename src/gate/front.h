/* SPDX-License-Identifier: Apache-2.0 */
/* gate/front.h - the process that reads the sandbox's bytes; the files of this half share this header only
 *
 * A connection has two ends, the client's (inside) and the server's, and a half for each direction. A half is always in
 * one mode, which says what the bytes it reads mean:
 *
 *      FIRST     the client's first bytes on the proxy port: HTTP or SOCKS          client only
 *      SOCKS     a SOCKS5 hello or request                                          client only
 *      HEAD      the head of an HTTP message
 *      BODY      its body: passed on as it is, its end looked for
 *      SNIFF     the first bytes of a tunnel: whose name does it ask for?           client only
 *      RAW       bytes
 *      WAIT      nothing is read: dial is thinking, or the other direction is not done
 *      DNS       DNS over TCP                                                       client only
 *      LAST      what comes is thrown away: our last word is on its way             client only
 *
 * Nothing is read into a half whose other end has not taken what was read before.
 */
#ifndef VITRINE_GATE_FRONT_H
#define VITRINE_GATE_FRONT_H

#include "gate/turn.h"
#include "gate/wire.h"
#include "http/body.h"
#include "http/uri.h"

enum { CLIENT, SERVER };

enum half_mode {
	MODE_FIRST,
	MODE_SOCKS,
	MODE_HEAD,
	MODE_BODY,
	MODE_SNIFF,
	MODE_RAW,
	MODE_WAIT,
	MODE_DNS,
	MODE_LAST
};

struct half {
	enum half_mode mode;
	struct buf in;  /* read, and not yet understood */
	struct buf out; /* to be written to the other end... */
	size_t out_at;  /* ...from here */
	bool is_eof;    /* the sender has closed */
	bool is_shut;   /* and its reader knows */
	uint64_t bytes;
	struct http_body body;
};

/* One exchange on a connection that speaks HTTP. */
struct exchange {
	bool is_on;
	bool is_proxy; /* absolute-form requests to us, to any host; else origin-form to the one host */
	bool is_request_done, is_response_done;
	bool is_last; /* no further request on this connection */
	bool wants_upgrade;
	bool wants_json;
	bool is_server_last;      /* the server closes behind this answer */
	bool is_sent;             /* and not yet on record */
	unsigned code;            /* of the answer */
	uint64_t begun, up, down; /* when it was sent, and what had gone through before */
	struct http_framing framing;
	struct buf head; /* of the request, as the server will get it */
	char method[24];
	char path[512];
};

struct conn {
	struct front *f;
	struct source end[2];
	struct half half[2];              /* by the end they read from */
	uint32_t id;                      /* of the question to dial that is open or was answered */
	bool is_asking, is_dead, is_open; /* is_open: dial counts it as connected */
	bool is_refused;
	bool is_inspected, is_sealed; /* goes to seal; is there */
	bool is_raw;                  /* its rule lets other protocols pass on a port of HTTP */
	bool is_opening;              /* vitrine-link is connecting it inside */
	unsigned via;
	char host[HOST_TEXT]; /* the name asked for; "" when only an address is known */
	struct addr addr;     /* where a direct one wanted to go */
	uint16_t port;
	char rule[288];
	char text[384]; /* dial's reason, for the answer */
	struct exchange x;
	int socks_step;
	uint64_t begun, due; /* due 0: no deadline */
	bool has_peer;
	struct addr peer;     /* where the server is */
	struct addr from, to; /* of the client's connection */
	uint16_t from_port, to_port;
	uint32_t link_id; /* vitrine-link's number for it; 0: it was accepted here */
	struct conn *next, *prev, *next_id;
	bool is_leaving; /* our last word is delivered; the client has not closed yet */
	struct conn *leaving_next, *leaving_prev;
};

struct listener {
	struct front *f;
	struct source s;
	uint16_t host_port; /* 0: the proxy and direct one */
	bool is_dns;
	struct listener *next;
};

struct dns_ask;

struct front {
	struct turn turn;
	struct source keeper, dial, dns, seal, link;
	struct listener *listeners;
	struct conn *conns;
	size_t n_conns, max_conns;
	/* Who only waits for the client to close, the oldest first: each gives its place to a new client. */
	struct conn *leaving_first, *leaving_last;
	struct conn **by_id; /* open hash: connections by id */
	uint32_t last_id;
	bool has_v6;
	struct dns_ask *dns_asks;
	size_t n_dns_asks;
	struct gate_msg done; /* connections that ended in this turn */
	uint64_t moved[2];    /* bytes of all connections, by where they came from */
	uint64_t counted;     /* their sum, as the keeper knows it... */
	uint64_t count_due;   /* ...and when it is told again */
	uint64_t last_full;   /* when "too many connections" was last said */
};

_Noreturn void front_main(void);

/* front.c */
struct conn *conn_new(struct front *f, int take_client);
void conn_close(struct conn *c);
/* An event about it: who inside, host and rule are filled in. */
void conn_event(struct conn *c, struct gate_msg *m);
void conn_alert(struct conn *c, const char *text);
/* Our last word is delivered: a short time to read it is left, and the place is free for whoever comes. */
void conn_leave(struct conn *c);
/* Asks dial for a connection to host:port or addr:port; the answer goes on in conn_answered(). */
void conn_ask(struct conn *c);
/* The server's end is closed and told of; the client's stays. */
void conn_drop_server(struct conn *c);
uint32_t front_next_id(struct front *f);

/* relay.c */
void conn_start(struct conn *c); /* begins to wait on the client's end */
int conn_take_server(struct conn *c, int take_fd);
void conn_put(struct conn *c, int to, const void *p, size_t n);
void conn_flush(struct conn *c);
void conn_watch(struct conn *c);
/* The first bytes of half->in have been understood. */
void conn_drop_input(struct conn *c, int from, size_t n);
/* Lets go of what is in half->in again, through its present mode. */
void conn_again(struct conn *c, int from);
void conn_last_words(struct conn *c, const void *p, size_t n);

/* proxy.c: HTTP. Each takes what it can from half->in. */
void http_start(struct conn *c);
bool http_request(struct conn *c);
bool http_response(struct conn *c);
void http_answered(struct conn *c, const struct gate_msg *m);
void http_told(struct conn *c);
void http_refuse(struct conn *c, unsigned status, const char *text);
void http_message_end(struct conn *c, int from);
bool http_server_gone(struct conn *c);
bool looks_like_http(const char *p, size_t n, bool *ret_more);

/* socks.c */
bool socks_input(struct conn *c);
void socks_answer(struct conn *c, unsigned code);

/* inspect.c: hosts that seal looks into. */
void inspect_open(struct front *f, int take_fd);
/* Takes what seal has said already. */
void inspect_hear(struct front *f);
bool inspect_take(struct conn *c); /* true: it is no longer ours to read */
void inspect_end(struct conn *c);  /* no longer allowed, or gone */
struct conn *front_find(struct front *f, uint32_t id);

/* sniff.c: the first bytes of a tunnel. */
bool sniff_input(struct conn *c);

/* lookup.c: the resolver inside. */
void dns_start(struct front *f, int take_udp);
bool dns_stream_input(struct conn *c);
void dns_answered(struct front *f, const struct gate_msg *m);
uint64_t dns_tick(struct front *f, uint64_t now);
void dns_forget(struct front *f, const struct conn *c);

#endif
