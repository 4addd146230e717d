/* SPDX-License-Identifier: Apache-2.0 */
/* engine/container/load.c - what a container engine must find before it is started: docker the skeleton, podman a home */
#include <fcntl.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/path.h"
#include "engine/container/container.h"
#include "engine/engine.h"

/* Runs it with `in` as its input and nothing of its output kept; its exit status, or < 0. */
static int run(const char *tool, char *const *argv, char *const *env, int in)
{
	int status = 0;
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		if (dup2(in >= 0 ? in : null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
			_exit(125);
		(void)execve(tool, argv, env);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static int put_tar(const struct plan *p, struct err *e)
{
	_cleanup_(buf_done) struct buf tar = BUF(64 * MIB);
	_close_ int fd = FD_NONE;
	_free_ char *path = mem_fmt("%s/engine", p->state_dir);
	int r = image_tar(p, &tar, e);

	if (r < 0)
		return r;
	fd = open(path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0 || io_write_all(fd, tar.p, tar.n) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return err_sys(e, "image of the skeleton");
	return take_fd(fd);
}

/* Its tidying up, after the end, does not begin without one, and then the end of a run is waited for in vain. */
int podman_prepare(const struct plan *p, const char *tool, const char *dir, struct err *e)
{
	_free_ char *home = mem_fmt("%s/podman/home", p->state_dir);
	int r = p->ids.is_root ? 0 : path_make(home, 0700); /* root's is in memory */

	return r < 0 ? err_set(e, ERR_SYSTEM, -r, "'%s': %s", home, strerrordesc_np(-r)) : 0;
}

int docker_prepare(const struct plan *p, const char *tool, const char *dir, struct err *e)
{
	_free_ char *name = image_name(p);
	char *const look[] = { (char *)(uintptr_t) "docker", (char *)(uintptr_t) "image",
			       (char *)(uintptr_t) "inspect", name, NULL };
	char *const load[] = { (char *)(uintptr_t) "docker", (char *)(uintptr_t) "import",
			       (char *)(uintptr_t) "-", name, NULL };
	_close_ int tar = FD_NONE;
	int r;

	if (docker_has(p->engine_env, name) || run(tool, look, p->engine_env, FD_NONE) == 0)
		return 0;
	tar = put_tar(p, e);
	if (tar < 0)
		return tar;
	r = run(tool, load, p->engine_env, tar);
	if (r != 0)
		return err_set(e, ERR_UNSUPPORTED, ECONNREFUSED,
			       "docker does not take the image '%s'; does 'docker info' work?",
			       name);
	return 0;
}
