/* SPDX-License-Identifier: Apache-2.0 */
/* cli/wait.c - wait: the exit status of a session, whether it runs still or has ended
 *
 * A session that runs is waited for at its keeper. One that has ended is looked up in the record that the keeper wrote
 * before it released the sandbox's lock, so between `run -d` and `wait` no moment is too late: either the keeper answers,
 * or the record is there. A keeper that was killed leaves a record without an end; such a session is lost when the lock is
 * free, or when the keeper that runs by then does not know the session.
 */
#include "base/num.h"
#include "cli/past.h"

#define ROUND NS_PER_SEC /* the keeper is asked again so often while it is stopping */
#define ROUNDS_MAX 3700  /* 'stop --time' gives a sandbox an hour at most */
#define REFUSALS_MAX 20
#define REFUSED_US 50000

const struct opt wait_opts[] = {
	{ NULL, 0, NULL, NULL, 0 },
};

struct wait {
	const char *state_dir, *name;
	uint32_t session; /* 0: the newest */
	int64_t status;
};

/* 1: the session has ended, and its status is known. 0: ask the record; *ret_is_refused: the keeper that runs now does not
 * know the session, and the record is final. */
static int wait_live(struct wait *w, const struct live *live, bool *ret_is_refused, struct err *e)
{
	struct keep_msg m = { .type = KEEP_WAIT, .session = w->session };
	_close_ int conn = FD_NONE;
	struct err gone = ERR_INIT;

	for (size_t i = 0; w->session == 0 && i < live->n; i++)
		m.session = live->sessions[i].session > m.session ? live->sessions[i].session
								  : m.session;
	if (live->n == 0 && m.session == 0)
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
	if (client_ask(conn, &m, KEEP_ENDED, &gone) < 0 || m.b == END_CLOSING)
		return 0;
	if (m.b == END_ERROR && m.session == 0) {
		*ret_is_refused = w->session != 0;
		return 0;
	}
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
	/* The keeper is asked for this session in the next round. */
	if (p && r == 0)
		w->session = p->id;
	past_free(v, n);
	return r;
}

static int say_lost(const struct wait *w, struct err *e)
{
	return err_set(e, ERR_SYSTEM, ECHILD,
		       "session %u of '%s' has no exit status: its supervisor process was killed. "
		       "'vitrine inspect %s' shows what is known",
		       w->session ? w->session : 1, w->name, w->name);
}

static int wait_for(struct wait *w, struct err *e)
{
	bool was_free = false;
	int n_refused = 0;

	for (int i = 0; i < ROUNDS_MAX; i++) {
		_cleanup_(live_done) struct live live = { 0 };
		struct err ending = ERR_INIT;
		bool is_refused = false;
		int r = 0;

		if (live_ask(w->state_dir, w->name, &live, &ending) == 0 && live.is_running)
			r = wait_live(w, &live, &is_refused, e);
		if (r == 0)
			r = wait_past(w, e);
		/* A run without a name may stand between its end and its record. */
		if (r == -ENOENT && str_starts(w->name, "run-") && !was_free && !is_refused) {
			*e = ERR_INIT;
			r = 0;
		}
		if (r != 0)
			return r;
		if (was_free || (is_refused && ++n_refused > REFUSALS_MAX))
			return say_lost(w, e);
		/* The keeper does not know the session any more, or not yet: its record may be about to be written. */
		if (is_refused) {
			(void)usleep(REFUSED_US);
			continue;
		}
		r = live_wait_free(w->state_dir, w->name, ROUND, e);
		if (r < 0 && r != -EBUSY)
			return r;
		*e = ERR_INIT;
		was_free = r == 0;
	}
	return err_set(e, ERR_SYSTEM, ETIMEDOUT,
		       "sandbox '%s' is still stopping; run 'vitrine wait %s' again when it has "
		       "stopped",
		       w->name, w->name);
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
	/* A run without a name is one session, which has no number at its keeper. */
	if (x == 0 && session == 1 && str_starts(argv[o.at], "run-"))
		session = 0;
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
