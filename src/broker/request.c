/* SPDX-License-Identifier: Apache-2.0 */
/* broker/request.c - read one request, find what it is about, carry it out or say why not
 *
 * Nothing here trusts the connection: the request is bounded before it is read and refused as a whole when one byte of
 * it is not as it should be (wire.c).
 */
#include <sys/socket.h>
#include <sys/time.h>

#include "base/io.h"
#include "broker/broker.h"

#define REQUEST_SECONDS 10

static int read_exactly(int fd, void *p, size_t n)
{
	size_t got = 0;

	while (got < n) {
		ssize_t r = io_read(fd, (char *)p + got, n - got);

		if (r <= 0)
			return r < 0 ? (int)r : -EBADMSG;
		got += (size_t)r;
	}
	return 0;
}

static void time_reads(int fd, long seconds)
{
	struct timeval tv = { .tv_sec = seconds };

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
}

static int hear(struct broker *b)
{
	static char text[WIRE_BYTES];
	uint8_t head[WIRE_HEAD];
	ssize_t n;
	int r;

	time_reads(b->conn, REQUEST_SECONDS);
	r = read_exactly(b->conn, head, sizeof(head));
	n = r < 0 ? r : request_length(head);
	if (n < 0)
		return (int)n;
	r = read_exactly(b->conn, text, (size_t)n);
	time_reads(b->conn, 0);
	return r < 0 ? r : request_parse(text, (size_t)n, &b->req);
}

static int carry_out(struct broker *b, struct err *e)
{
	static const struct {
		char word[12];
		int (*fn)(struct broker *b, struct err *e);
	} table[] = {
		{ "git-list", serve_list }, { "git-fetch", serve_fetch },
		{ "git-push", serve_push }, { "gh", serve_gh },
		{ "run", serve_run },       { "checkpoint", serve_checkpoint },
	};

	if (str_eq(b->req.words[0], "about"))
		return serve_about(b);
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (str_eq(table[i].word, b->req.words[0]))
			return table[i].fn(b, e);
	return err_set(e, ERR_DENIED, EINVAL, "the broker knows no '%.40s'", b->req.words[0]);
}

/* Said to who asked and put on record. */
static int refuse(const struct broker *b, const struct err *e)
{
	const char *words[16] = { NULL };
	struct err ignored = ERR_INIT;

	for (size_t i = 0; i < b->req.n && i < ARRAY_LEN(words) - 1; i++)
		words[i] = b->req.words[i];
	(void)broker_tell(
		&(struct told){ .what = words, .verdict = "deny", .rule = "", .message = e->msg },
		&ignored);
	broker_say(b, "%s", e->msg);
	return broker_end(b, 125);
}

int broker_serve(struct broker *b)
{
	struct err e = ERR_INIT;
	int r = hear(b);

	if (r < 0) {
		broker_say(b, "this is not a request");
		return 1;
	}
	r = carry_out(b, &e);
	return r < 0 && e.kind ? refuse(b, &e) < 0 : r < 0;
}
