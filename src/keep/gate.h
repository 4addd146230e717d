/* SPDX-License-Identifier: Apache-2.0 */
/* keep/gate.h - the keeper's side of the gate: starts it, hands it its sockets and rules, takes its events */
#ifndef VITRINE_KEEP_GATE_H
#define VITRINE_KEEP_GATE_H

#include "engine/native/native.h"
#include "gate/wire.h"

struct keeper;
struct gate;

/* Starts both processes where the plan has a gate. They are ready long before the first connection could come, and if
 * not, it waits in the listener's queue. */
void gate_start(struct keeper *k);

/* Bytes of all connections; of those that are open as of a second ago. */
void gate_bytes(const struct keeper *k, uint64_t *ret_in, uint64_t *ret_out);

/* A message of init with sockets of the sandbox's network: true when it was one, and the descriptors are taken. */
bool gate_take(struct keeper *k, const struct init_msg *m, int fds[PACKET_FDS]);

/* `vitrine net allow|deny`: from now on, also for what is connected. */
int gate_change(struct keeper *k, const char *text, bool is_deny, struct err *e);
/* `vitrine network proxy --policy`: everything public, or nothing but what is listed. */
int gate_open(struct keeper *k, bool is_open, struct err *e);
/* A person's answer to one question. */
void gate_said(struct keeper *k, uint32_t id, bool is_allowed);
/* The rules in force, as a memfd of lines (gate/config.h). */
int gate_show(struct keeper *k, struct err *e);

/* That host is inspected from now on, and may be reached over TLS where the rule that says so allows something. */
void gate_inspect(struct keeper *k, const char *host, bool is_reached);

/* vitrine-seal is another one. */
void gate_new_seal(struct keeper *k);

/* Ends them. */
void gate_finish(struct keeper *k);

#endif
