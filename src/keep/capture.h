/* SPDX-License-Identifier: Apache-2.0 */
/* keep/capture.h - logins made inside, kept outside
 *
 * What seal took out of an answer comes here in pieces and is written by a child, so that nothing waits for a disk.
 */
#ifndef VITRINE_KEEP_CAPTURE_H
#define VITRINE_KEEP_CAPTURE_H

#include "seal/wire.h"

struct keeper;
struct capture;

struct capture *capture_new(struct keeper *k);
void capture_free(struct capture *c);
/* One SEAL_LOGIN. */
void capture_take(struct capture *c, const struct seal_msg *m);

#endif
