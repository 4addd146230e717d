/* SPDX-License-Identifier: Apache-2.0 */
/* remote/outer.h - vitrine-link: the outer half of the link, between a keeper and an init behind other walls */
#ifndef VITRINE_REMOTE_OUTER_H
#define VITRINE_REMOTE_OUTER_H

#include "engine/native/native.h"
#include "remote/link.h"
#include "remote/port.h"

/* Only what the loop and nghttp2 need; no file, socket, process or signal. 0 or -errno. */
int link_confine(void);

struct outer;
/* `ctl`: the keeper, in init_msg packets; the other two: the stream to init. Runs until the sandbox is over.
 * `files`: how many we may have open. */
int outer_run(int ctl, int in, int out, size_t files);

/* For the fuzzer: bytes from inside, no descriptors but `ctl`. */
struct outer *outer_new(struct loop *l, int ctl, int in, int out, size_t files);
void outer_free(struct outer *o);
int outer_feed(struct outer *o, const void *p, size_t n);
void outer_message(struct outer *o, const struct init_msg *m, int fds[PACKET_FDS]);

#endif
