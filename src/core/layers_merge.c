/* SPDX-License-Identifier: Apache-2.0 */
/* core/layers_merge.c - one layer of many, where looking through them would begin to cost
 *
 * The frozen layers of a stack become one new layer; the one that is written stays on top. The old ones stay as long as a
 * checkpoint names them.
 */
#include <fcntl.h>

#include "core/layers_own.h"

struct join_job {
	struct overlay o;
	int to;
};

static int join(void *arg, struct err *e)
{
	const struct join_job *j = arg;

	return overlay_join(&j->o, j->to, e);
}

static int merge_frozen(const struct layers *l, struct stack *frozen, mode_t mode, struct err *e)
{
	struct join_job j = { .to = FD_NONE };
	_free_ char *path = NULL;
	char id[LAYER_ID_BYTES];
	int r = layers_open(l, frozen, FD_NONE, &j.o, e);

	if (r == 0)
		r = layers_make(l, mode, true, id, e);
	if (r == 0) {
		path = layers_path_of(l, id, "/fs");
		j.to = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = j.to < 0 ? err_sys(e, "'%s'", path) : layers_with_rights(l, join, NULL, &j, e);
	}
	fd_close(j.to);
	layers_close(&j.o);
	if (r < 0)
		return r;
	frozen->n = 0;
	stack_push(frozen, id);
	return 0;
}

/* 1: it is another stack now. The lock is held. */
static int merge_stack(const struct layers *l, struct stack *s, struct err *e)
{
	struct stack frozen = { 0 };
	int r;

	if (s->n < LAYERS_MERGE_AT)
		return 0;
	for (size_t i = s->n; i-- > 1;)
		stack_push(&frozen, s->v[i]);
	r = merge_frozen(l, &frozen, layers_mode(l, s), e);
	if (r == 0) {
		stack_push(&frozen, s->v[0]);
		stack_copy(s, &frozen);
	}
	free(frozen.v);
	return r < 0 ? r : 1;
}

int layers_merge(struct layers *l, struct err *e)
{
	_close_ int lock = FD_NONE;
	struct stack *all[] = { &l->ws, &l->home, &l->sys };
	int r = 0;

	if (l->ws.n < LAYERS_MERGE_AT && l->home.n < LAYERS_MERGE_AT && l->sys.n < LAYERS_MERGE_AT)
		return 0;
	lock = layers_lock_fresh(l, e);
	if (lock < 0)
		return lock;
	for (size_t i = 0; r >= 0 && i < ARRAY_LEN(all); i++)
		r = merge_stack(l, all[i], e);
	return r < 0 ? r : layers_write(l, e);
}
