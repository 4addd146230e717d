/* SPDX-License-Identifier: Apache-2.0 */
/* sys/netns.h - a network namespace whose every address is here, and whose every TCP connection comes to us
 *
 * Called in a fresh network namespace, with the capabilities of its owner. Only loopback exists, so nothing can
 * leave; these calls make sure that whatever is tried arrives at a socket of ours instead of failing unseen.
 */
#ifndef VITRINE_SYS_NETNS_H
#define VITRINE_SYS_NETNS_H

#include "base/base.h"

/* Names get addresses from these two; the lowest of each lies on lo, so that programs that ask "is there a network?"
 * find an address that is not loopback. */
#define NETNS_V4 "198.18.0.0" /* /15, RFC 2544: nobody's */
#define NETNS_V4_BITS 15
#define NETNS_V6 "fd76:6974:7269:6e65::" /* /64, unique local */
#define NETNS_V6_BITS 64

/* Holds the first port that needs no capability; written inside, it counts for that namespace alone. */
#define NETNS_LOW_PORTS "/proc/sys/net/ipv4/ip_unprivileged_port_start"

#define NETNS_PROXY_PORT 3128
#define NETNS_TELEMETRY_PORT 4318 /* OpenTelemetry's own, for HTTP */

enum netns_socket {
	NETNS_TCP, /* the proxy port, and every redirected connection (getsockname: where it wanted to go) */
	NETNS_DNS_UDP,
	NETNS_DNS_TCP,
	NETNS_LISTENERS_,
	NETNS_DIAG =
		NETNS_LISTENERS_, /* asks the kernel whose connection is whose; may be missing */
	NETNS_SOCKET_COUNT_
};

struct netns {
	int fd[NETNS_SOCKET_COUNT_];
	bool has_v6;
	bool has_redirect; /* false: the kernel cannot, only what asks for the proxy port gets through */
	bool has_routes; /* every address is here */
};

/* lo up. */
int netns_loopback(void);

/* Every port of this namespace may be listened on, as far as the kernel lets us say so. */
void netns_low_ports(void);

/* Routes, addresses, the redirect and the listening sockets. No allocation; 0 or -errno. */
int netns_open(struct netns *ret);

/* The listening sockets alone, on loopback, for who has no right to the rest. The resolver's two may be missing: FD_NONE. */
int netns_open_plain(struct netns *ret);

/* A listener on 127.0.0.1 in this namespace; port 0: any. A socket of this namespace, for nothing yet. */
int netns_listen(uint16_t port);
/* A listener for this port of every address, where connections cannot be redirected. */
int netns_listen_any(bool has_v6, uint16_t port);
int netns_socket(void);

#endif
