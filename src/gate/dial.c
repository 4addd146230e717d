/* SPDX-License-Identifier: Apache-2.0 */
/* gate/dial.c - rules, names and connections; sees no byte of what is sent
 *
 * Promises: CONNECT, LISTEN and ACCEPT (published ports on the host's loopback), no files, no processes.
 *
 * A question of front goes through the states of struct ask: wait for the host's resolver settings (once), judge the
 * host by the rules, maybe ask the person, look the name up, judge each of its addresses, connect to the first that
 * answers, hand the socket over. The address that was judged is the address that is dialled; nothing asks again in
 * between. Every verdict goes to the keeper, and the connection is begun when the keeper says that it is on record: one
 * word of the keeper speaks of all verdicts up to a number, so under load it costs less than a word for each.
 *
 * Front is foreign: whatever it says about names is brought into its one spelling again here. dial never blocks on
 * front (messages wait in a queue), so front may block on dial.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>

#include "base/loop.h"
#include "base/sabotage.h"
#include "gate/dial.h"
#include "sys/confine.h"

#define CONNECT_NS (10 * NS_PER_SEC)
#define CONNECT_NEXT_NS (3 * NS_PER_SEC) /* while there are more addresses to try */
#define PERSON_NS (60 * NS_PER_SEC)
#define DIAL_PROMISES (CONFINE_ACCEPT | CONFINE_CONNECT | CONFINE_LISTEN)

/* ---- messages that front has no room for yet ---- */

struct queued {
	struct gate_msg m;
	int fds[2];
	size_t n_fds;
	struct queued *next;
};

static struct queued *queue_first, **queue_last = &queue_first;

static void send_front(struct dial *d, const struct gate_msg *m, const int *take_fds, size_t n)
{
	struct queued *q;
	int r = queue_first ? -EAGAIN : gate_send(d->front.fd, m, take_fds, n);

	if (r == -EAGAIN) {
		q = mem_new(1, sizeof(*q));
		q->m = *m;
		q->n_fds = n;
		for (size_t i = 0; i < n; i++)
			q->fds[i] = take_fds[i];
		*queue_last = q;
		queue_last = &q->next;
		source_want(&d->turn, &d->front, POLLER_READ | POLLER_WRITE);
		return;
	}
	for (size_t i = 0; i < n; i++)
		fd_close(take_fds[i]);
}

static void flush_front(struct dial *d)
{
	while (queue_first) {
		struct queued *q = queue_first;

		if (gate_send(d->front.fd, &q->m, q->fds, q->n_fds) == -EAGAIN)
			return;
		for (size_t i = 0; i < q->n_fds; i++)
			fd_close(q->fds[i]);
		queue_first = q->next;
		free(q);
	}
	queue_last = &queue_first;
	source_want(&d->turn, &d->front, POLLER_READ);
}

/* ---- events ---- */

void dial_event(struct dial *d, const struct gate_msg *m)
{
	/* Blocks while the keeper is busy: a verdict that cannot be written down is not acted upon. */
	if (gate_send(d->keeper.fd, m, NULL, 0) < 0)
		_exit(0);
}

static void verdict_event(struct ask *a, enum gate_verdict verdict, const char *text)
{
	struct gate_msg m = { .type = GATE_EVENT,
			      .id = a->id,
			      .event = a->is_lookup ? EVENT_LOOKUP : EVENT_CONNECT,
			      .via = a->via,
			      .verdict = verdict,
			      .port = a->port };

	/* Names that are found are told of when they are connected to. */
	if (a->is_lookup && verdict == GATE_ALLOWED)
		return;
	m.ns = a->number;
	m.flags = a->has_waited ? GATE_WAITED : 0;
	m.from = a->from;
	m.to = a->to;
	m.from_port = a->from_port;
	m.to_port = a->to_port;
	memcpy(m.host, a->host.name, sizeof(m.host));
	memcpy(m.rule, a->rule, sizeof(m.rule));
	gate_say(m.text, sizeof(m.text), "%s", text);
	if (a->at < a->n && !a->is_lookup) {
		m.has_addr = true;
		m.addr = a->v[a->at];
	}
	dial_event(a->d, &m);
}

/* ---- answers ---- */

static void ask_end(struct ask *a)
{
	source_close(&a->d->turn, &a->s);
	a->state = ASK_DEAD; /* freed in the tick */
}

void ask_answer(struct ask *a, enum gate_verdict verdict, const char *text, int take_fd)
{
	struct gate_msg m = {
		.type = GATE_ANSWER, .id = a->id, .via = a->via, .verdict = verdict, .port = a->port
	};

	if (verdict != GATE_ALLOWED)
		verdict_event(a, verdict, text);
	memcpy(m.host, a->host.name, sizeof(m.host));
	memcpy(m.rule, a->rule, sizeof(m.rule));
	gate_say(m.text, sizeof(m.text), "%s", text);
	if (a->host.is_addr)
		m.host[0] = '\0';
	else if (config_inspects(&a->d->config, a->host.name))
		m.flags |= GATE_INSPECTED;
	if (a->is_raw)
		m.flags |= GATE_RAW;
	if (a->at < a->n) {
		m.has_addr = true;
		m.addr = a->v[a->at];
	}
	if (verdict == GATE_ALLOWED && !a->is_lookup)
		open_add(a->d, a, a->at < a->n ? &a->v[a->at] : NULL);
	send_front(a->d, &m, &take_fd, take_fd >= 0 ? 1 : 0);
	ask_end(a);
}

static void answer_lookup(struct ask *a, enum gate_verdict verdict, unsigned code, const char *text)
{
	struct gate_msg m = {
		.type = GATE_ANSWER, .id = a->id, .via = VIA_DNS, .verdict = verdict, .flags = code
	};

	if (verdict == GATE_ALLOWED &&
	    names_address(&a->d->names, a->host.name, &m.fake4, &m.fake6) < 0) {
		m.verdict = GATE_FAILED;
		text = "this sandbox has used up its addresses for names";
	}
	if (m.verdict != GATE_ALLOWED)
		verdict_event(a, m.verdict, text);
	gate_say(m.text, sizeof(m.text), "%s", text);
	send_front(a->d, &m, NULL, 0);
	ask_end(a);
}

static void refuse(struct ask *a, const char *text)
{
	if (a->is_lookup)
		answer_lookup(a, GATE_REFUSED, DNS_NXDOMAIN, text);
	else
		ask_answer(a, GATE_REFUSED, text, FD_NONE);
}

/* ---- connecting ---- */

static void hand_over(struct ask *a)
{
	int one = 1, fd = source_take(&a->d->turn, &a->s);

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	ask_answer(a, GATE_ALLOWED, "", fd);
}

static void connected(struct ask *a)
{
	if (a->d->config.upstream.kind != UPSTREAM_NONE && a->via != VIA_HOST_PORT)
		upstream_begin(a);
	else
		hand_over(a);
}

static void connect_failed(struct ask *a, int num)
{
	char text[384], address[ADDR_TEXT];

	addr_text(&a->v[a->at], address);
	source_close(&a->d->turn, &a->s);
	if (a->at + 1 < a->n) {
		a->at++;
		ask_connect(a);
		return;
	}
	gate_say(text, sizeof(text), "%s (%s) port %u: %s", a->host.name, address, a->port,
		 strerrordesc_np(num));
	ask_answer(a, GATE_FAILED, text, FD_NONE);
}

static void on_connect(struct source *s, unsigned ready)
{
	struct ask *a = holder_of(s, struct ask, s);
	int num = 0;
	socklen_t n = sizeof(num);

	if (a->state == ASK_UPSTREAM) {
		upstream_ready(a);
		return;
	}
	if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &num, &n) < 0)
		num = errno;
	if (num)
		connect_failed(a, num);
	else if (ready & POLLER_WRITE)
		connected(a);
}

/* A connection within this machine is there when connect() returns, though it says EINPROGRESS. */
static bool is_connected(int fd)
{
	struct sockaddr_storage peer;
	socklen_t n = sizeof(peer);

	return getpeername(fd, (struct sockaddr *)&peer, &n) == 0;
}

void ask_connect(struct ask *a)
{
	struct sockaddr_storage sa;
	uint16_t port = a->d->config.upstream.kind != UPSTREAM_NONE && a->via != VIA_HOST_PORT
				? a->d->config.upstream.port
				: a->port;
	socklen_t n = sockaddr_of(&a->v[a->at], port, &sa);
	int fd = socket(sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), r;

	a->state = ASK_CONNECT;
	a->due = clock_now() + (a->at + 1 < a->n ? CONNECT_NEXT_NS : CONNECT_NS);
	if (fd < 0) {
		connect_failed(a, errno);
		return;
	}
	r = connect(fd, (const struct sockaddr *)&sa, n) < 0 ? errno : 0;
	if (r != 0 && r != EINPROGRESS) {
		fd_close(fd);
		connect_failed(a, r);
		return;
	}
	if (r == 0 || is_connected(fd)) {
		a->s = (struct source){ .fd = fd, .fn = on_connect };
		connected(a);
		return;
	}
	if (source_open(&a->d->turn, &a->s, fd, on_connect, POLLER_WRITE) < 0)
		connect_failed(a, ENOMEM);
}

static void dial_addresses(struct ask *a)
{
	a->at = 0;
	a->state = ASK_NOTED;
	a->due = clock_now() + CONNECT_NS;
	a->number = ++a->d->last_number;
	verdict_event(a, GATE_ALLOWED, "");
	if (sabotaged("gate-noted"))
		ask_connect(a);
}

/* IPv4 first: where there is no IPv6 its addresses fail at once, but where it is broken they do not. */
static void sort_addresses(struct ask *a)
{
	struct addr v[DNS_ADDRS] = { 0 };
	size_t n = 0;

	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < a->n; i++)
			if (addr_is_v4(&a->v[i]) == (pass == 0))
				v[n++] = a->v[i];
	memcpy(a->v, v, n * sizeof(*v));
}

static void on_resolved(void *arg, const struct addr *v, size_t n, unsigned code)
{
	struct ask *a = arg;
	char text[384] = "";

	if (n == 0) {
		gate_say(text, sizeof(text), "%s: %s", a->host.name,
			 code == DNS_NXDOMAIN ? "there is no such name"
			 : code == DNS_OK     ? "the name has no address"
					      : "no name server answered");
		if (a->is_lookup)
			answer_lookup(a, GATE_FAILED, code == DNS_OK ? DNS_OK : code, text);
		else
			ask_answer(a, GATE_FAILED, text, FD_NONE);
		return;
	}
	if (a->is_lookup) {
		answer_lookup(a, GATE_ALLOWED, DNS_OK, "");
		return;
	}
	memcpy(a->v, v, n * sizeof(*v));
	a->n = n;
	sort_addresses(a);
	if (judge_addresses(a->d, a, text, sizeof(text)))
		dial_addresses(a);
	else
		ask_answer(a, GATE_REFUSED, text, FD_NONE);
}

/* The proxy everything goes through was chosen by the user: its own address is not judged. */
static void on_upstream_resolved(void *arg, const struct addr *v, size_t n, unsigned code)
{
	struct ask *a = arg;

	(void)code;
	if (n == 0) {
		ask_answer(a, GATE_FAILED, "the upstream proxy's name has no address", FD_NONE);
		return;
	}
	memcpy(a->v, v, n * sizeof(*v));
	a->n = n;
	dial_addresses(a);
}

static void find_upstream(struct ask *a)
{
	const struct net_upstream *u = &a->d->config.upstream;

	a->state = ASK_NAME;
	if (u->host.is_addr)
		on_upstream_resolved(a, &u->host.addr, 1, DNS_OK);
	else
		resolver_find(a->d->resolver, u->host.name, on_upstream_resolved, a);
}

/* ---- deciding ---- */

static void want_resolv(struct dial *d)
{
	struct gate_msg m = { .type = GATE_WANT_RESOLV };

	if (d->wants_resolv || !resolver_is_stale(d->resolver))
		return;
	d->wants_resolv = true;
	dial_event(d, &m);
}

static void find_address(struct ask *a)
{
	char text[384] = "";

	if (a->d->config.upstream.kind != UPSTREAM_NONE) {
		if (a->is_lookup)
			answer_lookup(a, GATE_ALLOWED, DNS_OK, ""); /* the proxy looks it up */
		else
			find_upstream(a);
		return;
	}
	if (a->host.is_addr) {
		a->v[0] = a->host.addr;
		a->n = 1;
		if (judge_addresses(a->d, a, text, sizeof(text)))
			dial_addresses(a);
		else
			ask_answer(a, GATE_REFUSED, text, FD_NONE);
		return;
	}
	a->state = ASK_NAME;
	resolver_find(a->d->resolver, a->host.name, on_resolved, a);
}

static void ask_person(struct ask *a)
{
	struct gate_msg m = { .type = GATE_QUESTION, .id = a->id, .via = a->via, .port = a->port };

	memcpy(m.host, a->host.name, sizeof(m.host));
	a->state = ASK_PERSON;
	a->has_waited = true;
	a->due = clock_now() + (sabotaged("hurry") ? NS_PER_SEC : PERSON_NS);
	dial_event(a->d, &m);
}

static void judge(struct ask *a)
{
	struct dial *d = a->d;
	char text[384] = "";

	if (judge_host(d, a, text, sizeof(text))) {
		find_address(a);
		return;
	}
	/* Only what no rule decides is worth a question, and a name alone is not: its address says nothing yet. */
	if (!d->config.is_asking || a->rule[0]) {
		refuse(a, text);
		return;
	}
	if (a->is_lookup)
		answer_lookup(a, GATE_ALLOWED, DNS_OK, "");
	else if (a->state != ASK_PERSON)
		ask_person(a);
}

static void begin(struct ask *a)
{
	if (resolver_is_stale(a->d->resolver))
		want_resolv(a->d);
	if (a->d->wants_resolv) {
		a->state = ASK_CONFIG;
		a->due = clock_now() + CONNECT_NS;
		return;
	}
	judge(a);
}

/* ---- host ports ---- */

static void dial_host_port(struct ask *a)
{
	static const uint8_t v4[4] = { 127, 0, 0, 1 };
	bool is_granted = false;

	for (size_t i = 0; i < a->d->config.n_host_ports; i++)
		is_granted |= a->d->config.host_ports[i] == a->port;
	if (!is_granted) {
		refuse(a, "this port of the host is not granted");
		return;
	}
	(void)snprintf(a->host.name, sizeof(a->host.name), "localhost");
	gate_say(a->rule, sizeof(a->rule), "host-port %u", a->port);
	a->v[0] = addr_from_v4(v4);
	a->v[1] = (struct addr){ .b = { [15] = 1 } };
	a->n = 2;
	dial_addresses(a);
}

/* ---- front's questions ---- */

/* Whom does it mean? A name in its one spelling, or an address that may stand for one. */
static bool read_host(struct ask *a, const struct gate_msg *m)
{
	const char *why, *name;
	bool is_ours;

	if (m->host[0])
		return host_parse(m->host, strlen(m->host), &a->host, &why) == 0;
	if (!m->has_addr)
		return false;
	name = names_find(&a->d->names, &m->addr, &is_ours);
	if (name)
		return host_parse(name, strlen(name), &a->host, &why) == 0;
	a->host = (struct host_id){ .is_addr = true, .addr = m->addr };
	addr_text(&m->addr, a->host.name);
	return true;
}

static void on_ask(struct dial *d, const struct gate_msg *m)
{
	struct ask *a = mem_new(1, sizeof(*a));

	*a = (struct ask){ .d = d,
			   .s = SOURCE_NONE,
			   .is_lookup = m->type == GATE_NAME,
			   .id = m->id,
			   .via = m->via,
			   .port = m->port,
			   .from = m->from,
			   .to = m->to,
			   .from_port = m->from_port,
			   .to_port = m->to_port,
			   .next = d->asks };
	d->asks = a;
	d->n_asks++;
	if (d->n_asks > ASKS_MAX)
		refuse(a, "too many connections are being made at once");
	else if (a->via == VIA_HOST_PORT)
		dial_host_port(a);
	else if (!read_host(a, m) || (a->port == 0) != a->is_lookup)
		refuse(a, "not a host that can be asked for");
	else
		begin(a);
}

static void on_front(struct source *s, unsigned ready)
{
	struct dial *d = holder_of(s, struct dial, front);
	int fds[PACKET_FDS];
	struct gate_msg m;
	int r;

	if (ready & POLLER_WRITE)
		flush_front(d);
	if (!(ready & (POLLER_READ | POLLER_GONE)))
		return;
	r = gate_recv(s->fd, &m, fds);
	if (r == -EAGAIN)
		return;
	for (int i = 0; i < PACKET_FDS; i++)
		fd_close(fds[i]);
	if (r != 1)
		_exit(0); /* front is gone, and it is our only reason to be */
	if (m.type == GATE_ASK || m.type == GATE_NAME)
		on_ask(d, &m);
	else if (m.type == GATE_GONE)
		for (uint32_t i = 0; i < m.id; i++)
			open_remove(d, m.ids[i]);
	else
		_exit(125);
}

/* ---- the keeper ---- */

static void on_rules(struct dial *d, int fd)
{
	_cleanup_(buf_done) struct buf b = BUF(CONFIG_MAX);
	struct err e = ERR_INIT;
	struct config c;

	if (config_read(fd, &b) < 0 || config_parse(b.n ? b.p : (char[]){ "" }, &c, &e) < 0)
		_exit(125); /* the keeper's own words: never run with half of them */
	config_done(&d->config);
	d->config = c;
	open_check(d);
	/* A question may be answered by this. */
	for (struct ask *a = d->asks; a; a = a->next)
		if (a->state == ASK_PERSON)
			judge(a);
	published_update(d);
}

static void on_resolv(struct dial *d, int fd)
{
	_cleanup_(buf_done) struct buf b = BUF(CONFIG_MAX);

	if (config_read(fd, &b) < 0)
		buf_done(&b);
	resolver_config(d->resolver, buf_cstr(&b));
	d->wants_resolv = false;
	for (struct ask *a = d->asks; a; a = a->next)
		if (a->state == ASK_CONFIG)
			judge(a);
}

static void on_said(struct dial *d, const struct gate_msg *m)
{
	for (struct ask *a = d->asks; a; a = a->next) {
		if (a->state != ASK_PERSON || a->id != m->id)
			continue;
		a->is_asked = m->verdict == GATE_ALLOWED;
		gate_say(a->rule, sizeof(a->rule), "asked");
		if (a->is_asked)
			find_address(a);
		else
			refuse(a, "you said no");
		return;
	}
}

static void on_noted(struct dial *d, const struct gate_msg *m)
{
	for (struct ask *a = d->asks; a; a = a->next) {
		if (a->state != ASK_NOTED)
			continue;
		if (m->verdict == GATE_REFUSED && a->id == m->id)
			refuse(a, m->text);
		else if (m->verdict != GATE_REFUSED && a->number <= m->ns)
			ask_connect(a);
	}
}

static void on_keeper(struct source *s, unsigned ready)
{
	struct dial *d = holder_of(s, struct dial, keeper);
	int fds[PACKET_FDS];
	struct gate_msg m;
	int r = gate_recv(s->fd, &m, fds);

	(void)ready;
	if (r != 1)
		_exit(0);
	if (m.type == GATE_RULES) {
		on_rules(d, fds[0]);
	} else if (m.type == GATE_RESOLV) {
		on_resolv(d, fds[0]);
	} else if (m.type == GATE_SAID) {
		on_said(d, &m);
	} else if (m.type == GATE_NOTED) {
		on_noted(d, &m);
	} else if (m.type == GATE_INSIDE && d->maker < 0) {
		d->maker = take_fd(fds[0]);
		d->forge = take_fd(fds[1]);
		d->has_link = d->maker < 0;
		published_update(d);
	} else {
		_exit(125);
	}
	for (int i = 0; i < PACKET_FDS; i++)
		fd_close(fds[i]);
}

/* ---- a life ---- */

static void time_out(struct ask *a)
{
	if (a->state == ASK_CONNECT || a->state == ASK_UPSTREAM)
		connect_failed(a, ETIMEDOUT);
	else if (a->state == ASK_PERSON)
		refuse(a, "nobody answered the question");
	else if (a->state == ASK_NOTED)
		refuse(a, "the keeper did not take it down");
	else
		refuse(a, "the host's resolver settings did not come");
}

static int tick(void *arg)
{
	struct dial *d = arg;
	uint64_t now = clock_now(), next = UINT64_MAX;
	int ms = resolver_tick(d->resolver);

	for (struct ask *a = d->asks; a; a = a->next)
		if (a->state != ASK_DEAD && a->state != ASK_NAME && a->due <= now)
			time_out(a);
	for (struct ask **at = &d->asks; *at;) {
		struct ask *a = *at;

		if (a->state == ASK_DEAD) {
			*at = a->next;
			free(a);
			d->n_asks--;
			continue;
		}
		if (a->state != ASK_NAME && a->due < next)
			next = a->due;
		at = &a->next;
	}
	if (next != UINT64_MAX) {
		int left = next <= now ? 0 : (int)((next - now) / NS_PER_MS + 1);

		ms = ms < 0 || left < ms ? left : ms;
	}
	return ms;
}

_Noreturn void dial_main(void)
{
	struct dial *d = mem_new(1, sizeof(*d));
	struct gate_msg ready = { .type = GATE_READY };
	struct err e = ERR_INIT;

	*d = (struct dial){ .turn = { .poller = poller_open(), .tick = tick, .arg = d },
			    .keeper = SOURCE_NONE,
			    .front = SOURCE_NONE,
			    .maker = FD_NONE,
			    .forge = FD_NONE };
	d->resolver = resolver_new(&d->turn);
	names_init(&d->names);
	if (d->turn.poller < 0 || fcntl(GATE_PEER_FD, F_SETFL, O_NONBLOCK) < 0 ||
	    confine(DIAL_PROMISES, &e) < 0 || confine_prove(DIAL_PROMISES, &e) < 0) {
		gate_say(ready.text, sizeof(ready.text), "%s", e.msg);
		ready.verdict = GATE_FAILED;
		(void)gate_send(GATE_KEEPER_FD, &ready, NULL, 0);
		_exit(125);
	}
	if (source_open(&d->turn, &d->keeper, GATE_KEEPER_FD, on_keeper, POLLER_READ) < 0 ||
	    source_open(&d->turn, &d->front, GATE_PEER_FD, on_front, POLLER_READ) < 0)
		_exit(125);
	turn_run(&d->turn);
}
