/* SPDX-License-Identifier: Apache-2.0 */
/* engine/stage.c - a user namespace to start an OCI runtime in
 *
 * Runtimes want to be root while they build a container. An ordinary user can be: in a user namespace where the one id
 * they have is 0. A runtime started there needs no set-uid helper and no ranges of subordinate ids, and what it starts
 * has no id of the host but the user's own. Runs between fork and exec.
 */
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/vfs.h>

#include "base/io.h"
#include "engine/engine.h"

#define UNIFIED "/sys/fs/cgroup/unified"

static int put(const char *path, const char *text)
{
	_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -errno : io_write_all(fd, text, strlen(text));
}

/* Both versions of control groups at once: crun refuses to start there, though it is told to leave them alone. */
bool stage_is_hybrid(void)
{
	struct statfs fs;

	return statfs(UNIFIED, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC;
}

static int hide_unified(void)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", UNIFIED, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k") < 0)
		return -errno;
	return 0;
}

int stage_enter(void)
{
	char map[32];
	uid_t uid = geteuid();
	gid_t gid = getegid();
	bool hides = stage_is_hybrid();
	int r;

	if (unshare(CLONE_NEWUSER | (hides ? CLONE_NEWNS : 0)) < 0)
		return -errno;
	r = put("/proc/self/setgroups", "deny");
	(void)snprintf(map, sizeof(map), "0 %u 1\n", uid);
	if (r == 0)
		r = put("/proc/self/uid_map", map);
	(void)snprintf(map, sizeof(map), "0 %u 1\n", gid);
	if (r == 0)
		r = put("/proc/self/gid_map", map);
	if (r == 0 && hides)
		r = hide_unified();
	return r;
}
