/* SPDX-License-Identifier: Apache-2.0 */
/* gate/front.c - the sandbox's side of the gate
 *
 * Promises: ACCEPT. No file, no socket, no connect, no bind, no listen, no exec: it reads what the sandbox sends and
 * works on the sockets it is given. Its listeners live in the sandbox's network namespace, so nobody else reaches them.
 *
 * A connection to 127.0.0.1 on the proxy's port is HTTP or SOCKS; one to any other address was redirected here and
 * its own address says where it wanted to go; one to a granted port of the host goes there. Whatever it is, dial decides.
 * When dial or the keeper goes, so do we, and with us every connection.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/io.h"
#include "base/loop.h"
#include "base/sabotage.h"
#include "gate/front.h"
#include "sys/confine.h"
#include "sys/netns.h"

#define SPARE_FILES 64
#define FIRST_NS (15 * NS_PER_SEC)  /* from accept to a whole first request */
#define LEAVING_NS (2 * NS_PER_SEC) /* for a client to read our last word and close */
#define REFUSED_NS (2 * NS_PER_SEC) /* for a refused direct client to say whether it speaks HTTP */
#define ASKING_NS                                                                                  \
	(120 * NS_PER_SEC) /* dial has its own, shorter limits; this is for a dial that forgot */
#define IDS 8192
#define FRONT_PROMISES CONFINE_ACCEPT

/* ---- connections ---- */

uint32_t front_next_id(struct front *f)
{
	f->last_id =
		f->last_id == 0x7fffffff ? 1 : f->last_id + 1; /* the upper half is dial's own */
	return f->last_id;
}

static struct conn **slot_of(struct front *f, uint32_t id)
{
	return &f->by_id[id % IDS];
}

static void forget_id(struct conn *c)
{
	if (c->id == 0)
		return;
	for (struct conn **at = slot_of(c->f, c->id); *at; at = &(*at)->next_id)
		if (*at == c) {
			*at = c->next_id;
			break;
		}
	c->id = 0;
}

static void new_id(struct conn *c, uint32_t id)
{
	forget_id(c);
	c->id = id;
	c->next_id = *slot_of(c->f, id);
	*slot_of(c->f, id) = c;
}

struct conn *front_find(struct front *f, uint32_t id)
{
	struct conn *c = *slot_of(f, id);

	while (c && c->id != id)
		c = c->next_id;
	return c;
}

struct conn *conn_new(struct front *f, int take_client)
{
	struct conn *c = mem_new(1, sizeof(*c));
	int one = 1;

	*c = (struct conn){ .f = f,
			    .end = { { .fd = take_client }, SOURCE_NONE },
			    .begun = clock_now(),
			    .next = f->conns };
	c->due = c->begun + FIRST_NS;
	if (f->conns)
		f->conns->prev = c;
	f->conns = c;
	f->n_conns++;
	(void)setsockopt(take_client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return c;
}

static void flush_done(struct front *f)
{
	if (f->done.id > 0 && gate_send(f->dial.fd, &f->done, NULL, 0) < 0)
		_exit(0);
	f->done.id = 0;
}

/* Told together at the end of the turn: dial need not wake for each. */
static void add_done(struct front *f, uint32_t id)
{
	f->done.type = GATE_GONE;
	f->done.ids[f->done.id++] = id;
	if (f->done.id == GATE_IDS)
		flush_done(f);
}

static void tell_done(struct conn *c)
{
	if (c->is_open && c->via != VIA_PUBLISHED)
		add_done(c->f, c->id);
}

/* Who inside it is about. */
static void put_origin(const struct conn *c, struct gate_msg *m)
{
	m->from = c->from;
	m->to = c->to;
	m->from_port = c->from_port;
	m->to_port = c->to_port;
}

/* Whatever the keeper hears, it hears how much has passed. */
static void front_tell(struct front *f, struct gate_msg *m)
{
	m->all_up = f->moved[CLIENT];
	m->all_down = f->moved[SERVER];
	f->counted = m->all_up + m->all_down;
	if (gate_send(f->keeper.fd, m, NULL, 0) < 0)
		_exit(0);
}

/* What long connections carry is told while they are open, and not more than once a second. */
static uint64_t tell_count(struct front *f, uint64_t now)
{
	struct gate_msg m = { .type = GATE_COUNT };

	if (f->moved[CLIENT] + f->moved[SERVER] == f->counted)
		return UINT64_MAX;
	if (now < f->count_due)
		return f->count_due;
	f->count_due = now + NS_PER_SEC;
	front_tell(f, &m);
	return UINT64_MAX;
}

void conn_event(struct conn *c, struct gate_msg *m)
{
	put_origin(c, m);
	memcpy(m->host, c->host, sizeof(m->host));
	memcpy(m->rule, c->rule, sizeof(m->rule));
	front_tell(c->f, m);
}

static void close_event(struct conn *c)
{
	struct gate_msg m = { .type = GATE_EVENT,
			      .id = c->id,
			      .event = EVENT_CLOSE,
			      .via = c->via,
			      .verdict = GATE_ALLOWED,
			      .port = c->port,
			      .up = c->half[CLIENT].bytes,
			      .down = c->half[SERVER].bytes,
			      .ns = clock_now() - c->begun };

	if (!c->is_open)
		return;
	m.has_addr = c->has_peer;
	m.addr = c->peer;
	conn_event(c, &m);
}

void conn_drop_server(struct conn *c)
{
	http_told(c);
	tell_done(c);
	close_event(c);
	c->is_open = false;
	forget_id(c);
	source_close(&c->f->turn, &c->end[SERVER]);
	c->half[SERVER].is_eof = c->half[SERVER].is_shut = false;
	c->half[CLIENT].bytes = c->half[SERVER].bytes = 0;
	c->begun = clock_now();
}

/* A refused client must not take our silence for an empty answer. */
static void break_off(struct conn *c)
{
	struct linger now = { .l_onoff = 1 };
	struct gate_msg m = { .type = GATE_CLOSE, .id = c->link_id };

	if (c->link_id && c->f->link.fd >= 0)
		(void)gate_send(c->f->link.fd, &m, NULL, 0); /* unheard, it is an end */
	else
		(void)setsockopt(c->end[CLIENT].fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

/* Closing at once would reset a client that still sends, and it might never read why it was refused. So it has a moment,
 * and whoever needs the place in that moment gets it. */
void conn_leave(struct conn *c)
{
	struct front *f = c->f;

	if (c->is_leaving || c->is_dead)
		return;
	c->is_leaving = true;
	c->due = clock_now() + LEAVING_NS;
	c->leaving_prev = f->leaving_last;
	if (f->leaving_last)
		f->leaving_last->leaving_next = c;
	else
		f->leaving_first = c;
	f->leaving_last = c;
}

static void forget_leaving(struct conn *c)
{
	struct front *f = c->f;

	if (!c->is_leaving)
		return;
	c->is_leaving = false;
	if (c->leaving_prev)
		c->leaving_prev->leaving_next = c->leaving_next;
	else
		f->leaving_first = c->leaving_next;
	if (c->leaving_next)
		c->leaving_next->leaving_prev = c->leaving_prev;
	else
		f->leaving_last = c->leaving_prev;
	c->leaving_next = c->leaving_prev = NULL;
}

/* Freed by the tick, when nothing of this turn can name it any more. */
void conn_close(struct conn *c)
{
	if (c->is_dead)
		return;
	forget_leaving(c);
	c->f->n_conns--;
	if (c->is_refused && c->half[CLIENT].mode != MODE_LAST && c->end[CLIENT].fd >= 0)
		break_off(c);
	inspect_end(c);
	http_told(c);
	tell_done(c);
	close_event(c);
	forget_id(c);
	dns_forget(c->f, c);
	source_close(&c->f->turn, &c->end[CLIENT]);
	source_close(&c->f->turn, &c->end[SERVER]);
	c->is_dead = true;
}

static void conn_free(struct conn *c)
{
	struct front *f = c->f;

	if (c->prev)
		c->prev->next = c->next;
	else
		f->conns = c->next;
	if (c->next)
		c->next->prev = c->prev;
	for (int i = 0; i < 2; i++) {
		buf_done(&c->half[i].in);
		buf_done(&c->half[i].out);
	}
	buf_done(&c->x.head);
	free(c);
}

void conn_alert(struct conn *c, const char *text)
{
	struct gate_msg m = { .type = GATE_EVENT,
			      .id = c->id,
			      .event = EVENT_ALERT,
			      .via = c->via,
			      .verdict = GATE_REFUSED,
			      .port = c->port };

	gate_say(m.text, sizeof(m.text), "%s", text);
	conn_event(c, &m);
}

void conn_ask(struct conn *c)
{
	struct gate_msg m = { .type = GATE_ASK,
			      .via = c->via,
			      .port = c->port,
			      .has_addr = c->host[0] == '\0',
			      .addr = c->addr };

	new_id(c, front_next_id(c->f));
	m.id = c->id;
	put_origin(c, &m);
	memcpy(m.host, c->host, sizeof(m.host));
	memcpy(m.method, c->x.method, sizeof(m.method));
	memcpy(m.path, c->x.path, sizeof(m.path));
	c->is_asking = true;
	c->due = clock_now() + ASKING_NS;
	if (gate_send(c->f->dial.fd, &m, NULL, 0) < 0)
		_exit(0);
}

/* ---- dial's answers ---- */

static void refuse_direct(struct conn *c)
{
	if (c->via == VIA_HOST_PORT) {
		c->is_refused = true;
		conn_close(c);
		return;
	}
	/* If it speaks HTTP it can be told why; if not, it is cut off. */
	c->is_refused = true;
	c->due = clock_now() + REFUSED_NS;
	c->half[CLIENT].mode = MODE_SNIFF;
	conn_again(c, CLIENT);
}

static void allow_tunnel(struct conn *c)
{
	if (c->via == VIA_SOCKS)
		socks_answer(c, 0);
	if (c->is_dead)
		return;
	if (inspect_take(c))
		return;
	c->half[SERVER].mode = MODE_RAW;
	c->half[CLIENT].mode = c->via == VIA_HOST_PORT ? MODE_RAW : MODE_SNIFF;
	conn_again(c, CLIENT);
}

static void on_answer(struct conn *c, const struct gate_msg *m, int take_fd)
{
	c->is_asking = false;
	c->due = 0;
	memcpy(c->host, m->host, sizeof(c->host));
	memcpy(c->rule, m->rule, sizeof(c->rule));
	memcpy(c->text, m->text, sizeof(c->text));
	c->has_peer = m->has_addr;
	c->is_inspected = m->flags & GATE_INSPECTED;
	c->is_raw = m->flags & GATE_RAW;
	c->peer = m->addr;
	if (m->verdict == GATE_ALLOWED) {
		c->is_open = true;
		if (take_fd < 0 || conn_take_server(c, take_fd) < 0) {
			conn_close(c);
			return;
		}
	}
	if (c->via == VIA_CONNECT || c->via == VIA_HTTP)
		http_answered(c, m);
	else if (m->verdict == GATE_ALLOWED)
		allow_tunnel(c);
	else if (c->via == VIA_SOCKS)
		socks_answer(c, m->verdict == GATE_REFUSED ? 2 : 4);
	else
		refuse_direct(c);
}

static bool open_published(struct conn *c, int take_server)
{
	c->is_open = true;
	c->due = 0;
	c->half[CLIENT].mode = c->half[SERVER].mode = MODE_RAW;
	return conn_take_server(c, take_server) >= 0;
}

static bool ask_link(struct conn *c)
{
	struct gate_msg m = { .type = GATE_OPEN, .port = c->port };

	new_id(c, front_next_id(c->f));
	m.id = c->id;
	c->is_opening = true;
	return c->f->link.fd >= 0 && gate_send(c->f->link.fd, &m, NULL, 0) >= 0;
}

/* A caller from outside for a published port: both ends are there, or vitrine-link makes the second. */
static void on_published(struct front *f, const struct gate_msg *m, int client, int server)
{
	struct conn *c = conn_new(f, client);

	c->via = VIA_PUBLISHED;
	c->port = m->port;
	gate_say(c->rule, sizeof(c->rule), "publish %u", m->port);
	c->half[CLIENT].mode = MODE_WAIT;
	if (client < 0 || (server < 0 && !ask_link(c)) ||
	    (server >= 0 && !open_published(c, server)))
		conn_close(c);
	else
		conn_start(c);
}

static void dispatch(struct front *f, const struct gate_msg *m, int fds[PACKET_FDS])
{
	struct conn *c = m->type == GATE_PUBLISHED ? NULL : front_find(f, m->id);

	if (m->type == GATE_PUBLISHED) {
		on_published(f, m, take_fd(fds[0]), take_fd(fds[1]));
	} else if (m->type == GATE_CLOSE) {
		if (c) {
			conn_alert(c, "no longer allowed: closed");
			conn_close(c);
		}
	} else if (m->type == GATE_ANSWER && m->via == VIA_DNS) {
		dns_answered(f, m);
	} else if (m->type == GATE_ANSWER) {
		if (c && c->is_asking) {
			on_answer(c, m, take_fd(fds[0]));
			if (!c->is_dead)
				conn_flush(c);
			if (!c->is_dead)
				conn_watch(c);
		} else if (m->verdict == GATE_ALLOWED) {
			add_done(f, m->id); /* the client left while dial was at work */
		}
	} else {
		_exit(125);
	}
}

static void on_dial(struct source *s, unsigned ready)
{
	struct front *f = holder_of(s, struct front, dial);
	int fds[PACKET_FDS] = { FD_NONE, FD_NONE, FD_NONE, FD_NONE };
	struct gate_msg m;

	(void)ready;
	if (gate_recv(s->fd, &m, fds) != 1)
		_exit(0);
	dispatch(f, &m, fds);
	for (int i = 0; i < PACKET_FDS; i++)
		fd_close(fds[i]);
}

/* ---- new clients ---- */

static struct addr addr_of(const struct sockaddr_storage *sa, uint16_t *ret_port)
{
	struct sockaddr_in6 v6;
	struct addr a = { 0 };

	if (sa->ss_family == AF_INET) {
		const struct sockaddr_in *s = (const struct sockaddr_in *)sa;

		*ret_port = ntohs(s->sin_port);
		return addr_from_v4((const uint8_t *)&s->sin_addr);
	}
	memcpy(&v6, sa, sizeof(v6));
	*ret_port = ntohs(v6.sin6_port);
	memcpy(a.b, &v6.sin6_addr, 16);
	return a;
}

static void begin_direct(struct conn *c, const struct addr *to, uint16_t port)
{
	c->via = VIA_DIRECT;
	c->addr = *to;
	c->port = port;
	c->half[CLIENT].mode = MODE_WAIT;
	conn_ask(c);
}

static void begin_host_port(struct conn *c, uint16_t port)
{
	c->via = VIA_HOST_PORT;
	c->port = port;
	c->half[CLIENT].mode = MODE_WAIT;
	conn_ask(c);
}

/* By where it went: c->to. */
static void begin_by_address(struct conn *c, bool is_dns)
{
	if (is_dns || c->to_port == 53) {
		c->via = VIA_DNS;
		c->half[CLIENT].mode = MODE_DNS;
	} else if (c->to_port != NETNS_PROXY_PORT || addr_classify(&c->to, NULL) != ADDR_LOOPBACK) {
		begin_direct(c, &c->to, c->to_port);
	} else {
		c->half[CLIENT].mode = MODE_FIRST;
	}
}

static void begin(struct conn *c, const struct listener *l)
{
	struct sockaddr_storage here = { 0 };
	socklen_t n = sizeof(here);

	if (l->host_port) {
		c->to = c->from; /* it listens on loopback alone */
		c->to_port = l->host_port;
		begin_host_port(c, l->host_port);
		return;
	}
	if (getsockname(c->end[CLIENT].fd, (struct sockaddr *)&here, &n) < 0) {
		conn_close(c);
		return;
	}
	c->to = addr_of(&here, &c->to_port);
	begin_by_address(c, l->is_dns);
}

/* One more client: by the place of one that is leaving where there is no other. */
static bool has_place(struct front *f)
{
	if (f->n_conns >= f->max_conns && f->leaving_first && !sabotaged("gate-bounds"))
		conn_close(f->leaving_first);
	return f->n_conns < f->max_conns;
}

static void too_many(struct front *f)
{
	struct gate_msg m = { .type = GATE_EVENT, .event = EVENT_ALERT };
	uint64_t now = clock_now();

	if (now - f->last_full < NS_PER_SEC)
		return;
	f->last_full = now;
	gate_say(m.text, sizeof(m.text), "more than %zu connections at once: refused",
		 f->max_conns);
	front_tell(f, &m);
}

static void on_listener(struct source *s, unsigned ready)
{
	struct listener *l = holder_of(s, struct listener, s);
	struct front *f = l->f;

	(void)ready;
	for (int i = 0; i < 16; i++) {
		struct sockaddr_storage from = { 0 };
		socklen_t n = sizeof(from);
		int fd = accept4(s->fd, (struct sockaddr *)&from, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct conn *c;

		if (fd < 0)
			return;
		if (!has_place(f)) {
			fd_close(fd);
			too_many(f);
			continue;
		}
		c = conn_new(f, fd);
		c->from = addr_of(&from, &c->from_port);
		begin(c, l);
		if (!c->is_dead)
			conn_start(c);
	}
}

static void add_listener(struct front *f, int take_fd, uint16_t host_port, bool is_dns)
{
	struct listener *l = mem_new(1, sizeof(*l));

	*l = (struct listener){
		.f = f, .host_port = host_port, .is_dns = is_dns, .next = f->listeners
	};
	f->listeners = l;
	if (take_fd < 0 || source_open(&f->turn, &l->s, take_fd, on_listener, POLLER_READ) < 0)
		_exit(125);
}

/* ---- clients that vitrine-link brings ---- */

static void on_brought(struct front *f, const struct gate_msg *m, int take_client)
{
	struct conn *c;

	if (!has_place(f)) {
		fd_close(take_client);
		too_many(f);
		return;
	}
	f->has_v6 = m->flags & GATE_HAS_V6;
	c = conn_new(f, take_client);
	c->link_id = m->id;
	c->from = m->from;
	c->from_port = m->from_port;
	c->to = m->to;
	c->to_port = m->to_port;
	if (m->via == VIA_HOST_PORT)
		begin_host_port(c, m->to_port);
	else
		begin_by_address(c, m->via == VIA_DNS);
	if (!c->is_dead)
		conn_start(c);
}

static void on_opened(struct front *f, const struct gate_msg *m, int take_server)
{
	struct conn *c = front_find(f, m->id);

	if (c == NULL || !c->is_opening) {
		fd_close(take_server); /* the caller left meanwhile */
		return;
	}
	c->is_opening = false;
	if (take_server < 0 || !open_published(c, take_server))
		conn_close(c);
	else
		conn_watch(c);
}

static void on_link(struct source *s, unsigned ready)
{
	struct front *f = holder_of(s, struct front, link);
	int fds[PACKET_FDS];
	struct gate_msg m;
	int r;

	(void)ready;
	for (int i = 0; i < 16 && s->fd >= 0; i++) {
		r = gate_recv(s->fd, &m, fds);
		if (r == -EAGAIN)
			return;
		if (r == 1 && m.type == GATE_CLIENT && fds[0] >= 0 && m.id &&
		    (m.via == VIA_NONE || m.via == VIA_DNS || m.via == VIA_HOST_PORT))
			on_brought(f, &m, take_fd(fds[0]));
		else if (r == 1 && m.type == GATE_OPENED)
			on_opened(f, &m, take_fd(fds[0]));
		else
			source_close(&f->turn, &f->link); /* no more of them will come */
		for (int k = 0; k < PACKET_FDS; k++)
			fd_close(fds[k]);
	}
}

static void open_link(struct front *f, int take_fd)
{
	source_close(&f->turn, &f->link);
	if (take_fd < 0 || source_open(&f->turn, &f->link, take_fd, on_link, POLLER_READ) < 0)
		_exit(125);
}

/* ---- the keeper ---- */

/* The sandbox is over, and what its connections carried is not told yet. */
static _Noreturn void say_last(struct front *f)
{
	inspect_hear(f);
	for (struct conn *c = f->conns; c; c = c->next)
		conn_close(c);
	_exit(0);
}

static void on_keeper(struct source *s, unsigned ready)
{
	struct front *f = holder_of(s, struct front, keeper);
	int fds[PACKET_FDS];
	struct gate_msg m;

	(void)ready;
	if (gate_recv(s->fd, &m, fds) != 1)
		say_last(f);
	if (m.type == GATE_SOCKETS && f->dns.fd < 0) {
		f->has_v6 = m.flags & GATE_HAS_V6;
		add_listener(f, take_fd(fds[0]), 0, false);
		dns_start(f, take_fd(fds[1]));
		add_listener(f, take_fd(fds[2]), 0, true);
	} else if (m.type == GATE_SEAL) {
		inspect_open(f, take_fd(fds[0]));
	} else if (m.type == GATE_LINK) {
		open_link(f, take_fd(fds[0]));
	} else if (m.type == GATE_HOST_PORT) {
		add_listener(f, take_fd(fds[0]), m.flags & GATE_ANY ? 0 : m.port, false);
	} else {
		_exit(125);
	}
	for (int i = 0; i < PACKET_FDS; i++)
		fd_close(fds[i]);
}

/* ---- a life ---- */

static void time_out(struct conn *c)
{
	if (c->x.is_on && c->half[CLIENT].mode == MODE_HEAD && c->half[CLIENT].in.n > 0)
		http_refuse(c, 408, "the request took too long to come");
	else
		conn_close(c);
	if (!c->is_dead)
		conn_watch(c);
}

static int tick(void *arg)
{
	struct front *f = arg;
	uint64_t now = clock_now(), next = UINT64_MAX, dns_next, count_next;
	struct conn *c, *after;

	for (c = f->conns; c; c = after) {
		after = c->next;
		if (!c->is_dead && c->due && c->due <= now && !sabotaged("gate-bounds"))
			time_out(c);
		if (c->is_dead)
			conn_free(c);
		else if (c->due && c->due < next)
			next = c->due;
	}
	flush_done(f);
	dns_next = dns_tick(f, now);
	next = dns_next < next ? dns_next : next;
	count_next = tell_count(f, now);
	next = count_next < next ? count_next : next;
	if (next == UINT64_MAX)
		return -1;
	now = clock_now();
	return next <= now ? 0 : (int)((next - now) / NS_PER_MS + 1);
}

static size_t most_connections(void)
{
	size_t files = io_most_files(MIB);

	return files <= (size_t)2 * SPARE_FILES ? 32 : (files - SPARE_FILES) / 2;
}

_Noreturn void front_main(void)
{
	struct front *f = mem_new(1, sizeof(*f));
	struct gate_msg ready = { .type = GATE_READY };
	struct err e = ERR_INIT;

	*f = (struct front){ .turn = { .poller = poller_open(), .tick = tick, .arg = f },
			     .keeper = SOURCE_NONE,
			     .dial = SOURCE_NONE,
			     .dns = SOURCE_NONE,
			     .seal = SOURCE_NONE,
			     .link = SOURCE_NONE,
			     .max_conns = most_connections() };
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): a vector of pointers */
	f->by_id = mem_new(IDS, sizeof(*f->by_id));
	if (f->turn.poller < 0 || confine(FRONT_PROMISES, &e) < 0 ||
	    confine_prove(FRONT_PROMISES, &e) < 0) {
		gate_say(ready.text, sizeof(ready.text), "%s", e.msg);
		ready.verdict = GATE_FAILED;
		(void)gate_send(GATE_KEEPER_FD, &ready, NULL, 0);
		_exit(125);
	}
	if (source_open(&f->turn, &f->keeper, GATE_KEEPER_FD, on_keeper, POLLER_READ) < 0 ||
	    source_open(&f->turn, &f->dial, GATE_PEER_FD, on_dial, POLLER_READ) < 0)
		_exit(125);
	turn_run(&f->turn);
}
