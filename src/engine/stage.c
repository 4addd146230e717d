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
#include <sys/syscall.h>
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

int stage_enter(const struct engine *en)
{
	bool has_mounts = en->seals_itself;
	bool hides = en->minds_hybrid && stage_is_hybrid();
	int r = userns_enter(0, 0, hides || has_mounts ? CLONE_NEWNS : 0);

	return r == 0 && hides ? hide_unified() : r;
}

/* What is inside could reach the program's file through its own /proc, so such a runtime first makes itself a read-only
 * mount of it and starts from there anew. The mount can as well be there when it starts; that is how it knows. */
static int open_sealed(const char *program)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
	_close_ int fd = open_tree(AT_FDCWD, program, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (fd < 0 || mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return -errno;
	return take_fd(fd);
}

void stage_exec_sealed(char *const *argv, char *const *env)
{
	_close_ int fd = open_sealed(argv[0]);
	_free_ char **with = NULL;
	size_t n = 0;

	if (fd < 0)
		return; /* it will do so itself */
	while (env[n])
		n++;
	with = mem_new(n + 2, sizeof(*with));
	memcpy(with, env, n * sizeof(*with));
	with[n] = (char *)(uintptr_t) "_LIBCONTAINER_CLONED_BINARY=1";
	with[n + 1] = NULL;
	(void)syscall(SYS_execveat, fd, "", argv, with, AT_EMPTY_PATH);
}
