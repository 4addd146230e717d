/* SPDX-License-Identifier: Apache-2.0 */
/* cli/machine.h - a machine saved while it works, with the checkpoint of its files it belongs to
 *
 *     STATE/sandboxes/NAME/live/ID/{memory,view,system,sessions,key,home}     ID: the checkpoint of the workspace
 *     STATE/sandboxes/NAME/live/layers-ID-WHEN/...                            ID, WHEN: of the point, where changes wait in layers
 *     STATE/sandboxes/NAME/live/homes                                         a store of its home, as of workspaces
 */
#ifndef VITRINE_CLI_MACHINE_H
#define VITRINE_CLI_MACHINE_H

#include "cli/spot.h"

/* A machine that stands still as long as this lasts. */
struct machine {
	int conn;
	int live, part; /* folders: live/, and the one that is being filled */
	uint64_t began;
	uint64_t memory;   /* bytes on disk */
	uint64_t sessions; /* commands that are in it */
	uint64_t lost;     /* files it has open that will not come back */
};

#define MACHINE_NONE ((struct machine){ .conn = FD_NONE, .live = FD_NONE, .part = FD_NONE })

/* Makes it still and writes down what it is. */
int machine_save(struct machine *m, const struct spot *s, struct err *e);
/* Its files are checkpoint `id`: from here on there is a checkpoint of both, or none. It goes on when this returns; how long
 * it stood still. */
int machine_keep(struct machine *m, const struct spot *s, uint64_t id, uint64_t *ret_ms,
		 struct err *e);
void machine_close(struct machine *m);
/* What was saved, as a part of an object or as lines. */
void machine_print(const struct machine *m, bool as_json);

/* Bytes of the memory that belongs to this checkpoint; 0: none does. */
uint64_t machine_bytes(const struct spot *s, uint64_t id);
/* The home that belongs to it. The sandbox must not run. */
int machine_home_back(struct spot *s, uint64_t id, struct err *e);
/* It goes on from there, behind the scenes. */
int machine_start(const struct spot *s, uint64_t id, struct err *e);
/* Those whose checkpoint has gone go too. */
int machine_prune(const struct spot *s, struct err *e);
void machine_prune_layers(const struct spot *s);

#endif
