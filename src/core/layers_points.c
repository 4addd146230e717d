/* SPDX-License-Identifier: Apache-2.0 */
/* core/layers_points.c - checkpoints of layers: freezing, going back, throwing away, merging
 *
 * What is frozen never changes again, so going back is to put a new layer on top of what a checkpoint names. The present is
 * always frozen first. See layers.h for the order of changes.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "base/path.h"
#include "base/program.h"
#include "core/layers_own.h"

static bool is_empty(const struct layers *l, const char *id)
{
	_free_ char *path = layers_path_of(l, id, "/fs");
	DIR *d = opendir(path);
	struct dirent *en;
	bool is = true;

	while (d && is && (en = readdir(d)) != NULL)
		is = str_eq(en->d_name, ".") || str_eq(en->d_name, "..");
	if (d)
		(void)closedir(d);
	return is;
}

/* `frozen` is what the checkpoint names; the head gets a new layer on top of it. */
static int freeze(struct layers *l, struct stack *head, struct stack *frozen, struct err *e)
{
	char id[LAYER_ID_BYTES];
	mode_t mode;
	int r;

	if (head->n == 0)
		return 0;
	if (head->n + 1 >= OVERLAY_LAYERS_MAX)
		return err_set(e, ERR_UNSUPPORTED, E2BIG, "'%s' has %zu layers, which is the bound",
			       l->name, head->n);
	mode = layers_mode(l, head);
	stack_copy(frozen, head);
	if (is_empty(l, head->v[0])) { /* nothing to freeze: the head stays as it is */
		memmove(frozen->v, frozen->v + 1, (frozen->n - 1) * sizeof(*frozen->v));
		frozen->n--;
		return 0;
	}
	r = layers_make(l, mode, true, id, e);
	if (r == 0)
		stack_push(head, id);
	return r;
}

static struct point *add_point(struct layers *l, enum tree_kind kind, const char *message,
			       uint64_t since)
{
	struct point *p;

	l->points = mem_grow(l->points, l->n_points + 1, sizeof(*l->points));
	p = &l->points[l->n_points];
	*p = (struct point){ .id = l->n_points ? l->points[l->n_points - 1].id + 1 : 1,
			     .created = (uint64_t)time(NULL),
			     .since = since,
			     .kind = kind,
			     .message = mem_str(message) };
	memcpy(p->below, l->below, sizeof(p->below));
	p->tree = l->tree;
	l->n_points++;
	return p;
}

/* The home begins as a plain directory; the first time it is to be kept it becomes a layer, by one rename. The file
 * says so first, so that whoever comes after a crash finishes it. */
int layers_finish_move(struct layers *l, struct err *e)
{
	_free_ char *home = mem_fmt("%s/sandboxes/%s/home", l->state_dir, l->name);
	_free_ char *fs = layers_path_of(l, l->moving, "/fs");
	char top[LAYER_ID_BYTES];
	struct stat st;
	int r = 0;

	if (lstat(fs, &st) < 0 && rename(home, fs) < 0 && errno != ENOENT)
		return err_sys(e, "'%s'", home);
	if (mkdir(home, 0700) < 0 && errno != EEXIST)
		return err_sys(e, "'%s'", home);
	if (lstat(fs, &st) == 0) {
		r = layers_make(l, st.st_mode, true, top, e);
		if (r < 0)
			return r;
		stack_push(&l->home, l->moving);
		stack_push(&l->home, top);
	}
	l->moving[0] = '\0';
	return layers_write(l, e);
}

static bool has_plain_home(const struct layers *l)
{
	_free_ char *home = mem_fmt("%s/sandboxes/%s/home", l->state_dir, l->name);
	DIR *d = opendir(home);
	struct dirent *en;
	bool has = false;

	while (d && !has && (en = readdir(d)) != NULL)
		has = !str_eq(en->d_name, ".") && !str_eq(en->d_name, "..");
	if (d)
		(void)closedir(d);
	return has;
}

static int layer_home(struct layers *l, struct err *e)
{
	int r;

	if (l->home.n > 0 || !has_plain_home(l))
		return 0;
	r = layers_make(l, 0700, false, l->moving, e);
	if (r == 0)
		r = layers_write(l, e);
	return r < 0 ? r : layers_finish_move(l, e);
}

/* The lock is held and the file is still to be written, once, with whatever else changes. */
static int make_point(struct layers *l, enum tree_kind kind, const char *message, uint64_t since,
		      uint64_t *ret_id, struct err *e)
{
	struct stack ws = { 0 }, home = { 0 }, sys = { 0 };
	struct point *p;
	int r = 0;

	if (l->n_points >= LAYERS_POINTS_MAX)
		r = err_set(e, ERR_USAGE, E2BIG,
			    "'%s' has %d checkpoints; remove some with 'vitrine checkpoints "
			    "--keep N %s'",
			    l->name, LAYERS_POINTS_MAX, l->name);
	if (r == 0)
		r = layer_home(l, e);
	if (r == 0)
		r = freeze(l, &l->ws, &ws, e);
	if (r == 0)
		r = freeze(l, &l->home, &home, e);
	if (r == 0)
		r = freeze(l, &l->sys, &sys, e);
	if (r < 0) {
		free(ws.v);
		free(home.v);
		free(sys.v);
		return r;
	}
	p = add_point(l, kind, message, since);
	p->ws = ws;
	p->home = home;
	p->sys = sys;
	*ret_id = p->id;
	return 0;
}

static int save_present(struct layers *l, const char *message, uint64_t since, uint64_t *ret_id,
			struct err *e)
{
	int r = make_point(l, TREE_PRESENT, message, since, ret_id, e);

	return r < 0 ? err_wrap(e, r, "the present could not be saved, so nothing was changed") : 0;
}

int layers_checkpoint(struct layers *l, enum tree_kind kind, const char *message, uint64_t since,
		      uint64_t *ret_id, struct err *e)
{
	_close_ int lock = layers_lock_fresh(l, e);
	int r = lock < 0 ? lock : make_point(l, kind, message, since, ret_id, e);

	return r < 0 ? r : layers_write(l, e);
}

/* By cp, which keeps links, attributes and the overlay's own marks, and shares blocks where the file system can. Whoever
 * writes there stands still. */
static int copy_tree(void *arg, struct err *e)
{
	char *const *paths = arg;
	const char *cp = access("/usr/bin/cp", X_OK) == 0 ? "/usr/bin/cp" : "/bin/cp";
	const char *const argv[] = { cp,   "-a",     "--reflink=auto", "--no-target-directory",
				     "--", paths[0], paths[1],         NULL };
	const char *const env[] = { "PATH=/usr/bin:/bin", "LC_ALL=C", NULL };
	int r = program_run(argv, env, e);

	return r < 0 ? err_wrap(e, r, "'%s' could not be copied", paths[0]) : 0;
}

/* Without such rights: only where all of it is the caller's own, so that no owner is lost. */
static int copy_own(void *arg, struct err *e)
{
	char *const *paths = arg;
	_cleanup_(buf_done) struct buf others = BUF(4 * KIB);
	_free_ char *uid = mem_fmt("%u", geteuid());
	const char *const argv[] = { "find", paths[0], "!", "-uid", uid, "-print", "-quit", NULL };
	int r = program_hear(argv, &others, e);

	if (r == 0 && others.n > 0)
		r = err_set(e, ERR_UNSUPPORTED, EPERM, "files of others are among them");
	return r < 0 ? r : copy_tree(arg, e);
}

/* `frozen` is what the stack shows now: a copy of what is on top, and the rest. */
static int freeze_copy(struct layers *l, const struct stack *head, const char *plain,
		       struct stack *frozen, struct err *e)
{
	_free_ char *from = NULL, *to = NULL;
	char id[LAYER_ID_BYTES];
	int r;

	if (head->n == 0 && plain == NULL)
		return 0;
	for (size_t i = head->n; i-- > 1;)
		stack_push(frozen, head->v[i]);
	if (head->n > 0 && is_empty(l, head->v[0]))
		return 0;
	r = layers_make(l, 0700, false, id, e);
	if (r < 0)
		return r;
	from = head->n > 0 ? layers_path_of(l, head->v[0], "/fs") : mem_str(plain);
	to = layers_path_of(l, id, "/fs");
	stack_push(frozen, id);
	return layers_with_rights(l, copy_tree, copy_own, (char *[]){ from, to }, e);
}

int layers_checkpoint_live(struct layers *l, enum tree_kind kind, const char *message,
			   uint64_t *ret_id, struct err *e)
{
	_free_ char *home_dir = mem_fmt("%s/sandboxes/%s/home", l->state_dir, l->name);
	struct stack ws = { 0 }, home = { 0 }, sys = { 0 };
	_close_ int lock = layers_lock_fresh(l, e);
	struct point *p;
	int r = lock < 0 ? lock : 0;

	if (r == 0 && l->n_points >= LAYERS_POINTS_MAX)
		r = err_set(e, ERR_USAGE, E2BIG, "'%s' has %d checkpoints; remove some", l->name,
			    LAYERS_POINTS_MAX);
	if (r == 0)
		r = freeze_copy(l, &l->ws, NULL, &ws, e);
	if (r == 0)
		r = freeze_copy(l, &l->home, has_plain_home(l) ? home_dir : NULL, &home, e);
	if (r == 0)
		r = freeze_copy(l, &l->sys, NULL, &sys, e);
	if (r < 0) {
		free(ws.v);
		free(home.v);
		free(sys.v);
		return r;
	}
	p = add_point(l, kind, message, 0);
	p->ws = ws;
	p->home = home;
	p->sys = sys;
	*ret_id = p->id;
	return layers_write(l, e);
}

const struct point *layers_point(const struct layers *l, uint64_t id)
{
	for (size_t i = 0; i < l->n_points; i++)
		if (l->points[i].id == id)
			return &l->points[i];
	return NULL;
}

const struct point *layers_point_of(const struct layers *l, uint64_t tree)
{
	for (size_t i = l->n_points; tree > 0 && i-- > 0;)
		if (l->points[i].tree == tree)
			return &l->points[i];
	return NULL;
}

static void drop_point(struct layers *l, size_t i)
{
	struct point *p = &l->points[i];

	free(p->message);
	free(p->ws.v);
	free(p->home.v);
	free(p->sys.v);
	memmove(p, p + 1, (l->n_points - i - 1) * sizeof(*p));
	l->n_points--;
}

int layers_keep_trees(struct layers *l, const uint64_t *trees, size_t n, struct err *e)
{
	_close_ int lock = layers_lock_fresh(l, e);
	size_t had = l->n_points;

	if (lock < 0)
		return lock;
	for (size_t i = l->n_points; i-- > 0;) {
		bool is_kept = l->points[i].tree == 0;

		for (size_t k = 0; k < n && !is_kept; k++)
			is_kept = trees[k] == l->points[i].tree;
		if (!is_kept)
			drop_point(l, i);
	}
	return l->n_points == had ? 0 : layers_write(l, e);
}

int layers_new_head(struct layers *l, struct stack *head, const struct stack *frozen, struct err *e)
{
	char id[LAYER_ID_BYTES];
	mode_t mode = head->n ? layers_mode(l, head) : 0755;
	int r = layers_make(l, mode, true, id, e);

	if (r < 0)
		return r;
	stack_copy(head, frozen);
	stack_push(head, id);
	return 0;
}

int layers_restore(struct layers *l, uint64_t id, uint64_t *ret_present, struct err *e)
{
	_free_ char *message = mem_fmt("before going back to %llu", (unsigned long long)id);
	_close_ int lock = layers_lock_fresh(l, e);
	const struct point *p;
	int r = lock < 0 ? lock : 0;

	if (r == 0 && layers_point(l, id) == NULL)
		r = err_set(e, ERR_NOTFOUND, ENOENT, "'%s' has no checkpoint %llu", l->name,
			    (unsigned long long)id);
	if (r == 0)
		r = save_present(l, message, id, ret_present, e);
	if (r < 0)
		return r;
	p = layers_point(l, id);
	bug_on(p == NULL); /* the lock is held, and saving took none away */
	if (l->ws.n > 0)
		r = layers_new_head(l, &l->ws, &p->ws, e);
	if (r == 0 && l->home.n > 0)
		r = layers_new_head(l, &l->home, &p->home, e);
	if (r == 0 && l->sys.n > 0) {
		r = layers_new_head(l, &l->sys, &p->sys, e);
		memcpy(l->below, p->below, sizeof(l->below));
	}
	return r < 0 ? r : layers_write(l, e);
}

int layers_discard(struct layers *l, int base, char *const *only, uint64_t *ret_present,
		   struct err *e)
{
	static const struct stack nothing = { 0 };
	struct overlay o = { 0 };
	_free_ char *path = NULL;
	_close_ int lock = layers_lock_fresh(l, e), to = FD_NONE;
	int r = lock < 0 ? lock : save_present(l, "before a discard", 0, ret_present, e);

	if (r == 0 && only)
		r = layers_open(l, &l->ws, base, &o, e);
	if (r == 0)
		r = layers_new_head(l, &l->ws, &nothing, e);
	if (r == 0 && only) {
		path = layers_path_of(l, l->ws.v[0], "/fs");
		to = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = to < 0 ? err_sys(e, "'%s'", path) : overlay_flatten(&o, only, to, e);
	}
	layers_close(&o);
	return r < 0 ? r : layers_write(l, e);
}

static bool stacks_equal(const struct stack *a, const struct stack *b, size_t skip)
{
	return a->n == b->n + skip &&
	       (b->n == 0 || memcmp(a->v + skip, b->v, b->n * sizeof(*b->v)) == 0);
}

/* Is the head what this checkpoint froze, with nothing written since? */
static bool is_present(const struct layers *l, const struct point *p)
{
	bool same_ws = l->ws.n == 0 || (is_empty(l, l->ws.v[0]) && stacks_equal(&l->ws, &p->ws, 1));
	bool same_home = l->home.n == 0
				 ? !has_plain_home(l)
				 : is_empty(l, l->home.v[0]) && stacks_equal(&l->home, &p->home, 1);

	return same_ws && same_home &&
	       (l->sys.n == 0 || (is_empty(l, l->sys.v[0]) && stacks_equal(&l->sys, &p->sys, 1)));
}

uint64_t layers_undo_target(const struct layers *l)
{
	uint64_t most = UINT64_MAX;

	for (size_t i = l->n_points; i-- > 0;) {
		const struct point *p = &l->points[i];

		if (p->kind == TREE_PRESENT && p->since > 0 && most == UINT64_MAX)
			most = p->since; /* the last thing that happened was a restore */
		if (p->kind == TREE_PRESENT || p->kind == TREE_INSIDE || p->id > most)
			continue;
		if (!is_present(l, p))
			return p->id;
		if (most == UINT64_MAX)
			most = p->id;
	}
	return 0;
}

static void drop_points(struct layers *l, enum tree_kind kind, size_t keep)
{
	size_t seen = 0;

	for (size_t i = l->n_points; i-- > 0;)
		if (l->points[i].kind == kind && ++seen > keep)
			drop_point(l, i);
}

int layers_before_start(struct layers *l, const char *message, struct err *e)
{
	_close_ int lock = FD_NONE;
	uint64_t id;
	int r;

	if (l->ws.n == 0 || is_empty(l, l->ws.v[0]))
		return 0;
	lock = layers_lock_fresh(l, e);
	if (lock < 0)
		return lock;
	drop_points(l, TREE_START, LAYERS_AUTO_KEPT - 1);
	drop_points(l, TREE_PRESENT, LAYERS_AUTO_KEPT);
	r = make_point(l, TREE_START, message, 0, &id, e);
	if (r == 0)
		r = layers_write(l, e);
	fd_close(take_fd(lock));
	if (r == 0)
		r = layers_merge(l, e);
	return r < 0 ? r : layers_collect(l->state_dir, &(uint64_t){ 0 }, e);
}

int layers_clear(struct layers *l, struct err *e)
{
	static const struct stack nothing = { 0 };
	_close_ int lock = layers_lock_fresh(l, e);
	int r = lock < 0 ? lock : layers_new_head(l, &l->ws, &nothing, e);

	return r < 0 ? r : layers_write(l, e);
}

int layers_fresh(struct layers *l, bool with_ws, uint64_t *ret_present, struct err *e)
{
	static const struct stack nothing = { 0 };
	_close_ int lock = layers_lock_fresh(l, e);
	int r = lock < 0 ? lock : save_present(l, "before a fresh start", 0, ret_present, e);

	if (r == 0 && l->home.n > 0)
		r = layers_new_head(l, &l->home, &nothing, e);
	if (r == 0 && l->sys.n > 0) {
		r = layers_new_head(l, &l->sys, &nothing, e);
		l->below[0] = '\0'; /* any template will do */
	}
	if (r == 0 && with_ws && l->ws.n > 0)
		r = layers_new_head(l, &l->ws, &nothing, e);
	return r < 0 ? r : layers_write(l, e);
}

char *layers_home_top(const struct layers *l)
{
	bug_on(l->home.n == 0);
	return layers_path_of(l, l->home.v[0], "/fs");
}

int layers_reset_home(struct layers *l, struct err *e)
{
	_close_ int lock = layers_lock_fresh(l, e);

	if (lock < 0 || l->home.n == 0)
		return lock < 0 ? lock : 0;
	l->home.n = 0;
	return layers_write(l, e);
}

int layers_prune(struct layers *l, uint64_t keep, uint64_t *ret_removed, struct err *e)
{
	_close_ int lock = layers_lock_fresh(l, e);
	uint64_t seen[2] = { 0 }, n = 0;
	int r;

	if (lock < 0)
		return lock;
	/* Those of the inside are counted for themselves: they must not push out the host's own. */
	for (size_t i = l->n_points; i-- > 0;)
		if (++seen[l->points[i].kind == TREE_INSIDE] > keep) {
			drop_point(l, i);
			n++;
		}
	*ret_removed = n;
	r = layers_write(l, e);
	fd_close(take_fd(lock));
	return r < 0 ? r : layers_collect(l->state_dir, &(uint64_t){ 0 }, e);
}
