/* SPDX-License-Identifier: Apache-2.0 */
/* sys/datagram.h - datagrams whose answers come from the address that was asked, whichever it was */
#ifndef VITRINE_SYS_DATAGRAM_H
#define VITRINE_SYS_DATAGRAM_H

#include <netinet/in.h>

#include "base/base.h"

/* Who sent one, and to which address of ours (unless the socket was not asked to say). */
struct datagram {
	struct sockaddr_in6 from; /* of either family */
	socklen_t from_n;
	struct in6_pktinfo at6;
	struct in_pktinfo at4;
	bool is_v4, has_at;
};

/* Bytes, -EMSGSIZE when it was longer than that, -EAGAIN, other -errno. Never waits. */
ssize_t datagram_recv(int fd, void *p, size_t n, struct datagram *ret);
/* An answer. One that is lost is asked for again. */
void datagram_answer(int fd, const struct datagram *to, const void *p, size_t n);

#endif
