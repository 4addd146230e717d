/* SPDX-License-Identifier: Apache-2.0 */
/* base/path.c - see path.h */
#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

#include "base/path.h"

bool path_is_clean(const char *p)
{
	if (p[0] != '/')
		return false;
	if (p[1] == '\0')
		return true;
	while (*p == '/') {
		size_t n = strcspn(++p, "/");

		if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
			return false;
		p += n;
	}
	return true;
}

/* Appends the components of rel to out (which holds *len bytes of a clean path), resolving . and .. */
static size_t append_components(char *out, size_t len, const char *rel)
{
	while (*rel) {
		size_t n = strcspn(rel, "/");

		if (n == 2 && rel[0] == '.' && rel[1] == '.') {
			while (len > 0 && out[--len] != '/')
				;
		} else if (n > 0 && !(n == 1 && rel[0] == '.')) {
			out[len++] = '/';
			memcpy(out + len, rel, n);
			len += n;
		}
		rel += n;
		while (*rel == '/')
			rel++;
	}
	return len;
}

char *path_join(const char *base, const char *rel)
{
	char *out = mem_new(strlen(base) + strlen(rel) + 3, 1);
	size_t len = 0;

	if (rel[0] != '/')
		len = append_components(out, len, base);
	len = append_components(out, len, rel);
	if (len == 0)
		out[len++] = '/';
	out[len] = '\0';
	return out;
}

bool path_is_beneath(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	if (n == 1)
		return true;
	return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

const char *path_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	bug_on(!path_is_beneath(path, dir));
	if (n == 1)
		return path + 1;
	return path[n] == '/' ? path + n + 1 : path + n;
}

char *path_parent(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (slash == NULL)
		return mem_str("");
	return slash == path ? mem_str("/") : mem_strn(path, (size_t)(slash - path));
}

const char *path_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int path_openat2(int dirfd, const char *rel, int flags, uint64_t resolve)
{
	struct open_how how = { .flags = (uint64_t)flags | O_CLOEXEC, .resolve = resolve };
	long r = -1;

	/* EAGAIN: something was renamed on the way. Somebody who does nothing else must not keep us here. */
	for (int i = 0; i < 128; i++) {
		r = syscall(SYS_openat2, dirfd, rel, &how, sizeof(how));
		if (r >= 0 || (errno != EINTR && errno != EAGAIN))
			break;
	}
	return r < 0 ? -errno : (int)r;
}

int path_open_beneath(int dirfd, const char *rel, int flags, struct err *e)
{
	int fd = path_openat2(dirfd, rel, flags,
			      RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

	if (fd == -ENOSYS)
		return err_set(e, ERR_UNSUPPORTED, ENOSYS,
			       "this kernel has no openat2 (Linux 5.6 or later is needed)");
	if (fd < 0) {
		errno = -fd;
		return err_sys(e, "open '%s'", rel);
	}
	return fd;
}

int path_mkdirs(int dirfd, const char *rel, mode_t mode)
{
	_close_ int at = FD_NONE;
	const char *p = rel;

	while (*p == '/')
		p++;
	while (*p) {
		size_t n = strcspn(p, "/");
		char name[256];
		int next;

		if (n >= sizeof(name))
			return -ENAMETOOLONG;
		memcpy(name, p, n);
		name[n] = '\0';
		if (mkdirat(at >= 0 ? at : dirfd, name, mode) < 0 && errno != EEXIST)
			return -errno;
		next = openat(at >= 0 ? at : dirfd, name,
			      O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return -errno;
		fd_close(at);
		at = next;
		p += n;
		while (*p == '/')
			p++;
	}
	return 0;
}

int path_make(const char *path, mode_t mode)
{
	_free_ char *p = mem_str(path);

	if (mkdir(p, mode) == 0 || errno == EEXIST)
		return 0;
	for (char *c = p + 1; *c; c++) {
		if (*c != '/')
			continue;
		*c = '\0';
		if (mkdir(p, mode) < 0 && errno != EEXIST)
			return -errno;
		*c = '/';
	}
	return mkdir(p, mode) < 0 && errno != EEXIST ? -errno : 0;
}

#define REMOVE_DEPTH 512 /* a path is at most 4096 bytes long, and so are ours */

static void remove_below(int dirfd, const char *name, dev_t dev, int depth)
{
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct dirent *en;
	struct stat st;
	DIR *d;

	if (fd < 0 && errno == EACCES && fchmodat(dirfd, name, 0700, 0) == 0)
		fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	d = fstat(fd, &st) == 0 && (dev == 0 || st.st_dev == dev) ? fdopendir(fd) : NULL;
	if (d == NULL) {
		fd_close(fd);
		return;
	}
	if (!(st.st_mode & S_IWUSR))
		(void)fchmod(fd, 0700); /* if it is not ours to open, the unlinks fail and say so */
	while (depth < REMOVE_DEPTH && (en = readdir(d)) != NULL) {
		if (str_eq(en->d_name, ".") || str_eq(en->d_name, ".."))
			continue;
		if (unlinkat(fd, en->d_name, 0) < 0)
			remove_below(fd, en->d_name, st.st_dev, depth + 1);
	}
	(void)closedir(d);
	(void)unlinkat(dirfd, name, AT_REMOVEDIR);
}

int path_remove(int dirfd, const char *name)
{
	struct stat st;

	if (unlinkat(dirfd, name, 0) == 0)
		return 0;
	remove_below(dirfd, name, 0, 0);
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	return -ENOTEMPTY;
}

int path_real(const char *path, char **ret, struct err *e)
{
	char *r = realpath(path, NULL);

	if (r == NULL)
		return err_sys(e, "'%s'", path);
	*ret = r;
	return 0;
}

int path_cmp(const char *a, const char *b)
{
	for (; *a && *a == *b; a++, b++)
		;
	if (*a == *b)
		return 0;
	if (*a == '\0' || (*a == '/' && *b != '\0'))
		return -1;
	if (*b == '\0' || *b == '/')
		return 1;
	return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
}

int path_make_point(const char *path, bool is_dir)
{
	_free_ char *parent = path_parent(path);
	int r = path_make(is_dir ? path : parent, 0755);
	_close_ int fd = FD_NONE;

	if (r < 0 || is_dir)
		return r;
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	return fd < 0 ? -errno : 0;
}
