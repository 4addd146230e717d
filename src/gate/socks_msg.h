/* SPDX-License-Identifier: Apache-2.0 */
/* gate/socks_msg.h - the two messages of a SOCKS5 client (RFC 1928) */
#ifndef VITRINE_GATE_SOCKS_MSG_H
#define VITRINE_GATE_SOCKS_MSG_H

#include "policy/addr.h"

enum {
	SOCKS_OK = 0,
	SOCKS_FAILED = 1,
	SOCKS_RULE = 2,
	SOCKS_UNREACHABLE = 4,
	SOCKS_COMMAND = 7,
	SOCKS_ADDRESS = 8,
};

struct socks_request {
	struct host_id host;
	uint16_t port;
	unsigned code; /* what to answer when it is not SOCKS_OK */
};

/* Bytes of the hello; 0: more must come; -EBADMSG: not SOCKS5; -EPROTO: it insists on a password. */
ssize_t socks_parse_hello(const uint8_t *p, size_t n);

/* Bytes of the request, its code telling whether it can be served; 0: more must come; -EBADMSG with ret->code. */
ssize_t socks_parse_request(const uint8_t *p, size_t n, struct socks_request *ret);

#endif
