/* SPDX-License-Identifier: Apache-2.0 */
/* cli/cp.c - vitrine cp: files out of a sandbox and into it
 *
 * Inside, init resolves every path and hands out descriptors (engine/native/init_file.c); outside, we work on
 * descriptors of directories and create what is not there. So nothing inside can bend a path of ours, and a link is
 * never followed on either side, nor written through: a new file is made beside the old one and renamed over it.
 * Behind other walls what comes is not the file but a socket with its bytes, or a directory's names (remote/link.h).
 * Devices, sockets, fifos, and links that lead out of what is copied are left out and named.
 *
 * What is on its way out is first copied whole to a directory of ours in the sandbox's folder. There it can change no more,
 * is held to the rules of view/outcome, and goes to its place file by file; what they object to is left out and named. A
 * single file that was named is what the user meant. On its way in, to a workspace that is written in place, the same rules
 * say beforehand what the quarantine would take.
 */
#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/listing.h"
#include "base/loop.h"
#include "base/path.h"
#include "base/sabotage.h"
#include "cli/cp_judge.h"
#include "cli/live.h"
#include "core/layers.h"

#define DEPTH_MAX 100
#define LEFT_OUT_NAMED 100

const struct opt cp_opts[] = {
	{ NULL, 0, NULL, NULL, 0 },
};

struct copy {
	int conn;
	const char *outside;   /* what the caller named */
	const char *workspace; /* of the sandbox: what it may have filled with links */
	uint64_t bytes, files, left_out;
	const struct host *host;
	const struct def *def;
	struct cp_judge *judge; /* of what goes in; NULL: everything may */
	size_t base;            /* length of the path that it goes to */
	uint64_t began_ns, told_ns;
	char tmp[32]; /* name of a file that is not complete yet */
	/* What was said of the last one that we got. */
	mode_t mode;
	uint64_t size;
};

/* ---- asking init ---- */

/* fd or 0, or -errno. */
static int ask(struct copy *c, enum file_op op, mode_t mode, const char *path, const char *second)
{
	_cleanup_(buf_done) struct buf b = BUF(8 * KIB);
	struct keep_msg m = { .type = KEEP_FILE, .a = (int32_t)op, .b = (int32_t)mode };
	struct err ignored = ERR_INIT;
	_close_ int request = FD_NONE;
	int fds[PACKET_FDS];

	/* For the record: what of ours it is about. */
	(void)snprintf(m.err.msg, sizeof(m.err.msg), "%s", c->outside ? c->outside : "");
	buf_add(&b, path, strlen(path) + 1);
	if (second)
		buf_add(&b, second, strlen(second) + 1);
	if (strlen(path) >= 4096 || (second && strlen(second) >= 4096))
		return -ENAMETOOLONG;
	request = request_seal(&b, &ignored);
	if (request < 0 || keep_send(c->conn, &m, &request, 1) < 0)
		return -EPIPE;
	do {
		if (keep_recv(c->conn, &m, fds) != 1 || m.type == KEEP_ENDED)
			return -EPIPE;
		for (int i = 1; i < PACKET_FDS; i++)
			fd_close(fds[i]);
	} while (m.type != KEEP_FILE_DONE);
	if (m.a != 0) {
		fd_close(fds[0]);
		return -(m.a > 0 && m.a < 4096 ? m.a : EIO);
	}
	c->mode = (mode_t)m.b;
	c->size = m.v[VALUE_FILE_SIZE];
	return fds[0] >= 0 ? fds[0] : 0;
}

/* What it is that we got: the thing itself, or a socket with its bytes. */
struct found {
	int fd;
	bool is_stream;
	mode_t mode;
	uint64_t size;
};

static int look(const struct copy *c, int fd, struct found *ret)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	*ret = (struct found){ .fd = fd, .mode = st.st_mode, .size = (uint64_t)st.st_size };
	if (!S_ISSOCK(st.st_mode))
		return 0;
	ret->is_stream = true;
	ret->mode = c->mode;
	ret->size = c->size;
	return S_ISREG(c->mode) || S_ISDIR(c->mode) ? 0 : -EINVAL;
}

/* ---- both ways ---- */

static void leave_out(struct copy *c, const char *path, const char *why)
{
	_free_ char *text = mem_fmt("left out '%s': %s", path, why);

	c->left_out++;
	if (c->left_out <= LEFT_OUT_NAMED)
		cli_complain(text);
}

static void tell_left_out(const struct copy *c)
{
	_free_ char *text = mem_fmt("%llu left out in all, of which the first %d are named above",
				    (unsigned long long)c->left_out, LEFT_OUT_NAMED);

	if (c->left_out > LEFT_OUT_NAMED)
		cli_complain(text);
}

static void tell_progress(struct copy *c)
{
	uint64_t now = clock_now();

	if (!isatty(2) || now - c->began_ns < NS_PER_SEC || now - c->told_ns < NS_PER_SEC / 4)
		return;
	c->told_ns = now;
	(void)fprintf(stderr, "\r%llu files, %llu MiB ", (unsigned long long)c->files,
		      (unsigned long long)(c->bytes / MIB));
}

/* As much as the file had when we opened it: one that grows while we read must not keep us here. */
static int pour(struct copy *c, int from, int to, uint64_t most, bool is_stream)
{
	static char buf[256 * 1024];

	while (most > 0) {
		size_t want = most < sizeof(buf) ? (size_t)most : sizeof(buf);
		ssize_t n = io_read(from, buf, want);
		int r;

		if (n == 0 && is_stream)
			return -ESTALE; /* it became shorter, or the sandbox has ended */
		if (n <= 0)
			return (int)n;
		r = io_write_all(to, buf, (size_t)n);
		if (r < 0)
			return r;
		most -= (uint64_t)n;
		c->bytes += (uint64_t)n;
		tell_progress(c);
	}
	return 0;
}

/* A file of the sandbox: its holes stay holes, and cost nothing however long they are. */
static int pour_file(struct copy *c, const struct found *f, int to)
{
	off_t size = (off_t)f->size, data, hole = 0;

	if (f->is_stream)
		return pour(c, f->fd, to, f->size, true);
	while (hole < size && (data = lseek(f->fd, hole, SEEK_DATA)) >= 0 && data < size) {
		int r;

		hole = lseek(f->fd, data, SEEK_HOLE);
		if (hole < 0 || hole > size)
			hole = size;
		if (lseek(f->fd, data, SEEK_SET) < 0 || lseek(to, data, SEEK_SET) < 0)
			return -errno;
		r = pour(c, f->fd, to, (uint64_t)(hole - data), false);
		if (r < 0)
			return r;
	}
	return ftruncate(to, size) < 0 ? -errno : 0;
}

static int tmp_name(struct copy *c)
{
	uint64_t n;

	if (getrandom(&n, sizeof(n), 0) != (ssize_t)sizeof(n))
		return -errno;
	(void)snprintf(c->tmp, sizeof(c->tmp), ".vitrine-cp-%016llx", (unsigned long long)n);
	return 0;
}

/* The directory a path of the caller's stands in. What the sandbox could have filled with links is not trusted. */
static int open_parent(const struct copy *c, const char *path, char **ret_name, struct err *e)
{
	_free_ char *cwd = getcwd(NULL, 0);
	_free_ char *full = path_join(cwd ? cwd : "/", path);
	_free_ char *parent = path_parent(full);
	_free_ char *real = NULL;
	int r = path_real(parent, &real, e), fd;

	if (r < 0)
		return r;
	if (path_is_beneath(parent, c->workspace) && !str_eq(parent, real))
		return err_set(e, ERR_DENIED, ELOOP,
			       "'%.200s' is reached through a link in the workspace; name '%.200s' "
			       "if you mean it",
			       path, real);
	fd = path_openat2(AT_FDCWD, real, O_RDONLY | O_DIRECTORY,
			  RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	if (fd < 0)
		return err_set(e, ERR_SYSTEM, -fd, "'%.200s': %s", real, strerrordesc_np(-fd));
	*ret_name = mem_str(path_name(full));
	return fd;
}

/* A link that stays in the tree whose top is `depth` levels up. */
static bool is_inner_link(const char *target, int depth)
{
	int level = depth;

	if (target[0] == '/')
		return false;
	for (const char *p = target; *p;) {
		size_t n = strcspn(p, "/");

		if (n == 2 && p[0] == '.' && p[1] == '.')
			level--;
		else if (n > 0 && !(n == 1 && p[0] == '.'))
			level++;
		if (level < 0)
			return false;
		p += n;
		while (*p == '/')
			p++;
	}
	return true;
}

static const char *why_not(int r)
{
	return r == -EINVAL ? "not a plain file or directory" : strerrordesc_np(-r);
}

/* ---- out ---- */

static int out_file(struct copy *c, const struct found *f, int dir, const char *name)
{
	_close_ int to = FD_NONE;
	int r = tmp_name(c);

	if (r < 0)
		return r;
	to = openat(dir, c->tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return -errno;
	r = pour_file(c, f, to);
	if (r == 0 && fchmod(to, f->mode & 0777) < 0)
		r = -errno;
	if (r == 0 && renameat(dir, c->tmp, dir, name) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dir, c->tmp, 0);
	else
		c->files++;
	return r;
}

/* What stands in a directory: that itself, or what was said of it. */
struct names {
	DIR *d;
	struct buf text;
	struct listing at;
	const char *name, *target; /* the one we are at, and what it leads to where that was said */
};

static void names_done(struct names *en)
{
	if (en->d)
		(void)closedir(en->d);
	buf_done(&en->text);
}

static int read_names(int fd, struct buf *b)
{
	char chunk[16 * 1024];
	ssize_t n;

	while ((n = io_read(fd, chunk, sizeof(chunk))) > 0)
		buf_add(b, chunk, (size_t)n);
	return n < 0 ? (int)n : b->is_over ? -EMSGSIZE : 0;
}

static int names_open(struct names *n, const struct found *take)
{
	int r = 0;

	*n = (struct names){ .text = BUF(LISTING_MAX) };
	if (take->is_stream) {
		r = read_names(take->fd, &n->text);
		n->at = (struct listing){ n->text.p, n->text.n };
		fd_close(take->fd);
	} else if ((n->d = fdopendir(take->fd)) == NULL) {
		r = -errno;
		fd_close(take->fd);
	}
	return r;
}

/* 1: at another; 0: no more; -errno. */
static int names_next(struct names *n)
{
	struct dirent *found;

	if (n->d == NULL)
		return listing_next(&n->at, &n->name, &n->target);
	do {
		found = readdir(n->d);
	} while (found && (str_eq(found->d_name, ".") || str_eq(found->d_name, "..")));
	n->name = found ? found->d_name : NULL;
	n->target = "";
	return found != NULL;
}

static void out_link(struct copy *c, const struct names *at, const char *path, int dir, int depth)
{
	char target[4096];
	ssize_t n;

	(void)snprintf(target, sizeof(target), "%s", at->target);
	n = at->d ? readlinkat(dirfd(at->d), at->name, target, sizeof(target) - 1)
		  : (ssize_t)strlen(target);
	target[n > 0 ? n : 0] = '\0';
	if (n <= 0 || !is_inner_link(target, depth))
		leave_out(c, path, "a link that leads out of what is copied");
	else if (symlinkat(target, dir, at->name) < 0)
		leave_out(c, path, strerrordesc_np(errno));
}

static int out_any(struct copy *c, const char *path, int dir, const char *name, int depth);

static int out_names(struct copy *c, struct names *n, const char *path, int to, int depth)
{
	int r;

	while ((r = names_next(n)) == 1) {
		_free_ char *below = mem_fmt("%s/%s", str_eq(path, "/") ? "" : path, n->name);

		r = out_any(c, below, to, n->name, depth + 1);
		if (r == -ELOOP)
			out_link(c, n, below, to, depth);
		else if (r == -EPIPE || r == -ENOSPC)
			return r;
		else if (r < 0)
			leave_out(c, below, why_not(r));
	}
	return r;
}

static int out_dir(struct copy *c, const struct found *take, const char *path, int dir,
		   const char *name, int depth)
{
	_cleanup_(names_done) struct names n = { 0 };
	_close_ int to = FD_NONE;
	int r = names_open(&n, take);

	if (r < 0)
		return r;
	if ((mkdirat(dir, name, 0755) < 0 && errno != EEXIST) ||
	    (to = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
		return -errno;
	return out_names(c, &n, path, to, depth);
}

static int out_any(struct copy *c, const char *path, int dir, const char *name, int depth)
{
	_close_ int fd = depth > DEPTH_MAX ? -ENAMETOOLONG : ask(c, FILE_OPEN, 0, path, NULL);
	struct found f = { .fd = FD_NONE };
	int r;

	tell_progress(c);
	r = fd < 0 ? fd : look(c, fd, &f);
	if (r < 0)
		return r;
	if (!S_ISDIR(f.mode))
		return out_file(c, &f, dir, name);
	f.fd = take_fd(fd);
	return out_dir(c, &f, path, dir, name, depth);
}

/* DEST is a directory that is there: then the copy goes into it, under its own name. */
static int open_dest(const struct copy *c, const char *dest, const char *own_name, char **ret_name,
		     struct err *e)
{
	_close_ int parent = open_parent(c, dest, ret_name, e);
	_close_ int into = FD_NONE;
	struct stat st;

	if (parent < 0)
		return parent;
	if (str_eq(*ret_name, "/") || str_eq(*ret_name, ""))
		return err_set(e, ERR_USAGE, EINVAL, "'%.200s' cannot be written", dest);
	if (fstatat(parent, *ret_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
		return err_set(e, ERR_DENIED, ELOOP,
			       "'%.200s' is a link; name what it leads to if you mean it", dest);
	into = openat(parent, *ret_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (into < 0)
		return take_fd(parent);
	free(*ret_name);
	*ret_name = mem_str(own_name);
	return take_fd(into);
}

/* ---- from the directory of ours to its place ---- */

struct placing {
	struct copy *c;
	struct cp_judge *j;
	const char *inside; /* what was named */
};

static void object(const struct placing *p, const char *below, const char *why)
{
	_free_ char *path = below[0] ? mem_fmt("%s/%s", p->inside, below) : mem_str(p->inside);
	_free_ char *text = mem_fmt("%s: programs on the host read or run this; name this very "
				    "file "
				    "to copy it",
				    why);

	leave_out(p->c, path, text);
}

/* Both set errno. The directory of ours may lie on another file system. */
static int move_link(int from, int to, const char *name)
{
	char target[4096];
	ssize_t n = readlinkat(from, name, target, sizeof(target) - 1);

	if (n < 0)
		return -1;
	target[n] = '\0';
	return symlinkat(target, to, name);
}

static int move_file(struct copy *c, int from, int to, const char *name, const struct stat *st)
{
	struct found f = { .mode = st->st_mode, .size = (uint64_t)st->st_size };
	_close_ int fd = FD_NONE;
	int r;

	if (renameat(from, name, to, name) == 0)
		return 0;
	if (errno != EXDEV)
		return -1;
	fd = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	f.fd = fd;
	r = fd < 0 ? -errno : out_file(c, &f, to, name);
	errno = r < 0 ? -r : 0;
	return r < 0 ? -1 : 0;
}

static int settle(const struct placing *p, int from, int to, const char *name, const char *below);

static int settle_dir(const struct placing *p, int from, int to, const char *name,
		      const char *below)
{
	int fd = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), r = 0;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	_close_ int into = FD_NONE;
	struct dirent *en;

	if (d == NULL) {
		r = -errno;
		fd_close(fd);
		return r;
	}
	if ((mkdirat(to, name, 0755) < 0 && errno != EEXIST) ||
	    (into = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
		r = -errno;
	while (r == 0 && (en = readdir(d)) != NULL) {
		_free_ char *next =
			below[0] ? mem_fmt("%s/%s", below, en->d_name) : mem_str(en->d_name);

		if (!str_eq(en->d_name, ".") && !str_eq(en->d_name, ".."))
			r = settle(p, dirfd(d), into, en->d_name, next);
	}
	(void)closedir(d);
	return r;
}

static int settle(const struct placing *p, int from, int to, const char *name, const char *below)
{
	_free_ char *why = sabotaged("cp-judge") ? NULL : cp_judge_why(p->j, below);
	struct stat st;

	if (why) {
		object(p, below, why);
		return 0;
	}
	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode)) {
		int r = settle_dir(p, from, to, name, below);

		if (r < 0)
			leave_out(p->c, below, strerrordesc_np(-r));
		return 0;
	}
	if (S_ISLNK(st.st_mode) ? move_link(from, to, name) < 0
				: move_file(p->c, from, to, name, &st) < 0)
		leave_out(p->c, below, strerrordesc_np(errno));
	return 0;
}

static int place(struct copy *c, const char *path, int stage, int dir, const char *name,
		 struct err *e)
{
	_cleanup_(cp_judge_done) struct cp_judge j = CP_JUDGE_NONE;
	const struct cp_judged in = {
		.host = c->host, .def = c->def, .dest = dir, .to = name, .from = stage, .name = name
	};
	const struct placing p = { .c = c, .j = &j, .inside = path };
	struct stat st;
	int r;

	if (fstatat(stage, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, "'%.200s'", path);
	if (!S_ISDIR(st.st_mode))
		return move_file(c, stage, dir, name, &st) < 0 ? err_sys(e, "'%.200s'", name) : 0;
	r = cp_judge_begin(&j, &in, e);
	if (r == 0)
		r = settle(&p, stage, dir, name, "");
	return r;
}

static int copy_out(struct copy *c, const char *path, const char *dest, struct err *e)
{
	_free_ char *name = NULL;
	_free_ char *own = NULL;
	_close_ int dir = open_dest(c, dest, path_name(path), &name, e), stage = FD_NONE;
	int r;

	if (dir < 0)
		return dir;
	r = tmp_name(c);
	own = mem_fmt("%s/sandboxes/%s/%s", c->host->state_dir, c->def->name, c->tmp);
	if (r < 0 || mkdir(own, 0700) < 0)
		return err_sys(e, "'%.200s'", own);
	stage = open(own, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = stage < 0 ? -errno : out_any(c, path, stage, name, 0);
	if (r == 0) {
		r = place(c, path, stage, dir, name, e);
		(void)path_remove(AT_FDCWD, own); /* what was left out */
		return r;
	}
	(void)path_remove(AT_FDCWD, own); /* half of it */
	if (r == -ELOOP)
		return err_set(e, ERR_DENIED, ELOOP,
			       "'%.200s' is a link inside; name what it leads to", path);
	return r < 0 ? err_set(e, r == -ENOENT ? ERR_NOTFOUND : ERR_SYSTEM, -r, "'%.200s': %s",
			       path, why_not(r))
		     : 0;
}

/* ---- in ---- */

/* Written through a socket: what became of it is said when all has been said. */
static int in_said(int to)
{
	struct stat st;
	uint32_t error;

	if (fstat(to, &st) < 0 || !S_ISSOCK(st.st_mode))
		return 0;
	if (shutdown(to, SHUT_WR) < 0 || io_read(to, &error, sizeof(error)) != sizeof(error))
		return -EPIPE;
	return error > 0 && error < 4096 ? -(int)error : error ? -EIO : 0;
}

static int in_file(struct copy *c, int from, const char *path, const struct stat *st)
{
	_free_ char *dir = path_parent(path);
	_free_ char *tmp = NULL;
	_close_ int to = FD_NONE;
	int r = tmp_name(c);

	if (r < 0)
		return r;
	tmp = mem_fmt("%s/%s", str_eq(dir, "/") ? "" : dir, c->tmp);
	to = ask(c, FILE_CREATE, st->st_mode & 0777, tmp, NULL);
	if (to < 0)
		return take_fd(to);
	r = pour(c, from, to, (uint64_t)st->st_size, false);
	if (r == 0)
		r = in_said(to);
	if (r == 0)
		r = ask(c, FILE_RENAME, 0, tmp, path);
	if (r < 0)
		(void)ask(c, FILE_UNLINK, 0, tmp, NULL);
	else
		c->files++;
	return r;
}

/* The quarantine would take it, and nobody would know where it went. */
static bool is_objected(struct copy *c, const char *path)
{
	const char *below = path + c->base;
	_free_ char *why = c->judge ? cp_judge_why(c->judge, below + (*below == '/')) : NULL;
	_free_ char *text = why ? mem_fmt("%s: in a workspace that is written in place this would "
					  "be "
					  "quarantined; copy it there on the host",
					  why)
				: NULL;

	if (text)
		leave_out(c, path, text);
	return text != NULL;
}

static int in_any(struct copy *c, int dir, const char *name, const char *path, int depth);

static int in_dir(struct copy *c, int take_from, const char *path, mode_t mode, int depth)
{
	DIR *d = fdopendir(take_from);
	struct dirent *en;
	int r;

	if (d == NULL) {
		fd_close(take_from);
		return -errno;
	}
	r = ask(c, FILE_MKDIR, mode, path, NULL);
	r = r == -EEXIST ? 0 : r;
	while (r >= 0 && (en = readdir(d)) != NULL) {
		_free_ char *below = mem_fmt("%s/%s", path, en->d_name);

		if (str_eq(en->d_name, ".") || str_eq(en->d_name, ".."))
			continue;
		r = in_any(c, dirfd(d), en->d_name, below, depth + 1);
		if (r < 0 && r != -EPIPE && r != -ENOSPC) {
			leave_out(c, below, r == -ELOOP ? "a link" : why_not(r));
			r = 0;
		}
	}
	(void)closedir(d);
	return r;
}

static int in_any(struct copy *c, int dir, const char *name, const char *path, int depth)
{
	_close_ int fd = FD_NONE;
	struct stat st, now;

	tell_progress(c);
	if (depth > DEPTH_MAX)
		return -ENAMETOOLONG;
	if (is_objected(c, path))
		return 0;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISLNK(st.st_mode))
		return -ELOOP;
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return -EINVAL;
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &now) < 0)
		return -errno;
	if (now.st_ino != st.st_ino || now.st_dev != st.st_dev)
		return -ESTALE;
	return S_ISDIR(now.st_mode) ? in_dir(c, take_fd(fd), path, now.st_mode, depth)
				    : in_file(c, fd, path, &now);
}

static int judge_in(struct copy *c, struct cp_judge *j, int from, const char *name,
		    const char *dest, struct err *e)
{
	_free_ char *parent = path_parent(dest);
	_close_ int dir = FD_NONE;
	struct layers l;
	struct cp_judged in = {
		.host = c->host, .def = c->def, .to = path_name(dest), .from = from, .name = name
	};
	int r;

	if (!path_is_beneath(dest, c->workspace) || str_eq(dest, c->workspace))
		return 0;
	r = layers_read(c->host->state_dir, c->def->name, &l, e);
	if (r < 0)
		return r;
	r = l.ws.n > 0; /* it is held back there */
	layers_done(&l);
	dir = r ? FD_NONE : open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return 0; /* or there is no such directory, which init will say */
	in.dest = dir;
	r = cp_judge_begin(j, &in, e);
	if (r == 0) {
		c->judge = j;
		c->base = strlen(dest);
	}
	return r;
}

static int copy_in(struct copy *c, const char *source, const char *path, struct err *e)
{
	_cleanup_(cp_judge_done) struct cp_judge j = CP_JUDGE_NONE;
	_free_ char *name = NULL;
	_free_ char *dest = mem_str(path);
	_close_ int dir = open_parent(c, source, &name, e);
	_close_ int there = FD_NONE;
	struct found f = { .fd = FD_NONE };
	int r;

	if (dir < 0)
		return dir;
	bug_on(name == NULL);
	c->outside = NULL; /* this is a look, not a copy */
	there = ask(c, FILE_OPEN, 0, path, NULL);
	c->outside = source;
	if (there > 0 && look(c, there, &f) == 0 && S_ISDIR(f.mode)) {
		free(dest);
		dest = path_join(path, name);
	}
	r = judge_in(c, &j, dir, name, dest, e);
	if (r < 0)
		return r;
	r = in_any(c, dir, name, dest, 0);
	c->judge = NULL;
	if (r == -ELOOP)
		return err_set(e, ERR_DENIED, ELOOP,
			       "'%.200s' is a link; name what it leads to if you mean it", source);
	return r < 0 ? err_set(e, r == -ENOENT ? ERR_NOTFOUND : ERR_SYSTEM, -r,
			       "'%.200s' to '%.200s': %s", source, dest, why_not(r))
		     : 0;
}

/* ---- words ---- */

/* "NAME:PATH"; a path that looks so is written "./a:b". */
static bool split(const char *word, char **ret_name, char **ret_path)
{
	size_t n = strcspn(word, ":");
	_free_ char *name = mem_strn(word, n);

	if (word[n] != ':' || !def_is_name(name))
		return false;
	*ret_name = take(name);
	*ret_path = mem_str(word + n + 1);
	return true;
}

/* Where a flag of the definition shows a place of the host inside: "--write=DIR", "--read=DIR", or
 * "--volume=HOST[:INSIDE][:ro]". NULL: it shows none. */
static char *shown_place(const char *flag)
{
	const char *value = strchr(flag, '=');
	size_t n;

	if (value == NULL)
		return NULL;
	value++;
	if (str_starts(flag, "--write=") || str_starts(flag, "--read="))
		return mem_str(value);
	if (!str_starts(flag, "--volume="))
		return NULL;
	n = strcspn(value, ":");
	if (value[n] == ':' && value[n + 1] == '/') {
		value += n + 1;
		n = strcspn(value, ":");
	}
	return mem_strn(value, n);
}

/* Does a flag show a place of the host at or above this path? */
static bool is_granted(const struct def *d, const char *path)
{
	for (size_t i = 0; i < d->n_flags; i++) {
		_free_ char *place = shown_place(d->flags[i]);

		if (place && place[0] == '/' && path_is_beneath(path, place))
			return true;
	}
	return false;
}

/* Started for the copy alone, the sandbox ends with it, and what is kept in memory goes then. */
static int check_lasts(const struct host *h, const struct def *d, const char *path, struct err *e)
{
	static const char *const memory[] = { "/tmp", "/var/tmp", "/dev", "/run", "/proc" };
	_close_ int conn = FD_NONE;
	struct err ignored = ERR_INIT;
	bool is_memory = false;

	for (size_t i = 0; i < ARRAY_LEN(memory); i++)
		is_memory |= path_is_beneath(path, memory[i]);
	if (!is_memory || path_is_beneath(path, d->workspace) ||
	    (h->home && path_is_beneath(path, h->home)) || is_granted(d, path))
		return 0;
	conn = keep_connect(h->state_dir, d->name, &ignored);
	if (conn >= 0)
		return 0;
	return err_set(e, ERR_CONFLICT, ESRCH,
		       "cp: '%.100s' is on a temporary file system, and sandbox '%s' is not "
		       "running: the copy would be deleted when cp ends. 'vitrine start %s' first, "
		       "or copy into its home or workspace",
		       path, d->name, d->name);
}

static int copy_with(const struct host *h, const struct def *d, const char *inside,
		     const char *outside, bool is_out, struct err *e)
{
	/* As in the sandbox itself: what is not absolute is seen from the workspace. */
	_free_ char *path = path_join(d->workspace, inside);
	int lasts = is_out ? 0 : check_lasts(h, d, path, e);
	struct copy c = { .conn = lasts < 0 ? lasts : live_hold(h, d->name, false, e),
			  .workspace = d->workspace,
			  .outside = outside,
			  .host = h,
			  .def = d,
			  .began_ns = clock_now() };
	int x;

	if (c.conn < 0)
		return c.conn;
	x = is_out ? copy_out(&c, path, outside, e) : copy_in(&c, outside, path, e);
	if (c.told_ns)
		(void)fputc('\n', stderr);
	fd_close(c.conn);
	tell_left_out(&c);
	return x < 0 ? x : c.left_out > 0;
}

static int run_copy(const char *name, const char *inside, const char *outside, bool is_out,
		    struct err *e)
{
	struct host h;
	_cleanup_(def_done) struct def d = { 0 };
	int x = host_init(&h, NULL, e);

	if (x == 0)
		x = def_read(h.state_dir, name, &d, e);
	if (x == 0)
		x = copy_with(&h, &d, inside, outside, is_out, e);
	host_done(&h);
	return x;
}

int cmd_cp(int argc, char **argv, struct err *e)
{
	_free_ char *name = NULL, *path = NULL;
	struct opts o;
	int x, at;

	opts_init(&o, cp_opts, argc, argv);
	x = opts_next(&o, e);
	if (x < 0)
		return x;
	at = o.at;
	if (argc - at != 2)
		return err_set(e, ERR_USAGE, EINVAL,
			       "cp: 'vitrine cp NAME:PATH DEST' or 'vitrine cp SOURCE NAME:PATH'");
	if (split(argv[at], &name, &path)) {
		_free_ char *other = NULL, *other_path = NULL;

		if (split(argv[at + 1], &other, &other_path))
			return err_set(e, ERR_USAGE, EINVAL,
				       "cp: from one sandbox to another goes by way of the host");
		return run_copy(name, path, argv[at + 1], true, e);
	}
	if (split(argv[at + 1], &name, &path))
		return run_copy(name, path, argv[at], false, e);
	return err_set(e, ERR_USAGE, EINVAL, "cp: one of the two is written NAME:PATH");
}
