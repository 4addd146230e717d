/* SPDX-License-Identifier: Apache-2.0 */
/* gate/dial.h - the process that decides and connects; the files of this half share this header only */
#ifndef VITRINE_GATE_DIAL_H
#define VITRINE_GATE_DIAL_H

#include <sys/socket.h>

#include "gate/config.h"
#include "gate/names.h"
#include "gate/resolve.h"
#include "gate/wire.h"

#define ASKS_MAX 4096 /* waiting for a name, a connection or a person at once */

struct dial;

enum ask_state {
	ASK_CONFIG,
	ASK_PERSON,
	ASK_NAME,
	ASK_NOTED, /* the keeper takes the verdict down */
	ASK_CONNECT,
	ASK_UPSTREAM,
	ASK_DEAD
};

/* One question of front on its way to an answer. */
struct ask {
	struct dial *d;
	struct source s; /* the connection being made */
	enum ask_state state;
	bool is_lookup;  /* GATE_NAME: only an address is wanted */
	bool is_raw;     /* its rule says so: see GATE_RAW */
	bool is_asked;   /* a person was asked and said yes */
	bool has_waited; /* for a person, whoever answered then */
	uint64_t number; /* of its verdict */
	uint32_t id;
	unsigned via;
	struct host_id host;
	uint16_t port;
	struct addr from, to; /* the connection inside that asks */
	uint16_t from_port, to_port;
	char rule[288];
	struct addr v[DNS_ADDRS];
	size_t n, at;
	uint64_t due;
	/* upstream.c */
	int up_step;
	struct ask *next;
};

struct dial {
	struct turn turn;
	struct source keeper, front;
	struct config config;
	struct resolver *resolver;
	bool wants_resolv;
	struct names names;
	struct ask *asks;
	size_t n_asks;
	struct open_table *open;
	struct published *published;
	int maker, forge; /* see inside.c */
	bool has_link;    /* vitrine-link connects inside instead */
	uint32_t last_published;
	uint64_t last_number;
};

_Noreturn void dial_main(void);

/* dial.c */
void ask_answer(struct ask *a, enum gate_verdict verdict, const char *text, int take_fd);
void ask_connect(struct ask *a);
void dial_event(struct dial *d, const struct gate_msg *m);

/* judge.c: rules into verdicts and sentences. */
bool judge_host(const struct dial *d, struct ask *a, char *text, size_t size);
/* Leaves in a->v only what may be dialled; false with the reason when nothing is left. */
bool judge_addresses(const struct dial *d, struct ask *a, char *text, size_t size);
bool is_own_address(const struct addr *a);

/* upstream.c: through a company's proxy. */
void upstream_begin(struct ask *a);
void upstream_ready(struct ask *a);

/* open.c: what is connected now, so that a change of the rules reaches it. */
void open_add(struct dial *d, const struct ask *a, const struct addr *addr);
void open_remove(struct dial *d, uint32_t id);
void open_check(struct dial *d);

/* inside.c: sockets of the sandbox's own network namespace. */
int inside_connect(struct dial *d, uint16_t port);
void published_update(struct dial *d);

/* sockets */
socklen_t sockaddr_of(const struct addr *a, uint16_t port, struct sockaddr_storage *ret);

#endif
