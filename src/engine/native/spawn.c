/* SPDX-License-Identifier: Apache-2.0 */
/* engine/native/spawn.c - see spawn.h
 *
 * Commands are started with vfork: the child shares our memory until execve, so a failed execve is known at once.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/sabotage.h"
#include "engine/native/spawn.h"
#include "sys/spread.h"

/* ---- in the vfork child: only system calls, no return ---- */

static void reset_signals(const struct command *c)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int s = 1; s < 32; s++)
		if (s != SIGKILL && s != SIGSTOP && (c->signals == 0 || c->signals & BIT(s)))
			(void)sigaction(s, &dfl,
					NULL); /* the list is fixed; failure is impossible */
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* As the shell does: a name with a slash is a path, else each directory of PATH is tried. */
static void exec_search(struct command *c)
{
	const char *name = c->argv[0];
	const char *dir = c->path;
	int error = ENOENT;
	char path[4096];

	if (strchr(name, '/') || name[0] == '\0') {
		(void)execve(name, c->argv, c->env);
		c->error = errno;
		return;
	}
	for (;;) {
		size_t n = strcspn(dir, ":");

		if (n + strlen(name) + 2 <= sizeof(path)) {
			memcpy(path, dir, n);
			(void)snprintf(path + n, sizeof(path) - n, "%s%s", n ? "/" : "./", name);
			(void)execve(path, c->argv, c->env);
			if (errno != ENOENT && errno != ENOTDIR)
				error = errno;
			if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
				break;
		}
		if (dir[n] == '\0')
			break;
		dir += n + 1;
	}
	c->error = error;
}

/* A child of our parent's, so that the command finds no child it did not make. With memory of its own: it goes on. */
static void sit_beside(struct command *c)
{
	c->beside_pid = (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL);
	if (c->beside_pid == 0)
		c->beside(c);
}

static _Noreturn void become(struct command *c)
{
	int fd[3];

	(void)setsid(); /* fails only for a group leader, which a fresh child is not */
	if (c->pty >= 0 && ioctl(c->pty, TIOCSCTTY, 0) < 0)
		goto failed;
	if (c->beside)
		sit_beside(c);
	/* First out of the way of 0, 1 and 2, then onto them. */
	for (int i = 0; i < 3; i++) {
		fd[i] = c->fd[i] > 2 ? c->fd[i] : fcntl(c->fd[i], F_DUPFD_CLOEXEC, 3);
		if (fd[i] < 0)
			goto failed;
	}
	for (int i = 0; i < 3; i++)
		if (dup2(fd[i], i) < 0)
			goto failed;
	if (chdir(c->cwd) < 0) {
		c->is_chdir = 1;
		goto failed;
	}
	if (!sabotaged("fds"))
		(void)syscall(SYS_close_range, 3, ~0U, 0);
	reset_signals(c);
	if (c->open_files && !sabotaged("inflight")) {
		int r = rlimit_set(RLIMIT_NOFILE, c->open_files);

		errno = -r;
		if (r < 0)
			goto failed;
	}
	/* Our parent wakes when we are the command, on another processor, and both go on. */
	spread_child(getppid());
	spread_free();
	exec_search(c);
	_exit(127);
failed:
	c->error = errno;
	_exit(126);
}

static const char *env_path(char *const *env)
{
	for (; *env; env++)
		if (str_starts(*env, "PATH="))
			return *env + 5;
	return "/usr/local/bin:/usr/bin:/bin";
}

/* By name: in the sandbox's own /dev/pts there is nobody to put another terminal there. */
static int open_peer(int master)
{
	char path[32];
	unsigned n;

	if (ioctl(master, TIOCGPTN, &n) < 0)
		return -1;
	(void)snprintf(path, sizeof(path), "/dev/pts/%u", n);
	return open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
}

int command_pty(uint16_t rows, uint16_t cols, int *ret_slave)
{
	struct winsize size = { .ws_row = rows ? rows : 24, .ws_col = cols ? cols : 80 };
	_close_ int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	int unlock = 0, slave;

	if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) < 0)
		return -errno;
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0 && (errno == ENOTTY || errno == EINVAL)) /* gVisor's kernel */
		slave = open_peer(master);
	if (slave < 0)
		return -errno;
	(void)ioctl(master, TIOCSWINSZ, &size); /* a wrong size is not worth a failure */
	*ret_slave = slave;
	return take_fd(master);
}

/* In a function of its own: after vfork, locals of the caller must not live in registers the child may use. */
static __attribute__((noinline)) pid_t spawn(struct command *c)
{
	pid_t pid =
		vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork): see the file's head */

	if (pid == 0)
		become(c); /* NOLINT(clang-analyzer-unix.Vfork): system calls and its own struct only */
	if (pid < 0)
		c->error = errno;
	return pid;
}

pid_t command_spawn(struct command *c)
{
	pid_t pid;

	c->path = env_path(c->env);
	pid = spawn(c);
	if (pid > 0 && c->error) {
		(void)waitpid(pid, NULL, 0); /* it is our own child, and dead */
		return -1;
	}
	return pid;
}

static uint64_t ns_of(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * NS_PER_SEC + (uint64_t)t->tv_usec * 1000;
}

void command_used(const struct rusage *used, uint64_t *ret_cpu_ns, uint64_t *ret_rss)
{
	*ret_cpu_ns = ns_of(&used->ru_utime) + ns_of(&used->ru_stime);
	*ret_rss = (uint64_t)used->ru_maxrss * KIB;
}

/* ---- requests ---- */

bool request_is_head(const struct request_head *head)
{
	return head->magic == REQUEST_MAGIC && head->bytes <= REQUEST_MAX && head->argc > 0 &&
	       head->argc <= head->bytes && head->envc <= head->bytes;
}

/* The request's strings, checked: every one ends inside the mapping. */
static bool split(const struct request_head *h, char *text, char **strings)
{
	size_t left = h->bytes, n = (size_t)h->argc + h->envc + 1;

	for (size_t i = 0; i < n; i++) {
		size_t len = strnlen(text, left);

		if (len == left)
			return false;
		strings[i] = text;
		text += len + 1;
		left -= len + 1;
	}
	return left == 0;
}

/* Adds the request's variables to the sandbox's own; a later one of the same name wins. */
static char **merge_env(char *const *base, char *const *more, size_t n_more)
{
	size_t n = 0;
	char **env;

	while (base[n])
		n++;
	env = mem_new(n + n_more + 1, sizeof(*env));
	memcpy(env, base, n * sizeof(*env));
	for (size_t i = 0; i < n_more; i++) {
		size_t key = strcspn(more[i], "=") + 1, at = 0;

		while (at < n && strncmp(env[at], more[i], key) != 0)
			at++;
		env[at] = more[i];
		n += at == n;
	}
	return env;
}

int request_parse(const struct request_head *head, char *take_text, char *const *base_env,
		  struct request *ret)
{
	_free_ char *text = take_text;
	_free_ char **strings = NULL;

	if (!request_is_head(head))
		return -EBADMSG;
	strings = mem_new((size_t)head->argc + head->envc + 1, sizeof(*strings));
	if (!split(head, text, strings))
		return -EBADMSG;
	ret->argv = mem_new((size_t)head->argc + 1, sizeof(*ret->argv));
	memcpy(ret->argv, strings, head->argc * sizeof(*ret->argv));
	ret->env = merge_env(base_env, strings + head->argc, head->envc);
	ret->cwd = strings[(size_t)head->argc + head->envc];
	ret->text = take(text);
	return 0;
}

void request_done(struct request *r)
{
	free(r->text);
	free(r->argv);
	free(r->env);
}

static void put_strings(struct buf *b, char *const *v, uint32_t *ret_n)
{
	for (*ret_n = 0; v && v[*ret_n]; ++*ret_n)
		buf_add(b, v[*ret_n], strlen(v[*ret_n]) + 1);
}

int request_seal(const struct buf *b, struct err *e)
{
	_close_ int fd = memfd_create("vitrine-request", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return err_sys(e, "memfd");
	if (io_write_all(fd, b->p, b->n) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
		return err_sys(e, "request");
	return take_fd(fd);
}

int request_make(char *const *argv, char *const *env, const char *cwd, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(REQUEST_MAX + sizeof(struct request_head));
	struct request_head head = { .magic = REQUEST_MAGIC };

	buf_add(&b, &head, sizeof(head));
	put_strings(&b, argv, &head.argc);
	put_strings(&b, env, &head.envc);
	buf_add(&b, cwd, strlen(cwd) + 1);
	if (b.is_over)
		return err_set(e, ERR_USAGE, E2BIG, "the command line is longer than %llu bytes",
			       (unsigned long long)REQUEST_MAX);
	head.bytes = (uint32_t)(b.n - sizeof(head));
	memcpy(b.p, &head, sizeof(head));
	return request_seal(&b, e);
}
