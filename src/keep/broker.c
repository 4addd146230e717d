/* SPDX-License-Identifier: Apache-2.0 */
/* keep/broker.c - the door to the broker: a socket inside, a process outside for each who knocks
 *
 * The keeper reads nothing that comes through this door. It hands the connection to vitrine-broker, together with what
 * the plan says about it, and takes from that process nothing but event frames, each answered when it is on record. Few
 * at a time; what a broker has begun ends with the sandbox.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/path.h"
#include "base/program.h"
#include "base/sabotage.h"
#include "keep/keeper.h"

#define BROKERS_MAX 8
#define EVENT_BYTES ((size_t)65536)

/* Where vitrine-broker finds its descriptors. */
enum { CONN_FD = 3, CONFIG_FD, EVENT_FD };

struct one {
	struct keeper *k; /* NULL: free */
	pid_t pid;
	int events;
	struct watch *on;
};

struct broker_door {
	struct keeper *k;
	int fd;
	struct watch *on;
	char *program;
	struct one v[BROKERS_MAX];
};

static void one_done(struct one *o)
{
	watch_free(o->on);
	fd_close(o->events);
	if (o->pid > 0) {
		(void)kill(o->pid, SIGKILL); /* it has said its last word, or is to be ended */
		(void)waitpid(o->pid, NULL, 0);
	}
	*o = (struct one){ .events = FD_NONE };
}

/* All places taken: who knocks waits at the door. */
static bool is_full(const struct broker_door *d)
{
	for (size_t i = 0; i < BROKERS_MAX; i++)
		if (d->v[i].pid == 0)
			return false;
	return true;
}

/* An event: on record, or it must not be done. Its end is the end of the broker. */
static void on_event(void *arg)
{
	static char frame[EVENT_BYTES];
	struct one *o = arg;
	ssize_t n = recv(o->events, frame, sizeof(frame), MSG_DONTWAIT);
	struct err e = ERR_INIT;
	char answer = 1;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		struct broker_door *d = o->k->broker;

		one_done(o);
		watch_set(d->on, true);
		return;
	}
	if (o->k->journal &&
	    journal_frame(o->k->journal, EVENT_NO_SESSION, frame, (size_t)n, &e) >= 0)
		answer = 0;
	(void)send(o->events, &answer, 1,
		   MSG_NOSIGNAL | MSG_DONTWAIT); /* if it is gone, we will hear */
}

static int make_config(const struct keeper *k)
{
	_cleanup_(buf_done) struct buf b = BUF(2 * MIB);
	_close_ int fd = memfd_create("vitrine-broker", MFD_CLOEXEC);
	const struct plan *p = k->in->plan;
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		return -errno;
	self[n] = '\0';
	buf_printf(&b, "name %s\nstate %s\nvitrine %s\n", p->name, p->state_dir, self);
	for (size_t i = 0; i < p->n_mounts; i++)
		if (p->mounts[i].kind == MOUNT_BIND && !(p->mounts[i].flags & MOUNT_RO) &&
		    p->mounts[i].src[0] == '/')
			buf_printf(&b, "write %s\n", p->mounts[i].src);
	for (size_t i = 0; i < p->broker.n_rules; i++)
		buf_printf(&b, "%s\n", p->broker.rules[i]);
	if (fd < 0 || b.is_over || io_write_all(fd, b.p, b.n) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return -EIO;
	return take_fd(fd);
}

/* In the child: nothing but system calls. */
static _Noreturn void become(const char *path, char *const *env, const int fds[3])
{
	char *const argv[] = { (char[]){ "vitrine-broker" }, NULL };
	int v[3], null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = 0; i < 3; i++)
		v[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 16);
	/* NOLINTBEGIN(android-cloexec-dup): these are what it is for */
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0 ||
	    dup2(v[0], CONN_FD) < 0 || dup2(v[1], CONFIG_FD) < 0 || dup2(v[2], EVENT_FD) < 0)
		_exit(125);
	/* NOLINTEND(android-cloexec-dup) */
	(void)syscall(SYS_close_range, EVENT_FD + 1, ~0U, 0);
	(void)execve(path, argv, env);
	_exit(127);
}

static struct one *free_one(struct broker_door *d)
{
	for (size_t i = 0; i < BROKERS_MAX; i++)
		if (d->v[i].pid == 0)
			return &d->v[i];
	return NULL;
}

static char *const *env_of(const struct keeper *k)
{
#ifdef VITRINE_SABOTAGE
	static char list[512];
	static char *env[64];
	size_t n = 0;

	for (char **v = k->in->plan->broker.env; v && *v && n < ARRAY_LEN(env) - 2; v++)
		env[n++] = *v;
	sabotage_env(list, sizeof(list));
	env[n] = list;
	return env;
#else
	return k->in->plan->broker.env;
#endif
}

static void on_knock(void *arg)
{
	struct broker_door *d = arg;
	_close_ int conn = accept4(d->fd, NULL, NULL, SOCK_CLOEXEC);
	_close_ int config = conn < 0 ? FD_NONE : make_config(d->k);
	struct one *o = free_one(d);
	int pair[2], fds[3];

	if (conn < 0 || config < 0 || o == NULL ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return; /* hung up on */
	fds[0] = conn;
	fds[1] = config;
	fds[2] = pair[1];
	*o = (struct one){ .k = d->k, .events = pair[0], .pid = fork() };
	if (o->pid == 0)
		become(d->program, env_of(d->k), fds);
	fd_close(pair[1]);
	if (o->pid < 0)
		*o = (struct one){ .events = FD_NONE };
	else
		o->on = watch_fd(d->k->loop, o->events, WATCH_READ, on_event, o);
	watch_set(d->on, !is_full(d));
}

int broker_open(struct keeper *k, struct err *e)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	struct broker_door *d;
	int r;

	if (!k->in->plan->broker.is_on)
		return 0;
	d = k->broker = mem_new(1, sizeof(*d));
	*d = (struct broker_door){ .k = k, .fd = FD_NONE };
	for (size_t i = 0; i < BROKERS_MAX; i++)
		d->v[i].events = FD_NONE;
	r = program_find("vitrine-broker", &d->program, e);
	if (r < 0)
		return r;
	d->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	(void)unlinkat(k->dir, BROKER_NAME, 0); /* a dead keeper's */
	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "/proc/self/fd/%d/" BROKER_NAME, k->dir);
	/* The folder is closed to everybody else; inside it may be another id that connects. */
	if (d->fd < 0 || bind(d->fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0 ||
	    fchmodat(k->dir, BROKER_NAME, 0666, 0) < 0 || listen(d->fd, 16) < 0)
		return err_sys(e, "socket of the broker");
	d->on = watch_fd(k->loop, d->fd, WATCH_READ, on_knock, d);
	return 0;
}

void broker_finish(struct keeper *k)
{
	for (size_t i = 0; k->broker && i < BROKERS_MAX; i++)
		one_done(&k->broker->v[i]);
}

/* What it took from a sandbox without a name goes with it. */
void broker_remove(struct keeper *k)
{
	if (k->broker == NULL)
		return;
	(void)unlinkat(k->dir, BROKER_NAME, 0);
	if (!k->in->plan->is_named)
		(void)path_remove(k->dir, "broker"); /* what stays, the next command removes */
}
