/* SPDX-License-Identifier: Apache-2.0 */
/* seal/talk_fuzz.h - a connection without sockets, for the fuzzers of h1 and h2
 *
 * Input is bytes of the client, then 0xFF 0x00 0xFF, then bytes of the server; both arrive in pieces. The rules allow
 * little, hold pushes and know a secret whose value must never be seen on the client's side, unless the client said it.
 */
#ifndef VITRINE_SEAL_TALK_FUZZ_H
#define VITRINE_SEAL_TALK_FUZZ_H

#include "seal/conn.h"

#define FUZZ_SECRET "sk-real-0123456789"
#define FUZZ_HOLDER "sk-hold-9876543210"

/* All of it but the letters that may pass; see mask.h. */
static const char fuzz_rest[] = "real-0123456789";

struct talk {
	struct seal seal; /* first: events know only this */
	struct conn conn;
	struct buf to_client, to_server;
	bool is_known; /* the client has the secret's letters anyhow */
};

static void talk_event(struct seal *s, const char *json)
{
	bug_on(strstr(json, fuzz_rest) != NULL && !((struct talk *)s)->is_known);
}

static struct terms *talk_rules(void)
{
	static const char text[] = "{\"allow\":[\"GET,POST ok.test/**\"],\"deny\":[\"* "
				   "ok.test/no/**\"],"
				   "\"git\":{\"fetch\":[\"ok.test/me/*\"],\"push\":[\"ok.test/me/"
				   "app:refs/heads/agent/*\"]},"
				   "\"secrets\":[{\"name\":\"k\",\"placeholder\":\"" FUZZ_HOLDER
				   "\",\"hosts\":[\"ok.test\"],\"in\":[\"header\",\"query\","
				   "\"body\"]},{\"name\":\"l\",\"placeholder\":\"sk-shorter\","
				   "\"hosts\":[\"ok.test\"],\"in\":[\"body\"]}]}";
	static struct terms *r;
	struct err e = ERR_INIT;

	if (r == NULL) {
		r = terms_new();
		bug_on(terms_parse(r, text, sizeof(text) - 1, &e) < 0);
		bug_on(vault_set(&r->vault, "k", STR(FUZZ_SECRET)) < 0);
		bug_on(vault_set(&r->vault, "l", STR("of-another-length-0123")) < 0);
	}
	return r;
}

static void talk_init(struct talk *t)
{
	*t = (struct talk){ .to_client = BUF(64 * MIB), .to_server = BUF(64 * MIB) };
	t->seal.rules = talk_rules();
	t->seal.event = talk_event;
	t->conn.seal = &t->seal;
	t->conn.phase = CONN_TALK;
	(void)snprintf(t->conn.host, sizeof(t->conn.host), "ok.test");
	t->conn.way =
		(struct exchange_way){ .id = 1, .host = t->conn.host, .port = 443, .is_tls = true };
	for (int i = 0; i < 2; i++) {
		struct stream *s = i ? &t->conn.server : &t->conn.client;

		*s = (struct stream){ .fd = FD_NONE,
				      .in = FIFO(STREAM_ROOM),
				      .out = FIFO(STREAM_ROOM),
				      .is_open = true };
	}
}

static void talk_drain(struct fifo *f, struct buf *to)
{
	struct str v = fifo_view(f);

	buf_add(to, v.p, v.n);
	fifo_take(f, v.n);
}

/* Moves up to `step` bytes to a stream; its end when there are none left. */
static void talk_feed(struct stream *s, struct str *from, size_t step)
{
	struct str now = str_first(*from, step < fifo_room(&s->in) ? step : fifo_room(&s->in));

	fifo_force(&s->in, now.p, now.n);
	*from = str_from(*from, now.n);
	if (from->n == 0)
		s->is_eof = true;
}

static size_t talk_count(struct str in, const char *word)
{
	size_t n = 0, len = strlen(word);

	for (const char *at = in.p, *hit;
	     (hit = memmem(at, (size_t)(in.p + in.n - at), word, len)) != NULL; at = hit + len)
		n++;
	return n;
}

static void talk_run(struct talk *t, const uint8_t *data, size_t n)
{
	static const uint8_t cut[] = { 0xff, 0x00, 0xff };
	const uint8_t *at = memmem(data, n, cut, sizeof(cut));
	size_t first = at ? (size_t)(at - data) : n;
	struct str client = { .p = (const char *)data, .n = first };
	struct str server = { .p = (const char *)data + first + (at ? 3 : 0),
			      .n = n - first - (at ? 3 : 0) };
	size_t step = n ? 1 + data[n - 1] % 97U : 1;

	/* h2: behind HPACK too. Letters of the secret that the server says without the rest are not the secret. */
	t->is_known = memmem(client.p, client.n, "real", 4) || t->conn.h2 ||
		      talk_count(server, "6789") > talk_count(server, FUZZ_SECRET);

	for (int round = 0; round < 4000 && t->conn.phase == CONN_TALK; round++) {
		bool has_more = client.n > 0 || server.n > 0;
		bool has_moved;

		talk_feed(&t->conn.client, &client, step);
		has_moved = t->conn.h2 ? h2_work(t->conn.h2) : h1_work(t->conn.h1);
		talk_drain(&t->conn.client.out, &t->to_client);
		talk_drain(&t->conn.server.out, &t->to_server);
		if (round % 3 == 2)
			talk_feed(&t->conn.server, &server, step);
		if (!has_more && !has_moved)
			break;
	}
}

static void talk_done(struct talk *t)
{
	h1_free(t->conn.h1);
	h2_free(t->conn.h2);
	bug_on(memmem(buf_cstr(&t->to_client), t->to_client.n, fuzz_rest, sizeof(fuzz_rest) - 1) &&
	       !t->is_known);
	fifo_done(&t->conn.client.in);
	fifo_done(&t->conn.client.out);
	fifo_done(&t->conn.server.in);
	fifo_done(&t->conn.server.out);
	buf_done(&t->to_client);
	buf_done(&t->to_server);
}

#endif
