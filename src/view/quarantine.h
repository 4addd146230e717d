/* SPDX-License-Identifier: Apache-2.0 */
/* view/quarantine.h - take a name out of a directory that somebody else may be changing
 *
 * Internal to view/. Everything works on one name in an open directory, so whatever is swapped in at that name, or
 * anywhere around it, nothing but that entry (and what is in it) is touched.
 */
#ifndef VITRINE_VIEW_QUARANTINE_H
#define VITRINE_VIEW_QUARANTINE_H

#include "base/err.h"

/* Moves name out of dir_fd (O_PATH will do) to a numbered name in q_fd, beginning with `number`; copies and removes
 * when that is another file system. A symbolic link becomes a text file that says where it led; sockets, pipes and
 * what is too large to copy (64 MiB, 10000 entries) are removed. 0 with *ret_saved (NULL: removed), or -errno: -ENOENT
 * when there was nothing. */
int quarantine_take(int q_fd, unsigned number, int dir_fd, const char *name, char **ret_saved);
/* The same, saved as if its name were `as`. */
int quarantine_take_as(int q_fd, unsigned number, int dir_fd, const char *name, const char *as,
		       char **ret_saved);

/* Removes whatever has the name. 0 or -errno. */
int quarantine_remove(int dir_fd, const char *name);

/* Gives ourselves u+rwx on a directory of ours: what was made inside may have been made unreadable on purpose.
 * name "." is dir_fd itself. 0 or -errno. */
int quarantine_loosen(int dir_fd, const char *name);

#endif
