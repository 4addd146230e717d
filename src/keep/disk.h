/* SPDX-License-Identifier: Apache-2.0 */
/* keep/disk.h - when to look at what a sandbox keeps on the disk: decisions, without a clock or a file of their own */
#ifndef VITRINE_KEEP_DISK_H
#define VITRINE_KEEP_DISK_H

#include "core/disk_note.h"
#include "core/layers.h"

/* The last walk, and the room that there was when it began. */
struct disk_seen {
	bool is_known;
	uint64_t used, names;
	struct disk_room room;
	uint64_t ended_ns, cost_ns;
};

/* Is another walk due, with so much room left now? */
bool disk_is_due(const struct disk_seen *s, uint64_t max, const struct disk_room *room,
		 uint64_t now_ns);
/* How long until the room is looked at again. */
uint64_t disk_next(const struct disk_seen *s, uint64_t max);
/* As many names as a private file system of that size would have; see plan_limits(). */
uint64_t disk_names(uint64_t max);
bool disk_is_over(const struct disk_use *u, uint64_t max);

#endif
