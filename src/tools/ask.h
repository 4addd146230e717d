/* SPDX-License-Identifier: Apache-2.0 */
/* tools/ask.h - talking to the broker from inside */
#ifndef VITRINE_TOOLS_ASK_H
#define VITRINE_TOOLS_ASK_H

#include "broker/wire.h"
#include "tools/tools.h"

#define ASK_GO_ON 1000

/* Connects and asks; what is wrong has been said. */
int ask_connect(const char *const *words, size_t n);
/* Passes text on, collects results; the status, or ASK_GO_ON when the connection goes on in another way. */
int ask_answer(int fd, struct buf *results);

/* remote.c: runs git-upload-pack here, for the broker. 0 or a status. */
int remote_serve(int fd);
/* The object a revision names here, or NULL. */
char *remote_oid(const char *revision);

#endif
