/* SPDX-License-Identifier: Apache-2.0 */
/* gate/proxy.c - HTTP: as a proxy for any host, and inside a tunnel for its one host
 *
 * Every request is judged by itself. As a proxy, a request for another host than the last one closes the connection
 * to that server and asks dial anew. In a tunnel every request must be for the tunnel's name. A message is read
 * strictly (http/), written again with the fields that concern only this hop taken away, and its body passed on
 * byte for byte. One request is under way at a time; the next is read when the answer is complete.
 */
#include "base/loop.h"
#include "gate/front.h"

#define HEAD_NS (15 * NS_PER_SEC) /* for a whole head, however slowly it comes */
#define IDLE_NS (60 * NS_PER_SEC) /* between two requests */

static struct http_head head; /* large, and used by one call at a time */

static void copy_str(char *to, size_t size, struct str s)
{
	size_t n = s.n < size - 1 ? s.n : size - 1;

	memcpy(to, s.p, n);
	to[n] = '\0';
}

static bool is_letter(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

bool looks_like_http(const char *p, size_t n, bool *ret_more)
{
	size_t at = 0;

	*ret_more = false;
	while (at < n && at < 24 && is_letter(p[at]))
		at++;
	if (at == 0 || at == 24 || (at < n && p[at] != ' '))
		return false;
	if (at + 1 >= n) {
		*ret_more = true;
		return false;
	}
	return p[at + 1] == '/' || p[at + 1] == 'h' || p[at + 1] == '*';
}

void http_start(struct conn *c)
{
	c->x = (struct exchange){ .is_on = true, .is_proxy = c->via == VIA_NONE };
	c->half[CLIENT].mode = MODE_HEAD;
	if (c->end[SERVER].fd >= 0)
		c->half[SERVER].mode = MODE_HEAD;
	if (c->due == 0)
		c->due = clock_now() + HEAD_NS;
}

/* ---- refusing ---- */

void http_refuse(struct conn *c, unsigned status, const char *text)
{
	_cleanup_(buf_done) struct buf b = BUF(8 * KIB), body = BUF(4 * KIB);
	bool has_body = !str_eq(c->x.method, "HEAD");

	if (c->x.wants_json) {
		buf_puts(&body, "{\"error\":\"refused by vitrine\",\"host\":");
		buf_json(&body, c->host);
		buf_printf(&body, ",\"port\":%u,\"rule\":", c->port);
		if (c->rule[0])
			buf_json(&body, c->rule);
		else
			buf_puts(&body, "null");
		buf_puts(&body, ",\"message\":");
		buf_json(&body, text);
		buf_puts(&body, "}\n");
	} else {
		buf_puts(&body, "vitrine: ");
		buf_esc(&body, text, strlen(text));
		buf_putc(&body, '\n');
	}
	http_put_answer(&b, status,
			c->x.wants_json ? "application/json" : "text/plain; charset=utf-8",
			buf_cstr(&body), has_body);
	conn_last_words(c, b.p, b.n);
}

static bool bad_request(struct conn *c, unsigned status, const char *text)
{
	conn_alert(c, text);
	if (!c->is_dead)
		http_refuse(c, status, text);
	return false;
}

/* ---- a request ---- */

struct target {
	struct host_id host;
	uint16_t port;
	struct str path;
};

/* The host of a proxy request: from the absolute form or CONNECT, and Host must agree. */
static const char *proxy_target(const struct http_target *t, struct target *ret)
{
	const struct http_authority *a = &t->authority;
	struct http_authority field;
	struct err e = ERR_INIT;
	const char *why;
	struct str v;
	int r = http_field_one(&head, "Host", &v);

	if (t->form == HTTP_ORIGIN || t->form == HTTP_ASTERISK)
		return "this is a proxy: the request must name its host (http://HOST/PATH, or "
		       "CONNECT)";
	if (t->form == HTTP_ABSOLUTE && t->is_https)
		return "https through a proxy is asked for with CONNECT";
	ret->port = a->port ? a->port : 80;
	if (r < 0 || (r == 0 && head.minor == 1 && t->form == HTTP_ABSOLUTE))
		return r < 0 ? "more than one Host" : "no Host";
	if (r == 1 && (http_parse_authority(v, &field, &e) < 0 ||
		       !http_authority_is(&field, a->host, ret->port, ret->port)))
		return "Host is not the host of the request";
	if (host_parse(a->host, strlen(a->host), &ret->host, &why) < 0)
		return why;
	ret->path = t->path;
	return NULL;
}

/* A request in a tunnel: for the tunnel's name and nobody else. */
static const char *tunnel_target(const struct conn *c, const struct http_target *t,
				 struct target *ret)
{
	struct http_authority field;
	struct err e = ERR_INIT;
	const char *why;
	struct str v;

	if (t->form == HTTP_AUTHORITY)
		return "CONNECT inside a tunnel";
	if (http_field_one(&head, "Host", &v) != 1 || http_parse_authority(v, &field, &e) < 0)
		return "not exactly one Host that can be read";
	if (!http_authority_is(&field, c->host, c->port, c->port) ||
	    (t->form == HTTP_ABSOLUTE &&
	     !http_authority_is(&t->authority, c->host, c->port, c->port)))
		return "Host is not the host this connection was made for";
	if (host_parse(c->host, strlen(c->host), &ret->host, &why) < 0)
		return why;
	ret->port = c->port;
	ret->path = t->form == HTTP_ASTERISK ? STR("*") : t->path;
	return NULL;
}

static void put_fields(struct buf *b, bool skips_host)
{
	for (size_t i = 0; i < head.n; i++) {
		struct str name = head.v[i].name;

		if (http_field_is_hop(&head, name) || (skips_host && str_is_nocase(name, "Host")))
			continue;
		http_put_field(b, name, head.v[i].value);
	}
}

static void put_framing(struct buf *b, const struct http_framing *f)
{
	if (f->kind == HTTP_CHUNKED)
		http_put_field(b, STR("Transfer-Encoding"), STR("chunked"));
}

/* The head as the server gets it. */
static void put_request(struct conn *c, const struct target *t, const struct http_framing *f,
			struct buf *b)
{
	bool has_colon = strchr(t->host.name, ':') != NULL;

	buf_add(b, head.method.p, head.method.n);
	buf_putc(b, ' ');
	buf_add(b, t->path.p, t->path.n);
	buf_printf(b, " HTTP/1.%u\r\n", head.minor);
	buf_printf(b, has_colon ? "Host: [%s]" : "Host: %s", t->host.name);
	if (t->port != 80)
		buf_printf(b, ":%u", t->port);
	buf_puts(b, "\r\n");
	put_fields(b, true);
	put_framing(b, f);
	if (c->x.wants_upgrade)
		buf_puts(b, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
	else if (c->x.is_last)
		buf_puts(b, "Connection: close\r\n");
	http_put_end(b);
}

/* One request and its answer, when both are through or the connection is. */
void http_told(struct conn *c)
{
	struct gate_msg m = { .type = GATE_EVENT,
			      .id = c->id,
			      .event = EVENT_REQUEST,
			      .via = c->via,
			      .verdict = GATE_ALLOWED,
			      .port = c->port,
			      .code = c->x.code,
			      .up = c->half[CLIENT].bytes - c->x.up,
			      .down = c->half[SERVER].bytes - c->x.down,
			      .ns = clock_now() - c->x.begun,
			      .has_addr = c->has_peer,
			      .addr = c->peer };

	if (!c->x.is_sent)
		return;
	c->x.is_sent = false;
	memcpy(m.method, c->x.method, sizeof(m.method));
	memcpy(m.path, c->x.path, sizeof(m.path));
	conn_event(c, &m);
}

/* The server is there: the head goes out, then the body. */
static void send_request(struct conn *c)
{
	struct half *up = &c->half[CLIENT];

	c->x.is_sent = true;
	c->x.begun = clock_now();
	c->x.up = c->half[CLIENT].bytes;
	c->x.down = c->half[SERVER].bytes;
	c->half[SERVER].mode = MODE_HEAD;
	conn_put(c, SERVER, c->x.head.p, c->x.head.n);
	buf_done(&c->x.head);
	c->x.head = BUF(2 * HTTP_HEAD_MAX);
	if (c->is_dead)
		return;
	c->due = 0;
	if (c->x.framing.kind == HTTP_NO_BODY) {
		http_message_end(c, CLIENT);
		return;
	}
	http_body_init(&up->body, &c->x.framing);
	up->mode = MODE_BODY;
}

static void begin_exchange(struct conn *c, const struct target *t, const struct http_framing *f)
{
	bool is_proxy = c->x.is_proxy;

	buf_done(&c->x.head);
	c->x = (struct exchange){
		.is_on = true,
		.is_proxy = is_proxy,
		.is_last = !http_is_persistent(&head) || head.minor == 0,
		.wants_upgrade = http_field_has(&head, "Upgrade", "websocket") &&
				 http_field_has(&head, "Connection", "upgrade"),
		.framing = *f,
		.head = BUF(2 * HTTP_HEAD_MAX),
	};
	copy_str(c->x.method, sizeof(c->x.method), head.method);
	copy_str(c->x.path, sizeof(c->x.path), t->path);
	/* A query may hold what the path does not: keys, mail addresses. It is not for the log. */
	c->x.path[strcspn(c->x.path, "?")] = '\0';
	put_request(c, t, f, &c->x.head);
}

static void note_wishes(struct conn *c)
{
	const struct http_field *accept = http_field_first(&head, "Accept");

	copy_str(c->x.method, sizeof(c->x.method), head.method);
	c->x.wants_json = accept && http_field_has(&head, "Accept", "application/json");
}

/* A proxy request: to the server that is still connected, or to a new one. */
static void proxy_request(struct conn *c, const struct target *t, bool is_connect)
{
	bool is_same =
		c->end[SERVER].fd >= 0 && str_eq(c->host, t->host.name) && c->port == t->port;

	c->half[CLIENT].mode = MODE_WAIT;
	if (!is_connect && is_same) {
		send_request(c);
		return;
	}
	conn_drop_server(c);
	c->via = is_connect ? VIA_CONNECT : VIA_HTTP;
	memcpy(c->host, t->host.name, sizeof(c->host));
	c->port = t->port;
	conn_ask(c);
}

static const char *check_request(struct conn *c, struct http_target *form, struct target *t,
				 struct http_framing *f)
{
	struct err e = ERR_INIT;

	if (str_is(head.method, "TRACE") || str_is(head.method, "PRI"))
		return "this method is not passed on";
	if (http_parse_target(head.method, head.target, form, &e) < 0 ||
	    http_request_framing(&head, f, &e) < 0) {
		gate_say(c->text, sizeof(c->text), "%s", e.msg);
		return c->text;
	}
	if (form->form == HTTP_AUTHORITY && f->kind != HTTP_NO_BODY)
		return "CONNECT with a body";
	return c->x.is_proxy ? proxy_target(form, t) : tunnel_target(c, form, t);
}

bool http_request(struct conn *c)
{
	struct buf *in = &c->half[CLIENT].in;
	struct http_framing f = { 0 };
	struct http_target form;
	struct target t = { 0 };
	struct err e = ERR_INIT;
	const char *wrong;
	ssize_t n;

	if (in->n == 0)
		return false;
	n = http_parse_request(in->p, in->n, &head, &e);
	if (n < 0)
		return bad_request(c, n == -EMSGSIZE ? 431 : 400, e.msg);
	if (n == 0) {
		if (c->due == 0 || c->due > clock_now() + HEAD_NS)
			c->due = clock_now() + HEAD_NS;
		return false;
	}
	note_wishes(c);
	if (c->is_refused) {
		http_refuse(c, 403, c->text);
		return false;
	}
	wrong = check_request(c, &form, &t, &f);
	if (wrong)
		return bad_request(c, 400, wrong);
	bool wants_json = c->x.wants_json;

	begin_exchange(c, &t, &f);
	c->x.wants_json = wants_json;
	conn_drop_input(c, CLIENT, (size_t)n);
	c->due = 0;
	if (c->x.is_proxy) {
		proxy_request(c, &t, form.form == HTTP_AUTHORITY);
		return false;
	}
	send_request(c);
	return !c->is_dead && c->half[CLIENT].mode != MODE_WAIT;
}

/* ---- dial has answered ---- */

void http_answered(struct conn *c, const struct gate_msg *m)
{
	if (m->verdict != GATE_ALLOWED) {
		http_refuse(c, m->verdict == GATE_REFUSED ? 403 : 502, m->text);
		return;
	}
	if (c->is_inspected && c->via == VIA_HTTP) {
		conn_drop_server(c);
		http_refuse(c, 403, "the host is inspected, which needs TLS: use https");
		return;
	}
	if (c->via == VIA_CONNECT) {
		static const char ok[] = "HTTP/1.1 200 Connection established\r\n\r\n";

		c->x.is_on = false;
		c->half[CLIENT].mode = MODE_SNIFF;
		c->half[SERVER].mode = MODE_RAW;
		conn_put(c, CLIENT, ok, sizeof(ok) - 1);
		if (inspect_take(c))
			return;
	} else {
		send_request(c);
	}
	if (!c->is_dead)
		conn_again(c, CLIENT);
}

/* ---- a response ---- */

static void put_response(struct conn *c, const struct http_framing *f, struct buf *b)
{
	http_put_status(b, head.status, head.reason);
	put_fields(b, false);
	put_framing(b, f);
	if (head.status == 101)
		buf_puts(b, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
	else if (c->x.is_last)
		buf_puts(b, "Connection: close\r\n");
	http_put_end(b);
}

static void response_body(struct conn *c, const struct http_framing *f)
{
	struct half *down = &c->half[SERVER];

	if (f->kind == HTTP_NO_BODY) {
		http_message_end(c, SERVER);
		return;
	}
	http_body_init(&down->body, f);
	down->mode = MODE_BODY;
}

static void switch_protocols(struct conn *c)
{
	http_told(c);
	c->x.is_on = false;
	c->half[CLIENT].mode = c->half[SERVER].mode = MODE_RAW;
	conn_again(c, CLIENT);
}

bool http_response(struct conn *c)
{
	_cleanup_(buf_done) struct buf b = BUF(2 * HTTP_HEAD_MAX);
	struct buf *in = &c->half[SERVER].in;
	struct http_framing f = { 0 };
	struct err e = ERR_INIT;
	ssize_t n;

	if (in->n == 0)
		return false;
	n = c->x.method[0] && !c->x.is_response_done ? http_parse_response(in->p, in->n, &head, &e)
						     : -EBADMSG; /* nobody asked */
	if (n == 0)
		return false;
	if (n < 0 || http_response_framing(&head, str_of(c->x.method), &f, &e) < 0 ||
	    (head.status == 101 && !c->x.wants_upgrade)) {
		conn_alert(c, "the server's answer is not HTTP as we know it");
		if (!c->is_dead)
			http_refuse(c, 502, "the server's answer is not HTTP as we know it");
		return false;
	}
	if (f.kind == HTTP_UNTIL_CLOSE)
		c->x.is_last = true;
	c->x.is_server_last = !http_is_persistent(&head);
	c->x.code = head.status;
	put_response(c, &f, &b);
	conn_drop_input(c, SERVER, (size_t)n);
	conn_put(c, CLIENT, b.p, b.n);
	if (c->is_dead)
		return false;
	if (head.status == 101)
		switch_protocols(c);
	else if (head.status >= 200)
		response_body(c, &f);
	return !c->is_dead && in->n > 0 && c->half[SERVER].mode == MODE_HEAD &&
	       !c->x.is_response_done;
}

/* ---- ends ---- */

static void next_request(struct conn *c)
{
	http_told(c);
	if (c->x.is_last || (!c->x.is_proxy && c->x.is_server_last)) {
		conn_last_words(c, NULL, 0);
		return;
	}
	if (c->x.is_server_last)
		conn_drop_server(c);
	buf_done(&c->x.head);
	c->x = (struct exchange){ .is_on = true, .is_proxy = c->x.is_proxy };
	c->half[CLIENT].mode = MODE_HEAD;
	c->due = clock_now() + IDLE_NS;
	conn_again(c, CLIENT);
}

void http_message_end(struct conn *c, int from)
{
	if (from == CLIENT) {
		c->x.is_request_done = true;
		c->half[CLIENT].mode = MODE_WAIT;
	} else {
		c->x.is_response_done = true;
		c->half[SERVER].mode = MODE_HEAD;
	}
	if (c->x.is_request_done && c->x.is_response_done)
		next_request(c);
	else if (c->x.is_response_done)
		conn_last_words(
			c, NULL,
			0); /* answered before the request was complete: nothing can follow */
}

bool http_server_gone(struct conn *c)
{
	/* Between two requests a server may leave; the next request finds another connection. */
	if (!c->x.is_on || !c->x.is_proxy || c->x.method[0])
		return false;
	conn_drop_server(c);
	return true;
}
