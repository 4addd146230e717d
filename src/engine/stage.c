/* SPDX-License-Identifier: Apache-2.0 */
/* engine/stage.c - a user namespace to start an OCI runtime in
 *
 * Runtimes want to be root while they build a container. An ordinary user can be: in a user namespace where the one id
 * they have is 0. A runtime started there needs no set-uid helper and no ranges of subordinate ids, and what it starts
 * has no id of the host but the user's own. Runs between fork and exec.
 */
#include <linux/magic.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/vfs.h>

#include "engine/engine.h"
#include "sys/userns.h"

#define UNIFIED "/sys/fs/cgroup/unified"

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
	bool hides = stage_is_hybrid();
	int r = userns_enter(0, 0, hides ? CLONE_NEWNS : 0);

	return r == 0 && hides ? hide_unified() : r;
}
