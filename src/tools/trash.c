/* SPDX-License-Identifier: Apache-2.0 */
/* tools/trash.c - what rm, dd and truncate are about to destroy, kept in the sandbox's home
 *
 * The real program does the removing, so that it behaves in every detail; before it runs, what it names is saved. In the
 * same file system that is a second name for the file (rm only takes one away), elsewhere a copy. What is very large is
 * not kept, and that is said.
 *
 *     HOME/.local/share/vitrine-trash/ID/path     the absolute path it had
 *     HOME/.local/share/vitrine-trash/ID/data     the file or tree
 *
 * ID is the time it was saved, in hexadecimal, so that names sort by age.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>

#include "base/io.h"
#include "base/path.h"
#include "tools/tools.h"

#define SAVE_MAX_BYTES (64 * MIB)
#define SAVE_MAX_FILES 20000
#define DEPTH_MAX 128

/* From linux/fs.h, which musl's cross compiler may not see. */
#ifndef FICLONE
#define FICLONE _IOW(0x94, 9, int)
#endif

static char *trash_dir(void)
{
	const char *home = getenv("HOME");

	return home && home[0] == '/' ? mem_fmt("%s/.local/share/vitrine-trash", home) : NULL;
}

/* ---- size ---- */

struct sum {
	uint64_t bytes, files;
};

static bool measure(int dir, const char *name, struct sum *s, int depth)
{
	struct stat st;
	struct dirent *en;
	bool is_ok = true;
	int fd;
	DIR *d;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || depth > DEPTH_MAX)
		return false;
	s->files++;
	s->bytes += S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
	if (s->bytes > SAVE_MAX_BYTES || s->files > SAVE_MAX_FILES)
		return false;
	if (!S_ISDIR(st.st_mode))
		return true;
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	d = fd < 0 ? NULL : fdopendir(fd);
	while (d && is_ok && (en = readdir(d)) != NULL)
		if (!str_eq(en->d_name, ".") && !str_eq(en->d_name, ".."))
			is_ok = measure(dirfd(d), en->d_name, s, depth + 1);
	if (d)
		(void)closedir(d);
	return is_ok && d;
}

/* ---- copying ---- */

static int copy_bytes(int from, int to)
{
	ssize_t n;

	if (ioctl(to, FICLONE, from) == 0)
		return 0;
	while ((n = sendfile(to, from, NULL, 1 << 20)) > 0)
		;
	return n < 0 ? -errno : 0;
}

static int copy_file(int from_dir, const char *from, int to_dir, const char *to,
		     const struct stat *st, bool may_link)
{
	struct timespec times[2] = { st->st_atim, st->st_mtim };
	_close_ int in = FD_NONE, out = FD_NONE;

	if (may_link && linkat(from_dir, from, to_dir, to, 0) == 0)
		return 0;
	in = openat(from_dir, from, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	out = in < 0 ? FD_NONE
		     : openat(to_dir, to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			      0600);
	if (in < 0 || out < 0 || copy_bytes(in, out) < 0)
		return -EIO;
	(void)fchmod(out, st->st_mode & 07777 & ~06000U);
	(void)futimens(out, times);
	return 0;
}

static int copy_link(int from_dir, const char *from, int to_dir, const char *to)
{
	char target[4096];
	ssize_t n = readlinkat(from_dir, from, target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	return symlinkat(target, to_dir, to) < 0 ? -errno : 0;
}

static int copy(int from_dir, const char *from, int to_dir, const char *to, bool may_link);

static int copy_dir(int from_dir, const char *from, int to_dir, const char *to, mode_t mode,
		    bool may_link)
{
	_close_ int out = FD_NONE;
	int in = openat(from_dir, from, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), r = 0;
	DIR *d = in < 0 ? NULL : fdopendir(in);
	struct dirent *en;

	if (d == NULL || mkdirat(to_dir, to, 0700) < 0)
		r = -EIO;
	else
		out = openat(to_dir, to, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	while (r == 0 && (en = readdir(d)) != NULL)
		if (!str_eq(en->d_name, ".") && !str_eq(en->d_name, ".."))
			r = copy(dirfd(d), en->d_name, out, en->d_name, may_link);
	if (r == 0)
		(void)fchmod(out, (mode & 07777 & ~06000U) | 0700);
	if (d)
		(void)closedir(d);
	return r;
}

static int copy(int from_dir, const char *from, int to_dir, const char *to, bool may_link)
{
	struct stat st;

	if (fstatat(from_dir, from, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISREG(st.st_mode))
		return copy_file(from_dir, from, to_dir, to, &st, may_link);
	if (S_ISLNK(st.st_mode))
		return copy_link(from_dir, from, to_dir, to);
	if (S_ISDIR(st.st_mode))
		return copy_dir(from_dir, from, to_dir, to, st.st_mode, may_link);
	return 0; /* pipes, sockets and devices hold nothing */
}

/* ---- saving ---- */

static int new_entry(int trash, char id[32])
{
	struct timespec now;

	for (int i = 0; i < 100; i++) {
		(void)clock_gettime(CLOCK_REALTIME, &now);
		(void)snprintf(id, 32, "%08llx%08lx", (unsigned long long)now.tv_sec & 0xffffffff,
			       (unsigned long)now.tv_nsec + (unsigned long)i);
		if (mkdirat(trash, id, 0700) == 0)
			return openat(trash, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (errno != EEXIST)
			break;
	}
	return FD_NONE;
}

static bool put_path(int entry, const char *path)
{
	_close_ int fd = openat(entry, "path", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	return fd >= 0 && io_write_all(fd, path, strlen(path)) == 0;
}

bool trash_save(const char *cwd, const char *path, bool may_link)
{
	_free_ char *full = path_join(cwd, path), *where = trash_dir();
	_close_ int trash = FD_NONE, entry = FD_NONE;
	struct stat st;
	struct sum sum = { 0 };
	char id[32];

	if (where == NULL || lstat(full, &st) < 0)
		return false; /* the real program says what is wrong with it */
	if (!measure(AT_FDCWD, full, &sum, 0)) {
		(void)fprintf(stderr, "vitrine: '%s' is too large for the trash and is not kept\n",
			      path);
		return false;
	}
	if (path_make(where, 0700) < 0)
		return false;
	/* Its own trash is not kept again. */
	if (path_is_beneath(full, where))
		return false;
	trash = open(where, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	entry = trash < 0 ? FD_NONE : new_entry(trash, id);
	if (entry >= 0 && put_path(entry, full) &&
	    copy(AT_FDCWD, full, entry, "data", may_link) == 0)
		return true;
	if (entry >= 0)
		(void)path_remove(trash, id);
	(void)fprintf(stderr, "vitrine: '%s' could not be kept in the trash\n", path);
	return false;
}

/* ---- ls, restore, empty ---- */

static bool is_id(const char *s)
{
	return strlen(s) >= 16 && strspn(s, "0123456789abcdef") == strlen(s);
}

static int newest_last(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int only_ids(const struct dirent *en)
{
	return is_id(en->d_name);
}

static char *path_of(int trash, const char *id)
{
	_cleanup_(buf_done) struct buf b = BUF(8 * KIB);
	_free_ char *name = mem_fmt("%s/path", id);
	_close_ int fd = openat(trash, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct err e = ERR_INIT;

	if (fd < 0 || io_read_fd(fd, &b, &e) < 0 || !path_is_clean(buf_cstr(&b)))
		return NULL;
	return mem_str(buf_cstr(&b));
}

static void put_line(const char *id, const char *path, time_t when, uint64_t bytes, bool is_dir,
		     struct buf *out)
{
	struct tm tm;

	(void)gmtime_r(&when, &tm);
	buf_printf(out, "%s  %04d-%02d-%02dT%02d:%02d:%02dZ  %10llu  ", id, tm.tm_year + 1900,
		   tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
		   (unsigned long long)bytes);
	buf_esc(out, path, strlen(path));
	buf_puts(out, is_dir ? "/\n" : "\n");
}

static void put_json(const char *id, const char *path, time_t when, uint64_t bytes, bool is_dir,
		     struct buf *out)
{
	buf_printf(out,
		   "%s{\"id\":\"%s\",\"removed\":%lld,\"bytes\":%llu,\"directory\":%s,\"path\":",
		   out->n > 1 ? ",\n " : "", id, (long long)when, (unsigned long long)bytes,
		   is_dir ? "true" : "false");
	buf_json(out, path);
	buf_putc(out, '}');
}

static void put_entry(int trash, const char *id, bool as_json, struct buf *out)
{
	_free_ char *path = path_of(trash, id), *data = mem_fmt("%s/data", id);
	struct sum sum = { 0 };
	struct stat st;
	time_t when = 0;

	if (path == NULL || fstatat(trash, data, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	(void)measure(trash, data, &sum, 0);
	for (int i = 0; i < 8; i++)
		when = when * 16 + (id[i] <= '9' ? id[i] - '0' : id[i] - 'a' + 10);
	(as_json ? put_json : put_line)(id, path, when, sum.bytes, S_ISDIR(st.st_mode), out);
}

static int restore(int trash, const char *id)
{
	_free_ char *path = path_of(trash, id), *data = mem_fmt("%s/data", id),
		    *up = path ? path_parent(path) : NULL;
	struct stat st;
	int r;

	if (path == NULL)
		return 1;
	if (lstat(path, &st) == 0) {
		(void)fprintf(stderr, "trash: '%s' exists; move it away first\n", path);
		return 1;
	}
	(void)path_make(up, 0755); /* if it fails, so does the copy */
	r = copy(trash, data, AT_FDCWD, path, false);
	if (r < 0) {
		(void)fprintf(stderr, "trash: '%s': %s\n", path, strerror(-r));
		return 1;
	}
	(void)path_remove(trash, id);
	(void)printf("restored %s\n", path);
	return 0;
}

struct entries {
	struct dirent **v;
	int n;
};

/* By id, or the newest that had this path. */
static int restore_named(int trash, const struct entries *all, const char *what)
{
	char cwd[4096];
	_free_ char *full = path_join(getcwd(cwd, sizeof(cwd)) ? cwd : "/", what);

	for (int i = all->n - 1; i >= 0; i--) {
		_free_ char *path = path_of(trash, all->v[i]->d_name);

		if (str_eq(all->v[i]->d_name, what) || (path && str_eq(path, full)))
			return restore(trash, all->v[i]->d_name);
	}
	(void)fprintf(stderr, "trash: nothing is kept of '%s'; 'trash ls' lists what is\n", what);
	return 1;
}

static int act(int trash, const struct entries *all, int argc, char **argv)
{
	_cleanup_(buf_done) struct buf out = BUF(8 * MIB);
	bool as_json = argc == 3; /* of ls, where nothing else may stand there */
	int r = 0;

	if (str_eq(argv[1], "restore")) {
		for (int i = 2; i < argc; i++)
			r |= restore_named(trash, all, argv[i]);
		return r;
	}
	if (as_json)
		buf_putc(&out, '[');
	for (int i = 0; i < all->n; i++)
		if (str_eq(argv[1], "ls"))
			put_entry(trash, all->v[i]->d_name, as_json, &out);
		else
			r |= path_remove(trash, all->v[i]->d_name) < 0;
	if (as_json)
		buf_puts(&out, "]\n");
	(void)fputs(buf_cstr(&out), stdout);
	return r;
}

int trash_main(int argc, char **argv)
{
	_free_ char *where = trash_dir();
	_close_ int trash =
		where ? open(where, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : FD_NONE;
	bool is_json = argc == 3 && str_eq(argv[1], "ls") && str_eq(argv[2], "--json");
	struct entries all = { 0 };
	int r;

	if (argc < 2 ||
	    (!str_eq(argv[1], "ls") && !str_eq(argv[1], "empty") && !str_eq(argv[1], "restore")) ||
	    (str_eq(argv[1], "restore") ? argc < 3 : argc > 2 && !is_json)) {
		(void)fprintf(stderr, "usage: trash ls [--json] | restore ID|PATH... | empty\n");
		return 2;
	}
	if (trash >= 0)
		all.n = scandir(where, &all.v, only_ids, newest_last);
	r = act(trash, &all, argc, argv);
	for (int i = 0; i < all.n; i++)
		(free)(all.v[i]); /* scandir's own */
	(free)(all.v);
	return r;
}
