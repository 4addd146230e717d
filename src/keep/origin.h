/* SPDX-License-Identifier: Apache-2.0 */
/* keep/origin.h - who inside made a connection: the process, and the session it belongs to */
#ifndef VITRINE_KEEP_ORIGIN_H
#define VITRINE_KEEP_ORIGIN_H

#include "base/base.h"

struct keeper;
struct session;
struct gate_msg;
struct origins;
struct init_msg;

struct origin {
	const struct session *session; /* NULL: not known */
	uint32_t pid;                  /* inside; 0: not known */
	char exe[256];
};

/* A netlink socket of the sandbox's network namespace that answers whose connection is whose; FD_NONE: it will be told. */
void origins_open(struct keeper *k, int take_diag);

/* INIT_ORIGIN: what an init behind other walls found. */
void origin_told(struct keeper *k, const struct init_msg *m);

/* Of the connection that an event is about; what was found stays known for its later events. */
struct origin origin_of(struct keeper *k, const struct gate_msg *m);

/* Certainly: no process has that connection any more. */
bool origin_is_gone(struct keeper *k, const struct gate_msg *m);

#endif
