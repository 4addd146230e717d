/* SPDX-License-Identifier: Apache-2.0 */
/* core/undo.c - see undo.h
 *
 * Going back saves the present first, so nothing is lost by it, and going forward again is going back to that.
 * Between the two a note of what is being done lies in the store: after a crash the next command finishes the work.
 *
 * In a workspace that is written in place nobody can say who changed a file while a sandbox ran. What was changed
 * after it ended is known, though: at its end the tree is looked at once (the seal), and whatever differs from that
 * look was edited on the host since. Such files are not overwritten unless the user says so.
 *
 * A checkpoint that was saved while no sandbox ran holds what the host had. Any other may hold what the quarantine took
 * a moment later: what comes out of it passes the same rules as what the inside writes (view/outcome).
 */
#include "core/undo.h"

#include <fcntl.h>

#include "base/io.h"
#include "base/path.h"
#include "base/sabotage.h"
#include "core/def.h"
#include "core/takeover.h"

static const struct tree_options whole = { .with_ignored = true };

int undo_open(struct undo *u, const char *state_dir, const char *root, int root_fd, bool may_wait,
	      struct err *e)
{
	char hex[SHA256_HEX_BYTES];
	_free_ char *path = NULL;

	sha256_hex(root, strlen(root), hex);
	hex[24] = '\0';
	path = mem_fmt("%s/trees/%s", state_dir, hex);
	*u = (struct undo){ .root = mem_str(root), .state_dir = mem_str(state_dir), .fd = root_fd };
	return store_open(path, may_wait, &u->store, e);
}

void undo_close(struct undo *u)
{
	store_close(u->store);
	free(u->root);
	free(u->state_dir);
	*u = (struct undo){ .fd = FD_NONE };
}

/* ---- which ---- */

static bool same_tree(const struct tree_index *a, const struct tree_index *b)
{
	struct changes c;
	bool is_same;

	tree_compare(a, b, false, &c);
	is_same = c.n == 0;
	changes_done(&c);
	return is_same;
}

/* A state that the host chose to save. What the inside asks for must not decide what is compared or gone back to. */
static bool is_chosen(const struct tree_index *x)
{
	return x->kind != TREE_PRESENT && (x->kind != TREE_INSIDE || sabotaged("undo-target"));
}

static int load_newest(struct undo *u, bool may_be_any, struct tree_index *ret, struct err *e)
{
	_free_ uint64_t *ids = NULL;
	size_t n = 0;
	int r = store_list(u->store, &ids, &n, e);

	for (size_t i = n; r == 0 && i-- > 0;) {
		struct tree_index x = { 0 };

		r = store_load(u->store, ids[i], &x, e);
		if (r == 0 && (may_be_any || is_chosen(&x))) {
			*ret = x;
			return 0;
		}
		tree_index_done(&x);
	}
	return r < 0 ? r
		     : err_set(e, ERR_NOTFOUND, ENOENT,
			       "there is no checkpoint of '%s' yet; 'vitrine checkpoint' makes one",
			       u->root);
}

/* The newest checkpoint, at or before `most`, that is a state somebody may want back and not the present one. After an
 * undo the search goes on before the one it went to, so that undoing again goes further back. */
static int find_target(struct undo *u, uint64_t most, const struct tree_index *now,
		       struct tree_index *ret, uint64_t *ret_skipped, struct err *e)
{
	_free_ uint64_t *ids = NULL;
	size_t n = 0;
	int r = store_list(u->store, &ids, &n, e);

	for (size_t i = n; r == 0 && i-- > 0;) {
		struct tree_index x = { 0 };

		if (ids[i] > most || ids[i] == now->id)
			continue;
		r = store_load(u->store, ids[i], &x, e);
		if (r == 0 && x.kind == TREE_PRESENT && x.since > 0 && most == UINT64_MAX)
			most = x.since; /* the last thing that happened was a restore */
		if (r == 0 && is_chosen(&x) && ids[i] <= most && !same_tree(now, &x)) {
			*ret = x;
			return 0;
		}
		if (r == 0 && is_chosen(&x) && most == UINT64_MAX) {
			most = ids[i];
			*ret_skipped = ids[i];
		}
		tree_index_done(&x);
	}
	return r < 0 ? r
		     : err_set(e, ERR_NOTFOUND, ENOENT,
			       "there is no checkpoint to go back to; 'vitrine checkpoints' lists "
			       "those there are");
}

/* ---- going back ---- */

struct back {
	const struct undo_wish *wish;
	const struct tree_index *seal;    /* NULL: no sandbox ended since the target */
	const struct tree_index *present; /* of an interrupted restore: what it had found */
	struct tree_index *now;
	const struct tree_options *o;
	uint64_t host_edits;
	struct takeover *t;     /* NULL: all in the target is the host's own */
	struct tree_index host; /* the last checkpoint before the target of which that is so */
	uint64_t refused;
	bool is_first; /* pass: what is refused is said once */
};

static void say(const struct back *b, const char *path, const char *why)
{
	if (b->wish->say)
		b->wish->say(b->wish->arg, path, why);
}

static bool is_as_found(const struct tree_entry *now, const struct tree_entry *found)
{
	if (found == NULL || (now->mode & S_IFMT) != (found->mode & S_IFMT))
		return S_ISDIR(now->mode);
	if (S_ISLNK(now->mode))
		return str_eq(now->target, found->target);
	return !S_ISREG(now->mode) ||
	       (now->size == found->size && memcmp(now->hash, found->hash, sizeof(now->hash)) == 0);
}

/* Was this name changed after the last sandbox ended? */
static bool is_host_edit(const struct back *b, const struct change *c)
{
	const struct tree_entry *now = c->a;

	if (b->present && now)
		return !is_as_found(now, tree_find(b->present, now->path));
	if (b->seal == NULL)
		return false;
	return tree_was_touched(b->seal, now ? now->path : c->b->path, now);
}

static bool is_kept_edit(struct back *b, const struct change *c)
{
	if (!is_host_edit(b, c) || b->wish->is_forced)
		return false;
	b->host_edits++;
	say(b, c->a ? c->a->path : c->b->path, "edited since the sandbox ended");
	return true;
}

static bool is_hosts_own(const struct back *b, const struct tree_entry *en)
{
	const struct tree_entry *had = en ? tree_find(&b->host, en->path) : NULL;

	return had && had->mode == en->mode && is_as_found(en, had);
}

/* The inside may have written it, and something on the host would run it. */
static bool is_refused(struct back *b, const struct change *c)
{
	const char *path = c->b ? c->b->path : c->a->path;
	_free_ char *why = NULL, *text = NULL;

	if (b->t == NULL || !tree_is_among(b->wish->only, path))
		return false;
	for (char *const *p = b->wish->only; p && *p; p++)
		if (str_eq(*p, path) || (c->b && S_ISDIR(c->b->mode) && tree_is_above(p, path)))
			return false;
	why = takeover_why(b->t, path);
	if (why == NULL || is_hosts_own(b, c->b))
		return false;
	if (b->is_first && !(c->kind == CHANGE_ADDED && c->b && S_ISDIR(c->b->mode))) {
		text = mem_fmt("%s, and a sandbox may have written it; 'vitrine restore N PATH' "
			       "with this very path brings it back",
			       why);
		b->refused++;
		say(b, path, text);
	}
	return true;
}

static bool skips(void *arg, const struct change *c)
{
	struct back *b = arg;

	return is_refused(b, c) || is_kept_edit(b, c);
}

static void on_conflict(void *arg, const char *path, const char *why)
{
	say(arg, path, why);
}

/* Counts what stands in the way, and says it. */
static void count_edits(struct back *b, const struct tree_index *target)
{
	_cleanup_(changes_done) struct changes c = { 0 };

	tree_compare(b->now, target, false, &c);
	for (size_t i = 0; i < c.n; i++)
		if (tree_is_among(b->wish->only, c.v[i].a ? c.v[i].a->path : c.v[i].b->path))
			(void)(is_refused(b, &c.v[i]) || is_kept_edit(b, &c.v[i]));
}

static bool has_closed(const struct tree_index *now, const struct tree_index *target)
{
	for (size_t i = 0; i < now->n; i++) {
		const struct tree_entry *en = &now->v[i], *want;

		if (!(en->flags & TREE_OPAQUE))
			continue;
		want = tree_find(target, en->path);
		if (want && S_ISDIR(want->mode) && !(want->flags & TREE_OPAQUE))
			return true;
	}
	return false;
}

/* One pass, and another where a directory had been closed to us and is open now. */
static int run_passes(struct undo *u, struct back *b, const struct tree_index *target,
		      struct restored *sum, struct err *e)
{
	struct tree_index *now = b->now;
	int r = 0;

	for (int pass = 0; r == 0 && pass < 8; pass++) {
		struct restore_job job = { .root_fd = u->fd,
					   .store = u->store,
					   .now = now,
					   .target = target,
					   .only = b->wish->only,
					   .skips = skips,
					   .conflict = on_conflict,
					   .arg = b };
		bool is_again = has_closed(now, target);
		struct restored part;

		b->is_first = pass == 0;
		r = tree_restore(&job, &part, e);
		sum->written += part.written;
		sum->removed += part.removed;
		sum->kept += part.kept;
		sum->conflicts = part.conflicts;
		if (r < 0 || !is_again)
			break;
		tree_index_done(now);
		r = tree_look(u->fd, target, b->o, now, e);
		if (r == 0)
			r = tree_hash_all(u->fd, target, now, e);
		if (r == 0 && !has_closed(now, target) && same_tree(now, target))
			break;
	}
	return r;
}

/* What a sandbox keeps to itself may differ where its files do not: the newer of the two is meant. */
static int load_target(struct undo *u, uint64_t id, uint64_t newest, const struct tree_index *now,
		       struct tree_index *ret, uint64_t *ret_skipped, struct err *e)
{
	struct err ignored;
	int r;

	if (id)
		return store_load(u->store, id, ret, e);
	r = find_target(u, UINT64_MAX, now, ret, ret_skipped, e);
	if (newest == 0 || (r == 0 && ret->id >= newest))
		return r;
	tree_index_done(ret);
	*ret = (struct tree_index){ 0 };
	return store_load(u->store, newest, ret, &ignored) == 0
		       ? 0
		       : find_target(u, UINT64_MAX, now, ret, ret_skipped, e);
}

static int check_paths(const struct undo *u, const struct undo_wish *w,
		       const struct tree_index *now, const struct tree_index *target, struct err *e)
{
	_cleanup_(changes_done) struct changes c = { 0 };

	if (w->only == NULL)
		return 0;
	tree_compare(now, target, false, &c);
	return changes_check(&c, w->only, u->fd, e);
}

/* ---- what may come back ---- */

/* The newest checkpoint before `target` in which all is the host's own. */
static void load_hosts(struct undo *u, uint64_t target, struct tree_index *ret)
{
	_free_ uint64_t *ids = NULL;
	struct err ignored = ERR_INIT;
	size_t n = 0;

	if (store_list(u->store, &ids, &n, &ignored) < 0)
		return;
	for (size_t i = n; i-- > 0;) {
		struct tree_index x = { 0 };

		if (ids[i] < target && store_load(u->store, ids[i], &x, &ignored) == 0 &&
		    x.is_alone) {
			*ret = x;
			return;
		}
		tree_index_done(&x);
	}
}

/* A target that was saved while nothing ran holds what the host had, and comes back as it is. */
static int judge(struct undo *u, struct back *b, const struct tree_index *target,
		 struct takeover *t, struct err *e)
{
	int r;

	if (target->is_alone)
		return 0;
	*t = (struct takeover){ .ws_fd = u->fd,
				.only = b->wish->only,
				.now = b->now,
				.target = target,
				.store = u->store };
	bug_on(u->policy == NULL);
	r = takeover_begin(t, u->policy, e);
	if (r == 0) {
		b->t = t;
		load_hosts(u, target->id, &b->host);
	}
	return r;
}

static void judge_done(struct back *b)
{
	if (b->t)
		takeover_done(b->t);
	tree_index_done(&b->host);
}

/* ---- going back ---- */

static int go_back(struct undo *u, struct back *b, const struct tree_index *target,
		   struct undone *ret, struct err *e)
{
	struct tree_note note = { .root_fd = u->fd,
				  .kind = TREE_PRESENT,
				  .is_alone = undo_is_alone,
				  .arg = u,
				  .root = u->root,
				  .since = target->id };
	_free_ char *message = mem_fmt("before going back to %llu", (unsigned long long)target->id);
	struct tree_saved saved;
	int r;

	note.message = message;
	tree_index_done(b->now);
	r = tree_checkpoint(u->store, &note, b->o, &saved, b->now, e);
	if (r < 0)
		return err_wrap(e, r, "the present could not be saved, so nothing was changed");
	ret->present = saved.id;
	/* Cut off, all of it is finished later; of some paths only what is half-made is removed, for nobody asked for the rest. */
	r = store_set_pending(u->store, b->wish->only ? saved.id : target->id, saved.id, e);
	if (r == 0)
		r = run_passes(u, b, target, &ret->sum, e);
	if (r == 0)
		r = store_set_pending(u->store, 0, 0, e);
	ret->refused = b->refused;
	return r;
}

int undo_restore(struct undo *u, uint64_t id, const struct tree_options *o,
		 const struct undo_wish *w, struct undone *ret, struct err *e)
{
	_cleanup_(tree_index_done) struct tree_index now = { 0 };
	_cleanup_(tree_index_done) struct tree_index target = { 0 };
	_cleanup_(tree_index_done) struct tree_index seal = { 0 };
	_cleanup_(tree_index_done) struct tree_index newest = { 0 };
	struct back b = { .wish = w, .now = &now, .o = o };
	struct takeover t;
	struct err ignored;
	int r;

	*ret = (struct undone){ 0 };
	r = load_newest(u, true, &newest, e);
	if (r == 0)
		r = tree_look(u->fd, &newest, o, &now, e);
	if (r == 0)
		r = tree_hash_all(u->fd, &newest, &now, e);
	if (r == 0)
		r = load_target(u, id, w->newest, &now, &target, &ret->skipped, e);
	if (r < 0)
		return r;
	r = check_paths(u, w, &now, &target, e);
	if (r < 0)
		return r;
	ret->target = target.id;
	if (store_load_seal(u->store, &seal, &ignored) == 0 && seal.created > target.created)
		b.seal = &seal;
	r = judge(u, &b, &target, &t, e);
	if (r == 0 && !w->is_forced && !w->is_gentle) {
		count_edits(&b, &target);
		ret->host_edits = b.host_edits;
	}
	if (r == 0 && ret->host_edits == 0)
		r = go_back(u, &b, &target, ret, e);
	judge_done(&b);
	return r;
}

int undo_resume(struct undo *u, struct undone *ret, struct err *e)
{
	_cleanup_(tree_index_done) struct tree_index now = { 0 };
	_cleanup_(tree_index_done) struct tree_index target = { 0 };
	_cleanup_(tree_index_done) struct tree_index present = { 0 };
	struct undo_wish wish = { .is_gentle = true };
	struct back b = { .wish = &wish, .now = &now, .o = &whole, .present = &present };
	struct takeover t;
	struct err ignored;
	int r;

	*ret = (struct undone){ 0 };
	(void)store_pending(u->store, &ret->target, &ret->present);
	if (ret->target == 0)
		return 0;
	tree_clean(u->fd);
	if (store_load(u->store, ret->target, &target, &ignored) < 0 ||
	    store_load(u->store, ret->present, &present, &ignored) < 0)
		return store_set_pending(u->store, 0, 0,
					 e); /* pruned meanwhile: nothing to finish */
	r = tree_look(u->fd, &present, &whole, &now, e);
	if (r == 0)
		r = tree_hash_all(u->fd, &present, &now, e);
	if (r == 0)
		r = judge(u, &b, &target, &t, e);
	/* What is neither the old nor the new was written by somebody else since. */
	if (r == 0)
		r = run_passes(u, &b, &target, &ret->sum, e);
	judge_done(&b);
	if (r == 0)
		r = store_set_pending(u->store, 0, 0, e);
	ret->refused = b.refused;
	return r < 0 ? r : 1;
}

/* ---- around a sandbox's life ---- */

static int drop_old(struct undo *u, enum tree_kind kind, struct err *e)
{
	_free_ uint64_t *ids = NULL;
	size_t n = 0, seen = 0;
	uint64_t freed;
	bool has_dropped = false;
	int r = store_list(u->store, &ids, &n, e);

	if (r < 0 || n <= UNDO_AUTO_KEPT)
		return r;
	for (size_t i = n; r == 0 && i-- > 0;) {
		struct tree_index x = { 0 };

		r = store_load(u->store, ids[i], &x, e);
		if (r == 0 && x.kind == kind && ++seen > UNDO_AUTO_KEPT) {
			r = store_remove(u->store, ids[i], e);
			has_dropped = true;
		}
		tree_index_done(&x);
	}
	return r == 0 && has_dropped ? store_collect(u->store, &freed, e) : r;
}

bool undo_is_alone(void *undo)
{
	const struct undo *u = undo;

	return def_none_runs(u->state_dir, u->root);
}

int undo_before_start(struct undo *u, enum tree_kind kind, const char *message,
		      struct tree_progress progress, struct tree_saved *ret, struct err *e)
{
	struct tree_options o = { .max_file = UNDO_FILE_MAX,
				  .max_new = UNDO_NEW_MAX,
				  .progress = progress };
	struct tree_note note = { .root_fd = u->fd,
				  .kind = kind,
				  .message = message,
				  .root = u->root,
				  .is_alone = undo_is_alone,
				  .arg = u,
				  .may_skip = true };
	int r = tree_checkpoint(u->store, &note, &o, ret, NULL, e);

	return r < 0 ? r : drop_old(u, kind, e);
}

int undo_look(struct undo *u, struct tree_index *ret, struct err *e)
{
	_cleanup_(tree_index_done) struct tree_index before = { 0 };
	struct tree_options o = { 0 };
	struct err ignored;
	bool has_before = load_newest(u, true, &before, &ignored) == 0;

	return tree_look(u->fd, has_before ? &before : NULL, &o, ret, e);
}

int undo_seal(struct undo *u, struct tree_index *x, struct err *e)
{
	x->kind = TREE_SEAL;
	free(x->root);
	x->root = mem_str(u->root);
	return store_save_seal(u->store, x, e);
}

int undo_prune(struct undo *u, uint64_t keep, uint64_t *ret_removed, uint64_t *ret_freed,
	       struct err *e)
{
	_free_ uint64_t *ids = NULL;
	uint64_t seen[2] = { 0 };
	size_t n = 0;
	int r = store_list(u->store, &ids, &n, e);

	*ret_removed = 0;
	for (size_t i = n; r == 0 && i-- > 0;) {
		_cleanup_(tree_index_done) struct tree_index x = { 0 };
		struct err broken = ERR_INIT;
		bool is_inside =
			store_load(u->store, ids[i], &x, &broken) == 0 && x.kind == TREE_INSIDE;

		if (++seen[is_inside] > keep) {
			r = store_remove(u->store, ids[i], e);
			*ret_removed += r == 0;
		}
	}
	return r < 0 ? r : store_collect(u->store, ret_freed, e);
}

/* ---- comparing ---- */

int undo_compare(struct undo *u, uint64_t since, const struct tree_options *o,
		 struct undo_diff *ret, struct err *e)
{
	struct undo_diff d = { .u = u };
	int r = since ? store_load(u->store, since, &d.before, e)
		      : load_newest(u, false, &d.before, e);

	if (r == 0)
		r = tree_look(u->fd, &d.before, o, &d.now, e);
	if (r == 0)
		r = tree_hash_all(u->fd, &d.before, &d.now, e);
	if (r < 0) {
		undo_diff_done(&d);
		return r;
	}
	tree_compare(&d.before, &d.now, true, &d.changes);
	*ret = d;
	return 0;
}

void undo_diff_done(struct undo_diff *d)
{
	changes_done(&d->changes);
	tree_index_done(&d->before);
	tree_index_done(&d->now);
}

int undo_read(void *diff, const struct tree_entry *en, bool is_new, struct buf *out)
{
	const struct undo_diff *d = diff;
	_close_ int fd = FD_NONE;
	struct err e = ERR_INIT;

	if (!is_new)
		return en->flags & (TREE_UNSAVED | TREE_UNHASHED)
			       ? -ENOENT
			       : store_read(d->u->store, en->hash, en->size, out, &e);
	fd = tree_open(d->u->fd, en->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	return fd < 0 ? fd : io_read_fd(fd, out, &e);
}
