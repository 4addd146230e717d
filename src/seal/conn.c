/* SPDX-License-Identifier: Apache-2.0 */
/* seal/conn.c - see conn.h
 *
 * HELLO    wait for the ClientHello; its SNI must be the name asked for
 * DIAL     TLS to the server, verified against the pushed trust store and the name
 * ANSWER   our certificate to the client, with the protocol the server chose; a client that does not like it is told
 *          of in an event
 * TALK     h1 or h2. When DIAL failed, every request gets an answer of ours that says why
 * LEAVE    flush to the client, then the end
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include "base/sabotage.h"
#include "seal/conn.h"

enum { ROUNDS = 32 };
#define HANDSHAKE_TIME (20 * NS_PER_SEC)
#define HEAD_TIME (30 * NS_PER_SEC)
#define IDLE_TIME (900 * NS_PER_SEC)
#define LEAVE_TIME (10 * NS_PER_SEC)

static void pump(void *arg);

/* ---- events */

void conn_event(struct conn *c, const char *reason, const char *message)
{
	_cleanup_(buf_done) struct buf b = BUF(3 * KIB);

	buf_printf(&b,
		   "{\"event\":\"net.verdict\",\"verdict\":\"deny\",\"connection\":%u,\"host\":",
		   c->way.id);
	buf_json(&b, c->host);
	buf_printf(&b, ",\"port\":%u,\"reason\":", c->way.port);
	buf_json(&b, reason);
	buf_puts(&b, ",\"message\":");
	buf_json(&b, message);
	buf_putc(&b, '}');
	if (c->seal->event)
		c->seal->event(c->seal, buf_cstr(&b));
}

void conn_exchange_event(void *arg, const char *json)
{
	struct conn *c = arg;

	if (c->seal->event)
		c->seal->event(c->seal, json);
}

/* ---- TLS */

static struct conn *conn_of(SSL *ssl)
{
	return SSL_get_app_data(ssl);
}

/* The one name of a ClientHello's SNI: 1, 0 when there is none, -EBADMSG. */
static int hello_name(SSL *ssl, struct str *ret)
{
	const unsigned char *p;
	size_t n, name;

	if (!SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &p, &n))
		return 0;
	if (n < 5 || (size_t)(p[0] << 8 | p[1]) != n - 2 || p[2] != TLSEXT_NAMETYPE_host_name)
		return -EBADMSG;
	name = (size_t)(p[3] << 8 | p[4]);
	if (name != n - 5)
		return -EBADMSG;
	*ret = (struct str){ .p = (const char *)p + 5, .n = name };
	return 1;
}

static void hello_protocols(struct conn *c, SSL *ssl)
{
	const unsigned char *p;
	size_t n;

	if (!SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &p,
				       &n))
		return;
	c->has_alpn = true;
	for (size_t i = 2; i < n && i + 1 + p[i] <= n; i += 1 + p[i]) {
		struct str name = { .p = (const char *)p + i + 1, .n = p[i] };

		c->offers_h2 |= str_is(name, "h2");
		c->offers_h1 |= str_is(name, "http/1.1");
	}
}

static bool hello_is_for(const struct conn *c, SSL *ssl)
{
	struct http_authority a;
	struct str name;
	struct err e = ERR_INIT;
	int r = hello_name(ssl, &name);

	if (r <= 0)
		return r ==
		       0; /* no SNI: an old client, or an address; our certificate names the host */
	return http_parse_authority(name, &a, &e) == 0 && a.port == 0 && str_eq(a.host, c->host);
}

static int load_trust(struct seal *s, struct err *e)
{
	X509_STORE *store;
	BIO *b;
	X509 *cert;
	size_t n = 0;

	if (s->has_trust)
		return 0;
	store = X509_STORE_new();
	b = BIO_new_mem_buf(buf_cstr(&s->trust), (int)s->trust.n);
	bug_on(store == NULL || b == NULL);
	while ((cert = PEM_read_bio_X509(b, NULL, NULL, NULL)) != NULL) {
		n += X509_STORE_add_cert(store, cert) == 1;
		X509_free(cert);
	}
	ERR_clear_error(); /* the end of the bundle */
	BIO_free(b);
	SSL_CTX_set_cert_store(s->server_ctx, store);
	s->has_trust = true;
	return n ? 0 : err_set(e, ERR_SYSTEM, ENOENT, "there is no certificate to trust");
}

/* The other half: TLS to the server, for the same name. */
static int dial(struct conn *c, struct err *e)
{
	static const unsigned char both[] = "\x02h2\x08http/1.1";
	bool may_h2 = c->offers_h2;
	SSL *ssl;
	int r = load_trust(c->seal, e);

	if (r < 0)
		return r;
	ssl = SSL_new(c->seal->server_ctx);
	bug_on(ssl == NULL);
	if (ca_is_address(c->host))
		(void)X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), c->host);
	else
		bug_on(!SSL_set_tlsext_host_name(ssl, c->host) || !SSL_set1_host(ssl, c->host));
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	SSL_set_verify(ssl, sabotaged("seal-verify") ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
	bug_on(SSL_set_alpn_protos(ssl, may_h2 ? both : both + 3,
				   (unsigned)(sizeof(both) - 1 - (may_h2 ? 0 : 3))) != 0);
	SSL_set_app_data(ssl, c);
	SSL_set_connect_state(ssl);
	stream_tls(&c->server, ssl);
	return 0;
}

static int on_hello(SSL *ssl, int *alert, void *arg)
{
	struct conn *c = conn_of(ssl);
	struct err e = ERR_INIT;

	(void)arg;
	if (c->phase == CONN_HELLO) {
		if (!hello_is_for(c, ssl) && !sabotaged("seal-sni")) {
			conn_event(c, "sni_mismatch",
				   "the TLS name is not the name the connection was opened for");
			*alert = SSL_AD_UNRECOGNIZED_NAME;
			return SSL_CLIENT_HELLO_ERROR;
		}
		hello_protocols(c, ssl);
		c->phase = CONN_DIAL;
		if (dial(c, &e) < 0) {
			(void)snprintf(c->why, sizeof(c->why), "%.190s", e.msg);
			c->phase = CONN_ANSWER;
		}
	}
	if (c->phase == CONN_DIAL)
		return SSL_CLIENT_HELLO_RETRY;
	if (ca_serve(c->seal->ca, c->host, ssl, &e) < 0) {
		*alert = SSL_AD_INTERNAL_ERROR;
		return SSL_CLIENT_HELLO_ERROR;
	}
	return SSL_CLIENT_HELLO_SUCCESS;
}

static int on_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_n,
		   const unsigned char *in, unsigned in_n, void *arg)
{
	const struct conn *c = conn_of(ssl);
	static const unsigned char h2[] = "h2", h1[] = "http/1.1";

	(void)in;
	(void)in_n;
	(void)arg;
	if (c->is_h2 || c->offers_h1) {
		*out = c->is_h2 ? h2 : h1;
		*out_n = c->is_h2 ? 2 : 8;
		return SSL_TLSEXT_ERR_OK;
	}
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static SSL_CTX *new_ctx(const SSL_METHOD *method)
{
	SSL_CTX *ctx = SSL_CTX_new(method);

	bug_on(ctx == NULL || !SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION));
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				      SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_options(ctx,
			    SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	return ctx;
}

int seal_init_tls(struct seal *s, struct err *e)
{
	int r = ca_new(&s->ca, e);

	if (r < 0)
		return r;
	s->client_ctx = new_ctx(TLS_server_method());
	s->server_ctx = new_ctx(TLS_client_method());
	SSL_CTX_set_client_hello_cb(s->client_ctx, on_hello, NULL);
	SSL_CTX_set_alpn_select_cb(s->client_ctx, on_alpn, NULL);
	(void)SSL_CTX_set_num_tickets(s->client_ctx, 0);
	return 0;
}

void seal_done(struct seal *s)
{
	for (struct conn *c = s->first, *next; c; c = next) {
		next = c->next;
		conn_close(c);
	}
	SSL_CTX_free(s->client_ctx);
	SSL_CTX_free(s->server_ctx);
	ca_free(s->ca);
	terms_unref(s->rules);
	buf_done(&s->trust);
}

/* ---- life */

static void no_delay(int fd)
{
	int on = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on,
			 sizeof(on)); /* a unix socket has none */
}

void conn_open(struct seal *s, const struct exchange_way *way, struct str early, int client,
	       int server)
{
	struct conn *c = mem_new(1, sizeof(*c));

	c->seal = s;
	c->started = c->moved = clock_now();
	(void)snprintf(c->host, sizeof(c->host), "%s", way->host);
	c->way = *way;
	c->way.host = c->host;
	no_delay(client);
	no_delay(server);
	stream_init(&c->client, s->loop, client, pump, c);
	stream_init(&c->server, s->loop, server, pump, c);
	if (early.n <= fifo_room(&c->client.early))
		fifo_add(&c->client.early, early.p, early.n);
	c->again = watch_timer(s->loop, 0, false, pump, c);
	c->link = &s->first;
	c->next = s->first;
	if (c->next)
		c->next->link = &c->next;
	s->first = c;
	s->n_conns++;
	if (way->is_tls) {
		SSL *ssl = SSL_new(s->client_ctx);

		bug_on(ssl == NULL);
		SSL_set_app_data(ssl, c);
		SSL_set_accept_state(ssl);
		stream_tls(&c->client, ssl);
	} else {
		c->phase = CONN_TALK;
		c->h1 = h1_new(c);
	}
	pump(c);
}

void conn_close(struct conn *c)
{
	struct seal *s = c->seal;

	h1_free(c->h1);
	h2_free(c->h2);
	if (s->over)
		s->over(s, c);
	stream_done(&c->client);
	stream_done(&c->server);
	watch_free(c->again);
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	s->n_conns--;
	free(c);
}

/* ---- progress */

/* The server's handshake is over, well or not: the client can be answered. */
static bool step_dial(struct conn *c)
{
	const unsigned char *p = NULL;
	unsigned n = 0;

	if (!c->server.is_dead && !c->server.is_open)
		return false;
	if (c->server.is_dead) {
		(void)snprintf(c->why, sizeof(c->why), "%s", c->server.why);
		conn_event(c, "upstream_tls", c->why);
	} else {
		SSL_get0_alpn_selected(c->server.ssl, &p, &n);
		c->is_h2 = n == 2 && memcmp(p, "h2", 2) == 0;
	}
	c->phase = CONN_ANSWER;
	return true;
}

static void tell_refused_certificate(struct conn *c)
{
	conn_event(c, "client_refused_certificate",
		   "the program inside does not trust the sandbox's CA (a pinned certificate, or a "
		   "bundle of its own); leave this host uninspected to let it through");
}

static bool step_answer(struct conn *c)
{
	if (c->client.is_dead) {
		if (c->phase == CONN_ANSWER)
			tell_refused_certificate(c);
		c->phase = CONN_LEAVE;
		return true;
	}
	if (!c->client.is_open)
		return false;
	c->phase = CONN_TALK;
	if (c->is_h2)
		c->h2 = h2_new(c);
	else
		c->h1 = h1_new(c);
	return true;
}

static bool step_hello(struct conn *c)
{
	if (!c->client.is_dead)
		return false;
	if (c->client.alert != SSL_R_CLIENTHELLO_TLSEXT && c->client.alert != SSL_R_CALLBACK_FAILED)
		conn_event(c, "not_tls",
			   "an inspected host is spoken to in TLS, and this does not begin like "
			   "it");
	c->phase = CONN_LEAVE;
	return true;
}

static bool step(struct conn *c)
{
	switch (c->phase) {
	case CONN_HELLO:
		return step_hello(c);
	case CONN_DIAL:
		return step_dial(c);
	case CONN_ANSWER:
		return step_answer(c);
	case CONN_TALK:
		return c->h2 ? h2_work(c->h2) : h1_work(c->h1);
	case CONN_LEAVE:
		if (!c->client.is_closing) {
			stream_close(&c->client);
			return true;
		}
		return false;
	case CONN_PHASE_COUNT_:
		break;
	}
	bug_on(true);
	return false;
}

static bool work(struct conn *c)
{
	bool has_moved = stream_work(&c->client);

	/* Before its own handshake the server has nothing to say that we could read. */
	if (c->phase != CONN_HELLO || !c->way.is_tls)
		has_moved |= stream_work(&c->server);
	return step(c) || has_moved;
}

static void pump(void *arg)
{
	struct conn *c = arg;
	int n = 0;

	while (n < ROUNDS && work(c))
		n++;
	if (n > 0)
		c->moved = clock_now();
	if (c->phase == CONN_LEAVE && stream_is_over(&c->client)) {
		conn_close(c);
		return;
	}
	if (n == ROUNDS) {
		watch_free(c->again);
		c->again = watch_timer(c->seal->loop, 1, false, pump, c);
	}
	stream_wait(&c->client);
	if (c->phase != CONN_HELLO || !c->way.is_tls)
		stream_wait(&c->server);
}

static bool is_late(const struct conn *c, uint64_t now)
{
	switch (c->phase) {
	case CONN_HELLO:
	case CONN_DIAL:
	case CONN_ANSWER:
		return now - c->started > HANDSHAKE_TIME;
	case CONN_TALK:
		return now - c->moved > (c->h1 && h1_is_partial(c->h1) ? HEAD_TIME : IDLE_TIME);
	case CONN_LEAVE:
		return now - c->moved > LEAVE_TIME;
	case CONN_PHASE_COUNT_:
		break;
	}
	return true;
}

void conn_check_time(struct seal *s)
{
	uint64_t now = clock_now();

	for (struct conn *c = s->first, *next; c; c = next) {
		next = c->next;
		if (is_late(c, now))
			conn_close(c);
	}
}
