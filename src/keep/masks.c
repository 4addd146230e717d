/* SPDX-License-Identifier: Apache-2.0 */
/* keep/masks.c - hidden stays hidden, protected stays protected, and what appears is taken away
 *
 * A mask is a mount on a file. When the host replaces that file (editors and git save by rename), the kernel takes
 * the mount away with the old file and the new one lies bare. So the parents of all masked names are watched; when
 * one changes, every process inside is stopped, a helper enters the mount namespace and covers the name again, and
 * the processes go on. docs/SECURITY.md states the window.
 *
 * A protected name that did not exist cannot be covered, and nothing is created on the host to make it so. It is
 * moved to the quarantine when it appears, and once more at the end, when nothing inside lives any more.
 */
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

struct masks {
	struct fswatch *watch;
	struct watch *on_fd, *on_step, *on_calm, *on_new;
	char *quarantine; /* made when first needed */
	char **replaced;  /* names to cover again, once everything inside stands still */
	size_t n, cap;
	char **gone; /* hidden names the host removed: hidden again should they come back */
	size_t n_gone, cap_gone;
	bool is_waiting; /* for init to say that it does */
	bool is_all;     /* events were lost: every name */
	size_t told;
};

/* ---- quarantine ---- */

static void tell_swept(struct keeper *k)
{
	for (; k->masks->told < k->swept.n; k->masks->told++) {
		const struct swept *s = &k->swept.v[k->masks->told];
		_cleanup_(buf_done) struct buf b = BUF(16 * KIB);

		if (k->masks->told >= NOTES_MAX)
			continue;
		buf_puts(&b, "quarantined ");
		buf_puts(&b, s->rel);
		buf_printf(&b, " (%s)", s->rule);
		keeper_note(k, buf_cstr(&b));
	}
}

static void sweep_path(struct keeper *k, const char *rel)
{
	struct keeper_in *in = k->in;
	struct err e = ERR_INIT;

	if (sabotaged("quarantine") || plan_is_review(in->plan))
		return; /* in review nothing of the sandbox lies in the workspace */
	/* What fails now is tried again at the end, and reported then. */
	(void)sweep_one(in->ws_fd, FD_NONE, in->policy, in->scan, rel, &k->swept, &e);
	tell_swept(k);
}

/* ---- covering again ---- */

static void ask_to_freeze(struct keeper *k)
{
	if (k->masks->is_waiting || sabotaged("remask"))
		return;
	k->masks->is_waiting = true;
	freeze_ask(k);
}

static bool is_gone(const struct masks *m, const char *rel)
{
	for (size_t i = 0; i < m->n_gone; i++)
		if (str_eq(m->gone[i], rel))
			return true;
	return false;
}

static void replace(struct keeper *k, const char *rel)
{
	struct masks *m = k->masks;

	vec_reserve(m->replaced, m->n, m->cap);
	m->replaced[m->n++] = mem_str(rel);
	ask_to_freeze(k);
}

static void on_change(void *arg, enum fswatch_kind kind, const char *rel)
{
	struct keeper *k = arg;
	struct masks *m = k->masks;

	switch (kind) {
	case FSWATCH_APPEARED:
		if (is_gone(m, rel))
			replace(k, rel);
		else
			sweep_path(k, rel);
		break;
	case FSWATCH_REPLACED:
		replace(k, rel);
		break;
	case FSWATCH_OVERFLOW:
		m->is_all = true;
		ask_to_freeze(k);
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
static int cover_one(struct keeper *k, const struct mount *m, struct err *e)
{
	const char *rel = path_below(m->dst, k->in->plan->workspace);
	const struct hit *hit = m->kind == MOUNT_PROTECT ? scan_find(k->in->scan, rel) : NULL;
	struct mount hidden = *m;
	_free_ char *shown = NULL, *file = mem_str("file");

	if (hit == NULL || !hit->is_config || sabotaged("redact") ||
	    scan_shown(k->in->ws_fd, rel, &shown) == 0)
		return engine_cover(&k->native, m, e);
	hidden.kind = MOUNT_HIDE;
	hidden.src = file;
	return engine_cover(&k->native, &hidden, e);
}

/* Covers `rel` and every cover below it; a name that is gone has nothing to cover. */
static void cover_again(struct keeper *k, const char *rel)
{
	const struct plan *p = k->in->plan;
	_free_ char *path = rel[0] ? mem_fmt("%s/%s", p->workspace, rel) : mem_str(p->workspace);

	for (size_t i = 0; i < p->n_mounts; i++) {
		const struct mount *m = &p->mounts[i];
		struct err e = ERR_INIT;

		if (!is_cover(m) || !path_is_beneath(m->dst, path))
			continue;
		tell_masked(k, m->dst);
		if (cover_one(k, m, &e) < 0) {
			/* A bare name inside is worse than an ended command. */
			err_put_(&k->err, ERR_SYSTEM, e.num,
				 "a protection could not be put back: %.400s", e.msg);
			keeper_end(k, END_ERROR);
			return;
		}
	}
}

void masks_on_frozen(struct keeper *k)
{
	struct masks *m = k->masks;
	struct err e = ERR_INIT;

	if (m == NULL || !m->is_waiting)
		return;
	m->is_waiting = false;
	for (size_t i = 0; i < m->n; i++) {
		const struct hit *hit = scan_find(k->in->scan, m->replaced[i]);
		bool is_hidden = is_gone(m, m->replaced[i]) || (hit && hit->kind == HIT_HIDE);

		if (scan_refresh(k->in->scan, k->in->ws_fd, m->replaced[i], &e) != 0 || is_hidden)
			cover_again(k, m->replaced[i]);
		if (is_hidden && !is_gone(m, m->replaced[i])) {
			vec_reserve(m->gone, m->n_gone, m->cap_gone);
			m->gone[m->n_gone++] = mem_str(m->replaced[i]);
		}
		free(m->replaced[i]);
	}
	m->n = 0;
	if (m->is_all) {
		m->is_all = false;
		cover_again(k, "");
		if (!plan_is_review(k->in->plan))
			(void)sweep_run(k->in->ws_fd, FD_NONE, k->in->policy, k->in->scan,
					&k->swept, &e);
		tell_swept(k);
	}
}

bool masks_want_freeze(const struct keeper *k)
{
	return k->masks && k->masks->is_waiting;
}

/* ---- the watch ---- */

static void on_step(void *arg)
{
	struct keeper *k = arg;
	struct err e = ERR_INIT;

	if (fswatch_step(k->masks->watch, STEP_NS, on_change, k, &e) <= 0)
		watch_set(k->masks->on_step,
			  false); /* done, or no more watches to be had: the sweep remains */
}

/* A program that unpacks an archive makes some ten names in the time it takes to wake us, and waits for the waking. So
 * when nothing that came was of interest we are not woken again for a moment. */
static void on_watch(void *arg)
{
	struct keeper *k = arg;
	struct masks *m = k->masks;
	struct err e = ERR_INIT;
	int n = fswatch_read(m->watch, on_change, k, &e);

	watch_set(m->on_fd, n > 0);
	watch_set(m->on_calm, n == 0);
	watch_set(m->on_new, true);
}

/* New directories want watches of their own. Who makes one fills it at once, and pays for an event with every name that
 * is made in a watched one: so they are looked at a moment later, with what is in them by then. */
static void on_new(void *arg)
{
	struct keeper *k = arg;

	watch_set(k->masks->on_step, true);
}

static void on_calm(void *arg)
{
	struct keeper *k = arg;

	watch_set(k->masks->on_fd, true);
}

void masks_start(struct keeper *k)
{
	struct keeper_in *in = k->in;
	struct err e = ERR_INIT;
	struct masks *m = mem_new(1, sizeof(*m));

	m->quarantine = mem_fmt("%s/quarantine/%s", in->plan->state_dir, in->plan->name);
	k->swept.dir = m->quarantine;
	k->swept.dir_fd = FD_NONE;
	k->swept.on_take = tell_quarantined;
	k->swept.arg = k;
	k->masks = m;
	if (fswatch_open(in->ws_fd, in->policy, in->scan, &m->watch, &e) < 0) {
		_free_ char *note = mem_fmt("cannot watch the workspace (%.200s): names that the "
					    "host replaces while the "
					    "command runs are not covered again",
					    e.msg);

		m->watch = NULL;
		keeper_note(k, note);
		return;
	}
	m->on_fd = watch_fd(k->loop, fswatch_fd(m->watch), WATCH_READ, on_watch, k);
	m->on_step = watch_timer(k->loop, STEP_EVERY_NS, true, on_step, k);
	m->on_calm = watch_timer(k->loop, CALM_NS, false, on_calm, k);
	m->on_new = watch_timer(k->loop, NEW_DIR_NS, false, on_new, k);
	watch_set(m->on_calm, false);
	watch_set(m->on_new, false);
}

void masks_finish(struct keeper *k)
{
	struct keeper_in *in = k->in;
	struct masks *m = k->masks;
	struct err e = ERR_INIT;

	if (m == NULL)
		return;
	/* A name the host removed in the last moment is no longer ours to call old. */
	if (m->watch)
		on_watch(k);
	for (size_t i = 0; i < m->n; i++)
		(void)scan_refresh(in->scan, in->ws_fd, m->replaced[i], &e);
	if (!sabotaged("quarantine") && !plan_is_review(in->plan) &&
	    sweep_run(in->ws_fd, FD_NONE, in->policy, in->scan, &k->swept, &e) < 0) {
		_free_ char *note = mem_fmt("could not be quarantined, look at it before you use "
					    "it: %.400s",
					    e.msg);

		keeper_note(k, note);
	}
	tell_swept(k);
}
