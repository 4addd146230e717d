/* SPDX-License-Identifier: Apache-2.0 */
/* base/io.h - whole reads and writes; the only place that retries EINTR */
#ifndef VITRINE_BASE_IO_H
#define VITRINE_BASE_IO_H

#include "base/buf.h"
#include "base/err.h"

int io_write_all(int fd, const void *p, size_t n);    /* 0 or -errno */
ssize_t io_read(int fd, void *p, size_t n);           /* >= 0 or -errno */
int io_read_fd(int fd, struct buf *b, struct err *e); /* to the end; -EMSGSIZE over the ceiling */
/* A regular file to its end: 0 or -errno, -EINVAL when it is something else. A negative fd is the error of its open. */
int io_read_regular(int fd, struct buf *b);
int io_read_file(const char *path, struct buf *b, struct err *e);
int io_write_file(const char *path, const char *text,
		  struct err *e); /* existing file, one write: /proc, cgroups */

/* Raises this process's own limit of open files, to `most` where it may; what the limit is then. */
size_t io_most_files(size_t most);

#endif
