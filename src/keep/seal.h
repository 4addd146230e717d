/* SPDX-License-Identifier: Apache-2.0 */
/* keep/seal.h - the keeper's side of vitrine-seal: starts it, tells it its terms, hands it to the gate's front */
#ifndef VITRINE_KEEP_SEAL_H
#define VITRINE_KEEP_SEAL_H

#include "base/buf.h"
#include "base/err.h"

struct keeper;

/* Where the plan inspects hosts: starts vitrine-seal and makes the bundle that the sandbox's view is about to be made
 * from. Its CA comes later; who opens the bundle before that waits. */
int seal_start(struct keeper *k, struct err *e);
/* A fresh way between seal and a front that was just started: the front's end, or FD_NONE. */
int seal_connect(struct keeper *k);
/* `vitrine net allow|deny 'METHOD HOST/PATH'`: from the next request on. */
int seal_change(struct keeper *k, const char *rule, bool is_deny, struct err *e);
/* Path and git rules in force, as lines of gate/config.h. */
void seal_show(const struct keeper *k, struct buf *out);
/* From here on what it says is heard. */
void seal_watch(struct keeper *k);
/* Nothing inside lives any more: takes what it has still to say, for us and for front. */
void seal_settle(struct keeper *k);
void seal_finish(struct keeper *k);

#endif
