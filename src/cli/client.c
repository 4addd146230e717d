/* SPDX-License-Identifier: Apache-2.0 */
/* cli/client.c - see client.h
 *
 * The keeper moves the bytes; the client owns what only a process of the user's terminal can do: raw mode, window
 * size, job control, and turning its own signals into the command's.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>

#include "base/io.h"
#include "cli/client.h"
#include "core/hint.h"
#include "keep/screen.h"

static struct termios saved;
static int raw_fd = FD_NONE;

static void restore_terminal(void)
{
	if (raw_fd < 0)
		return;
	(void)tcsetattr(raw_fd, TCSADRAIN,
			&saved); /* the terminal may be gone; then there is nothing to restore */
	raw_fd = FD_NONE;
}

/* Undoes what the session has set on the terminal, and no more: the keeper says what that is. */
static void reset_modes(int fd, const struct outcome *o, bool is_known)
{
	_cleanup_(buf_done) struct buf b = BUF(4 * KIB);
	bool has_ended = is_known && !o->is_detached && o->why == END_EXIT;

	screen_put_reset(is_known ? o->screen : SCREEN_UNKNOWN,
			 has_ended ? SCREEN_ENDED : SCREEN_LEFT, &b);
	(void)io_write_all(fd, b.p, b.n);
}

static bool make_raw(int fd)
{
	struct termios raw;

	if (tcgetattr(fd, &saved) < 0)
		return false;
	raw = saved;
	cfmakeraw(&raw);
	if (tcsetattr(fd, TCSADRAIN, &raw) < 0)
		return false;
	raw_fd = fd;
	return true;
}

static void send_size(int conn)
{
	struct keep_msg m = { .type = KEEP_RESIZE };
	struct winsize size;

	if (ioctl(0, TIOCGWINSZ, &size) < 0 && ioctl(1, TIOCGWINSZ, &size) < 0)
		return;
	m.rows = size.ws_row;
	m.cols = size.ws_col;
	(void)keep_send(conn, &m, NULL, 0);
}

static void send_signal(int conn, int signo)
{
	struct keep_msg m = { .type = KEEP_SIGNAL, .a = signo };

	(void)keep_send(conn, &m, NULL, 0); /* a keeper that is gone is seen by the next read */
}

static void on_signal(int conn, const struct talk *t, int signo)
{
	struct keep_msg leave = { .type = KEEP_DETACH };

	if (signo == SIGWINCH) {
		send_size(conn);
		return;
	}
	if (signo == SIGHUP && t->leaves_on_hangup) {
		(void)keep_send(conn, &leave, NULL, 0);
		return;
	}
	send_signal(conn, signo);
	if (signo == SIGTSTP) {
		(void)raise(
			SIGSTOP); /* the command was asked to stop; so do we, until the shell says go on */
		send_signal(conn, SIGCONT);
	}
}

/* As a job of the shell: the kernel stops us and our group, unless there is no shell to let it go on. */
static void suspend(int conn)
{
	sigset_t stop;

	restore_terminal();
	(void)sigemptyset(&stop);
	(void)sigaddset(&stop, SIGTSTP);
	(void)sigprocmask(SIG_UNBLOCK, &stop, NULL);
	(void)kill(0, SIGTSTP);
	(void)sigprocmask(SIG_BLOCK, &stop, NULL);
	(void)make_raw(0);
	send_size(conn);
	send_signal(conn, SIGCONT);
}

static void on_note(struct outcome *out, const struct keep_msg *m)
{
	out->has_hint |= m->a && str_starts(m->err.msg, HINT_WORD);
	if (m->a)
		(void)fprintf(stderr, isatty(2) ? "\r\nvitrine: %s\r\n" : "vitrine: %s\n",
			      m->err.msg);
	else
		buf_add(&out->notes, m->err.msg, strlen(m->err.msg) + 1);
}

/* One message of the keeper. 1: the session has ended; 0: go on; < 0: there is no keeper any more. */
static int on_message(int conn, const struct talk *t, struct outcome *out, struct err *e)
{
	int fds[PACKET_FDS];
	struct keep_msg m;
	int r = keep_recv(conn, &m, fds);

	for (int i = 0; i < PACKET_FDS; i++)
		fd_close(fds[i]);
	/* The request was never received, so the command cannot have begun: the caller tries again. */
	if (r <= 0 && t->is_unsent && !out->has_begun) {
		out->why = END_CLOSING;
		out->status = 125;
		return 1;
	}
	/* Before the command began the connection also ends when somebody stopped the sandbox first. */
	if (r <= 0)
		return err_set(e, ERR_SYSTEM, EPIPE,
			       out->session > 0 ? "the keeper died; everything in the sandbox was "
						  "ended with it"
						: "the sandbox ended before the command was seen "
						  "to begin: it "
						  "was stopped meanwhile, or its keeper was "
						  "killed");
	if (m.type == KEEP_NOTE)
		on_note(out, &m);
	if (m.type == KEEP_STARTED) {
		out->session = m.session;
		out->has_begun = true;
	}
	if (m.type == KEEP_SUSPENDED && raw_fd >= 0)
		suspend(conn);
	if ((m.type == KEEP_ENDED || m.type == KEEP_DETACHED) && m.flags & STATE_SCREEN) {
		out->has_screen = true;
		memcpy(&out->screen, m.keys, sizeof(out->screen));
	}
	out->was_stopped = m.type == KEEP_ENDED && m.flags & STATE_STOPPED;
	/* Behind the scenes there is nothing to wait for. */
	out->is_detached =
		m.type == KEEP_DETACHED || (m.type == KEEP_STARTED && t->flags & KEEP_BEHIND);
	if (out->is_detached)
		return 1;
	if (m.type != KEEP_ENDED)
		return 0;
	memcpy(out->v, m.v, sizeof(out->v));
	out->session = m.session ? m.session : out->session;
	out->status = m.a;
	out->why = m.b >= 0 && m.b < END_REASON_COUNT_ ? (enum end_reason)m.b : END_ERROR;
	out->err = m.err;
	return 1;
}

static int serve(int conn, const struct talk *t, int sigs, struct outcome *out, struct err *e)
{
	struct pollfd p[2] = { { .fd = conn, .events = POLLIN }, { .fd = sigs, .events = POLLIN } };
	int r = 0;

	while (r == 0) {
		struct signalfd_siginfo info;

		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return err_sys(e, "poll");
		if (p[1].revents && read(sigs, &info, sizeof(info)) == (ssize_t)sizeof(info))
			on_signal(conn, t, (int)info.ssi_signo);
		if (p[0].revents)
			r = on_message(conn, t, out, e);
	}
	return r < 0 ? r : 0;
}

int client_serve(int conn, const struct talk *t, struct outcome *out, struct err *e)
{
	static const int forwarded[] = { SIGINT,  SIGTERM, SIGQUIT, SIGHUP,
					 SIGUSR1, SIGUSR2, SIGTSTP, SIGWINCH };
	int stdio[3] = { 0, 1, 2 };
	enum stdio_kind kind[3];
	_close_ int sigs = FD_NONE;
	bool is_raw = false;
	sigset_t set;
	int r;

	*out = (struct outcome){ .notes = BUF(64 * KIB) };
	(void)sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(forwarded); i++)
		(void)sigaddset(&set, forwarded[i]);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	sigs = signalfd(-1, &set, SFD_CLOEXEC);
	if (sigs < 0)
		return err_sys(e, "signalfd");
	stdio_decide(stdio, t->flags, kind);
	if (kind[0] == STDIO_PTY && isatty(0) && !(t->flags & KEEP_BEHIND))
		is_raw = make_raw(0);
	r = serve(conn, t, sigs, out, e);
	if (is_raw) {
		if (r < 0 || out->has_screen) /* without: nothing was ever shown */
			reset_modes(1, out, r >= 0);
		restore_terminal();
	}
	return r;
}

static void fill_talk(struct keep_msg *m, const struct talk *t)
{
	struct winsize size;

	m->flags = t->flags | KEEP_JOBS;
	if (t->keys)
		memcpy(m->keys, t->keys, KEEP_KEYS);
	if (ioctl(0, TIOCGWINSZ, &size) == 0 || ioctl(1, TIOCGWINSZ, &size) == 0) {
		m->rows = size.ws_row;
		m->cols = size.ws_col;
	}
}

int client_exec(int conn, struct talk *t, char *const *argv, char *const *env, const char *cwd,
		struct err *e)
{
	_close_ int request = request_make(argv, env, cwd, e);
	struct keep_msg m = { .type = KEEP_EXEC };
	int fds[PACKET_FDS] = { request, 0, 1, 2 };
	int r;

	if (request < 0)
		return request;
	fill_talk(&m, t);
	r = keep_send(conn, &m, fds, PACKET_FDS);
	/* A keeper that is ending has closed the connection; what it sent before that waits to be read. */
	t->is_unsent = r == -EPIPE || r == -ECONNRESET;
	return r < 0 && !t->is_unsent ? err_set(e, ERR_SYSTEM, -r, "the keeper does not answer")
				      : 0;
}

int client_attach(int conn, const struct talk *t, uint32_t session, struct err *e)
{
	struct keep_msg m = { .type = KEEP_ATTACH, .session = session };
	int fds[2] = { 0, 1 };
	int r;

	fill_talk(&m, t);
	r = keep_send(conn, &m, fds, 2);
	return r < 0 ? err_set(e, ERR_SYSTEM, -r, "the keeper does not answer") : 0;
}

int client_ask(int conn, struct keep_msg *m, enum keep_msg_type want, struct err *e)
{
	int r = keep_send(conn, m, NULL, 0);

	while (r == 0) {
		int fds[PACKET_FDS];

		r = keep_recv(conn, m, fds);
		for (int i = 0; i < PACKET_FDS; i++)
			fd_close(fds[i]);
		if (r == 1 && m->type == want)
			return 0;
		if (r == 1 && m->type == KEEP_ENDED && m->b == END_ERROR) {
			*e = m->err;
			return e->num ? -e->num : -EPROTO;
		}
		r = r == 1 ? 0 : -EPIPE;
	}
	return err_set(e, ERR_SYSTEM, EPIPE, "the keeper is gone");
}
