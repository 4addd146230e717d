/* SPDX-License-Identifier: Apache-2.0 */
/* view/ws.h - names inside a workspace that other files point at
 *
 * Internal to view/. Pointers (a link's target, "gitdir: x", core.hooksPath) are text from the workspace; the
 * question is always the same: which path below the workspace does it mean, if any? Nothing outside is touched.
 */
#ifndef VITRINE_VIEW_WS_H
#define VITRINE_VIEW_WS_H

#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"

struct ws {
	int fd;    /* borrowed */
	char *abs; /* its real path: the same inside and outside */
};

int ws_init(struct ws *ws, int fd, struct err *e);
void ws_done(struct ws *ws);

/* What text means in the directory base (below the workspace), links followed as the kernel would but only as
 * far as they stay in the workspace. 0 and *ret_rel (never ""), -EXDEV outside or the workspace itself, -ENOENT ... */
int ws_resolve(const struct ws *ws, const char *base, const char *text, char **ret_rel);

/* The same for pointers that we have no reason to trust: a link anywhere on the way is -ELOOP. With -ENOENT
 * *ret_rel holds the path as text. */
int ws_target(const struct ws *ws, const char *base, const char *text, char **ret_rel);

/* A whole regular file of at most max bytes, no links: 0, -EMSGSIZE, -EINVAL for another type, -errno. */
int ws_read(int dir_fd, const char *rel, struct buf *ret);

/* "a/b" from "a" and "b"; a is "" at the top. */
char *ws_rel(const char *dir, const char *name);

/* lstat of a path of any length. 0 or -errno. */
int ws_lstat(int ws_fd, const char *rel, struct stat *ret);

#endif
