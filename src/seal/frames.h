/* SPDX-License-Identifier: Apache-2.0 */
/* seal/frames.h - what a server sends over a WebSocket: its messages masked, whatever frames they are cut into
 *
 * A value that is cut into two frames has the head of the second in its middle. Heads are passed as they are, and the
 * bytes of one message go through the mask as one text; a control frame between them has a text of its own.
 */
#ifndef VITRINE_SEAL_FRAMES_H
#define VITRINE_SEAL_FRAMES_H

#include "base/str.h"
#include "seal/mask.h"

struct frames;

struct frames *frames_new(void);
void frames_free(struct frames *f);

/* n more bytes of the server's; *ret is what may go on, valid until the next call. -EBADMSG: a frame that uses an extension,
 * or is masked, or is no frame. */
int frames_feed(struct frames *f, struct mask *m, const char *p, size_t n, struct str *ret);

#endif
