/* SPDX-License-Identifier: Apache-2.0 */
/* core/layers_own.h - what layers.c, layers_file.c and layers_points.c share */
#ifndef VITRINE_CORE_LAYERS_OWN_H
#define VITRINE_CORE_LAYERS_OWN_H

#include <sys/stat.h>

#include "core/layers.h"

int layers_lock(const char *state_dir, struct err *e);
/* The same, and *l is what is on disk then: since it was read somebody else may have changed it, whose change must not be
 * lost. Pointers into *l are no longer good. */
int layers_lock_fresh(struct layers *l, struct err *e);
/* layers_read() for who holds the lock. */
int layers_read_held(const char *state_dir, const char *name, struct layers *ret, struct err *e);
int layers_finish_move(struct layers *l, struct err *e);

void stack_push(struct stack *s, const char *id);
void stack_copy(struct stack *to, const struct stack *from);

/* A new layer that nobody names yet; without fs/ where that is about to be moved there. */
int layers_make(const struct layers *l, mode_t mode, bool with_fs, char id[LAYER_ID_BYTES],
		struct err *e);
mode_t layers_mode(const struct layers *l, const struct stack *s);
/* A head that shows what `frozen` does: a new layer on top of it. */
int layers_new_head(struct layers *l, struct stack *head, const struct stack *frozen,
		    struct err *e);

/* Calls fn(arg) with every right over the files of the sandbox, in a child: only its result and its error come back. Where
 * there can be no such child, for a sandbox with a root inside without(arg) is called instead (NULL: it is an error). */
typedef int layers_fn(void *arg, struct err *e);
int layers_with_rights(const struct layers *l, layers_fn *fn, layers_fn *without, void *arg,
		       struct err *e);

#endif
