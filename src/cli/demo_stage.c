/* SPDX-License-Identifier: Apache-2.0 */
/* cli/demo_stage.c - see demo.h
 *
 * Everything lies in one fresh directory in the user's cache, also the state and the (empty) configuration of the
 * run, so that the built-in policy is what is shown and one removal is all the cleaning there is. The sandbox is the
 * product's own: we execute ourselves with `run`, as a user would. Signals wait until the stage is cleared.
 */
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/loop.h"
#include "base/path.h"
#include "cli/demo.h"

#define OUTPUT_MAX (4 * MIB)
#define RUN_NS (60 * NS_PER_SEC)
#define END_NS (1 * NS_PER_SEC) /* for the end of the output, once the run is over */
#define NUMBERS 100

extern const char demo_agent[]; /* data/demo/agent.sh */

const char *const demo_keys[] = {
	".ssh", ".aws", ".gnupg", ".netrc", ".git-credentials", ".config/gh", ".docker/config.json",
	NULL
};

/* ---- files ---- */

static int put_file(const char *dir, const char *name, const char *text, struct err *e)
{
	_free_ char *path = mem_fmt("%s/%s", dir, name);
	_close_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);

	if (fd < 0 || io_write_all(fd, text, strlen(text)) < 0)
		return err_sys(e, "'%s'", path);
	return 0;
}

static int make_dir(const char *path, struct err *e)
{
	return mkdir(path, 0700) < 0 ? err_sys(e, "'%s'", path) : 0;
}

/* Follows nothing. What cannot be removed is left. */
static void remove_tree(int at, const char *name, int depth)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *en;

	while (d && depth > 0 && (en = readdir(d)) != NULL) {
		if (str_eq(en->d_name, ".") || str_eq(en->d_name, ".."))
			continue;
		if (unlinkat(fd, en->d_name, 0) < 0)
			remove_tree(fd, en->d_name, depth - 1);
	}
	if (d)
		(void)closedir(d);
	else
		fd_close(fd);
	(void)unlinkat(at, name, AT_REMOVEDIR);
}

static int random_hex(char *out, size_t size, struct err *e)
{
	uint64_t v[2];

	if (getrandom(v, sizeof(v), 0) != (ssize_t)sizeof(v))
		return err_sys(e, "getrandom");
	(void)snprintf(out, size, "%016llx%016llx", (unsigned long long)v[0],
		       (unsigned long long)v[1]);
	return 0;
}

/* ---- the caller's own tools ---- */

static void git_environment(void)
{
	static const char *const not_ours[] = {
		"GIT_DIR",        "GIT_WORK_TREE",        "GIT_INDEX_FILE",
		"GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_TEMPLATE_DIR"
	};

	for (size_t i = 0; i < ARRAY_LEN(not_ours); i++)
		(void)unsetenv(not_ours[i]);
	(void)setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1);
	(void)setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
}

/* git in the project, outside the sandbox: before the agent has touched it, and once to read the last subject.
 * 0 when it succeeded. */
static int git(const struct stage *s, char *const *argv, struct buf *out)
{
	struct err ignored;
	int p[2], status;
	pid_t pid;

	if (pipe2(p, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		git_environment();
		if (null < 0 || chdir(s->project) < 0 || dup2(null, 0) < 0 || dup2(p[1], 1) < 0 ||
		    dup2(null, 2) < 0)
			_exit(126);
		(void)execvp(argv[0], argv);
		_exit(127);
	}
	fd_close(p[1]);
	if (pid > 0 && io_read_fd(p[0], out, &ignored) < 0)
		out->n = 0;
	fd_close(p[0]);
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return -ECHILD;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}

static bool make_repository(const struct stage *s)
{
	static const char *const steps[][12] = {
		{ "git", "init", "-q", NULL },
		{ "git", "add", "TASK.md", "numbers.txt", NULL },
		{ "git", "-c", "user.name=Person", "-c", "user.email=person@example.invalid",
		  "commit", "-q", "-m", "Start", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		_cleanup_(buf_done) struct buf out = BUF(64 * KIB);
		char *argv[12];

		memcpy(argv, steps[i], sizeof(argv));
		if (git(s, argv, &out) < 0)
			return false;
	}
	return true;
}

static bool find_commit(const struct stage *s)
{
	static const char *const words[] = {
		"git", "--no-pager", "log", "-1", "--format=%s", NULL
	};
	_cleanup_(buf_done) struct buf out = BUF(64 * KIB);
	char *argv[ARRAY_LEN(words)];

	memcpy(argv, words, sizeof(argv));
	return git(s, argv, &out) == 0 && strstr(buf_cstr(&out), s->name);
}

/* ---- setting up ---- */

static char *cache_dir(const struct stage *s, bool is_same_user)
{
	const char *v = is_same_user ? getenv("XDG_CACHE_HOME") : NULL;
	_free_ char *base =
		v && v[0] == '/' ? path_join("/", v) : path_join(s->host.home, ".cache");

	return path_join(base, "vitrine");
}

static int make_place(struct stage *s, bool is_same_user, struct err *e)
{
	_free_ char *cache = cache_dir(s, is_same_user);
	_free_ char *made = mem_fmt("%s/demo-XXXXXX", cache);
	_free_ char *neighbour = NULL, *base = path_parent(cache);
	int r;

	s->is_cache_new = access(base, F_OK) < 0;
	r = path_make(cache, 0700);
	if (r < 0)
		return err_set(e, ERR_SYSTEM, -r, "'%s': %s", cache, strerrordesc_np(-r));
	if (mkdtemp(made) == NULL)
		return err_sys(e, "'%s'", made);
	/* Removed by its real name, whatever links lead there. */
	r = path_real(made, &s->dir, e);
	if (r < 0)
		return r;
	s->project = path_join(s->dir, "project");
	s->outside = path_join(s->dir, "outside");
	neighbour = path_join(s->outside, "neighbour");
	r = make_dir(s->project, e);
	if (r == 0)
		r = make_dir(s->outside, e);
	return r < 0 ? r : make_dir(neighbour, e);
}

static int put_numbers(struct stage *s, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(64 * KIB);
	uint16_t v[NUMBERS];

	if (getrandom(v, sizeof(v), 0) != (ssize_t)sizeof(v))
		return err_sys(e, "getrandom");
	for (size_t i = 0; i < NUMBERS; i++) {
		buf_printf(&b, "%u\n", v[i]);
		s->sum += v[i];
	}
	return put_file(s->project, "numbers.txt", buf_cstr(&b), e);
}

static int put_files(struct stage *s, struct err *e)
{
	_free_ char *task = mem_fmt("# Task %s\n\nAdd up numbers.txt, write the sum to sum.txt, "
				    "commit.\n",
				    s->secret[SECRET_TASK]);
	_free_ char *dotenv = mem_fmt("PASSWORD=%s\n", s->secret[SECRET_DOTENV]);
	int r = put_file(s->project, "TASK.md", task, e);

	if (r == 0)
		r = put_file(s->project, ".env", dotenv, e);
	if (r == 0)
		r = put_file(s->project, "agent.sh", demo_agent, e);
	if (r == 0)
		r = put_numbers(s, e);
	if (r == 0)
		r = put_file(s->outside, "notes.txt", s->secret[SECRET_BESIDE], e);
	if (r == 0)
		r = put_file(s->outside, "neighbour/plan.txt", s->secret[SECRET_NEIGHBOUR], e);
	return r;
}

static int listen_on(int family, const void *address, socklen_t n, struct err *e)
{
	_close_ int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, address, n) < 0 || listen(fd, 8) < 0)
		return err_sys(e, "a listener for the demo");
	return take_fd(fd);
}

static int make_listeners(struct stage *s, struct err *e)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	size_t n = strlen(s->name);
	socklen_t size = sizeof(in);

	memcpy(un.sun_path + 1, s->name,
	       n); /* behind the zero byte: the abstract space, which no file view guards */
	s->tcp = listen_on(AF_INET, &in, size, e);
	if (s->tcp < 0)
		return s->tcp;
	if (getsockname(s->tcp, (struct sockaddr *)&in, &size) < 0)
		return err_sys(e, "getsockname");
	s->port = ntohs(in.sin_port);
	s->local = listen_on(AF_UNIX, &un,
			     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n), e);
	return s->local < 0 ? s->local : 0;
}

static int make_victim(struct stage *s, struct err *e)
{
	s->victim = fork();
	if (s->victim < 0)
		return err_sys(e, "fork");
	if (s->victim == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)prctl(PR_SET_NAME, "demo-victim");
		for (int i = 0; i < 3; i++)
			(void)close(i); /* whoever reads our output must not wait for this one */
		for (;;)
			(void)pause();
	}
	s->victim_fd = (int)syscall(SYS_pidfd_open, s->victim, 0);
	return s->victim_fd < 0 ? err_sys(e, "pidfd_open") : 0;
}

static int read_config(const struct stage *s, struct buf *out)
{
	_free_ char *path = mem_fmt("%s/.git/config", s->project);
	struct err ignored;

	return io_read_file(path, out, &ignored);
}

int stage_open(struct stage *s, struct err *e)
{
	uid_t before = geteuid();
	int r = 0;

	*s = (struct stage){ .host = { .ws_fd = FD_NONE },
			     .exe = FD_NONE,
			     .tcp = FD_NONE,
			     .local = FD_NONE,
			     .victim = -1,
			     .victim_fd = FD_NONE,
			     .config = BUF(MIB),
			     .out = BUF(OUTPUT_MAX),
			     .err = BUF(OUTPUT_MAX) };
	/* Before root is dropped: then /proc/self is no longer ours to look into. */
	s->exe = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	if (s->exe < 0)
		return err_sys(e, "/proc/self/exe");
	r = host_init(&s->host, NULL, e);
	for (int i = 0; r == 0 && i < SECRET_COUNT_; i++)
		r = random_hex(s->secret[i], sizeof(s->secret[i]), e);
	if (r == 0)
		r = make_place(s, geteuid() == before, e);
	if (r < 0)
		return r;
	(void)snprintf(s->name, sizeof(s->name), "vitrine-%s", path_name(s->dir));
	r = put_files(s, e);
	if (r == 0)
		r = make_listeners(s, e);
	if (r == 0)
		r = make_victim(s, e);
	if (r < 0)
		return r;
	s->has_git = make_repository(s);
	return s->has_git && read_config(s, &s->config) < 0 ? err_sys(e, "the demo's repository")
							    : 0;
}

/* ---- the run ---- */

/* The words of `vitrine run`, NULL-ended. The caller frees the list, and nothing in it. */
static char **make_words(struct stage *s, char *pids, char *victim, char *port)
{
	static const char *const head[] = { "vitrine", "run",    "--json",       "--time",
					    "60",      "--disk", "32m,optional", "--workspace" };
	const char *rest[] = { s->project, "--workdir", s->project,   "--pids",   pids,
			       "--",       "sh",        "./agent.sh", s->outside, s->host.home,
			       victim,     port,        s->name };
	char **v = mem_new(ARRAY_LEN(head) + ARRAY_LEN(rest) + 16, sizeof(*v));
	size_t n = 0;

	memcpy(v, head, sizeof(head));
	n += ARRAY_LEN(head);
	memcpy(v + n, rest, sizeof(rest));
	n += ARRAY_LEN(rest);
	for (size_t i = 0; demo_keys[i]; i++)
		memcpy(&v[n++], &demo_keys[i], sizeof(*v));
	return v;
}

static _Noreturn void exec_run(struct stage *s, char **words, int out, int err)
{
	_free_ char *state = mem_fmt("%s/state", s->dir);
	_free_ char *config = mem_fmt("%s/config", s->dir);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	(void)setenv("XDG_STATE_HOME", state, 1);
	(void)setenv("XDG_CONFIG_HOME", config, 1);
	(void)setenv("HOME", s->host.home, 1);
	(void)setenv("DEMO_API_KEY", s->secret[SECRET_ENVIRONMENT], 1);
	if (null < 0 || chdir(s->project) < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 ||
	    dup2(err, 2) < 0)
		_exit(125);
	(void)syscall(SYS_execveat, s->exe, "", words, environ, AT_EMPTY_PATH);
	_exit(125);
}

static int start_run(struct stage *s, int out, int err, pid_t *ret, struct err *e)
{
	_free_ char *pids = mem_fmt("%d,optional", DEMO_PIDS);
	_free_ char *victim = mem_fmt("%d", (int)s->victim);
	_free_ char *port = mem_fmt("%u", s->port);
	_free_ char **words = make_words(s, pids, victim, port);

	*ret = fork();
	if (*ret == 0)
		exec_run(s, words, out, err);
	return *ret < 0 ? err_sys(e, "fork") : 0;
}

/* One read; false at the end. Output over the ceiling is read and dropped. */
static bool collect(struct pollfd *p, struct buf *b)
{
	char chunk[16384];
	ssize_t n = p->revents ? io_read(p->fd, chunk, sizeof(chunk)) : 1;

	if (n <= 0)
		p->fd = -1;
	else if (p->revents)
		buf_add(b, chunk, (size_t)n);
	return n > 0;
}

static void on_signal(struct stage *s, int sigs, int pidfd)
{
	struct signalfd_siginfo info;

	if (read(sigs, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	s->signo = (int)info.ssi_signo;
	(void)syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0); /* it may just have ended */
}

/* Until the run is over and its output has ended, or must have. */
static void watch_run(struct stage *s, int out, int err, int sigs, int pidfd)
{
	struct pollfd p[] = { { .fd = out, .events = POLLIN },
			      { .fd = err, .events = POLLIN },
			      { .fd = sigs, .events = POLLIN },
			      { .fd = pidfd, .events = POLLIN } };
	uint64_t until = clock_now() + RUN_NS + 5 * NS_PER_SEC;

	while (p[0].fd >= 0 || p[1].fd >= 0 || p[3].fd >= 0) {
		uint64_t now = clock_now();

		if (now >= until)
			break;
		if (poll(p, ARRAY_LEN(p), (int)((until - now) / NS_PER_MS) + 1) < 0)
			continue;
		s->has_end |= !collect(&p[0], &s->out);
		(void)collect(&p[1], &s->err);
		if (p[2].revents)
			on_signal(s, sigs, pidfd);
		if (p[3].fd >= 0 && p[3].revents) {
			p[3].fd = -1;
			until = now + END_NS;
		}
	}
	(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL,
		      0); /* over already, unless it is stuck */
}

static bool was_called(int listener)
{
	_close_ int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	return fd >= 0;
}

static int make_pipe(int *ret_near, int *ret_far, struct err *e)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) < 0)
		return err_sys(e, "pipe");
	*ret_near = p[0];
	*ret_far = p[1];
	return 0;
}

static int block_signals(struct err *e)
{
	sigset_t set;
	int fd;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? err_sys(e, "signalfd") : fd;
}

/* What can only be known now, before anything is cleared away. */
static void look_around(struct stage *s)
{
	_cleanup_(buf_done) struct buf config = BUF(MIB);

	s->was_called = was_called(s->tcp);
	s->was_called_local = was_called(s->local);
	s->is_victim_alive = waitpid(s->victim, NULL, WNOHANG) == 0;
	s->is_config_same = s->has_git && read_config(s, &config) == 0 &&
			    str_eq(buf_cstr(&config), buf_cstr(&s->config));
	/* git reads the configuration, so only if it is still ours. */
	s->is_committed = s->is_config_same && find_commit(s);
}

int stage_run(struct stage *s, struct err *e)
{
	_close_ int out = FD_NONE, err = FD_NONE, far_out = FD_NONE, far_err = FD_NONE,
		    pidfd = FD_NONE;
	_close_ int sigs = block_signals(e);
	int status, r;
	pid_t pid = -1;

	if (sigs < 0)
		return sigs;
	r = make_pipe(&out, &far_out, e);
	if (r == 0)
		r = make_pipe(&err, &far_err, e);
	if (r == 0)
		r = start_run(s, far_out, far_err, &pid, e);
	if (r < 0)
		return r;
	fd_close(take_fd(far_out));
	fd_close(take_fd(far_err));
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	watch_run(s, out, err, sigs, pidfd);
	s->status = waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	look_around(s);
	return 0;
}

/* Should a wall not have held, what came through it does not stay. */
static void remove_escaped(const struct stage *s)
{
	static const char *const places[] = { "/tmp", "/usr/bin" };

	for (size_t i = 0; s->name[0] && i < ARRAY_LEN(places); i++) {
		_free_ char *path = mem_fmt("%s/%s", places[i], s->name);

		(void)unlink(path);
	}
}

void stage_close(struct stage *s)
{
	if (s->victim > 0) {
		(void)kill(
			s->victim,
			SIGKILL); /* our own child, not waited for yet: the number is still its */
		(void)waitpid(s->victim, NULL, 0);
	}
	fd_close(s->victim_fd);
	fd_close(s->exe);
	fd_close(s->tcp);
	fd_close(s->local);
	remove_escaped(s);
	if (s->dir) {
		_free_ char *cache = path_parent(s->dir), *base = path_parent(cache);

		remove_tree(AT_FDCWD, s->dir, 64);
		/* Directories in which anything else lies are not removed. */
		if (rmdir(cache) == 0 && s->is_cache_new)
			(void)rmdir(base);
	}
	buf_done(&s->config);
	buf_done(&s->out);
	buf_done(&s->err);
	free(s->dir);
	free(s->project);
	free(s->outside);
	host_done(&s->host);
}
