/* SPDX-License-Identifier: Apache-2.0 */
/* keep/keeper.c - one sandbox from start to end
 *
 * Forked from the client that starts the sandbox, so the plan is already in memory. Order of a life:
 *
 * part     leave the client's session, descriptors, directory and environment behind
 * start    clone init; while it builds, make the sandbox's directory, lock and control socket
 * serve    one loop: init's messages, clients, relays, timers, the workspace's watch
 * end      init is dead and with it every process inside; drain, sweep, clean up, tell the clients
 *
 * Nothing but init and the clients is listened to. Both are foreign: whatever is not a permitted message ends the
 * sandbox (init) or the connection (client).
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/path.h"
#include "base/sabotage.h"
#include "base/title.h"
#include "keep/keeper.h"

/* ---- telling ---- */

static void last_words(const struct session *s, struct err *ret)
{
	const char *tail = NULL;
	size_t n = session_tail(s, &tail), max = sizeof(ret->msg) - 1;

	if (n > max) {
		tail += n - max;
		n = max;
	}
	for (size_t i = 0; i < n; i++)
		ret->msg[i] = (char)(tail[i] ? tail[i] : ' ');
}

static void tell_end(struct keeper *k, struct session *s, int status, enum end_reason why)
{
	struct keep_msg m = { .type = KEEP_ENDED, .a = status, .b = (int32_t)why };

	if (why == END_ERROR || k->err.kind != ERR_NONE)
		m.err = k->err;
	else if (status != 0)
		last_words(s, &m.err);
	if (s->client >= 0)
		(void)keep_send(s->client, &m, NULL, 0); /* a client that is gone needs no news */
}

void keeper_note(struct keeper *k, const char *text)
{
	struct keep_msg m = { .type = KEEP_NOTE };

	(void)snprintf(m.err.msg, sizeof(m.err.msg), "%s", text);
	for (size_t i = 0; i < INIT_SESSIONS; i++)
		if (k->sessions[i].is_used && k->sessions[i].client >= 0)
			(void)keep_send(k->sessions[i].client, &m, NULL, 0);
}

void keeper_end(struct keeper *k, enum end_reason why)
{
	if (k->why == END_EXIT)
		k->why = why;
	/* The namespace's first process takes every other one with it. */
	(void)syscall(SYS_pidfd_send_signal, k->native.pidfd, SIGKILL, NULL, 0);
}

static void fail(struct keeper *k, const struct err *e)
{
	k->err = *e;
	keeper_end(k, END_ERROR);
}

/* ---- init's messages ---- */

static struct session *find_session(struct keeper *k, uint32_t id)
{
	for (size_t i = 0; i < INIT_SESSIONS; i++)
		if (k->sessions[i].is_used && k->sessions[i].id == id)
			return &k->sessions[i];
	return NULL;
}

/* The one descriptor init may send is the master side of a terminal; anything else is not kept. */
static int checked_master(int fd)
{
	struct stat st;
	unsigned n;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && ioctl(fd, TIOCGPTN, &n) == 0)
		return fd;
	fd_close(fd);
	return FD_NONE;
}

static void on_moved(void *arg)
{
	limits_check_output(arg);
}

static void on_started(struct keeper *k, struct session *s, int take_fd)
{
	struct keep_msg m = { .type = KEEP_STARTED };

	session_begin(s, k->loop, checked_master(take_fd), on_moved, k);
	if (s->client >= 0)
		(void)keep_send(s->client, &m, NULL, 0);
}

static int status_of(int wait_status, enum end_reason *why)
{
	*why = WIFSIGNALED(wait_status) ? END_SIGNAL : END_EXIT;
	return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

static void on_not_started(struct keeper *k, struct session *s, const struct init_msg *m)
{
	int status = m->a == ENOENT && !m->b ? 127 : 126;
	const char *why = strerrordesc_np(m->a);

	why = why ? why : "unknown error";
	if (m->b)
		err_put_(&k->err, ERR_NOTFOUND, m->a,
			 "cannot start in the working directory '%s': %s", k->in->plan->cwd, why);
	else if (s->id == 0)
		err_put_(&k->err, ERR_NOTFOUND, m->a, "cannot run '%s': %s", k->in->plan->argv[0],
			 why);
	else
		err_put_(&k->err, ERR_NOTFOUND, m->a, "cannot run the command: %s", why);
	if (s->id == 0) {
		k->status = status;
		k->why = END_ERROR;
		return; /* init ends by itself */
	}
	tell_end(k, s, status, END_ERROR);
	k->err = ERR_INIT;
	session_close(s);
}

static void on_exited(struct keeper *k, struct session *s, const struct init_msg *m)
{
	enum end_reason why;
	int status = status_of(m->a, &why);

	if (s->id == 0) {
		k->status = status;
		k->main_why = why;
		s->has_ended = true;
		return; /* the rest is done when init is dead */
	}
	session_drain(s);
	tell_end(k, s, status, why);
	session_close(s);
}

static void on_init(void *arg)
{
	struct keeper *k = arg;
	int fds[PACKET_FDS];
	struct init_msg m;
	struct session *s;
	int r = init_recv(k->native.ctl, &m, fds);

	k->n_messages += r == 1;
	if (r == 1 && gate_take(k, &m, fds))
		return;
	for (int i = 1; i < PACKET_FDS; i++)
		fd_close(fds[i]);
	if (r <= 0) {
		watch_set(k->on_ctl, false);
		if (r < 0)
			keeper_end(k, END_ERROR);
		fd_close(fds[0]);
		return;
	}
	if (m.type == INIT_FAILED) {
		fd_close(fds[0]);
		fail(k, &m.err);
		return;
	}
	if (m.type == INIT_PROC) {
		limits_proc(k, fds[0]);
		return;
	}
	if (m.type == INIT_FROZEN) {
		fd_close(fds[0]);
		masks_on_frozen(k);
		return;
	}
	s = find_session(k, m.session);
	if (s == NULL || (m.type != INIT_STARTED && fds[0] >= 0)) {
		fd_close(fds[0]);
		return;
	}
	if (m.type == INIT_STARTED)
		on_started(k, s, fds[0]);
	else if (m.type == INIT_NOT_STARTED)
		on_not_started(k, s, &m);
	else if (m.type == INIT_EXITED)
		on_exited(k, s, &m);
}

/* ---- clients ---- */

static struct session *free_session(struct keeper *k)
{
	for (size_t i = 1; i < INIT_SESSIONS; i++)
		if (!k->sessions[i].is_used)
			return &k->sessions[i];
	return NULL;
}

static void close_all(int fds[PACKET_FDS])
{
	for (int i = 0; i < PACKET_FDS; i++)
		fd_close(fds[i]);
}

/* A request must be what a client of ours makes: a sealed memfd that nobody changes while init reads it. */
static bool is_sealed(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 &&
	       (seals & (F_SEAL_WRITE | F_SEAL_SHRINK)) == (F_SEAL_WRITE | F_SEAL_SHRINK);
}

static void start_exec(struct keeper *k, struct session *s, const struct keep_msg *m,
		       int fds[PACKET_FDS])
{
	struct init_msg start = { .type = INIT_START, .session = s->id };
	struct stdio io = { 0 };
	struct err e = ERR_INIT;
	int give[PACKET_FDS];
	size_t n = 0;

	if (!is_sealed(fds[0]) ||
	    session_open(s, fds + 1, m->flags | (k->in->flags & KEEP_SEE_OUTPUT), &io, &e) < 0) {
		k->err = e;
		tell_end(k, s, 125, END_ERROR);
		k->err = ERR_INIT;
		session_close(s);
		return;
	}
	start.flags = io.flags;
	start.rows = io.rows;
	start.cols = io.cols;
	give[n++] = fds[0];
	for (int i = 0; i < 3; i++)
		if (!(io.flags & BIT(i)))
			give[n++] = io.fd[i];
	if (init_send(k->native.ctl, &start, give, n) < 0)
		keeper_end(k, END_ERROR);
	for (int i = 0; i < 3; i++)
		fd_close(io.fd[i]);
}

static void detach(struct session *s)
{
	watch_free(s->on_client);
	s->on_client = NULL;
	fd_close(s->client);
	s->client = FD_NONE;
}

static void on_client(void *arg)
{
	struct client *c = arg;
	struct keeper *k = c->k;
	struct session *s = c->s;
	int fds[PACKET_FDS];
	struct keep_msg m;
	struct init_msg sig = { .type = INIT_SIGNAL, .session = s->id };
	int r = keep_recv(s->client, &m, fds);
	bool is_new = s->id != 0 && !s->has_asked;

	if (r == 1 && m.type == KEEP_EXEC && is_new && fds[3] >= 0) {
		s->has_asked = true; /* a second request is not permitted */
		start_exec(k, s, &m, fds);
	} else if (r == 1 && m.type == KEEP_SIGNAL && m.a > 0 && m.a < 32) {
		sig.a = m.a;
		(void)init_send(k->native.ctl, &sig, NULL, 0); /* init's end is seen elsewhere */
	} else if (r == 1 && m.type == KEEP_RESIZE) {
		session_resize(s, m.rows, m.cols);
	} else if (is_new) {
		session_close(s); /* gone before it asked for anything */
	} else {
		detach(s);
	}
	close_all(fds);
}

static void watch_client(struct keeper *k, struct session *s)
{
	struct client *c = &k->clients[s - k->sessions];

	*c = (struct client){ .k = k, .s = s };
	s->on_client = watch_fd(k->loop, s->client, WATCH_READ, on_client, c);
}

static bool is_our_user(int fd)
{
	struct ucred cred;
	socklen_t n = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) < 0)
		return false;
	return cred.uid == geteuid() || cred.uid == 0 || sabotaged("peercred");
}

static void on_accept(void *arg)
{
	struct keeper *k = arg;
	_close_ int fd = accept4(k->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct session *s = free_session(k);

	if (fd < 0 || s == NULL || !is_our_user(fd))
		return;
	*s = (struct session){ .is_used = true,
			       .id = ++k->last_id,
			       .client = take_fd(fd),
			       .master = FD_NONE,
			       .user = { FD_NONE, FD_NONE, FD_NONE },
			       .near = { FD_NONE, FD_NONE, FD_NONE } };
	watch_client(k, s);
}

/* ---- the sandbox's directory ---- */

/* One try; -EAGAIN when somebody who cleaned up took the directory away under us. */
static int claim_once(struct keeper *k, const char *dir, struct err *e)
{
	const struct plan *p = k->in->plan;
	_free_ char *home = mem_fmt("%s/home", dir);
	_close_ int at = FD_NONE, lock = FD_NONE;
	struct stat st;
	int r = path_make(p->is_named ? home : dir, 0700);

	if (r < 0)
		return err_set(e, ERR_SYSTEM, -r, "'%s': %s", dir, strerrordesc_np(-r));
	at = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (at < 0)
		return errno == ENOENT ? -EAGAIN : err_sys(e, "'%s'", dir);
	lock = openat(at, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (lock < 0)
		return errno == ENOENT ? -EAGAIN : err_sys(e, "lock of '%s'", p->name);
	/* Nobody else has a generated name; who holds its lock is just cleaning up. */
	if (flock(lock, p->is_named ? LOCK_EX | LOCK_NB : LOCK_EX) < 0)
		return err_set(e, ERR_CONFLICT, EBUSY,
			       "the sandbox '%s' is already running; 'vitrine exec %s -- CMD' "
			       "starts another command in it",
			       p->name, p->name);
	if (fstat(lock, &st) < 0 || st.st_nlink == 0)
		return -EAGAIN;
	k->dir = take_fd(at);
	k->lock = take_fd(lock);
	return 0;
}

/* Directory, lock, control socket. A name is taken while its lock is held; what a dead keeper left is reused. */
static int claim_name(struct keeper *k, struct err *e)
{
	const struct plan *p = k->in->plan;
	_free_ char *dir = mem_fmt("%s/sandboxes/%s", p->state_dir, p->name);
	int r = -EAGAIN;

	for (int i = 0; i < 100 && r == -EAGAIN; i++)
		r = claim_once(k, dir, e);
	return r == -EAGAIN
		       ? err_set(e, ERR_SYSTEM, EAGAIN, "'%s' is taken away again and again", dir)
		       : r;
}

static void remove_dead(int sandboxes, const char *name)
{
	_close_ int dir = openat(sandboxes, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	_close_ int lock = dir < 0 ? FD_NONE : openat(dir, "lock", O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	if (dir < 0 || (lock < 0 && errno != ENOENT) ||
	    (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) < 0))
		return;
	/* Without a lock it may be just being made, and only an empty directory may go. */
	if (lock >= 0) {
		(void)unlinkat(dir, "control", 0);
		(void)unlinkat(dir, "ca-bundle.pem", 0);
		(void)unlinkat(dir, "lock", 0);
	}
	(void)unlinkat(sandboxes, name,
		       AT_REMOVEDIR); /* a named one keeps its home, and so its directory */
}

/* What keepers that were killed have left: unnamed sandboxes whose lock nobody holds. */
static void clean_up(const struct keeper *k)
{
	_free_ char *path = mem_fmt("%s/sandboxes", k->in->plan->state_dir);
	DIR *d = opendir(path);
	struct dirent *en;

	while (d && (en = readdir(d)) != NULL)
		if (str_starts(en->d_name, "run-") && !str_eq(en->d_name, k->in->plan->name))
			remove_dead(dirfd(d), en->d_name);
	if (d)
		(void)closedir(d);
}

static int listen_control(struct keeper *k, struct err *e)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	_close_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return err_sys(e, "control socket");
	(void)unlinkat(k->dir, "control", 0); /* a dead keeper's */
	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "/proc/self/fd/%d/control", k->dir);
	if (bind(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(fd, 16) < 0)
		return err_sys(e, "control socket");
	k->listener = take_fd(fd);
	k->on_listener = watch_fd(k->loop, k->listener, WATCH_READ, on_accept, k);
	return 0;
}

static void release_name(struct keeper *k)
{
	const struct plan *p = k->in->plan;

	(void)unlinkat(k->dir, "control", 0);
	(void)unlinkat(k->dir, "ca-bundle.pem", 0); /* only of an inspected one */
	if (p->is_named && k->in->is_rm)
		(void)path_remove(
			k->dir,
			"home"); /* what cannot go is reported by nobody, and is only private space */
	if (!p->is_named || k->in->is_rm) {
		_free_ char *dir = mem_fmt("%s/sandboxes/%s", p->state_dir, p->name);

		(void)unlinkat(k->dir, "lock", 0);
		(void)rmdir(dir);
	}
	fd_close(take_fd(
		k->lock)); /* before the client knows of the end: the name is free when it does */
}

/* ---- a life ---- */

/* Leave everything of the client behind but the connection, the workspace and its stdio. */
static void part(struct keeper_in *in)
{
	int keep[] = { in->client, in->ws_fd };
	_free_ char *title = NULL;
	int max = 3;

	(void)setsid(); /* we were just forked, so this cannot fail */
	if (chdir("/") < 0)
		_exit(125);
	for (size_t i = 0; i < ARRAY_LEN(keep); i++)
		max = keep[i] >= max ? keep[i] + 1 : max;
	for (int fd = 3; fd < max && !sabotaged("fds"); fd++)
		if (fd != in->client && fd != in->ws_fd)
			(void)close(fd);
	if (!sabotaged("fds"))
		(void)syscall(SYS_close_range, max, ~0U, 0);
	title = mem_fmt("vitrine keeper %s", in->plan->name);
	title_set(title);
	/* Where root was dropped the kernel made us undumpable, and our children's files in /proc root's: their ids could
	 * not be mapped. Only here, where root's arguments and environment have been wiped: the client stays closed. */
	(void)prctl(PR_SET_DUMPABLE,
		    1); /* if it fails, so does mapping the ids, and that is reported */
	(void)signal(SIGHUP, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGINT, SIG_DFL);
	(void)signal(SIGTERM, SIG_DFL);
	(void)prctl(PR_SET_NAME, "vitrine-keeper");
	/* No core of ours may lie about: it would hold the policy and the environment. */
	(void)setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
}

static void on_term(void *arg)
{
	keeper_end(arg, END_STOPPED);
}

static void on_dead(void *arg)
{
	struct keeper *k = arg;

	loop_stop(k->loop);
}

static int start(struct keeper *k, struct err *e)
{
	struct keeper_in *in = k->in;
	struct session *s = &k->sessions[0];
	struct stdio io = { 0 };
	int r;

	*s = (struct session){ .is_used = true, .client = in->client, .master = FD_NONE };
	if (in->plan->is_named || in->plan->net.has_seal) {
		r = claim_name(k, e);
		if (r < 0)
			return r;
	}
	if (in->plan->limits[LIMIT_OUTPUT].is_set || in->plan->limits[LIMIT_IDLE].is_set)
		in->flags |= KEEP_SEE_OUTPUT;
	r = seal_start(k, e);
	if (r < 0)
		return r;
	r = session_open(s, in->stdio, in->flags, &io, e);
	if (r < 0)
		return r;
	if (in->plan->has_cgroup) {
		r = limits_open(k, e);
		if (r < 0)
			return r;
	}
	r = native_start(in->plan, &io, in->plan->has_cgroup ? &k->cgroup : NULL, &k->native, e);
	for (int i = 0; i < 3; i++)
		fd_close(io.fd[i]);
	if (r < 0)
		return r;
	/* Init is building; the rest is ours to do meanwhile. */
	k->loop = loop_new();
	k->on_ctl = watch_fd(k->loop, k->native.ctl, WATCH_READ, on_init, k);
	k->on_pidfd = watch_fd(k->loop, k->native.pidfd, WATCH_READ, on_dead, k);
	k->on_term = watch_signal(k->loop, SIGTERM, on_term, k);
	if (!in->plan->is_named && !in->plan->net.has_seal) {
		r = claim_name(k, e);
		if (r < 0)
			return r;
	}
	r = listen_control(k, e);
	if (r < 0)
		return r;
	clean_up(k);
	watch_client(k, s);
	limits_start(k);
	masks_start(k);
	seal_watch(k);
	gate_start(k);
	return in->plan->has_cgroup ? limits_attach(k, e) : 0;
}

/* Messages that init sent before it died are still in the socket. */
static void last_messages(struct keeper *k)
{
	struct pollfd p = { .fd = k->native.ctl, .events = POLLIN };

	while (poll(&p, 1, 0) > 0 && p.revents & POLLIN) {
		uint64_t before = k->n_messages;

		on_init(k);
		if (k->n_messages == before)
			break;
	}
}

static void finish(struct keeper *k)
{
	struct session *s = &k->sessions[0];

	(void)waitpid(k->native.pid, NULL, 0);
	last_messages(k);
	for (size_t i = 0; i < INIT_SESSIONS; i++)
		if (k->sessions[i].is_used)
			session_drain(&k->sessions[i]);
	limits_finish(k);
	if (k->why == END_EXIT && s->has_ended)
		k->why = k->main_why;
	else if (k->why == END_EXIT) {
		k->why = END_ERROR;
		if (k->err.kind == ERR_NONE)
			err_put_(&k->err, ERR_SYSTEM, ECHILD,
				 "the sandbox died before the command did");
		k->status = 125;
	}
	masks_finish(k);
	gate_finish(k);
	seal_finish(k);
}

static int status_for(const struct keeper *k)
{
	switch (k->why) {
	case END_EXIT:
	case END_SIGNAL:
		return k->status;
	case END_TIME:
	case END_IDLE:
	case END_CPU_TIME:
		return 124;
	case END_MEMORY:
	case END_OUTPUT:
		return 137;
	case END_STOPPED:
		return 143;
	case END_ERROR:
	case END_REASON_COUNT_:
		break;
	}
	return k->status ? k->status : 125;
}

static _Noreturn void keeper_main(struct keeper_in *in)
{
	struct keeper *k = mem_new(1, sizeof(*k));
	struct err e = ERR_INIT;
	int r;

	part(in);
	*k = (struct keeper){ .in = in,
			      .native = NATIVE_NONE,
			      .dir = FD_NONE,
			      .lock = FD_NONE,
			      .listener = FD_NONE,
			      .proc = FD_NONE };
	r = start(k, &e);
	if (r < 0) {
		native_done(&k->native);
		k->err = e;
		k->why = END_ERROR;
		k->status = err_exit_code(&e);
	} else {
		loop_run(k->loop);
		finish(k);
	}
	if (k->dir >= 0 && k->lock >= 0 && e.kind != ERR_CONFLICT)
		release_name(k);
	if (in->plan->has_cgroup)
		cgroup_remove(&k->cgroup);
	for (size_t i = 1; i < INIT_SESSIONS; i++)
		if (k->sessions[i].is_used)
			tell_end(k, &k->sessions[i], 137, END_STOPPED);
	tell_end(k, &k->sessions[0], status_for(k), k->why);
	_exit(0);
}

int keeper_spawn(struct keeper_in *in, struct err *e)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "socketpair");
	pid = fork();
	if (pid < 0) {
		fd_close(pair[0]);
		fd_close(pair[1]);
		return err_sys(e, "fork");
	}
	if (pid == 0) {
		fd_close(pair[0]);
		in->client = pair[1];
		keeper_main(in);
	}
	fd_close(pair[1]);
	return pair[0];
}
