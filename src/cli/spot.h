/* SPDX-License-Identifier: Apache-2.0 */
/* cli/spot.h - which workspace a verb of undo is about */
#ifndef VITRINE_CLI_SPOT_H
#define VITRINE_CLI_SPOT_H

#include "core/def.h"
#include "core/facts.h"
#include "core/review.h"
#include "core/undo.h"

struct spot {
	struct host host;
	struct undo undo;
	char *sandbox; /* NULL: none was named */
	struct def def;
	struct policy policy; /* in force there, as far as files say; for what is protected */
	struct review review;
	bool is_review;     /* its changes wait in layers */
	bool is_clone;      /* ... with nothing of the host's below them */
	struct owned owned; /* when it does not run */
};

#define SPOT_NONE                                                                                  \
	((struct spot){                                                                            \
		.host = { .ws_fd = FD_NONE }, .undo = { .fd = FD_NONE }, .owned = OWNED_NONE })

/* The first word, when it is the name of a sandbox, is taken; else the directory (NULL: the current one). With
 * wants_review and no name, the sandbox whose changes to that directory wait is meant, if there is exactly one. */
int spot_open(struct spot *s, const char *workspace, bool wants_review, char *const **words,
	      struct err *e);
/* What is in force in a sandbox, as far as files and its own options say; for what is protected. */
int spot_policy(const struct host *h, const struct def *d, struct policy *ret, struct err *e);
/* ERR_UNSUPPORTED: the engine of the sandbox cannot show layers, so what it has must not be put into some. */
int spot_needs_layers(const struct host *h, const struct def *d, struct err *e);
/* It must not run from here on. */
int spot_own(struct spot *s, struct err *e);
void spot_close(struct spot *s);

/* A checkpoint was made or gone back to: on the record of the sandbox that was named, else of those that work there. */
void spot_tell(const struct spot *s, bool is_restored, uint64_t id, uint64_t files, uint64_t bytes);

/* Paths as the user means them -> relative to the workspace, NULL-ended; *ret is NULL when there are none. */
int spot_paths(const struct spot *s, char *const *words, char ***ret, struct err *e);
void spot_paths_free(char **paths);

#endif
