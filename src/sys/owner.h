/* SPDX-License-Identifier: Apache-2.0 */
/* sys/owner.h - which process made a connection */
#ifndef VITRINE_SYS_OWNER_H
#define VITRINE_SYS_OWNER_H

#include "base/base.h"

/* A connection as its maker has it; IPv4 addresses as IPv6 ones that hold them. */
struct owner_key {
	uint8_t from[16], to[16];
	uint16_t from_port, to_port;
};

struct owner {
	int diag; /* NETLINK_SOCK_DIAG of its network namespace; FD_NONE: there is none */
	bool has_table; /* where there is none: who looks is in that namespace, and /proc has a table of it */
	uint64_t window, spent;
	uint32_t recent[8];
};

/* 0: nobody's; -1: the kernel did not say. */
int64_t owner_inode(int diag, const struct owner_key *q);
/* As /proc has it; 0: not known, or too much was asked lately. */
uint32_t owner_find(struct owner *w, int proc, const struct owner_key *q);
void owner_program(int proc, uint32_t pid, char *to, size_t size);

#endif
