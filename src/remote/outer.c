/* SPDX-License-Identifier: Apache-2.0 */
/* remote/outer.c - an init for the keeper, made of HTTP/2 requests
 *
 * To the keeper this process is init: it takes and sends the same packets (engine/native/native.h), with the same
 * descriptors. What differs is behind it: every command's stdio is streams of the link, and its terminal is one end of
 * a socket pair. This is the process that decodes what comes from inside, so it confines itself before the first byte,
 * holds no file of the host but the stdio it was handed, and can end its own sandbox and nothing else.
 *
 * An exit status is passed on when all the output before it has been written.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/num.h"
#include "remote/outer_flow.h"

#define KEEPER_WAIT_MS 20000

/* ---- to the keeper ---- */

/* A thousand connections at once are a thousand packets: a keeper that has not come to them yet is not gone. */
void outer_tell(struct outer *o, const struct init_msg *m, const int *fds, size_t n)
{
	struct pollfd room = { .fd = o->ctl, .events = POLLOUT };
	int r = init_send(o->ctl, m, fds, n);

	while (r == -EAGAIN && poll(&room, 1, o->wait_ms) > 0)
		r = init_send(o->ctl, m, fds, n);
	if (r < 0)
		loop_stop(o->loop); /* no keeper, no sandbox */
}

void outer_fail(struct outer *o, const char *what)
{
	struct init_msg m = { .type = INIT_FAILED };

	if (o->has_failed)
		return; /* the first reason is the one that counts */
	o->has_failed = true;
	err_put_(&m.err, ERR_SYSTEM, EPROTO, "%s", what);
	outer_tell(o, &m, NULL, 0);
	loop_stop(o->loop);
}

static struct session *find(struct outer *o, uint32_t id)
{
	for (size_t i = 0; i < INIT_SESSIONS; i++)
		if (o->sessions[i].is_used && o->sessions[i].id == id)
			return &o->sessions[i];
	return NULL;
}

/* ---- streams ---- */

/* What the keeper said of a terminal it said before it passed on what was typed then: the size that whoever reads it asks for.
 * When that has been taken, the stream is woken. */
static bool is_behind_ctl(const struct flow *f)
{
	struct pollfd ctl = { .fd = f->outer->ctl, .events = POLLIN };

	return f->role == ROLE_STDIO && f->which == 3 && f->from && poll(&ctl, 1, 0) > 0 &&
	       ctl.revents == POLLIN;
}

ssize_t outer_pull(void *arg, void *p, size_t n)
{
	struct flow *f = arg;
	size_t left = f->body.n - f->at;

	if ((f->role == ROLE_STDIO && f->outer->is_parking) || is_behind_ctl(f))
		return 0;
	if (f->from)
		return source_pull(f->from, p, n);
	if (left == 0) {
		f->is_sent = true;
		return PULL_END;
	}
	n = n < left ? n : left;
	memcpy(p, f->body.p + f->at, n);
	f->at += n;
	return (ssize_t)n;
}

struct flow *outer_ask(struct outer *o, enum role role, const struct head *h, stream_pull *pull)
{
	struct flow *f = mem_new(1, sizeof(*f));

	*f = (struct flow){ .outer = o, .role = role, .body = BUF(0), .theirs = FD_NONE };
	f->stream = link_request(o->link, h, pull, f);
	if (f->stream == NULL) {
		free(f);
		return NULL;
	}
	return f;
}

static struct flow *ask(struct outer *o, enum role role, const struct head *h,
			struct buf *take_body, struct port *take_from)
{
	struct flow *f = mem_new(1, sizeof(*f));
	bool has_body = take_body || take_from;

	*f = (struct flow){
		.outer = o, .role = role, .from = take_from, .body = BUF(0), .theirs = FD_NONE
	};
	if (take_body) {
		f->body = *take_body;
		*take_body = BUF(0);
	}
	f->stream = link_request(o->link, h, has_body ? outer_pull : NULL, f);
	if (f->stream == NULL) {
		port_free(f->from);
		buf_done(&f->body);
		free(f);
		return NULL;
	}
	port_join(f->from, f->stream);
	return f;
}

struct head outer_request(const char *method, const char *fmt, ...)
{
	struct head h = { 0 };
	va_list ap;

	(void)snprintf(h.method, sizeof(h.method), "%s", method);
	va_start(ap, fmt);
	(void)vsnprintf(h.path, sizeof(h.path), fmt, ap); /* numbers only: it fits */
	va_end(ap);
	return h;
}

void outer_ask_short(struct outer *o, enum role role, const struct head *h)
{
	if (ask(o, role, h, NULL, NULL) == NULL && !o->is_down)
		outer_fail(o, "too many requests at once");
}

/* ---- the end of a session ---- */

static bool is_quiet(const struct session *s)
{
	for (int i = 1; i < 4; i++)
		if (s->stdio[i])
			return false;
	for (int i = 0; i < 3; i++)
		if (s->tail[i] && !sink_is_done(s->tail[i]))
			return false;
	return true;
}

static void free_flow(struct flow *f)
{
	port_free(f->from);
	sink_abandon(f->to);
	buf_done(&f->body);
	free(f);
}

static void close_session(struct session *s)
{
	for (int i = 0; i < 4; i++)
		if (s->stdio[i]) {
			s->stdio[i]->session = NULL;
			if (s->stdio[i]->stream)
				stream_reset(s->stdio[i]->stream);
			else /* there is no link now */
				free_flow(s->stdio[i]);
		}
	for (int i = 0; i < 3; i++)
		port_free(s->tail[i]);
	if (s->main)
		s->main->session = NULL;
	*s = (struct session){ 0 };
}

static void try_end(void *arg)
{
	struct session *s = arg;
	struct outer *o = s->outer;
	struct init_msg m = { .type = INIT_EXITED,
			      .session = s->id,
			      .a = s->status,
			      .cpu_ns = s->cpu_ns,
			      .max_rss = s->rss,
			      .written = s->written };

	if (!s->is_used || s->has_told || !s->has_exit || !is_quiet(s))
		return;
	s->has_told = true;
	outer_tell(o, &m, NULL, 0);
	if (s->id == 0 && !o->is_named)
		loop_stop(o->loop); /* closing the link is what ends init, whatever it thinks */
	else
		close_session(s);
}

/* ---- the keeper's messages ---- */

int outer_pass(struct flow *f, const void *p, size_t n)
{
	int r;

	if (!f->is_joined)
		return -EBADMSG;
	if (f->to == NULL) { /* being reset */
		stream_consumed(f->stream, n);
		return 0;
	}
	r = sink_put(f->to, p, n);
	if (r == -EPIPE)
		stream_reset(f->stream);
	return r == -EMSGSIZE ? r : 0;
}

int outer_read(int fd, struct buf *b)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size < 0 || (uint64_t)st.st_size > b->max)
		return -EBADMSG;
	for (off_t at = 0; at < st.st_size;) {
		char chunk[16 * 1024];
		ssize_t n = pread(fd, chunk, sizeof(chunk), at);

		if (n <= 0)
			return -EBADMSG;
		buf_add(b, chunk, (size_t)n);
		at += n;
	}
	return 0;
}

static void on_plan(struct outer *o, const struct init_msg *m, int fds[PACKET_FDS])
{
	_cleanup_(buf_done) struct buf guest = BUF(4 * MIB);
	struct head h = outer_request("POST", "/start");
	struct flow *f;

	if (outer_read(fds[0], &guest) < 0) {
		outer_fail(o, "the plan cannot be read");
		return;
	}
	o->is_named = m->flags != 0;
	o->is_idle = m->b != 0;
	o->sample_ms = m->a > 0 ? (unsigned)m->a : 0;
	f = ask(o, ROLE_START, &h, &guest, NULL);
	/* Nothing else before the lock holds, but for the first command, which may lie behind the plan when all of that is
	 * out: init takes neither sooner nor otherwise, and need not be asked again. */
	if (o->is_idle || f == NULL || !f->is_sent)
		watch_set(o->on_ctl, false);
}

static bool is_same(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

static bool is_pipe(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

static bool open_tty(struct session *s, const struct init_msg *m, int *ret_theirs)
{
	struct head h = outer_request("POST", "/session/%u/tty", s->id);
	struct flow *f;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return false;
	head_add(&h, "size", "%ux%u", m->rows, m->cols);
	if (s->is_again)
		head_add(&h, "again", "1");
	f = ask(s->outer, ROLE_STDIO, &h, NULL, source_new(s->outer->loop, pair[0]));
	if (f == NULL) {
		fd_close(pair[1]);
		return false;
	}
	f->to = sink_new(s->outer->loop, fcntl(pair[0], F_DUPFD_CLOEXEC, 3));
	port_join(f->to, f->stream);
	f->which = 3;
	f->session = s;
	s->stdio[3] = f;
	*ret_theirs = pair[1];
	return true;
}

static bool open_stdio(struct session *s, int i, int take_fd)
{
	struct outer *o = s->outer;
	struct head h = outer_request(i == 0 ? "POST" : "GET", "/session/%u/%d", s->id, i);
	struct flow *f;

	if (s->is_again)
		head_add(&h, "again", "1");
	f = ask(o, ROLE_STDIO, &h, NULL, i == 0 ? source_new(o->loop, take_fd) : NULL);
	if (f == NULL) {
		if (i > 0)
			fd_close(take_fd);
		return false;
	}
	if (i > 0)
		f->to = sink_new(o->loop, take_fd);
	port_join(f->to, f->stream);
	f->which = i;
	f->session = s;
	s->stdio[i] = f;
	return true;
}

void outer_refuse(struct outer *o, uint32_t id, int error)
{
	struct init_msg m = { .type = INIT_NOT_STARTED, .session = id, .a = error };

	outer_tell(o, &m, NULL, 0);
}

/* Descriptors behind the request are those of stdio that are not the terminal, in order. */
static bool open_all(struct session *s, const struct init_msg *m, int fds[PACKET_FDS],
		     char stdio[4], int *tty)
{
	int fd[3], at = 1;

	for (int i = 0; i < 3; i++)
		fd[i] = m->flags & BIT(i) ? FD_NONE : fds[at++];
	if (m->flags & 7 && !open_tty(s, m, tty))
		return false;
	for (int i = 0; i < 3; i++) {
		if (m->flags & BIT(i)) {
			stdio[i] = 't';
		} else if (i == 2 && stdio[1] == 'p' && fd[2] >= 0 && is_same(fd[1], fd[2])) {
			stdio[i] = 's';
		} else if (fd[i] >= 0 && is_pipe(fd[i])) {
			stdio[i] = 'p';
			if (!open_stdio(s, i, fcntl(fd[i], F_DUPFD_CLOEXEC, 3)))
				return false;
		} else {
			stdio[i] = 'n';
		}
	}
	return true;
}

static void on_start(struct outer *o, const struct init_msg *m, int fds[PACKET_FDS])
{
	_cleanup_(buf_done) struct buf body = BUF(REQUEST_MAX + 64);
	struct session *s = find(o, m->session);
	struct head h = outer_request("POST", "/session/%u", m->session);
	char stdio[4] = "";
	int tty = FD_NONE;
	bool is_again = m->type == INIT_ADOPT;

	for (size_t i = 0; s == NULL && i < INIT_SESSIONS; i++)
		if (!o->sessions[i].is_used)
			s = &o->sessions[i];
	if (!o->is_started)
		watch_set(o->on_ctl, false);
	if (s == NULL || s->is_used || (!is_again && outer_read(fds[0], &body) < 0)) {
		outer_refuse(o, m->session, s ? EBADMSG : EAGAIN);
		return;
	}
	*s = (struct session){
		.outer = o, .is_used = true, .id = m->session, .is_again = is_again
	};
	if (!open_all(s, m, fds, stdio, &tty)) {
		outer_refuse(o, m->session, EAGAIN);
		close_session(s);
		return;
	}
	head_add(&h, is_again ? "again" : "stdio", "%s", is_again ? "1" : stdio);
	s->main = ask(o, ROLE_MAIN, &h, is_again ? NULL : &body, NULL);
	if (s->main == NULL) {
		fd_close(tty);
		outer_refuse(o, m->session, EAGAIN);
		close_session(s);
		return;
	}
	s->main->session = s;
	s->main->which = tty; /* handed out when it runs */
}

/* Their /proc is behind other walls; what it says comes as samples. */
void outer_ask_samples(struct outer *o, unsigned ms)
{
	struct head h = outer_request("GET", "/samples/%u", ms);

	o->has_samples = true;
	o->asked_ms = ms;
	outer_ask_short(o, ROLE_SAMPLES, &h);
}

void outer_message(struct outer *o, const struct init_msg *m, int fds[PACKET_FDS])
{
	struct head h;

	if (o->link == NULL && m->type != INIT_AGAIN && m->type != INIT_GATE &&
	    m->type != INIT_EAR) {
		park_message(o, m);
		return;
	}
	switch (m->type) {
	case INIT_PARK:
		park_begin(o);
		break;
	case INIT_AGAIN:
		park_again(o, m);
		break;
	case INIT_GUEST:
		on_plan(o, m, fds);
		break;
	case INIT_WANT_PROC:
		h = outer_request("POST", "/look");
		if (o->has_samples)
			outer_ask_short(o, ROLE_NONE, &h);
		else
			outer_ask_samples(o, 1000);
		break;
	case INIT_FILE:
		file_ask(o, m, fds[0]);
		break;
	case INIT_GATE:
		gate_open(o, take_fd(fds[0]));
		break;
	case INIT_EAR:
		gate_ear(o, take_fd(fds[0]));
		break;
	case INIT_START:
	case INIT_ADOPT:
		on_start(o, m, fds);
		break;
	case INIT_SIGNAL:
		h = outer_request("POST", "/session/%u/signal/%d", m->session, m->a);
		outer_ask_short(o, ROLE_NONE, &h);
		break;
	case INIT_RESIZE:
		h = outer_request("POST", "/session/%u/size/%ux%u", m->session, m->rows, m->cols);
		outer_ask_short(o, ROLE_NONE, &h);
		break;
	case INIT_FREEZE:
		h = outer_request("POST", "/freeze");
		outer_ask_short(o, ROLE_FREEZE, &h);
		break;
	case INIT_THAW:
		h = outer_request("POST", "/thaw");
		outer_ask_short(o, ROLE_NONE, &h);
		break;
	default:
		break; /* INIT_GO: what it waits for has been done before we were started */
	}
}

static void wake_terminals(struct outer *o)
{
	for (size_t i = 0; i < INIT_SESSIONS; i++) {
		struct flow *f = o->sessions[i].is_used ? o->sessions[i].stdio[3] : NULL;

		if (f && f->stream)
			stream_wake(f->stream);
	}
}

static void on_ctl(void *arg)
{
	struct outer *o = arg;
	int fds[PACKET_FDS];
	struct init_msg m;
	int r = init_recv(o->ctl, &m, fds);

	if (r == 1) {
		outer_message(o, &m, fds);
		wake_terminals(o);
	} else if (r != -EAGAIN)
		loop_stop(o->loop);
	for (int i = 0; i < PACKET_FDS; i++)
		fd_close(fds[i]);
}

/* ---- init's answers: foreign ---- */

/* How much of what is tried inside comes to the gate. */
static void tell_net(struct outer *o, const char *mode)
{
	struct init_msg m = { .type = INIT_NET,
			      .b = str_eq(mode, "redirect") ? NET_REDIRECT
				   : str_eq(mode, "ports")  ? NET_PORTS
							    : NET_PROXY };

	outer_tell(o, &m, NULL, 0);
}

static int start_answer(struct outer *o, const struct head *h)
{
	struct init_msg ready = { .type = INIT_READY };
	const char *error = head_get(h, "error"), *net = head_get(h, "net");
	_cleanup_(buf_done) struct buf text = BUF(4 * KIB);
	if (h->status != 200) {
		buf_puts(&text, error ? error : "init refused the plan");
		outer_fail(o, buf_cstr(&text));
		return 0;
	}
	o->is_started = true;
	watch_set(o->on_ctl, true);
	if (net)
		tell_net(o, net);
	if (o->sample_ms)
		outer_ask_samples(o, o->sample_ms);
	if (o->is_idle)
		outer_tell(o, &ready, NULL, 0);
	return 0;
}

static int main_answer(struct session *s, struct flow *f, const struct head *h)
{
	struct init_msg m = { .type = INIT_STARTED, .session = s->id };
	uint64_t n;
	int tty = f->which;

	/* It is the same as ever, or has ended and said so just before. */
	if (s->has_started && s->is_again &&
	    (h->status == 200 || (h->status == 404 && s->has_exit)))
		return 0;
	if (s->has_started || !s->outer->is_started)
		return -EBADMSG;
	s->has_started = true;
	f->which = FD_NONE;
	if (h->status == 200) {
		if (head_number(h, "pid", INT32_MAX, &n) < 0)
			return -EBADMSG;
		m.a = (int32_t)n;
		outer_tell(s->outer, &m, &tty, tty >= 0 ? 1 : 0);
		fd_close(tty);
		return 0;
	}
	fd_close(tty);
	if (s->is_again && h->status == 404) {
		outer_refuse(s->outer, s->id, ESRCH);
		close_session(s);
		return 0;
	}
	if (h->status != 422 || head_number(h, "errno", 4095, &n) < 0)
		return -EBADMSG;
	m.type = INIT_NOT_STARTED;
	m.a = (int32_t)n;
	m.b = head_get(h, "step") && str_eq(head_get(h, "step"), "chdir");
	outer_tell(s->outer, &m, NULL, 0);
	if (s->id == 0 && !s->outer->is_named)
		loop_stop(s->outer->loop);
	close_session(s);
	return 0;
}

static int main_trailer(struct session *s, const struct head *h)
{
	uint64_t n;

	if (!s->has_started || s->has_exit || head_number(h, "exit", 0xffff, &n) < 0 ||
	    head_number(h, "cpu", UINT64_MAX, &s->cpu_ns) < 0 ||
	    head_number(h, "rss", UINT64_MAX, &s->rss) < 0 ||
	    head_number(h, "written", UINT64_MAX, &s->written) < 0)
		return -EBADMSG;
	s->status = (int)n;
	s->has_exit = true;
	try_end(s);
	return 0;
}

static int on_head(void *arg, struct stream *st, const struct head *h, bool is_trailer)
{
	struct flow *f = stream_arg(st);
	struct init_msg frozen = { .type = INIT_FROZEN };

	if (f == NULL || (is_trailer && f->role != ROLE_MAIN && f->role != ROLE_FILE))
		return -EBADMSG;
	switch (f->role) {
	case ROLE_START:
		return f->outer->is_started ? -EBADMSG : start_answer(f->outer, h);
	case ROLE_MAIN:
		if (f->session == NULL)
			return 0;
		return is_trailer ? main_trailer(f->session, h) : main_answer(f->session, f, h);
	case ROLE_FREEZE:
		outer_tell(f->outer, &frozen, NULL, 0);
		return 0;
	case ROLE_GATE:
		return gate_head(f, h);
	case ROLE_FILE:
		return file_head(f, h, is_trailer);
	case ROLE_PARK:
		park_answer(f->outer, h);
		return 0;
	case ROLE_STDIO:
	case ROLE_SAMPLES:
	case ROLE_NONE:
	case ROLE_COUNT_:
		break;
	}
	return 0;
}

/* To the keeper: the name and then the arguments of a process stand where an error would. */
static int tell_sample(struct outer *o, const struct link_sample *one)
{
	struct init_msg m = { .type = INIT_SAMPLE,
			      .flags = one->kind,
			      .session = one->session,
			      .max_rss = one->memory,
			      .cpu_ns = one->cpu_ns,
			      .a = (int32_t)(one->pids & INT32_MAX) };

	if (one->kind < SAMPLE_ALL || one->kind > SAMPLE_PROCESS)
		return -EBADMSG;
	if (one->kind == SAMPLE_PROCESS) {
		if (one->n_words > sizeof(one->words) || one->pid > INT32_MAX ||
		    one->ppid > INT32_MAX)
			return -EBADMSG;
		m.a = (int32_t)one->pid;
		m.b = (int32_t)one->ppid;
		m.rows = (uint16_t)one->n_words;
		memcpy(m.err.msg, one->name, sizeof(one->name));
		memcpy(m.err.msg + sizeof(one->name), one->words, one->n_words);
	}
	outer_tell(o, &m, NULL, 0);
	return 0;
}

static int take_samples(struct outer *o, const char *p, size_t n)
{
	int r = 0;

	while (r == 0 && n > 0) {
		size_t want = sizeof(o->sample) - o->sample_n;

		want = want < n ? want : n;
		memcpy((char *)&o->sample + o->sample_n, p, want);
		o->sample_n += want;
		p += want;
		n -= want;
		if (o->sample_n < sizeof(o->sample))
			break;
		o->sample_n = 0;
		r = tell_sample(o, &o->sample);
	}
	return r;
}

static int on_data(void *arg, struct stream *st, const void *p, size_t n)
{
	struct flow *f = stream_arg(st);
	int r;

	if (f == NULL)
		return -EBADMSG;
	if (f->role == ROLE_SAMPLES) {
		stream_consumed(st, n);
		return take_samples(f->outer, p, n);
	}
	if (f->role == ROLE_GATE)
		return outer_pass(f, p, n);
	if (f->role == ROLE_FILE)
		return file_data(f, p, n);
	if (f->role != ROLE_STDIO || f->to == NULL)
		return -EBADMSG;
	if (!f->is_wide)
		stream_widen(st, WIDE_STDIO); /* now that it is used: many never say a word */
	f->is_wide = true;
	r = sink_put(f->to, p, n);
	if (r == -EPIPE && f->which != 3)
		stream_reset(st); /* nobody reads: the command shall know */
	return r == -EMSGSIZE ? r : 0;
}

static int on_end(void *arg, struct stream *st)
{
	struct flow *f = stream_arg(st);

	/* The terminal is closed; whoever still types does it in vain. */
	if (f && f->role == ROLE_STDIO && f->which == 3)
		stream_reset(st);
	else if (f && f->role == ROLE_GATE)
		gate_end(f);
	else if (f && f->role == ROLE_FILE)
		file_end(f);
	return 0;
}

/* The stream is over; what it brought may still be on its way to a slow reader. */
static void stdio_gone(struct flow *f)
{
	struct session *s = f->session;

	port_join(f->from, NULL);
	port_join(f->to, NULL);
	port_free(f->from);
	if (s == NULL) {
		sink_abandon(f->to);
		return;
	}
	s->stdio[f->which] = NULL;
	if (f->to) {
		struct port **tail = &s->tail[f->which == 3 ? 0 : f->which];

		*tail = f->to;
		sink_finish(f->to, try_end, s);
	}
	try_end(s);
}

static void on_gone(void *arg, struct stream *st)
{
	struct flow *f = stream_arg(st);
	struct session *s;

	if (f == NULL)
		return;
	s = f->session;
	stream_set_arg(st, NULL);
	if (park_keep(f))
		return;
	if (f->role == ROLE_STDIO) {
		stdio_gone(f);
	} else if (f->role == ROLE_GATE) {
		gate_gone(f);
	} else if (f->role == ROLE_FILE) {
		file_gone(f);
	} else if (f->role == ROLE_MAIN) {
		fd_close(f->which);
		if (s)
			s->main = NULL;
		if (s && !s->has_exit)
			outer_fail(f->outer, "init dropped a command");
	} else if (f->role == ROLE_START && !f->outer->is_started && !f->outer->is_down) {
		outer_fail(f->outer, "init did not take the plan");
	}
	buf_done(&f->body);
	free(f);
}

static bool has_tails(const struct outer *o)
{
	for (size_t i = 0; i < INIT_SESSIONS; i++)
		if (o->sessions[i].is_used && o->sessions[i].has_exit && !o->sessions[i].has_told)
			return true;
	return false;
}

static void on_down(void *arg, const char *why)
{
	struct outer *o = arg;
	_cleanup_(buf_done) struct buf text = BUF(KIB);

	o->is_down = true;
	if (has_tails(o))
		return; /* what was said before still goes out; then we end */
	buf_printf(&text, "the link to init broke: %s", why);
	if (!o->sessions[0].is_used || !o->sessions[0].has_told)
		outer_fail(o, buf_cstr(&text));
	loop_stop(o->loop);
}

const struct link_ops outer_ops = {
	.on_head = on_head,
	.on_data = on_data,
	.on_end = on_end,
	.on_gone = on_gone,
	.on_down = on_down,
	.on_parted = park_parted,
};

/* ---- life ---- */

struct outer *outer_new(struct loop *l, int ctl, int in, int out, size_t files)
{
	struct outer *o = mem_new(1, sizeof(*o));

	o->loop = l;
	o->ctl = ctl;
	o->gate.fd = o->gate.ear = FD_NONE;
	o->gate.most = gate_most(files);
	o->on_ctl = watch_fd(l, ctl, WATCH_READ, on_ctl, o);
	o->link = link_new(LINK_OUTER, l, in, out, &outer_ops, o);
	return o;
}

int outer_feed(struct outer *o, const void *p, size_t n)
{
	return link_feed(o->link, p, n);
}

void outer_free(struct outer *o)
{
	o->has_failed = o->is_down = true; /* nothing more is said to the keeper */
	for (size_t i = 0; i < INIT_SESSIONS; i++)
		if (o->sessions[i].is_used)
			close_session(&o->sessions[i]);
	link_free(o->link);
	free(o->later);
	gate_open(o, FD_NONE);
	fd_close(o->gate.ear);
	watch_free(o->on_ctl);
	free(o);
}

int outer_run(int ctl, int in, int out, size_t files)
{
	struct loop *l = loop_new();
	struct outer *o = outer_new(l, ctl, in, out, files);

	o->wait_ms = KEEPER_WAIT_MS;
	loop_run(l); /* the process ends here */
	return 0;
}
