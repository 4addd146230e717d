/* SPDX-License-Identifier: Apache-2.0 */
/* cli/live.c - see live.h */
#include <poll.h>

#include "base/loop.h"
#include "base/path.h"
#include "cli/live.h"

void words_add(struct words *w, char *take_text)
{
	w->v = mem_grow(w->v, w->n + 2, sizeof(*w->v));
	w->v[w->n++] = take_text;
	w->v[w->n] = NULL;
}

void words_free(struct words *w)
{
	for (size_t i = 0; i < w->n; i++)
		free(w->v[i]);
	free(w->v);
	*w = (struct words){ 0 };
}

void words_add_env(struct words *w, const char *text)
{
	const char *value = strchr(text, '=') ? NULL : getenv(text);

	if (strchr(text, '='))
		words_add(w, mem_str(text));
	else if (value)
		words_add(w, mem_fmt("%s=%s", text, value));
}

void live_terminal_env(struct words *w)
{
	words_add_env(w, "TERM");
	words_add_env(w, "COLORTERM");
}

char *live_cwd(const struct def *d, const char *cwd, const char *workdir)
{
	if (workdir)
		return path_join(d->workspace, workdir);
	return mem_str(cwd && path_is_clean(cwd) && path_is_beneath(cwd, d->workspace)
			       ? cwd
			       : d->workspace);
}

/* ---- waking ---- */

static int wait_ready(int conn, struct err *e)
{
	int fds[PACKET_FDS];
	struct keep_msg m;
	int r = keep_recv(conn, &m, fds);

	for (int i = 0; i < PACKET_FDS; i++)
		fd_close(fds[i]);
	if (r == 1 && m.type == KEEP_STARTED)
		return 0;
	if (r == 1 && m.type == KEEP_NOTE)
		return wait_ready(conn, e);
	if (r == 1 && m.type == KEEP_ENDED) {
		*e = m.err;
		return m.err.num > 0 ? -m.err.num : -EPROTO;
	}
	return err_set(e, ERR_SYSTEM, EPIPE,
		       "the sandbox ended while it was being started: it was "
		       "stopped or removed meanwhile, or its keeper was killed");
}

static int plan_idle(struct run *r, const char *name, struct err *e)
{
	static char verb[] = "start", flag[] = "--name";
	static char *argv[] = { verb, flag, NULL, NULL };
	static char *const none[] = { NULL };
	int x;

	argv[2] = (char *)(uintptr_t)name; /* nobody writes to it */
	x = run_parse(r, 3, argv, e);
	r->command = none;
	r->is_starting = true;
	if (x == 0 && r->is_new)
		x = err_set(e, ERR_NOTFOUND, ENOENT,
			    "there is no sandbox '%.64s'; 'vitrine ls' lists them", name);
	if (x == 0)
		x = run_freeze(r, e);
	if (x == 0)
		x = run_plan(r, e);
	if (x == 0)
		x = run_begin(r, e);
	return x;
}

/* The first one of a process has its namespaces made while it is planned, as `run` does; memory is shared once. */
static int start_idle(const char *name, bool is_kept, const char *again, struct err *e)
{
	static bool has_shared;
	bool is_eager = !has_shared && mem_share(RUN_SHARE_MAX) == 0;
	struct run *r = mem_new(1, sizeof(*r));
	struct keeper_in *in = mem_new(1, sizeof(*in));
	_close_ int conn = FD_NONE;
	int x;

	has_shared = true;
	r->is_eager = is_eager;
	x = plan_idle(r, name, e);
	if (x == 0) {
		*in = (struct keeper_in){ .plan = &r->plan,
					  .policy = &r->policy,
					  .scan = &r->host.scan,
					  .grounds = r->host.grounds,
					  .n_grounds = r->host.n_grounds,
					  .cgroups = &r->host.cgroups,
					  .ws_fd = r->host.ws_fd,
					  .stdio = { 0, 1, 2 },
					  .saved = r->saved,
					  .again = again ? mem_str(again) : NULL,
					  .is_kept = is_kept };
		x = conn = run_hand_over(r, in, false, e);
	} else {
		run_begin_not(r);
		keeper_drop(&r->early);
		mem_share_end();
	}
	if (x >= 0)
		x = wait_ready(conn, e);
	run_done(r);
	if (!mem_is_shared(r)) {
		free(in);
		free(r);
	}
	return x < 0 ? x : take_fd(conn);
}

int live_wake(const struct host *h, const char *name, bool is_kept, struct err *e)
{
	int conn = FD_NONE;

	/* Between "it does not run" and "it is running already" others may start and end it. */
	for (int i = 0; i < 500; i++) {
		conn = keep_connect(h->state_dir, name, e);
		if (conn != -ENOENT)
			return conn;
		*e = ERR_INIT;
		conn = start_idle(name, is_kept, NULL, e);
		if (conn != -EBUSY)
			return conn;
		(void)usleep(i < 20 ? 500 : 10000);
	}
	return conn;
}

int live_again(const struct host *h, const char *name, const char *folder, struct err *e)
{
	(void)h;
	return start_idle(name, true, folder, e);
}

int live_hold(const struct host *h, const char *name, bool is_kept, struct err *e)
{
	int r = -EPIPE;

	/* It may be just ending. Once it has answered it waits for us. */
	for (int i = 0; i < 500 && r == -EPIPE; i++) {
		struct keep_msg m = { .type = is_kept ? KEEP_STAY : KEEP_STATUS };
		_close_ int conn = FD_NONE;

		if (i > 0)
			(void)usleep(i < 20 ? 500 : 10000);
		*e = ERR_INIT;
		r = conn = live_wake(h, name, is_kept, e);
		if (r < 0)
			return r;
		r = client_ask(conn, &m, KEEP_DONE, e);
		if (r == 0)
			return take_fd(conn);
	}
	return r;
}

/* ---- asking ---- */

static int read_state(int conn, struct live *ret, struct err *e)
{
	struct keep_msg m = { .type = KEEP_STATUS };
	struct pollfd p = { .fd = conn, .events = POLLIN };
	int r = keep_send(conn, &m, NULL, 0);

	while (r == 0) {
		int fds[PACKET_FDS];

		if (poll(&p, 1, 5000) <= 0)
			return err_set(e, ERR_SYSTEM, ETIMEDOUT, "the keeper does not answer");
		r = keep_recv(conn, &m, fds);
		for (int i = 0; i < PACKET_FDS; i++)
			fd_close(fds[i]);
		if (r != 1 || m.type == KEEP_ENDED)
			return -EPIPE;
		r = 0;
		if (m.type == KEEP_STATE) {
			ret->state = m;
		} else if (m.type == KEEP_SESSION) {
			ret->sessions = mem_grow(ret->sessions, ret->n + 1, sizeof(m));
			ret->sessions[ret->n++] = m;
		} else if (m.type == KEEP_DONE) {
			return 0;
		}
	}
	return -EPIPE;
}

/* A socket that nobody answers was left by a keeper that was killed; owning the folder removes it. */
static void clean_after_dead(const char *state_dir, const char *name)
{
	_free_ char *path = mem_fmt("%s/sandboxes/%s/control", state_dir, name);
	struct owned o = OWNED_NONE;
	struct err ignored = ERR_INIT;

	if (access(path, F_OK) == 0 && def_own(state_dir, name, &o, &ignored) == 0)
		def_let_go(&o);
}

int live_ask(const char *state_dir, const char *name, struct live *ret, struct err *e)
{
	_close_ int conn = FD_NONE;
	int r;

	*ret = (struct live){ 0 };
	conn = keep_connect(state_dir, name, e);
	if (conn == -ENOENT) {
		clean_after_dead(state_dir, name);
		*e = ERR_INIT;
		return 0;
	}
	if (conn < 0)
		return conn;
	r = read_state(conn, ret, e);
	if (r == -EPIPE) {
		/* It ended while we asked. */
		live_done(ret);
		*e = ERR_INIT;
		return 0;
	}
	ret->is_running = r == 0;
	return r;
}

int live_wait_free(const char *state_dir, const char *name, uint64_t wait_ns, struct err *e)
{
	uint64_t end = clock_now() + wait_ns;

	for (;;) {
		struct owned o = OWNED_NONE;
		int r;

		*e = ERR_INIT;
		r = def_own(state_dir, name, &o, e);
		def_let_go(&o);
		if (r == -ENOENT) {
			*e = ERR_INIT;
			return 0;
		}
		if (r != -EBUSY || clock_now() >= end)
			return r;
		(void)usleep(10000);
	}
}

void live_done(struct live *l)
{
	free(l->sessions);
	*l = (struct live){ 0 };
}
