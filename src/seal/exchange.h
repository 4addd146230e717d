/* SPDX-License-Identifier: Apache-2.0 */
/* seal/exchange.h - one request and its answer, whatever carried them: judged, rewritten, masked, told
 *
 * HTTP/1 and HTTP/2 bring their heads into a struct http_head and ask here. No TLS, no descriptors: what decides
 * about bytes from inside can be tested and fuzzed alone.
 *
 *     exchange_request()     forward out / hold the body / refuse
 *     exchange_hold()        while held: body bytes in, until the commands of a push are judged, or the length of a body is
 *                            known in which values take the place of placeholders
 *     exchange_up()          body bytes on their way out (swapped where a secret says so)
 *     exchange_response()    the answer's head
 *     exchange_down()        its body, masked
 *     exchange_refusal()     the answer of ours, when refused
 *     exchange_end()         one event; frees
 */
#ifndef VITRINE_SEAL_EXCHANGE_H
#define VITRINE_SEAL_EXCHANGE_H

#include "http/uri.h"
#include "seal/frames.h"
#include "seal/gunzip.h"
#include "seal/terms.h"

/* The connection a request came over. */
struct exchange_way {
	uint32_t id;
	const char *host;
	uint16_t port;
	bool is_tls; /* and verified; without it nothing is swapped */
};

typedef void exchange_event_fn(void *arg, const char *json);

struct exchange {
	const struct exchange_way *way;
	struct terms *rules;
	exchange_event_fn *event;
	void *arg;
	char method[HTTP_METHOD_MAX + 1];
	char path[512]; /* as asked for inside, without the query, for the record */
	bool wants_json, is_head, is_upgrade, is_held, is_refused, is_begun;
	bool is_masked; /* a secret or a login belongs to the host: nothing may hide it in the answer */
	bool is_strict;   /* a login or git rules are decided by the path */
	bool is_bodiless; /* a request that has no body on such a host */
	struct git_request git;
	struct git_push push;
	struct gunzip *gunzip;
	struct mask *mask;
	struct swap *swap;         /* of placeholders in the request's body */
	bool is_resized, is_sized; /* its length changes by that; and has been given out */
	uint64_t length, held;     /* as announced inside; bytes that came while held */
	int64_t growth;            /* of the length that was given out */
	const struct terms *known; /* whose values the mask knows, as of */
	uint64_t known_changes;
	struct vault_note note;
	const struct login *login; /* its endpoint is asked */
	const struct login *watch; /* whose tokens an answer of JSON must not hold */
	struct buf answer;         /* of either, held until it was looked through */
	bool is_login, is_watched, is_success, is_taken;
	struct frames *frames; /* of a WebSocket, whose messages are masked across them */
	char **strings;        /* values made for this exchange; wiped */
	size_t n_strings, cap_strings;
	unsigned code; /* of the answer */
	char rule[256];
	char why[488]; /* of a refusal */
	uint64_t up, down, start;
};

void exchange_begin(struct exchange *x, const struct exchange_way *way, struct terms *rules,
		    exchange_event_fn *event, void *arg);

/* 0: send out; 1: send out when exchange_hold() says so; < 0: refused, x->code and x->why are set. out's views are
 * valid while x lives and the bytes of in stand. out->n leaves room for two fields more. */
int exchange_request(struct exchange *x, const struct http_head *in, struct http_head *out);

/* 1: what was held goes out, through exchange_up(); 0: more; < 0: refused. */
int exchange_hold(struct exchange *x, const char *p, size_t n);
/* The body ended while it was held: 1 or < 0, as above. */
int exchange_hold_end(struct exchange *x);
/* Where x->is_resized: the Content-Length that goes out (there is none in `out`), after all that was held went through
 * exchange_up(). */
uint64_t exchange_length(struct exchange *x);

/* < 0: refused: a body that the request may not have, or whose length is not the one that was given out. */
int exchange_up(struct exchange *x, const char *p, size_t n, struct str *ret);
void exchange_up_end(struct exchange *x, struct str *ret);

int exchange_response(struct exchange *x, const struct http_head *in, struct http_head *out);
/* < 0: refused: what comes cannot be looked through. */
int exchange_down(struct exchange *x, const char *p, size_t n, struct str *ret);
/* < 0: what was held may not go inside: x->code and x->why are set, and the answer is cut off. */
int exchange_down_end(struct exchange *x, struct str *ret);

/* Status, type and body of our own answer. */
unsigned exchange_refusal(struct exchange *x, const char **ret_type, struct buf *body);
/* Refuse from outside of here: the server cannot be reached, the bytes are no HTTP. */
void exchange_fail(struct exchange *x, unsigned code, const char *why);

void exchange_end(struct exchange *x);

#endif
