/* SPDX-License-Identifier: Apache-2.0 */
/* cli/spot.h - which workspace a verb of undo is about */
#ifndef VITRINE_CLI_SPOT_H
#define VITRINE_CLI_SPOT_H

#include "core/facts.h"
#include "core/undo.h"

struct spot {
	struct host host;
	struct undo undo;
	char *sandbox; /* NULL: none was named */
};

#define SPOT_NONE ((struct spot){ .host = { .ws_fd = FD_NONE }, .undo = { .fd = FD_NONE } })

/* The first word, when it is the name of a sandbox, is taken; else the directory (NULL: the current one). */
int spot_open(struct spot *s, const char *workspace, char *const **words, struct err *e);
void spot_close(struct spot *s);

/* Paths as the user means them -> relative to the workspace, NULL-ended; *ret is NULL when there are none. */
int spot_paths(const struct spot *s, char *const *words, char ***ret, struct err *e);
void spot_paths_free(char **paths);

#endif
