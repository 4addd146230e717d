/* SPDX-License-Identifier: Apache-2.0 */
/* remote/inner_serve.c - requests from outside, by path
 *
 * One table of paths. A request that is not in it, comes too early or does not make sense ends the link, and with it
 * the sandbox: the other side is a program of the same build.
 */
#include <fcntl.h>
#include <signal.h>

#include "base/num.h"
#include "remote/inner.h"

/* ---- paths ---- */

/* "/session/7/signal/15" -> 7, "signal", "15". */
struct route {
	uint32_t id;
	char verb[16];
	char rest[16];
};

static bool copy_word(char *to, size_t size, const char **from)
{
	size_t n = strcspn(*from, "/");

	if (n == 0 || n >= size)
		return false;
	memcpy(to, *from, n);
	to[n] = '\0';
	*from += n + ((*from)[n] == '/');
	return true;
}

static int parse_route(const char *path, struct route *ret)
{
	char id[16];
	uint64_t n;
	struct err ignored;

	*ret = (struct route){ 0 };
	if (!copy_word(id, sizeof(id), &path) || num_parse(id, 0, UINT32_MAX, &n, &ignored) < 0)
		return -EBADMSG;
	ret->id = (uint32_t)n;
	if (*path && !copy_word(ret->verb, sizeof(ret->verb), &path))
		return -EBADMSG;
	if (*path && !copy_word(ret->rest, sizeof(ret->rest), &path))
		return -EBADMSG;
	return *path ? -EBADMSG : 0;
}

static int parse_size(const char *text, uint16_t *rows, uint16_t *cols)
{
	_free_ char *copy = mem_str(text);
	char *x = strchr(copy, 'x');
	uint64_t r, c;
	struct err ignored;

	if (x == NULL)
		return -EBADMSG;
	*x++ = '\0';
	if (num_parse(copy, 0, UINT16_MAX, &r, &ignored) < 0 ||
	    num_parse(x, 0, UINT16_MAX, &c, &ignored) < 0)
		return -EBADMSG;
	*rows = (uint16_t)r;
	*cols = (uint16_t)c;
	return 0;
}

static int answer(struct part *part, unsigned status)
{
	part->kind = PART_DONE;
	return stream_respond(part->stream, &(struct head){ .status = status }, NULL, false);
}

/* ---- sessions ---- */

static int open_stream(struct part *part, struct command_session *s, const struct head *h,
		       const struct route *to)
{
	const char *size = head_get(h, "size");
	uint16_t rows = 0, cols = 0;
	int r;

	if (str_eq(to->verb, "tty")) {
		part->kind = PART_TTY;
		if (size && parse_size(size, &rows, &cols) < 0)
			return -EBADMSG;
		r = session_tty(s, part, rows, cols);
	} else {
		int which = to->verb[0] - '0';

		if (to->verb[1] != '\0' || which < 0 || which > 2)
			return -EBADMSG;
		part->kind = which == 0 ? PART_IN : which == 1 ? PART_OUT : PART_ERR;
		r = session_pipe(s, part, which);
	}
	if (r < 0)
		return answer(part, 503);
	if (part->to)
		stream_widen(part->stream, WIDE_STDIO);
	if (part->kind == PART_IN)
		return 0; /* answered when all of it has come */
	return stream_respond(part->stream, &(struct head){ .status = 200 }, part_pull, false);
}

/* A stream of a command that was there before the link was: joined to what it was joined to. */
static int join_stream(struct part *part, struct command_session *s, const struct route *to)
{
	int which = str_eq(to->verb, "tty") ? 3 : to->verb[0] - '0';
	static const enum part_kind kinds[] = { PART_IN, PART_OUT, PART_ERR, PART_TTY };
	int r;

	if (which < 0 || which > 3 || (which < 3 && to->verb[1] != '\0'))
		return -EBADMSG;
	r = park_again(s, part, which);
	if (r < 0)
		return r == -ENOENT ? answer(part, 404) : r;
	part->kind = kinds[which];
	if (part->to)
		stream_widen(part->stream, WIDE_STDIO);
	if (part->kind == PART_IN)
		return 0;
	return stream_respond(part->stream, &(struct head){ .status = 200 }, part_pull, false);
}

static int join_session(struct part *part, struct command_session *s)
{
	if (!s->is_parked || s->main)
		return -EBADMSG;
	part->kind = PART_SESSION;
	part->session = s;
	part->has_end = true; /* there is no request to come */
	s->main = part;
	return session_again(s);
}

/* A word to one that may have gone. */
static int tell_session(struct part *part, const struct route *to)
{
	struct command_session *s = session_get(part->server, to->id, false);
	struct err ignored;
	uint64_t signo;
	uint16_t rows, cols;

	if (str_eq(to->verb, "signal")) {
		if (num_parse(to->rest, 1, 31, &signo, &ignored) < 0)
			return -EBADMSG;
		if (s)
			session_signal(s, (int)signo);
		return answer(part, 204);
	}
	if (parse_size(to->rest, &rows, &cols) < 0)
		return -EBADMSG;
	if (s)
		session_size(s, rows, cols);
	return answer(part, 204);
}

static int on_session(struct part *part, const struct head *h, const char *path)
{
	struct server *sv = part->server;
	struct command_session *s;
	struct route to;
	bool is_again;

	if (sv->has_failed)
		return answer(part, 503);
	if (!sv->is_locked || parse_route(path, &to) < 0)
		return -EBADMSG;
	if (str_eq(to.verb, "signal") || str_eq(to.verb, "size"))
		return tell_session(part, &to);
	is_again = head_get(h, "again") != NULL;
	s = session_get(sv, to.id, !is_again);
	if (s == NULL)
		return answer(part, is_again ? 404 : 503);
	if (to.verb[0] != '\0')
		return is_again ? join_stream(part, s, &to) : open_stream(part, s, h, &to);
	if (is_again)
		return join_session(part, s);
	if (s->main || head_get(h, "stdio") == NULL)
		return -EBADMSG;
	part->kind = PART_SESSION;
	part->session = s;
	s->main = part;
	/* Kept in front of the request until it is whole. */
	buf_puts(&part->body, head_get(h, "stdio"));
	buf_putc(&part->body, '\0');
	return 0;
}

/* ---- the rest ---- */

/* To whoever has not told us the plan: that it holds, and how much comes to the gate. */
static int stands(struct part *part)
{
	struct head h = { .status = 200 };

	if (!part->server->is_locked)
		return -EBADMSG;
	part->kind = PART_DONE;
	if (part->server->net.mode)
		head_add(&h, "net", "%s", part->server->net.mode);
	return stream_respond(part->stream, &h, NULL, false);
}

static int on_request(struct part *part, const struct head *h)
{
	const char *path = h->path;

	if (str_eq(path, "/start")) {
		part->kind = PART_START;
		return part->server->is_locked || part->server->has_failed ? -EBADMSG : 0;
	}
	if (str_eq(path, "/freeze") || str_eq(path, "/thaw")) {
		sessions_all(path[1] == 'f' ? SIGSTOP : SIGCONT);
		return answer(part, 204);
	}
	if (str_eq(path, "/again"))
		return stands(part);
	if (str_eq(path, "/park"))
		return park_ask(part);
	if (str_eq(path, "/gate"))
		return net_wait(part);
	if (str_starts(path, "/connect/"))
		return part->server->is_locked ? net_connect(part, path + 9) : -EBADMSG;
	if (str_starts(path, "/file/"))
		return file_ask(part, h, path + 6);
	if (str_eq(path, "/look")) {
		samples_look(part->server);
		return answer(part, 204);
	}
	if (str_starts(path, "/samples/"))
		return samples_ask(part, path + 9);
	if (str_starts(path, "/session/"))
		return on_session(part, h, path + 9);
	return -EBADMSG;
}

static int on_head(void *arg, struct stream *s, const struct head *h, bool is_trailer)
{
	struct server *sv = arg;
	struct part *part;

	if (is_trailer || stream_arg(s) != NULL)
		return -EBADMSG;
	part = mem_new(1, sizeof(*part));
	*part = (struct part){ .server = sv, .stream = s, .body = BUF(GUEST_MAX + 64) };
	stream_set_arg(s, part);
	return on_request(part, h);
}

static int on_data(void *arg, struct stream *s, const void *p, size_t n)
{
	struct part *part = stream_arg(s);
	int r;

	switch (part->kind) {
	case PART_START:
	case PART_SESSION:
		buf_add(&part->body, p, n);
		stream_consumed(s, n);
		return part->body.is_over ? -EMSGSIZE : 0;
	case PART_IN:
		if (sink_put(part->to, p, n) == -EPIPE)
			stream_reset(s); /* the command does not read any more */
		return 0;
	case PART_TTY:
		(void)keys_put(part, p, n); /* a terminal that has gone ends elsewhere */
		return 0;
	case PART_GATE:
		r = sink_put(part->to, p, n);
		if (r == -EPIPE)
			stream_reset(s);
		return r == -EMSGSIZE ? r : 0;
	case PART_QUESTION:
		return net_answer(part, p, n);
	case PART_FILE:
		return file_data(part, p, n);
	case PART_DONE:
		stream_consumed(s, n);
		return 0;
	case PART_OUT:
	case PART_ERR:
	case PART_SAMPLES:
	case PART_WAITS:
	case PART_KIND_COUNT_:
		break;
	}
	return -EBADMSG;
}

static int end_start(struct part *part)
{
	struct server *sv = part->server;
	struct head h = { .status = 200 };
	struct err e = ERR_INIT;

	if (server_lock(sv, &part->body, &e) < 0) {
		sv->has_failed = true;
		h.status = 500;
		head_add(&h, "error", "%s", e.msg);
	} else if (sv->net.mode) {
		head_add(&h, "net", "%s", sv->net.mode);
	}
	part->kind = PART_DONE;
	return stream_respond(part->stream, &h, NULL, false);
}

static int end_session(struct part *part)
{
	_cleanup_(buf_done) struct buf request = BUF(GUEST_MAX + 64);
	size_t n = strnlen(buf_cstr(&part->body), part->body.n) + 1;

	if (part->session == NULL || n > part->body.n)
		return -EBADMSG;
	buf_add(&request, part->body.p + n, part->body.n - n);
	return session_start(part->session, part->body.p, &request);
}

static int on_end(void *arg, struct stream *s)
{
	struct part *part = stream_arg(s);

	if (part == NULL)
		return -EBADMSG;
	if (part->kind == PART_START)
		return end_start(part);
	if (part->kind == PART_SESSION)
		return part->has_end ? 0 : end_session(part);
	if (part->kind == PART_FILE)
		return file_end(part);
	if (part->kind == PART_IN) {
		sink_finish(part->to, NULL, NULL);
		return stream_respond(s, &(struct head){ .status = 204 }, NULL, false);
	}
	part->has_end = true;
	if (part->kind == PART_GATE)
		sink_finish(part->to, NULL, NULL);
	else if (part->kind == PART_QUESTION)
		stream_reset(s); /* no answer will come */
	return 0;
}

static void on_gone(void *arg, struct stream *s)
{
	struct part *part = stream_arg(s);

	if (part == NULL)
		return;
	stream_set_arg(s, NULL);
	if (park_keep(part))
		return;
	port_join(part->from, NULL);
	port_join(part->to, NULL);
	net_part_gone(part);
	file_gone(part);
	session_part_gone(part);
	samples_gone(part);
	sink_abandon(part->to);
	port_free(part->from);
	buf_done(&part->body);
	free(part);
}

int server_proc(struct server *sv)
{
	if (sv->proc < 0)
		sv->proc = openat(AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return sv->proc;
}

void server_check_over(struct server *sv)
{
	/* What carries the link elsewhere, or out of a machine whose last act our end is, may lose what is on the way. There we
	 * stay until it was heard and closed. */
	if (sv->is_over && !sv->walls.is_elsewhere && !sv->is_vm && link_is_flushed(sv->link))
		_exit(0);
}

static void on_down(void *arg, const char *why)
{
	_exit(0); /* no keeper, no sandbox */
}

const struct link_ops server_ops = {
	.on_head = on_head,
	.on_data = on_data,
	.on_end = on_end,
	.on_gone = on_gone,
	.on_down = on_down,
	.on_parted = park_parted,
};
