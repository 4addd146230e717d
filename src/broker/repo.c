/* SPDX-License-Identifier: Apache-2.0 */
/* broker/repo.c - the broker's own bare repository of one URL, and everything git does in it
 *
 * Host git runs here and nowhere else: its configuration is a fixed text, hooks and the user's own configuration are
 * switched off, and nothing of the agent's repository is a file to it. What the agent has comes as a pack stream from a
 * git-upload-pack that runs inside, is checked object by object as it arrives, and lies under refs that are never served.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/path.h"
#include "base/sha256.h"
#include "broker/broker.h"
#include "git/git.h"
#include "sys/confine.h"

#define LIST_MAX_BYTES ((size_t)16 * 1024 * 1024)
#define BLOB_MAX_BYTES ((size_t)8 * 1024 * 1024)
#define SCAN_MAX_BYTES ((size_t)512 * 1024 * 1024)
#define INCOMING "refs/vitrine/incoming"

static const char config_text[] =
	"[core]\n\trepositoryformatversion = 0\n\tbare = true\n\thooksPath = /dev/null\n"
	"\tfsmonitor = false\n\tlogAllRefUpdates = false\n"
	"[transfer]\n\tfsckObjects = true\n\thideRefs = refs/vitrine\n"
	"[fetch]\n\tfsckObjects = true\n\tunpackLimit = 1\n\twriteCommitGraph = false\n"
	"[gc]\n\tauto = 0\n[http]\n\tfollowRedirects = false\n"
	"[protocol \"ext\"]\n\tallow = never\n[uploadpack]\n\tallowFilter = false\n";

bool is_oid(const char *s)
{
	size_t n = strlen(s);

	return (n == 40 || n == 64) && strspn(s, "0123456789abcdef") == n;
}

static int find_git(const struct broker *b, char **ret, struct err *e)
{
	static const char *const places[] = { "/usr/bin/git", "/usr/local/bin/git", "/bin/git" };

	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (access(places[i], X_OK) == 0) {
			*ret = mem_str(places[i]);
			return task_check_program(b, places[i], e);
		}
	return err_set(e, ERR_NOTFOUND, ENOENT, "this host has no git for the broker");
}

/* ---- opening ---- */

static int write_config(const char *dir, struct err *e)
{
	_free_ char *path = mem_fmt("%s/config", dir);
	_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0 || io_write_all(fd, config_text, strlen(config_text)) < 0)
		return err_sys(e, "'%s'", path);
	return 0;
}

/* A header with the token, for git's http.extraHeader. For other kinds of URL there is none. */
static int load_secret(struct repo *r, const char *name, struct err *e)
{
	_free_ char *host = token_host(r->url);

	return host ? token_load(r->b, name, (const char *const[]){ host, NULL }, true, &r->secret,
				 e)
		    : 0;
}

int repo_open(struct repo *r, const struct broker *b, const char *url, const char *secret,
	      struct err *e)
{
	char hex[SHA256_HEX_BYTES];
	int x = path_make(b->dir, 0700);

	*r = (struct repo){ .b = b, .url = url, .lock = FD_NONE };
	sha256_hex(url, strlen(url), hex);
	r->dir = mem_fmt("%s/%.16s.git", b->dir, hex);
	if (x < 0)
		return err_set(e, ERR_SYSTEM, -x, "'%s': %s", b->dir, strerrordesc_np(-x));
	x = find_git(b, &r->git, e);
	if (x < 0)
		return x;
	x = git_bare_make(r->dir, e);
	if (x < 0)
		return x;
	r->lock = open(r->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->lock < 0 || flock(r->lock, LOCK_EX) < 0)
		return err_sys(e, "'%s'", r->dir);
	x = secret ? load_secret(r, secret, e) : 0;
	return x < 0 ? x : write_config(r->dir, e); /* as it should be, whatever it was */
}

void repo_close(struct repo *r)
{
	token_free(&r->secret);
	free(r->dir);
	free(r->git);
	fd_close(r->lock);
	*r = (struct repo){ .lock = FD_NONE };
}

/* ---- running git ---- */

static const char git_ssh[] = "GIT_SSH_COMMAND=ssh -oBatchMode=yes -oForwardAgent=no "
			      "-oClearAllForwardings=yes "
			      "-oPermitLocalCommand=no -oControlMaster=no";
static const char *const git_env[] = {
	"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
	"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=",
	"SSH_ASKPASS=",          "GIT_NO_REPLACE_OBJECTS=1",
	"GIT_OPTIONAL_LOCKS=0",  "LC_ALL=C",
	"GIT_ATTR_NOSYSTEM=1",   "GIT_LITERAL_PATHSPECS=1",
};

struct call {
	const char *argv[48];
	const char *env[24];
	char *scope; /* GIT_CONFIG_KEY_0 */
};

static void call_add(const char **v, size_t max, const char *s)
{
	size_t n = 0;

	while (v[n])
		n++;
	bug_on(n + 1 >= max);
	v[n] = s;
}

/* How git reaches a URL, and what that needs. Errands that reach nothing go like the first. */
static const struct transport {
	const char *head, *allow;
	enum confine_net net;
	uint16_t port;
	bool sees_home; /* ~/.ssh */
} transports[] = {
	{ "/", "GIT_ALLOW_PROTOCOL=file", CONFINE_OFFLINE, 0, false },
	{ "https://", "GIT_ALLOW_PROTOCOL=https", CONFINE_WEB, 443, false },
	{ "http://", "GIT_ALLOW_PROTOCOL=http", CONFINE_WEB, 80, false },
	{ "", "GIT_ALLOW_PROTOCOL=ssh", CONFINE_ONLINE, 0, true },
};

static const struct transport *transport_of(const char *url)
{
	const struct transport *t = transports;

	while (!str_starts(url, t->head))
		t++; /* the last one takes whatever is left */
	return t;
}

static void add_token(struct call *c, const struct repo *r)
{
	c->scope = mem_fmt("GIT_CONFIG_KEY_0=http.%s.extraHeader", r->url);
	call_add(c->env, ARRAY_LEN(c->env), "GIT_CONFIG_COUNT=1");
	call_add(c->env, ARRAY_LEN(c->env), c->scope);
	call_add(c->env, ARRAY_LEN(c->env), r->secret);
}

/* What git is told and where it may go. Only who needs the network gets the token and the way there. */
static struct task make_task(const struct repo *r, const char *const *words, bool is_remote,
			     struct call *c)
{
	const struct transport *t = is_remote ? transport_of(r->url) : transports;
	struct task j = TASK_NONE;

	*c = (struct call){ .argv = { "git", "--git-dir", r->dir } };
	for (; *words; words++)
		call_add(c->argv, ARRAY_LEN(c->argv), *words);
	for (size_t i = 0; i < ARRAY_LEN(git_env); i++)
		call_add(c->env, ARRAY_LEN(c->env), git_env[i]);
	call_add(c->env, ARRAY_LEN(c->env), git_ssh);
	call_add(c->env, ARRAY_LEN(c->env), t->allow);
	if (is_remote && r->secret)
		add_token(c, r);
	j.program = r->git;
	j.argv = c->argv;
	j.env = c->env;
	j.write[0] = r->dir;
	if (is_remote && r->url[0] == '/')
		j.write[1] = r->url;
	j.sees_home = t->sees_home;
	j.net = t->net;
	j.port = url_port(r->url, t->port);
	j.seconds = is_remote ? 300 : 120;
	return j;
}

int repo_git(const struct repo *r, const char *const *words, bool is_remote, struct buf *out,
	     struct buf *errors, struct err *e)
{
	struct call c;
	struct task j = make_task(r, words, is_remote, &c);
	int x;

	j.text = out;
	j.errors = errors;
	x = task_run(r->b, &j, e);
	free(c.scope);
	return x;
}

/* The line that says what went wrong: the first one, less warnings; what git adds behind it is advice. */
static const char *first_complaint(struct buf *errors)
{
	static const char *const noise[] = { "warning:", "Warning:", "hint:" };
	char *line = errors->n ? errors->p : NULL;

	while (line && *line) {
		char *end = strchrnul(line, '\n');
		bool is_noise = end == line;

		for (size_t i = 0; i < ARRAY_LEN(noise); i++)
			is_noise |= str_starts(line, noise[i]);
		if (!is_noise) {
			line[strcspn(line, "\r\n")] = '\0';
			return line;
		}
		line = *end ? end + 1 : end;
	}
	return "failed";
}

static int git_failed(const char *const *words, struct buf *errors, struct err *e)
{
	return err_set(e, ERR_SYSTEM, EIO, "git %s: %.300s", words[0], first_complaint(errors));
}

/* The same, where anything but success is a failure with git's own words. */
static int repo_must(const struct repo *r, const char *const *words, bool is_remote,
		     struct buf *out, struct err *e)
{
	_cleanup_(buf_done) struct buf errors = BUF(64 * KIB);
	int x = repo_git(r, words, is_remote, out, &errors, e);

	return x <= 0 ? x : git_failed(words, &errors, e);
}

int repo_git_cut(const struct repo *r, const char *const *words, struct buf *out, bool *ret_cut,
		 struct err *e)
{
	_cleanup_(buf_done) struct buf errors = BUF(64 * KIB);
	struct call c;
	struct task j = make_task(r, words, false, &c);
	int x;

	j.text = out;
	j.errors = &errors;
	j.is_cut = ret_cut;
	x = task_run(r->b, &j, e);
	return x <= 0 ? x : git_failed(words, &errors, e);
}

/* ---- the remote ---- */

int repo_list(const struct repo *r, struct buf *out, struct err *e)
{
	const char *const words[] = { "ls-remote", "--quiet", "--refs", "--heads",
				      "--tags",    r->url,    NULL };

	return repo_must(r, words, true, out, e);
}

/* HEAD as the upstream has it, so that a clone begins on its branch. */
static void follow_head(const struct repo *r)
{
	_cleanup_(buf_done) struct buf out = BUF(64 * KIB), none = BUF(64 * KIB);
	const char *const ask[] = { "ls-remote", "--quiet", "--symref", r->url, "HEAD", NULL };
	struct err e = ERR_INIT;
	char *tab;

	if (repo_must(r, ask, true, &out, &e) < 0 || !str_starts(buf_cstr(&out), "ref: "))
		return;
	tab = strchr(out.p, '\t');
	if (tab)
		*tab = '\0';
	if (broker_is_ref(out.p + 5) && str_starts(out.p + 5, "refs/heads/"))
		(void)repo_must(r, (const char *const[]){ "symbolic-ref", "HEAD", out.p + 5, NULL },
				false, &none, &e);
}

int repo_update(const struct repo *r, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF(MIB);
	const char *const words[] = { "fetch",
				      "--quiet",
				      "--prune",
				      "--no-auto-gc",
				      "--no-recurse-submodules",
				      "--no-write-fetch-head",
				      r->url,
				      "+refs/heads/*:refs/heads/*",
				      "+refs/tags/*:refs/tags/*",
				      NULL };
	int x = repo_must(r, words, true, &out, e);

	if (x == 0)
		follow_head(r);
	return x;
}

/* ---- the inside ---- */

/* Frames of the connection on one side, bytes of two pipes on the other. It reads what the inside sends, so it gives up
 * everything else first. */
struct bridge {
	int conn, from_git, to_git;
	bool is_asking; /* git may still ask */
	char data[WIRE_FRAME_MAX];
};

static int stop_asking(struct bridge *b)
{
	b->is_asking = false;
	return frame_send(b->conn, WIRE_DATA, NULL, 0);
}

static int carry_in(struct bridge *b)
{
	ssize_t n = io_read(b->from_git, b->data, sizeof(b->data));

	return n > 0 ? frame_send(b->conn, WIRE_DATA, b->data, (size_t)n) : stop_asking(b);
}

static int carry_out(struct bridge *b)
{
	struct frame f;

	if (frame_recv(b->conn, &f, b->data) != 1 || f.kind != WIRE_DATA)
		return -EBADMSG;
	if (f.n == 0)
		fd_close(take_fd(b->to_git));
	else if (io_write_all(b->to_git, b->data, f.n) < 0 && b->is_asking)
		return stop_asking(
			b); /* what git does not want any more is still read, up to its end */
	return 0;
}

static _Noreturn void bridge(int conn, int from_git, int to_git)
{
	static struct bridge b;
	struct err e = ERR_INIT;
	int r = 0;

	b = (struct bridge){
		.conn = conn, .from_git = from_git, .to_git = to_git, .is_asking = true
	};
	(void)signal(SIGPIPE, SIG_IGN);
	if (confine(0, &e) < 0 || confine_prove(0, &e) < 0)
		_exit(1);
	while (r == 0 && (b.is_asking || b.to_git >= 0)) {
		struct pollfd p[2] = { { .fd = b.is_asking ? from_git : -1, .events = POLLIN },
				       { .fd = b.to_git >= 0 ? conn : -1, .events = POLLIN } };

		if (poll(p, 2, -1) < 0 && errno != EINTR)
			r = -errno;
		if (r == 0 && p[0].revents)
			r = carry_in(&b);
		if (r == 0 && p[1].revents)
			r = carry_out(&b);
	}
	_exit(r < 0);
}

static int two_pipes(int v[2][2], struct err *e)
{
	if (pipe2(v[0], O_CLOEXEC) < 0)
		return err_sys(e, "pipe");
	if (pipe2(v[1], O_CLOEXEC) == 0)
		return 0;
	fd_close(v[0][0]);
	fd_close(v[0][1]);
	return err_sys(e, "pipe");
}

int repo_take(const struct repo *r, const char *const *oids, size_t n, struct err *e)
{
	const char *specs[17] = { NULL };
	struct git_take t = { .state_dir = r->b->state_dir,
			      .bare = r->dir,
			      .refspecs = specs,
			      .max_bytes = GIB,
			      .seconds = 300 };
	struct git_taken taken = { 0 };
	int pipes[2][2], x = frame_send(r->b->conn, WIRE_SERVE, NULL, 0), status = 0;
	pid_t pid;

	bug_on(n >= ARRAY_LEN(specs));
	if (x < 0)
		return err_set(e, ERR_SYSTEM, -x, "the inside hung up");
	x = two_pipes(pipes, e);
	if (x < 0)
		return x;
	pid = fork();
	if (pid == 0) {
		fd_close(pipes[0][0]);
		fd_close(pipes[1][1]);
		bridge(r->b->conn, pipes[1][0], pipes[0][1]);
	}
	fd_close(pipes[0][1]);
	fd_close(pipes[1][0]);
	for (size_t i = 0; i < n; i++)
		specs[i] = mem_fmt("+%s:" INCOMING "/%zu", oids[i], i);
	x = git_take_stream(&t, pipes[0][0], pipes[1][1], &taken, e);
	git_refs_done(&taken.refs);
	for (size_t i = 0; i < n; i++)
		free((void *)(uintptr_t)specs[i]);
	if (pid > 0 && (waitpid(pid, &status, 0) != pid || status != 0) && x == 0)
		x = err_set(e, ERR_DENIED, EBADMSG, "the inside did not keep to the protocol");
	return pid < 0 ? err_sys(e, "fork") : x;
}

int repo_serve(const struct repo *r, struct err *e)
{
	const char *const words[] = { "upload-pack", "--strict", "--timeout=60", r->dir, NULL };
	struct call c;
	struct task j = make_task(r, words, false, &c);

	j.in = j.out = r->b->conn;
	j.seconds = 600;
	return task_run(r->b, &j, e);
}

/* ---- questions about commits ---- */

int repo_is_ancestor(const struct repo *r, const char *old, const char *new, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF(64 * KIB), errors = BUF(64 * KIB);
	const char *const words[] = { "merge-base", "--is-ancestor", old, new, NULL };
	int x = repo_git(r, words, false, &out, &errors, e);

	/* 128: the old one is not in what was taken, so the new one does not build on it. */
	return x < 0 ? x : x == 0;
}

static int make_text(const struct buf *b)
{
	_close_ int fd = memfd_create("vitrine-broker", MFD_CLOEXEC);

	if (fd < 0 || io_write_all(fd, b->p, b->n) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return -EIO;
	return take_fd(fd);
}

/* "OID [PATH]" lines of everything new. */
static int list_new(const struct repo *r, const char *new, const char *const *known,
		    struct buf *out, struct err *e)
{
	_cleanup_(buf_done) struct buf in = BUF(LIST_MAX_BYTES), errors = BUF(64 * KIB);
	const char *const words[] = { "rev-list", "--objects", "--ignore-missing", "--stdin",
				      NULL };
	struct call c;
	struct task j = make_task(r, words, false, &c);
	_close_ int fd = FD_NONE;
	int x;

	buf_printf(&in, "%s\n", new);
	for (; *known; known++)
		buf_printf(&in, "^%s\n", *known);
	fd = in.is_over ? FD_NONE : make_text(&in);
	if (fd < 0)
		return err_set(e, ERR_SYSTEM, EIO, "too many refs");
	j.in = fd;
	j.text = out;
	j.errors = &errors;
	x = task_run(r->b, &j, e);
	return x <= 0 ? x : err_set(e, ERR_SYSTEM, EIO, "git rev-list: %.200s", buf_cstr(&errors));
}

/* The path of an object in that list. */
static void name_object(const struct buf *list, const char *oid, size_t n, char *to, size_t size)
{
	const char *at = memmem(list->p, list->n, oid, n);
	size_t len;

	(void)snprintf(to, size, "a commit");
	if (at == NULL || at[n] != ' ')
		return;
	len = strcspn(at + n + 1, "\n");
	if (len)
		(void)snprintf(to, size, "%.*s", len < 120 ? (int)len : 120, at + n + 1);
}

/* One object's bytes; `line` begins with its name. */
static int scan_object(const char *p, size_t n, const char *line, const struct buf *list,
		       struct err *e)
{
	const char *kind = scan_secret(p, n);
	char where[128];

	if (kind == NULL && !scan_is_lfs(p, n))
		return 0;
	name_object(list, line, strcspn(line, " \n"), where, sizeof(where));
	if (kind)
		return err_set(e, ERR_DENIED, EPERM,
			       "secret found: something like a %s in %s; take it out of every new "
			       "commit, or have a person say 'no-scan'",
			       kind, where);
	return err_set(e, ERR_DENIED, EPERM,
		       "%s is a pointer of git-lfs, whose content does not go through the broker; "
		       "commit "
		       "the file itself, or have a person say 'no-scan' and push the content from "
		       "outside",
		       where);
}

/* The output of `cat-file --batch`: "OID TYPE SIZE\n", the bytes, "\n". */
static int scan_batch(const struct buf *all, const struct buf *list, struct err *e)
{
	for (size_t at = 0; at < all->n;) {
		const char *line = all->p + at, *end = memchr(line, '\n', all->n - at),
			   *size = NULL;
		size_t n = 0, head;
		int x;

		if (end == NULL)
			break;
		head = (size_t)(end - line) + 1;
		for (const char *p = line; p < end; p++)
			size = *p == ' ' ? p + 1 : size;
		for (const char *p = size;
		     p && p < end && *p >= '0' && *p <= '9' && n < SCAN_MAX_BYTES; p++)
			n = n * 10 + (size_t)(*p - '0');
		if (size == NULL || at + head + n > all->n)
			return err_set(e, ERR_SYSTEM, EBADMSG,
				       "git cat-file gave what cannot be read");
		x = scan_object(end + 1, n < BLOB_MAX_BYTES ? n : BLOB_MAX_BYTES, line, list, e);
		if (x < 0)
			return x;
		at += head + n + 1;
	}
	return 0;
}

int repo_scan(const struct repo *r, const char *new, const char *const *known, struct err *e)
{
	_cleanup_(buf_done) struct buf list = BUF(LIST_MAX_BYTES), oids = BUF(LIST_MAX_BYTES),
				       all = BUF(SCAN_MAX_BYTES), errors = BUF(64 * KIB);
	const char *const words[] = { "cat-file", "--batch", "--buffer", NULL };
	struct call c;
	struct task j = make_task(r, words, false, &c);
	_close_ int fd = FD_NONE;
	int x = list_new(r, new, known, &list, e);

	if (x < 0)
		return x;
	for (const char *p = buf_cstr(&list); *p;) {
		size_t n = strcspn(p, "\n");

		buf_printf(&oids, "%.*s\n", (int)strcspn(p, " \n"), p);
		p += n + (p[n] == '\n');
	}
	fd = make_text(&oids);
	if (fd < 0)
		return err_set(e, ERR_SYSTEM, EIO, "no memory file");
	j.in = fd;
	j.text = &all;
	j.errors = &errors;
	x = task_run(r->b, &j, e);
	if (x > 0)
		return err_set(e, ERR_SYSTEM, EIO, "git cat-file: %.200s", buf_cstr(&errors));
	return x < 0 ? err_wrap(e, x, "what is new cannot be searched for secrets")
		     : scan_batch(&all, &list, e);
}
