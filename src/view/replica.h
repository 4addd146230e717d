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

/* A new file with these bytes, and mode and owner like `like`. */
int replica_write(int dir_fd, const char *to, const char *p, size_t n, const struct stat *like);

/* The same content and the same right to be run, all the way down. False also when that would take too long to say. */
bool replica_is_same(int a, int b, uint64_t bytes);

/* All of a regular file from its beginning, wherever the descriptor stands. 0, -EMSGSIZE over the ceiling, -errno. */
int replica_read(int fd, struct buf *ret);

#endif
