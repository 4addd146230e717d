/* SPDX-License-Identifier: Apache-2.0 */
/* seal/conn.h - one inspected connection: two streams and what speaks over them
 *
 * The client's ClientHello waits until the server's handshake is over, so that both sides speak the same protocol
 * and a client is never told of one the server does not have.
 */
#ifndef VITRINE_SEAL_CONN_H
#define VITRINE_SEAL_CONN_H

#include "seal/ca.h"
#include "seal/exchange.h"
#include "seal/stream.h"

#define CONN_MAX 400 /* two descriptors each, of the 1024 that are usual */

enum conn_phase { CONN_HELLO, CONN_DIAL, CONN_ANSWER, CONN_TALK, CONN_LEAVE, CONN_PHASE_COUNT_ };

struct h1;
struct h2;
struct conn;

/* What all connections share. */
struct seal {
	struct loop *loop;
	struct ca *ca;
	SSL_CTX *client_ctx, *server_ctx;
	struct terms *rules;
	struct buf trust; /* PEM; read when first needed */
	bool has_trust;
	struct conn *first;
	size_t n_conns;
	void (*event)(struct seal *s, const char *json);
	void (*over)(struct seal *s, const struct conn *c);
};

struct conn {
	struct seal *seal;
	struct conn *next, **link;
	struct exchange_way way;
	char host[256];
	struct stream client, server;
	enum conn_phase phase;
	bool has_alpn, offers_h2, offers_h1, is_h2, is_pumping;
	char why[200]; /* the server is of no use */
	struct h1 *h1;
	struct h2 *h2;
	struct watch *again; /* more to do, after the others had their turn */
	uint64_t started, moved;
	uint64_t told_up, told_down; /* of what it has carried */
};

int seal_init_tls(struct seal *s, struct err *e);
void seal_done(struct seal *s);

/* Takes ownership of both descriptors. early: what the client has sent already. */
void conn_open(struct seal *s, const struct exchange_way *way, struct str early, int client,
	       int server);
void conn_close(struct conn *c);
/* Ends what has been too long at the same thing. */
void conn_check_time(struct seal *s);

/* An alert about the connection itself. */
void conn_event(struct conn *c, const char *reason, const char *message);
void conn_exchange_event(void *arg, const char *json);

/* seal/h1.c and seal/h2.c */
struct h1 *h1_new(struct conn *c);
void h1_free(struct h1 *h);
bool h1_work(struct h1 *h); /* progress; sets c->phase to CONN_LEAVE when through */
bool h1_is_partial(const struct h1 *h);
struct h2 *h2_new(struct conn *c);
void h2_free(struct h2 *h);
bool h2_work(struct h2 *h);

#endif
