/* SPDX-License-Identifier: Apache-2.0 */
/* image/settle.c - vitrine-image settle: a root file system with ids of its own is made ready to live in
 *
 *	settle ROOT USER UID GID HOME SHELL SUDO
 *
 * Who will work in it becomes one of its users; the files that a sandbox covers with its own are there to be covered; and
 * our sudo lies in /usr/local/bin. What is there may be anybody's image: every directory is opened within the root
 * and without following a link, and what has to be replaced is removed first and made with O_EXCL.
 */
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "image/image.h"

#define SAFE (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)
#define TEXT_MAX (4 * MIB)

bool image_is_root(void)
{
	return geteuid() == 0;
}

static int open_dir(int root, const char *path, struct err *e)
{
	int r = path_mkdirs(root, path, 0755);
	int fd = r < 0 ? r : path_openat2(root, path + 1, O_RDONLY | O_DIRECTORY, SAFE);

	return fd < 0 ? err_set(e, ERR_DENIED, -fd, "'%s' of the image: %s", path,
				strerrordesc_np(-fd))
		      : fd;
}

/* What is there already stays, if it is a file. */
static int need_file(int dir, const char *name, struct err *e)
{
	struct stat st;
	int fd;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
		return 0;
	(void)path_remove(dir, name); /* if it stays, making it says so */
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return err_sys(e, "'/etc/%s' of the image", name);
	fd_close(fd);
	return 0;
}

/* Does a line of these begin with "NAME:", or have the number as its third field? */
static bool has_id(const char *text, const char *name, const char *id)
{
	while (*text) {
		size_t n = strcspn(text, "\n"), first = strcspn(text, ":\n");
		const char *p = text + first;

		if (first == strlen(name) && strncmp(text, name, first) == 0 && *p == ':')
			return true;
		p += *p == ':';
		p += strcspn(p, ":\n");
		p += *p == ':';
		if (strcspn(p, ":\n") == strlen(id) && strncmp(p, id, strlen(id)) == 0)
			return true;
		text += n + (text[n] == '\n');
	}
	return false;
}

static int add_line(int dir, const char *file, const char *line, const char *name, const char *id,
		    struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(TEXT_MAX);
	_close_ int fd = FD_NONE;
	int r = need_file(dir, file, e);

	if (r < 0)
		return r;
	fd = openat(dir, file, O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, "'/etc/%s' of the image", file);
	r = io_read_fd(fd, &b, e);
	if (r < 0 || has_id(buf_cstr(&b), name, id))
		return r < 0 ? r : 0;
	if (b.n > 0 && b.p[b.n - 1] != '\n' && io_write_all(fd, "\n", 1) < 0)
		return err_sys(e, "'/etc/%s' of the image", file);
	return io_write_all(fd, line, strlen(line)) < 0 ? err_sys(e, "'/etc/%s' of the image", file)
							: 0;
}

static int add_users(int etc, char **argv, struct err *e)
{
	_free_ char *user = mem_fmt("%s:x:%s:%s:%s:%s:%s\n", argv[2], argv[3], argv[4], argv[2],
				    argv[5], argv[6]);
	_free_ char *group = mem_fmt("%s:x:%s:\n", argv[2], argv[4]);
	int r = add_line(etc, "passwd", "root:x:0:0:root:/root:/bin/sh\n", "root", "0", e);

	if (r == 0)
		r = add_line(etc, "group", "root:x:0:\n", "root", "0", e);
	if (r == 0)
		r = add_line(etc, "passwd", user, argv[2], argv[3], e);
	return r < 0 ? r : add_line(etc, "group", group, argv[2], argv[4], e);
}

static int add_sudo(int root, const char *program, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(64 * MIB);
	_close_ int dir = open_dir(root, "/usr/local/bin", e), fd = FD_NONE;
	int r = dir < 0 ? dir : io_read_file(program, &b, e);

	if (r < 0)
		return r;
	(void)path_remove(dir, "sudo"); /* if it stays, making it says so */
	fd = openat(dir, "sudo", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0700);
	if (fd < 0 || io_write_all(fd, b.p, b.n) < 0 || fchmod(fd, 04755) < 0)
		return err_sys(e, "'/usr/local/bin/sudo' of the image");
	return 0;
}

int image_settle(int argc, char **argv, struct err *e)
{
	static const char *const files[] = { "gitconfig", "gitignore", "hostname", "hosts",
					     "resolv.conf" };
	static const char *const dirs[] = { "/usr", "/var/tmp", "/root" };
	_close_ int root = FD_NONE, etc = FD_NONE;
	int r = 0;

	if (argc != 8 || !image_is_root())
		return err_set(e, ERR_USAGE, EINVAL, "settle ROOT USER UID GID HOME SHELL SUDO");
	root = open(argv[1], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (root < 0 || fchmod(root, 0755) < 0)
		return err_sys(e, "'%s'", argv[1]);
	if (faccessat(root, "usr", F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return 0; /* no root file system: the caller says so */
	etc = open_dir(root, "/etc", e);
	r = etc < 0 ? etc : 0;
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(dirs); i++) {
		int fd = open_dir(root, dirs[i], e);

		r = fd < 0 ? fd : 0;
		fd_close(fd);
	}
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(files); i++)
		r = need_file(etc, files[i], e);
	if (r == 0)
		r = add_users(etc, argv, e);
	return r < 0 ? r : add_sudo(root, argv[7], e);
}
