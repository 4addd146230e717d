/* SPDX-License-Identifier: Apache-2.0 */
/* engine/container/load.c - what a container engine must find before it is started: the skeleton as an image, podman a home
 *
 * An image is loaded through the client, wherever that leads. That it is there says that we have been there before: what is
 * asked of a podman service is asked once, before the first one.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/path.h"
#include "engine/container/container.h"
#include "engine/engine.h"

#if defined(__x86_64__)
#define ARCH "amd64"
#elif defined(__aarch64__)
#define ARCH "arm64"
#else
#define ARCH "another"
#endif
#define LIKE_US "linux " ARCH " true"

/* Runs the client with `in` as its input, its output to `out` or nowhere; its exit status, or < 0. */
static int run(const char *tool, const struct args *a, char *const *env, int in, int out)
{
	int status = 0;
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		if (dup2(in >= 0 ? in : null, 0) < 0 || dup2(out >= 0 ? out : null, 1) < 0 ||
		    dup2(null, 2) < 0)
			_exit(125);
		(void)execve(tool, a->v, env);
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

/* The client did not do what was asked of it. */
static int refused(const struct engine *en, struct err *e, const char *what)
{
	_free_ char *called = en->first ? mem_fmt("%s %s", en->tool, en->first) : mem_str(en->tool);

	return err_set(e, ERR_UNSUPPORTED, ECONNREFUSED, "%s %s; does '%s info' work?", called,
		       what, called);
}

static void begin(struct args *a, const struct engine *en)
{
	args_add(a, en->tool);
	if (en->first)
		args_add(a, en->first);
}

static bool has_image(const struct engine *en, const struct plan *p, const char *tool,
		      const char *name)
{
	_cleanup_(args_done) struct args look = { 0 };

	begin(&look, en);
	args_put(&look, "image", "inspect", name, NULL);
	return run(tool, &look, p->engine_env, FD_NONE, FD_NONE) == 0;
}

static int load(const struct engine *en, const struct plan *p, const char *tool, const char *name,
		struct err *e)
{
	_cleanup_(args_done) struct args words = { 0 };
	_close_ int tar = put_tar(p, e);

	if (tar < 0)
		return tar;
	begin(&words, en);
	args_put(&words, "import", "-", name, NULL);
	if (run(tool, &words, p->engine_env, tar, FD_NONE) != 0) {
		_free_ char *what = mem_fmt("does not take the image '%s'", name);

		return refused(en, e, what);
	}
	return 0;
}

int docker_prepare(const struct plan *p, const char *tool, const char *dir, struct err *e)
{
	const struct engine *en = engine_find(p->engine);
	_free_ char *name = image_name(p);

	if (docker_has(p->engine_env, name) || has_image(en, p, tool, name))
		return 0;
	return load(en, p, tool, name, e);
}

/* System, processor and rootlessness of the other side, by its own word. */
static int ask(const struct engine *en, const struct plan *p, const char *tool, struct buf *ret,
	       struct err *e)
{
	_cleanup_(args_done) struct args words = { 0 };
	_close_ int fd = memfd_create("answer", MFD_CLOEXEC);
	char text[256];
	ssize_t n;

	if (fd < 0)
		return err_sys(e, "memfd");
	begin(&words, en);
	args_put(&words, "info", "--format",
		 "{{.Host.OS}} {{.Host.Arch}} {{.Host.Security.Rootless}}", NULL);
	if (run(tool, &words, p->engine_env, FD_NONE, fd) != 0)
		return refused(en, e, "finds no service that answers");
	n = pread(fd, text, sizeof(text), 0);
	if (n < 0)
		return err_sys(e, "answer of podman");
	n -= n > 0 && text[n - 1] == '\n';
	buf_add(ret, text, (size_t)n);
	return 0;
}

/* Root's podman has no user to keep: the inside would have ids of the host's there. And init is a program of this machine. */
int podman_remote_prepare(const struct plan *p, const char *tool, const char *dir, struct err *e)
{
	const struct engine *en = engine_find(p->engine);
	_cleanup_(buf_done) struct buf answer = BUF(4 * KIB), safe = BUF(4 * KIB);
	_free_ char *image = image_name(p);
	_free_ char *name = mem_fmt("localhost/%s", image);
	int r;

	if (has_image(en, p, tool, name))
		return 0;
	r = ask(en, p, tool, &answer, e);
	if (r < 0)
		return r;
	if (str_eq(buf_cstr(&answer), LIKE_US))
		return load(en, p, tool, name, e);
	buf_esc(&safe, answer.p, answer.n);
	return err_set(e, ERR_UNSUPPORTED, ENOTSUP,
		       "engine '%s' cannot honour: mapped ids; the service must be an ordinary "
		       "user's (rootless), of linux on " ARCH ", and says '%s'",
		       en->name, buf_cstr(&safe));
}
