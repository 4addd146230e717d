/* SPDX-License-Identifier: Apache-2.0 */
/* gate/wire.h - what keeper, front, dial and seal say to each other
 *
 *      inside ──► front  (bytes of the sandbox; may not open, socket, connect, bind, listen, exec)
 *                   │ ▲
 *             ASK   │ │ ANSWER, with a connected socket
 *                   ▼ │
 *                 dial   (rules, names, connect; no bytes of the sandbox but names)
 *      keeper ──► both   rules, sockets; takes events
 *
 * One fixed-size message for all, over SOCK_SEQPACKET pairs: whatever has another size, or a type that its receiver
 * does not expect from that peer, ends the connection and with it the process. Text is NUL-ended within its field.
 */
#ifndef VITRINE_GATE_WIRE_H
#define VITRINE_GATE_WIRE_H

#include "policy/addr.h"
#include "sys/packet.h"

#define GATE_KEEPER_FD 3 /* of front and of dial */
#define GATE_PEER_FD 4   /* to the other of the two */

#define GATE_IDS 128 /* in one GATE_GONE */

enum gate_type {
	/* keeper -> front */
	GATE_SOCKETS = 1, /* descriptors: tcp, dns udp, dns tcp */
	GATE_HOST_PORT, /* port; descriptor: a listener inside for a port of the host's loopback */
	GATE_SEAL,      /* descriptor: the way to seal */
	GATE_LINK, /* descriptor: the way to vitrine-link, where the inside is behind other walls */
	/* keeper -> dial */
	GATE_RULES,  /* descriptor: a sealed memfd of lines, see gate/config.h */
	GATE_RESOLV, /* descriptor: a sealed memfd: resolv.conf, a line "---", hosts */
	GATE_INSIDE, /* descriptors: a socket of the sandbox's namespace and a listener in it, to make more; none: vitrine-link makes the connections */
	GATE_SAID,   /* id; verdict: the person's answer */
	GATE_NOTED, /* ns: verdicts up to this number are on record; or id, refused, text: that one may not be */
	/* front -> dial */
	GATE_ASK,  /* id, via, host or addr, port, method, path: may it, and if so a socket to it */
	GATE_NAME, /* id, host: an address for that name, for the resolver inside */
	GATE_DONE, /* id: the connection has ended (from seal) */
	GATE_GONE, /* ids: so many connections, as id says, have ended (to dial) */
	/* dial -> front */
	GATE_ANSWER, /* id, verdict, flags, host, addr, rule, text; descriptor when allowed */
	GATE_CLOSE,  /* id: no longer allowed */
	GATE_PUBLISHED, /* id, port; descriptors: accepted outside, connected inside (or for vitrine-link to connect) */
	/* front and dial -> keeper */
	GATE_EVENT,       /* see enum gate_event */
	GATE_WANT_RESOLV, /* dial */
	GATE_COUNT,       /* front: all_up, all_down and nothing else; also of seal to front */
	GATE_WANT_SEAL,   /* front */
	GATE_QUESTION,    /* dial: id, host, port: the person decides */
	GATE_READY,       /* confined, and proven so */
	/* between vitrine-link and front: see below */
	GATE_CLIENT,
	GATE_OPEN,
	GATE_OPENED,
	/* front -> seal: see below */
	GATE_EARLY, /* up bytes in path: what the client had sent already; before GATE_INSPECT */
	GATE_INSPECT,
	GATE_TYPE_COUNT_
};

/* How a connection came. */
enum gate_via {
	VIA_NONE,
	VIA_HTTP,
	VIA_CONNECT,
	VIA_SOCKS,
	VIA_DIRECT,
	VIA_DNS,
	VIA_HOST_PORT,
	VIA_PUBLISHED,
	VIA_COUNT_
};

enum gate_verdict {
	GATE_REFUSED, /* by a rule, or by none */
	GATE_ALLOWED,
	GATE_FAILED, /* allowed, but there was no way: no such name, connection refused, time-out */
	GATE_VERDICT_COUNT_
};

enum gate_event {
	EVENT_CONNECT, /* a verdict on a connection; addr, rule; of an allowed one ns is its number, and it waits for GATE_NOTED */
	EVENT_LOOKUP,  /* a verdict on a name, from the resolver inside */
	EVENT_REQUEST, /* method and path of one request, where they are seen */
	EVENT_CLOSE,   /* bytes and time of a connection that was allowed */
	EVENT_ALERT,   /* text: wrong SNI, wrong Host, not TLS, too many connections, ... */
	GATE_EVENT_COUNT_
};

enum gate_flags {
	GATE_INSPECTED = 1, /* hand the connection to seal */
	GATE_UPSTREAM = 2,  /* the socket leads to a proxy that has been told where to go */
	GATE_HAS_V6 = 4,    /* of GATE_SOCKETS: the sandbox knows IPv6 */
	GATE_RAW = 32,      /* the rule lets other protocols than HTTP pass on a port of HTTP */
	GATE_WAITED = 16,   /* of EVENT_CONNECT: a person was asked, so who wanted it may be gone */
	GATE_ANY = 8, /* of GATE_HOST_PORT: of every address inside, and not the host\'s at all */
};

struct gate_msg {
	uint32_t type;
	uint32_t id;
	uint32_t event; /* enum gate_event */
	uint32_t via, verdict, flags;
	uint16_t port;
	bool has_addr;
	struct addr addr;
	struct addr fake4, fake6;    /* of an answer to GATE_NAME */
	struct addr from, to;        /* the connection inside: who asks, and where it went... */
	uint16_t from_port, to_port; /* ...0: not known */
	uint32_t code;               /* of an answer */
	uint64_t up, down, ns;       /* bytes from inside, bytes to inside, how long */
	uint64_t all_up,
		all_down; /* of front: all that has passed since it began; of seal: since it last said */
	char host[HOST_TEXT]; /* canonical name; "" when only the address is known */
	char rule[288];       /* as written; "" when none matched */
	char method[24];
	union {
		char path[512];
		uint32_t ids[GATE_IDS]; /* of GATE_GONE; as many as id says */
	};
	char text[384]; /* for people: why, and what would allow it */
};

int gate_send(int fd, const struct gate_msg *m, const int *fds, size_t n_fds);
/* As packet_recv(); texts are NUL-ended, the type is known. */
int gate_recv(int fd, struct gate_msg *m, int fds[PACKET_FDS]);

/* snprintf() for sentences: a long one is cut, and that is all right. */
void gate_say(char *to, size_t size, const char *fmt, ...) PRINTF(3, 4);

const char *gate_via_name(unsigned via);
const char *gate_verdict_name(unsigned verdict);
const char *gate_event_name(unsigned event);

/* ---- vitrine-link: connections from behind other walls ----
 *
 * Where no socket of the inside can be handed out, vitrine-link brings each connection that was accepted inside: GATE_CLIENT
 * with one descriptor (the client), id (its own number), from and to with their ports, flags (GATE_HAS_V6), and via:
 * VIA_NONE for what `to` says (the proxy's port or a direct one), VIA_DNS, VIA_HOST_PORT. front answers nothing, but
 * sends GATE_CLOSE with that id before it closes one that it breaks off. For published ports front sends GATE_OPEN with
 * a number of its own and a port; GATE_OPENED with that number brings a descriptor, or none: nobody listens there. */

/* ---- seal: inspected hosts ----
 *
 * front sends GATE_INSPECT over the pair it got with GATE_SEAL, with two descriptors, the client's connection and
 * the one to the server (in that order), and: id, host (the name asked for), port, via. For VIA_CONNECT and VIA_SOCKS
 * the client has had its "established" answer; what comes next on it is the ClientHello. seal owns both descriptors
 * from then on; GATE_CLOSE with the id ends them. It sends GATE_DONE with the same id, up, down and ns when it is through with them. */

#endif
