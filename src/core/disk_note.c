/* SPDX-License-Identifier: Apache-2.0 */
/* core/disk_note.c - see disk_note.h */
#include "core/disk_note.h"

#include <fcntl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/base.h"
#include "base/io.h"

bool disk_room_find(int fd, struct disk_room *ret)
{
	struct statfs fs;

	*ret = (struct disk_room){ 0 };
	if (fstatfs(fd, &fs) < 0)
		return false;
	*ret = (struct disk_room){ .bytes = (uint64_t)fs.f_bfree * (uint64_t)fs.f_bsize,
				   .files = (uint64_t)fs.f_ffree };
	return true;
}

bool disk_note_holds(const struct disk_note *n, uint64_t max, uint64_t room, uint64_t now)
{
	uint64_t gone = room < n->room ? n->room - room : 0;

	if (n->used > max || now < n->when || now - n->when > DISK_NOTE_SECONDS)
		return false;
	return gone <= (max - n->used) / 2;
}

bool disk_note_read(int dir, struct disk_note *ret)
{
	_close_ int fd = openat(dir, DISK_NOTE_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct disk_note n[2]; /* not one byte more than one */

	if (fd < 0 || io_read(fd, n, sizeof(n)) != (ssize_t)sizeof(n[0]))
		return false;
	*ret = n[0];
	return true;
}

void disk_note_write(int dir, const struct disk_note *n)
{
	_close_ int fd = openat(dir, DISK_NOTE_FILE,
				O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd >= 0)
		(void)io_write_all(fd, n, sizeof(*n)); /* half of it is none */
}
