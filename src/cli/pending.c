/* SPDX-License-Identifier: Apache-2.0 */
/* cli/pending.c - see pending.h */
#include "cli/pending.h"

#include <fcntl.h>

bool pending_is_id(const char *name)
{
	return strlen(name) == PENDING_ID_CHARS &&
	       strspn(name, "0123456789abcdef") == PENDING_ID_CHARS;
}

int pending_open(const char *state_dir, const char *name)
{
	_free_ char *path = mem_fmt("%s/sandboxes/%s/broker/pending", state_dir, name);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}
