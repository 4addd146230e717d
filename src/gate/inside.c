/* SPDX-License-Identifier: Apache-2.0 */
/* gate/inside.c - published ports: from the host's loopback to a port inside
 *
 * A socket belongs to the network namespace it was made in, and dial lives in the host's. From inside it was given one
 * socket (maker) and one listener (forge). Connecting the one to the other gives a second socket of that namespace,
 * the accepted one; disconnected (AF_UNSPEC) both are as new, and the second is free to be connected to where it is
 * wanted. So sockets of the sandbox are made without any process in it. What others inside send to the listener
 * only ever reaches the listener: each such connection is dropped, or used as a socket of that very namespace.
 */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "gate/dial.h"

struct published {
	struct dial *d;
	struct source s;
	struct net_port port;
	bool is_wanted;
	struct published *next;
};

static int disconnect(int fd)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };

	return connect(fd, &none, sizeof(none)) < 0 ? -errno : 0;
}

/* A fresh socket of the sandbox's namespace. */
static int make_socket(struct dial *d)
{
	struct sockaddr_storage forge;
	socklen_t n = sizeof(forge);
	_close_ int fd = FD_NONE;

	if (d->maker < 0 || getsockname(d->forge, (struct sockaddr *)&forge, &n) < 0)
		return -ENOTCONN;
	/* Within one machine the handshake is done when this returns. */
	if (connect(d->maker, (const struct sockaddr *)&forge, n) < 0 && errno != EINPROGRESS)
		return -errno;
	fd = accept4(d->forge, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	(void)disconnect(d->maker); /* as new for the next time */
	if (fd < 0)
		return -errno;
	return disconnect(fd) < 0 ? -errno : take_fd(fd);
}

int inside_connect(struct dial *d, uint16_t port)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	_close_ int fd = make_socket(d);

	if (fd < 0)
		return fd;
	if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0 && errno != EINPROGRESS)
		return -errno;
	return take_fd(fd);
}

static void on_caller(struct source *s, unsigned ready)
{
	struct published *p = holder_of(s, struct published, s);
	struct dial *d = p->d;
	struct gate_msg m = { .type = GATE_PUBLISHED,
			      .via = VIA_PUBLISHED,
			      .port = p->port.inside };
	int fds[2] = { accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), FD_NONE };

	(void)ready;
	if (fds[0] < 0)
		return;
	m.id = ++d->last_published;
	if (!d->has_link)
		fds[1] = inside_connect(d, p->port.inside);
	if (fds[1] < 0 && !d->has_link) {
		fd_close(fds[0]);
		return;
	}
	if (gate_send(d->front.fd, &m, fds, d->has_link ? 1 : 2) < 0) {
		/* Front has no room: the caller may try again. */
	}
	fd_close(fds[0]);
	fd_close(fds[1]);
}

static void publish(struct dial *d, struct net_port port, bool is_v6)
{
	struct sockaddr_in a4 = { .sin_family = AF_INET,
				  .sin_port = htons(port.outside),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6,
				   .sin6_port = htons(port.outside),
				   .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct gate_msg m = {
		.type = GATE_EVENT, .event = EVENT_ALERT, .via = VIA_PUBLISHED, .port = port.outside
	};
	_close_ int fd =
		socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct published *p;
	int one = 1;

	if (fd < 0)
		return;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if ((is_v6 ? bind(fd, (const struct sockaddr *)&a6, sizeof(a6))
		   : bind(fd, (const struct sockaddr *)&a4, sizeof(a4))) < 0 ||
	    listen(fd, 128) < 0) {
		if (is_v6)
			return; /* a host without IPv6 */
		gate_say(m.text, sizeof(m.text), "port %u of this host cannot be had: %s",
			 port.outside, strerrordesc_np(errno));
		dial_event(d, &m);
		return;
	}
	p = mem_new(1, sizeof(*p));
	*p = (struct published){ .d = d, .port = port, .is_wanted = true, .next = d->published };
	d->published = p;
	(void)source_open(&d->turn, &p->s, take_fd(fd), on_caller, POLLER_READ);
}

static bool keep_published(struct dial *d, struct net_port port)
{
	bool is_there = false;

	for (struct published *p = d->published; p; p = p->next)
		if (p->s.fd >= 0 && p->port.outside == port.outside &&
		    p->port.inside == port.inside)
			p->is_wanted = is_there = true;
	return is_there;
}

void published_update(struct dial *d)
{
	if (d->maker < 0 && !d->has_link)
		return;
	for (struct published *p = d->published; p; p = p->next)
		p->is_wanted = false;
	for (size_t i = 0; i < d->config.n_ports; i++) {
		if (keep_published(d, d->config.ports[i]))
			continue;
		publish(d, d->config.ports[i], false);
		publish(d, d->config.ports[i], true);
	}
	for (struct published *p = d->published; p; p = p->next)
		if (!p->is_wanted)
			source_close(&d->turn, &p->s); /* a few dozen bytes stay until the end */
}
