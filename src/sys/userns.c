/* SPDX-License-Identifier: Apache-2.0 */
/* sys/userns.c - see userns.h */
#include "sys/userns.h"

#include <fcntl.h>
#include <sched.h>

#include "base/io.h"

static int put(const char *path, const char *text)
{
	_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -errno : io_write_all(fd, text, strlen(text));
}

int userns_enter(uid_t uid, gid_t gid, int also)
{
	char uids[40], gids[40];
	int r;

	(void)snprintf(uids, sizeof(uids), "%u %u 1\n", uid, geteuid());
	(void)snprintf(gids, sizeof(gids), "%u %u 1\n", gid, getegid());
	if (unshare(CLONE_NEWUSER | also) < 0)
		return -errno;
	r = put("/proc/self/setgroups", "deny");
	if (r == 0)
		r = put("/proc/self/uid_map", uids);
	return r < 0 ? r : put("/proc/self/gid_map", gids);
}
