/* SPDX-License-Identifier: Apache-2.0 */
/* engine/native/init_file.c - files handed out of the sandbox and taken in, by init, behind its walls
 *
 * The native engine's init gives out descriptors; that of other engines does the same acts and sends the bytes over the
 * link (remote/inner_files.c).
 *
 * The host never walks a path that somebody inside could bend: init resolves it, locked in as it is, and gives out a
 * descriptor of what it found. Only plain files and directories go out, opened for reading, or new files for
 * writing that init itself has just made; nothing is ever written through a link, and nothing of /proc (which would
 * be init's own) goes out at all.
 */
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/libc.h"
#include "base/path.h"
#include "base/sabotage.h"
#include "engine/native/native.h"

/* Two paths, each ended by NUL; the second may be missing. */
struct paths {
	char text[FILE_PATHS];
	const char *first, *second;
};

static bool paths_split(struct paths *p, size_t n)
{
	size_t len;

	if (n < 2 || p->text[n - 1] != '\0' || p->text[0] != '/')
		return false;
	p->first = p->text;
	len = strlen(p->text) + 1;
	p->second = len < n && p->text[len] == '/' ? p->text + len : NULL;
	return p->second == NULL || len + strlen(p->second) + 1 == n;
}

/* A kernel that is the inside's own may not know the newer call (gVisor's does not). What a link of its /proc leads to
 * is the inside's then too, and only bytes leave it. */
static int open_there(const char *path, int flags)
{
	int fd = path_openat2(AT_FDCWD, path, flags, RESOLVE_NO_MAGICLINKS);

	if (fd != -ENOSYS)
		return fd;
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* The directory a name stands in, and the name; links on the way there are the sandbox's own business. */
static int open_parent(const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	char dir[4096];
	size_t n = (size_t)(slash - path);

	if (n >= sizeof(dir) || slash[1] == '\0' || str_eq(slash, "/..") || str_eq(slash, "/."))
		return -EINVAL;
	memcpy(dir, path, n);
	dir[n] = '\0';
	*ret_name = slash + 1;
	return open_there(n ? dir : "/", O_PATH | O_DIRECTORY);
}

static bool is_kernels(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) < 0 || fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC ||
	       fs.f_type == DEVPTS_SUPER_MAGIC;
}

/* Looked at first, opened then: opening a fifo or a device does something already. */
static int open_plain(const char *path)
{
	_close_ int at = open_there(path, O_PATH | O_NOFOLLOW);
	_close_ int fd = FD_NONE;
	struct stat st, now;

	if (at < 0)
		return at;
	if (fstat(at, &st) < 0 || (is_kernels(at) && !sabotaged("cp")))
		return -EACCES;
	if (S_ISLNK(st.st_mode))
		return -ELOOP;
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode) && !sabotaged("cp"))
		return -EINVAL;
	fd = open_there(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return fd;
	if (fstat(fd, &now) < 0 || now.st_dev != st.st_dev || now.st_ino != st.st_ino)
		return -ESTALE;
	return take_fd(fd);
}

static int create(const char *path, mode_t mode)
{
	const char *name;
	_close_ int dir = open_parent(path, &name);
	int fd;

	if (dir < 0)
		return dir;
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode & 0777);
	if (fd >= 0)
		(void)fchmod(fd, mode & 0777); /* what the umask took */
	return fd < 0 ? -errno : fd;
}

static int make_dir(const char *path, mode_t mode)
{
	const char *name;
	_close_ int dir = open_parent(path, &name);

	if (dir < 0)
		return dir;
	return mkdirat(dir, name, (mode & 0777) | 0700) < 0 ? -errno : 0;
}

static int rename_to(const char *from, const char *to)
{
	const char *name, *new_name;
	_close_ int dir = open_parent(from, &name);
	_close_ int new_dir = open_parent(to, &new_name);

	if (dir < 0 || new_dir < 0)
		return dir < 0 ? dir : new_dir;
	return renameat(dir, name, new_dir, new_name) < 0 ? -errno : 0;
}

static int remove_file(const char *path)
{
	const char *name;
	_close_ int dir = open_parent(path, &name);

	if (dir < 0)
		return dir;
	return unlinkat(dir, name, 0) < 0 ? -errno : 0;
}

static int carry_out(enum file_op op, mode_t mode, const struct paths *p, int *ret_fd)
{
	int r = -EINVAL;

	if (op == FILE_OPEN)
		r = *ret_fd = open_plain(p->first);
	else if (op == FILE_CREATE)
		r = *ret_fd = create(p->first, mode);
	else if (op == FILE_MKDIR)
		r = make_dir(p->first, mode);
	else if (op == FILE_RENAME && p->second)
		r = rename_to(p->first, p->second);
	else if (op == FILE_UNLINK)
		r = remove_file(p->first);
	return r < 0 ? r : 0;
}

int file_act(enum file_op op, mode_t mode, const char *text, size_t n, int *ret_fd)
{
	static struct paths p; /* too big for the stack of a process that must not fail */

	*ret_fd = FD_NONE;
	if (n > sizeof(p.text))
		return -EINVAL;
	memcpy(p.text, text, n);
	return paths_split(&p, n) ? carry_out(op, mode, &p, ret_fd) : -EINVAL;
}

void init_file(int ctl, const struct init_msg *m, int take_request)
{
	struct init_msg done = { .type = INIT_FILE_DONE, .session = m->session };
	static char text[FILE_PATHS];
	ssize_t n = pread(take_request, text, sizeof(text), 0);
	_close_ int fd = FD_NONE;
	int r = n < 0 ? -EINVAL : file_act((enum file_op)m->a, (mode_t)m->b, text, (size_t)n, &fd);

	done.a = r < 0 ? -r : 0;
	(void)init_send(ctl, &done, &fd, fd >= 0 ? 1 : 0);
	fd_close(take_request);
}
