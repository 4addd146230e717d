/* SPDX-License-Identifier: Apache-2.0 */
/* engine/stage.c - a user namespace to start an OCI runtime in
 *
 * Runtimes want to be root while they build a container. An ordinary user can be: in a user namespace where the one id
 * they have is 0. A runtime started there needs no set-uid helper and no ranges of subordinate ids, and what it starts
 * has no id of the host but the user's own. Runs between fork and exec.
 *
 * A runtime of several processes that is killed while it starts may leave one of them that waits for ever: it is made the
 * first of a pid namespace, and none outlives it.
 */
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "base/title.h"
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
	if (mount("none", UNIFIED, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k") < 0)
		return -errno;
	return 0;
}

/* Holds nothing of what the tool was given, so that its end is seen by everybody. */
static _Noreturn void outlive(pid_t pid)
{
	int status = 0;

	title_set("vitrine stage");
	(void)prctl(PR_SET_NAME, "vitrine-stage");
	(void)syscall(SYS_close_range, 0, ~0U, 0);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 125);
}

/* In a new pid namespace: returns in its first process, whose end, however it comes, is the end of all the others. It ends
 * with the process that waits for it here, as that one ends with the keeper. */
static int become_first(void)
{
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid > 0)
		outlive(pid);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	return mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0 ? -errno
											  : 0;
}

int stage_enter(const struct engine *en)
{
	bool hides = en->minds_hybrid && stage_is_hybrid();
	int also = (hides || en->seals_itself || en->leaves_some ? CLONE_NEWNS : 0) |
		   (en->leaves_some ? CLONE_NEWPID : 0);
	int r = userns_enter(0, 0, also);

	if (r == 0 && (hides || en->leaves_some) &&
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		r = -errno;
	if (r == 0 && hides)
		r = hide_unified();
	return r == 0 && en->leaves_some ? become_first() : r;
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
