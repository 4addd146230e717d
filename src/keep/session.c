/* SPDX-License-Identifier: Apache-2.0 */
/* keep/session.c - see session.h */
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>

#include "keep/session.h"

static int own_copy(int fd)
{
	return fd < 0 ? FD_NONE : fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

static int open_one(struct session *s, int i, int user, enum stdio_kind kind, struct err *e)
{
	int p[2];

	switch (kind) {
	case STDIO_PASS:
		return own_copy(user);
	case STDIO_NULL:
		return open("/dev/null", O_RDWR | O_CLOEXEC | O_NOCTTY);
	case STDIO_PTY:
		s->pty |= BIT(i);
		s->user[i] = own_copy(user);
		return FD_NONE;
	case STDIO_RELAY:
		if (pipe2(p, O_CLOEXEC) < 0)
			return err_sys(e, "pipe");
		s->user[i] = own_copy(user);
		s->near[i] = p[i == 0 ? 1 : 0];
		(void)fcntl(s->near[i], F_SETFL, O_NONBLOCK);
		return p[i == 0 ? 0 : 1];
	case STDIO_KIND_COUNT_:
		break;
	}
	bug_on(true);
	return FD_NONE;
}

/* Nobody is there: no input, and output that is only kept; one stream, so that its order is kept too. */
static void decide_behind(unsigned flags, enum stdio_kind kind[3])
{
	bool has_tty = flags & KEEP_WANT_TTY;

	kind[0] = has_tty ? STDIO_PTY : STDIO_NULL;
	kind[1] = kind[2] = has_tty ? STDIO_PTY : STDIO_RELAY;
}

int session_open(struct session *s, const int client_stdio[3], unsigned flags, struct stdio *io,
		 struct err *e)
{
	static const int nobody[3] = { FD_NONE, FD_NONE, FD_NONE };
	const int *stdio = flags & KEEP_BEHIND ? nobody : client_stdio;
	enum stdio_kind kind[3];
	struct winsize size = { 0 };

	s->flags = flags;
	s->master = FD_NONE;
	for (int i = 0; i < 3; i++)
		s->user[i] = s->near[i] = io->fd[i] = FD_NONE;
	if (flags & KEEP_BEHIND)
		decide_behind(flags, kind);
	else
		stdio_decide(stdio, flags, kind);
	for (int i = 0; i < 3; i++) {
		if (i == 2 && kind[2] == STDIO_RELAY && kind[1] == STDIO_RELAY &&
		    (flags & KEEP_BEHIND || is_same_file(stdio[1], stdio[2])))
			io->fd[2] = fcntl(io->fd[1], F_DUPFD_CLOEXEC, 3);
		else
			io->fd[i] = open_one(s, i, stdio[i], kind[i], e);
		if (io->fd[i] < 0 && kind[i] != STDIO_PTY)
			return err_sys(e, "stdio");
	}
	io->flags = s->pty;
	for (int i = 0; i < 3; i++)
		if (s->pty & BIT(i) && ioctl(stdio[i], TIOCGWINSZ, &size) == 0) {
			s->rows = io->rows = size.ws_row;
			s->cols = io->cols = size.ws_col;
			break;
		}
	return 0;
}

static struct relay *add_relay(struct session *s, struct loop *l, int take_from, int take_to,
			       void (*fn)(void *arg), void *arg)
{
	bug_on(s->n_relays == ARRAY_LEN(s->relays));
	s->relays[s->n_relays] = relay_new(l, take_from, take_to, fn, arg);
	return s->relays[s->n_relays++];
}

/* One terminal inside stands for up to three descriptors outside. Its feed is seen by who sits before it. */
static void begin_pty(struct session *s, struct loop *l, void (*fn)(void *arg), void *arg)
{
	(void)fcntl(s->master, F_SETFL, O_NONBLOCK);
	add_relay(s, l, fcntl(s->master, F_DUPFD_CLOEXEC, 3), FD_NONE, fn, arg)->feed = s->feed;
}

static void on_room(void *arg)
{
	struct session *s = arg;

	for (size_t i = 0; i < s->n_relays; i++)
		if (s->relays[i]->feed)
			relay_kick(s->relays[i]);
}

void session_begin(struct session *s, struct loop *l, int take_master, void (*fn)(void *arg),
		   void *arg)
{
	s->master = take_master;
	s->has_begun = true;
	if ((s->pty && s->master >= 0) || s->flags & KEEP_RECORD)
		s->feed = feed_new(l, on_room, s);
	/* Output first: relays[0] is where a failure's last words are looked for. */
	if (s->near[2] >= 0)
		add_relay(s, l, take_fd(s->near[2]), take_fd(s->user[2]), fn, arg)->feed = s->feed;
	if (s->pty && s->master >= 0)
		begin_pty(s, l, fn, arg);
	if (s->near[1] >= 0) {
		s->out = add_relay(s, l, take_fd(s->near[1]), take_fd(s->user[1]), fn, arg);
		s->out->feed = s->feed;
	}
	if (s->near[0] >= 0)
		add_relay(s, l, take_fd(s->user[0]), take_fd(s->near[0]), fn, arg)->is_input = true;
}

void session_mute(struct session *s)
{
	for (size_t i = 0; i < s->n_relays; i++)
		if (!s->relays[i]->is_input)
			s->relays[i]->is_broken = true;
}

bool session_drain(struct session *s, uint64_t until)
{
	uint64_t before;
	bool is_empty;

	/* A feed makes room only as its viewers read: turn by turn, until nothing comes any more. */
	do {
		is_empty = true;
		before = session_output(s);
		for (size_t i = 0; i < s->n_relays; i++)
			if (!s->relays[i]->is_input)
				is_empty = relay_drain(s->relays[i], until) && is_empty;
		if (s->feed)
			is_empty = feed_drain(s->feed, until) && is_empty;
	} while (s->feed && session_output(s) != before && clock_now() < until);
	return is_empty && (s->feed == NULL || session_output(s) == before);
}

void session_close(struct session *s)
{
	for (size_t i = 0; i < s->n_relays; i++)
		relay_free(s->relays[i]);
	for (int i = 0; i < 3; i++) {
		fd_close(s->user[i]);
		fd_close(s->near[i]);
	}
	feed_free(s->feed);
	fd_close(s->master);
	free(s->words);
	*s = SESSION_NONE;
}

uint64_t session_output(const struct session *s)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < s->n_relays; i++)
		if (!s->relays[i]->is_input)
			sum += s->relays[i]->bytes;
	return sum;
}

uint64_t session_last_ns(const struct session *s)
{
	uint64_t last = 0;

	for (size_t i = 0; i < s->n_relays; i++)
		if (s->relays[i]->last_ns > last)
			last = s->relays[i]->last_ns;
	return last;
}

size_t session_tail(const struct session *s, const char **ret)
{
	if (s->n_relays == 0 || s->relays[0]->is_input)
		return 0;
	*ret = s->relays[0]->tail;
	return s->relays[0]->tail_n;
}

static void set_size(const struct session *s, uint16_t rows, uint16_t cols)
{
	struct winsize size = { .ws_row = rows, .ws_col = cols };
	struct init_msg m = { .type = INIT_RESIZE, .session = s->id, .rows = rows, .cols = cols };

	/* The terminal may just have gone. */
	if (s->sizer >= 0)
		(void)init_send(s->sizer, &m, NULL, 0);
	else
		(void)ioctl(s->master, TIOCSWINSZ, &size);
}

void session_resize(struct session *s, uint16_t rows, uint16_t cols)
{
	if (s->master < 0 || rows == 0 || cols == 0)
		return;
	s->rows = rows;
	s->cols = cols;
	set_size(s, rows, cols);
}

void session_repaint(struct session *s)
{
	if (s->master < 0 || s->rows < 2)
		return;
	/* The kernel tells of a size only when it changes. */
	set_size(s, (uint16_t)(s->rows - 1), s->cols);
	set_size(s, s->rows, s->cols);
}
