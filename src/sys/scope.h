/* SPDX-License-Identifier: Apache-2.0 */
/* sys/scope.h - a control group of our own, asked of systemd
 *
 * On a host with systemd the tree of control groups is its, and a login's own group belongs to root: an ordinary user can
 * set no limit there. But every user has a manager of his own that hands out groups below it. What is asked for is a
 * scope, delegated, with one process in it; it ends with the last process.
 */
#ifndef VITRINE_SYS_SCOPE_H
#define VITRINE_SYS_SCOPE_H

#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "sys/cgroup.h"

/* Is there a manager to ask? Touches nothing. */
bool scope_can_ask(void);

/* Moves the calling process, and so all that it starts from now on, into a scope of its own. */
int scope_enter(struct err *e);

/* What a run with limits would find there: asks in a process that is moved in our place. Without a manager that gives
 * anything `h` stays as it is. */
void scope_probe(struct cgroup_host *h);

/* The message to the manager, for scope_enter() and its test. */
void scope_request(struct buf *out, const char *unit, pid_t pid);

#endif
