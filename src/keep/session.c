/* SPDX-License-Identifier: Apache-2.0 */
/* keep/session.c - see session.h */
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>

#include "keep/session.h"

static int open_one(struct session *s, int i, int user, enum stdio_kind kind, struct err *e)
{
	int p[2];

	switch (kind) {
	case STDIO_PASS:
		return fcntl(user, F_DUPFD_CLOEXEC, 3);
	case STDIO_NULL:
		return open("/dev/null", O_RDWR | O_CLOEXEC | O_NOCTTY);
	case STDIO_PTY:
		s->pty |= BIT(i);
		s->user[i] = fcntl(user, F_DUPFD_CLOEXEC, 3);
		return FD_NONE;
	case STDIO_RELAY:
		if (pipe2(p, O_CLOEXEC) < 0)
			return err_sys(e, "pipe");
		s->user[i] = fcntl(user, F_DUPFD_CLOEXEC, 3);
		s->near[i] = p[i == 0 ? 1 : 0];
		(void)fcntl(s->near[i], F_SETFL, O_NONBLOCK);
		return p[i == 0 ? 0 : 1];
	case STDIO_KIND_COUNT_:
		break;
	}
	bug_on(true);
	return FD_NONE;
}

int session_open(struct session *s, const int client_stdio[3], unsigned flags, struct stdio *io,
		 struct err *e)
{
	enum stdio_kind kind[3];
	struct winsize size = { 0 };

	s->master = FD_NONE;
	for (int i = 0; i < 3; i++)
		s->user[i] = s->near[i] = io->fd[i] = FD_NONE;
	stdio_decide(client_stdio, flags, kind);
	for (int i = 0; i < 3; i++) {
		if (i == 2 && kind[2] == STDIO_RELAY && kind[1] == STDIO_RELAY &&
		    is_same_file(client_stdio[1], client_stdio[2]))
			io->fd[2] = fcntl(io->fd[1], F_DUPFD_CLOEXEC, 3);
		else
			io->fd[i] = open_one(s, i, client_stdio[i], kind[i], e);
		if (io->fd[i] < 0 && kind[i] != STDIO_PTY)
			return err_sys(e, "stdio");
	}
	io->flags = s->pty;
	for (int i = 0; i < 3; i++)
		if (s->pty & BIT(i) && ioctl(client_stdio[i], TIOCGWINSZ, &size) == 0) {
			io->rows = size.ws_row;
			io->cols = size.ws_col;
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

/* One terminal inside stands for up to three descriptors outside: keys from stdin, everything it shows to the first
 * of stdout and stderr that is a terminal. */
static void begin_pty(struct session *s, struct loop *l, void (*fn)(void *arg), void *arg)
{
	int out = s->pty & INIT_PTY_OUT ? 1 : 2;

	(void)fcntl(s->master, F_SETFL, O_NONBLOCK);
	if (s->pty & (INIT_PTY_OUT | INIT_PTY_ERR))
		add_relay(s, l, fcntl(s->master, F_DUPFD_CLOEXEC, 3), take_fd(s->user[out]), fn,
			  arg);
	if (s->pty & INIT_PTY_IN)
		add_relay(s, l, take_fd(s->user[0]), fcntl(s->master, F_DUPFD_CLOEXEC, 3), fn, arg)
			->is_input = true;
}

void session_begin(struct session *s, struct loop *l, int take_master, void (*fn)(void *arg),
		   void *arg)
{
	s->master = take_master;
	s->has_begun = true;
	/* Output first: relays[0] is where a failure's last words are looked for. */
	if (s->near[2] >= 0)
		add_relay(s, l, take_fd(s->near[2]), take_fd(s->user[2]), fn, arg);
	if (s->pty && s->master >= 0)
		begin_pty(s, l, fn, arg);
	if (s->near[1] >= 0)
		add_relay(s, l, take_fd(s->near[1]), take_fd(s->user[1]), fn, arg);
	if (s->near[0] >= 0)
		add_relay(s, l, take_fd(s->user[0]), take_fd(s->near[0]), fn, arg)->is_input = true;
}

void session_mute(struct session *s)
{
	for (size_t i = 0; i < s->n_relays; i++)
		if (!s->relays[i]->is_input)
			s->relays[i]->is_broken = true;
}

void session_drain(struct session *s)
{
	for (size_t i = 0; i < s->n_relays; i++)
		if (!s->relays[i]->is_input)
			relay_drain(s->relays[i]);
}

void session_close(struct session *s)
{
	for (size_t i = 0; i < s->n_relays; i++)
		relay_free(s->relays[i]);
	for (int i = 0; i < 3; i++) {
		fd_close(s->user[i]);
		fd_close(s->near[i]);
	}
	watch_free(s->on_client);
	fd_close(s->client);
	fd_close(s->master);
	*s = (struct session){ .client = FD_NONE, .master = FD_NONE };
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

void session_resize(const struct session *s, uint16_t rows, uint16_t cols)
{
	struct winsize size = { .ws_row = rows, .ws_col = cols };

	if (s->master >= 0)
		(void)ioctl(s->master, TIOCSWINSZ, &size); /* the terminal may just have gone */
}
