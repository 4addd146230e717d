/* SPDX-License-Identifier: Apache-2.0 */
/* seal/wire.h - what the keeper and seal say to each other
 *
 * One fixed-size message over a SOCK_SEQPACKET pair. The keeper sends the trust store, the rules and the secrets'
 * values in pieces and then SEAL_COMMIT; seal answers SEAL_READY, or SEAL_FAILED and keeps what it had. Before the
 * first SEAL_READY it has sent its CA. Connections come from the gate over another pair, which the keeper hands over
 * with SEAL_FRONT (gate/wire.h).
 */
#ifndef VITRINE_SEAL_WIRE_H
#define VITRINE_SEAL_WIRE_H

#include "sys/packet.h"

#define SEAL_KEEPER_FD 3
#define SEAL_DATA 3776

enum seal_type {
	/* keeper -> seal */
	SEAL_TRUST = 1, /* data: more of the PEM bundle servers are verified against */
	SEAL_RULES,     /* data: more of the JSON text of seal/terms.h */
	SEAL_VALUE,     /* name, data: more of the value of that secret */
	SEAL_COMMIT, /* use all that came since the last commit; no SEAL_TRUST among it: keep the old one */
	SEAL_REFRESH, /* name: the value that came since goes into what is in force */
	SEAL_FRONT,   /* descriptor: the pair to the gate's front */
	SEAL_CLOSE,   /* id: end that connection; 0: all of them */
	/* seal -> keeper */
	SEAL_CA,     /* data: more of the CA's certificate, PEM */
	SEAL_READY,  /* confined, and the commit is in force */
	SEAL_FAILED, /* data: why the commit was not taken */
	SEAL_EVENT,  /* data: one event as JSON text */
	SEAL_LOGIN, /* name; data: more of an answer that gave out tokens; id 1 and no data: that was all */
	SEAL_TYPE_COUNT_
};

struct seal_msg {
	uint32_t type;
	uint32_t id;
	uint32_t n;     /* bytes of data in use */
	uint32_t spare; /* 0 */
	char name[256]; /* NUL-ended */
	char data[SEAL_DATA];
};

int seal_send(int fd, enum seal_type type, uint32_t id, const char *name, const void *data,
	      size_t n);
/* data in as many messages as it takes. The descriptor blocks, or all of it fits. */
int seal_send_all(int fd, enum seal_type type, const char *name, const void *data, size_t n);
/* As packet_recv(), with the fields checked. */
int seal_recv(int fd, struct seal_msg *m, int fds[PACKET_FDS]);

#endif
