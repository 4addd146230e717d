/* SPDX-License-Identifier: Apache-2.0 */
/* tree/overlay_own.h - what overlay.c and overlay_join.c share: asking the layers about one path */
#ifndef VITRINE_TREE_OVERLAY_OWN_H
#define VITRINE_TREE_OVERLAY_OWN_H

#include <sys/stat.h>

#include "tree/overlay.h"

/* What one layer says of a path. */
enum says { SAYS_NOTHING, SAYS_GONE, SAYS_FILE, SAYS_DIR, SAYS_OPAQUE };

/* What all of them say together: the topmost that says something, which layers make up the directory when it is one, and
 * whether what lies below them still shows. */
struct overlay_shown {
	enum says says;
	size_t first, end;
	bool base_shows;
	struct stat st; /* of the topmost */
};
struct overlay_shown overlay_ask(const struct overlay *o, const char *path, size_t first,
				 size_t end);

struct overlay_list {
	char **v;
	size_t n, cap;
};
/* Adds the names of a directory. 0 also where there is none; -errno when it, or a part of it, cannot be read. */
int overlay_list(int root, const char *path, struct overlay_list *l);
/* Greatest first, for a stack. */
void overlay_list_sort(struct overlay_list *l);
void overlay_list_done(struct overlay_list *l);

#endif
