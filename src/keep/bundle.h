/* SPDX-License-Identifier: Apache-2.0 */
/* keep/bundle.h - the certificates that programs inside trust: the host's, and the sandbox's own CA
 *
 * The file that is mounted inside exists from the beginning, empty and leased: whoever opens it waits until it is
 * complete, and the keeper hears of it.
 */
#ifndef VITRINE_KEEP_BUNDLE_H
#define VITRINE_KEEP_BUNDLE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/loop.h"
#include "base/str.h"

struct keeper;
struct plan_net;

enum { BUNDLE_PEM, BUNDLE_JAVA, BUNDLES };

struct bundle {
	int fd[BUNDLES]; /* being written, and leased; FD_NONE: complete */
	bool is_leased;  /* else nobody can be made to wait for it */
	struct watch *on_opened;
};

#define BUNDLE_NONE ((struct bundle){ .fd = { FD_NONE, FD_NONE } })

/* What servers are verified against: the caller's own choice, or the system's. */
int bundle_trust(const struct plan_net *n, struct buf *b, struct err *e);
/* Only whether there is something to read. */
int bundle_trust_look(const struct plan_net *n, struct err *e);

/* on_opened(arg) when somebody waits for it. */
int bundle_begin(struct bundle *b, struct keeper *k, watch_fn *on_opened, void *arg, struct err *e);
/* Complete, with the CA; an empty one: only the host's. */
void bundle_end(struct bundle *b, struct keeper *k, struct str ca);
/* Whoever waits goes on. */
void bundle_close(struct bundle *b);

#endif
