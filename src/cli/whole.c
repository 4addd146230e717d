/* SPDX-License-Identifier: Apache-2.0 */
/* cli/whole.c - see whole.h
 *
 * Checkpoints of a workspace that is written in place belong to the directory; the home of a sandbox, and what was installed
 * in it, to the sandbox. Who names the sandbox means both: the layers are frozen beside the checkpoint of the workspace, and
 * a point in layers.json says which it goes with. Freezing needs a sandbox that does not run; while it runs only its workspace
 * is saved, because a home would have to be copied.
 */
#include "cli/whole.h"

#include "base/loop.h"
#include "cli/cli.h"
#include "cli/client.h"

/* ---- standing still ---- */

static int pause_one(struct still *t, const struct spot *s, const char *name, struct err *e)
{
	struct keep_msg m = { .type = KEEP_PAUSE };
	_close_ int conn = FD_NONE;
	int r;

	if (t->n == STILL_MAX)
		return 0;
	conn = keep_connect(s->host.state_dir, name, e);
	if (conn == -ENOENT) { /* it does not run */
		*e = ERR_INIT;
		return 0;
	}
	r = conn < 0 ? conn : client_ask(conn, &m, KEEP_DONE, e);
	if (r == -EPIPE) { /* it has just ended */
		*e = ERR_INIT;
		return 0;
	}
	if (r == 0)
		t->conn[t->n++] = take_fd(conn);
	return r;
}

static int pause_all(struct still *t, const struct spot *s, struct err *e)
{
	char **names = NULL;
	int r = def_list(s->host.state_dir, false, &names, e);

	for (char **p = names; r == 0 && p && *p; p++) {
		_cleanup_(def_done) struct def d = { 0 };
		struct err ignored;

		if (def_read(s->host.state_dir, *p, &d, &ignored) == 0 &&
		    str_eq(d.workspace, s->host.workspace))
			r = pause_one(t, s, *p, e);
	}
	def_list_free(names);
	return r;
}

int still_begin(struct still *t, const struct spot *s, struct err *e)
{
	int r;

	*t = (struct still){ .began = clock_now() };
	r = s->sandbox ? pause_one(t, s, s->sandbox, e) : pause_all(t, s, e);
	if (r < 0)
		(void)still_end(t);
	return r;
}

uint64_t still_end(struct still *t)
{
	uint64_t ms = (clock_now() - t->began) / NS_PER_MS;
	bool had_to = t->n > 0;

	while (t->n > 0)
		fd_close(t->conn[--t->n]);
	return had_to ? ms + (ms == 0) : 0;
}

/* ---- with its layers ---- */

/* -EBUSY: it runs. */
static int own(struct spot *s, struct err *e)
{
	int r = spot_own(s, e);

	if (r < 0)
		return r;
	review_close(&s->review); /* who held the lock before us may have changed them */
	return review_open(&s->review, s->host.state_dir, s->sandbox, s->host.ws_fd, &s->policy, e);
}

static int forget_gone(struct spot *s, struct err *e)
{
	_free_ uint64_t *ids = NULL;
	size_t n = 0;
	int r = store_list(s->undo.store, &ids, &n, e);

	return r < 0 ? r : layers_keep_trees(&s->review.layers, ids, n, e);
}

int whole_checkpoint(struct spot *s, uint64_t tree, const char *message, bool *ret_did,
		     struct err *e)
{
	uint64_t id;
	int r;

	*ret_did = false;
	if (s->sandbox == NULL)
		return 0;
	/* In layers it could not be started any more. */
	if (spot_needs_layers(&s->host, &s->def, e) < 0) {
		_free_ char *text =
			mem_fmt("the home of '%s' is not part of it: %s", s->sandbox, e->msg);

		*e = ERR_INIT;
		cli_complain(text);
		return 0;
	}
	r = own(s, e);
	if (r == -EBUSY) {
		*e = ERR_INIT;
		return 0;
	}
	if (r == 0)
		r = forget_gone(s, e);
	s->review.layers.tree = tree;
	if (r == 0)
		r = layers_checkpoint(&s->review.layers, TREE_MANUAL, message, 0, &id, e);
	if (r == 0)
		r = layers_merge(&s->review.layers, e);
	*ret_did = r == 0;
	return r < 0 ? err_wrap(e, r, "the workspace is saved, the home is not") : 0;
}

bool whole_is_in_layers(const struct spot *s)
{
	return s->review.layers.home.n > 0 || s->review.layers.sys.n > 0;
}

int whole_checkpoint_still(struct spot *s, uint64_t tree, const char *message, struct err *e)
{
	uint64_t id;

	if (!whole_is_in_layers(s))
		return 0;
	s->review.layers.tree = tree;
	return layers_checkpoint_live(&s->review.layers, TREE_MANUAL, message, &id, e);
}

int whole_restore(struct spot *s, uint64_t tree, uint64_t present, bool *ret_did, struct err *e)
{
	const struct point *p;
	uint64_t id;
	int r;

	*ret_did = false;
	if (s->sandbox == NULL || layers_point_of(&s->review.layers, tree) == NULL)
		return 0;
	r = own(s, e);
	if (r == -EBUSY) {
		_free_ char *text = mem_fmt("'%s' is running: its workspace is back, its home was "
					    "left as it is",
					    s->sandbox);

		*e = ERR_INIT;
		cli_complain(text);
		return 0;
	}
	p = r < 0 ? NULL : layers_point_of(&s->review.layers, tree);
	s->review.layers.tree = present;
	if (p)
		r = layers_restore(&s->review.layers, p->id, &id, e);
	*ret_did = r == 0 && p;
	return r < 0 ? err_wrap(e, r, "the workspace is back, the home is not; say it again") : 0;
}

uint64_t whole_target(const struct spot *s)
{
	uint64_t id = s->sandbox ? layers_undo_target(&s->review.layers) : 0;
	const struct point *p = id ? layers_point(&s->review.layers, id) : NULL;

	return p ? p->tree : 0;
}

int whole_prune(struct spot *s, struct err *e)
{
	struct err ignored;
	int r;

	if (s->sandbox == NULL || s->review.layers.n_points == 0)
		return 0;
	if (own(s, &ignored) < 0)
		return 0; /* with the next checkpoint */
	r = forget_gone(s, e);
	return r < 0 ? r : layers_collect(s->host.state_dir, &(uint64_t){ 0 }, e);
}
