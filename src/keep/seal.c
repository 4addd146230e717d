/* SPDX-License-Identifier: Apache-2.0 */
/* keep/seal.c - see seal.h
 *
 * Started before the sandbox, because its certificate must be in the bundle when the first program inside reads it.
 * The CA's key never leaves vitrine-seal; if that ends, what was trusted is worthless, so it is not started again:
 * inspected hosts are closed and a note says so. What it sends is foreign.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/json.h"
#include "base/program.h"
#include "base/sabotage.h"
#include "keep/keeper.h"
#include "keep/seal.h"
#include "seal/wire.h"

#define ANSWER_MS 10000

struct seal {
	struct keeper *k;
	int fd;
	pid_t pid;
	struct watch *on;
};

static const char *const bundles[] = { "/etc/ssl/certs/ca-certificates.crt",
				       "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
				       "/etc/ssl/cert.pem" };

static int read_trust(const struct plan_net *n, struct buf *b, struct err *e)
{
	int r = -ENOENT;

	if (n->trust)
		return io_read_file(n->trust, b, e);
	for (size_t i = 0; i < ARRAY_LEN(bundles) && r < 0; i++)
		r = io_read_file(bundles[i], b, e);
	return r < 0 ? err_set(e, ERR_UNSUPPORTED, ENOENT,
			       "inspection: this host has no bundle of trusted certificates "
			       "(ca-certificates)")
		     : 0;
}

static _Noreturn void become(const char *path, int fd)
{
	char *const argv[] = { (char *)(uintptr_t) "vitrine-seal", NULL };
#ifdef VITRINE_SABOTAGE
	static char list[512];
	char *const env[] = { list, NULL };
	sabotage_env(list, sizeof(list));
#else
	char *const env[] = { NULL };
#endif
	int far = fcntl(fd, F_DUPFD_CLOEXEC, 16), null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0 ||
	    dup2(far, SEAL_KEEPER_FD) < 0)
		_exit(125);
	(void)syscall(SYS_close_range, SEAL_KEEPER_FD + 1, ~0U, 0);
	(void)execve(path, argv, env);
	_exit(127);
}

static int spawn(struct seal *s, struct err *e)
{
	_free_ char *path = NULL;
	int pair[2];
	int r = program_find("vitrine-seal", &path, e);

	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "socketpair");
	s->pid = fork();
	if (s->pid == 0)
		become(path, pair[1]);
	fd_close(pair[1]);
	s->fd = pair[0];
	return s->pid < 0 ? err_sys(e, "fork") : 0;
}

static int tell(struct seal *s, const struct buf *trust)
{
	struct keeper_in *in = s->k->in;
	const char *terms = in->plan->net.terms;
	int r = seal_send_all(s->fd, SEAL_TRUST, NULL, trust->p, trust->n);

	if (r >= 0)
		r = seal_send_all(s->fd, SEAL_RULES, NULL, terms, strlen(terms));
	for (size_t i = 0; i < in->n_values && r >= 0; i++)
		r = seal_send_all(s->fd, SEAL_VALUE, in->values[i].name, in->values[i].value->p,
				  in->values[i].value->n);
	for (size_t i = 0; i < in->n_values; i++)
		explicit_bzero(in->values[i].value->p, in->values[i].value->cap);
	return r < 0 ? r : seal_send(s->fd, SEAL_COMMIT, 0, NULL, NULL, 0);
}

/* Its certificate, and that it has taken what it was told. */
static int hear(const struct seal *s, struct buf *ca, struct err *e)
{
	for (;;) {
		struct pollfd p = { .fd = s->fd, .events = POLLIN };
		struct seal_msg m;
		int fds[PACKET_FDS];

		if (poll(&p, 1, ANSWER_MS) <= 0 || seal_recv(s->fd, &m, fds) != 1)
			return err_set(e, ERR_SYSTEM, EPIPE, "vitrine-seal ended, or says nothing");
		if (m.type == SEAL_CA)
			buf_add(ca, m.data, m.n);
		else if (m.type == SEAL_FAILED)
			return err_set(e, ERR_CONFIG, EINVAL, "inspection: %.*s",
				       m.n < 400 ? (int)m.n : 400, m.data);
		else if (m.type == SEAL_READY)
			return ca->is_over ? err_set(e, ERR_BUG, EMSGSIZE, "a CA without end") : 0;
	}
}

/* Readable for whoever the sandbox's user is outside; there is nothing secret in it. */
static int write_bundle(const struct keeper *k, const struct buf *trust, const struct buf *ca,
			struct err *e)
{
	_close_ int fd = openat(k->dir, "ca-bundle.pem",
				O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);

	if (fd < 0 || fchmod(fd, 0644) < 0 || io_write_all(fd, trust->p, trust->n) < 0 ||
	    io_write_all(fd, "\n", 1) < 0 || io_write_all(fd, ca->p, ca->n) < 0)
		return err_sys(e, "the bundle with the sandbox's CA");
	return 0;
}

int seal_start(struct keeper *k, struct err *e)
{
	_cleanup_(buf_done) struct buf trust = BUF(4 * MIB), ca = BUF(64 * KIB);
	struct seal *s;
	int r;

	if (!k->in->plan->net.has_seal)
		return 0;
	s = k->seal = mem_new(1, sizeof(*s));
	*s = (struct seal){ .k = k, .fd = FD_NONE };
	r = read_trust(&k->in->plan->net, &trust, e);
	if (r >= 0)
		r = spawn(s, e);
	if (r < 0)
		return r;
	r = tell(s, &trust);
	if (r < 0)
		return err_set(e, ERR_SYSTEM, -r, "vitrine-seal: %s", strerror(-r));
	r = hear(s, &ca, e);
	if (r >= 0)
		r = write_bundle(k, &trust, &ca, e);
	if (r >= 0)
		(void)fcntl(s->fd, F_SETFL, O_NONBLOCK);
	return r;
}

int seal_connect(struct keeper *k)
{
	struct seal_msg m = { .type = SEAL_FRONT };
	int pair[2];

	if (k->seal == NULL || k->seal->fd < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return FD_NONE;
	if (packet_send(k->seal->fd, &m, sizeof(m), &pair[1], 1) < 0) {
		fd_close(pair[0]);
		pair[0] = FD_NONE;
	}
	fd_close(pair[1]);
	return pair[0];
}

/* ---- what it says, as events like the gate's ---- */

static const char *text_of(const struct json *o, const char *key)
{
	const struct json *v = json_get(o, key);

	return v && v->type == JSON_STRING ? v->text : "";
}

static uint64_t number_of(const struct json *o, const char *key)
{
	const struct json *v = json_get(o, key);
	uint64_t n = 0;

	return v && json_u64(v, &n) ? n : 0;
}

/* Secrets by name, so that it is on record which went where. */
static void say_secrets(const struct json *o, char *to, size_t size)
{
	const struct json *list = json_get(o, "secrets");
	_cleanup_(buf_done) struct buf b = BUF(4 * KIB);

	if (list == NULL || list->type != JSON_ARRAY || to[0])
		return;
	buf_puts(&b, "with secret");
	for (const struct json *v = list->first; v; v = v->next)
		buf_printf(&b, " %s", v->type == JSON_STRING ? v->text : "?");
	gate_say(to, size, "%s", buf_cstr(&b));
}

static void on_event(struct seal *s, const struct seal_msg *m)
{
	_cleanup_(json_done) struct json_doc doc = { 0 };
	struct gate_msg g = { .type = GATE_EVENT, .via = VIA_CONNECT };
	struct err e = ERR_INIT;
	const struct json *o;

	if (json_parse(m->data, m->n, &doc, &e) < 0 || doc.root->type != JSON_OBJECT)
		return; /* not one of ours: not on record, and harmless */
	o = doc.root;
	g.id = (uint32_t)number_of(o, "connection");
	g.port = (uint16_t)number_of(o, "port");
	g.up = number_of(o, "bytes_out");
	g.down = number_of(o, "bytes_in");
	g.ns = number_of(o, "duration_ns");
	g.verdict = str_eq(text_of(o, "verdict"), "deny") ? GATE_REFUSED : GATE_ALLOWED;
	g.event = g.verdict == GATE_ALLOWED ? EVENT_REQUEST : EVENT_ALERT;
	gate_say(g.host, sizeof(g.host), "%s", text_of(o, "host"));
	gate_say(g.method, sizeof(g.method), "%s", text_of(o, "method"));
	gate_say(g.path, sizeof(g.path), "%s", text_of(o, "request"));
	gate_say(g.rule, sizeof(g.rule), "%s", text_of(o, "rule"));
	gate_say(g.text, sizeof(g.text), "%s%s%s%s%s", g.method, g.method[0] ? " " : "", g.path,
		 g.method[0] ? ": " : "", text_of(o, "message"));
	if (g.verdict == GATE_ALLOWED)
		g.text[0] = '\0';
	say_secrets(o, g.text, sizeof(g.text));
	tell_net(s->k, &g);
}

static void on_message(void *arg)
{
	struct seal *s = arg;
	struct seal_msg m;
	int fds[PACKET_FDS];
	int r = seal_recv(s->fd, &m, fds);

	if (r == -EAGAIN)
		return;
	for (int i = 0; i < PACKET_FDS && r == 1; i++)
		fd_close(fds[i]);
	if (r == 1 && m.type == SEAL_EVENT) {
		on_event(s, &m);
		return;
	}
	seal_finish(s->k);
	keeper_note(s->k, "network: vitrine-seal ended; inspected hosts are closed");
}

void seal_watch(struct keeper *k)
{
	if (k->seal && k->seal->fd >= 0)
		k->seal->on = watch_fd(k->loop, k->seal->fd, WATCH_READ, on_message, k->seal);
}

void seal_finish(struct keeper *k)
{
	struct seal *s = k->seal;

	if (s == NULL)
		return;
	watch_free(s->on);
	s->on = NULL;
	fd_close(s->fd);
	s->fd = FD_NONE;
	if (s->pid > 0) {
		(void)kill(s->pid, SIGKILL); /* it has nothing to finish */
		(void)waitpid(s->pid, NULL, 0);
	}
	s->pid = 0;
}
