/* SPDX-License-Identifier: Apache-2.0 */
/* keep/seal.c - see seal.h
 *
 * seal takes longer to start than a sandbox and most commands never need it, so it sleeps until it is needed. The file
 * that is the bundle inside exists from the beginning, empty, and the keeper has a lease on it: whoever opens it waits
 * in open(), the keeper hears of it, and goes on when the bundle is complete. The first connection to an inspected host
 * wakes it too, and waits in the socket that front already has. Where there are no leases the start waits instead.
 *
 * What seal must know it is told by a child of the keeper (the teller), which reads the secrets where they are and may
 * take its time. The CA's key never leaves vitrine-seal: if that ends, inspected hosts are closed; it is started once
 * more, with a key of its own, which programs that run already do not know. What it sends is foreign.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/json.h"
#include "base/program.h"
#include "keep/bundle.h"
#include "keep/capture.h"
#include "keep/keeper.h"
#include "keep/seal.h"
#include "policy/inspect.h"
#include "policy/pathrule.h"
#include "policy/rules.h"
#include "policy/table.h"
#include "seal/wire.h"
#include "secret/secret.h"

#define ANSWER_MS 10000
#define LOOK_NS NS_PER_SEC        /* at files that values come from */
#define LAST_NS (300 * NS_PER_MS) /* for what it still has to say when nothing inside lives */

enum seal_state {
	SEAL_SLEEPS, /* nobody has needed it */
	SEAL_BEGINS, /* has not sent its certificate */
	SEAL_TOLD,   /* the teller is at work */
	SEAL_SERVES,
	SEAL_CLOSED,
};

/* Where a value can be read anew. */
struct source {
	char *path;          /* a file... */
	uint64_t mark;       /* ...as it was */
	uint64_t every, due; /* of a command's output */
};

struct seal {
	struct keeper *k;
	int fd;
	pid_t pid;
	struct watch *on, *on_way;
	enum seal_state state;
	unsigned n_starts;
	struct bundle bundle;
	int way;       /* front's, held back until the terms are in force */
	struct buf ca; /* as far as it has come */
	pid_t teller;
	int telling; /* ends with the teller */
	struct watch *on_teller;
	bool is_due[SECRETS_MAX]; /* to be read anew */
	char **added[2];          /* rules since the start: allow, deny */
	size_t n_added[2];
	char *due_host; /* inspected as soon as the rule for it is in force */
	bool is_due_reached;
	struct source *sources; /* of each value; NULL: not looked at yet */
	struct watch *on_refresh;
	struct capture *capture;
};

_Static_assert(SEAL_KEEPER_FD == 3, "as program_become() places it");

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
		program_become(path, "vitrine-seal", NULL, &pair[1], 1);
	fd_close(pair[1]);
	s->fd = pair[0];
	s->state = SEAL_BEGINS;
	s->n_starts++;
	return s->pid < 0 ? err_sys(e, "fork") : 0;
}

/* ---- the teller ---- */

static void wipe_values(const struct keeper_in *in)
{
	for (size_t i = 0; i < in->n_values; i++)
		explicit_bzero(in->values[i].value->p, in->values[i].value->cap);
}

/* A service's variable in the caller's environment, where nobody has described a secret for it (core/secrets.c). */
static const char *variable_of(const char *name)
{
	const struct secret_service *known = secret_service_find(name);

	for (size_t i = 0; known && i < ARRAY_LEN(known->env) && known->env[i]; i++) {
		const char *value = getenv(known->env[i]);

		if (value && value[0])
			return value;
	}
	return NULL;
}

static int tell_value(int fd, const char *state_dir, const char *name, struct err *e)
{
	_cleanup_(secret_done) struct secret v = { 0 };
	_cleanup_(secret_wipe) struct buf value = secret_buf();
	int r = secret_load(state_dir, name, &v, e);

	if (r >= 0) {
		r = secret_value(state_dir, &v, &value, e);
	} else if (r == -ENOENT && variable_of(name)) {
		*e = ERR_INIT;
		buf_puts(&value, variable_of(name));
		r = 0;
	}
	return r < 0 ? r : seal_send_all(fd, SEAL_VALUE, name, value.p, value.n);
}

/* The plan's terms begin with both lists, of strings alone (plan/net.c): what was added goes in front. */
static void put_terms(const struct seal *s, struct buf *out)
{
	static const char *const keys[2] = { "\"allow\":[", "\"deny\":[" };
	const char *at = s->k->in->plan->net.terms;

	for (int k = 0; k < 2; k++) {
		const char *list = strstr(at, keys[k]);

		bug_on(list == NULL);
		list += strlen(keys[k]);
		buf_add(out, at, (size_t)(list - at));
		for (size_t i = 0; i < s->n_added[k]; i++) {
			buf_json(out, s->added[k][i]);
			if (i + 1 < s->n_added[k] || *list != ']')
				buf_putc(out, ',');
		}
		at = list;
	}
	buf_puts(out, at);
}

/* The values that came with the keeper's birth are as good as those that lie on the host, and there already. */
static int tell_all(struct seal *s, struct err *e)
{
	_cleanup_(buf_done) struct buf trust = BUF(4 * MIB), terms = BUF(MIB);
	struct keeper_in *in = s->k->in;
	int r = bundle_trust(&in->plan->net, &trust, e);

	if (r >= 0)
		r = seal_send_all(s->fd, SEAL_TRUST, NULL, trust.p, trust.n);
	put_terms(s, &terms);
	if (r >= 0)
		r = seal_send_all(s->fd, SEAL_RULES, NULL, buf_cstr(&terms), terms.n);
	for (size_t i = 0; i < in->n_values && r >= 0; i++) {
		const struct keep_secret *v = &in->values[i];

		r = s->n_starts > 1
			    ? tell_value(s->fd, in->plan->state_dir, v->name, e)
			    : seal_send_all(s->fd, SEAL_VALUE, v->name, v->value->p, v->value->n);
	}
	return r < 0 ? r : seal_send(s->fd, SEAL_COMMIT, 0, NULL, NULL, 0);
}

/* Those that are due; what cannot be read stays as it was, and is tried again when it is due the next time. */
static int tell_due(struct seal *s, struct err *e)
{
	struct keeper_in *in = s->k->in;

	for (size_t i = 0; i < in->n_values; i++)
		if (s->is_due[i] &&
		    tell_value(s->fd, in->plan->state_dir, in->values[i].name, e) >= 0)
			(void)seal_send(s->fd, SEAL_REFRESH, 0, in->values[i].name, NULL, 0);
	return e->kind == ERR_NONE ? 0 : -EIO;
}

static void on_told(void *arg);

static void forget_teller(struct seal *s)
{
	watch_free(s->on_teller);
	s->on_teller = NULL;
	fd_close(s->telling);
	s->telling = FD_NONE;
	if (s->teller > 0) {
		(void)kill(s->teller, SIGKILL);
		(void)waitpid(s->teller, NULL, 0);
	}
	s->teller = 0;
}

/* One at a time: what two say would be mixed. Says why it failed through the pipe. */
static void tell(struct seal *s, int (*what)(struct seal *s, struct err *e))
{
	struct err e = ERR_INIT;
	int end[2];

	if (pipe2(end, O_CLOEXEC) < 0)
		return;
	s->teller = fork();
	if (s->teller == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		(void)signal(SIGPIPE, SIG_IGN);
		if (s->k->in->env)
			environ = s->k->in->env; /* a command's or a variable's */
		if (what(s, &e) < 0)
			(void)io_write_all(end[1], e.msg, strlen(e.msg));
		_exit(0);
	}
	fd_close(end[1]);
	s->telling = end[0];
	s->on_teller = watch_fd(s->k->loop, s->telling, WATCH_READ, on_told, s);
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

static void seal_event(struct seal *s, const struct seal_msg *m)
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
	g.code = (uint32_t)number_of(o, "code");
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
	if (text_of(o, "login")[0])
		gate_say(g.text, sizeof(g.text), "the tokens of %s were taken out of the answer",
			 text_of(o, "login"));
	(void)tell_net(s->k, &g); /* what it tells of is done, or refused anyhow */
}

/* ---- values that change while it runs ---- */

/* Whether a file is another one, or has other content, than when it was last looked at. */
static bool has_changed(struct source *f)
{
	struct stat st;
	uint64_t mark;

	if (stat(f->path, &st) < 0)
		return false; /* being replaced: the next look sees it */
	mark = (uint64_t)st.st_ino * 31 + (uint64_t)st.st_mtim.tv_sec * NS_PER_SEC +
	       (uint64_t)st.st_mtim.tv_nsec + (uint64_t)st.st_size;
	if (mark == f->mark)
		return false;
	f->mark = mark;
	return true;
}

static void on_refresh(void *arg)
{
	struct seal *s = arg;
	uint64_t now = clock_now();
	bool is_any = false;

	if (s->teller > 0 || s->state != SEAL_SERVES)
		return;
	for (size_t i = 0; i < s->k->in->n_values; i++) {
		struct source *f = &s->sources[i];

		s->is_due[i] = f->path ? has_changed(f) : f->every > 0 && now >= f->due;
		if (s->is_due[i])
			f->due = now + f->every;
		is_any |= s->is_due[i];
	}
	if (is_any)
		tell(s, tell_due);
}

/* A command's output is good for its cache time, a file until it changes. */
static void refresh_begin(struct seal *s)
{
	static char *none[] = { NULL };
	const struct keeper_in *in = s->k->in;
	uint64_t every = UINT64_MAX;

	if (in->n_values == 0 || s->sources)
		return;
	s->sources = mem_new(in->n_values, sizeof(*s->sources));
	environ = in->env ? in->env : environ; /* a login lies below the caller's home */
	for (size_t i = 0; i < in->n_values; i++) {
		_cleanup_(secret_done) struct secret v = { 0 };
		struct source *f = &s->sources[i];
		struct err e = ERR_INIT;

		if (secret_load(in->plan->state_dir, in->values[i].name, &v, &e) < 0)
			continue;
		f->every = v.source == SECRET_COMMAND ? v.cache : 0;
		f->due = clock_now() + f->every;
		f->path = v.source == SECRET_FILE || v.source == SECRET_LOGIN ? take(v.from) : NULL;
		if (f->path)
			(void)has_changed(f);
		if (f->path && every > LOOK_NS)
			every = LOOK_NS;
		else if (f->every && every > f->every)
			every = f->every;
	}
	environ = none;
	if (every < NS_PER_SEC / 10)
		every = NS_PER_SEC / 10;
	if (every != UINT64_MAX)
		s->on_refresh = watch_timer(s->k->loop, every, true, on_refresh, s);
}

/* ---- a life ---- */

static void serve(struct seal *s)
{
	struct seal_msg m = { .type = SEAL_FRONT };

	bundle_end(&s->bundle, s->k, (struct str){ .p = s->ca.p, .n = s->ca.n });
	s->state = SEAL_SERVES;
	(void)fcntl(s->fd, F_SETFL, O_NONBLOCK); /* a seal that does not read is not waited for */
	if (s->way >= 0)
		(void)packet_send(s->fd, &m, sizeof(m), &s->way, 1);
	fd_close(s->way);
	s->way = FD_NONE;
	refresh_begin(s);
}

static void stop(struct seal *s)
{
	wipe_values(s->k->in);
	forget_teller(s);
	watch_free(s->on);
	watch_free(s->on_way);
	s->on = s->on_way = NULL;
	fd_close(s->fd);
	s->fd = FD_NONE;
	fd_close(s->way);
	s->way = FD_NONE;
	if (s->pid > 0) {
		(void)kill(s->pid, SIGKILL); /* it has nothing to finish */
		(void)waitpid(s->pid, NULL, 0);
	}
	s->pid = 0;
}

/* Inspected hosts are closed from here on; the bundle is the host's own. */
static void close_seal(struct seal *s, const char *why)
{
	_free_ char *line = mem_fmt("network: %.300s; inspected hosts are closed", why);

	stop(s);
	bundle_end(&s->bundle, s->k, STR(""));
	s->state = SEAL_CLOSED;
	keeper_note(s->k, line);
}

static void on_told(void *arg)
{
	struct seal *s = arg;
	char why[400];
	ssize_t n = io_read(s->telling, why, sizeof(why) - 1);

	forget_teller(s);
	memset(s->is_due, 0, sizeof(s->is_due));
	why[n > 0 ? n : 0] = '\0';
	if (n > 0 && s->state == SEAL_TOLD) {
		close_seal(s, why);
	} else if (n > 0) {
		_free_ char *line = mem_fmt("network: a secret could not be read anew: %s", why);

		keeper_note(s->k, line);
	}
}

static void on_message(void *arg);
static void inspect_due(struct seal *s);

static void wake(struct seal *s)
{
	struct err e = ERR_INIT;

	if (s->state != SEAL_SLEEPS)
		return;
	watch_free(s->on_way);
	s->on_way = NULL;
	if (spawn(s, &e) < 0)
		close_seal(s, e.msg);
	else
		s->on = watch_fd(s->k->loop, s->fd, WATCH_READ, on_message, s);
}

/* Somebody inside waits for the bundle. */
static void on_opened(void *arg)
{
	wake(arg);
}

/* Front has handed a connection over. */
static void on_way(void *arg)
{
	wake(arg);
}

static void lost(struct seal *s)
{
	bool is_first = s->n_starts < 2 && s->state == SEAL_SERVES;
	struct err e = ERR_INIT;

	if (!is_first) {
		close_seal(s, "vitrine-seal ended");
		return;
	}
	stop(s);
	tell_gate(s->k, "seal_lost");
	s->ca.n = 0;
	if (bundle_begin(&s->bundle, s->k, on_opened, s, &e) < 0) {
		close_seal(s, e.msg);
		return;
	}
	s->state = SEAL_SLEEPS;
	if (!s->bundle
		     .is_leased) /* it is open in some program: nobody can be made to wait for it */
		wake(s);
	gate_new_seal(s->k);
	keeper_note(s->k, "network: vitrine-seal ended and was started again; programs that run "
			  "already do not trust its new certificate");
}

static void hear(struct seal *s, const struct seal_msg *m)
{
	char why[400];

	switch (m->type) {
	case SEAL_CA:
		buf_add(&s->ca, m->data, m->n);
		if (s->state == SEAL_BEGINS)
			tell(s, tell_all);
		wipe_values(s->k->in); /* the teller has its own */
		s->state = SEAL_TOLD;
		return;
	case SEAL_READY:
		if (s->state == SEAL_TOLD)
			serve(s);
		inspect_due(s);
		return;
	case SEAL_FAILED:
		if (s->state == SEAL_SERVES) {
			(void)snprintf(why, sizeof(why), "network: the change was not taken: %.*s",
				       m->n < 300 ? (int)m->n : 300, m->data);
			keeper_note(s->k, why);
			return;
		}
		(void)snprintf(why, sizeof(why), "inspection: %.*s", m->n < 380 ? (int)m->n : 380,
			       m->data);
		close_seal(s, why);
		return;
	case SEAL_EVENT:
		seal_event(s, m);
		return;
	case SEAL_LOGIN:
		capture_take(s->capture, m);
		return;
	default:
		lost(s);
	}
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
	if (r == 1)
		hear(s, &m);
	else
		lost(s);
	explicit_bzero(&m, sizeof(m)); /* it may have been a login */
}

/* Where nobody can be made to wait for the bundle we do. */
static int wait_for_it(struct seal *s, struct err *e)
{
	while (s->state != SEAL_SERVES) {
		struct pollfd p[2] = { { .fd = s->fd, .events = POLLIN },
				       { .fd = s->telling, .events = POLLIN } };

		if (s->state == SEAL_CLOSED || poll(p, 2, ANSWER_MS) <= 0)
			return err_set(e, ERR_SYSTEM, EPIPE, "vitrine-seal ended, or says nothing");
		if (p[0].revents)
			on_message(s);
		else
			on_told(s);
	}
	return 0;
}

/* Token stores with placeholders in place of tokens; readable as the bundle is. */
static int write_logins(const struct keeper *k, struct err *e)
{
	for (char *const *v = k->in->plan->net.logins; v && *v; v += 2) {
		_close_ int fd = openat(
			k->dir, v[0], O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);

		if (fd < 0 || fchmod(fd, 0644) < 0 || io_write_all(fd, v[1], strlen(v[1])) < 0)
			return err_sys(e, "the file for '%s'", v[0]);
	}
	return 0;
}

/* What would fail later is better said now. */
static int check_trust(const struct seal *s, struct err *e)
{
	_free_ char *path = NULL;
	int r = program_find("vitrine-seal", &path, e);

	return r < 0 ? r : bundle_trust_look(&s->k->in->plan->net, e);
}

int seal_start(struct keeper *k, struct err *e)
{
	struct seal *s;
	int r;

	if (!k->in->plan->net.has_seal)
		return 0;
	s = k->seal = mem_new(1, sizeof(*s));
	*s = (struct seal){ .k = k,
			    .fd = FD_NONE,
			    .bundle = BUNDLE_NONE,
			    .way = FD_NONE,
			    .telling = FD_NONE,
			    .capture = capture_new(k),
			    .ca = BUF(64 * KIB) };
	r = check_trust(s, e);
	if (r >= 0)
		r = write_logins(k, e);
	if (r >= 0)
		r = bundle_begin(&s->bundle, k, on_opened, s, e);
	if (r < 0 || s->bundle.is_leased)
		return r;
	r = spawn(s, e);
	return r < 0 ? r : wait_for_it(s, e);
}

/* Before it serves, its end of the pair is kept here: what front sends meanwhile waits in it. */
int seal_connect(struct keeper *k)
{
	struct seal_msg m = { .type = SEAL_FRONT };
	struct seal *s = k->seal;
	int pair[2];

	if (s == NULL || s->state == SEAL_CLOSED ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return FD_NONE;
	if (s->state != SEAL_SERVES) {
		watch_free(s->on_way);
		s->on_way = NULL;
		fd_close(s->way);
		s->way = pair[1];
		if (s->state == SEAL_SLEEPS)
			s->on_way = watch_fd(k->loop, s->way, WATCH_READ, on_way, s);
		return pair[0];
	}
	if (packet_send(s->fd, &m, sizeof(m), &pair[1], 1) < 0) {
		fd_close(pair[0]);
		pair[0] = FD_NONE;
	}
	fd_close(pair[1]);
	return pair[0];
}

static char *host_of(const char *rule)
{
	const char *at = strchr(rule, ' ');

	at += strspn(at, " ");
	return mem_strn(at, strcspn(at, "/"));
}

static bool is_inspected(const struct seal *s, const char *host)
{
	for (char *const *v = s->k->in->plan->net.inspect; v && *v; v++)
		if (str_eq(*v, host) || host_matches(*v, host))
			return true;
	for (int list = 0; list < 2; list++)
		for (size_t i = 0; i < s->n_added[list]; i++) {
			_free_ char *other = host_of(s->added[list][i]);

			if (str_eq(other, host) || host_matches(other, host))
				return true;
		}
	return false;
}

static void set_true(void *arg, const char *host)
{
	(void)host;
	*(bool *)arg = true;
}

/* A host that is not inspected yet can be, where programs inside trust the CA: the bundle is mounted at the start. */
static int check_change(const struct keeper *k, const char *rule, const char *host, struct err *e)
{
	bool may = false;
	int r = check_inspect_rule(rule, e);

	if (r < 0)
		return r;
	if (k->seal == NULL)
		return err_set(e, ERR_CONFLICT, ENETDOWN,
			       "nothing is inspected in this run, so programs inside do not trust "
			       "the "
			       "sandbox's CA; %s is inspected when it is started again",
			       host);
	if (k->seal->state == SEAL_CLOSED)
		return err_set(e, ERR_CONFLICT, ENETDOWN,
			       "vitrine-seal has ended in this run; %s is inspected when it is "
			       "started again",
			       host);
	inspect_add(k->in->policy, host, set_true, &may);
	return may ? 0 : err_set(e, ERR_USAGE, EINVAL, "inspect.never leaves %s uninspected", host);
}

/* After seal has the rule: until then the host is what it was. */
static void inspect_due(struct seal *s)
{
	if (s->due_host)
		gate_inspect(s->k, s->due_host, s->is_due_reached);
	free(s->due_host);
	s->due_host = NULL;
}

int seal_change(struct keeper *k, const char *rule, bool is_deny, struct err *e)
{
	_free_ char *host = host_of(rule);
	struct seal *s = k->seal;
	int r = check_change(k, rule, host, e), list = is_deny;
	bool is_new;

	if (r < 0)
		return r;
	if (s->teller > 0 && s->state == SEAL_SERVES)
		return err_set(e, ERR_CONFLICT, EBUSY, "a change is just being made; try again");
	if (s->n_added[list] >= RULES_MAX)
		return err_set(e, ERR_USAGE, E2BIG, "more than %d rules", RULES_MAX);
	is_new = !is_inspected(s, host);
	s->added[list] = mem_grow(s->added[list], s->n_added[list] + 1, sizeof(*s->added[list]));
	s->added[list][s->n_added[list]++] = mem_str(rule);
	if (is_new) {
		s->due_host = take(host);
		s->is_due_reached = !is_deny;
	}
	if (s->state == SEAL_SERVES)
		tell(s, tell_all);
	else
		inspect_due(s); /* seal hears of the rule before it serves anybody */
	return 0;
}

void seal_watch(struct keeper *k)
{
	if (k->seal && k->seal->fd >= 0)
		k->seal->on = watch_fd(k->loop, k->seal->fd, WATCH_READ, on_message, k->seal);
}

void seal_settle(struct keeper *k)
{
	struct seal *s = k->seal;
	uint64_t until = clock_now() + LAST_NS;
	struct seal_msg m;
	int fds[PACKET_FDS], r;

	if (s == NULL || s->state != SEAL_SERVES || s->fd < 0)
		return;
	(void)shutdown(s->fd, SHUT_WR);
	do {
		r = seal_recv(s->fd, &m, fds);
		for (int i = 0; i < PACKET_FDS && r == 1; i++)
			fd_close(fds[i]);
		if (r == 1 && (m.type == SEAL_EVENT || m.type == SEAL_LOGIN))
			hear(s, &m);
	} while (r == 1 || (r == -EAGAIN && wait_readable(s->fd, until)));
	explicit_bzero(&m, sizeof(m));
}

void seal_finish(struct keeper *k)
{
	struct seal *s = k->seal;

	if (s == NULL)
		return;
	stop(s);
	capture_free(s->capture);
	s->capture = NULL;
	bundle_close(&s->bundle); /* nobody is left who waits for it */
}
