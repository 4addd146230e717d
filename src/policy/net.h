/* SPDX-License-Identifier: Apache-2.0 */
/* policy/net.h - the network section of a policy, read */
#ifndef VITRINE_POLICY_NET_H
#define VITRINE_POLICY_NET_H

#include "policy/policy.h"
#include "policy/rules.h"

struct net_port {
	uint16_t outside, inside;
};

enum upstream_kind { UPSTREAM_NONE, UPSTREAM_HTTP, UPSTREAM_SOCKS5, UPSTREAM_KIND_COUNT_ };

/* A proxy that everything goes through, as companies have them. */
struct net_upstream {
	enum upstream_kind kind;
	struct host_id host;
	uint16_t port;
	char login[256]; /* "user:password", or empty */
};

int net_port_parse(const char *text, struct net_port *ret);
int net_upstream_parse(const char *text, struct net_upstream *ret);
/* As it may be shown: without its password. */
void net_upstream_show(const char *text, struct buf *out);

/* All rules of a policy, its preset's first. */
int net_rules(const struct policy *p, struct rules *ret, struct err *e);

#endif
