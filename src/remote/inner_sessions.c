/* SPDX-License-Identifier: Apache-2.0 */
/* remote/inner_sessions.c - commands, their pipes and terminals
 *
 * The streams of a command's stdio are opened first, each with a pipe (or the terminal) whose far end the command will
 * get; then the command itself is asked for. When it dies, what it has written still goes out; its exit status follows
 * once all of that has been handed to the link.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>

#include "remote/inner.h"

enum { TTY = 3 };

struct command_session *session_get(struct server *sv, uint32_t id, bool may_make)
{
	struct command_session *room = NULL;

	for (size_t i = 0; i < INIT_SESSIONS; i++) {
		struct command_session *s = &sv->sessions[i];

		if (s->is_used && s->id == id)
			return s;
		if (!s->is_used && room == NULL)
			room = s;
	}
	if (!may_make || room == NULL)
		return NULL;
	*room = (struct command_session){ .server = sv,
					  .id = id,
					  .is_used = true,
					  .end = { FD_NONE, FD_NONE, FD_NONE },
					  .slave = FD_NONE,
					  .master = FD_NONE,
					  .keys = FD_NONE };
	return room;
}

const struct command_session *session_led(const struct server *sv, uint64_t sid)
{
	for (size_t i = 0; i < INIT_SESSIONS; i++)
		if (sv->sessions[i].is_used && sv->sessions[i].pid > 0 &&
		    (uint64_t)sv->sessions[i].pid == sid)
			return &sv->sessions[i];
	return NULL;
}

static void close_ends(struct command_session *s)
{
	for (int i = 0; i < 3; i++)
		fd_close(take_fd(s->end[i]));
	fd_close(take_fd(s->slave));
}

/* Forgets the session; parts that still have streams are answered and done. */
static void release(struct command_session *s)
{
	close_ends(s);
	fd_close(take_fd(s->master));
	fd_close(take_fd(s->keys));
	for (size_t i = 0; i < ARRAY_LEN(s->part); i++)
		if (s->part[i])
			s->part[i]->session = NULL;
	if (s->main)
		s->main->session = NULL;
	s->is_used = false;
}

int session_pipe(struct command_session *s, struct part *part, int which)
{
	int p[2], near;

	if (s->pid || s->part[which] || pipe2(p, O_CLOEXEC) < 0)
		return -EBUSY;
	near = p[which == 0 ? 1 : 0];
	s->end[which] = p[which == 0 ? 0 : 1];
	(void)fcntl(near, F_SETFL,
		    O_NONBLOCK); /* our end only: the command's stays as it expects it */
	(void)fcntl(near, F_SETPIPE_SZ, 256 * 1024); /* fewer turns; not everybody may */
	s->part[which] = part;
	part->session = s;
	if (which == 0)
		part->to = sink_new(s->server->loop, near);
	else
		part->from = source_new(s->server->loop, near);
	port_join(part->to, part->stream);
	port_join(part->from, part->stream);
	return 0;
}

int session_tty(struct command_session *s, struct part *part, uint16_t rows, uint16_t cols)
{
	int master;

	if (s->pid || s->part[TTY])
		return -EBUSY;
	master = command_pty(rows, cols, &s->slave);
	if (master < 0)
		return master;
	(void)fcntl(master, F_SETFL, O_NONBLOCK);
	s->master = master;
	s->part[TTY] = part;
	part->session = s;
	part->from = source_new(s->server->loop, fcntl(master, F_DUPFD_CLOEXEC, 3));
	part->to = sink_new(s->server->loop, fcntl(master, F_DUPFD_CLOEXEC, 3));
	port_join(part->to, part->stream);
	port_join(part->from, part->stream);
	return 0;
}

/* ---- start ---- */

static void not_started(struct command_session *s, int error, bool is_chdir)
{
	struct head h = { .status = 422 };

	head_add(&h, "errno", "%d", error);
	head_add(&h, "step", "%s", is_chdir ? "chdir" : "exec");
	(void)stream_respond(s->main->stream, &h, NULL, false); /* a dead link is seen elsewhere */
	s->main->kind = PART_DONE;
	s->server->is_over |= s->id == 0 && !s->server->plan.is_named;
	for (size_t i = 0; i < ARRAY_LEN(s->part); i++)
		if (s->part[i] && s->part[i]->from)
			source_finish(s->part[i]->from);
	release(s);
}

static int descriptor_for(struct command_session *s, int i, char word)
{
	switch (word) {
	case 'p':
		return s->end[i];
	case 't':
		return s->slave;
	case 's': /* errors where the output goes */
		return i == 2 ? s->end[1] : FD_NONE;
	case 'n':
		return s->server->null;
	default:
		return FD_NONE;
	}
}

static int read_request(struct server *sv, struct buf *b, struct request *ret)
{
	struct request_head head;
	char *text;

	if (b->n < sizeof(head))
		return -EBADMSG;
	memcpy(&head, b->p, sizeof(head));
	if (!request_is_head(&head) || b->n != sizeof(head) + head.bytes)
		return -EBADMSG;
	text = mem_strn(b->p + sizeof(head), head.bytes);
	return request_parse(&head, text, sv->plan.env, ret);
}

/* Who sends the signals of the terminal's keys. Without: they are bytes to whoever reads them. */
static void add_keys(struct command_session *s, struct command *c)
{
	int p[2];

	if (s->master < 0 || !keys_are_missing(s->master) || pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0)
		return;
	(void)fcntl(p[0], F_SETFL, 0); /* it waits, we do not */
	s->keys = p[1];
	c->beside_fd = p[0];
	c->beside = keys_sit;
}

int session_start(struct command_session *s, const char *stdio, struct buf *request)
{
	_cleanup_(request_done) struct request q = { 0 };
	struct head h = { .status = 200 };
	struct command c = { .pty = s->slave,
			     .open_files = rlimit_files(&s->server->plan),
			     .signals = s->server->begins_clean ? BIT(SIGPIPE) | BIT(SIGCHLD) : 0 };

	if (strlen(stdio) != 3 || read_request(s->server, request, &q) < 0)
		return -EBADMSG;
	for (int i = 0; i < 3; i++) {
		c.fd[i] = descriptor_for(s, i, stdio[i]);
		if (c.fd[i] < 0)
			return -EBADMSG;
	}
	c.argv = q.argv;
	c.env = q.env;
	c.cwd = q.cwd[0] ? q.cwd : s->server->plan.cwd;
	add_keys(s, &c);
	s->pid = command_spawn(&c);
	s->keys_pid = c.beside_pid;
	close_ends(s);
	if (c.beside)
		fd_close(c.beside_fd);
	if (c.beside_pid <= 0)
		fd_close(take_fd(s->keys));
	if (s->pid < 0) {
		not_started(s, c.error, c.is_chdir);
		return 0;
	}
	head_add(&h, "pid", "%d", s->pid);
	return stream_respond(s->main->stream, &h, NULL, true);
}

/* ---- end ---- */

static bool has_said_all(const struct command_session *s)
{
	for (size_t i = 1; i < ARRAY_LEN(s->part); i++)
		if (s->part[i] && s->part[i]->from && !source_is_ended(s->part[i]->from))
			return false;
	return true;
}

static void try_end(struct command_session *s)
{
	struct head h = { 0 };

	if (!s->has_ended || !s->is_used || s->is_parked || !has_said_all(s))
		return;
	head_add(&h, "exit", "%d", s->status);
	head_add(&h, "cpu", "%llu", (unsigned long long)s->cpu_ns);
	head_add(&h, "rss", "%llu", (unsigned long long)s->rss);
	head_add(&h, "written", "%llu", (unsigned long long)s->written);
	if (s->main)
		(void)stream_trailers(s->main->stream, &h);
	s->server->is_over |= s->id == 0 && !s->server->plan.is_named;
	release(s);
}

void sessions_all(int signo)
{
	bug_on(getpid() != 1); /* anywhere else, everybody is everybody */
	(void)kill(-1, signo); /* there may be nobody */
}

/* Of a sandbox that ends with its first command: that one has ended, and all others are being killed. */
static bool is_ending(const struct server *sv)
{
	for (size_t i = 0; i < INIT_SESSIONS; i++)
		if (sv->sessions[i].is_used && sv->sessions[i].id == 0)
			return sv->sessions[i].has_ended && !sv->plan.is_named;
	return sv->is_over;
}

static void on_exit_of(struct command_session *s, int status, const struct rusage *used)
{
	/* It was ended with the sandbox and not by itself: the keeper says so of every one that did not say how it ended. */
	if (s->id != 0 && is_ending(s->server))
		return;
	s->status = status;
	s->has_ended = true;
	command_used(used, &s->cpu_ns, &s->rss);
	s->written = (uint64_t)used->ru_oublock * 512; /* the kernel's unit */
	if (s->id == 0 && !s->server->plan.is_named)
		sessions_all(SIGKILL); /* the sandbox ends with the command it was made for */
	for (size_t i = 1; i < ARRAY_LEN(s->part); i++)
		if (s->part[i] && s->part[i]->from)
			source_finish(s->part[i]->from);
	try_end(s);
}

void session_reap(struct server *sv)
{
	struct rusage used;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG, &used)) > 0)
		for (size_t i = 0; i < INIT_SESSIONS; i++)
			if (sv->sessions[i].is_used && sv->sessions[i].pid == pid &&
			    !sv->sessions[i].has_ended)
				on_exit_of(&sv->sessions[i], status, &used);
}

ssize_t part_pull(void *arg, void *p, size_t n)
{
	struct part *part = arg;
	ssize_t r = part->server->is_parting ? 0
		    : part->from             ? source_pull(part->from, p, n)
					     : PULL_END;

	if (r == PULL_END && part->session)
		try_end(part->session);
	return r;
}

void session_part_gone(struct part *part)
{
	struct command_session *s = part->session;

	if (part->from)
		source_close(part->from); /* whoever writes learns that nobody reads */
	if (s == NULL)
		return;
	for (size_t i = 0; i < ARRAY_LEN(s->part); i++)
		if (s->part[i] == part)
			s->part[i] = NULL;
	if (s->main == part)
		s->main = NULL;
	try_end(s);
}

int session_again(struct command_session *s)
{
	struct head h = { .status = 200 };
	int r;

	s->is_parked = false;
	head_add(&h, "pid", "%d", s->pid);
	r = stream_respond(s->main->stream, &h, NULL, true);
	try_end(s);
	return r;
}

void session_signal(struct command_session *s, int signo)
{
	if (s->pid > 0 && !s->has_ended)
		(void)kill(-s->pid, signo); /* it may just have ended */
}

void session_size(struct command_session *s, uint16_t rows, uint16_t cols)
{
	struct winsize size = { .ws_row = rows, .ws_col = cols };

	if (s->master >= 0)
		(void)ioctl(s->master, TIOCSWINSZ, &size); /* it may just have ended */
}

int session_file(enum file_op op, mode_t mode, const char *text, size_t n, int *ret_fd)
{
	return file_act(op, mode, text, n, ret_fd);
}
