/* SPDX-License-Identifier: Apache-2.0 */
/* keep/gate.c - see gate.h
 *
 * The two processes of the gate are children of the keeper and end with it. The sockets that the namespace's maker
 * sends are kept here as well, so that a gate that died can be started once more with the same ones; a second death
 * leaves the network closed. What the gate sends is foreign: a message of the wrong kind ends it.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/program.h"
#include "keep/keeper.h"
#include "policy/rules.h"
#include "sys/spread.h"

enum { FRONT, DIAL, PROCESSES };

#define LISTENERS (3 + 64 + 32)
#define AT_ONCE 32 /* messages of dial, before somebody else has a turn */

struct kept {
	struct init_msg m;
	int fds[PACKET_FDS];
};

struct gate {
	struct keeper *k;
	int fd[PROCESSES]; /* our ends */
	pid_t pid[PROCESSES];
	struct watch *on[PROCESSES];
	unsigned n_starts;
	bool is_broken;
	struct kept *kept;
	size_t n_kept, cap_kept;
	char *told[8]; /* refusals the person knows of */
	size_t n_told;
	char **rules; /* "allow HOST", "deny HOST", as changed since the start; NULL-ended */
	size_t n_rules;
	char **inspect; /* hosts that are inspected since a change; NULL-ended */
	size_t n_inspect;
	uint64_t bytes_in, bytes_out;   /* of all connections... */
	uint64_t before_in, before_out; /* ...of an earlier front */
	uint64_t noted;                 /* the last verdict of dial that is on record */
	bool is_note_due;               /* and dial has not heard of it */
	struct watch *on_note;
	uint64_t last_by; /* at the end: nobody is waited for longer */
};

/* ---- texts for the gate ---- */

static int make_text(const struct buf *b)
{
	_close_ int fd = memfd_create("vitrine-gate", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || io_write_all(fd, b->p, b->n) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -EIO;
	return take_fd(fd);
}

static void put_lines(struct buf *b, const char *word, char *const *v)
{
	for (; v && *v; v++)
		buf_printf(b, "%s%s%s\n", word, *word ? " " : "", *v);
}

static void put_config(const struct gate *g, struct buf *b)
{
	const struct plan *p = g->k->in->plan;
	const struct plan_net *n = &p->net;

	buf_printf(b, "name %s\n", p->name);
	put_lines(b, "", g->rules);
	put_lines(b, "inspect", n->inspect);
	put_lines(b, "inspect", g->inspect);
	put_lines(b, "port", n->ports);
	put_lines(b, "host-port", n->host_ports);
	if (n->upstream)
		buf_printf(b, "upstream %s\n", n->upstream);
	if (n->is_asking)
		buf_puts(b, "ask\n");
}

static void add_rule(struct gate *g, char *take_text)
{
	g->rules = mem_grow(g->rules, g->n_rules + 2, sizeof(*g->rules));
	g->rules[g->n_rules++] = take_text;
	g->rules[g->n_rules] = NULL;
}

static void remove_rule(struct gate *g, const char *text)
{
	for (size_t i = g->n_rules; i-- > 0;) {
		if (!str_eq(g->rules[i], text))
			continue;
		free(g->rules[i]);
		memmove(g->rules + i, g->rules + i + 1, (g->n_rules - i) * sizeof(*g->rules));
		g->n_rules--;
	}
}

static int tell_text(struct gate *g, uint32_t type, const struct buf *b)
{
	struct gate_msg m = { .type = type };
	_close_ int fd = make_text(b);

	return fd < 0 ? fd : gate_send(g->fd[DIAL], &m, &fd, 1);
}

static void send_resolv(struct gate *g)
{
	_cleanup_(buf_done) struct buf b = BUF(MIB), hosts = BUF(MIB);
	struct err e = ERR_INIT;

	/* A host without one of them has no names to give. */
	(void)io_read_file("/etc/resolv.conf", &b, &e);
	(void)io_read_file("/etc/hosts", &hosts, &e);
	buf_puts(&b, "\n---\n");
	buf_add(&b, buf_cstr(&hosts), hosts.n);
	(void)tell_text(g, GATE_RESOLV, &b);
}

/* ---- start and end ---- */

static void forget(struct gate *g)
{
	watch_free(g->on_note);
	g->on_note = NULL;
	g->noted = 0;
	g->before_in = g->bytes_in;
	g->before_out = g->bytes_out;
	g->is_note_due = false;
	for (int i = 0; i < PROCESSES; i++) {
		watch_free(g->on[i]);
		g->on[i] = NULL;
		fd_close(g->fd[i]);
		g->fd[i] = FD_NONE;
		if (g->pid[i] > 0) {
			(void)kill(g->pid[i], SIGKILL); /* it has nothing to finish */
			(void)waitpid(g->pid[i], NULL, 0);
		}
		g->pid[i] = 0;
	}
}

_Static_assert(GATE_KEEPER_FD == 3 && GATE_PEER_FD == 4, "as program_become() places them");

static __attribute__((noinline)) pid_t spawn(const char *path, const char *role, int keeper,
					     int peer)
{
	/* NOLINTNEXTLINE(clang-analyzer-security.insecureAPI.vfork): the child only makes system calls */
	pid_t pid = vfork();

	if (pid == 0) {
		spread_before_exec(); /* NOLINT(clang-analyzer-unix.Vfork): it makes system calls only */
		/* NOLINTNEXTLINE(clang-analyzer-unix.Vfork): it makes system calls only */
		program_become(path, "vitrine-gate", role, (const int[]){ keeper, peer }, 2);
	}
	return pid;
}

static void send_kept(struct gate *g, const struct kept *s)
{
	struct gate_msg m = { .type = GATE_SOCKETS, .flags = s->m.a ? GATE_HAS_V6 : 0 };
	size_t n = NETNS_LISTENERS_;
	int to = FRONT;

	if (s->m.type == INIT_NET_MORE) {
		to = s->m.session ? FRONT : DIAL;
		m = (struct gate_msg){ .type = s->m.session ? GATE_HOST_PORT : GATE_INSIDE,
				       .port = (uint16_t)s->m.session,
				       .flags = s->m.a ? GATE_ANY : 0 };
		n = s->m.session ? 1 : 2;
	}
	(void)gate_send(g->fd[to], &m, s->fds, n); /* a dead one is seen by its watch */
}

/* The way to what inspects; without it inspected hosts are closed. */
static void send_seal(struct gate *g)
{
	struct gate_msg m = { .type = GATE_SEAL };
	_close_ int fd = seal_connect(g->k);

	if (fd >= 0)
		(void)gate_send(g->fd[FRONT], &m, &fd, 1); /* a dead one is seen by its watch */
}

/* Behind other walls: what vitrine-link brings is what listeners bring elsewhere. */
static void send_link(struct gate *g)
{
	struct gate_msg to_front = { .type = GATE_LINK };
	struct gate_msg to_dial = { .type = GATE_INSIDE };
	struct init_msg to_link = { .type = INIT_GATE };
	int pair[2];

	if (g->k->native.tool <= 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return;
	(void)gate_send(g->fd[FRONT], &to_front, &pair[0], 1); /* a dead one is seen by its watch */
	(void)init_send(g->k->native.ctl, &to_link, &pair[1], 1); /* so are these */
	if (g->k->in->plan->net.n_ports > 0)
		(void)gate_send(g->fd[DIAL], &to_dial, NULL, 0);
	fd_close(pair[0]);
	fd_close(pair[1]);
}

void gate_new_seal(struct keeper *k)
{
	if (k->gate && !k->gate->is_broken && k->gate->fd[FRONT] >= 0)
		send_seal(k->gate);
}

static void on_front(void *arg);
static void on_dial(void *arg);

static int launch(struct gate *g, struct err *e)
{
	_cleanup_(buf_done) struct buf config = BUF(2 * MIB);
	static const char *const roles[PROCESSES] = { "front", "dial" };
	static watch_fn *const fns[PROCESSES] = { on_front, on_dial };
	_free_ char *path = NULL;
	int far[PROCESSES], peer[2];
	int r = program_find("vitrine-gate", &path, e);

	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, peer) < 0)
		return err_sys(e, "socketpair");
	for (int i = 0; i < PROCESSES; i++) {
		int pair[2];

		bug_on(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0);
		g->fd[i] = pair[0];
		far[i] = pair[1];
		/* We never wait for the gate; the gate may wait for us. */
		(void)fcntl(g->fd[i], F_SETFL, O_NONBLOCK);
	}
	for (int i = 0; i < PROCESSES; i++) {
		g->pid[i] = spawn(path, roles[i], far[i], peer[i]);
		g->on[i] = watch_fd(g->k->loop, g->fd[i], WATCH_READ, fns[i], g);
	}
	for (int i = 0; i < PROCESSES; i++) {
		fd_close(far[i]);
		fd_close(peer[i]);
	}
	g->n_starts++;
	put_config(g, &config);
	r = tell_text(g, GATE_RULES, &config);
	send_seal(g);
	send_link(g);
	for (size_t i = 0; i < g->n_kept; i++)
		send_kept(g, &g->kept[i]);
	return r < 0 ? err_set(e, ERR_SYSTEM, -r, "gate: %s", strerrordesc_np(-r)) : 0;
}

/* Without its gate a sandbox has no network: the listeners go, so that what is inside hears a refusal, not silence. */
static void close_network(struct gate *g, const char *why)
{
	forget(g);
	g->is_broken = true;
	for (size_t i = 0; i < g->n_kept; i++)
		for (int f = 0; f < PACKET_FDS; f++)
			fd_close(g->kept[i].fds[f]);
	g->n_kept = 0;
	keeper_note(g->k, why);
}

static void on_gone(struct gate *g)
{
	struct err e = ERR_INIT;

	forget(g);
	tell_gate(g->k, "lost");
	if (g->n_starts >= 2) {
		close_network(g, "network: the gate ended twice; the network is closed");
		return;
	}
	keeper_note(g->k, "network: the gate ended and was started again");
	if (launch(g, &e) < 0)
		close_network(g, e.msg);
}

void gate_start(struct keeper *k)
{
	struct gate *g = k->gate;
	struct err e = ERR_INIT;

	if (!k->in->plan->net.has_gate)
		return;
	if (g == NULL) {
		g = k->gate = mem_new(1, sizeof(*g));
		*g = (struct gate){ .k = k, .fd = { FD_NONE, FD_NONE } };
		for (char *const *v = k->in->plan->net.rules; v && *v; v++)
			add_rule(g, mem_str(*v));
	}
	if (launch(g, &e) < 0)
		close_network(g, e.msg);
}

static void note_mode(struct keeper *k, int mode)
{
	if (mode == NET_PORTS)
		keeper_note(k, "network: this kernel cannot redirect connections; programs that do "
			       "not "
			       "use the proxy variables get through at ports 22, 80, 443 and those "
			       "that rules name ('vitrine doctor')");
}

bool gate_take(struct keeper *k, const struct init_msg *m, int fds[PACKET_FDS])
{
	struct gate *g = k->gate;

	if (m->type != INIT_NET && m->type != INIT_NET_MORE)
		return false;
	if (k->native.tool > 0 || g == NULL || g->is_broken || g->n_kept >= LISTENERS) {
		if (m->type == INIT_NET && g) {
			if (k->native.tool > 0)
				origins_open(k, FD_NONE);
			note_mode(k, m->b);
		}
		for (int i = 0; i < PACKET_FDS; i++)
			fd_close(fds[i]);
		return true;
	}
	if (m->type == INIT_NET)
		origins_open(k, take_fd(fds[NETNS_DIAG]));
	vec_reserve(g->kept, g->n_kept, g->cap_kept);
	g->kept[g->n_kept].m = *m;
	memcpy(g->kept[g->n_kept].fds, fds, sizeof(g->kept[0].fds));
	send_kept(g, &g->kept[g->n_kept++]);
	if (m->type == INIT_NET)
		note_mode(k, m->b);
	return true;
}

void gate_bytes(const struct keeper *k, uint64_t *ret_in, uint64_t *ret_out)
{
	*ret_in = k->gate ? k->gate->bytes_in : 0;
	*ret_out = k->gate ? k->gate->bytes_out : 0;
}

/* ---- changes while it runs ---- */

static int check_live(const struct keeper *k, struct err *e)
{
	if (k->gate == NULL)
		return err_set(e, ERR_CONFLICT, ENETDOWN,
			       "it was started without a network and gets one when it is started "
			       "again");
	if (k->gate->is_broken)
		return err_set(e, ERR_SYSTEM, ENETDOWN, "its gate is broken");
	return 0;
}

static int tell_rules(struct gate *g, struct err *e)
{
	_cleanup_(buf_done) struct buf config = BUF(2 * MIB);
	int r;

	put_config(g, &config);
	r = tell_text(g, GATE_RULES, &config);
	return r < 0 ? err_set(e, ERR_SYSTEM, -r, "gate: %s", strerrordesc_np(-r)) : 0;
}

int gate_change(struct keeper *k, const char *text, bool is_deny, struct err *e)
{
	_free_ char *line = mem_fmt("%s %s", is_deny ? "deny" : "allow", text);
	_free_ char *other = mem_fmt("%s %s", is_deny ? "allow" : "deny", text);
	struct gate *g = k->gate;
	struct rule rule;
	int r = check_live(k, e);

	if (r == 0)
		r = rule_parse(text, is_deny, false, &rule, e);
	if (r < 0)
		return r;
	if (g->n_rules >= RULES_MAX)
		return err_set(e, ERR_USAGE, E2BIG, "more than %d network rules", RULES_MAX);
	remove_rule(g, other);
	remove_rule(g, line);
	add_rule(g, take(line));
	r = tell_rules(g, e);
	if (r >= 0)
		questions_settle(k, text);
	return r;
}

static bool is_listed(const struct policy *p, const char *rule)
{
	for (size_t i = 0; i < p->net_allow.n; i++)
		if (str_eq(p->net_allow.v[i].text, rule))
			return true;
	return false;
}

/* What the preset brought goes with it; what was listed by name stays. */
int gate_open(struct keeper *k, bool is_open, struct err *e)
{
	const struct policy *p = k->in->policy;
	struct gate *g = k->gate;
	int r = check_live(k, e);

	if (r < 0)
		return r;
	for (const char *const *v = net_presets[is_open ? LEVEL_OPEN : p->net_preset].allow; *v;
	     v++) {
		_free_ char *line = mem_fmt("allow %s", *v);

		if (is_open || !is_listed(p, *v))
			remove_rule(g, line);
		if (is_open)
			add_rule(g, take(line));
	}
	if (!is_open)
		remove_rule(g, "allow *");
	return tell_rules(g, e);
}

void gate_inspect(struct keeper *k, const char *host, bool is_reached)
{
	_cleanup_(buf_done) struct buf config = BUF(2 * MIB);
	_free_ char *line = mem_fmt("allow %s:443", host);
	struct gate *g = k->gate;

	if (g == NULL || g->is_broken)
		return;
	g->inspect = mem_grow(g->inspect, g->n_inspect + 2, sizeof(*g->inspect));
	g->inspect[g->n_inspect++] = mem_str(host);
	g->inspect[g->n_inspect] = NULL;
	if (is_reached && g->n_rules < RULES_MAX)
		add_rule(g, take(line));
	put_config(g, &config);
	(void)tell_text(g, GATE_RULES, &config); /* a dead one is seen by its watch */
}

void gate_said(struct keeper *k, uint32_t id, bool is_allowed)
{
	struct gate_msg m = { .type = GATE_SAID,
			      .id = id,
			      .verdict = is_allowed ? GATE_ALLOWED : GATE_REFUSED };

	if (k->gate && k->gate->fd[DIAL] >= 0)
		(void)gate_send(k->gate->fd[DIAL], &m, NULL,
				0); /* a dead one is seen by its watch */
}

int gate_show(struct keeper *k, struct err *e)
{
	_cleanup_(buf_done) struct buf config = BUF(2 * MIB);
	int r = check_live(k, e);

	if (r < 0)
		return r;
	put_config(k->gate, &config);
	seal_show(k, &config);
	return make_text(&config);
}

/* ---- what the gate says ---- */

/* One line for the person, once for each host and port; what follows stands in the log. */
static void tell_refusal(struct gate *g, const struct gate_msg *m)
{
	_free_ char *key = mem_fmt("%s:%u", m->host, m->port);
	_free_ char *line = mem_fmt("network: %s", m->text);

	for (size_t i = 0; i < g->n_told; i++)
		if (str_eq(g->told[i], key))
			return;
	if (g->n_told == ARRAY_LEN(g->told))
		return;
	g->told[g->n_told++] = take(key);
	keeper_note(g->k, line);
}

/* ---- verdicts, which are on record before they are acted upon ---- */

static void on_note(void *arg);

/* One word for all that came since the last. Dial may be waiting for us to read, and has no room then. */
static void send_note(struct gate *g)
{
	struct gate_msg m = { .type = GATE_NOTED, .verdict = GATE_ALLOWED, .ns = g->noted };

	if (!g->is_note_due || g->fd[DIAL] < 0)
		return;
	if (gate_send(g->fd[DIAL], &m, NULL, 0) != -EAGAIN) {
		g->is_note_due = false; /* a dead one is seen by its watch */
		return;
	}
	watch_free(g->on_note);
	g->on_note = watch_timer(g->k->loop, NS_PER_MS, false, on_note, g);
}

static void on_note(void *arg)
{
	send_note(arg);
}

static void take_back(struct gate *g, const struct gate_msg *m, const char *why)
{
	struct gate_msg no = { .type = GATE_NOTED, .id = m->id, .verdict = GATE_REFUSED };

	gate_say(no.text, sizeof(no.text), "%s", why);
	if (gate_send(g->fd[DIAL], &no, NULL, 0) == -EAGAIN)
		on_gone(g); /* what it does not hear it could do */
}

/* An allowed connection, before it is made. */
static void on_verdict(struct gate *g, const struct gate_msg *m)
{
	if ((m->flags & GATE_WAITED) && origin_is_gone(g->k, m)) {
		take_back(g, m, "who asked for it is gone"); /* dial tells of it */
	} else if (tell_net(g->k, m) < 0) {
		take_back(g, m, "the journal cannot be written, so nothing is allowed");
	} else {
		g->noted = m->ns;
		g->is_note_due = true;
	}
}

static void on_event(struct gate *g, const struct gate_msg *m, int which)
{
	if (which == DIAL && m->event == EVENT_CONNECT && m->verdict == GATE_ALLOWED) {
		on_verdict(g, m);
		return;
	}
	(void)tell_net(g->k, m); /* an observation, or a refusal: it stands without a record */
	if (m->verdict == GATE_REFUSED && m->event != EVENT_CLOSE && m->text[0])
		tell_refusal(g, m);
}

static void on_question(struct gate *g, const struct gate_msg *m)
{
	const char *name = g->k->in->plan->name;
	_free_ char *line = NULL;

	if (question_ask(g->k, m))
		return;
	line = mem_fmt("network: may it reach %s:%u? 'vitrine net allow %s %s' or "
		       "'vitrine "
		       "net deny %s %s', within a minute",
		       m->host, m->port, name, m->host, name, m->host);

	keeper_note_now(g->k, line);
}

/* Front counts from its own beginning; a second one goes on where the first ended. */
static void count(struct gate *g, const struct gate_msg *m)
{
	g->bytes_in = g->before_in + m->all_down;
	g->bytes_out = g->before_out + m->all_up;
}

/* false: there is none. */
static bool take_message(struct gate *g, int which)
{
	int fds[PACKET_FDS];
	struct gate_msg m;
	int r = gate_recv(g->fd[which], &m, fds);

	if (r == -EAGAIN)
		return false;
	for (int i = 0; i < PACKET_FDS; i++)
		fd_close(fds[i]);
	if (r == 1 && which == FRONT)
		count(g, &m);
	if (r == 1 && m.type == GATE_COUNT && which == FRONT)
		return true;
	if (r == 1 && m.type == GATE_EVENT)
		on_event(g, &m, which);
	else if (r == 1 && m.type == GATE_WANT_RESOLV && which == DIAL)
		send_resolv(g);
	else if (r == 1 && m.type == GATE_QUESTION && which == DIAL)
		on_question(g, &m);
	else
		on_gone(g);
	return true;
}

static void on_front(void *arg)
{
	(void)take_message(arg, FRONT);
}

/* As many as there are, within reason, and then one word about all of them. */
static void on_dial(void *arg)
{
	struct gate *g = arg;
	unsigned life = g->n_starts;

	for (int i = 0; i < AT_ONCE && g->n_starts == life && g->fd[DIAL] >= 0; i++)
		if (!take_message(g, DIAL))
			break;
	send_note(g);
}

/* ---- the end ---- */

static bool hear_last(struct gate *g, int which)
{
	int fds[PACKET_FDS];
	struct gate_msg m;
	int r = gate_recv(g->fd[which], &m, fds);

	if (r == -EAGAIN)
		return which == FRONT && wait_readable(g->fd[which], g->last_by);
	if (r != 1)
		return false;
	for (int i = 0; i < PACKET_FDS; i++)
		fd_close(fds[i]);
	if (which == FRONT)
		count(g, &m);
	if (m.type == GATE_EVENT)
		on_event(g, &m, which);
	return true;
}

/* Nothing inside lives any more. Front closes what is open and tells of it, when it hears that we have nothing more to
 * say; without a connection there is nothing to wait for. */
void gate_finish(struct keeper *k)
{
	struct gate *g = k->gate;

	if (g == NULL)
		return;
	g->last_by = clock_now() + KEEPER_LAST_NS;
	while (g->fd[DIAL] >= 0 && hear_last(g, DIAL))
		;
	if (g->fd[FRONT] >= 0 && (g->noted > 0 || k->in->plan->net.ports)) {
		(void)shutdown(g->fd[FRONT], SHUT_WR);
		while (hear_last(g, FRONT))
			;
	}
	forget(g);
}
