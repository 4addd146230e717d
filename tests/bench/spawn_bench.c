/* SPDX-License-Identifier: Apache-2.0 */
/* tests/bench/spawn_bench.c - time commands from start to exit, interleaved
 *
 * Reads a list of commands and runs every one of them once per round, in an order that is shuffled
 * anew for each round: the clean-up of a sandbox (its network namespace above all) goes on in the
 * kernel after its process is gone, and with a fixed order the same neighbour would pay for it
 * every time.
 *
 * What lies between the two clock readings is posix_spawn() (vfork inside) and waitid(), nothing
 * else. The change of identity, the opening of files and the parsing are done before; samples are
 * printed after the last round.
 *
 * The list, one word and its value per line:
 *     name NAME     begins a command
 *     cwd DIR       where it runs
 *     arg WORD      argv, in order
 *     env K=V       the whole environment, in order
 *     fd N FILE     FILE opened for reading, rewound before each start, as descriptor N
 *     every K       only in each K-th round (for commands that are slower by orders of magnitude)
 *     lane 1        run it from the side process described next
 *
 * crun refuses to work while a cgroup v2 mount lies beside the v1 ones, and nobody else should have
 * to live without that mount. So a side process with its own mount namespace has it removed; it
 * starts and times its commands itself, in the turn the main process gives it.
 *
 * Output: "ROUND NAME NANOSECONDS STATUS" per sample; STATUS is 128+n for a signal. Standard
 * streams of the commands are /dev/null. A command that hangs is killed after --timeout seconds and
 * shows up as 137.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_CMDS 16
#define MAX_WORDS 192
#define HYBRID "/sys/fs/cgroup/unified"

struct cmd {
	const char *name;
	const char *cwd;
	char *argv[MAX_WORDS];
	char *envp[MAX_WORDS];
	size_t argc;
	size_t envc;
	const char *fd_path;
	int fd_num;
	int fd_src;
	unsigned every;
	bool in_lane;
	posix_spawn_file_actions_t actions;
};

struct options {
	unsigned rounds;
	unsigned warmup;
	unsigned gap_ms;
	unsigned timeout_s;
	const char *user;
	const char *list;
};

struct sample {
	int64_t ns;
	int status;
};

static struct cmd cmds[MAX_CMDS];
static size_t ncmds;
static volatile sig_atomic_t running_pid;

static _Noreturn void die(const char *what)
{
	(void)fprintf(stderr, "spawn_bench: %s: %s\n", what, strerror(errno));
	exit(1);
}

static _Noreturn void die_line(const char *what, unsigned line)
{
	(void)fprintf(stderr, "spawn_bench: line %u: %s\n", line, what);
	exit(1);
}

static unsigned number(const char *text)
{
	char *end;
	errno = 0;
	unsigned long v = strtoul(text, &end, 10);

	if (errno || *text < '0' || *text > '9' || *end || v > 1000000) {
		(void)fprintf(stderr, "spawn_bench: not a number: %s\n", text);
		exit(1);
	}
	return (unsigned)v;
}

static char *keep(const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		die("strdup");
	return copy;
}

static void add_word(char **list, size_t *n, const char *value, unsigned line)
{
	if (*n + 1 >= MAX_WORDS)
		die_line("too many words", line);
	list[(*n)++] = keep(value);
}

static void set_fd(struct cmd *c, char *value, unsigned line)
{
	char *path = strchr(value, ' ');

	if (!path)
		die_line("fd needs a number and a file", line);
	*path++ = '\0';
	c->fd_num = (int)number(value);
	c->fd_path = keep(path);
}

static void take_line(char *text, unsigned line)
{
	char *value = strchr(text, ' ');

	if (!value)
		die_line("no value", line);
	*value++ = '\0';
	if (!strcmp(text, "name")) {
		if (ncmds == MAX_CMDS)
			die_line("too many commands", line);
		cmds[ncmds++] =
			(struct cmd){ .name = keep(value), .fd_num = -1, .fd_src = -1, .every = 1 };
		return;
	}
	if (!ncmds)
		die_line("a command begins with its name", line);

	struct cmd *c = &cmds[ncmds - 1];

	if (!strcmp(text, "cwd"))
		c->cwd = keep(value);
	else if (!strcmp(text, "arg"))
		add_word(c->argv, &c->argc, value, line);
	else if (!strcmp(text, "env"))
		add_word(c->envp, &c->envc, value, line);
	else if (!strcmp(text, "fd"))
		set_fd(c, value, line);
	else if (!strcmp(text, "every"))
		c->every = number(value);
	else if (!strcmp(text, "lane"))
		c->in_lane = number(value) != 0;
	else
		die_line("unknown word", line);
	if (!c->every)
		die_line("every 0", line);
}

static void read_list(const char *path)
{
	FILE *f = fopen(path, "re");
	char *text = NULL;
	size_t room = 0;
	unsigned line = 0;

	if (!f)
		die(path);
	for (ssize_t n; (n = getline(&text, &room, f)) > 0;) {
		line++;
		if (text[n - 1] == '\n')
			text[n - 1] = '\0';
		if (*text)
			take_line(text, line);
	}
	free(text);
	(void)fclose(f);
	for (size_t i = 0; i < ncmds; i++)
		if (!cmds[i].argc || !cmds[i].cwd)
			die_line("a command without arg or cwd", line);
	if (!ncmds)
		die_line("no command", line);
}

/* Descriptors of our own are close-on-exec, so a command gets 0, 1, 2 and the one it asked for. */
static void prepare(struct cmd *c, int null)
{
	if (c->fd_path) {
		c->fd_src = open(c->fd_path, O_RDONLY | O_CLOEXEC);
		if (c->fd_src < 0)
			die(c->fd_path);
		c->fd_src = fcntl(c->fd_src, F_DUPFD_CLOEXEC, 100);
		if (c->fd_src < 0)
			die("dup");
	}
	posix_spawn_file_actions_init(&c->actions);
	for (int fd = 0; fd < 3; fd++)
		posix_spawn_file_actions_adddup2(&c->actions, null, fd);
	if (c->fd_src >= 0)
		posix_spawn_file_actions_adddup2(&c->actions, c->fd_src, c->fd_num);
	posix_spawn_file_actions_addchdir_np(&c->actions, c->cwd);
}

static void on_alarm(int sig)
{
	(void)sig;
	if (running_pid > 0)
		kill((pid_t)running_pid, SIGKILL);
}

static int64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static struct sample run_one(const struct cmd *c, unsigned timeout_s)
{
	siginfo_t si = { 0 };
	pid_t pid;

	if (c->fd_src >= 0 && lseek(c->fd_src, 0, SEEK_SET) < 0)
		die("lseek");
	running_pid = 0;
	(void)alarm(timeout_s);

	int64_t begin = now_ns();
	int r = posix_spawn(&pid, c->argv[0], &c->actions, NULL, c->argv, c->envp);

	if (r) {
		errno = r;
		die(c->argv[0]);
	}
	running_pid = pid;
	while (waitid(P_PID, (id_t)pid, &si, WEXITED) < 0)
		if (errno != EINTR)
			die("waitid");

	int64_t end = now_ns();

	running_pid = 0;
	(void)alarm(0);
	return (struct sample){
		.ns = end - begin,
		.status = si.si_code == CLD_EXITED ? si.si_status : 128 + si.si_status,
	};
}

static void become(const char *user)
{
	if (!user)
		return;

	const struct passwd *pw = getpwnam(user);

	if (!pw) {
		errno = ENOENT;
		die(user);
	}
	if (initgroups(pw->pw_name, pw->pw_gid) || setresgid(pw->pw_gid, pw->pw_gid, pw->pw_gid) ||
	    setresuid(pw->pw_uid, pw->pw_uid, pw->pw_uid))
		die("change of identity");
	/* setuid() made this process undumpable, and its children would find their /proc owned by
	 * root. */
	prctl(PR_SET_DUMPABLE, 1);
}

static _Noreturn void lane_main(int sock, const struct options *o)
{
	uint32_t index;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		die("private mounts for a lane");
	if (umount2(HYBRID, MNT_DETACH) && errno != EINVAL && errno != ENOENT)
		die(HYBRID);
	become(o->user);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (recv(sock, &index, sizeof(index), 0) == sizeof(index)) {
		struct sample s = run_one(&cmds[index], o->timeout_s);

		if (send(sock, &s, sizeof(s), 0) != sizeof(s))
			exit(1);
	}
	exit(0);
}

static int start_lane(const struct options *o)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		die("socketpair");
	(void)fflush(NULL);

	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (!pid) {
		close(pair[0]);
		lane_main(pair[1], o);
	}
	close(pair[1]);
	return pair[0];
}

static struct sample ask_lane(int lane, uint32_t index)
{
	struct sample s;

	if (send(lane, &index, sizeof(index), MSG_NOSIGNAL) != sizeof(index) ||
	    recv(lane, &s, sizeof(s), 0) != sizeof(s))
		die("lane");
	return s;
}

static uint32_t next_random(void)
{
	static uint32_t x = 2463534242;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return x;
}

static void shuffle(uint32_t *order, size_t n)
{
	for (size_t left = n; left > 1; left--) {
		size_t j = next_random() % left;
		uint32_t t = order[left - 1];

		order[left - 1] = order[j];
		order[j] = t;
	}
}

static void pause_ms(unsigned ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

	if (ms)
		(void)nanosleep(&t, NULL);
}

static void rounds(const struct options *o, int lane)
{
	uint32_t order[MAX_CMDS] = { 0 };

	for (uint32_t i = 0; i < ncmds; i++)
		order[i] = i;
	for (unsigned r = 0; r < o->warmup + o->rounds; r++) {
		shuffle(order, ncmds);
		for (size_t k = 0; k < ncmds; k++) {
			const struct cmd *c = &cmds[order[k]];

			if (r % c->every)
				continue;
			pause_ms(o->gap_ms);

			struct sample s =
				c->in_lane ? ask_lane(lane, order[k]) : run_one(c, o->timeout_s);

			if (r >= o->warmup || s.status)
				(void)printf("%d %s %lld %d\n", (int)r - (int)o->warmup, c->name,
					     (long long)s.ns, s.status);
		}
	}
}

static struct options parse(int argc, char **argv)
{
	struct options o = { .rounds = 10, .timeout_s = 30 };
	struct {
		const char *name;
		unsigned *value;
	} numbers[] = { { "--rounds", &o.rounds },
			{ "--warmup", &o.warmup },
			{ "--gap-ms", &o.gap_ms },
			{ "--timeout", &o.timeout_s } };

	for (int i = 1; i < argc; i++) {
		bool has_value = i + 1 < argc;
		bool known = false;

		for (size_t k = 0; k < sizeof(numbers) / sizeof(*numbers) && has_value && !known;
		     k++) {
			known = !strcmp(argv[i], numbers[k].name);
			if (known)
				*numbers[k].value = number(argv[i + 1]);
		}
		if (known)
			i++;
		else if (has_value && !strcmp(argv[i], "--user"))
			o.user = argv[++i];
		else
			o.list = argv[i];
	}
	if (!o.list) {
		(void)fprintf(stderr, "usage: spawn_bench [--rounds N] [--warmup N] [--gap-ms N] "
				      "[--timeout S] "
				      "[--user NAME] LIST\n");
		exit(2);
	}
	return o;
}

int main(int argc, char **argv)
{
	static char out[1 << 20];
	struct options o = parse(argc, argv);
	struct sigaction sa = { .sa_handler = on_alarm };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	bool need_lane = false;
	int lane = -1;

	if (null < 0 || (null = fcntl(null, F_DUPFD_CLOEXEC, 100)) < 0)
		die("/dev/null");
	(void)sigaction(SIGALRM, &sa, NULL);
	(void)setvbuf(stdout, out, _IOFBF, sizeof(out));
	read_list(o.list);
	for (size_t i = 0; i < ncmds; i++) {
		prepare(&cmds[i], null);
		need_lane = need_lane || cmds[i].in_lane;
	}
	if (need_lane)
		lane = start_lane(&o);
	become(o.user);
	rounds(&o, lane);
	return 0;
}
