/* SPDX-License-Identifier: Apache-2.0 */
/* base/io.c - see io.h */
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/io.h"

int io_write_all(int fd, const void *p, size_t n)
{
	const char *c = p;

	while (n > 0) {
		ssize_t w = write(fd, c, n);

		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return -errno;
		c += w;
		n -= (size_t)w;
	}
	return 0;
}

ssize_t io_read(int fd, void *p, size_t n)
{
	for (;;) {
		ssize_t r = read(fd, p, n);

		if (r >= 0)
			return r;
		if (errno != EINTR)
			return -errno;
	}
}

int io_read_fd(int fd, struct buf *b, struct err *e)
{
	char chunk[16384];

	for (;;) {
		ssize_t r = io_read(fd, chunk, sizeof(chunk));

		if (r < 0) {
			errno = (int)-r;
			return err_sys(e, "read");
		}
		if (r == 0)
			return 0;
		buf_add(b, chunk, (size_t)r);
		if (b->is_over)
			return err_set(e, ERR_CONFIG, EMSGSIZE, "larger than %zu bytes", b->max);
	}
}

int io_read_regular(int fd, struct buf *b)
{
	struct err ignored = ERR_INIT;
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? io_read_fd(fd, b, &ignored) : -EINVAL;
}

int io_read_file(const char *path, struct buf *b, struct err *e)
{
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int r;

	if (fd < 0)
		return err_sys(e, "open '%s'", path);
	r = io_read_fd(fd, b, e);
	return r < 0 ? err_wrap(e, r, "'%s'", path) : 0;
}

int io_write_file(const char *path, const char *text, struct err *e)
{
	_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return err_sys(e, "open '%s'", path);
	r = io_write_all(fd, text, strlen(text));
	if (r < 0) {
		errno = -r;
		return err_sys(e, "write '%s'", path);
	}
	return 0;
}

size_t io_most_files(size_t most)
{
	struct rlimit l = { .rlim_cur = 1024, .rlim_max = 1024 };

	if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
		l.rlim_cur = l.rlim_max > most ? most : l.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &l); /* what we have will do otherwise */
		(void)getrlimit(RLIMIT_NOFILE, &l);
	}
	return l.rlim_cur;
}
