/* SPDX-License-Identifier: Apache-2.0 */
/* engine/native/init.c - pid 1 inside: starts commands, reaps everything, ends when its keeper does
 *
 * Init is locked in like every command it starts; what it starts inherits the walls and nothing else. It is not
 * dumpable, so nothing inside can look into it, and as pid 1 it gets no signal it did not ask for. Init ends with the
 * first command; in a named sandbox that others have come to it ends when the keeper says so. Either way the kernel ends
 * every other process of the namespace with it.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/sabotage.h"
#include "engine/native/native.h"
#include "sys/spread.h"

static struct {
	pid_t pid; /* 0: free */
	uint32_t session;
} sessions[INIT_SESSIONS];

static bool stays;

/* While everything inside is stopped nothing is started: requests wait. */
static struct {
	bool is_on;
	size_t n;
	struct init_msg m[INIT_SESSIONS];
	int fds[INIT_SESSIONS][PACKET_FDS];
} frozen;

int init_send(int fd, const struct init_msg *m, const int *fds, size_t n_fds)
{
	return packet_send(fd, m, sizeof(*m), fds, n_fds);
}

int init_recv(int fd, struct init_msg *m, int fds[PACKET_FDS])
{
	int r = packet_recv(fd, m, sizeof(*m), fds);

	m->err.msg[sizeof(m->err.msg) - 1] = '\0';
	return r;
}

/* ---- sessions ---- */

static int find_slot(void)
{
	for (int i = 0; i < INIT_SESSIONS; i++)
		if (sessions[i].pid == 0)
			return i;
	return -EAGAIN;
}

static void start_session(int ctl, uint32_t session, struct command *c, const struct stdio *io)
{
	struct init_msg m = { .type = INIT_STARTED, .session = session };
	_close_ int master = FD_NONE;
	int slot = find_slot();
	pid_t pid = -1;

	c->pty = FD_NONE;
	if (slot < 0) {
		c->error = EAGAIN;
	} else if (io->flags) {
		master = command_pty(io->rows, io->cols, &c->pty);
		c->error = master < 0 ? -master : 0;
	}
	for (int i = 0; i < 3; i++)
		c->fd[i] = io->flags & BIT(i) ? c->pty : io->fd[i];
	if (c->error == 0)
		pid = command_spawn(c);
	for (int i = 0; i < 3; i++)
		if (!(io->flags & BIT(i)))
			fd_close(io->fd[i]);
	fd_close(c->pty);
	if (c->error) {
		m.type = INIT_NOT_STARTED;
		m.a = c->error;
		m.b = c->is_chdir;
		(void)init_send(ctl, &m, NULL, 0);
		return;
	}
	sessions[slot].pid = pid;
	sessions[slot].session = session;
	m.a = pid;
	(void)init_send(ctl, &m, &master, master >= 0 ? 1 : 0);
}

static int start_request(const struct child *c, const struct init_msg *m, int request,
			 const struct stdio *io)
{
	_cleanup_(request_done) struct request q = { 0 };
	struct request_head head;
	_free_ char *text = NULL;
	struct command cmd = { .open_files = rlimit_files(c->plan) };

	if (pread(request, &head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
	    !request_is_head(&head))
		return -EBADMSG;
	text = mem_new(head.bytes + 1, 1);
	if (pread(request, text, head.bytes, sizeof(head)) != (ssize_t)head.bytes ||
	    request_parse(&head, take(text), c->plan->env, &q) < 0)
		return -EBADMSG;
	cmd.argv = q.argv;
	cmd.env = q.env;
	cmd.cwd = q.cwd[0] ? q.cwd : c->plan->cwd;
	start_session(c->ctl, m->session, &cmd, io);
	return 0;
}

static void on_start(const struct child *c, const struct init_msg *m, int fds[PACKET_FDS])
{
	struct stdio io = { .flags = m->flags & 7, .rows = m->rows, .cols = m->cols };
	struct init_msg no = { .type = INIT_NOT_STARTED, .session = m->session, .a = EBADMSG };
	size_t at = 1;

	for (int i = 0; i < 3; i++)
		io.fd[i] = io.flags & BIT(i) ? FD_NONE : fds[at++];
	if (start_request(c, m, fds[0], &io) < 0)
		(void)init_send(c->ctl, &no, NULL, 0);
	fd_close(fds[0]);
}

static void hold_start(const struct child *c, const struct init_msg *m, int fds[PACKET_FDS])
{
	struct init_msg no = { .type = INIT_NOT_STARTED, .session = m->session, .a = EAGAIN };

	if (frozen.n < INIT_SESSIONS) {
		frozen.m[frozen.n] = *m;
		memcpy(frozen.fds[frozen.n++], fds, PACKET_FDS * sizeof(int));
		return;
	}
	for (int i = 0; i < PACKET_FDS; i++)
		fd_close(fds[i]);
	(void)init_send(c->ctl, &no, NULL, 0);
}

/* With a: the keeper has no better way to stop processes than this one, which they can undo. */
static void on_freeze(const struct child *c, const struct init_msg *m)
{
	struct init_msg done = { .type = INIT_FROZEN, .a = m->a };

	frozen.is_on = true;
	if (m->a)
		(void)kill(-1, SIGSTOP);
	(void)init_send(c->ctl, &done, NULL, 0);
}

static void on_thaw(const struct child *c, const struct init_msg *m)
{
	size_t n = frozen.n;

	if (m->a)
		(void)kill(-1, SIGCONT);
	frozen.is_on = false;
	frozen.n = 0;
	for (size_t i = 0; i < n; i++)
		on_start(c, &frozen.m[i], frozen.fds[i]);
}

static void on_signal(const struct init_msg *m)
{
	for (int i = 0; i < INIT_SESSIONS; i++)
		if (sessions[i].pid > 0 && sessions[i].session == m->session)
			(void)kill(-sessions[i].pid, m->a); /* it may just have ended */
}

static void send_proc(const struct child *c)
{
	struct init_msg m = { .type = INIT_PROC };
	_close_ int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		(void)init_send(c->ctl, &m, &fd, 1);
}

static void on_message(const struct child *c)
{
	struct init_msg m;
	int fds[PACKET_FDS];

	if (init_recv(c->ctl, &m, fds) != 1)
		_exit(0); /* no keeper, no sandbox */
	switch (m.type) {
	case INIT_START:
		if (frozen.is_on)
			hold_start(c, &m, fds);
		else
			on_start(c, &m, fds);
		break;
	case INIT_SIGNAL:
		on_signal(&m);
		break;
	case INIT_FREEZE:
		on_freeze(c, &m);
		break;
	case INIT_THAW:
		on_thaw(c, &m);
		break;
	case INIT_STAY:
		stays = true;
		break;
	case INIT_WANT_PROC:
		send_proc(c);
		break;
	case INIT_FILE:
		init_file(c->ctl, &m, fds[0]);
		break;
	default:
		break;
	}
}

/* Whoever the command left behind ends here and not by our own end, so that the keeper need not wait for that: to take
 * the namespaces apart takes the kernel longer than all the rest. True when we are the last one. */
static bool end_others(void)
{
	if (getpid() != 1) /* sabotaged: "all others" would be all of the host's */
		return false;
	/* Whoever loses its parent becomes our child, so without children we are alone. */
	while (waitpid(-1, NULL, WNOHANG) >= 0 || errno == EINTR) {
		(void)kill(-1, SIGKILL);
		(void)waitpid(-1, NULL, 0);
	}
	return errno == ECHILD;
}

static void reap(const struct child *c)
{
	struct init_msg m = { .type = INIT_EXITED };
	struct rusage used;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG, &used)) > 0) {
		for (int i = 0; i < INIT_SESSIONS; i++) {
			if (sessions[i].pid != pid)
				continue;
			sessions[i].pid = 0;
			m.session = sessions[i].session;
			m.a = status;
			command_used(&used, &m.cpu_ns, &m.max_rss);
			m.written = (uint64_t)used.ru_oublock * 512; /* the kernel's unit */
			if (m.session == 0 && !c->plan->is_named)
				m.b = end_others();
			(void)init_send(c->ctl, &m, NULL, 0);
			if (m.session == 0 && (!c->plan->is_named || !stays))
				_exit(0);
		}
	}
}

/* We are a copy of the keeper and still hold what it held when it cloned us: the user's files and terminal, the far
 * ends of the relays (a command would never see the end of its input), the workspace without its covers. */
static void let_go(const struct child *c)
{
	int keep[4] = { c->ctl, c->io.fd[0], c->io.fd[1], c->io.fd[2] };
	int from = 0;

	if (sabotaged("fds"))
		return;
	for (;;) {
		int next = -1;

		for (size_t i = 0; i < ARRAY_LEN(keep); i++)
			if (keep[i] >= from && (next < 0 || keep[i] < next))
				next = keep[i];
		if (next != from)
			(void)syscall(SYS_close_range, from, next < 0 ? ~0U : (unsigned)next - 1,
				      0);
		if (next < 0)
			break;
		from = next + 1;
	}
	for (int fd = 0; fd < 3; fd++)
		/* NOLINTNEXTLINE(android-cloexec-open): the three that commands may inherit */
		if (open("/dev/null", O_RDWR) != fd)
			_exit(125);
}

static void start_first(const struct child *c)
{
	struct command first = { .argv = c->plan->argv,
				 .env = c->plan->env,
				 .cwd = c->plan->cwd,
				 .open_files = rlimit_files(c->plan) };
	struct init_msg ready = { .type = INIT_READY };

	if (c->plan->argv[0] == NULL)
		(void)init_send(c->ctl, &ready, NULL, 0);
	else
		start_session(c->ctl, 0, &first, &c->io);
	if (first.error && !c->plan->is_named)
		_exit(0);
}

_Noreturn void init_main(struct child *c)
{
	struct pollfd p[2] = { { .fd = c->ctl, .events = POLLIN }, { .events = POLLIN } };
	sigset_t set;

	let_go(c);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	p[1].fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (p[1].fd < 0)
		_exit(125);
	start_first(c);
	spread_end();
	for (;;) {
		struct signalfd_siginfo info;

		if (poll(p, 2, -1) < 0 && errno != EINTR)
			_exit(125);
		/* What the keeper said before a command ended is heard before its end is acted upon. */
		if (p[0].revents) {
			on_message(c);
			continue;
		}
		if (p[1].revents)
			while (read(p[1].fd, &info, sizeof(info)) > 0)
				;
		reap(c);
	}
}
