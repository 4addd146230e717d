/* SPDX-License-Identifier: Apache-2.0 */
/* remote/inner_steward.c - the way to the files of a machine that can be saved
 *
 * The guest's kernel speaks 9P over a descriptor, and the other end is a program outside. A port of the machine is not what
 * the kernel takes for that (it reads sockets), so somebody moves the bytes: a process of its own, because init itself reads
 * and runs files, and would wait for itself. It is forked while we are root and stays so: commands have another id and cannot
 * touch it. It is also who may set the clock and take up a seed, when init no longer may.
 *
 * Requests go out whole, and each is answered; so when it is told to stop, it takes no further one, waits until none is
 * unanswered, and then nothing is on the way in either direction. What the kernel asks meanwhile waits in the socket.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

#include "base/io.h"
#include "remote/inner.h"
#include "remote/inner_steward.h"

#define MESSAGE_MAX 262144U
#define PIECE 65536U

/* One share. */
struct way {
	int port, kernel;
	char *out; /* the request that is being passed on */
	size_t n, at, whole;
	size_t unanswered;
	uint8_t head[4]; /* of the answer that is coming in */
	size_t n_head, left;
	bool is_deaf; /* the port has ended */
};

struct steward {
	struct way v[STEWARD_WAYS];
	size_t n;
	int ctl;
	bool is_stopping, has_said;
};

static uint32_t size_of(const void *p)
{
	const uint8_t *b = p;

	return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

/* Some of one request; never a byte of the next. */
static bool take_request(struct way *w)
{
	size_t want = w->n < 4 ? 4 - w->n : w->whole - w->n;
	ssize_t r = recv(w->kernel, w->out + w->n, want, MSG_DONTWAIT);

	if (r < 0)
		return errno == EAGAIN || errno == EINTR;
	if (r == 0)
		return false;
	w->n += (size_t)r;
	if (w->n == 4) {
		w->whole = size_of(w->out);
		if (w->whole < 7 || w->whole > MESSAGE_MAX)
			return false;
	}
	return true;
}

static bool is_whole(const struct way *w)
{
	return w->n >= 4 && w->n == w->whole;
}

static bool pass_on(struct way *w)
{
	ssize_t r = write(w->port, w->out + w->at, w->n - w->at);

	if (r < 0)
		return errno == EAGAIN || errno == EINTR;
	w->at += (size_t)r;
	if (w->at == w->n) {
		w->unanswered++;
		w->n = w->at = w->whole = 0;
	}
	return true;
}

/* How many answers end in these bytes. */
static void count(struct way *w, const char *p, size_t n)
{
	while (n > 0) {
		size_t k;

		if (w->left == 0) {
			w->head[w->n_head++] = (uint8_t)*p;
			p++;
			n--;
			if (w->n_head < 4)
				continue;
			w->n_head = 0;
			w->left = size_of(w->head) > 4 ? size_of(w->head) - 4 : 0;
		}
		k = n < w->left ? n : w->left;
		w->left -= k;
		p += k;
		n -= k;
		if (w->left == 0 && w->unanswered > 0)
			w->unanswered--;
	}
}

/* The kernel always takes answers, so writing to it waits for nobody. */
static bool bring_answer(struct way *w)
{
	char bytes[PIECE];
	ssize_t r = read(w->port, bytes, sizeof(bytes));

	if (r < 0)
		return errno == EAGAIN || errno == EINTR;
	w->is_deaf = r == 0;
	if (r == 0)
		return true;
	count(w, bytes, (size_t)r);
	return io_write_all(w->kernel, bytes, (size_t)r) == 0;
}

/* ---- what init asks for ---- */

static void renew(const struct steward_msg *m)
{
	struct timespec now = { .tv_sec = (time_t)(m->clock_ns / NS_PER_SEC),
				.tv_nsec = (long)(m->clock_ns % NS_PER_SEC) };

	(void)vm_seed(m->seed,
		      sizeof(m->seed)); /* it has been seeded before: it is as good as it was */
	(void)clock_settime(CLOCK_REALTIME, &now);
}

static bool on_init(struct steward *s)
{
	struct steward_msg m;
	const char done = STEWARD_GO;

	if (io_read(s->ctl, &m, sizeof(m)) != (ssize_t)sizeof(m))
		return false;
	s->is_stopping = m.op == STEWARD_STOP;
	s->has_said = false;
	if (m.op == STEWARD_GO)
		renew(&m);
	explicit_bzero(&m, sizeof(m));
	return s->is_stopping || io_write_all(s->ctl, &done, 1) == 0;
}

static bool is_still(const struct steward *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i].n > 0 || s->v[i].unanswered > 0)
			return false;
	return true;
}

static bool say_still(struct steward *s)
{
	const char done = STEWARD_STOP;

	if (!s->is_stopping || s->has_said || !is_still(s))
		return true;
	s->has_said = true;
	return io_write_all(s->ctl, &done, 1) == 0;
}

/* ---- its loop ---- */

static bool turn(struct steward *s)
{
	struct pollfd p[1 + 2 * STEWARD_WAYS] = { { .fd = s->ctl, .events = POLLIN } };
	bool is_napping = false;

	for (size_t i = 0; i < s->n; i++) {
		struct way *w = &s->v[i];
		bool may_take = !is_whole(w) && (w->n > 0 || !s->is_stopping);

		p[1 + 2 * i] =
			(struct pollfd){ .fd = w->is_deaf ? -1 : w->port,
					 .events = (short)(POLLIN | (is_whole(w) ? POLLOUT : 0)) };
		p[2 + 2 * i] = (struct pollfd){ .fd = may_take ? w->kernel : -1, .events = POLLIN };
		is_napping |= w->is_deaf;
		w->is_deaf = false;
	}
	/* A port whose other side is away is ready all the time: look again in a moment. */
	if (poll(p, 1 + 2 * (nfds_t)s->n, is_napping ? 5 : -1) < 0)
		return errno == EINTR;
	if (p[0].revents && !on_init(s))
		return false;
	for (size_t i = 0; i < s->n; i++) {
		struct way *w = &s->v[i];

		if (p[1 + 2 * i].revents & (POLLIN | POLLHUP) && !bring_answer(w))
			return false;
		if (p[2 + 2 * i].revents && !take_request(w))
			return false;
		if (is_whole(w) && !pass_on(w))
			return false;
	}
	return say_still(s);
}

static _Noreturn void live(struct steward *s)
{
	(void)signal(SIGPIPE, SIG_IGN);
	(void)prctl(PR_SET_NAME, "vitrine-steward");
	for (size_t i = 0; i < s->n; i++)
		s->v[i].out = mem_new(MESSAGE_MAX, 1);
	while (turn(s))
		;
	_exit(1);
}

/* ---- for init ---- */

int steward_start(const int *take_ports, size_t n, int ret_kernel[STEWARD_WAYS])
{
	struct steward s = { .n = n };
	int ctl[2], pair[STEWARD_WAYS][2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ctl) < 0)
		return -errno;
	for (size_t i = 0; i < n; i++) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair[i]) < 0)
			return -errno;
		(void)fcntl(take_ports[i], F_SETFL, O_NONBLOCK);
		s.v[i] = (struct way){ .port = take_ports[i], .kernel = pair[i][1] };
		ret_kernel[i] = pair[i][0];
	}
	s.ctl = ctl[1];
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		fd_close(ctl[0]);
		for (size_t i = 0; i < n; i++)
			fd_close(pair[i][0]);
		live(&s);
	}
	fd_close(ctl[1]);
	for (size_t i = 0; i < n; i++) {
		fd_close(pair[i][1]);
		fd_close(take_ports[i]);
	}
	return ctl[0];
}
