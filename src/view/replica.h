/* SPDX-License-Identifier: Apache-2.0 */
/* view/replica.h - a file or directory again, as new files that nobody else has open; and are two of them the same?
 *
 * Internal to view/. What is copied is the host's; where the copy goes somebody may be looking, so every name is made,
 * never opened.
 */
#ifndef VITRINE_VIEW_REPLICA_H
#define VITRINE_VIEW_REPLICA_H

#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"

/* Makes `to` in dir_fd from what `from` (a file or directory, open for reading) is: content, mode and, where we may, owner.
 * At most `bytes` of content. 0; -E2BIG, also for very many files; -errno. Half a copy may be left. */
int replica_make(int from, int dir_fd, const char *to, uint64_t bytes);

/* A name that nobody can have guessed, for a file that is put in another's place. 0 or -errno. */
#define REPLICA_TEMP_MAX 40
int replica_temp(char ret[REPLICA_TEMP_MAX]);

/* Exchanges the names of `temp`, a file or directory of ours, and of what was seen at `name`; is_whole: and was read, so
 * that it may not have been written to since. 0: the other one is called `temp` now. -EAGAIN: it was replaced meanwhile,
 * and all names are as before; -ESTALE: replaced again and again, and `temp` is another's file now, which must not be removed;
 * -EINVAL, -ENOSYS: the file system cannot; -errno. */
int replica_swap(int dir_fd, const char *temp, const char *name, const struct stat *seen,
		 bool is_whole);

/* A new file with these bytes, and mode and owner like `like`. */
int replica_write(int dir_fd, const char *to, const char *p, size_t n, const struct stat *like);

/* The same content and the same right to be run, all the way down. False also when that would take too long to say. */
bool replica_is_same(int a, int b, uint64_t bytes);

/* All of a regular file from its beginning, wherever the descriptor stands. 0, -EMSGSIZE over the ceiling, -errno. */
int replica_read(int fd, struct buf *ret);

#endif
