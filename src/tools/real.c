/* SPDX-License-Identifier: Apache-2.0 */
/* tools/real.c - from the name back to the program that was meant */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/io.h"
#include "tools/tools.h"

/* Is it this very program, by whatever name? */
static bool is_us(const char *path)
{
	static struct stat self;
	struct stat st;

	if (self.st_ino == 0 && stat("/proc/self/exe", &self) < 0)
		return false;
	return stat(path, &st) == 0 && st.st_dev == self.st_dev && st.st_ino == self.st_ino;
}

char *real_path(const char *name)
{
	const char *path = getenv("PATH");

	for (const char *p = path ? path : "/usr/local/bin:/usr/bin:/bin"; *p;) {
		size_t n = strcspn(p, ":");
		_free_ char *dir = mem_strn(p, n);
		_free_ char *full = mem_fmt("%s/%s", n ? dir : ".", name);

		if (access(full, X_OK) == 0 && !is_us(full))
			return take(full);
		p += n + (p[n] == ':');
	}
	return NULL;
}

_Noreturn void real_exec(const char *name, char *const *argv)
{
	_free_ char *path = real_path(name);

	if (path)
		(void)execv(path, argv);
	(void)fprintf(stderr, "%s: %s\n", name, path ? strerror(errno) : "command not found");
	exit(path ? 126 : 127);
}

int real_run(const char *name, const char *const *argv, struct buf *out)
{
	_free_ char *path = real_path(name);
	int fds[2], status = 0;
	struct err e = ERR_INIT;
	pid_t pid;

	if (path == NULL || pipe2(fds, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		(void)dup2(null, 0);
		(void)dup2(fds[1], 1); /* NOLINT(android-cloexec-dup): it is the child's output */
		(void)dup2(null, 2);
		(void)execv(path, (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	fd_close(fds[1]);
	if (pid > 0)
		(void)io_read_fd(fds[0], out, &e); /* what is too much is not wanted */
	fd_close(fds[0]);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	while (out->n > 0 && out->p[out->n - 1] == '\n')
		out->p[--out->n] = '\0';
	return WEXITSTATUS(status);
}
