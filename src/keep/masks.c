/* SPDX-License-Identifier: Apache-2.0 */
/* keep/masks.c - hidden stays hidden, protected stays protected, and what appears is taken away
 *
 * A mask is a mount on a file. When the host replaces that file (editors and git save by rename), the kernel takes
 * the mount away with the old file and the new one lies bare. So the parents of all masked names are watched; when
 * one changes, every process inside is stopped, what lies there now is judged and put right (view/known.h), a helper
 * enters the mount namespace and covers the name again, and the processes go on. docs/SECURITY.md states the window.
 *
 * All of this is done for the workspace and for every directory that was granted for writing (struct guarded).
 *
 * A protected name that did not exist cannot be covered, and nothing is created on the host to make it so. It is
 * moved to the quarantine when it appears, and once more at the end, when nothing inside lives any more.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "base/sabotage.h"
#include "engine/engine.h"
#include "keep/keeper.h"
#include "view/fswatch.h"
#include "view/known.h"
#include "view/match.h"

#define STEP_NS (2 * NS_PER_MS)
#define STEP_EVERY_NS (20 * NS_PER_MS)
#define CALM_NS NS_PER_MS
#define NEW_DIR_NS (100 * NS_PER_MS)
#define NOTES_MAX 100
#define NOTE_LEN 440
#define KNOWN_FIRST 128 /* masked files that are opened at once; the others in slices */
#define KNOWN_SLICE 512
#define ROUNDS 8

/* A directory of the host that can be written inside: the workspace, or one that was granted. */
struct guarded {
	struct keeper *k;
	const char *inside; /* where it is seen */
	const char *named;  /* what its names begin with for people: "" for the workspace */
	struct scan *scan;
	int fd;
	bool is_kept;        /* nothing that is written reaches the host: nothing to take away */
	struct known *known; /* NULL where what the host replaces cannot be written to inside */
	char *record;        /* what is known, for the case that we die */
	struct fswatch *watch;
	struct watch *on_fd, *on_step, *on_calm, *on_new;
	char **replaced; /* names to cover again, once everything inside stands still */
	size_t n, cap;
	char **gone; /* hidden names the host removed: hidden again should they come back */
	size_t n_gone, cap_gone;
	bool is_all; /* events were lost: every name */
	/* .git is served by name (served.c): nothing inside could write to a masked name in it. Until the host replaces .git
	 * itself. */
	bool is_served;
	dev_t git_dev;
	ino_t git_ino;
	int live;            /* holds the mark that something may write there (view/index.h) */
	bool is_swept;       /* to its end, when nothing inside lived any more */
	struct index *index; /* what that saw */
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

/* What was taken may be the host's own save: how to have it. Written in place it stays masked, so nobody inside can add
 * to it on the way. */
static void tell_way_back(struct guarded *g, const struct swept *s)
{
	const struct keeper *k = g->k;
	const char *top = g->named[0] ? g->named : k->in->plan->workspace;
	_cleanup_(buf_done) struct buf b = BUF(16 * KIB);

	if (s->saved == NULL || !str_starts(s->rule, "replaced while"))
		return;
	buf_printf(&b, "if that was your own save: look at it, then cat '%s/%s' >'%s/%s'",
		   k->masks->quarantine, s->saved, top, s->rel);
	if (b.n > NOTE_LEN) { /* half a command is worse than none */
		buf_done(&b);
		b = BUF(KIB);
		buf_printf(&b, "if that was your own save: it is '%s' in the quarantine", s->saved);
	}
	keeper_note(g->k, buf_cstr(&b));
}

/* The first are named; how many there were, and where all are named, is said at the end (tell_all_swept). */
static void tell_swept(struct guarded *g)
{
	struct keeper *k = g->k;
	_close_ int list = FD_NONE;

	if (k->masks->told < k->swept.n && k->swept.dir_fd >= 0)
		list = sweep_open_list(k->swept.dir_fd);
	for (; k->masks->told < k->swept.n; k->masks->told++) {
		const struct swept *s = &k->swept.v[k->masks->told];
		_cleanup_(buf_done) struct buf b = BUF(16 * KIB), name = BUF(16 * KIB);

		name_of(g, s->rel, &name);
		sweep_list(list, buf_cstr(&name), s);
		if (k->masks->told >= NOTES_MAX)
			continue;
		buf_printf(&b, "quarantined %.280s%s (%.120s)", buf_cstr(&name),
			   name.n > 280 ? "..." : "", s->rule);
		keeper_note(k, buf_cstr(&b));
		tell_way_back(g, s);
	}
}

static void tell_all_swept(struct keeper *k)
{
	_free_ char *text = mem_fmt(QUARANTINE_TOTAL "%zu names; the list is in %.300s/%s",
				    k->swept.n, k->swept.dir, QUARANTINE_LIST);

	if (k->swept.n > NOTES_MAX)
		keeper_note(k, text);
}

/* The caller must not be told that all is well: each name in a note of its own, and the run ends with an error. */
static void tell_left(struct guarded *g, const struct err *e)
{
	struct keeper *k = g->k;
	const struct sweep *s = &k->swept;

	for (size_t i = 0; i < s->n_left; i++) {
		_cleanup_(buf_done) struct buf b = BUF(16 * KIB);

		buf_puts(&b, "LEFT ");
		name_of(g, s->left[i].rel, &b);
		buf_printf(&b, " (%s)", s->left[i].rule);
		keeper_note(k, buf_cstr(&b));
	}
	if (sabotaged("left") || (k->why == END_ERROR && k->err.kind != ERR_NONE))
		return;
	err_put_(&k->err, ERR_SYSTEM, e->num,
		 "%s could not be searched to its end, and what was made inside may still lie "
		 "there: %.200s%s. Look at it before you run git, an editor or an agent there",
		 g->named[0] ? g->named : "the workspace", e->msg,
		 s->left_count > 1 ? " (and others, see the notes)" : "");
	k->why = END_ERROR;
	k->status = 0;
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

/* ---- the served .git ---- */

static void write_record(struct guarded *g);

/* The server serves the directory that .git was at the start. Another one under that name is bare. */
static bool has_its_git(struct guarded *g)
{
	struct stat st;

	if (g->is_served)
		g->is_served = fstatat(g->fd, ".git", &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			       st.st_dev == g->git_dev && st.st_ino == g->git_ino;
	return g->is_served;
}

static bool is_served(struct guarded *g, const char *rel)
{
	_free_ char *path = g->is_served ? mem_fmt("%s/%s", g->inside, rel) : NULL;

	return path && !str_eq(rel, ".git") && plan_is_served(g->k->in->plan, path) &&
	       has_its_git(g);
}

/* What the host put there, or the server after a judgement, is what is known from now on. A name that is gone stays a
 * name of the host's: nothing inside can take it. */
static void renew(struct guarded *g, const char *rel)
{
	struct err e = ERR_INIT;

	if (g->known && known_renew(g->known, rel))
		(void)scan_refresh(g->scan, g->fd, rel,
				   &e); /* gone again: the next event says so */
	write_record(g);
}

static void renew_all(struct guarded *g)
{
	for (size_t i = 0; g->is_served && i < g->scan->n; i++)
		if (g->scan->v[i].kind != HIT_PIN && is_served(g, g->scan->v[i].rel))
			(void)known_renew(g->known, g->scan->v[i].rel);
}

static void on_change(void *arg, enum fswatch_kind kind, const char *rel)
{
	struct guarded *g = arg;
	struct err e = ERR_INIT;

	if (kind == FSWATCH_REPLACED && is_served(g, rel)) {
		renew(g, rel);
		return;
	}
	switch (kind) {
	case FSWATCH_APPEARED:
		if (is_gone(g, rel))
			replace(g, rel);
		else
			/* What fails now is tried again at the end, and reported then. */
			(void)sweep(g, rel, &e);
		break;
	case FSWATCH_REPLACED:
		if (g->known == NULL || !known_is_own(g->known, rel))
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

	served_need(g->k);
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

/* Without it the next start cannot mend what a killed keeper left; while we live nothing depends on it. */
static void write_record(struct guarded *g)
{
	if (g->known)
		(void)known_record(g->known, g->record,
				   g->named[0] ? g->named : g->k->in->plan->workspace);
}

/* What lies there is judged, and what must not is taken. */
static int settle_known(struct guarded *g, const char *rel, struct err *e)
{
	struct keeper *k = g->k;
	int r;

	if (g->known == NULL)
		return 0;
	if (rel[0] == '\0' && has_its_git(g))
		renew_all(g);
	k->swept.arg = g;
	r = known_settle(g->known, rel, &k->swept, e);
	tell_swept(g);
	return r;
}

static void settle_or_end(struct guarded *g, const char *rel)
{
	struct err e = ERR_INIT;

	if (settle_known(g, rel, &e) >= 0)
		return;
	g->k->err = e;
	keeper_end(g->k, END_ERROR); /* as for a cover that cannot be put back */
}

/* What the host replaced lies bare: judged, put right, covered again. */
static void put_right(struct guarded *g, const char *rel)
{
	const struct hit *hit = scan_find(g->scan, rel);
	bool is_hidden = is_gone(g, rel) || (hit && (hit->kind == HIT_HIDE || hit->shown));
	bool is_pin = hit && hit->kind == HIT_PIN;
	struct err e = ERR_INIT;

	settle_or_end(g, rel);
	if (scan_refresh(g->scan, g->fd, rel, &e) != 0 || is_hidden)
		cover_again(g, rel);
	else if (g->known)
		known_forget(g->known, rel);
	if (is_hidden && !is_gone(g, rel)) {
		vec_reserve(g->gone, g->n_gone, g->cap_gone);
		g->gone[g->n_gone++] = mem_str(rel);
	}
	if (is_pin)
		(void)sweep(g, rel, &e); /* parts of it that were not there before */
}

static enum known_state round_of(struct guarded *g)
{
	struct err e = ERR_INIT;

	for (size_t i = 0; i < g->n; i++)
		put_right(g, g->replaced[i]);
	if (g->is_all) {
		settle_or_end(g, "");
		cover_again(g, "");
		(void)sweep(g, NULL, &e);
	}
	return g->known ? known_verify(g->known) : KNOWN_WHOLE;
}

static void cover_replaced(struct guarded *g)
{
	struct keeper *k = g->k;
	enum known_state state = KNOWN_AGAIN;

	if (g->n == 0 && !g->is_all)
		return;
	for (int i = 0; i < ROUNDS && state != KNOWN_WHOLE; i++)
		state = round_of(g);
	write_record(g);
	if (state ==
	    KNOWN_AGAIN) { /* the host saves faster than we look: all stay where they are */
		ask_to_freeze(k);
		return;
	}
	if (state == KNOWN_BROKEN) {
		err_put_(&k->err, ERR_SYSTEM, EBUSY,
			 "what the host replaced could not be kept from the sandbox");
		keeper_end(k, END_ERROR);
	}
	for (size_t i = 0; i < g->n; i++)
		free(g->replaced[i]);
	g->n = 0;
	g->is_all = false;
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

	bool has_more = g->known && known_step(g->known, KNOWN_SLICE);

	if (!has_more)
		write_record(g);
	if (fswatch_step(g->watch, STEP_NS, on_change, g, &e) <= 0 && !has_more)
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

static void on_written(void *arg)
{
	struct guarded *g = arg;

	known_read(g->known);
	write_record(g);
}

/* The workspace inside is the host's own, and can be written to. */
static bool is_in_place(const struct plan *p)
{
	for (size_t i = 0; i < p->n_mounts; i++)
		if (p->mounts[i].kind == MOUNT_BIND && str_eq(p->mounts[i].dst, p->workspace))
			return p->mounts[i].src && str_eq(p->mounts[i].src, p->workspace) &&
			       !(p->mounts[i].flags & MOUNT_RO);
	return false;
}

static void know_ground(struct guarded *g, size_t number)
{
	const struct plan *p = g->k->in->plan;

	if (number == 0 && !is_in_place(p))
		return;
	g->record = number == 0 ? mem_fmt("%s/known/%s", p->state_dir, p->name)
				: mem_fmt("%s/known/%s.%zu", p->state_dir, p->name, number);
	g->known = known_new(g->fd, g->scan);
	(void)known_step(g->known, KNOWN_FIRST);
	if (known_fd(g->known) >= 0)
		watch_fd(g->k->loop, known_fd(g->known), WATCH_READ, on_written, g);
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

static void serve_ground(struct guarded *g)
{
	const struct plan *p = g->k->in->plan;

	for (size_t i = 0; i < p->n_mounts; i++)
		if (p->mounts[i].kind == MOUNT_SERVE) {
			g->is_served = true;
			g->git_dev = p->mounts[i].dev;
			g->git_ino = p->mounts[i].ino;
		}
}

/* Without the lock the mark is taken for one of a keeper that died, and the next start reads every directory. */
static void join_live(struct guarded *g)
{
	g->live = g->scan->has_live ? index_live_join(g->k->in->plan->state_dir, g->scan->index,
						      g->scan->live)
				    : FD_NONE;
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
					 .live = FD_NONE,
					 .is_kept = plan_is_review(in->plan) };
	if (served_is_on(k))
		serve_ground(&m->v[0]);
	for (size_t i = 0; i < in->n_grounds; i++) {
		struct guarded *g = &m->v[m->n];

		g->k = k;
		g->live = FD_NONE;
		if (!open_ground(g, &in->grounds[i])) {
			err_put_(&k->err, ERR_CONFLICT, ESTALE,
				 "'%.200s' was replaced while the sandbox started",
				 in->grounds[i].real);
			keeper_end(k, END_ERROR);
			return;
		}
		m->n++;
	}
	for (size_t i = 0; i < m->n; i++) {
		join_live(&m->v[i]);
		know_ground(&m->v[i], i);
		watch_ground(&m->v[i]);
	}
}

/* It looks for set-user-id and set-group-id files on its way. */
static int last_sweep(struct guarded *g, struct err *e)
{
	struct keeper *k = g->k;
	const char *path = g->named[0] ? g->named : k->in->plan->workspace;
	int r;

	index_free(k->swept.index);
	k->swept.index = NULL;
	k->swept.setid = g->is_kept ? NULL : setid_begin(k, path, g->fd, g->scan->index);
	r = sweep(g, NULL, e);
	setid_end(k, k->swept.setid, r >= 0);
	k->swept.setid = NULL;
	g->is_swept = r >= 0;
	g->index = take(k->swept.index);
	return r;
}

static void finish_ground(struct guarded *g)
{
	struct err e = ERR_INIT;

	if (!g->is_kept)
		sweep_unlock(g->fd);
	/* A name the host removed in the last moment is no longer ours to call old. */
	if (g->watch)
		on_watch(g);
	for (size_t i = 0; i < g->n; i++) {
		int r = scan_refresh(g->scan, g->fd, g->replaced[i], &e);

		if (r < 0)
			scan_forget(g->scan, g->replaced[i]);
		if (r == 0 && g->known)
			known_forget(g->known, g->replaced[i]);
	}
	/* Nothing lives inside any more: whatever was replaced and not yet looked at. */
	if (settle_known(g, "", &e) < 0)
		tell_left(g, &e);
	else if (g->known)
		known_unrecord(g->known, g->record);
	if (last_sweep(g, &e) < 0)
		tell_left(g, &e);
	else if (!g->is_kept) /* without it a later session finds them protected, and that is all */
		(void)made_save(g->k->in->plan->state_dir,
				g->named[0] ? g->named : g->k->in->plan->workspace,
				&g->k->swept.made);
	made_done(&g->k->swept.made);
}

void masks_finish(struct keeper *k)
{
	if (k->masks == NULL)
		return;
	k->swept.is_last = true;
	for (size_t i = 0; i < k->masks->n; i++)
		finish_ground(&k->masks->v[i]);
	tell_all_swept(k);
}

void masks_mark(struct keeper_in *in)
{
	for (size_t i = 0; i <= in->n_grounds; i++) {
		struct scan *s = i == 0 ? in->scan : &in->grounds[i - 1].scan;
		int fd;

		if (s == NULL || !s->is_indexed || s->index->is_off ||
		    s->index->n < INDEX_DIRS_MIN || (i == 0 && plan_is_review(in->plan)))
			continue;
		/* Held until we end; the keeper takes the lock as well. */
		fd = index_live_claim(in->plan->state_dir, s->index, &s->live);
		s->has_live = fd >= 0;
	}
}

void masks_leave(struct keeper *k)
{
	struct index_rules rules;

	for (size_t i = 0; k->masks && i < k->masks->n; i++) {
		struct guarded *g = &k->masks->v[i];

		if (!g->is_swept || g->live < 0)
			continue;
		matcher_rules(k->in->policy, &rules);
		/* A list that cannot be written is missed by the next start only in its time. */
		if (g->index)
			(void)index_save(g->index, k->in->plan->state_dir, g->fd, &rules);
		index_live_leave(g->live, g->scan->live);
	}
}
