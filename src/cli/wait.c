/* SPDX-License-Identifier: Apache-2.0 */
/* cli/wait.c - wait: the exit status of a session, whether it runs still or has ended
 *
 * A session that runs is waited for at its keeper. One that has ended is looked up in what the keeper wrote down before
 * its lock was free, so between `run -d` and `wait` no moment is too late: either the keeper answers, or the record is
 * there. A keeper that was killed leaves a record without an end.
 */
#include "base/num.h"
#include "cli/past.h"

#define TRIES                                                                                      \
	50 /* the keeper is ending, or another command holds the lock: each try waits up to 2 s */

const struct opt wait_opts[] = {
	{ NULL, 0, NULL, NULL, 0 },
};

struct wait {
	const char *state_dir, *name;
	uint32_t session; /* 0: the newest */
	int64_t status;
};

/* 1: it has ended, and the status is known. 0: the keeper knows no such session. */
static int wait_live(struct wait *w, const struct live *live, struct err *e)
{
	struct keep_msg m = { .type = KEEP_WAIT, .session = w->session };
	_close_ int conn = FD_NONE;
	struct err gone = ERR_INIT;

	for (size_t i = 0; w->session == 0 && i < live->n; i++)
		m.session = live->sessions[i].session > m.session ? live->sessions[i].session
								  : m.session;
	if (live->n == 0)
		return 0;
	conn = keep_connect(w->state_dir, w->name, e);
	if (conn < 0) {
		int r = conn;

		if (r == -ENOENT)
			*e = ERR_INIT;
		return r == -ENOENT ? 0 : r;
	}
	/* A session that was chosen here is the one that is meant from now on, whatever is started later. */
	w->session = m.session;
	if (client_ask(conn, &m, KEEP_ENDED, &gone) < 0 || m.b == END_CLOSING ||
	    (m.b == END_ERROR && m.session == 0))
		return 0;
	w->status = m.a;
	return 1;
}

static const struct past *find(const struct past *v, size_t n, uint32_t session)
{
	for (size_t i = 0; i < n; i++)
		if (session == 0 || v[i].id == session)
			return &v[i];
	return NULL;
}

/* 1: the status is on record. 0: there is a record without an end. */
static int wait_past(struct wait *w, struct err *e)
{
	_cleanup_(def_done) struct def d = { 0 };
	_cleanup_(past_done) struct past left = { 0 };
	struct past *v = NULL;
	const struct past *p;
	size_t n = 0;
	int r = def_read(w->state_dir, w->name, &d, e);

	if (r == -ENOENT && w->session <= 1 && past_left(w->state_dir, w->name, &left)) {
		*e = ERR_INIT;
		w->status = left.status;
		return left.has_ended;
	}
	if (r == 0)
		r = past_read(w->state_dir, w->name, &v, &n, e);
	if (r < 0)
		return r;
	p = find(v, n, w->session);
	if (p == NULL && w->session == 0)
		r = err_set(e, ERR_NOTFOUND, ENOENT, "'%s' has run no session yet", w->name);
	else if (p == NULL)
		r = err_set(e, ERR_NOTFOUND, ENOENT,
			    "'%s' has no session %u that runs or is on record; 'vitrine inspect "
			    "%s' lists them",
			    w->name, w->session, w->name);
	else
		r = p->has_ended;
	w->status = r == 1 ? p->status : 0;
	past_free(v, n);
	return r;
}

/* 1: nobody holds the lock, so no more is written. */
static int is_free(const struct wait *w, struct err *e)
{
	struct owned o = OWNED_NONE;
	int r = def_own(w->state_dir, w->name, &o, e);

	def_let_go(&o);
	if (r == -EBUSY || r == -ENOENT) {
		*e = ERR_INIT;
		return r == -ENOENT;
	}
	return r < 0 ? r : 1;
}

static int wait_for(struct wait *w, struct err *e)
{
	bool was_free = false;

	for (int i = 0; i < TRIES; i++) {
		_cleanup_(live_done) struct live live = { 0 };
		struct err ending = ERR_INIT;
		int r = 0;

		if (live_ask(w->state_dir, w->name, &live, &ending) == 0 && live.is_running)
			r = wait_live(w, &live, e);
		if (r == 0)
			r = wait_past(w, e);
		/* A run without a name may stand between its end and its record. */
		if (r == -ENOENT && str_starts(w->name, "run-") && !was_free) {
			*e = ERR_INIT;
			r = 0;
		}
		if (r != 0)
			return r;
		if (was_free)
			return err_set(e, ERR_SYSTEM, ECHILD,
				       "the session was lost: its keeper was killed before the "
				       "session ended");
		r = is_free(w, e);
		if (r < 0)
			return r;
		was_free = r == 1;
	}
	return err_set(e, ERR_SYSTEM, ETIMEDOUT, "the keeper of '%s' does not end", w->name);
}

int cmd_wait(int argc, char **argv, struct err *e)
{
	struct host host = { .ws_fd = FD_NONE };
	struct wait w = { 0 };
	uint64_t session = 0;
	struct opts o;
	int n, x;

	opts_init(&o, wait_opts, argc, argv);
	x = opts_next(&o, e);
	n = argc - o.at;
	if (x == 0 && (n == 0 || n > 2))
		x = err_set(e, ERR_USAGE, EINVAL, "wait: 'vitrine wait NAME [SESSION]'");
	if (x == 0 && n == 2)
		x = num_parse(argv[o.at + 1], 1, UINT32_MAX, &session, e);
	if (x == 0)
		x = host_init(&host, NULL, e);
	w = (struct wait){ .state_dir = host.state_dir,
			   .name = argv[o.at],
			   .session = (uint32_t)session };
	if (x == 0)
		x = wait_for(&w, e);
	if (x > 0)
		(void)printf("%lld\n", (long long)w.status);
	host_done(&host);
	return x < 0 ? x : 0;
}
