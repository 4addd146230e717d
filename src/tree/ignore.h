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

/* Adds the rules of the file `text` in directory `dir` ("" for the root). *g is made when first needed. Rules of directories that
 * do not hold `dir` must have been forgotten before. */
void ignore_add(struct ignore **g, const char *dir, const char *text, size_t n);
/* Forgets the rules of directories that do not hold `dir`. */
void ignore_leave(struct ignore *g, const char *dir);
/* Is the directory `path`, which lies in all directories whose rules were added and not forgotten, named? */
bool ignore_dir(struct ignore *g, const char *path);
/* How many bytes of further files may be read. */
size_t ignore_room(const struct ignore *g);
/* A file was not read, because it is too long. */
void ignore_skip(struct ignore **g);
/* Was a bound reached, so that not all rules were followed? */
bool ignore_is_cut(const struct ignore *g);
void ignore_free(struct ignore *g);

#endif
