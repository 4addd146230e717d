/* SPDX-License-Identifier: Apache-2.0 */
/* broker/run.c - one program outside, in a child of its own
 *
 * The child has no descriptor, variable or file that is not named here: the broker's short environment plus what the task
 * adds, a Landlock domain of system directories to read and one or two places to write, as much of a network as its errand
 * needs (none, unless the task says so), a time, and a size for what it writes. Between fork and exec nothing is allocated.
 */
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/loop.h"
#include "base/path.h"
#include "broker/broker.h"

#define FILE_MAX_BYTES (4 * GIB)
#define LISTS 40
#define CHUNK 16384

static const char *const system_paths[] = { "/usr",
					    "/bin",
					    "/sbin",
					    "/lib",
					    "/lib32",
					    "/lib64",
					    "/nix",
					    "/opt",
					    "/etc",
					    "/dev/urandom",
					    "/dev/random",
					    "/dev/zero",
					    "/run/systemd/resolve",
					    "/run/resolvconf",
					    "/run/NetworkManager",
					    "/proc/self" };

struct child {
	const char *read[LISTS], *write[LISTS];
	const char *env[LISTS];
	struct confine_program walls;
};

static void put(const char **v, const char *s)
{
	size_t n = 0;

	while (v[n])
		n++;
	bug_on(n == LISTS - 1);
	v[n] = s;
}

/* The task's own port and those of the proxies that curl and gh would go through. */
static void put_ports(const struct task *j, struct child *c)
{
	size_t n = 0;

	c->walls.ports[n++] = j->port;
	for (size_t i = 0; c->env[i] && n < CONFINE_PORTS - 1; i++) {
		const char *value = strchr(c->env[i], '=');
		size_t len = value ? (size_t)(value - c->env[i]) : 0;

		if (len < 6 || strncasecmp(value - 6, "_proxy", 6) != 0 ||
		    str_starts(c->env[i], "no_") || str_starts(c->env[i], "NO_"))
			continue;
		/* curl takes a proxy without a port for one on 1080, Go by its scheme. */
		c->walls.ports[n] = url_port(value + 1, str_starts(value + 1, "https:")  ? 443
							: str_starts(value + 1, "http:") ? 80
											 : 1080);
		n += c->walls.ports[n] != 0;
	}
}

static void prepare(const struct broker *b, const struct task *j, const char *home, struct child *c)
{
	*c = (struct child){ 0 };
	for (size_t i = 0; i < ARRAY_LEN(system_paths) && !j->reads_all; i++)
		put(c->read, system_paths[i]);
	if (j->reads_all)
		put(c->read, "/");
	for (size_t i = 0; j->read[i]; i++)
		put(c->read, j->read[i]);
	if (j->sees_home && home)
		put(c->read, home);
	put(c->write, "/dev/null");
	for (size_t i = 0; j->write[i]; i++)
		put(c->write, j->write[i]);
	for (size_t i = 0; b->env && b->env[i]; i++) {
		put(c->env, b->env[i]);
		/* A bundle of certificates of the user's own. */
		if (str_starts(b->env[i], "SSL_CERT_FILE=/") || str_starts(b->env[i], "GIT_SSL_"
										      "CAINFO=/"))
			put(c->read, strchr(b->env[i], '/'));
	}
	for (size_t i = 0; j->env && j->env[i]; i++)
		put(c->env, j->env[i]);
	c->walls = (struct confine_program){ .read = c->read, .write = c->write, .net = j->net };
	if (j->net == CONFINE_WEB)
		put_ports(j, c);
}

static void limit(const struct task *j)
{
	struct rlimit cpu = { j->seconds, j->seconds }, size = { FILE_MAX_BYTES, FILE_MAX_BYTES },
		      none = { 0, 0 };

	(void)setrlimit(RLIMIT_CPU, &cpu);
	(void)setrlimit(RLIMIT_FSIZE, &size);
	(void)setrlimit(RLIMIT_CORE, &none);
}

static _Noreturn void become(const struct broker *b, const struct task *j, const struct child *c,
			     const int io[3])
{
	int in = fcntl(io[0], F_DUPFD_CLOEXEC, 32), out = fcntl(io[1], F_DUPFD_CLOEXEC, 32),
	    err = fcntl(io[2], F_DUPFD_CLOEXEC, 32);
	struct err e = ERR_INIT;

	limit(j);
	/* NOLINTBEGIN(android-cloexec-dup): these are the program's */
	if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0 ||
	    chdir(j->cwd ? j->cwd : b->dir) < 0 || confine_program(&c->walls, &e) < 0) {
		(void)dprintf(2, "%s\n", e.kind ? e.msg : strerror(errno));
		_exit(126);
	}
	(void)syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
	/* NOLINTEND(android-cloexec-dup) */
	(void)signal(SIGPIPE, SIG_DFL);
	(void)execve(j->program, (char *const *)(uintptr_t)j->argv,
		     (char *const *)(uintptr_t)c->env);
	(void)dprintf(2, "%s: %s\n", j->program, strerror(errno));
	_exit(127);
}

static char *ssh_dir(const struct broker *b)
{
	for (char **v = b->env; v && *v; v++)
		if (str_starts(*v, "HOME=/"))
			return mem_fmt("%s/.ssh", *v + 5);
	return NULL;
}

/* ---- and wait for it ---- */

struct pipes {
	int out[2], err[2];
};

static int open_pipes(struct pipes *p)
{
	*p = (struct pipes){ .out = { FD_NONE, FD_NONE }, .err = { FD_NONE, FD_NONE } };
	return pipe2(p->out, O_CLOEXEC) < 0 || pipe2(p->err, O_CLOEXEC) < 0 ? -errno : 0;
}

static void close_pipes(struct pipes *p)
{
	fd_close(p->out[0]);
	fd_close(p->err[0]);
	fd_close(p->out[1]);
	fd_close(p->err[1]);
}

/* A page that is full ends at the end of a line. */
static bool cut_when_full(const struct task *j, size_t more)
{
	struct buf *b = j->text;

	if (j->is_cut == NULL || b == NULL || b->n + more < b->max)
		return false;
	while (b->n > 0 && b->p[b->n - 1] != '\n')
		b->p[--b->n] = '\0';
	*j->is_cut = true;
	return true;
}

/* false: that stream has ended. */
static bool take_some(int fd, struct buf *to)
{
	char chunk[CHUNK];
	ssize_t n = read(fd, chunk, sizeof(chunk));

	if (n > 0 && to)
		buf_add(to, chunk, (size_t)n); /* too much of it: is_over is looked at in the end */
	return n > 0 || (n < 0 && errno == EINTR);
}

/* 0: both streams have ended; 1: the text was cut. */
static int collect(const struct task *j, struct pipes *p, struct err *e)
{
	uint64_t end = clock_now() + j->seconds * NS_PER_SEC;
	struct pollfd v[2] = { { .fd = p->out[0], .events = POLLIN },
			       { .fd = p->err[0], .events = POLLIN } };

	while (v[0].fd >= 0 || v[1].fd >= 0) {
		uint64_t now = clock_now();

		if (now >= end || poll(v, 2, (int)((end - now) / NS_PER_MS) + 1) == 0)
			return err_set(e, ERR_SYSTEM, ETIMEDOUT, "'%s' did not end within %u s",
				       path_name(j->program), j->seconds);
		if (v[0].revents && cut_when_full(j, CHUNK + 1))
			return 1;
		if (v[0].revents && !take_some(v[0].fd, j->text))
			v[0].fd = -1;
		if (v[1].revents && !take_some(v[1].fd, j->errors))
			v[1].fd = -1;
		if (j->text && j->text->is_over)
			return err_set(e, ERR_SYSTEM, EMSGSIZE, "'%s' says too much",
				       path_name(j->program));
	}
	return 0;
}

int task_run(const struct broker *b, const struct task *j, struct err *e)
{
	_free_ char *home = ssh_dir(b);
	_close_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct child c;
	struct pipes p;
	int status = 0, r;
	pid_t pid;

	prepare(b, j, home, &c);
	if (null < 0 || open_pipes(&p) < 0)
		return err_sys(e, "pipe");
	pid = fork();
	if (pid == 0) {
		int io[3] = { j->in >= 0 ? j->in : null, j->out >= 0 ? j->out : p.out[1],
			      p.err[1] };

		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)setpgid(0, 0);
		become(b, j, &c, io);
	}
	fd_close(take_fd(p.out[1]));
	fd_close(take_fd(p.err[1]));
	r = pid < 0 ? err_sys(e, "fork") : collect(j, &p, e);
	close_pipes(&p);
	if (pid < 0)
		return r;
	(void)setpgid(pid, pid); /* whoever comes first */
	if (r != 0)
		(void)kill(-pid, SIGKILL);
	(void)waitpid(pid, &status, 0);
	(void)kill(-pid, SIGKILL); /* nothing it started stays */
	if (r != 0)
		return r < 0 ? r : 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int task_check_program(const struct broker *b, const char *path, struct err *e)
{
	_free_ char *real = NULL;
	struct stat st;
	int r = path_real(path, &real, e);

	if (r < 0)
		return r;
	for (size_t i = 0; i < b->n_closed; i++)
		if (path_is_beneath(real, b->closed[i]))
			return err_set(e, ERR_DENIED, EPERM,
				       "'%s' lies where what runs inside can write", real);
	if (stat(real, &st) < 0 || !S_ISREG(st.st_mode) || access(real, X_OK) < 0)
		return err_set(e, ERR_DENIED, EPERM, "'%s' is no program", real);
	if ((st.st_uid != 0 && st.st_uid != geteuid()) || (st.st_mode & S_IWOTH))
		return err_set(e, ERR_DENIED, EPERM, "'%s' can be changed by others", real);
	return 0;
}
