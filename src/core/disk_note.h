/* SPDX-License-Identifier: Apache-2.0 */
/* core/disk_note.h - what a sandbox kept on the disk when it was last counted before a start
 *
 * Counting is a walk through its home and its layers, and a start waits for it. What they can have grown since is at most
 * what the file system has less room now, unless somebody else made room; so a count is good for a while, as long as the
 * room has not gone down by half of what the limit leaves. While it runs the keeper counts by itself (keep/disk.c), and
 * leaves its last count; where it ran for a while and was not counted it leaves none.
 */
#ifndef VITRINE_CORE_DISK_NOTE_H
#define VITRINE_CORE_DISK_NOTE_H

#include <stdbool.h>
#include <stdint.h>

#define DISK_NOTE_FILE "disk"
#define DISK_NOTE_SECONDS 600

/* What is left on a file system. */
struct disk_room {
	uint64_t bytes, files;
};

/* On the one that this lies on; false and none where it cannot be told. */
bool disk_room_find(int fd, struct disk_room *ret);

struct disk_note {
	uint64_t when; /* seconds since 1970 */
	uint64_t used; /* bytes */
	uint64_t room; /* bytes left on the file system */
};

/* Can it be relied on that no more than max is used now? */
bool disk_note_holds(const struct disk_note *n, uint64_t max, uint64_t room, uint64_t now);

/* In the sandbox's folder. What cannot be read or is not ours is none; what cannot be written is counted again. */
bool disk_note_read(int dir, struct disk_note *ret);
void disk_note_write(int dir, const struct disk_note *n);

#endif
