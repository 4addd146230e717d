/* SPDX-License-Identifier: Apache-2.0 */
/* cli/logs.c - vitrine logs: what a session printed
 *
 * The record is two files at most, output.1 and then output. Following one that turns over, the reader sees another
 * file at the name and goes on there; what it had not yet read of the old one it has open still.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/num.h"
#include "cli/past.h"
#include "keep/record.h"

enum { OPT_FOLLOW = 1, OPT_TAIL, OPT_RAW };

const struct opt logs_opts[] = {
	{ "follow", 'f', NULL, "go on until the session ends", OPT_FOLLOW },
	{ "tail", 'n', "N", "begin with the last N lines", OPT_TAIL },
	{ "raw", 0, NULL, "print the bytes as they are, on a terminal too", OPT_RAW },
	{ NULL, 0, NULL, NULL, 0 },
};

struct logs {
	struct host host;
	bool is_followed, is_raw, has_tail;
	uint64_t tail;
	const char *name;
	uint32_t session;
	int dir;
};

/* Lines and tabs stay what they are; whatever else a terminal would obey is shown. */
static void show(const struct logs *l, const char *p, size_t n, struct buf *out)
{
	if (l->is_raw) {
		buf_add(out, p, n);
		return;
	}
	while (n > 0) {
		const char *stop = p;

		while (stop < p + n && *stop != '\n' && *stop != '\t' && *stop != '\r')
			stop++;
		buf_esc(out, p, (size_t)(stop - p));
		n -= (size_t)(stop - p);
		p = stop;
		if (n == 0)
			break;
		/* A terminal's line ends in both. */
		if (*p != '\r')
			buf_putc(out, *p);
		else if (n > 1 && p[1] != '\n')
			buf_puts(out, "\\r");
		p++;
		n--;
	}
}

static int print_some(const struct logs *l, const char *p, size_t n, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF(64 * MIB);

	show(l, p, n, &out);
	return cli_print(&out, e);
}

static const char *last_lines(const struct buf *b, uint64_t want)
{
	const char *p = b->p + b->n;

	if (want == 0)
		return p;
	if (p > b->p && p[-1] == '\n')
		p--;
	while (p > b->p && (p[-1] != '\n' || --want > 0))
		p--;
	return p;
}

static int read_file(int dir, const char *name, struct buf *b, int *ret_fd, struct err *e)
{
	_close_ int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int r;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, "'%s'", name);
	r = io_read_fd(fd, b, e);
	if (r == 0 && ret_fd)
		*ret_fd = take_fd(fd);
	return r;
}

static bool is_over(const struct logs *l)
{
	_cleanup_(live_done) struct live live = { 0 };
	struct err ignored = ERR_INIT;

	if (live_ask(l->host.state_dir, l->name, &live, &ignored) < 0)
		return false;
	for (size_t i = 0; i < live.n; i++)
		if (live.sessions[i].session == l->session)
			return false;
	return true;
}

static int drain(const struct logs *l, int fd, bool *ret_any, struct err *e)
{
	static char buf[64 * 1024];
	ssize_t n;

	*ret_any = false;
	while ((n = io_read(fd, buf, sizeof(buf))) > 0) {
		int r = print_some(l, buf, (size_t)n, e);

		if (r < 0)
			return r;
		*ret_any = true;
	}
	return 0;
}

static int follow(const struct logs *l, int take_fd, struct err *e)
{
	_close_ int fd = take_fd;
	bool was_over = false, any;

	for (;;) {
		struct stat now, open_one;
		int r = fd >= 0 ? drain(l, fd, &any, e) : 0;

		if (r < 0)
			return r;
		if (fstatat(l->dir, "output", &now, AT_SYMLINK_NOFOLLOW) == 0 &&
		    (fd < 0 || (fstat(fd, &open_one) == 0 && now.st_ino != open_one.st_ino))) {
			fd_close(fd);
			fd = openat(l->dir, "output", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
			continue;
		}
		/* Looked at once more after the end: the last words came before it. */
		if (was_over)
			return 0;
		was_over = is_over(l);
		if (!was_over)
			(void)usleep(100000);
	}
}

static int print_record(struct logs *l, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(2 * RECORD_MAX + MIB);
	const char *from;
	int fd = FD_NONE;
	int r = read_file(l->dir, "output.1", &b, NULL, e);

	if (r == 0)
		r = read_file(l->dir, "output", &b, &fd, e);
	if (r == 0 && b.n > 0) {
		from = l->has_tail ? last_lines(&b, l->tail) : b.p;
		r = print_some(l, from, b.n - (size_t)(from - b.p), e);
	}
	if (r == 0 && l->is_followed)
		return follow(l, fd, e);
	fd_close(fd);
	return r;
}

static int find_session(struct logs *l, struct err *e)
{
	_cleanup_(def_done) struct def d = { 0 };
	_free_ char *path = NULL;
	struct past *v = NULL;
	size_t n = 0;
	_cleanup_(live_done) struct live live = { 0 };
	int x = def_read(l->host.state_dir, l->name, &d, e);

	/* One that is just ending writes its last words down first: asking waits for it. */
	if (x == 0)
		x = live_ask(l->host.state_dir, l->name, &live, e);
	if (x == 0)
		x = past_read(l->host.state_dir, l->name, &v, &n, e);
	if (x == 0 && l->session == 0 && n > 0)
		l->session = v[0].id;
	past_free(v, n);
	if (x < 0)
		return x;
	path = mem_fmt("%s/sandboxes/%s/sessions/%u", l->host.state_dir, l->name, l->session);
	l->dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (l->dir < 0)
		return err_set(e, ERR_NOTFOUND, ENOENT, "'%s' has no record of %s", l->name,
			       l->session ? "this session" : "any session");
	return 0;
}

static int parse(struct logs *l, int argc, char **argv, struct err *e)
{
	struct opts o;
	uint64_t session = 0;
	int id, x = 0;

	*l = (struct logs){ .dir = FD_NONE, .is_raw = !isatty(1), .host = { .ws_fd = FD_NONE } };
	opts_init(&o, logs_opts, argc, argv);
	while (x == 0 && (id = opts_next(&o, e)) != 0) {
		if (id < 0)
			return id;
		if (id == OPT_FOLLOW)
			l->is_followed = true;
		else if (id == OPT_RAW)
			l->is_raw = true;
		else {
			l->has_tail = true;
			x = num_parse(o.value, 0, UINT32_MAX, &l->tail, e);
		}
	}
	if (x == 0 && (argc - o.at < 1 || argc - o.at > 2))
		x = err_set(e, ERR_USAGE, EINVAL, "logs: 'vitrine logs NAME [SESSION]'");
	if (x == 0 && argc - o.at == 2)
		x = num_parse(argv[o.at + 1], 1, UINT32_MAX, &session, e);
	l->name = argv[o.at];
	l->session = (uint32_t)session;
	return x < 0 ? x : host_init(&l->host, NULL, e);
}

int cmd_logs(int argc, char **argv, struct err *e)
{
	struct logs l;
	int x = parse(&l, argc, argv, e);

	if (x == 0)
		x = find_session(&l, e);
	if (x == 0)
		x = print_record(&l, e);
	fd_close(l.dir);
	host_done(&l.host);
	return x;
}
