/* SPDX-License-Identifier: Apache-2.0 */
/* keep/seal.c - see seal.h
 *
 * seal takes longer to start than a sandbox and most commands never need it, so it sleeps until it is needed. The file
 * that is the bundle inside exists from the beginning, empty, and the keeper has a lease on it: whoever opens it waits
 * in open(), the keeper hears of it, and goes on when the bundle is complete. The first connection to an inspected host
 * wakes it too, and waits in the socket that front already has. Where there are no leases the start waits instead.
 *
 * What seal must know it is told by a child of the keeper (the teller), which reads the secrets where they are and may
 * take its time. The CA's key never leaves vitrine-seal: if that ends, inspected hosts are closed; it is started once
 * more, with a key of its own, which programs that run already do not know. What it sends is foreign.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/program.h"
#include "base/sabotage.h"
#include "keep/capture.h"
#include "keep/seal.h"
#include "keep/seal_parts.h"
#include "sys/spread.h"

#define ANSWER_MS 10000

_Static_assert(SEAL_KEEPER_FD == 3, "as program_become() places it");

static int spawn(struct seal *s, struct err *e)
{
	_free_ char *path = NULL;
	int pair[2];
	int r = program_find("vitrine-seal", &path, e);

	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "socketpair");
	s->pid = fork();
	if (s->pid == 0) {
		spread_before_exec();
		program_become(path, "vitrine-seal", NULL, &pair[1], 1);
	}
	fd_close(pair[1]);
	s->fd = pair[0];
	s->state = SEAL_BEGINS;
	s->n_starts++;
	return s->pid < 0 ? err_sys(e, "fork") : 0;
}

static void serve(struct seal *s)
{
	struct seal_msg m = { .type = SEAL_FRONT };

	bundle_end(&s->bundle, s->k, (struct str){ .p = s->ca.p, .n = s->ca.n });
	s->state = SEAL_SERVES;
	(void)fcntl(s->fd, F_SETFL, O_NONBLOCK); /* a seal that does not read is not waited for */
	if (s->way >= 0)
		(void)packet_send(s->fd, &m, sizeof(m), &s->way, 1);
	fd_close(s->way);
	s->way = FD_NONE;
	seal_values_watch(s);
}

static void stop(struct seal *s)
{
	seal_values_wipe(s->k->in);
	seal_forget_teller(s);
	watch_free(s->on);
	watch_free(s->on_way);
	s->on = s->on_way = NULL;
	fd_close(s->fd);
	s->fd = FD_NONE;
	fd_close(s->way);
	s->way = FD_NONE;
	if (s->pid > 0) {
		(void)kill(s->pid, SIGKILL); /* it has nothing to finish */
		(void)waitpid(s->pid, NULL, 0);
	}
	s->pid = 0;
}

/* Inspected hosts are closed from here on; the bundle is the host's own. */
static void close_seal(struct seal *s, const char *why)
{
	_free_ char *line = mem_fmt("network: %.300s; inspected hosts are closed", why);

	stop(s);
	bundle_end(&s->bundle, s->k, STR(""));
	s->state = SEAL_CLOSED;
	keeper_note(s->k, line);
}

void seal_told(void *arg)
{
	struct seal *s = arg;
	char why[400];
	ssize_t n = io_read(s->telling, why, sizeof(why) - 1);

	seal_forget_teller(s);
	memset(s->is_due, 0, sizeof(s->is_due));
	why[n > 0 ? n : 0] = '\0';
	if (n > 0 && s->state == SEAL_TOLD) {
		close_seal(s, why);
	} else if (n > 0) {
		_free_ char *line = mem_fmt("network: a secret could not be read anew: %s", why);

		keeper_note(s->k, line);
	}
}

static void on_message(void *arg);

static void wake(struct seal *s)
{
	struct err e = ERR_INIT;

	if (s->state != SEAL_SLEEPS)
		return;
	watch_free(s->on_way);
	s->on_way = NULL;
	if (spawn(s, &e) < 0)
		close_seal(s, e.msg);
	else
		s->on = watch_fd(s->k->loop, s->fd, WATCH_READ, on_message, s);
}

/* Somebody inside waits for the bundle. */
static void on_opened(void *arg)
{
	wake(arg);
}

/* Front has handed a connection over. */
static void on_way(void *arg)
{
	wake(arg);
}

static void lost(struct seal *s)
{
	bool is_first = s->n_starts < 2 && s->state == SEAL_SERVES;
	struct err e = ERR_INIT;

	if (!is_first) {
		close_seal(s, "vitrine-seal ended");
		return;
	}
	stop(s);
	tell_gate(s->k, "seal_lost");
	s->ca.n = 0;
	if (bundle_begin(&s->bundle, s->k, on_opened, s, &e) < 0) {
		close_seal(s, e.msg);
		return;
	}
	s->state = SEAL_SLEEPS;
	if (!s->bundle
		     .is_leased) /* it is open in some program: nobody can be made to wait for it */
		wake(s);
	gate_new_seal(s->k);
	keeper_note(s->k, "network: vitrine-seal ended and was started again; programs that run "
			  "already do not trust its new certificate");
}

static void hear(struct seal *s, const struct seal_msg *m)
{
	char why[400];

	switch (m->type) {
	case SEAL_CA:
		buf_add(&s->ca, m->data, m->n);
		if (s->state == SEAL_BEGINS)
			seal_tell(s, seal_tell_all);
		seal_values_wipe(s->k->in); /* the teller has its own */
		s->state = SEAL_TOLD;
		return;
	case SEAL_READY:
		if (s->state == SEAL_TOLD)
			serve(s);
		seal_inspect_due(s);
		return;
	case SEAL_FAILED:
		if (s->state == SEAL_SERVES) {
			(void)snprintf(why, sizeof(why), "network: the change was not taken: %.*s",
				       m->n < 300 ? (int)m->n : 300, m->data);
			keeper_note(s->k, why);
			return;
		}
		(void)snprintf(why, sizeof(why), "inspection: %.*s", m->n < 380 ? (int)m->n : 380,
			       m->data);
		close_seal(s, why);
		return;
	case SEAL_EVENT:
		seal_event(s, m);
		return;
	case SEAL_LOGIN:
		capture_take(s->capture, m);
		return;
	default:
		lost(s);
	}
}

static void on_message(void *arg)
{
	struct seal *s = arg;
	struct seal_msg m;
	int fds[PACKET_FDS];
	int r = seal_recv(s->fd, &m, fds);

	if (r == -EAGAIN)
		return;
	for (int i = 0; i < PACKET_FDS && r == 1; i++)
		fd_close(fds[i]);
	if (r == 1)
		hear(s, &m);
	else
		lost(s);
	explicit_bzero(&m, sizeof(m)); /* it may have been a login */
}

/* Where nobody can be made to wait for the bundle we do. */
static int wait_for_it(struct seal *s, struct err *e)
{
	while (s->state != SEAL_SERVES) {
		struct pollfd p[2] = { { .fd = s->fd, .events = POLLIN },
				       { .fd = s->telling, .events = POLLIN } };

		if (s->state == SEAL_CLOSED || poll(p, 2, ANSWER_MS) <= 0)
			return err_set(e, ERR_SYSTEM, EPIPE, "vitrine-seal ended, or says nothing");
		if (p[0].revents)
			on_message(s);
		else
			seal_told(s);
	}
	return 0;
}

/* Token stores with placeholders in place of tokens; readable as the bundle is. */
static int write_logins(const struct keeper *k, struct err *e)
{
	for (char *const *v = k->in->plan->net.logins; v && *v; v += 2) {
		_close_ int fd = openat(
			k->dir, v[0], O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);

		if (fd < 0 || fchmod(fd, 0644) < 0 || io_write_all(fd, v[1], strlen(v[1])) < 0)
			return err_sys(e, "the file for '%s'", v[0]);
	}
	return 0;
}

/* What would fail later is better said now. */
static int check_trust(const struct seal *s, struct err *e)
{
	_free_ char *path = NULL;
	int r = program_find("vitrine-seal", &path, e);

	return r < 0 ? r : bundle_trust_look(&s->k->in->plan->net, e);
}

int seal_start(struct keeper *k, struct err *e)
{
	struct seal *s;
	int r;

	if (!k->in->plan->net.has_seal)
		return 0;
	s = k->seal = mem_new(1, sizeof(*s));
	*s = (struct seal){ .k = k,
			    .fd = FD_NONE,
			    .bundle = BUNDLE_NONE,
			    .way = FD_NONE,
			    .telling = FD_NONE,
			    .capture = capture_new(k),
			    .ca = BUF(64 * KIB) };
	r = check_trust(s, e);
	if (r >= 0)
		r = write_logins(k, e);
	if (r >= 0)
		r = bundle_begin(&s->bundle, k, on_opened, s, e);
	if (r < 0 || s->bundle.is_leased)
		return r;
	r = spawn(s, e);
	return r < 0 ? r : wait_for_it(s, e);
}

/* Before it serves, its end of the pair is kept here: what front sends meanwhile waits in it. */
int seal_connect(struct keeper *k)
{
	struct seal_msg m = { .type = SEAL_FRONT };
	struct seal *s = k->seal;
	int pair[2];

	if (s == NULL || s->state == SEAL_CLOSED ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return FD_NONE;
	if (s->state != SEAL_SERVES) {
		watch_free(s->on_way);
		s->on_way = NULL;
		fd_close(s->way);
		s->way = pair[1];
		if (s->state == SEAL_SLEEPS)
			s->on_way = watch_fd(k->loop, s->way, WATCH_READ, on_way, s);
		return pair[0];
	}
	if (packet_send(s->fd, &m, sizeof(m), &pair[1], 1) < 0) {
		fd_close(pair[0]);
		pair[0] = FD_NONE;
	}
	fd_close(pair[1]);
	return pair[0];
}

void seal_watch(struct keeper *k)
{
	if (k->seal && k->seal->fd >= 0)
		k->seal->on = watch_fd(k->loop, k->seal->fd, WATCH_READ, on_message, k->seal);
}

void seal_settle(struct keeper *k)
{
	struct seal *s = k->seal;
	uint64_t until = clock_now() + KEEPER_LAST_NS;
	struct seal_msg m;
	int fds[PACKET_FDS], r;

	if (s == NULL || s->state != SEAL_SERVES || s->fd < 0 || sabotaged("seal-last"))
		return;
	(void)shutdown(s->fd, SHUT_WR);
	do {
		r = seal_recv(s->fd, &m, fds);
		for (int i = 0; i < PACKET_FDS && r == 1; i++)
			fd_close(fds[i]);
		if (r == 1 && (m.type == SEAL_EVENT || m.type == SEAL_LOGIN))
			hear(s, &m);
	} while (r == 1 || (r == -EAGAIN && wait_readable(s->fd, until)));
	explicit_bzero(&m, sizeof(m));
}

void seal_finish(struct keeper *k)
{
	struct seal *s = k->seal;

	if (s == NULL)
		return;
	stop(s);
	capture_free(s->capture);
	s->capture = NULL;
	bundle_close(&s->bundle); /* nobody is left who waits for it */
}
