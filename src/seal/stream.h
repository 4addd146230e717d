/* SPDX-License-Identifier: Apache-2.0 */
/* seal/stream.h - one side of a connection: a socket, TLS over it or not, and a fifo each way
 *
 * Nothing blocks and nothing calls back: the owner fills `out`, takes from `in`, and calls stream_work() until
 * neither it nor stream_work() makes progress.
 */
#ifndef VITRINE_SEAL_STREAM_H
#define VITRINE_SEAL_STREAM_H

#include <openssl/ssl.h>

#include "base/err.h"
#include "base/loop.h"
#include "seal/fifo.h"

#define STREAM_ROOM ((size_t)64 * 1024)

struct stream {
	int fd;
	SSL *ssl;
	struct fifo in, out;
	struct fifo early; /* came before fd was ours; read first */
	uint64_t got, put; /* plain bytes */
	struct watch *rd, *wr;
	bool is_open;    /* TLS stands; plain: from the start */
	bool is_waiting; /* the ClientHello is here and we are not ready to answer it */
	bool is_eof;     /* nothing more will come */
	bool is_dead;    /* and nothing can be sent */
	bool is_closing, has_shut;
	bool wants_read, wants_write; /* of TLS, whatever we want ourselves */
	int alert;                    /* TLS alert that ended it, as OpenSSL's reason; 0: none */
	char why[160];                /* it is dead */
};

/* Takes ownership of fd. fn(arg) is called when there may be work. */
void stream_init(struct stream *s, struct loop *l, int fd, watch_fn *fn, void *arg);
void stream_done(struct stream *s);

/* Takes ownership of ssl, which is set to accept or connect. */
void stream_tls(struct stream *s, SSL *ssl);

/* True when bytes moved or the state changed. */
bool stream_work(struct stream *s);
/* Switches the watches to what is worth waiting for. */
void stream_wait(struct stream *s);

/* No more will be put into out: send what is there, then say so. */
void stream_close(struct stream *s);
/* All of it is sent, or never will be. */
bool stream_is_over(const struct stream *s);

#endif
