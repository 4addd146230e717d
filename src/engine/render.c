/* SPDX-License-Identifier: Apache-2.0 */
/* engine/render.c - what all renderers share
 *
 * The native engine's private space is one tmpfs with one size. Other tools make one per directory, so the size is
 * divided: each gets its share, and the sum is never more than was allowed.
 *
 * Behind root's sandboxes what a tool is shown lies by number in a place of its own, see mapped.c.
 */
#include "engine/render.h"
#include "base/path.h"

static const struct {
	const char *name;
	unsigned mode, share; /* sixteenths */
} private_dirs[] = {
	{ "tmp", 01777, 6 }, { "var-tmp", 01777, 2 }, { "shm", 01777, 2 },
	{ "run", 0755, 1 },  { "home", 0700, 5 },
};

void rendering_done(struct rendering *r)
{
	args_done(&r->args);
	args_done(&r->env);
	free(r->file);
	buf_done(&r->text);
}

bool render_skips(const struct render_in *in, size_t i)
{
	return in->gone && in->gone[i];
}

/* Who shows this path of the host: the mount of the plan that begins closest to it. */
static const struct mount *shown_by(const struct plan *p, const char *path)
{
	const struct mount *best = NULL;

	for (size_t i = 0; i < p->n_mounts; i++) {
		const struct mount *m = &p->mounts[i];

		if (m->kind == MOUNT_BIND && path_is_beneath(path, m->src) &&
		    (best == NULL || strlen(m->src) >= strlen(best->src)))
			best = m;
	}
	return best;
}

/* A name over itself is taken from the tree that it lies in. */
static char *placed_source(const struct render_in *in, const struct mount *m)
{
	bool is_itself = m->kind == MOUNT_BIND || m->kind == MOUNT_LAYER;
	const struct mount *from = is_itself ? m : shown_by(in->plan, m->src);

	if (from == NULL)
		return mem_str(m->src);
	return mem_fmt("%s/%zu%s", in->place, (size_t)(from - in->plan->mounts),
		       m->src + strlen(from->src));
}

/* The directory that nobody may open lies in the skeleton, which is root's own; a tool that opens what it has mounted (crun)
 * could not, so behind root's sandboxes the tool has one that is its own, as an ordinary user's has. */
char *render_source(const struct render_in *in, const struct mount *m)
{
	switch (m->kind) {
	case MOUNT_HIDE:
		if (in->place && m->flags & MOUNT_DIR)
			return mem_fmt("%s/cover", in->place);
		return mem_fmt("%s/.vitrine/%s", in->skel, m->src);
	case MOUNT_DEVICE:
		return mem_str(m->dst);
	case MOUNT_BIND:
	case MOUNT_PROTECT:
	case MOUNT_PIN:
	case MOUNT_LAYER: /* only machines stack them */
		return in->place ? placed_source(in, m) : mem_str(m->src);
	case MOUNT_PRIVATE:
	case MOUNT_PROC:
	case MOUNT_PTS:
	case MOUNT_OVERLAY: /* STEP_LAYERS: refused before */
	case MOUNT_PART:
	case MOUNT_SERVE: /* the native engine alone */
	case MOUNT_KIND_COUNT_:
		break;
	}
	return mem_str(m->src);
}

unsigned render_mode(const struct mount *m)
{
	for (size_t i = 0; i < ARRAY_LEN(private_dirs); i++)
		if (str_eq(m->src, private_dirs[i].name))
			return private_dirs[i].mode;
	return 0755;
}

uint64_t render_bytes(const struct plan *p, const struct mount *m)
{
	for (size_t i = 0; i < ARRAY_LEN(private_dirs); i++)
		if (str_eq(m->src, private_dirs[i].name))
			return p->private_bytes / 16 * private_dirs[i].share;
	return p->private_bytes;
}

uint64_t render_files(const struct plan *p, const struct mount *m)
{
	uint64_t bytes = render_bytes(p, m);

	return bytes ? bytes / 4096 + 256 : 0;
}

bool render_is_dev(const struct mount *m)
{
	return m->kind == MOUNT_DEVICE || m->kind == MOUNT_PTS;
}

const char *render_word(char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (; env && *env; env++)
		if (str_starts(*env, name) && (*env)[n] == '=')
			return *env + n + 1;
	return NULL;
}
