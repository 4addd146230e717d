/* SPDX-License-Identifier: Apache-2.0 */
/* git/take.c - see git.h: one stream out of a sandbox, into a repository of ours
 *
 * Two flows of bytes run between two processes that do not trust each other, and we stand in the middle and count: the
 * pack may be as large as the caller allows, and the whole may take as long as the caller allows. The receiving git
 * speaks over two descriptors (its `fd` transport), so that no command line, no address and no helper of anybody's is
 * involved.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>

#include "base/io.h"
#include "base/loop.h"
#include "core/workshop.h"
#include "git/git.h"

#define CHUNK 65536

/* ---- two flows ---- */

struct flow {
	int from, to;
	uint64_t total, max;
	size_t at, n; /* what is read and not yet written */
	char buf[CHUNK];
};

struct pump {
	struct flow out, in; /* of the sandbox, into it */
	int said_fd;         /* what the receiving git has to say */
	struct buf said;
};

static void flow_end(struct flow *f)
{
	fd_close(take_fd(f->from));
	fd_close(take_fd(f->to));
}

static int flow_read(struct flow *f, struct err *e)
{
	ssize_t n = io_read(f->from, f->buf, sizeof(f->buf));

	if (n == -EAGAIN)
		return 0;
	if (n <= 0) {
		flow_end(f);
		return 0;
	}
	f->at = 0;
	f->n = (size_t)n;
	f->total += (uint64_t)n;
	return f->total > f->max ? err_set(e, ERR_DENIED, EFBIG,
					   "the sandbox sent more than %llu MiB of commits",
					   (unsigned long long)(f->max / MIB))
				 : 0;
}

static void flow_write(struct flow *f)
{
	ssize_t n = write(f->to, f->buf + f->at, f->n - f->at);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		flow_end(f);
		return;
	}
	f->at += (size_t)n;
	if (f->at == f->n)
		f->at = f->n = 0;
}

static bool flow_is_open(const struct flow *f)
{
	return f->from >= 0;
}

static struct pollfd flow_poll(const struct flow *f)
{
	if (!flow_is_open(f))
		return (struct pollfd){ .fd = -1 };
	return f->n > 0 ? (struct pollfd){ .fd = f->to, .events = POLLOUT }
			: (struct pollfd){ .fd = f->from, .events = POLLIN };
}

static int flow_step(struct flow *f, short revents, struct err *e)
{
	if (!revents || !flow_is_open(f))
		return 0;
	if (f->n > 0) {
		flow_write(f);
		return 0;
	}
	return flow_read(f, e);
}

static void hear(struct pump *p)
{
	char chunk[4096];
	ssize_t n = io_read(p->said_fd, chunk, sizeof(chunk));

	if (n <= 0)
		fd_close(take_fd(p->said_fd));
	else if (p->said.n + (size_t)n < p->said.max)
		buf_add(&p->said, chunk, (size_t)n);
}

/* Until the receiving git has closed its side. */
static int pump_run(struct pump *p, uint64_t seconds, struct err *e)
{
	uint64_t end = clock_now() + seconds * NS_PER_SEC;
	int r = 0;

	while (r == 0 && (flow_is_open(&p->out) || flow_is_open(&p->in) || p->said_fd >= 0)) {
		struct pollfd v[3] = { flow_poll(&p->out),
				       flow_poll(&p->in),
				       { .fd = p->said_fd >= 0 ? p->said_fd : -1,
					 .events = POLLIN } };
		uint64_t now = clock_now();

		if (now >= end || poll(v, 3, (int)((end - now) / NS_PER_MS) + 1) == 0)
			return err_set(e, ERR_SYSTEM, ETIMEDOUT,
				       "taking commits took longer than %llu s",
				       (unsigned long long)seconds);
		r = flow_step(&p->out, v[0].revents, e);
		if (r == 0)
			r = flow_step(&p->in, v[1].revents, e);
		if (v[2].revents)
			hear(p);
		if (!flow_is_open(&p->in)) /* git has nothing more to ask */
			flow_end(&p->out);
	}
	return r;
}

/* ---- the receiving git ---- */

struct views {
	char *v[3];
};

static void views_free(struct views *w)
{
	for (size_t i = 0; i < ARRAY_LEN(w->v); i++)
		free(w->v[i]);
}

static struct views bare_views(const char *bare)
{
	return (struct views){ { mem_fmt("%s/objects:/repo/objects:rw", bare),
				 mem_fmt("%s/refs:/repo/refs:rw", bare), NULL } };
}

#define ARGS_MAX 64

/* git wants to write beside objects and refs, if only locks: there it finds a place of its own that goes with it. It
 * starts its helpers with pipes of its own for stdin and stdout, so the stream moves out of the way. */
static const char in_the_workshop[] = "set -e; mkdir /tmp/git; cd /tmp/git; ln -s /repo/objects "
				      "objects; ln -s /repo/refs refs\n"
				      "echo 'ref: refs/vitrine/none' >HEAD\n"
				      "printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = "
				      "true\\n' >config\n"
				      "exec 3<&0 4>&1 0</dev/null 1>&2; exec \"$@\"\n";

/* fetch.unpackLimit: always a pack, so that one rename makes the objects appear. */
static int fetch_args(const struct git_take *t, const char *source, const char *argv[ARGS_MAX],
		      struct err *e)
{
	static const char *const head[] = { "sh",
					    "-c",
					    in_the_workshop,
					    "sh",
					    "git",
					    "--git-dir=/tmp/git",
					    "-c",
					    "fetch.fsckObjects=true",
					    "-c",
					    "fetch.unpackLimit=1",
					    "-c",
					    "core.fsync=none",
					    "-c",
					    "safe.directory=*",
					    "fetch",
					    "--quiet",
					    "--no-tags",
					    "--no-write-fetch-head",
					    "--no-auto-maintenance",
					    "--no-recurse-submodules" };
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(head); i++)
		argv[n++] = head[i];
	if (t->prune)
		argv[n++] = "--prune";
	argv[n++] = "--";
	argv[n++] = source;
	for (const char *const *s = t->refspecs; *s; s++) {
		if (n + 1 >= ARGS_MAX)
			return err_set(e, ERR_USAGE, E2BIG, "too many refs at once");
		argv[n++] = *s;
	}
	argv[n] = NULL;
	return 0;
}

static struct job fetch_job(const struct git_take *t, const struct views *w, const char *protocol,
			    const char *const *argv)
{
	struct job j = { .state_dir = t->state_dir,
			 .views = { w->v[0], w->v[1], w->v[2] },
			 .env = { "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
				  "GIT_TERMINAL_PROMPT=0", "LC_ALL=C", protocol },
			 .argv = argv,
			 .seconds = t->seconds ? t->seconds : GIT_TAKE_SECONDS,
			 .in = FD_NONE,
			 .out = FD_NONE,
			 .err = FD_NONE };

	return j;
}

static int finish(const struct git_take *t, int status, const struct buf *said,
		  struct git_taken *ret, struct err *e)
{
	_free_ char *last = NULL;

	if (status != 0) {
		last = workshop_last_line(said);
		return err_set(e, ERR_SYSTEM, EBADMSG, "the commits were not taken: %s",
			       last[0] ? last : "git failed without a word");
	}
	return git_bare_look(t->bare, &ret->refs, e);
}

/* Makes three pipes, or none. */
static int three_pipes(int v[3][2], struct err *e)
{
	for (int i = 0; i < 3; i++)
		if (pipe2(v[i], O_CLOEXEC) < 0) {
			int r = err_sys(e, "pipe");

			while (i-- > 0) {
				fd_close(v[i][0]);
				fd_close(v[i][1]);
			}
			return r;
		}
	return 0;
}

static void no_block(int fd)
{
	(void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

int git_take_stream(const struct git_take *t, int take_from, int take_to, struct git_taken *ret,
		    struct err *e)
{
	_close_ int from = take_from, to = take_to;
	_cleanup_(views_free) struct views w = bare_views(t->bare);
	const char *argv[ARGS_MAX];
	struct pump *p;
	struct job j;
	int pipes[3][2] = { 0 }, status, r = fetch_args(t, "fd::3,4", argv, e);
	pid_t pid;

	if (r == 0)
		r = three_pipes(pipes, e);
	if (r < 0)
		return r;
	j = fetch_job(t, &w, "GIT_ALLOW_PROTOCOL=fd", argv);
	j.in = pipes[0][0];
	j.out = pipes[1][1];
	j.err = pipes[2][1];
	pid = workshop_start(&j, e);
	for (int i = 0; i < 3; i++)
		fd_close(pipes[i][i == 0 ? 0 : 1]);
	p = mem_new(1, sizeof(*p));
	p->out.from = take_fd(from);
	p->out.to = pipes[0][1];
	p->out.max = t->max_bytes ? t->max_bytes : GIT_TAKE_BYTES;
	p->in.from = pipes[1][0];
	p->in.to = take_fd(to);
	p->in.max = GIB;
	p->said_fd = pipes[2][0];
	p->said = BUF(64 * KIB);
	no_block(p->out.to);
	no_block(p->in.to);
	(void)signal(SIGPIPE, SIG_IGN);
	r = pid < 0 ? (int)pid : pump_run(p, j.seconds, e);
	flow_end(&p->out);
	flow_end(&p->in);
	fd_close(p->said_fd);
	status = pid < 0 ? 125 : workshop_wait(pid);
	*ret = (struct git_taken){ .bytes = p->out.total };
	if (r == 0)
		r = finish(t, status, &p->said, ret, e);
	buf_done(&p->said);
	free(p);
	return r;
}

int git_take_from(const struct git_take *t, const char *sandbox, const char *path,
		  struct git_taken *ret, struct err *e)
{
	_free_ char *time = mem_fmt(
		"--timeout=%llu", (unsigned long long)(t->seconds ? t->seconds : GIT_TAKE_SECONDS));
	const char *argv[] = { "exec", sandbox, "--", "git", "upload-pack", time, path, NULL };
	_cleanup_(buf_done) struct buf said = BUF(64 * KIB);
	int pipes[3][2] = { 0 }, status, r = three_pipes(pipes, e);
	struct err ignored = ERR_INIT;
	pid_t pid;

	if (r < 0)
		return r;
	pid = workshop_self(argv, pipes[0][0], pipes[1][1], pipes[2][1], e);
	for (int i = 0; i < 3; i++)
		fd_close(pipes[i][i == 0 ? 0 : 1]);
	if (pid < 0) {
		fd_close(pipes[0][1]);
		fd_close(pipes[1][0]);
		fd_close(pipes[2][0]);
		return pid;
	}
	r = git_take_stream(t, pipes[1][0], pipes[0][1], ret, e);
	(void)workshop_listen((struct listen[]){ { pipes[2][0], &said, true } }, 1, 10, &ignored);
	status = workshop_wait(pid);
	if (r < 0 && status != 0 && said.n > 0) { /* its story is the better one */
		_free_ char *last = workshop_last_line(&said);

		return err_set(e, e->kind, -r, "the git inside '%s' gave no commits: %s", sandbox,
			       last);
	}
	return r;
}

int git_take_host(const struct git_take *t, const char *gitdir, struct git_taken *ret,
		  struct err *e)
{
	_cleanup_(views_free) struct views w = bare_views(t->bare);
	const char *argv[ARGS_MAX];
	struct job j;
	int r = fetch_args(t, "/host.git", argv, e);

	if (r < 0)
		return r;
	w.v[2] = mem_fmt("%s:/host.git:ro", gitdir);
	j = fetch_job(t, &w, "GIT_ALLOW_PROTOCOL=file", argv);
	*ret = (struct git_taken){ 0 };
	r = workshop_run(&j, NULL, e);
	return r < 0 ? err_wrap(e, r, "'%s'", gitdir) : git_bare_look(t->bare, &ret->refs, e);
}
