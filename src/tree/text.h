/* SPDX-License-Identifier: Apache-2.0 */
/* tree/text.h - strings that live as long as their index; internal to tree/ */
#ifndef VITRINE_TREE_TEXT_H
#define VITRINE_TREE_TEXT_H

#include "base/base.h"

struct tree_text;

/* All strings of one index together; a tree made to exhaust us ends with an error instead. */
#define TREE_TEXT_MAX GIB

/* n bytes to fill, NULL when the bound is reached. *t is made when first needed. */
char *text_room(struct tree_text **t, size_t n);
/* A copy with a NUL behind it. */
char *text_copy(struct tree_text **t, const void *p, size_t n);
/* "dir/name", or "name" when dir is NULL. */
char *text_join(struct tree_text **t, const char *dir, const char *name);
void text_free(struct tree_text *t);

#endif
