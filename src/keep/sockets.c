/* SPDX-License-Identifier: Apache-2.0 */
/* keep/sockets.c - unix sockets of the host that the policy names, as bytes
 *
 * For each there is a listening socket of ours in the sandbox's folder, and the view shows that one at the host's
 * path: what connects inside reaches the keeper and nobody else. The keeper connects to the real one and carries bytes
 * both ways. No descriptor passes, in either direction, and nothing of the host's socket is ever inside.
 *
 * The real one is opened anew for every connection, without following links, so that a service may restart; what lies
 * at its place by then must be a socket.
 */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/path.h"
#include "keep/keeper.h"

#define CONNECTIONS_MAX 32

struct door {
	struct keeper *k;
	const char *host;
	int fd;
	struct watch *watch;
};

struct connection {
	struct sockets *all;
	int inside, host;
	struct relay *out, *in; /* towards the host, towards the sandbox */
	bool out_done, in_done;
};

struct sockets {
	struct keeper *k;
	struct door *doors;
	size_t n_doors;
	struct connection connections[CONNECTIONS_MAX];
	struct watch *on_reap;
};

static void name_of(char *name, size_t size, size_t i)
{
	(void)snprintf(name, size, SOCKETS_NAME "%zu", i);
}

static int unix_address(struct sockaddr_un *sa, int dir, const char *name)
{
	*sa = (struct sockaddr_un){ .sun_family = AF_UNIX };
	return snprintf(sa->sun_path, sizeof(sa->sun_path), "/proc/self/fd/%d%s%s", dir,
			name[0] ? "/" : "", name);
}

/* ---- one connection ---- */

static void connection_done(struct connection *c)
{
	relay_free(c->out);
	relay_free(c->in);
	fd_close(c->inside);
	fd_close(c->host);
	*c = (struct connection){ .inside = FD_NONE, .host = FD_NONE };
}

static void on_reap(void *arg)
{
	struct sockets *s = arg;

	watch_free(s->on_reap);
	s->on_reap = NULL;
	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		if (s->connections[i].out_done && s->connections[i].in_done)
			connection_done(&s->connections[i]);
}

/* One way has ended: its reader sees the end, the other way goes on. */
static void on_moved(void *arg)
{
	struct connection *c = arg;

	if (c->out && c->out->is_done && !c->out_done) {
		c->out_done = true;
		(void)shutdown(c->host, SHUT_WR);
	}
	if (c->in && c->in->is_done && !c->in_done) {
		c->in_done = true;
		(void)shutdown(c->inside, SHUT_WR);
	}
	/* A relay must not be freed by its own callback. */
	if (c->out_done && c->in_done && c->all->on_reap == NULL)
		c->all->on_reap = watch_timer(c->all->k->loop, 1, false, on_reap, c->all);
}

static int connect_host(const char *path)
{
	_close_ int at = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un sa;
	struct stat st;

	if (at < 0 || fd < 0 || fstat(at, &st) < 0 || !S_ISSOCK(st.st_mode))
		return -ECONNREFUSED;
	(void)unix_address(&sa, at, "");
	if (connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0)
		return -errno;
	return take_fd(fd);
}

static struct connection *free_connection(struct sockets *s)
{
	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		if (s->connections[i].all == NULL)
			return &s->connections[i];
	return NULL;
}

static void on_knock(void *arg)
{
	struct door *d = arg;
	struct sockets *s = d->k->sockets;
	_close_ int inside = accept4(d->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	_close_ int host = inside < 0 ? FD_NONE : connect_host(d->host);
	_close_ int from = FD_NONE, to = FD_NONE;
	struct connection *c = free_connection(s);

	if (inside < 0 || host < 0 || c == NULL)
		return; /* hung up on: nobody answers there, or too many are talking */
	from = fcntl(inside, F_DUPFD_CLOEXEC, 3);
	to = fcntl(host, F_DUPFD_CLOEXEC, 3);
	if (from < 0 || to < 0)
		return;
	*c = (struct connection){ .all = s, .inside = take_fd(inside), .host = take_fd(host) };
	c->out = relay_new(d->k->loop, take_fd(from), take_fd(to), on_moved, c);
	c->in = relay_new(d->k->loop, fcntl(c->host, F_DUPFD_CLOEXEC, 3),
			  fcntl(c->inside, F_DUPFD_CLOEXEC, 3), on_moved, c);
}

/* ---- all ---- */

static int open_door(struct keeper *k, struct door *d, size_t i, struct err *e)
{
	struct sockaddr_un sa;
	char name[32];

	*d = (struct door){ .k = k, .host = k->in->plan->sockets[i].host };
	d->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	name_of(name, sizeof(name), i);
	(void)unlinkat(k->dir, name, 0); /* a dead keeper's */
	(void)unix_address(&sa, k->dir, name);
	/* The folder is closed to everybody else; inside it may be another id that connects. */
	if (d->fd < 0 || bind(d->fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0 ||
	    fchmodat(k->dir, name, 0666, 0) < 0 || listen(d->fd, 16) < 0)
		return err_sys(e, "socket for '%s'", d->host);
	d->watch = watch_fd(k->loop, d->fd, WATCH_READ, on_knock, d);
	return 0;
}

int sockets_open(struct keeper *k, struct err *e)
{
	const struct plan *p = k->in->plan;
	int r = 0;

	if (p->n_sockets == 0)
		return 0;
	k->sockets = mem_new(1, sizeof(*k->sockets));
	k->sockets->k = k;
	k->sockets->doors = mem_new(p->n_sockets, sizeof(*k->sockets->doors));
	for (size_t i = 0; r == 0 && i < p->n_sockets; i++, k->sockets->n_doors++)
		r = open_door(k, &k->sockets->doors[i], i, e);
	return r;
}

void sockets_close(struct keeper *k)
{
	char name[32];

	for (size_t i = 0; k->sockets && k->dir >= 0 && i < k->sockets->n_doors; i++) {
		name_of(name, sizeof(name), i);
		(void)unlinkat(k->dir, name, 0);
	}
}
