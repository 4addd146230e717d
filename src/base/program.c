/* SPDX-License-Identifier: Apache-2.0 */
/* base/program.c - find the programs that are too heavy to be linked into the one people type
 *
 * A program that links libraries costs milliseconds to load, so each has its own file. Whoever could choose which file
 * is run in our name could run anything in it: only where our own file lies decides. And whoever could write to that
 * file could too: it must belong to root or to the owner of ours, and be writable by nobody else.
 */
#include "base/program.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/path.h"
#include "base/sabotage.h"

static int check_owner(const char *path, const char *self, struct err *e)
{
	struct stat st, own;

	if (stat(path, &st) < 0 || stat(self, &own) < 0)
		return err_sys(e, "'%s'", path);
	if (!S_ISREG(st.st_mode) || (st.st_uid != 0 && st.st_uid != own.st_uid) ||
	    (st.st_mode & S_IWOTH) || (st.st_mode & S_IWGRP && st.st_gid != own.st_gid))
		return err_set(e, ERR_CONFIG, EPERM,
			       "'%s' is not run: others than the owner of this program could have "
			       "written it; 'make install' puts a new one there",
			       path);
	return 0;
}

int program_find(const char *name, char **ret, struct err *e)
{
	static const char *const places[] = { "", "../libexec/vitrine/", "../../bin/" };
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		return err_sys(e, "where this program lies");
	self[n] = '\0';
	_free_ char *dir = path_parent(self);

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		_free_ char *rel = mem_fmt("%s%s", places[i], name);
		_free_ char *path = path_join(dir, rel);

		if (access(path, X_OK) == 0) {
			int r = check_owner(path, self, e);

			if (r < 0)
				return r;
			*ret = take(path);
			return 0;
		}
	}
	return err_set(e, ERR_NOTFOUND, ENOENT,
		       "%s is missing: it belongs beside this program or into ../libexec/vitrine; "
		       "'make install' puts it there",
		       name);
}

int program_exec(const char *name, char *const argv[], struct err *e)
{
	_free_ char *path = NULL;
	int r = program_find(name, &path, e);

	if (r < 0 || path == NULL)
		return r;
	(void)execv(path, argv);
	return err_sys(e, "'%s'", path);
}

static int program_wait(pid_t pid, const char *name, struct err *e)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_sys(e, "waitpid");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return err_set(e, ERR_UNSUPPORTED, ENOENT,
			       "this needs '%s', which is not installed", name);
	return err_set(e, ERR_SYSTEM, ECHILD, "'%s' failed", name);
}

/* In the child: a tool whose result nobody waits for any more must not go on writing. */
static void end_with_parent(void)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
}

int program_run(const char *const *argv, const char *const *env, struct err *e)
{
	pid_t pid = fork();

	if (pid == 0) {
		end_with_parent();
		(void)dup2(2, 1);
		if (env)
			environ = (char **)(uintptr_t)env;
		(void)execvp(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	return pid < 0 ? err_sys(e, "fork") : program_wait(pid, argv[0], e);
}

/* What goes over the ceiling is read and thrown away, so that nobody waits for us. */
static void hear(int fd, struct buf *said)
{
	char chunk[4096];
	ssize_t n;

	while ((n = io_read(fd, chunk, sizeof(chunk))) > 0)
		if (said->n + (size_t)n < said->max)
			buf_add(said, chunk, (size_t)n);
}

int program_hear(const char *const *argv, struct buf *said, struct err *e)
{
	int pair[2];
	pid_t pid;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return err_sys(e, "pipe");
	pid = fork();
	if (pid == 0) {
		end_with_parent();
		if (dup2(pair[1], 1) < 0 || dup2(pair[1], 2) < 0)
			_exit(126);
		(void)execvp(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	fd_close(pair[1]);
	if (pid > 0)
		hear(pair[0], said);
	fd_close(pair[0]);
	return pid < 0 ? err_sys(e, "fork") : program_wait(pid, argv[0], e);
}

#define BECOME_MAX 4
#define FAR 16 /* out of the way of the places */

_Noreturn void program_become(const char *path, const char *name, const char *role, const int *fds,
			      size_t n)
{
	char *const argv[] = { (char *)(uintptr_t)name, (char *)(uintptr_t)role, NULL };
	int far[BECOME_MAX], null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (n > BECOME_MAX || null < 0)
		_exit(125);
	for (size_t i = 0; i < n; i++)
		far[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, FAR);
	for (int i = 0; i < 3; i++)
		if (dup2(null, i) < 0)
			_exit(125);
	for (size_t i = 0; i < n; i++)
		if (far[i] < 0 || dup2(far[i], 3 + (int)i) < 0)
			_exit(125);
	(void)syscall(SYS_close_range, 3 + (unsigned)n, ~0U, 0);
	(void)execve(path, argv, sabotage_bare_env());
	_exit(127);
}
