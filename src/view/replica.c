/* SPDX-License-Identifier: Apache-2.0 */
/* view/replica.c - see replica.h */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/random.h>

#include "base/io.h"
#include "view/replica.h"
#include "view/walk.h"

#define ENTRIES_MAX 10000
#define DEPTH_MAX 32
#define TRIES 16
#define MODES 0777 /* no set-id bits: what we make is ours */

struct budget {
	uint64_t bytes;
	unsigned entries, depth;
};

int replica_read(int fd, struct buf *ret)
{
	char chunk[16384];
	off_t at = 0;

	for (;;) {
		ssize_t n = pread(fd, chunk, sizeof(chunk), at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		buf_add(ret, chunk, (size_t)n);
		if (ret->is_over)
			return -EMSGSIZE;
		at += n;
	}
}

/* The owner is kept where we may: a file of somebody else's becomes ours, with the same rights for all others. */
static int dress(int fd, const struct stat *like)
{
	if ((like->st_uid != geteuid() || like->st_gid != getegid()) &&
	    fchown(fd, like->st_uid, like->st_gid) < 0 && fchown(fd, (uid_t)-1, like->st_gid) < 0 &&
	    errno != EPERM && errno != EINVAL)
		return -errno;
	return fchmod(fd, like->st_mode & MODES) < 0 ? -errno : 0;
}

int replica_temp(char ret[REPLICA_TEMP_MAX])
{
	uint64_t number;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return -EIO;
	(void)snprintf(ret, REPLICA_TEMP_MAX, ".vitrine-put-%016llx", (unsigned long long)number);
	return 0;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool is_as_seen(const struct stat *now, const struct stat *seen, bool is_whole)
{
	return is_same_file(now, seen) &&
	       (!is_whole ||
		(now->st_size == seen->st_size && now->st_mtim.tv_sec == seen->st_mtim.tv_sec &&
		 now->st_mtim.tv_nsec == seen->st_mtim.tv_nsec));
}

int replica_swap(int dir_fd, const char *temp, const char *name, const struct stat *seen,
		 bool is_whole)
{
	struct stat ours, now;

	if (fstatat(dir_fd, temp, &ours, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (renameat2(dir_fd, temp, dir_fd, name, RENAME_EXCHANGE) < 0)
		return errno == ENOENT ? -EAGAIN : -errno;
	if (fstatat(dir_fd, temp, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
	    is_as_seen(&now, seen, is_whole))
		return 0;
	/* No save of another's is lost by ours: back, until what comes out is our own. */
	for (int i = 0; i < TRIES; i++) {
		if (fstatat(dir_fd, temp, &now, AT_SYMLINK_NOFOLLOW) < 0 ||
		    is_same_file(&now, &ours))
			return -EAGAIN;
		if (renameat2(dir_fd, temp, dir_fd, name, RENAME_EXCHANGE) < 0)
			break;
	}
	return -ESTALE;
}

int replica_write(int dir_fd, const char *to, const char *p, size_t n, const struct stat *like)
{
	_close_ int fd =
		openat(dir_fd, to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0);
	int r;

	if (fd < 0)
		return -errno;
	r = io_write_all(fd, p, n);
	return r < 0 ? r : dress(fd, like);
}

static int copy_file(int from, int dir_fd, const char *to, const struct stat *st, struct budget *b)
{
	_cleanup_(buf_done) struct buf text = BUF(b->bytes);
	int r = replica_read(from, &text);

	if (r < 0)
		return r == -EMSGSIZE ? -E2BIG : r;
	b->bytes -= text.n;
	return replica_write(dir_fd, to, buf_cstr(&text), text.n, st);
}

static int copy_link(int dir_fd, const char *name, int to_fd)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(dir_fd, name, target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	return symlinkat(target, to_fd, name) < 0 ? -errno : 0;
}

/* For reading, whatever it is; -EINVAL for what is neither file nor directory. */
static int open_known(int dir_fd, const char *name, struct stat *st)
{
	_close_ int fd = FD_NONE;

	if (fstatat(dir_fd, name, st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode))
		return -EINVAL;
	fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, st) < 0)
		return -errno;
	return S_ISREG(st->st_mode) || S_ISDIR(st->st_mode) ? take_fd(fd) : -EINVAL;
}

/* ---- trees ---- */

static void close_dir(DIR **d)
{
	if (*d)
		(void)closedir(*d);
}

static DIR *open_names(int fd)
{
	int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = again >= 0 ? fdopendir(again) : NULL;

	if (d == NULL)
		fd_close(again);
	return d;
}

static const char *next_name(DIR *d)
{
	const struct dirent *de;

	while ((de = readdir(d)) != NULL)
		if (!str_eq(de->d_name, ".") && !str_eq(de->d_name, ".."))
			return de->d_name;
	return NULL;
}

static int copy_any(int from, int dir_fd, const char *to, struct budget *b);

static int copy_name(int from, const char *name, int to_fd, struct budget *b)
{
	struct stat st;
	_close_ int fd = open_known(from, name, &st);

	if (fd == -EINVAL && S_ISLNK(st.st_mode))
		return copy_link(from, name, to_fd);
	if (fd < 0) /* a pipe, a socket, or somebody else's: the rest is worth more */
		return 0;
	return copy_any(fd, to_fd, name, b);
}

static int copy_dir(int from, int dir_fd, const char *to, const struct stat *st, struct budget *b)
{
	_cleanup_(close_dir) DIR *d = open_names(from);
	_close_ int dest = FD_NONE;
	const char *name;
	int r = 0;

	/* A directory that was removed cannot be opened by "." any more, and has nothing in it. */
	if (d == NULL && errno != ENOENT)
		return -errno;
	if (b->depth++ >= DEPTH_MAX)
		return -E2BIG;
	if (mkdirat(dir_fd, to, 0700) < 0)
		return -errno;
	dest = openat(dir_fd, to, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dest < 0)
		return -errno;
	while (r == 0 && d && (name = next_name(d)) != NULL)
		r = copy_name(from, name, dest, b);
	b->depth--;
	return r < 0 ? r : dress(dest, st);
}

/* NOLINTNEXTLINE(misc-no-recursion): bounded by DEPTH_MAX */
static int copy_any(int from, int dir_fd, const char *to, struct budget *b)
{
	struct stat st;

	if (fstat(from, &st) < 0)
		return -errno;
	if (b->entries-- == 0)
		return -E2BIG;
	return S_ISDIR(st.st_mode) ? copy_dir(from, dir_fd, to, &st, b)
				   : copy_file(from, dir_fd, to, &st, b);
}

int replica_make(int from, int dir_fd, const char *to, uint64_t bytes)
{
	struct budget b = { .bytes = bytes, .entries = ENTRIES_MAX };

	return copy_any(from, dir_fd, to, &b);
}

/* ---- the same? ---- */

static bool is_same_text(int a, int b, struct budget *left)
{
	_cleanup_(buf_done) struct buf ta = BUF(left->bytes), tb = BUF(left->bytes);

	if (replica_read(a, &ta) < 0 || replica_read(b, &tb) < 0 || ta.n != tb.n)
		return false;
	left->bytes -= ta.n;
	return ta.n == 0 || memcmp(ta.p, tb.p, ta.n) == 0;
}

static bool is_same_link(int a, int b, const char *name)
{
	char ta[PATH_MAX], tb[PATH_MAX];
	ssize_t na = readlinkat(a, name, ta, sizeof(ta)), nb = readlinkat(b, name, tb, sizeof(tb));

	return na >= 0 && na == nb && memcmp(ta, tb, (size_t)na) == 0;
}

static bool is_same(int a, int b, struct budget *left);

static bool is_same_name(int a, int b, const char *name, struct budget *left)
{
	struct stat sa, sb;
	_close_ int fa = open_known(a, name, &sa), fb = open_known(b, name, &sb);

	if (fa == -EINVAL && fb == -EINVAL && S_ISLNK(sa.st_mode) && S_ISLNK(sb.st_mode))
		return is_same_link(a, b, name);
	return fa >= 0 && fb >= 0 && is_same(fa, fb, left);
}

static size_t count_names(int fd)
{
	_cleanup_(close_dir) DIR *d = open_names(fd);
	size_t n = 0;

	while (d && next_name(d) != NULL)
		n++;
	return n;
}

/* As many names, and each of one is in the other. */
static bool is_same_dir(int a, int b, struct budget *left)
{
	_cleanup_(close_dir) DIR *d = open_names(a);
	const char *name;
	bool is = left->depth++ < DEPTH_MAX && count_names(a) == count_names(b);

	while (is && d && (name = next_name(d)) != NULL)
		is = is_same_name(a, b, name, left);
	left->depth--;
	return is;
}

/* NOLINTNEXTLINE(misc-no-recursion): bounded by DEPTH_MAX */
static bool is_same(int a, int b, struct budget *left)
{
	struct stat sa, sb;

	if (left->entries-- == 0 || fstat(a, &sa) < 0 || fstat(b, &sb) < 0)
		return false;
	if ((sa.st_mode & S_IFMT) != (sb.st_mode & S_IFMT))
		return false;
	if (S_ISDIR(sa.st_mode))
		return is_same_dir(a, b, left);
	return (sa.st_mode & 0111) == (sb.st_mode & 0111) && is_same_text(a, b, left);
}

bool replica_is_same(int a, int b, uint64_t bytes)
{
	struct budget left = { .bytes = bytes, .entries = ENTRIES_MAX };

	return is_same(a, b, &left);
}
