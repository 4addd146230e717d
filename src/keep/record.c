/* SPDX-License-Identifier: Apache-2.0 */
/* keep/record.c - see record.h */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/io.h"
#include "keep/record.h"

static void open_file(struct record *r)
{
	r->n = 0;
	r->fd = openat(r->dir, "output",
		       O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC | O_APPEND, 0600);
	r->has_failed = r->fd < 0;
}

void record_open(struct record *r, int sessions, uint32_t number)
{
	char name[16];

	(void)snprintf(name, sizeof(name), "%u", number);
	if (mkdirat(sessions, name, 0700) < 0 && errno != EEXIST) {
		r->has_failed = true;
		return;
	}
	r->dir = openat(sessions, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r->has_failed = r->dir < 0;
	if (r->dir >= 0)
		open_file(r);
}

void record_add(struct record *r, const char *p, size_t n)
{
	if (r->fd < 0 || r->has_failed)
		return;
	if (r->n + n > RECORD_MAX) {
		fd_close(r->fd);
		(void)renameat(r->dir, "output", r->dir, "output.1"); /* else it is cut */
		open_file(r);
	}
	if (r->fd >= 0 && io_write_all(r->fd, p, n) < 0)
		r->has_failed = true;
	r->n += n;
}

void record_close(struct record *r)
{
	fd_close(r->fd);
	fd_close(r->dir);
	*r = RECORD_NONE;
}
