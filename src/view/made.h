/* SPDX-License-Identifier: Apache-2.0 */
/* view/made.h - repositories and worktrees that sandboxes made in a directory, so that later ones can take them away again
 *
 * What a repository of the host configures is protected, by mounts: its files cannot be removed or moved inside. A
 * repository that was made inside has nothing to protect as long as the host has not touched what git acts upon: the sweep
 * holds it to the same rules as one that is made in this session. So at the end of each session, when nothing inside lives
 * and the sweep has nothing against it, it is written down which they are: by path, and by number, size and times of every
 * part (the table in git.c). The time of change moves with whatever the host does to a part, and nobody can set it. A git
 * dir that is not found exactly so is the host's, and so is the workspace's own (.git at its top), whoever made it.
 */
#ifndef VITRINE_VIEW_MADE_H
#define VITRINE_VIEW_MADE_H

#include "base/sha256.h"

#define MADE_MAX 1024 /* the newest stay */

struct made_one {
	char hex[SHA256_HEX_BYTES];
};

struct made {
	struct made_one *v;
	size_t n, cap;
};

/* What is on record in the state directory about the directory `dir`; nothing where that cannot be read. */
void made_load(const char *state_dir, const char *dir, struct made *ret);
/* Adds what is in `now` to the record. 0 or -errno. */
int made_save(const char *state_dir, const char *dir, const struct made *now);
void made_done(struct made *m);

/* A git dir, open, that is rel below the directory; a file called .git. */
bool made_has_gitdir(const struct made *m, int fd, const char *rel);
bool made_has_file(const struct made *m, int dir_fd, const char *name, const char *rel);
void made_add_gitdir(struct made *m, int fd, const char *rel);
void made_add_file(struct made *m, int dir_fd, const char *name, const char *rel);

#endif
