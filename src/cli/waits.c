/* SPDX-License-Identifier: Apache-2.0 */
/* cli/waits.c - see waits.h */
#include <fcntl.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/waits.h"
#include "core/layers.h"
#include "git/git.h"

#define BRANCHES_SHOWN 5

/* As `diff` names them: a directory counts only where it is the whole change. */
static uint64_t count(const struct changes *c)
{
	uint64_t n = 0;

	for (size_t i = 0; i < c->n; i++) {
		const struct tree_entry *en = c->v[i].b ? c->v[i].b : c->v[i].a;

		n += !S_ISDIR(en->mode);
	}
	return n ? n : c->n;
}

static int find_changes(const struct layers *l, const char *workspace, struct waits *ret,
			struct err *e)
{
	_close_ int ws = open(workspace, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct overlay_diff d = { 0 };
	struct overlay o = { 0 };
	int r = ws < 0 ? err_sys(e, "'%s'", workspace) : layers_open(l, &l->ws, ws, &o, e);

	if (r == 0)
		r = overlay_compare(&o, false, &d, e);
	if (r == 0)
		ret->changes = count(&d.changes);
	overlay_diff_done(&d);
	layers_close(&o);
	return r;
}

static void put_branches(const struct git_refs *refs, struct buf *out)
{
	for (size_t i = 0; i < refs->n && i < BRANCHES_SHOWN; i++) {
		const char *name = refs->v[i].name;

		name += str_starts(name, "refs/heads/") ? strlen("refs/heads/") : 0;
		buf_puts(out, i ? ", " : "");
		buf_esc(out, name, strlen(name));
	}
	if (refs->n > BRANCHES_SHOWN)
		buf_printf(out, " and %zu more", refs->n - BRANCHES_SHOWN);
}

static int find_commits(const struct layers *l, const char *workspace, struct waits *ret,
			struct err *e)
{
	_free_ char *bare = mem_fmt("%s/sandboxes/%s/" GIT_CLONE_REPO, l->state_dir, l->name);
	_cleanup_(git_refs_done) struct git_refs refs = { 0 };
	struct buf b = BUF(64 * KIB);
	struct overlay o = { 0 };
	int r = layers_open(l, &l->ws, FD_NONE, &o, e);

	if (r == 0)
		r = git_clone_waits(bare, workspace, o.layers, o.n, &refs, e);
	layers_close(&o);
	put_branches(&refs, &b);
	ret->branches = refs.n ? buf_take(&b) : NULL;
	return r;
}

void waits_find(const char *state_dir, const char *name, const char *workspace, struct waits *ret)
{
	struct layers l = { 0 };
	struct err e = ERR_INIT;
	int r = layers_read(state_dir, name, &l, &e);

	*ret = (struct waits){ 0 };
	if (r == 0 && l.ws.n > 0) {
		_free_ char *top = layers_path_of(&l, l.ws.v[0], "");

		/* Layers are named before the first start makes them. */
		if (access(top, F_OK) < 0)
			r = 0;
		else if (workspace == NULL)
			r = err_set(&e, ERR_CONFIG, ENOENT, "its definition is damaged");
		else if (git_clone_exists(state_dir, name))
			r = find_commits(&l, workspace, ret, &e);
		else
			r = find_changes(&l, workspace, ret, &e);
	}
	ret->is_unknown = r < 0;
	ret->why = e;
	layers_done(&l);
}

void waits_done(struct waits *w)
{
	free(w->branches);
	*w = (struct waits){ 0 };
}

char *waits_text(const struct waits *w)
{
	if (w->is_unknown)
		return mem_fmt(WAITS_UNKNOWN " (%.200s)", w->why.msg);
	if (w->changes)
		return mem_fmt("%llu change%s", (unsigned long long)w->changes,
			       w->changes == 1 ? "" : "s");
	return w->branches ? mem_fmt(WAITS_COMMITS "%s", w->branches) : NULL;
}

char *waits_how(const struct waits *w, const char *name)
{
	if (w->is_unknown)
		return mem_fmt("'vitrine inspect %s' shows what is known of it", name);
	if (w->branches)
		return mem_fmt("'vitrine fetch %s' takes them out and shows them, 'git fetch "
			       "vitrine/%s' "
			       "brings them into your repository",
			       name, name);
	return mem_fmt("'vitrine diff %s' shows them, 'vitrine apply %s' takes them over", name,
		       name);
}
