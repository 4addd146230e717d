/* SPDX-License-Identifier: Apache-2.0 */
/* keep/masks.c - hidden stays hidden, protected stays protected, and what appears is taken away
 *
 * A mask is a mount on a file. When the host replaces that file (editors and git save by rename), the kernel takes
 * the mount away with the old file and the new one lies bare. So the parents of all masked names are watched; when
 * one changes, every process inside is stopped, a helper enters the mount namespace and covers the name again, and
 * the processes go on. docs/SECURITY.md states the window.
 *
 * All of this is done for the workspace and for every directory that was granted for writing (struct guarded).
 *
 * A protected name that did not exist cannot be covered, and nothing is created on the host to make it so. It is
 * moved to the quarantine when it appears, and once more at the end, when nothing inside lives any more.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/sabotage.h"
#include "engine/engine.h"
#include "keep/keeper.h"
#include "view/fswatch.h"

#define STEP_NS (2 * NS_PER_MS)
#define STEP_EVERY_NS (20 * NS_PER_MS)
#define CALM_NS NS_PER_MS
#define NEW_DIR_NS (100 * NS_PER_MS)
#define NOTES_MAX 100

/* A directory of the host that can be written inside: the workspace, or one that was granted. */
struct guarded {
	struct keeper *k;
	const char *inside; /* where it is seen */
	const char *named;  /* what its names begin with for people: "" for the workspace */
	struct scan *scan;
	int fd;
	bool is_kept; /* nothing that is written reaches the host: nothing to take away */
	struct fswatch *watch;
	struct watch *on_fd, *on_step, *on_calm, *on_new;
	char **replaced; /* names to cover again, once everything inside stands still */
	size_t n, cap;
	char **gone; /* hidden names the host removed: hidden again should they come back */
	size_t n_gone, cap_gone;
	bool is_all; /* events were lost: every name */
};

struct masks {
	struct guarded *v; /* the first is the workspace */
	size_t n;
	char *quarantine; /* made when first needed */
	bool is_waiting;  /* for init to say that it does */
	size_t told;
};

/* ---- quarantine ---- */

static void name_of(const struct guarded *g, const char *rel, struct buf *out)
{
	buf_printf(out, "%s%s", g->named, g->named[0] ? "/" : "");
	buf_puts(out, rel);
}

static void on_take(void *guarded, const char *rel, const char *rule)
{
	struct guarded *g = guarded;
	_cleanup_(buf_done) struct buf b = BUF(16 * KIB);

	name_of(g, rel, &b);
	tell_quarantined(g->k, buf_cstr(&b), rule);
}

static void tell_swept(struct guarded *g)
{
	struct keeper *k = g->k;

	for (; k->masks->told < k->swept.n; k->masks->told++) {
		const struct swept *s = &k->swept.v[k->masks->told];
		_cleanup_(buf_done) struct buf b = BUF(16 * KIB);

		if (k->masks->told >= NOTES_MAX)
			continue;
		buf_puts(&b, "quarantined ");
		name_of(g, s->rel, &b);
		buf_printf(&b, " (%s)", s->rule);
		keeper_note(k, buf_cstr(&b));
	}
}

/* The whole directory, or one path in it. */
static int sweep(struct guarded *g, const char *rel, struct err *e)
{
	struct keeper *k = g->k;
	int r;

	if (sabotaged("quarantine") || g->is_kept || (g->named[0] && sabotaged("grants")))
		return 0;
	k->swept.arg = g;
	r = rel ? sweep_one(g->fd, FD_NONE, k->in->policy, g->scan, rel, &k->swept, e)
		: sweep_run(g->fd, FD_NONE, k->in->policy, g->scan, &k->swept, e);
	tell_swept(g);
	return r;
}

/* ---- covering again ---- */

static void ask_to_freeze(struct keeper *k)
{
	if (k->masks->is_waiting || sabotaged("remask"))
		return;
	k->masks->is_waiting = true;
	freeze_ask(k);
}

static bool is_gone(const struct guarded *g, const char *rel)
{
	for (size_t i = 0; i < g->n_gone; i++)
		if (str_eq(g->gone[i], rel))
			return true;
	return false;
}

static void replace(struct guarded *g, const char *rel)
{
	vec_reserve(g->replaced, g->n, g->cap);
	g->replaced[g->n++] = mem_str(rel);
	ask_to_freeze(g->k);
}

static void on_change(void *arg, enum fswatch_kind kind, const char *rel)
{
	struct guarded *g = arg;
	struct err e = ERR_INIT;

	switch (kind) {
	case FSWATCH_APPEARED:
		if (is_gone(g, rel))
			replace(g, rel);
		else
			/* What fails now is tried again at the end, and reported then. */
			(void)sweep(g, rel, &e);
		break;
	case FSWATCH_REPLACED:
		replace(g, rel);
		break;
	case FSWATCH_OVERFLOW:
		g->is_all = true;
		ask_to_freeze(g->k);
		break;
	case FSWATCH_KIND_COUNT_:
		bug_on(true);
	}
}

static bool is_cover(const struct mount *m)
{
	return m->kind == MOUNT_HIDE || m->kind == MOUNT_PROTECT || m->kind == MOUNT_PIN;
}

/* The host may have written a token into a git configuration that had none: then nothing of it is shown any more. One that is
 * shown as a copy stays what it was. */
static int cover_one(const struct guarded *g, const struct mount *m, struct err *e)
{
	const char *rel = path_below(m->dst, g->inside);
	const struct hit *hit = m->kind == MOUNT_PROTECT ? scan_find(g->scan, rel) : NULL;
	struct mount hidden = *m;
	_free_ char *shown = NULL, *file = mem_str("file");

	if (hit == NULL || !hit->is_config || sabotaged("redact") ||
	    scan_shown(g->fd, rel, &shown) == 0)
		return engine_cover(&g->k->native, m, e);
	hidden.kind = MOUNT_HIDE;
	hidden.src = file;
	return engine_cover(&g->k->native, &hidden, e);
}

/* Covers `rel` and every cover below it; a name that is gone has nothing to cover. */
static void cover_again(const struct guarded *g, const char *rel)
{
	struct keeper *k = g->k;
	const struct plan *p = k->in->plan;
	_free_ char *path = rel[0] ? mem_fmt("%s/%s", g->inside, rel) : mem_str(g->inside);

	for (size_t i = 0; i < p->n_mounts; i++) {
		const struct mount *m = &p->mounts[i];
		struct err e = ERR_INIT;

		if (!is_cover(m) || !path_is_beneath(m->dst, path))
			continue;
		tell_masked(k, m->dst);
		if (cover_one(g, m, &e) < 0) {
			/* A bare name inside is worse than an ended command. */
			err_put_(&k->err, ERR_SYSTEM, e.num,
				 "a protection could not be put back: %.400s", e.msg);
			keeper_end(k, END_ERROR);
			return;
		}
	}
}

static void cover_replaced(struct guarded *g)
{
	struct err e = ERR_INIT;

	for (size_t i = 0; i < g->n; i++) {
		const struct hit *hit = scan_find(g->scan, g->replaced[i]);
		bool is_hidden = is_gone(g, g->replaced[i]) ||
				 (hit && (hit->kind == HIT_HIDE || hit->shown));

		if (scan_refresh(g->scan, g->fd, g->replaced[i], &e) != 0 || is_hidden)
			cover_again(g, g->replaced[i]);
		if (is_hidden && !is_gone(g, g->replaced[i])) {
			vec_reserve(g->gone, g->n_gone, g->cap_gone);
			g->gone[g->n_gone++] = mem_str(g->replaced[i]);
		}
		free(g->replaced[i]);
	}
	g->n = 0;
	if (g->is_all) {
		g->is_all = false;
		cover_again(g, "");
		(void)sweep(g, NULL, &e);
	}
}

void masks_on_frozen(struct keeper *k)
{
	struct masks *m = k->masks;

	if (m == NULL || !m->is_waiting)
		return;
	m->is_waiting = false;
	for (size_t i = 0; i < m->n; i++)
		cover_replaced(&m->v[i]);
}

bool masks_want_freeze(const struct keeper *k)
{
	return k->masks && k->masks->is_waiting;
}

/* ---- the watch ---- */

static void on_step(void *arg)
{
	struct guarded *g = arg;
	struct err e = ERR_INIT;

	if (fswatch_step(g->watch, STEP_NS, on_change, g, &e) <= 0)
		watch_set(g->on_step,
			  false); /* done, or no more watches to be had: the sweep remains */
}

/* A program that unpacks an archive makes some ten names in the time it takes to wake us, and waits for the waking. So
 * when nothing that came was of interest we are not woken again for a moment. */
static void on_watch(void *arg)
{
	struct guarded *g = arg;
	struct err e = ERR_INIT;
	int n = fswatch_read(g->watch, on_change, g, &e);

	watch_set(g->on_fd, n > 0);
	watch_set(g->on_calm, n == 0);
	watch_set(g->on_new, true);
}

/* New directories want watches of their own. Who makes one fills it at once, and pays for an event with every name that
 * is made in a watched one: so they are looked at a moment later, with what is in them by then. */
static void on_new(void *arg)
{
	struct guarded *g = arg;

	watch_set(g->on_step, true);
}

static void on_calm(void *arg)
{
	struct guarded *g = arg;

	watch_set(g->on_fd, true);
}

static void watch_ground(struct guarded *g)
{
	struct keeper *k = g->k;
	struct err e = ERR_INIT;

	if (fswatch_open(g->fd, k->in->policy, g->scan, &g->watch, &e) < 0) {
		_free_ char *note = mem_fmt("cannot watch '%.200s' (%.200s): names that the host "
					    "replaces while the "
					    "command runs are not covered again",
					    g->inside, e.msg);

		g->watch = NULL;
		keeper_note(k, note);
		return;
	}
	g->on_fd = watch_fd(k->loop, fswatch_fd(g->watch), WATCH_READ, on_watch, g);
	g->on_step = watch_timer(k->loop, STEP_EVERY_NS, true, on_step, g);
	g->on_calm = watch_timer(k->loop, CALM_NS, false, on_calm, g);
	g->on_new = watch_timer(k->loop, NEW_DIR_NS, false, on_new, g);
	watch_set(g->on_calm, false);
	watch_set(g->on_new, false);
}

/* The engine has mounted the directory that was looked at; so it must be the one that is opened here. */
static bool open_ground(struct guarded *g, struct ground *from)
{
	struct stat st;

	g->inside = from->inside;
	g->named = from->real;
	g->scan = &from->scan;
	g->fd = open(from->real, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return g->fd >= 0 && fstat(g->fd, &st) == 0 && st.st_dev == from->dev &&
	       st.st_ino == from->ino;
}

void masks_start(struct keeper *k)
{
	struct keeper_in *in = k->in;
	struct masks *m = mem_new(1, sizeof(*m));

	m->quarantine = mem_fmt("%s/quarantine/%s", in->plan->state_dir, in->plan->name);
	k->swept.dir = m->quarantine;
	k->swept.dir_fd = FD_NONE;
	k->swept.on_take = on_take;
	m->v = mem_new(in->n_grounds + 1, sizeof(*m->v));
	k->masks = m;
	/* In review nothing of the sandbox lies in the workspace. */
	m->v[m->n++] = (struct guarded){ .k = k,
					 .inside = in->plan->workspace,
					 .named = "",
					 .scan = in->scan,
					 .fd = in->ws_fd,
					 .is_kept = plan_is_review(in->plan) };
	for (size_t i = 0; i < in->n_grounds; i++) {
		struct guarded *g = &m->v[m->n];

		g->k = k;
		if (!open_ground(g, &in->grounds[i])) {
			err_put_(&k->err, ERR_CONFLICT, ESTALE,
				 "'%.200s' was replaced while the sandbox started",
				 in->grounds[i].real);
			keeper_end(k, END_ERROR);
			return;
		}
		m->n++;
	}
	for (size_t i = 0; i < m->n; i++)
		watch_ground(&m->v[i]);
}

static void finish_ground(struct guarded *g)
{
	struct err e = ERR_INIT;

	/* A name the host removed in the last moment is no longer ours to call old. */
	if (g->watch)
		on_watch(g);
	for (size_t i = 0; i < g->n; i++)
		(void)scan_refresh(g->scan, g->fd, g->replaced[i], &e);
	if (sweep(g, NULL, &e) < 0) {
		_free_ char *note = mem_fmt("could not be quarantined, look at it before you use "
					    "it: %.400s",
					    e.msg);

		keeper_note(g->k, note);
	}
}

void masks_finish(struct keeper *k)
{
	k->swept.is_last = true;
	for (size_t i = 0; k->masks && i < k->masks->n; i++)
		finish_ground(&k->masks->v[i]);
}
