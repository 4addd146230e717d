/* SPDX-License-Identifier: Apache-2.0 */
/* cli/whole.h - a checkpoint of a whole sandbox that works in place: its workspace, its home and what it installed */
#ifndef VITRINE_CLI_WHOLE_H
#define VITRINE_CLI_WHOLE_H

#include "cli/spot.h"

#define STILL_MAX 16

/* Everything inside the sandboxes that work in this place stands still as long as we are connected to their keepers. */
struct still {
	int conn[STILL_MAX];
	size_t n;
	uint64_t began;
};
int still_begin(struct still *t, const struct spot *s, struct err *e);
/* Milliseconds; 0 when nobody had to. */
uint64_t still_end(struct still *t);

/* Of the sandbox that was named, if one was: its layers, to go with checkpoint `tree` of the workspace. true: they did. */
int whole_checkpoint(struct spot *s, uint64_t tree, const char *message, bool *ret_did,
		     struct err *e);
/* Its home and what it installed lie in layers; else the home is a plain directory. */
bool whole_is_in_layers(const struct spot *s);
/* The same of one that runs and stands still, where they lie in layers: what it writes in is copied. */
int whole_checkpoint_still(struct spot *s, uint64_t tree, const char *message, struct err *e);
/* Where a checkpoint brought the workspace back to `tree`; what was there is `present`. */
int whole_restore(struct spot *s, uint64_t tree, uint64_t present, bool *ret_did, struct err *e);
/* The newest checkpoint of the workspace whose layers differ from what is there; 0: none. */
uint64_t whole_target(const struct spot *s);
/* Checkpoints of the workspace have gone. */
int whole_prune(struct spot *s, struct err *e);

#endif
