/* SPDX-License-Identifier: Apache-2.0 */
/* remote/inner_net.c - the way to the gate, from behind foreign walls
 *
 * The engine made a network namespace with nothing in it but loopback. Where it left us the right to set it up, every
 * address is made ours and every connection is redirected, as the native engine does; where not, the proxy port and
 * the resolver listen on loopback and nothing else is reachable. All of it is done before the lock, which takes that
 * right from us and from everything we start.
 *
 * The gate is outside, and only the outer side can ask. So a few of its requests (POST /gate) always wait here; what
 * is accepted takes one of them and answers it, and from then on its two bodies are the connection. When none waits,
 * nothing is accepted: the kernel's own queue is the buffer. A question to the resolver is a connection too, one that
 * carries one question and one answer, each behind its length as DNS over TCP has it.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "base/num.h"
#include "remote/inner.h"
#include "sys/sample.h"

#define DNS_LONGEST 4096
#define AT_ONCE 16 /* accepted in one turn */

/* ---- the answer to a request that waited ---- */

static struct part *take_waiting(struct server *sv)
{
	struct part *part = sv->net.waiting;

	if (part) {
		sv->net.waiting = part->next;
		part->next = NULL;
		sv->net.n_waiting--;
	}
	return part;
}

/* IPv4 as IPv6 that holds it; the port is at the same place of both. */
static void take_address(const struct sockaddr_in6 *a, uint8_t b[16])
{
	struct sockaddr_in v4;

	if (a->sin6_family == AF_INET) {
		memcpy(&v4, a, sizeof(v4));
		memset(b, 0, 10);
		b[10] = b[11] = 0xff;
		memcpy(b + 12, &v4.sin_addr, 4);
	} else {
		memcpy(b, &a->sin6_addr, 16);
	}
}

static void put_address(struct head *h, const char *name, const struct sockaddr_in6 *a)
{
	uint8_t b[16];
	char text[33];

	take_address(a, b);
	for (int i = 0; i < 16; i++)
		(void)snprintf(text + 2 * (size_t)i, 3, "%02x", b[i]);
	head_add(h, name, "%s:%u", text, ntohs(a->sin6_port));
}

static struct head hello(const struct server *sv, const char *way, const struct sockaddr_in6 *from,
			 const struct sockaddr_in6 *to)
{
	struct head h = { .status = 200 };

	head_add(&h, "way", "%s", way);
	put_address(&h, "from", from);
	put_address(&h, "to", to);
	head_add(&h, "v6", "%d", sv->net.has_v6);
	return h;
}

/* Who it is that connects, as far as that can be seen. */
static void put_owner(struct server *sv, struct head *h, const struct sockaddr_in6 *from,
		      const struct sockaddr_in6 *to)
{
	struct owner_key q = { .from_port = ntohs(from->sin6_port),
			       .to_port = ntohs(to->sin6_port) };
	const struct command_session *of;
	struct process p = { 0 };
	char exe[256], name[16];
	uint32_t pid;

	take_address(from, q.from);
	take_address(to, q.to);
	pid = owner_find(&sv->net.owner, server_proc(sv), &q);
	if (pid == 0)
		return;
	owner_program(sv->proc, pid, exe, sizeof(exe));
	(void)snprintf(name, sizeof(name), "%u", pid);
	of = process_look(sv->proc, name, &p) ? session_led(sv, p.sid) : NULL;
	head_add(h, "pid", "%u", pid);
	head_add(h, "exe", "%s", exe);
	if (of)
		head_add(h, "session", "%u", of->id);
}

/* Both directions of a socket become those of the stream. */
static int join(struct part *part, int take_fd, const struct head *h)
{
	struct loop *l = part->server->loop;
	int copy = fcntl(take_fd, F_DUPFD_CLOEXEC, 3);

	if (copy < 0) {
		fd_close(take_fd);
		stream_reset(part->stream);
		return 0;
	}
	part->kind = PART_GATE;
	part->from = source_new(l, take_fd);
	part->to = sink_new(l, copy);
	port_is_socket(part->from);
	port_is_socket(part->to);
	port_join(part->from, part->stream);
	port_join(part->to, part->stream);
	if (++part->server->net.n_joined <= WIDE_GATES)
		stream_widen(part->stream, WIDE_GATE);
	return stream_respond(part->stream, h, part_pull, false);
}

/* ---- listeners ---- */

static void settle(struct server *sv)
{
	for (size_t i = 0; i < sv->net.n; i++)
		watch_set(sv->net.v[i].watch, sv->net.waiting != NULL && !sv->net.is_full);
}

static void on_listener(void *arg)
{
	struct outlet *o = arg;
	struct server *sv = o->server;

	for (int i = 0; i < AT_ONCE && sv->net.waiting; i++) {
		struct sockaddr_in6 from = { 0 }, to = { 0 };
		socklen_t n = sizeof(from), m = sizeof(to);
		int fd = accept4(o->fd, (struct sockaddr *)&from, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct head h;

		if (fd < 0) {
			/* No more files: when one of the connections ends there is room again. */
			sv->net.is_full = errno == EMFILE || errno == ENFILE;
			break;
		}
		(void)getsockname(fd, (struct sockaddr *)&to, &m); /* zeros are refused outside */
		h = hello(sv, o->way, &from, &to);
		put_owner(sv, &h, &from, &to);
		(void)join(take_waiting(sv), fd, &h); /* a dead link is seen elsewhere */
	}
	settle(sv);
}

static ssize_t pull_question(void *arg, void *p, size_t n)
{
	struct part *part = arg;
	struct buf *b = &part->question->text;

	if (b->n == 0 || n < b->n)
		return 0;
	n = b->n;
	memcpy(p, b->p, n);
	b->n = 0;
	return (ssize_t)n;
}

static void on_datagram(void *arg)
{
	struct outlet *o = arg;
	struct server *sv = o->server;

	for (int i = 0; i < AT_ONCE && sv->net.waiting; i++) {
		struct sockaddr_in here = { .sin_family = AF_INET,
					    .sin_port = htons(53),
					    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
		struct sockaddr_in6 to = { 0 };
		char in[DNS_LONGEST];
		struct datagram from;
		ssize_t n = datagram_recv(o->fd, in, sizeof(in), &from);
		struct part *part;
		struct head h;

		if (n == -EMSGSIZE)
			continue;
		if (n < 0)
			break;
		memcpy(&to, &here, sizeof(here));
		h = hello(sv, "dns", &from.from, &to);
		part = take_waiting(sv);
		part->kind = PART_QUESTION;
		part->question = mem_new(1, sizeof(*part->question));
		*part->question = (struct question){ .fd = o->fd,
						     .from = from,
						     .text = BUF(DNS_LONGEST + 2),
						     .answer = BUF(DNS_LONGEST + 2) };
		buf_putc(&part->question->text, (char)(n >> 8));
		buf_putc(&part->question->text, (char)n);
		buf_add(&part->question->text, in, (size_t)n);
		(void)stream_respond(part->stream, &h, pull_question, false);
	}
	settle(sv);
}

/* The answer may come in pieces; when it is whole the datagram goes and the stream with it. */
int net_answer(struct part *part, const void *p, size_t n)
{
	struct buf *b = &part->question->answer;
	size_t want;

	buf_add(b, p, n);
	stream_consumed(part->stream, n);
	if (b->is_over)
		return -EMSGSIZE;
	if (b->n < 2)
		return 0;
	want = (size_t)(unsigned char)b->p[0] << 8 | (unsigned char)b->p[1];
	if (b->n < want + 2)
		return 0;
	datagram_answer(part->question->fd, &part->question->from, b->p + 2, want);
	stream_reset(part->stream);
	part->kind = PART_DONE;
	return 0;
}

/* ---- requests ---- */

int net_wait(struct part *part)
{
	struct server *sv = part->server;

	if (!sv->is_locked || sv->net.n == 0 || sv->net.n_waiting >= LINK_WAITING)
		return -EBADMSG;
	part->kind = PART_WAITS;
	part->next = sv->net.waiting;
	sv->net.waiting = part;
	sv->net.n_waiting++;
	settle(sv);
	return 0;
}

int net_connect(struct part *part, const char *path)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct head h = { .status = 200 };
	_close_ int fd = FD_NONE;
	struct err ignored;
	uint64_t port;

	/* Without a gate there is no network here, and nobody to come in from. */
	if (!part->server->plan.net.has_gate || num_parse(path, 1, 65535, &port, &ignored) < 0)
		return -EBADMSG;
	to.sin_port = htons((uint16_t)port);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 ||
	    (connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0 && errno != EINPROGRESS)) {
		part->kind = PART_DONE;
		h.status = 502;
		return stream_respond(part->stream, &h, NULL, false);
	}
	/* Who is still connecting can be read and written as little as one that has nothing to say. */
	return join(part, take_fd(fd), &h);
}

/* The stream is over: in order, or in the middle of something, and then so is the connection. */
void net_part_gone(struct part *part)
{
	struct server *sv = part->server;
	struct linger now = { .l_onoff = 1 };

	if (part->kind == PART_WAITS)
		for (struct part **at = &sv->net.waiting; *at; at = &(*at)->next)
			if (*at == part) {
				*at = part->next;
				sv->net.n_waiting--;
				break;
			}
	if (part->kind == PART_GATE) {
		sv->net.n_joined--;
		sv->net.is_full = false;
		settle(sv);
	}
	if (part->kind == PART_GATE && !(part->has_end && source_is_ended(part->from))) {
		port_option(part->to, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
		port_free(part->to);
		part->to = NULL;
	}
	if (part->question) {
		buf_done(&part->question->text);
		buf_done(&part->question->answer);
		free(part->question);
	}
}

/* ---- set-up ---- */

static int add(struct server *sv, int take_fd, const char *way, watch_fn *fn)
{
	struct outlet *o = &sv->net.v[sv->net.n];

	if (take_fd < 0)
		return take_fd;
	if (sv->net.n == ARRAY_LEN(sv->net.v)) {
		fd_close(take_fd);
		return -E2BIG;
	}
	*o = (struct outlet){ .server = sv, .fd = take_fd, .way = way };
	o->watch = watch_fd(sv->loop, take_fd, WATCH_READ, fn, o);
	watch_set(o->watch, false);
	sv->net.n++;
	return 0;
}

static int add_ports(struct server *sv)
{
	const struct plan_net *p = &sv->plan.net;
	uint16_t ports[PLAN_PORTS_MAX];
	size_t n = plan_net_ports(p, ports);
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		r = add(sv, netns_listen_any(sv->net.has_v6, ports[i]), "tcp", on_listener);
		if (r == -EADDRINUSE)
			r = 0; /* one that a port of the host has taken stays that one's */
	}
	return r;
}

static int open_gate(struct server *sv)
{
	const struct plan_net *p = &sv->plan.net;
	struct err ignored;
	struct netns n;
	uint64_t port;
	int r = netns_open(&n);

	if (r < 0)
		r = netns_open_plain(&n);
	if (r < 0)
		return r;
	sv->net.owner.diag = n.fd[NETNS_DIAG];
	sv->net.owner.has_table = true;
	sv->net.has_v6 = n.has_v6;
	sv->net.mode = n.has_redirect ? "redirect" : n.has_routes ? "ports" : "proxy";
	r = add(sv, n.fd[NETNS_TCP], "tcp", on_listener);
	if (r == 0 && n.fd[NETNS_DNS_UDP] >= 0)
		r = add(sv, n.fd[NETNS_DNS_UDP], "dns", on_datagram);
	if (r == 0 && n.fd[NETNS_DNS_TCP] >= 0)
		r = add(sv, n.fd[NETNS_DNS_TCP], "dns", on_listener);
	for (size_t i = 0; r == 0 && i < p->n_host_ports; i++)
		if (num_parse(p->host_ports[i], 1, 65535, &port, &ignored) == 0)
			r = add(sv, netns_listen((uint16_t)port), "host", on_listener);
	return r == 0 && n.has_routes && !n.has_redirect ? add_ports(sv) : r;
}

int net_open(struct server *sv)
{
	const struct plan_net *p = &sv->plan.net;
	int r = 0;

	netns_low_ports();
	if (!p->has_gate && !p->has_receiver)
		return 0;
	(void)netns_loopback(); /* who may not raise it finds it up */
	if (p->has_receiver)
		r = add(sv, netns_listen(NETNS_TELEMETRY_PORT), "said", on_listener);
	return r == 0 && p->has_gate ? open_gate(sv) : r;
}
