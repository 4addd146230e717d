/* SPDX-License-Identifier: Apache-2.0 */
/* base/path.h - paths as text, and the only way to open one that somebody else chose
 *
 * Text functions work on components, never on string prefixes: /a/b is not beneath /a/bc.
 */
#ifndef VITRINE_BASE_PATH_H
#define VITRINE_BASE_PATH_H

#include <sys/stat.h>

#include "base/err.h"

/* Absolute and normal: begins with /, no empty, "." or ".." component, no trailing slash but for "/". */
bool path_is_clean(const char *p);

/* Lexical: base + rel, "." and ".." resolved without looking at the disk. rel may be absolute. */
char *path_join(const char *base, const char *rel);

/* path equals dir or lies below it. Both clean. */
bool path_is_beneath(const char *path, const char *dir);

/* Parents before children, component by component: "/a/b" < "/a/b/c" < "/a/b-c". */
int path_cmp(const char *a, const char *b);

/* The part of path below dir ("" when equal). path must be beneath dir. */
const char *path_below(const char *path, const char *dir);

/* "/a/b" -> "/a"; "/" -> "/". */
char *path_parent(const char *path);
const char *path_name(const char *path);

/* openat2 beneath dirfd: no symlinks, no magic links, no way up. ENOSYS is `unsupported`, never a fallback. */
int path_open_beneath(int dirfd, const char *rel, int flags, struct err *e);

/* Same without a story, for code between clone and exec: fd or -errno. */
int path_openat2(int dirfd, const char *rel, int flags, uint64_t resolve);

/* Creates rel below dirfd with missing parents (0700), following nothing. 0 or -errno. */
int path_mkdirs(int dirfd, const char *rel, mode_t mode);

/* mkdir -p of a path of our own on the host; links on the way are the user's and are followed. 0 or -errno. */
int path_make(const char *path, mode_t mode);
/* Something to mount on, where there may be nothing yet: a directory or an empty file. 0 or -errno. */
int path_make_point(const char *path, bool is_dir);

/* Removes name below dirfd with all that is in it: no link followed, no other file system entered, directories that
 * were closed on purpose opened first. What cannot go stays. 0 when it is gone, else -errno. */
int path_remove(int dirfd, const char *name);

/* Real path of an existing file or directory, as the kernel sees it. */
int path_real(const char *path, char **ret, struct err *e);

#endif
