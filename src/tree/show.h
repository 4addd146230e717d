/* SPDX-License-Identifier: Apache-2.0 */
/* tree/show.h - differences for people and machines
 *
 * The patch form is git's, so that `git apply` and `patch` take it. Contents come from whoever has them.
 */
#ifndef VITRINE_TREE_SHOW_H
#define VITRINE_TREE_SHOW_H

#include "tree/tree.h"

enum show_form { SHOW_PATCH, SHOW_STAT, SHOW_NAMES, SHOW_JSON, SHOW_FORM_COUNT_ };

#define SHOW_TEXT_MAX (4 * MIB) /* longer files are only said to differ */

struct show {
	enum show_form form;
	/* Content of a regular file, before (is_new false) or after. Negative: not to be had. */
	int (*read)(void *arg, const struct tree_entry *en, bool is_new, struct buf *out);
	/* What is to be said about a path ("runs code on the host: ..."), or NULL. May itself be NULL. */
	const char *(*note)(void *arg, const struct change *c);
	void *arg;
};

void tree_show(const struct changes *c, const struct show *s, struct buf *out);

/* A path as git writes it: in quotes with escapes when a byte of it needs that. */
void show_path(struct buf *out, const char *prefix, const char *path);

/* Not worth a line of its own: a directory that appears or goes with what is in it. */
bool show_is_silent(const struct changes *c, size_t i);

#endif
