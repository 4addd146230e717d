/* SPDX-License-Identifier: Apache-2.0 */
/* secret/command.c - see secret.h: the output of a host command, within a time and a size
 *
 * The command is the user's own (`gh auth token`, secret-tool) and runs with the user's rights and environment. Its
 * words on stderr are the user's to see.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/loop.h"
#include "secret/secret.h"

#define COMMAND_TIME (30 * NS_PER_SEC)

static pid_t start(const char *const *argv, int in[2], int out[2])
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	(void)signal(SIGPIPE, SIG_DFL);
	if (dup2(in[0], 0) < 0 || dup2(out[1], 1) < 0)
		_exit(126);
	(void)execvp(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

/* Reads until the end or the deadline. */
static int take_output(int fd, struct buf *out, struct err *e)
{
	uint64_t end = clock_now() + COMMAND_TIME;
	char chunk[1024];
	int r = 0;

	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		uint64_t now = clock_now();
		ssize_t n;

		if (now >= end || poll(&p, 1, (int)((end - now) / NS_PER_MS)) == 0) {
			r = err_set(e, ERR_SYSTEM, ETIMEDOUT, "no answer within 30 s");
			break;
		}
		n = read(fd, chunk, sizeof(chunk));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		buf_add(out, chunk, (size_t)n);
		if (out->is_over) {
			r = err_set(e, ERR_SYSTEM, EMSGSIZE, "over %zu bytes of output",
				    SECRET_VALUE_MAX);
			break;
		}
	}
	explicit_bzero(chunk, sizeof(chunk));
	return r;
}

int secret_run(const char *const *argv, struct str in, struct buf *out, struct err *e)
{
	int to[2], from[2], status = 0, r;
	pid_t pid;

	if (pipe2(to, O_CLOEXEC) < 0)
		return err_sys(e, "pipe");
	if (pipe2(from, O_CLOEXEC) < 0) {
		fd_close(to[0]);
		fd_close(to[1]);
		return err_sys(e, "pipe");
	}
	pid = start(argv, to, from);
	fd_close(to[0]);
	fd_close(from[1]);
	if (pid > 0 && in.n > 0)
		(void)io_write_all(to[1], in.p,
				   in.n); /* one that does not read says so by its status */
	fd_close(to[1]);
	r = pid < 0 ? err_sys(e, "fork") : take_output(from[0], out, e);
	fd_close(from[0]);
	if (pid > 0) {
		if (r < 0)
			(void)kill(pid, SIGKILL);
		(void)waitpid(pid, &status, 0);
	}
	if (r >= 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
		r = err_set(e, ERR_SYSTEM, ECHILD, "it ended with status %d",
			    WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	if (r >= 0 && out->n > 0 && out->p[out->n - 1] == '\n')
		out->p[--out->n] = '\0';
	return r < 0 ? err_wrap(e, r, "'%s'", argv[0]) : 0;
}
