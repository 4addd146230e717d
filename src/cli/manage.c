/* SPDX-License-Identifier: Apache-2.0 */
/* cli/manage.c - create, start, stop, rm, prune, reset, rename
 *
 * Whatever changes a sandbox's folder owns it first (def_own): a running one is refused, or stopped where the caller
 * said so. A keeper that does not answer is ended by the descriptor of its own connection, never by a number that
 * may have become somebody else's.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/num.h"
#include "base/path.h"
#include "cli/image.h"
#include "cli/past.h"
#include "cli/quarantine.h"
#include "cli/waits.h"
#include "git/git.h"
#include "keep/journal.h"

enum { OPT_TIME = 1, OPT_FORCE, OPT_ALL, OPT_DRY, OPT_FILTER, OPT_YES };

#define GRACE 10
#define FREE_WAIT (5 * NS_PER_SEC)

const struct opt start_opts[] = {
	{ NULL, 0, NULL, NULL, 0 },
};

const struct opt stop_opts[] = {
	{ "time", 't', "TIME", "how long it has to end by itself (default: 10s)", OPT_TIME },
	{ "all", 'a', NULL, "every sandbox that runs", OPT_ALL },
	{ NULL, 0, NULL, NULL, 0 },
};

const struct opt rm_opts[] = {
	{ "force", 'f', NULL, "stop it first if it runs; remove work that waits too", OPT_FORCE },
	{ "all", 'a', NULL, "every sandbox", OPT_ALL },
	{ "dry-run", 0, NULL, "only say which would go, and what waits in the others", OPT_DRY },
	{ NULL, 0, NULL, NULL, 0 },
};

const struct opt prune_opts[] = {
	{ "force", 'f', NULL, "do not ask; remove work that waits too", OPT_FORCE },
	{ "yes", 'y', NULL, "do not ask", OPT_YES },
	{ "dry-run", 0, NULL, "only say which would go, and what waits in the others", OPT_DRY },
	{ "filter", 0, "since=TIME", "only those not used for so long: since=7d", OPT_FILTER },
	{ NULL, 0, NULL, NULL, 0 },
};

const struct opt reset_opts[] = {
	{ "force", 'f', NULL, "do not ask; stop it first if it runs", OPT_FORCE },
	{ "dry-run", 0, NULL, "only say whose homes would be emptied", OPT_DRY },
	{ NULL, 0, NULL, NULL, 0 },
};

struct manage {
	struct host host;
	uint64_t grace_ns, unused_ns;
	bool is_forced, is_all, is_dry, is_agreed;
	char *const *names;
	size_t n;
};

static int parse(struct manage *m, const struct opt *opts, int argc, char **argv, struct err *e)
{
	struct opts o;
	int id;

	*m = (struct manage){ .grace_ns = GRACE * NS_PER_SEC, .host = { .ws_fd = FD_NONE } };
	opts_init(&o, opts, argc, argv);
	while ((id = opts_next(&o, e)) > 0) {
		int x = 0;

		if (id == OPT_TIME)
			x = num_duration(o.value, &m->grace_ns, e);
		else if (id == OPT_FORCE)
			m->is_forced = true;
		else if (id == OPT_ALL)
			m->is_all = true;
		else if (id == OPT_DRY)
			m->is_dry = true;
		else if (id == OPT_YES)
			m->is_agreed = true;
		else if (id == OPT_FILTER)
			x = str_starts(o.value, "since=")
				    ? num_duration(o.value + 6, &m->unused_ns, e)
				    : err_set(e, ERR_USAGE, EINVAL, "expected since=TIME");
		if (x < 0)
			return err_wrap(e, x, "--%s", o.opt->name);
	}
	if (id < 0)
		return id;
	m->names = argv + o.at;
	m->n = (size_t)(argc - o.at);
	/* Before the first sandbox is touched: a word like this is a mistyped option, and that option may be --dry-run. */
	for (size_t i = 0; i < m->n; i++)
		if (m->names[i][0] == '-')
			return err_set(e, ERR_USAGE, EINVAL,
				       "'%.64s' begins with '-' and is no name of a sandbox; "
				       "nothing was done",
				       m->names[i]);
	return host_init(&m->host, NULL, e);
}

static int want_names(const struct manage *m, const char *verb, struct err *e)
{
	if (m->n == 0 && !m->is_all)
		return err_set(e, ERR_USAGE, EINVAL, "%s: which sandbox? 'vitrine ls' lists them",
			       verb);
	return 0;
}

/* Many take a while; whoever watches is told how far it is. */
static void tell_progress(uint64_t began, size_t done, char *const *names)
{
	size_t n = 0;

	if (!isatty(2) || clock_now() - began < NS_PER_SEC)
		return;
	while (names[n])
		n++;
	(void)fprintf(stderr, done < n ? "\r%zu of %zu " : "\r\033[K", done, n);
}

/* One of several may fail and the others still be done: each failure is said, the first decides. */
static int each(struct manage *m, int (*fn)(struct manage *m, const char *name, struct err *e),
		struct err *e)
{
	char **all = NULL;
	char *const *names = m->names;
	uint64_t began = clock_now();
	int first = 0;

	if (m->is_all) {
		int x = def_list(m->host.state_dir, false, &all, e);

		if (x < 0)
			return x;
		names = all;
	}
	for (char *const *p = names; *p; p++) {
		struct err one = ERR_INIT;
		int x = fn(m, *p, &one);

		if (x < 0 && first == 0) {
			first = x;
			*e = one;
		} else if (x < 0) {
			cli_complain(one.msg);
		}
		tell_progress(began, (size_t)(p - names) + 1, names);
	}
	def_list_free(all);
	return first;
}

/* ---- stop ---- */

/* Whose connection this is, by a descriptor that cannot come to mean another process. */
static int keeper_pidfd(int conn)
{
	struct ucred cred;
	socklen_t n = sizeof(cred);
	struct pollfd p = { .fd = conn };
	int fd;

	if (getsockopt(conn, SOL_SOCKET, SO_PEERCRED, &cred, &n) < 0)
		return -errno;
	fd = (int)syscall(SYS_pidfd_open, cred.pid, 0);
	/* Had it died before we opened it, its socket would be closed now. */
	if (fd >= 0 && (poll(&p, 1, 0) != 0)) {
		fd_close(fd);
		return -ESRCH;
	}
	return fd < 0 ? -errno : fd;
}

static int recv_end(int conn, int timeout_ms)
{
	struct pollfd p = { .fd = conn, .events = POLLIN };

	for (;;) {
		int fds[PACKET_FDS];
		struct keep_msg m;
		int r = poll(&p, 1, timeout_ms);

		if (r < 0 && errno == EINTR)
			continue;
		if (r == 0)
			return -ETIMEDOUT;
		r = keep_recv(conn, &m, fds);
		for (int i = 0; i < PACKET_FDS; i++)
			fd_close(fds[i]);
		if (r != 1 || m.type == KEEP_ENDED)
			return 0;
	}
}

/* Waits until the keeper has released the folder's lock, its last act. */
static int wait_free(const struct manage *m, const char *name, struct err *e)
{
	int x = live_wait_free(m->host.state_dir, name, FREE_WAIT, e);

	if (x == -EBUSY)
		return x;
	*e = ERR_INIT; /* the folder is gone, or its next user reports what is wrong with it */
	return 0;
}

static int stop_one(struct manage *m, const char *name, struct err *e)
{
	struct keep_msg stop = { .type = KEEP_STOP };
	_close_ int conn = keep_connect(m->host.state_dir, name, e);
	_close_ int keeper = FD_NONE;
	uint64_t ms = m->grace_ns / NS_PER_MS;
	int x;

	if (conn == -ENOENT) {
		_cleanup_(def_done) struct def d = { 0 };
		_cleanup_(past_done) struct past left = { 0 };

		/* Stopped already is as good; not there is not. A run without a name is gone when it has ended. */
		if (str_starts(name, "run-"))
			return past_left(m->host.state_dir, name, &left) ? 0 : conn;
		*e = ERR_INIT;
		return def_read(m->host.state_dir, name, &d, e);
	}
	if (conn < 0)
		return conn;
	keeper = keeper_pidfd(conn);
	stop.a = (int32_t)((m->grace_ns + NS_PER_SEC - 1) / NS_PER_SEC);
	if (keep_send(conn, &stop, NULL, 0) == 0 && isatty(2) && ms > 1000) {
		x = recv_end(conn, 1000);
		if (x == -ETIMEDOUT)
			(void)fprintf(stderr, "vitrine: waiting up to %llu s for '%s' to end\n",
				      (unsigned long long)(ms / 1000), name);
		else
			return wait_free(m, name, e);
	}
	if (recv_end(conn, (int)(ms > 3600000 ? 3600000 : ms) + 5000) == -ETIMEDOUT && keeper >= 0)
		(void)syscall(SYS_pidfd_send_signal, keeper, SIGKILL, NULL, 0);
	return wait_free(m, name, e);
}

/* A run that is waited for says by itself what was quarantined; of one that was left running, this is who is told. */
static int stop_and_tell(struct manage *m, const char *name, struct err *e)
{
	_free_ char *door = mem_fmt("%s/sandboxes/%s/control", m->host.state_dir, name);
	struct stat st = { 0 };
	bool has_started = stat(door, &st) == 0;
	int x = stop_one(m, name, e);
	size_t n = x == 0 && has_started
			   ? quarantine_count(m->host.state_dir, name, (uint64_t)st.st_ctime)
			   : 0;

	if (n)
		(void)fprintf(stderr,
			      "vitrine: %zu quarantined while '%s' ran: 'vitrine quarantine ls %s' "
			      "lists what, 'vitrine quarantine restore %s PATH' brings it back\n",
			      n, name, name, name);
	return x;
}

int cmd_stop(int argc, char **argv, struct err *e)
{
	struct manage m;
	int x = parse(&m, stop_opts, argc, argv, e);

	if (x == 0)
		x = want_names(&m, "stop", e);
	if (x == 0)
		x = each(&m, stop_and_tell, e);
	host_done(&m.host);
	return x;
}

/* ---- create, start ---- */

int cmd_create(int argc, char **argv, struct err *e)
{
	struct run r = { 0 };
	int x = run_parse(&r, argc, argv, e);

	if (x == 0 && !r.has_def)
		x = err_set(e, ERR_USAGE, EINVAL,
			    "create: which agent? 'vitrine create shell [PATH]'");
	if (x == 0 && !r.is_new)
		x = err_set(e, ERR_CONFLICT, EEXIST, "the sandbox '%s' exists already", r.def.name);
	/* Planned as a run would be, so that what cannot work is refused now. */
	if (x == 0)
		x = run_plan(&r, e);
	if (x == 0)
		x = run_create(&r, e);
	if (x == 0) {
		struct event_field f[] = { EVENT_STR(NAME, r.def.name),
					   EVENT_STR(AGENT, r.def.agent ? r.def.agent : ""),
					   EVENT_STR(WORKSPACE, r.def.workspace) };

		(void)journal_once(r.host.state_dir, r.def.name, EV_SANDBOX_CREATED, f,
				   ARRAY_LEN(f));
		if (!r.is_quiet)
			(void)printf("%s\n", r.def.name);
	}
	run_done(&r);
	return x;
}

static int start_one(struct manage *m, const char *name, struct err *e)
{
	_cleanup_(def_done) struct def d = { 0 };
	_close_ int conn = FD_NONE;
	int x = def_read(m->host.state_dir, name, &d, e);

	if (x < 0)
		return x;
	/* It may be running already, for the time of a session. */
	conn = live_hold(&m->host, name, true, e);
	return conn < 0 ? conn : 0;
}

int cmd_start(int argc, char **argv, struct err *e)
{
	struct manage m;
	int x = parse(&m, start_opts, argc, argv, e);

	if (x == 0)
		x = want_names(&m, "start", e);
	if (x == 0)
		x = each(&m, start_one, e);
	host_done(&m.host);
	return x;
}

/* ---- rm, reset, rename ---- */

static int own(struct manage *m, const char *name, struct owned *o, struct err *e)
{
	int x = -EBUSY;

	for (int i = 0; i < 20; i++) {
		x = def_own(m->host.state_dir, name, o, e);
		if (x != -EBUSY || !m->is_forced || m->is_dry)
			return x;
		*e = ERR_INIT;
		x = stop_one(m, name, e);
		if (x < 0)
			return x;
	}
	return x;
}

/* On record before it is done: what follows may take away the very place where it is told. The layers that only it
 * used go with it. */
static int remove_owned(struct manage *m, const char *name, struct owned *o, struct err *e)
{
	int x;

	x = journal_once(m->host.state_dir, name, EV_SANDBOX_REMOVED, &EVENT_STR(NAME, name), 1);
	/* A disk that is full is made empty by removing. */
	if (x < 0 && x != -ENOSPC && x != -EDQUOT)
		return err_set(e, ERR_SYSTEM, -x, "rm: it cannot be recorded, so '%s' stays: %s",
			       name, strerrordesc_np(-x));
	x = def_remove(m->host.state_dir, name, o, e);
	return x < 0 ? x : layers_collect(m->host.state_dir, &(uint64_t){ 0 }, e);
}

/* Work that nobody has taken is removed only with --force. The caller owns the folder. */
static int check_waits(const struct manage *m, const char *name, const char *workspace,
		       struct err *e)
{
	_cleanup_(waits_done) struct waits w = { 0 };
	_free_ char *text = NULL, *how = NULL;

	if (m->is_forced)
		return 0;
	waits_find(m->host.state_dir, name, workspace, &w);
	text = waits_text(&w);
	if (text == NULL)
		return 0;
	how = waits_how(&w, name);
	return err_set(e, ERR_CONFLICT, EBUSY,
		       "'%s' was not removed: it holds %.150s. %s. 'vitrine rm --force %s' removes "
		       "it with that work",
		       name, text, how, name);
}

static int rm_one(struct manage *m, const char *name, struct err *e)
{
	_cleanup_(def_done) struct def d = { 0 };
	struct owned o = OWNED_NONE;
	bool is_clone;
	/* A definition that cannot be read is no reason to keep it. */
	int x = def_read(m->host.state_dir, name, &d, e);

	if (x < 0 && e->kind != ERR_CONFIG)
		return x;
	*e = ERR_INIT;
	is_clone = d.workspace && git_clone_exists(m->host.state_dir, name);
	x = own(m, name, &o, e);
	if (x == 0)
		x = check_waits(m, name, d.workspace, e);
	if (x == 0 && m->is_dry)
		(void)printf("%s\n", name);
	else if (x == 0)
		x = remove_owned(m, name, &o, e);
	if (x == 0 && is_clone && !m->is_dry)
		git_remote_drop(name, d.workspace);
	def_let_go(&o);
	return x;
}

int cmd_rm(int argc, char **argv, struct err *e)
{
	struct manage m;
	int x = parse(&m, rm_opts, argc, argv, e);

	if (x == 0)
		x = want_names(&m, "rm", e);
	m.grace_ns = NS_PER_SEC;
	if (x == 0)
		x = each(&m, rm_one, e);
	host_done(&m.host);
	return x;
}

/* A home that was frozen or forked lies in layers. */
static int forget_home(const struct manage *m, const char *name, struct err *e)
{
	struct layers l;
	int x = layers_read(m->host.state_dir, name, &l, e);

	if (x < 0)
		return x;
	x = layers_reset_home(&l, e);
	layers_done(&l);
	return x < 0 ? x : layers_collect(m->host.state_dir, &(uint64_t){ 0 }, e);
}

static int reset_one(struct manage *m, const char *name, struct err *e)
{
	_cleanup_(def_done) struct def d = { 0 };
	struct owned o = OWNED_NONE;
	int x = def_read(m->host.state_dir, name, &d, e);

	if (x == 0 && m->is_dry) {
		(void)printf("%s\n", name);
		return 0;
	}
	if (x == 0)
		x = own(m, name, &o, e);
	/* Out of the way first: a home is there whole or not at all. What a reset that was cut short has left goes
	 * before. */
	if (x == 0 && path_remove(o.dir, ".rm-home") < 0)
		x = err_set(e, ERR_SYSTEM, ENOTEMPTY,
			    "'%s': not all of its last home could be deleted", name);
	if (x == 0 && ((renameat(o.dir, "home", o.dir, ".rm-home") < 0 && errno != ENOENT) ||
		       fsync(o.dir) < 0))
		x = err_sys(e, "reset '%s'", name);
	if (x == 0 && path_remove(o.dir, ".rm-home") < 0)
		x = err_set(e, ERR_SYSTEM, ENOTEMPTY, "'%s': not all of its home could be deleted",
			    name);
	if (x == 0)
		x = forget_home(m, name, e);
	def_let_go(&o);
	return x;
}

int cmd_reset(int argc, char **argv, struct err *e)
{
	struct manage m;
	int x = parse(&m, reset_opts, argc, argv, e);

	m.is_all = x == 0 && m.n == 0;
	m.grace_ns = NS_PER_SEC;
	for (size_t i = 0; x == 0 && i < m.n; i++) { /* before anybody is asked */
		_cleanup_(def_done) struct def d = { 0 };

		x = def_read(m.host.state_dir, m.names[i], &d, e);
	}
	if (x == 0 && !m.is_forced && !m.is_dry &&
	    !cli_is_agreed(m.is_all ? "Empty the homes of all sandboxes? What waits for review, "
				      "and commits of clones, stay."
				    : "Empty its home? What waits for review, and commits of a "
				      "clone, stay."))
		x = err_set(e, ERR_USAGE, ECANCELED,
			    "reset: nothing done; --force does it without a question");
	if (x == 0)
		x = each(&m, reset_one, e);
	host_done(&m.host);
	return x;
}

int cmd_rename(int argc, char **argv, struct err *e)
{
	struct owned o = OWNED_NONE;
	struct manage m;
	int x = parse(&m, start_opts, argc, argv, e);

	if (x == 0 && m.n != 2)
		x = err_set(e, ERR_USAGE, EINVAL, "rename: 'vitrine rename OLD NEW'");
	if (x == 0 && !def_is_name(m.names[1]))
		x = err_set(e, ERR_USAGE, EINVAL, "'%.80s' cannot be a name", m.names[1]);
	if (x == 0)
		x = def_own(m.host.state_dir, m.names[0], &o, e);
	/* Journals are found by the name; those of the old one must be gone before it is. */
	if (x == 0)
		journal_settle(m.host.state_dir);
	if (x == 0)
		x = def_rename(m.host.state_dir, m.names[0], m.names[1], &o, e);
	if (x == 0) {
		struct event_field f[] = { EVENT_STR(NAME, m.names[0]),
					   EVENT_STR(TARGET, m.names[1]) };

		int told = journal_once(m.host.state_dir, m.names[1], EV_SANDBOX_RENAMED, f,
					ARRAY_LEN(f));
		struct err ignored = ERR_INIT;

		/* Its events would be looked for under the old name. */
		if (told < 0 &&
		    def_rename_back(m.host.state_dir, m.names[1], m.names[0], &o, &ignored) == 0)
			x = err_set(e, ERR_SYSTEM, -told,
				    "rename: it cannot be recorded, so '%s' keeps its name: %s",
				    m.names[0], strerrordesc_np(-told));
		def_rename_done(&o);
	}
	def_let_go(&o);
	host_done(&m.host);
	return x;
}

/* ---- prune ---- */

/* When it was last used: its keeper touches the lock's file. */
static uint64_t last_used(const struct host *h, const char *name)
{
	_free_ char *path = mem_fmt("%s/sandboxes/%s/lock", h->state_dir, name);
	struct stat st;

	if (stat(path, &st) < 0) {
		free(path);
		path = mem_fmt("%s/sandboxes/%s", h->state_dir, name);
		if (stat(path, &st) < 0)
			return 0;
	}
	return (uint64_t)st.st_mtime;
}

/* Those that stay because work waits in them are named on stderr. */
static int prune_one(struct manage *m, const char *name, struct err *e)
{
	uint64_t now = (uint64_t)time(NULL), used = last_used(&m->host, name);
	_cleanup_(def_done) struct def d = { 0 };
	struct owned o = OWNED_NONE;
	bool is_clone;
	int x;

	if (used + m->unused_ns / NS_PER_SEC > now)
		return 0;
	if (def_read(m->host.state_dir, name, &d, e) < 0)
		*e = ERR_INIT; /* a definition that cannot be read is no reason to keep it */
	is_clone = d.workspace && git_clone_exists(m->host.state_dir, name);
	x = def_own(m->host.state_dir, name, &o, e);
	if (x == 0 && check_waits(m, name, d.workspace, e) < 0) {
		cli_complain(e->msg);
		*e = ERR_INIT;
		def_let_go(&o);
		return 0;
	}
	if (x == 0 && !m->is_dry)
		x = remove_owned(m, name, &o, e);
	def_let_go(&o);
	if (x == 0 && is_clone && !m->is_dry)
		git_remote_drop(name, d.workspace);
	if (x == 0)
		(void)printf("%s\n", name);
	/* One that runs, or that somebody else removed, is none of ours. */
	return x == -EBUSY || x == -ENOENT ? 0 : x;
}

/* What templates and images left that were cut off while they were made. */
static void prune_left(const struct manage *m)
{
	uint64_t bytes;
	size_t n = bench_left(m->host.state_dir, !m->is_dry, &bytes);
	_free_ char *text =
		mem_fmt("%zu half-made templates or images of commands that were cut "
			"off %s, %llu MiB",
			n, m->is_dry ? "would go" : "are gone", (unsigned long long)(bytes / MIB));

	if (n)
		cli_complain(text);
}

int cmd_prune(int argc, char **argv, struct err *e)
{
	struct manage m;
	int x = parse(&m, prune_opts, argc, argv, e);

	if (x == 0 && m.n > 0)
		x = err_set(e, ERR_USAGE, EINVAL,
			    "prune: takes no names; 'vitrine rm NAME' removes one");
	m.is_all = true;
	if (x == 0 && !m.is_forced && !m.is_agreed && !m.is_dry &&
	    !cli_is_agreed("Remove every sandbox that does not run, with its home? Those with work "
			   "that waits stay."))
		x = err_set(e, ERR_USAGE, ECANCELED,
			    "prune: nothing removed; --yes does it without a question, --force "
			    "also where work waits");
	if (x == 0)
		x = each(&m, prune_one, e);
	if (x == 0 && !m.is_dry)
		def_clean(m.host.state_dir, NULL);
	if (x == 0)
		prune_left(&m);
	host_done(&m.host);
	return x;
}
