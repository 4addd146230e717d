/* SPDX-License-Identifier: Apache-2.0 */
/* core/workshop.c - see workshop.h
 *
 * The walls are not built a second time here: the child becomes `vitrine run` with every path it may see named as an
 * option, in an environment that leads it to an empty configuration. Pipes are handed inside as they are.
 */
#include "core/workshop.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/loop.h"
#include "base/path.h"
#include "base/sabotage.h"

#define WORDS_MAX 512

struct words_of {
	const char *v[WORDS_MAX];
	size_t n;
};

static void word(struct words_of *w, const char *text)
{
	bug_on(w->n + 1 >= WORDS_MAX);
	w->v[w->n++] = text;
	w->v[w->n] = NULL;
}

/* The program that makes sandboxes: this one, unless told otherwise. */
static const char *program = "/proc/self/exe";

void workshop_use(const char *vitrine)
{
	program = vitrine;
}

static int open_null(int fd)
{
	return fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : open("/dev/null", O_RDWR | O_CLOEXEC);
}

/* Between fork and exec: nothing but system calls. What the tool reads was made inside and may be endless, so the tool ends
 * with whoever wanted it: this process with its parent, and its sandbox with this process (--tied). */
static _Noreturn void become(char *const *argv, char *const *env, const int std[3], pid_t parent)
{
	sigset_t none;
	int fd[3];

	if (!sabotaged("tied") &&
	    (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent))
		_exit(126);
	for (int i = 0; i < 3; i++) {
		fd[i] = open_null(std[i]);
		if (fd[i] < 0)
			_exit(126);
	}
	for (int i = 0; i < 3; i++)
		if (dup2(fd[i], i) < 0)
			_exit(126);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)setsid(); /* keys of the caller's terminal are not for it */
	(void)syscall(SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC);
	(void)execve(program, argv, env);
	_exit(127);
}

static pid_t spawn(const struct words_of *argv, char *const *env, const int std[3], struct err *e)
{
	pid_t self = getpid(), pid = fork();

	if (pid == 0)
		become((char *const *)(uintptr_t)argv->v, env, std, self);
	return pid < 0 ? err_sys(e, "fork") : pid;
}

static int make_place(const char *dir, struct err *e)
{
	int r = path_make(dir, 0700);

	return r < 0 ? err_set(e, ERR_SYSTEM, -r, "'%s': %s", dir, strerrordesc_np(-r)) : 0;
}

pid_t workshop_start(const struct job *j, struct err *e)
{
	_free_ char *base = mem_fmt("%s/workshop", j->state_dir);
	_free_ char *desk = mem_fmt("%s/desk", base), *home = mem_fmt("%s/home", base);
	_free_ char *state_var = mem_fmt("XDG_STATE_HOME=%s", base);
	_free_ char *config_var = mem_fmt("XDG_CONFIG_HOME=%s/config", base);
	_free_ char *home_var = mem_fmt("HOME=%s", home);
	_free_ char *time = mem_fmt("%llu", (unsigned long long)(j->seconds ? j->seconds : 600));
	const char *env[] = {
		"PATH=/usr/bin:/bin", "USER=user", "SHELL=/bin/sh", home_var, state_var,
		config_var,           NULL
	};
	const int std[3] = { j->in, j->out, j->err };
	struct words_of w = { .n = 0 };
	int r = make_place(desk, e);

	if (r == 0)
		r = make_place(home, e);
	if (r < 0)
		return r;
	word(&w, "vitrine");
	word(&w, "run");
	word(&w, "--engine=native");
	word(&w, "--tied");
	word(&w, "--workspace");
	word(&w, desk);
	if (j->is_as_root)
		word(&w, "--as-root");
	word(&w, "--time");
	word(&w, time);
	/* Its directories are our own, and nobody on the host acts on what lies there: all of it is data. */
	word(&w, "--hide=!**");
	word(&w, "--protect=!**");
	for (size_t i = 0; i < WORKSHOP_VIEWS_MAX && j->views[i]; i++) {
		word(&w, "-v");
		word(&w, j->views[i]);
	}
	for (size_t i = 0; i < WORKSHOP_ENV_MAX && j->env[i]; i++) {
		word(&w, "-e");
		word(&w, j->env[i]);
	}
	word(&w, "--");
	for (const char *const *a = j->argv; *a; a++)
		word(&w, *a);
	return spawn(&w, (char *const *)(uintptr_t)env, std, e);
}

pid_t workshop_self(const char *const *argv, int in, int out, int err, struct err *e)
{
	const int std[3] = { in, out, err };
	struct words_of w = { .n = 0 };

	word(&w, "vitrine");
	for (; *argv; argv++)
		word(&w, *argv);
	return spawn(&w, environ, std, e);
}

int workshop_wait(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return 125;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* One that is open gives what it has. */
static int hear(struct listen *l, struct err *e)
{
	char chunk[16 * 1024];
	ssize_t n = io_read(l->fd, chunk, sizeof(chunk));

	if (n <= 0) {
		fd_close(take_fd(l->fd));
		return 0;
	}
	if (l->is_tail && l->to->n + (size_t)n > l->to->max)
		return 0;
	buf_add(l->to, chunk, (size_t)n);
	return l->to->is_over
		       ? err_set(e, ERR_SYSTEM, EMSGSIZE, "over %zu bytes of output", l->to->max)
		       : 0;
}

int workshop_listen(struct listen *v, size_t n, uint64_t seconds, struct err *e)
{
	uint64_t end = clock_now() + seconds * NS_PER_SEC;
	struct pollfd p[4];
	int r = 0;

	bug_on(n > ARRAY_LEN(p));
	while (r == 0) {
		uint64_t now = clock_now();
		size_t open = 0;

		for (size_t i = 0; i < n; i++) {
			p[i] = (struct pollfd){ .fd = v[i].fd >= 0 ? v[i].fd : -1,
						.events = POLLIN };
			open += v[i].fd >= 0;
		}
		if (open == 0)
			break;
		if (now >= end || poll(p, (nfds_t)n, (int)((end - now) / NS_PER_MS) + 1) == 0)
			r = err_set(e, ERR_SYSTEM, ETIMEDOUT, "no end after %llu s",
				    (unsigned long long)seconds);
		for (size_t i = 0; r == 0 && i < n; i++)
			if (p[i].revents)
				r = hear(&v[i], e);
	}
	for (size_t i = 0; i < n; i++)
		fd_close(take_fd(v[i].fd));
	return r;
}

char *workshop_last_line(const struct buf *b)
{
	_cleanup_(buf_done) struct buf out = BUF(64 * KIB);
	size_t end = b->n, start;

	while (end > 0 && strchr("\n\r ", b->p[end - 1]))
		end--;
	for (start = end; start > 0 && b->p[start - 1] != '\n'; start--)
		;
	if (end - start > 300)
		end = start + 300;
	buf_esc(&out, b->p ? b->p + start : "", end - start);
	return mem_str(buf_cstr(&out));
}

int workshop_run(struct job *j, struct buf *out, struct err *e)
{
	_cleanup_(buf_done) struct buf said = BUF(64 * KIB), none = BUF(64 * KIB);
	_free_ char *last = NULL;
	int o[2], x[2], r, status;
	pid_t pid;

	if (pipe2(o, O_CLOEXEC) < 0)
		return err_sys(e, "pipe");
	if (pipe2(x, O_CLOEXEC) < 0) {
		fd_close(o[0]);
		fd_close(o[1]);
		return err_sys(e, "pipe");
	}
	j->in = FD_NONE;
	j->out = o[1];
	j->err = x[1];
	pid = workshop_start(j, e);
	fd_close(o[1]);
	fd_close(x[1]);
	if (pid < 0) {
		fd_close(o[0]);
		fd_close(x[0]);
		return pid;
	}
	r = workshop_listen((struct listen[]){ { o[0], out ? out : &none, out == NULL },
					       { x[0], &said, true } },
			    2, (j->seconds ? j->seconds : 600) + 10, e);
	if (r < 0)
		(void)kill(pid, SIGKILL); /* and with it what it ran */
	status = workshop_wait(pid);
	if (r < 0 || status == 0)
		return r;
	last = workshop_last_line(&said);
	return err_set(e, ERR_SYSTEM, ECHILD, "%s: %s", j->argv[0],
		       last[0] ? last : "failed without a word");
}

/* Its own files are the caller's to remove; for others somebody must be root of their ids. Only that directory is seen. */
int workshop_remove(const char *state_dir, const char *path, struct err *e)
{
	_free_ char *view = mem_fmt("%s:/gone:rw", path);
	const char *const argv[] = { "find", "/gone", "-mindepth", "1", "-delete", NULL };
	struct job j = {
		.state_dir = state_dir, .views = { view }, .argv = argv, .is_as_root = true
	};
	int r = path_remove(AT_FDCWD, path);

	if (r == 0 || geteuid() == 0 || access(path, F_OK) < 0)
		return r;
	r = workshop_run(&j, NULL, e);
	if (r == 0)
		r = path_remove(AT_FDCWD, path);
	return r < 0 ? err_set(e, ERR_SYSTEM, -r, "'%s': %s", path, strerrordesc_np(-r)) : 0;
}

/* Ids that are not mapped, which all look like nobody's, are the host's own affair. */
int workshop_give_back(const char *state_dir, const char *workspace, struct err *e)
{
	_free_ char *view = mem_fmt("%s:/ws:rw", workspace), *uid = mem_fmt("%u", geteuid());
	_free_ char *gid = mem_fmt("%u", getegid()), *both = mem_fmt("%s:%s", uid, gid);
	const char *const argv[] = { "find", "/ws",  "-xdev", "(",  "!",     "-uid",  uid,
				     "!",    "-uid", "65534", "-o", "!",     "-gid",  gid,
				     "!",    "-gid", "65534", ")",  "-exec", "chown", "-h",
				     both,   "{}",   "+",     NULL };
	struct job j = {
		.state_dir = state_dir, .views = { view }, .argv = argv, .is_as_root = true
	};

	return workshop_run(&j, NULL, e);
}
