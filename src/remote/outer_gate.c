/* SPDX-License-Identifier: Apache-2.0 */
/* remote/outer_gate.c - connections of the inside, handed to the gate
 *
 * A few requests always wait at init. One that is answered is a connection: we make a pair of sockets, give one end to
 * the gate's front together with what init said about it, and move bytes between the other end and the stream. To
 * front it is a client like any it accepts itself; where it wanted to go is its own claim, as it always is, and dial
 * decides. The next request is sent when front has taken this one, so a gate that is slow is felt inside as a listener
 * that is slow, and nothing piles up here.
 *
 * Front says when it breaks a connection off rather than ends it, before it closes its end.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "base/num.h"
#include "base/sabotage.h"
#include "policy/addr.h"
#include "remote/outer_flow.h"

#define JOINED_MAX 2048 /* connections at once */
#define SPARE_FILES 400 /* of those we may have open, for everything else */

/* ---- what init says of one ---- */

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* 32 hexadecimal digits, a colon and a port. */
static bool take_address(const char *text, struct addr *a, uint16_t *port)
{
	struct err ignored;
	uint64_t n;

	if (text == NULL || strnlen(text, 33) < 33 || text[32] != ':')
		return false;
	for (size_t i = 0; i < 16; i++) {
		int high = hex(text[2 * i]), low = hex(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		a->b[i] = (uint8_t)(high << 4 | low);
	}
	if (num_parse(text + 33, 0, 65535, &n, &ignored) < 0)
		return false;
	*port = (uint16_t)n;
	return true;
}

static bool is_said(const struct head *h)
{
	const char *way = head_get(h, "way");

	return h->status == 200 && way && str_eq(way, "said");
}

static bool take_way(const char *text, uint32_t *via)
{
	static const struct {
		const char *name;
		uint32_t via;
	} ways[] = { { "tcp", VIA_NONE }, { "dns", VIA_DNS }, { "host", VIA_HOST_PORT } };

	for (size_t i = 0; text && i < ARRAY_LEN(ways); i++)
		if (str_eq(text, ways[i].name)) {
			*via = ways[i].via;
			return true;
		}
	return false;
}

static bool read_hello(const struct head *h, struct gate_msg *m)
{
	uint64_t v6;

	if (h->status != 200 || !take_way(head_get(h, "way"), &m->via) ||
	    head_number(h, "v6", 1, &v6) < 0 ||
	    !take_address(head_get(h, "from"), &m->from, &m->from_port) ||
	    !take_address(head_get(h, "to"), &m->to, &m->to_port))
		return false;
	m->flags = v6 ? GATE_HAS_V6 : 0;
	return true;
}

/* Who it is, for the record: the keeper hears it before the gate hears of the connection. False: not as init says it. */
static bool tell_origin(struct outer *o, const struct head *h, const struct gate_msg *hello)
{
	struct init_msg m = { .type = INIT_ORIGIN,
			      .rows = hello->from_port,
			      .cols = hello->to_port };
	uint64_t pid = 0, session = SAMPLE_NO_SESSION;

	if (head_get(h, "pid") &&
	    (head_number(h, "pid", INT32_MAX, &pid) < 0 || head_get(h, "exe") == NULL))
		return false;
	if (head_get(h, "session") && head_number(h, "session", UINT32_MAX, &session) < 0)
		return false;
	m.a = (int32_t)pid;
	m.session = (uint32_t)session;
	if (pid)
		(void)snprintf(m.err.msg, sizeof(m.err.msg), "%.255s", head_get(h, "exe"));
	outer_tell(o, &m, NULL, 0);
	return true;
}

/* It says no more. Who has waited for a person's answer until now need not be there to use it. */
static void tell_over(struct flow *f)
{
	struct init_msg m = { .type = INIT_ORIGIN,
			      .session = SAMPLE_NO_SESSION,
			      .rows = f->from_port,
			      .cols = f->to_port,
			      .flags = 1 };

	if (f->from_port && !f->outer->is_down)
		outer_tell(f->outer, &m, NULL, 0);
	f->from_port = 0;
}

/* ---- waiting requests ---- */

static void forget(struct flow *f)
{
	struct outer_gate *g = &f->outer->gate;

	if (f->prev)
		f->prev->next = f->next;
	else
		g->flows = f->next;
	if (f->next)
		f->next->prev = f->prev;
	fd_close(take_fd(f->theirs));
	free(f->hello);
	f->hello = NULL;
}

static void remember(struct flow *f)
{
	struct outer_gate *g = &f->outer->gate;

	f->id = ++g->last_id;
	f->next = g->flows;
	if (g->flows)
		g->flows->prev = f;
	g->flows = f;
}

static void hear(struct outer *o);

/* What front says; whether it ends it or breaks it off is known only when all has been heard that it said before. */
static ssize_t pull(void *arg, void *p, size_t n)
{
	struct flow *f = arg;
	ssize_t r = f->from ? source_pull(f->from, p, n) : 0;

	if (r == PULL_END)
		hear(f->outer);
	return r == PULL_END && f->is_cut ? PULL_RESET : r;
}

/* Each has two descriptors here. */
size_t gate_most(size_t files)
{
	size_t most = files < (size_t)2 * SPARE_FILES ? LINK_WAITING : (files - SPARE_FILES) / 2;

	return most > JOINED_MAX ? JOINED_MAX : most;
}

void gate_refill(struct outer *o)
{
	struct outer_gate *g = &o->gate;

	while ((g->fd >= 0 || g->ear >= 0) && !o->is_down && o->link && !o->is_parking &&
	       g->n_waiting < LINK_WAITING && g->n_waiting + g->n_joined < g->most) {
		struct head h = outer_request("POST", "/gate");
		struct flow *f = outer_ask(o, ROLE_GATE, &h, pull);

		if (f == NULL)
			return; /* as many streams as there may be: one that ends makes room */
		remember(f);
		g->n_waiting++;
	}
}

/* ---- to front ---- */

static bool give(struct flow *f)
{
	struct outer_gate *g = &f->outer->gate;
	int r = gate_send(g->fd, f->hello, &f->theirs, f->theirs >= 0 ? 1 : 0);

	if (r == -EAGAIN) {
		watch_set(g->on_out, true);
		return false;
	}
	/* A gate that is gone: its end closes here and the connection with it. */
	fd_close(take_fd(f->theirs));
	free(f->hello);
	f->hello = NULL;
	return true;
}

static void on_out(void *arg)
{
	struct outer *o = arg;

	watch_set(o->gate.on_out, false);
	for (struct flow *f = o->gate.flows; f; f = f->next)
		if (f->hello && !give(f))
			return;
	gate_refill(o);
}

/* What the stream says and hears is what goes through this socket. */
static bool join_to(struct flow *f, int take_fd)
{
	struct loop *l = f->outer->loop;
	int copy = fcntl(take_fd, F_DUPFD_CLOEXEC, 3);

	if (copy < 0) {
		fd_close(take_fd);
		return false;
	}
	f->from = source_new(l, take_fd);
	f->to = sink_new(l, copy);
	port_is_socket(f->from);
	port_is_socket(f->to);
	port_join(f->from, f->stream);
	port_join(f->to, f->stream);
	return true;
}

static bool join(struct flow *f)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return false;
	f->theirs = pair[1];
	return join_to(f, pair[0]);
}

/* The wrong turn of the test build: past the gate, to wherever the inside wanted to go. */
static bool passes_by(struct flow *f, const struct gate_msg *m)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(m->to_port) };
	int fd;

	if (!sabotaged("link-gate") || m->to.b[12] == 127)
		return false;
	memcpy(&to.sin_addr, m->to.b + 12, sizeof(to.sin_addr));
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	(void)connect(fd, (const struct sockaddr *)&to, sizeof(to)); /* it is on its way */
	return fd >= 0 && join_to(f, fd);
}

/* A published port: init has connected, or nobody listens there. */
static int opened(struct flow *f, const struct head *h)
{
	struct gate_msg m = { .type = GATE_OPENED, .id = f->opens };

	f->is_joined = true;
	if (h->status == 200 && f->outer->gate.fd >= 0 && join(f))
		stream_wake(f->stream);
	f->hello = mem_new(1, sizeof(*f->hello));
	*f->hello = m;
	(void)give(f); /* what cannot be given now is given later */
	if (f->to == NULL)
		stream_reset(f->stream);
	return 0;
}

static void open_inside(struct outer *o, const struct gate_msg *m)
{
	struct head h = outer_request("POST", "/connect/%u", m->port);
	struct gate_msg no = { .type = GATE_OPENED, .id = m->id };
	struct flow *f = o->link && o->gate.n_joined < o->gate.most
				 ? outer_ask(o, ROLE_GATE, &h, pull)
				 : NULL;

	if (f == NULL) {
		(void)gate_send(o->gate.fd, &no, NULL, 0); /* unheard, the caller waits in vain */
		return;
	}
	remember(f);
	f->opens = m->id;
	o->gate.n_joined++;
}

/* A connection to the receiver: it gets the other end and nothing else; where it wanted to go is here. */
static bool hand_to_ear(struct flow *f)
{
	struct outer_gate *g = &f->outer->gate;
	bool is_taken = g->ear >= 0 && join(f) && packet_send(g->ear, "c", 1, &f->theirs, 1) == 0;

	fd_close(take_fd(f->theirs));
	return is_taken;
}

int gate_head(struct flow *f, const struct head *h)
{
	struct outer_gate *g = &f->outer->gate;
	struct gate_msg m = { .type = GATE_CLIENT, .id = f->id };

	if (f->opens && !f->is_joined)
		return opened(f, h);
	if (f->is_joined || (!is_said(h) && !read_hello(h, &m)))
		return -EBADMSG;
	f->is_joined = true;
	g->n_waiting--;
	g->n_joined++;
	if (passes_by(f, &m)) {
		stream_wake(f->stream);
		return 0;
	}
	if (is_said(h) ? !hand_to_ear(f) : g->fd < 0 || !join(f)) {
		stream_reset(f->stream);
		gate_refill(f->outer);
		return 0;
	}
	if (g->n_joined <= WIDE_GATES)
		stream_widen(f->stream, WIDE_GATE);
	if (!is_said(h)) {
		if (!tell_origin(f->outer, h, &m))
			return -EBADMSG;
		f->from_port = m.from_port;
		f->to_port = m.to_port;
		f->hello = mem_new(1, sizeof(*f->hello));
		*f->hello = m;
	}
	if (f->hello == NULL || give(f))
		gate_refill(f->outer);
	stream_wake(f->stream);
	return 0;
}

void gate_end(struct flow *f)
{
	f->has_end = true;
	tell_over(f);
	if (f->to)
		sink_finish(f->to, NULL, NULL);
}

void gate_gone(struct flow *f)
{
	struct outer *o = f->outer;
	struct gate_msg no = { .type = GATE_OPENED, .id = f->opens };
	bool is_orderly = f->has_end && f->from && source_is_ended(f->from) && !f->is_cut;

	if (f->opens && !f->is_joined)
		(void)gate_send(o->gate.fd, &no, NULL,
				0); /* nobody listens, or a gate that has gone */
	if (f->is_joined || f->opens)
		o->gate.n_joined--;
	else
		o->gate.n_waiting--;
	tell_over(f);
	forget(f);
	port_join(f->from, NULL);
	port_join(f->to, NULL);
	port_free(f->from);
	if (is_orderly)
		sink_abandon(f->to);
	else
		port_free(f->to);
	if (!f->is_joined && !f->opens && !o->is_down && !o->is_parting)
		outer_fail(o, "init let go of the gate");
	else if (!o->is_down)
		gate_refill(o);
}

/* ---- from front ---- */

static void close_gate(struct outer *o)
{
	struct outer_gate *g = &o->gate;

	watch_free(g->on_in);
	watch_free(g->on_out);
	g->on_in = g->on_out = NULL;
	fd_close(take_fd(g->fd));
	for (struct flow *f = g->flows; f; f = f->next)
		if (f->hello) { /* nobody will take it */
			fd_close(take_fd(f->theirs));
			free(f->hello);
			f->hello = NULL;
		}
}

static void hear(struct outer *o)
{
	int fds[PACKET_FDS];
	struct gate_msg m;
	int r = 0;

	while (o->gate.fd >= 0 && (r = gate_recv(o->gate.fd, &m, fds)) == 1) {
		for (int i = 0; i < PACKET_FDS; i++)
			fd_close(fds[i]);
		if (m.type == GATE_OPEN && m.port)
			open_inside(o, &m);
		for (struct flow *f = o->gate.flows; f; f = f->next)
			if (m.type == GATE_CLOSE && f->is_joined && f->id == m.id)
				f->is_cut = true;
	}
	if (r != -EAGAIN)
		close_gate(o); /* the keeper starts another, or the network stays closed */
}

static void on_in(void *arg)
{
	hear(arg);
}

void gate_open(struct outer *o, int take_fd)
{
	struct outer_gate *g = &o->gate;

	close_gate(o);
	g->fd = take_fd;
	if (take_fd < 0)
		return;
	g->on_in = watch_fd(o->loop, take_fd, WATCH_READ, on_in, o);
	g->on_out = watch_fd(o->loop, take_fd, WATCH_WRITE, on_out, o);
	watch_set(g->on_out, false);
	gate_refill(o);
}

void gate_ear(struct outer *o, int take_fd)
{
	fd_close(o->gate.ear);
	o->gate.ear = take_fd;
	gate_refill(o);
}
