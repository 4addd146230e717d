/* SPDX-License-Identifier: Apache-2.0 */
/* view/quarantine.c - see quarantine.h
 *
 * The rename comes first and asks nothing: it takes whatever has the name at that instant. Only then, in the
 * quarantine directory, where nobody else can write, do we look at what we got. Copying (another file system) opens
 * with O_PATH and O_NOFOLLOW, looks at the type and reopens that very inode.
 *
 * Trees are removed without recursion: a subdirectory's own subdirectories are first moved up to the top, so a chain
 * of any depth is taken apart with two descriptors.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "base/io.h"
#include "view/quarantine.h"
#include "view/walk.h"

#define COPY_BYTES_MAX (64 * MIB)
#define COPY_ENTRIES_MAX 10000
#define COPY_DEPTH_MAX 32
#define NUMBERS_MAX 100000
#define REMOVE_STEPS_MAX 2000000
#define NAME_KEEP 128

struct budget {
	uint64_t bytes;
	unsigned entries;
};

struct fd_path {
	char s[40];
};

/* The path of an open file that is neither looked up again nor can be a link to elsewhere. */
static struct fd_path fd_path(int fd)
{
	struct fd_path p;

	(void)snprintf(p.s, sizeof(p.s), "/proc/self/fd/%d", fd);
	return p;
}

int quarantine_loosen(int dir_fd, const char *name)
{
	_close_ int fd = openat(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	/* Without x on dir_fd not even "." can be looked up in it; the descriptor itself still can be named. */
	if (fd < 0 && errno == EACCES && str_eq(name, "."))
		fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	if ((st.st_mode & 0700) == 0700)
		return -EACCES; /* that was not the reason */
	return chmod(fd_path(fd).s, (st.st_mode & 07777) | 0700) < 0 ? -errno : 0;
}

/* ---- remove ---- */

static int open_dir(int dir_fd, const char *name)
{
	int fd = walk_opendir(dir_fd, name);

	if (fd == -EACCES && quarantine_loosen(dir_fd, name) == 0)
		fd = walk_opendir(dir_fd, name);
	if (fd >= 0)
		(void)quarantine_loosen(
			fd, "."); /* needed to remove what is in it; refused when it is not */
	return fd;
}

typedef int (*name_fn)(void *arg, int dir_fd, const char *name);

/* fn for every name in fd. Returns the number of names, or the first negative result of fn. */
static int each_name(int fd, name_fn fn, void *arg)
{
	int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), n = 0;
	DIR *d = again >= 0 ? fdopendir(again) : NULL;
	const struct dirent *de;

	if (d == NULL) {
		n = -errno;
		fd_close(again);
		return n;
	}
	while (n >= 0 && n < INT_MAX - 1 && (de = readdir(d)) != NULL) {
		int r;

		if (str_eq(de->d_name, ".") || str_eq(de->d_name, ".."))
			continue;
		r = fn(arg, fd, de->d_name);
		n = r < 0 ? r : n + 1;
	}
	(void)closedir(d);
	return n;
}

struct removal {
	int top;
	unsigned steps, lifted;
	bool has_moved; /* something went away in this round */
};

static int is_removed(struct removal *rm, int r)
{
	if (r == 0)
		rm->has_moved = true;
	return r == 0;
}

static bool is_dir_errno(int num)
{
	return num == EISDIR || num == EPERM;
}

static int lift(void *arg, int dir_fd, const char *name)
{
	struct removal *rm = arg;
	char up[32];

	if (rm->steps++ > REMOVE_STEPS_MAX)
		return -EBUSY;
	if (is_removed(rm, unlinkat(dir_fd, name, 0)) || !is_dir_errno(errno))
		return 0;
	if (is_removed(rm, unlinkat(dir_fd, name, AT_REMOVEDIR)))
		return 0;
	(void)snprintf(up, sizeof(up), ".lifted-%u", rm->lifted++);
	if (is_removed(rm, renameat2(dir_fd, name, rm->top, up, RENAME_NOREPLACE)) ||
	    errno != EACCES)
		return 0;
	if (quarantine_loosen(dir_fd, name) == 0)
		(void)is_removed(rm, renameat2(dir_fd, name, rm->top, up, RENAME_NOREPLACE));
	return 0;
}

static int empty_one(void *arg, int dir_fd, const char *name)
{
	struct removal *rm = arg;
	_close_ int fd = FD_NONE;
	int r;

	if (rm->steps++ > REMOVE_STEPS_MAX)
		return -EBUSY;
	if (is_removed(rm, unlinkat(dir_fd, name, 0)) || !is_dir_errno(errno))
		return 0;
	fd = open_dir(dir_fd, name);
	if (fd < 0)
		return 0;
	r = each_name(fd, lift, rm);
	/* When it is not empty after all: next round. */
	(void)is_removed(rm, unlinkat(dir_fd, name, AT_REMOVEDIR));
	return r < 0 ? r : 0;
}

static int remove_tree(int dir_fd, const char *name)
{
	_close_ int fd = open_dir(dir_fd, name);
	struct removal rm = { .top = fd };
	int n = 0;

	if (fd < 0)
		return fd;
	do {
		rm.has_moved = false;
		n = each_name(fd, empty_one, &rm);
	} while (n > 0 && rm.has_moved);
	if (n < 0)
		return n;
	return unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

static int remove_any(int dir_fd, const char *name)
{
	int r = 0;

	for (int i = 0; i < 16; i++) {
		if (unlinkat(dir_fd, name, 0) == 0)
			return 0;
		if (!is_dir_errno(errno))
			return -errno;
		r = remove_tree(dir_fd, name);
		if (r != -ENOTDIR && r != -ELOOP)
			break;
	}
	return r;
}

/* ---- copy ---- */

static int copy_any(int dir_fd, const char *name, int to_fd, const char *to, unsigned depth,
		    struct budget *b);

struct copying {
	int to;
	unsigned depth;
	struct budget *b;
};

static int copy_entry(void *arg, int dir_fd, const char *name)
{
	struct copying *c = arg;
	int r = copy_any(dir_fd, name, c->to, name, c->depth, c->b);

	/* What is gone or special is not worth losing the rest. */
	return r == -E2BIG ? r : 0;
}

static int copy_dir(int at, int to_fd, const char *to, unsigned depth, struct budget *b)
{
	_close_ int from = open(fd_path(at).s, O_RDONLY | O_DIRECTORY | O_CLOEXEC), dest = FD_NONE;
	struct copying c = { .depth = depth + 1, .b = b };

	if (depth >= COPY_DEPTH_MAX)
		return -E2BIG;
	if (from < 0 || mkdirat(to_fd, to, 0700) < 0)
		return -errno;
	dest = openat(to_fd, to, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dest < 0)
		return -errno;
	c.to = dest;
	return each_name(from, copy_entry, &c);
}

static int copy_bytes(int from, int to, struct budget *b)
{
	char chunk[16384];

	for (;;) {
		ssize_t n = io_read(from, chunk, sizeof(chunk));
		int r;

		if (n <= 0)
			return (int)n;
		if ((uint64_t)n > b->bytes)
			return -E2BIG;
		b->bytes -= (uint64_t)n;
		r = io_write_all(to, chunk, (size_t)n);
		if (r < 0)
			return r;
	}
}

static int copy_file(int at, int to_fd, const char *to, struct budget *b)
{
	_close_ int from = open(fd_path(at).s, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	_close_ int dest = FD_NONE;

	if (from < 0)
		return -errno;
	dest = openat(to_fd, to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	return dest < 0 ? -errno : copy_bytes(from, dest, b);
}

static int write_link(int link_dir, const char *link, int to_fd, const char *to)
{
	static const char says[] = "symbolic link to: ";
	char target[PATH_MAX];
	ssize_t n = readlinkat(link_dir, link, target, sizeof(target) - 1);
	_close_ int dest = FD_NONE;
	int r;

	if (n < 0)
		return -errno;
	target[n] = '\n';
	dest = openat(to_fd, to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (dest < 0)
		return -errno;
	r = io_write_all(dest, says, sizeof(says) - 1);
	return r < 0 ? r : io_write_all(dest, target, (size_t)n + 1);
}

/* 1: copied, 0: of a type that is not kept. */
static int copy_any(int dir_fd, const char *name, int to_fd, const char *to, unsigned depth,
		    struct budget *b)
{
	_close_ int at = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	int r = 0;

	if (at < 0 || fstat(at, &st) < 0)
		return -errno;
	if (b->entries-- == 0)
		return -E2BIG;
	/* Ours, or we could not remove it either. */
	if ((S_ISREG(st.st_mode) && !(st.st_mode & 0400)) ||
	    (S_ISDIR(st.st_mode) && (st.st_mode & 0500) != 0500))
		(void)chmod(fd_path(at).s, (st.st_mode & 07777) | 0500);
	if (S_ISLNK(st.st_mode))
		r = write_link(at, "", to_fd, to);
	else if (S_ISREG(st.st_mode))
		r = copy_file(at, to_fd, to, b);
	else if (S_ISDIR(st.st_mode))
		r = copy_dir(at, to_fd, to, depth, b);
	else
		return 0;
	return r < 0 ? r : 1;
}

/* ---- take ---- */

static void quarantine_name(char *out, size_t size, unsigned number, const char *name)
{
	char clean[NAME_KEEP + 1];
	size_t n = 0;

	for (; name[n] && n < NAME_KEEP; n++) {
		unsigned char c = (unsigned char)name[n];

		clean[n] = (char)(c > 0x20 && c < 0x7f && c != '/' ? c : '_');
	}
	clean[n] = '\0';
	(void)snprintf(out, size, "%04u-%s", number, clean);
}

/* In the quarantine now: keep no link that could be followed by mistake, and nothing that could be talked to. */
static int settle(int q_fd, const char *saved, bool *ret_is_kept)
{
	struct stat st;
	char tmp[NAME_KEEP + 32];
	int r;

	*ret_is_kept = true;
	if (fstatat(q_fd, saved, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))
		return 0;
	*ret_is_kept = S_ISLNK(st.st_mode);
	if (*ret_is_kept) {
		(void)snprintf(tmp, sizeof(tmp), ".%s", saved);
		r = write_link(q_fd, saved, q_fd, tmp);
		if (r == 0 && renameat(q_fd, tmp, q_fd, saved) == 0)
			return 0;
		(void)unlinkat(q_fd, tmp, 0);
		*ret_is_kept = false;
	}
	return unlinkat(q_fd, saved, 0) < 0 ? -errno : 0;
}

static int move_across(int q_fd, const char *saved, int dir_fd, const char *name, bool *ret_is_kept)
{
	struct budget b = { .bytes = COPY_BYTES_MAX, .entries = COPY_ENTRIES_MAX };
	int r = copy_any(dir_fd, name, q_fd, saved, 0, &b);

	if (r == -EEXIST || r == -ENOENT)
		return r;
	*ret_is_kept = r == 1;
	if (!*ret_is_kept)
		(void)remove_any(q_fd, saved); /* half a copy; ENOENT when there is none */
	return remove_any(dir_fd, name);
}

static int take_as(int q_fd, const char *saved, int dir_fd, const char *name, bool *ret_is_kept)
{
	if (renameat2(dir_fd, name, q_fd, saved, RENAME_NOREPLACE) == 0)
		return settle(q_fd, saved, ret_is_kept);
	if (errno != EXDEV)
		return -errno;
	return move_across(q_fd, saved, dir_fd, name, ret_is_kept);
}

int quarantine_remove(int dir_fd, const char *name)
{
	return remove_any(dir_fd, name);
}

int quarantine_take(int q_fd, unsigned number, int dir_fd, const char *name, char **ret_saved)
{
	return quarantine_take_as(q_fd, number, dir_fd, name, name, ret_saved);
}

int quarantine_take_as(int q_fd, unsigned number, int dir_fd, const char *name, const char *as,
		       char **ret_saved)
{
	char saved[NAME_KEEP + 16];
	bool is_kept = false, is_loose = false;

	for (unsigned i = 0; i < NUMBERS_MAX; i++) {
		int r;

		quarantine_name(saved, sizeof(saved), number + i, as);
		r = take_as(q_fd, saved, dir_fd, name, &is_kept);
		if (r == -EACCES && !is_loose) {
			/* The directory, or the entry itself when it is one (its ".." changes), is not writable. */
			is_loose = true;
			(void)quarantine_loosen(dir_fd, ".");
			(void)quarantine_loosen(dir_fd, name);
			r = -EEXIST;
		}
		if (r == -EEXIST)
			continue;
		if (r == 0)
			*ret_saved = is_kept ? mem_str(saved) : NULL;
		return r;
	}
	return -EEXIST;
}
