/* SPDX-License-Identifier: Apache-2.0 */
/* tree/ignore.h - which directories a .gitignore names; internal to tree/
 *
 * Only whole directories are left out of a checkpoint, never single files. Rules of a deeper file beat those of a
 * higher one, later lines beat earlier ones, "!" takes back. A pattern means what it means in a policy, which is what
 * git means by it.
 */
#ifndef VITRINE_TREE_IGNORE_H
#define VITRINE_TREE_IGNORE_H

#include "base/base.h"

struct ignore;

/* Adds the rules of the file `text` in directory `dir` ("" for the root). *g is made when first needed. */
void ignore_add(struct ignore **g, const char *dir, const char *text, size_t n);
/* Forgets the rules of directories that do not hold `dir`. */
void ignore_leave(struct ignore *g, const char *dir);
/* Is the directory `path` named? */
bool ignore_dir(const struct ignore *g, const char *path);
void ignore_free(struct ignore *g);

#endif
