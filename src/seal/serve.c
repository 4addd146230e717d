/* SPDX-License-Identifier: Apache-2.0 */
/* seal/serve.c - vitrine-seal between its start and its end: what the keeper and the gate's front send
 *
 * set-up    Must: make the CA's key, lock memory for secrets, load what OpenSSL loads late.
 *           Must not: take a byte from anybody.
 * lock      confine, and prove it; then tell the keeper the CA's certificate.
 * serve     one loop over the keeper, the gate's front and the connections.
 */
#include <openssl/err.h>
#include <openssl/rand.h>

#include "base/num.h"
#include "base/sabotage.h"
#include "gate/wire.h"
#include "seal/conn.h"
#include "seal/serve.h"
#include "seal/wire.h"
#include "sys/confine.h"

#define TRUST_MAX ((size_t)4 * MIB)

struct program {
	struct seal seal;
	int front;
	struct watch *front_watch;
	struct terms *next; /* being told */
	struct buf text;    /* its JSON so far */
	struct buf trust;
	struct buf early;  /* of the connection that comes next... */
	uint32_t early_id; /* ...which is this one */
	struct {
		char name[256];
		char *p; /* of VAULT_VALUE_MAX bytes */
		size_t n;
	} value;                  /* being told */
	uint8_t seed[LOGIN_SEED]; /* of placeholders for what is captured */
	struct err told;          /* the first thing that was wrong since the last commit */
};

/* ---- what the keeper says */

static void say(const char *text)
{
	(void)seal_send(SEAL_KEEPER_FD, SEAL_EVENT, 0, NULL, text,
			strlen(text) < SEAL_DATA ? strlen(text) : SEAL_DATA);
}

static void on_event(struct seal *s, const char *json)
{
	(void)s;
	if (strlen(json) <= SEAL_DATA)
		say(json); /* a keeper that does not read loses events, not the sandbox its walls */
}

static void wipe(struct buf *b)
{
	if (b->p)
		explicit_bzero(b->p, b->cap);
	b->n = 0;
	b->is_over = false;
}

/* The rules must be complete before values can be put in: they are read when the first value or the commit comes. */
static int read_rules(struct program *p, struct err *e)
{
	int r;

	if (p->text.n == 0)
		return 0;
	r = p->text.is_over ? err_set(e, ERR_CONFIG, EMSGSIZE, "the rules are too long")
			    : terms_parse(p->next, p->text.p, p->text.n, e);
	wipe(&p->text);
	return r;
}

static int end_value(struct program *p, struct err *e)
{
	int r;

	if (p->value.name[0] == '\0')
		return 0;
	r = vault_set(&p->next->vault, p->value.name,
		      (struct str){ .p = p->value.p, .n = p->value.n });
	explicit_bzero(p->value.p, VAULT_VALUE_MAX);
	if (r < 0)
		r = err_set(e, ERR_CONFIG, -r, "the value of secret '%s' cannot be used: %s",
			    p->value.name, strerror(-r));
	p->value.name[0] = '\0';
	p->value.n = 0;
	return r;
}

static int add_value(struct program *p, const struct seal_msg *m, struct err *e)
{
	int r = read_rules(p, e);

	if (r >= 0 && p->value.name[0] && !str_eq(p->value.name, m->name))
		r = end_value(p, e);
	if (r < 0)
		return r;
	if (m->n > VAULT_VALUE_MAX - p->value.n)
		return err_set(e, ERR_CONFIG, EMSGSIZE, "secret '%s' is too long", m->name);
	(void)snprintf(p->value.name, sizeof(p->value.name), "%s", m->name);
	memcpy(p->value.p + p->value.n, m->data, m->n);
	p->value.n += m->n;
	return 0;
}

/* One value more recent than the one in force; connections that are open use it from their next request on. */
static void refresh(struct program *p, const struct seal_msg *m)
{
	if (str_eq(p->value.name, m->name))
		(void)vault_set(&p->seal.rules->vault, p->value.name,
				(struct str){ .p = p->value.p,
					      .n = p->value.n }); /* else the old one stays */
	explicit_bzero(p->value.p, VAULT_VALUE_MAX);
	p->value.name[0] = '\0';
	p->value.n = 0;
}

/* The exchange may have begun under terms that are no longer in force. */
static void on_login(void *arg, struct terms *r, const char *name, struct str answer)
{
	struct program *p = arg;

	if (p->seal.rules != r)
		(void)vault_adopt(&p->seal.rules->vault,
				  &r->vault); /* what does not fit is not used */
	if (answer.n > 0 &&
	    seal_send_all(SEAL_KEEPER_FD, SEAL_LOGIN, name, answer.p, answer.n) == 0)
		(void)seal_send(SEAL_KEEPER_FD, SEAL_LOGIN, 1, name, NULL, 0);
}

static void begin_telling(struct program *p)
{
	p->next = terms_new();
	p->next->on_login = on_login;
	p->next->arg = p;
	memcpy(p->next->logins.seed, p->seed, sizeof(p->seed));
	p->told = ERR_INIT;
	wipe(&p->text);
	p->trust.n = 0;
}

static void commit(struct program *p)
{
	struct err *e = &p->told;
	int r = e->kind == ERR_NONE ? read_rules(p, e) : -EINVAL;

	if (r >= 0)
		r = end_value(p, e);
	if (r >= 0 && vault_adopt(&p->next->vault, &p->seal.rules->vault) < 0)
		r = err_set(e, ERR_CONFIG, ENOSPC,
			    "no room is left to remember the former values of secrets, which must "
			    "stay masked; start the sandbox again");
	if (r < 0) {
		(void)seal_send(SEAL_KEEPER_FD, SEAL_FAILED, 0, NULL, e->msg, strlen(e->msg));
		terms_unref(p->next);
	} else {
		p->seal.rules->newer = terms_ref(p->next);
		terms_unref(p->seal.rules);
		p->seal.rules = p->next;
		if (p->trust.n > 0) {
			p->seal.trust.n = 0;
			buf_add(&p->seal.trust, p->trust.p, p->trust.n);
			p->seal.has_trust = false;
		}
		(void)seal_send(SEAL_KEEPER_FD, SEAL_READY, 0, NULL, NULL, 0);
	}
	begin_telling(p);
}

/* ---- what the front says */

static void over(struct seal *s, const struct conn *c)
{
	struct program *p = (struct program *)s; /* its first member */
	struct gate_msg m = { .type = GATE_DONE,
			      .id = c->way.id,
			      .port = c->way.port,
			      .up = c->client.got,
			      .down = c->client.put,
			      .ns = clock_now() - c->started,
			      .all_up = c->client.got - c->told_up,
			      .all_down = c->client.put - c->told_down };

	if (p->front >= 0)
		(void)gate_send(p->front, &m, NULL, 0);
}

static void drop_front(struct program *p)
{
	watch_free(p->front_watch);
	p->front_watch = NULL;
	fd_close(p->front);
	p->front = FD_NONE;
}

static void add_early(struct program *p, const struct gate_msg *m)
{
	if (p->early_id != m->id)
		p->early.n = 0;
	p->early_id = m->id;
	buf_add(&p->early, m->path, (size_t)m->up);
}

static void inspect(struct program *p, const struct gate_msg *m, int fds[PACKET_FDS])
{
	const struct exchange_way way = {
		.id = m->id, .host = m->host, .port = m->port, .is_tls = m->via != VIA_HTTP
	};
	struct gate_msg done = { .type = GATE_DONE, .id = m->id };
	bool has_early = p->early_id == m->id && !p->early.is_over;

	if (p->seal.n_conns < CONN_MAX) {
		conn_open(&p->seal, &way,
			  (struct str){ .p = p->early.p, .n = has_early ? p->early.n : 0 },
			  take_fd(fds[0]), take_fd(fds[1]));
	} else {
		(void)gate_send(p->front, &done, NULL, 0);
		say("{\"event\":\"net.verdict\",\"verdict\":\"deny\",\"reason\":\"too_many\","
		    "\"message\":\"more inspected connections at once than there is room for\"}");
	}
	p->early.n = 0;
	p->early.is_over = false;
}

static void close_conns(struct seal *s, uint32_t id)
{
	for (struct conn *c = s->first, *next; c; c = next) {
		next = c->next;
		if (id == 0 || c->way.id == id)
			conn_close(c);
	}
}

static void on_front(void *arg)
{
	struct program *p = arg;
	struct gate_msg m;
	int fds[PACKET_FDS];
	int r = gate_recv(p->front, &m, fds);

	if (r == -EAGAIN)
		return;
	if (r <= 0) {
		drop_front(p);
		return;
	}
	if (m.type == GATE_EARLY && m.up <= sizeof(m.path))
		add_early(p, &m);
	else if (m.type == GATE_CLOSE)
		close_conns(&p->seal, m.id);
	else if (m.type == GATE_INSPECT && fds[0] >= 0 && fds[1] >= 0 && m.host[0])
		inspect(p, &m, fds);
	for (int i = 0; i < PACKET_FDS; i++)
		fd_close(fds[i]);
}

static void take_front(struct program *p, int fd)
{
	if (fd < 0)
		return;
	if (p->front >= 0)
		drop_front(p);
	p->front = fd;
	p->front_watch = watch_fd(p->seal.loop, fd, WATCH_READ, on_front, p);
}

static void take_message(struct program *p, const struct seal_msg *m, int fds[PACKET_FDS])
{
	int r = 0;

	switch (m->type) {
	case SEAL_TRUST:
		buf_add(&p->trust, m->data, m->n);
		r = p->trust.is_over ? err_set(&p->told, ERR_CONFIG, EMSGSIZE,
					       "the trust store is over %zu bytes", TRUST_MAX)
				     : 0;
		break;
	case SEAL_RULES:
		buf_add(&p->text, m->data, m->n);
		break;
	case SEAL_VALUE:
		if (p->told.kind == ERR_NONE)
			r = add_value(p, m, &p->told);
		break;
	case SEAL_COMMIT:
		commit(p);
		break;
	case SEAL_REFRESH:
		refresh(p, m);
		break;
	case SEAL_FRONT:
		take_front(p, take_fd(fds[0]));
		break;
	case SEAL_CLOSE:
		close_conns(&p->seal, m->id);
		break;
	default:
		r = -EPROTO; /* not for us */
		break;
	}
	if (r == -EPROTO)
		loop_stop(p->seal.loop);
}

static void on_keeper(void *arg)
{
	struct program *p = arg;
	struct seal_msg m;
	int fds[PACKET_FDS];
	int r = seal_recv(SEAL_KEEPER_FD, &m, fds);

	if (r == -EAGAIN)
		return;
	if (r <= 0) {
		close_conns(&p->seal, 0); /* without a keeper there is no sandbox */
		loop_stop(p->seal.loop);
		return;
	}
	take_message(p, &m, fds);
	explicit_bzero(&m, sizeof(m));
	for (int i = 0; i < PACKET_FDS; i++)
		fd_close(fds[i]);
}

/* What open connections have carried since the last time. */
static void tell_count(struct program *p)
{
	struct gate_msg m = { .type = GATE_COUNT };

	for (struct conn *c = p->seal.first; c; c = c->next) {
		m.all_up += c->client.got - c->told_up;
		m.all_down += c->client.put - c->told_down;
		c->told_up = c->client.got;
		c->told_down = c->client.put;
	}
	if (p->front >= 0 && m.all_up + m.all_down > 0)
		(void)gate_send(p->front, &m, NULL, 0); /* a front that is gone counts nothing */
}

static void on_second(void *arg)
{
	tell_count(arg);
	conn_check_time(&((struct program *)arg)->seal);
}

/* ---- set-up */

static int set_up(struct program *p, struct err *e)
{
	if (!OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, NULL) ||
	    RAND_bytes(p->seed, sizeof(p->seed)) != 1)
		return err_set(e, ERR_SYSTEM, EIO, "OpenSSL cannot be set up");
	p->front = FD_NONE;
	p->text = BUF(JSON_MAX_BYTES);
	p->trust = BUF(TRUST_MAX);
	p->early = BUF(STREAM_ROOM);
	p->value.p = mem_new(VAULT_VALUE_MAX, 1);
	p->seal.trust = BUF(TRUST_MAX);
	p->seal.event = on_event;
	p->seal.over = over;
	p->seal.loop = loop_new();
	p->seal.rules = terms_new();
	begin_telling(p);
	return seal_init_tls(&p->seal, e);
}

static int lock(struct err *e)
{
	int r = confine(0, e);

	return r < 0 ? r : confine_prove(0, e);
}

static int run(struct program *p, struct err *e)
{
	_cleanup_(buf_done) struct buf pem = BUF(64 * KIB);
	int r = set_up(p, e);

	if (r >= 0)
		r = lock(e);
	if (r < 0)
		return r;
	ca_pem(p->seal.ca, &pem);
	r = seal_send_all(SEAL_KEEPER_FD, SEAL_CA, NULL, pem.p, pem.n);
	if (r < 0) {
		errno = -r;
		return err_sys(e, "telling the keeper");
	}
	(void)watch_fd(p->seal.loop, SEAL_KEEPER_FD, WATCH_READ, on_keeper, p);
	(void)watch_timer(p->seal.loop, NS_PER_SEC, true, on_second, p);
	loop_run(p->seal.loop);
	return 0;
}

int seal_serve(struct err *e)
{
	struct program *p = mem_new(1, sizeof(*p));
	int r = run(p, e);

	seal_done(&p->seal);
	terms_unref(p->next);
	return r;
}
