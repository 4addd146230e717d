/* SPDX-License-Identifier: Apache-2.0 */
/* core/layers.c - see layers.h
 *
 * The order of every change: make the new (still unnamed) layer, then replace the file. What was named before and is
 * not any more is removed last, by layers_collect(), which holds a lock that makers hold too.
 */
#include "core/layers.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/path.h"
#include "core/layers_own.h"

static char *layer_path(const struct layers *l, const char *id, const char *part)
{
	return mem_fmt("%s/layers/%s%s", l->state_dir, id, part);
}

int layers_lock(const char *state_dir, struct err *e)
{
	_free_ char *dir = mem_fmt("%s/layers", state_dir);
	_free_ char *path = mem_fmt("%s/lock", dir);
	_close_ int fd = FD_NONE;
	int r = path_make(dir, 0700);

	if (r < 0)
		return err_set(e, ERR_SYSTEM, -r, "'%s': %s", dir, strerrordesc_np(-r));
	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || flock(fd, LOCK_EX) < 0)
		return err_sys(e, "'%s'", path);
	return take_fd(fd);
}

/* ---- stacks ---- */

static void stack_push(struct stack *s, const char *id)
{
	s->v = mem_grow(s->v, s->n + 1, sizeof(*s->v));
	memmove(s->v + 1, s->v, s->n * sizeof(*s->v));
	(void)snprintf(s->v[0], sizeof(s->v[0]), "%s", id);
	s->n++;
}

static void stack_copy(struct stack *to, const struct stack *from)
{
	free(to->v);
	*to = (struct stack){ 0 };
	for (size_t i = from->n; i-- > 0;)
		stack_push(to, from->v[i]);
}

void layers_done(struct layers *l)
{
	for (size_t i = 0; i < l->n_points; i++) {
		free(l->points[i].message);
		free(l->points[i].ws.v);
		free(l->points[i].home.v);
		free(l->points[i].sys.v);
	}
	free(l->points);
	free(l->ws.v);
	free(l->home.v);
	free(l->sys.v);
	free(l->state_dir);
	free(l->name);
	*l = (struct layers){ 0 };
}

/* ---- making ---- */

static int make_dirs(const struct layers *l, const char *id, mode_t mode, bool with_fs,
		     struct err *e)
{
	static const char *const parts[] = { "", "/work", "/fs" };

	for (size_t i = 0; i < (with_fs ? 3U : 2U); i++) {
		_free_ char *path = layer_path(l, id, parts[i]);

		if (mkdir(path, 0700) < 0 || (i == 2 && chmod(path, mode & 07777) < 0))
			return err_sys(e, "'%s'", path);
	}
	return 0;
}

static int new_id(char id[LAYER_ID_BYTES], struct err *e)
{
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return err_sys(e, "getrandom");
	(void)snprintf(id, LAYER_ID_BYTES, "%016llx", (unsigned long long)random);
	return 0;
}

static int make_layer(const struct layers *l, mode_t mode, bool with_fs, char id[LAYER_ID_BYTES],
		      struct err *e)
{
	int r = new_id(id, e);

	return r < 0 ? r : make_dirs(l, id, mode, with_fs, e);
}

static mode_t mode_of_top(const struct layers *l, const struct stack *s)
{
	_free_ char *path = layer_path(l, s->v[0], "/fs");
	struct stat st;

	return lstat(path, &st) == 0 ? st.st_mode & 07777 : 0755;
}

static bool is_top_of(const struct stack *s, const char *id)
{
	return s->n > 0 && str_eq(s->v[0], id);
}

int layers_first(struct layers *l, struct err *e)
{
	char id[LAYER_ID_BYTES];
	int r = new_id(id, e);

	if (r == 0)
		stack_push(&l->ws, id);
	return r;
}

/* Is what we hold what is on disk, or the first of all? The lock is held. */
static int check_first(const struct layers *l, struct err *e)
{
	struct layers now;
	bool is_same;
	int r = layers_read(l->state_dir, l->name, &now, e);

	if (r < 0)
		return r;
	is_same = now.ws.n == 0 || str_eq(now.ws.v[0], l->ws.v[0]);
	layers_done(&now);
	if (!is_same)
		return err_set(e, ERR_CONFLICT, EBUSY,
			       "somebody has just changed the layers of '%s'; try again", l->name);
	return 0;
}

int layers_first_sys(struct layers *l, struct err *e)
{
	char id[LAYER_ID_BYTES];
	int r = new_id(id, e);

	if (r == 0)
		stack_push(&l->sys, id);
	return r;
}

int layers_put_sys(struct layers *l, struct err *e)
{
	_close_ int lock = layers_lock(l->state_dir, e);
	_free_ char *path = layer_path(l, l->sys.v[0], "");
	struct layers now;
	bool is_same;
	int r = lock < 0 ? lock : layers_read(l->state_dir, l->name, &now, e);

	if (r < 0)
		return r;
	is_same = now.sys.n == 0 || is_top_of(&now.sys, l->sys.v[0]);
	if (!is_same)
		r = err_set(e, ERR_CONFLICT, EBUSY,
			    "somebody has just changed the layers of '%s'; try again", l->name);
	else if (access(path, F_OK) < 0)
		r = make_dirs(l, l->sys.v[0], 0755, true, e);
	if (r == 0 && now.sys.n == 0) {
		stack_copy(&now.sys, &l->sys);
		r = layers_write(&now, e);
	}
	layers_done(&now);
	return r;
}

int layers_put_first(struct layers *l, int ws_fd, struct err *e)
{
	_close_ int lock = layers_lock(l->state_dir, e);
	_free_ char *path = layer_path(l, l->ws.v[0], "");
	struct stat st;
	int r = lock < 0 ? lock : check_first(l, e);

	if (r < 0 || lstat(path, &st) == 0)
		return r;
	if (fstat(ws_fd, &st) < 0)
		return err_sys(e, "the workspace");
	r = make_dirs(l, l->ws.v[0], st.st_mode, true, e);
	return r < 0 ? r : layers_write(l, e);
}

int layers_put_full(struct layers *l, const char *full, struct err *e)
{
	_close_ int lock = layers_lock(l->state_dir, e);
	_free_ char *fs = layer_path(l, l->ws.v[0], "/fs");
	int r = lock < 0 ? lock : check_first(l, e);

	if (r == 0)
		r = make_dirs(l, l->ws.v[0], 0700, false, e);
	if (r == 0 && rename(full, fs) < 0)
		r = err_sys(e, "'%s'", full);
	return r < 0 ? r : layers_write(l, e);
}

/* The kernel's own directory must be fresh for every mount: a volatile one says of itself that it was one. */
int layers_claim(const char *state_dir, const char *name, const char *top, uid_t owner,
		 struct err *e)
{
	_free_ char *work = mem_fmt("%s/work", top);
	_close_ int fd = FD_NONE;
	struct layers l;
	const char *id = path_name(top);
	bool is_top;
	int r = layers_read(state_dir, name, &l, e);

	if (r < 0)
		return r;
	is_top = is_top_of(&l.ws, id) || is_top_of(&l.home, id) || is_top_of(&l.sys, id);
	layers_done(&l);
	if (!is_top)
		return err_set(e, ERR_CONFLICT, EAGAIN,
			       "the layers of '%s' were changed while it started; try again", name);
	fd = open(top, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, "layer '%s'", top);
	(void)path_remove(fd, "work"); /* if it stays, making it says so */
	if (mkdir(work, 0700) < 0)
		return err_sys(e, "'%s'", work);
	if (owner != LAYERS_NO_OWNER &&
	    (fchown(fd, owner, owner) < 0 ||
	     fchownat(fd, "work", owner, owner, AT_SYMLINK_NOFOLLOW) < 0 ||
	     fchownat(fd, "fs", owner, owner, AT_SYMLINK_NOFOLLOW) < 0))
		return err_sys(e, "'%s'", work);
	return 0;
}

char **layers_paths(const struct layers *l, const struct stack *s)
{
	char **v;

	if (s->n == 0)
		return NULL;
	v = mem_new(s->n + 1, sizeof(*v));
	for (size_t i = 0; i < s->n; i++)
		v[i] = layer_path(l, s->v[i], i ? "/fs" : "");
	return v;
}

void layers_paths_free(char **paths)
{
	for (char **p = paths; p && *p; p++)
		free(*p);
	free(paths);
}

/* ---- comparing ---- */

void layers_close(struct overlay *o)
{
	for (size_t i = 0; i < o->n; i++)
		fd_close(o->layers[i]);
	o->n = 0;
}

int layers_open(const struct layers *l, const struct stack *s, int base, struct overlay *ret,
		struct err *e)
{
	struct overlay o = { .base = base };

	if (s->n > OVERLAY_LAYERS_MAX)
		return err_set(e, ERR_SYSTEM, E2BIG, "too many layers");
	for (size_t i = 0; i < s->n; i++) {
		_free_ char *path = layer_path(l, s->v[i], "/fs");
		int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (fd < 0) {
			int r = err_sys(e, "layer '%s'", path);

			layers_close(&o);
			return r;
		}
		o.layers[o.n++] = fd;
	}
	*ret = o;
	return 0;
}

/* ---- checkpoints ---- */

static bool is_empty(const struct layers *l, const char *id)
{
	_free_ char *path = layer_path(l, id, "/fs");
	DIR *d = opendir(path);
	struct dirent *en;
	bool is = true;

	while (d && is && (en = readdir(d)) != NULL)
		is = str_eq(en->d_name, ".") || str_eq(en->d_name, "..");
	if (d)
		(void)closedir(d);
	return is;
}

/* Everything frozen becomes one new layer. The old ones stay as long as a checkpoint names them. */
static int merge_frozen(struct layers *l, struct stack *frozen, int base, mode_t mode,
			struct err *e)
{
	struct overlay o = { 0 };
	_free_ char *path = NULL;
	_close_ int to = FD_NONE;
	char id[LAYER_ID_BYTES];
	int r = layers_open(l, frozen, base, &o, e);

	if (r == 0)
		r = make_layer(l, mode, true, id, e);
	if (r == 0) {
		path = layer_path(l, id, "/fs");
		to = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = to < 0 ? err_sys(e, "'%s'", path) : overlay_flatten(&o, NULL, to, e);
	}
	layers_close(&o);
	if (r < 0)
		return r;
	frozen->n = 0;
	stack_push(frozen, id);
	return 0;
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
	mode = mode_of_top(l, head);
	stack_copy(frozen, head);
	if (is_empty(l, head->v[0])) { /* nothing to freeze: the head stays as it is */
		memmove(frozen->v, frozen->v + 1, (frozen->n - 1) * sizeof(*frozen->v));
		frozen->n--;
		return 0;
	}
	r = make_layer(l, mode, true, id, e);
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
	l->n_points++;
	return p;
}

/* The home begins as a plain directory; the first time it is to be kept it becomes a layer, by one rename. The file
 * says so first, so that whoever comes after a crash finishes it. */
int layers_finish_move(struct layers *l, struct err *e)
{
	_free_ char *home = mem_fmt("%s/sandboxes/%s/home", l->state_dir, l->name);
	_free_ char *fs = layer_path(l, l->moving, "/fs");
	char top[LAYER_ID_BYTES];
	struct stat st;
	int r = 0;

	if (lstat(fs, &st) < 0 && rename(home, fs) < 0 && errno != ENOENT)
		return err_sys(e, "'%s'", home);
	if (mkdir(home, 0700) < 0 && errno != EEXIST)
		return err_sys(e, "'%s'", home);
	if (lstat(fs, &st) == 0) {
		r = make_layer(l, st.st_mode, true, top, e);
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
	r = make_layer(l, 0700, false, l->moving, e);
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
	_close_ int lock = layers_lock(l->state_dir, e);
	int r = lock < 0 ? lock : make_point(l, kind, message, since, ret_id, e);

	return r < 0 ? r : layers_write(l, e);
}

/* By cp, which keeps links, attributes and the overlay's own marks, and shares blocks where the file system can. Whoever
 * writes there stands still. */
static int copy_tree(const char *from, const char *to, struct err *e)
{
	const char *const argv[] = {
		"cp", "-a", "--reflink=auto", "--no-target-directory", "--", from, to, NULL
	};
	const char *const env[] = { "PATH=/usr/bin:/bin", "LC_ALL=C", NULL };
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		(void)execve("/usr/bin/cp", (char *const *)(uintptr_t)argv,
			     (char *const *)(uintptr_t)env);
		(void)execve("/bin/cp", (char *const *)(uintptr_t)argv,
			     (char *const *)(uintptr_t)env);
		_exit(127);
	}
	if (pid < 0)
		return err_sys(e, "fork");
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_sys(e, "waitpid");
	return status == 0 ? 0 : err_set(e, ERR_SYSTEM, EIO, "'%s' could not be copied", from);
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
	r = make_layer(l, 0700, false, id, e);
	if (r < 0)
		return r;
	from = head->n > 0 ? layer_path(l, head->v[0], "/fs") : mem_str(plain);
	to = layer_path(l, id, "/fs");
	stack_push(frozen, id);
	return copy_tree(from, to, e);
}

int layers_checkpoint_live(struct layers *l, const char *message, uint64_t *ret_id, struct err *e)
{
	_free_ char *home_dir = mem_fmt("%s/sandboxes/%s/home", l->state_dir, l->name);
	struct stack ws = { 0 }, home = { 0 }, sys = { 0 };
	_close_ int lock = layers_lock(l->state_dir, e);
	struct point *p;
	int r = lock < 0 ? lock : 0;

	if (r == 0 && l->n_points >= LAYERS_POINTS_MAX)
		r = err_set(e, ERR_USAGE, E2BIG, "'%s' has %d checkpoints; remove some", l->name,
			    LAYERS_POINTS_MAX);
	if (r == 0)
		r = freeze_copy(l, &l->ws, NULL, &ws, e);
	if (r == 0)
		r = freeze_copy(l, &l->home, has_plain_home(l) ? home_dir : NULL, &home, e);
	if (r == 0) {
		r = freeze_copy(l, &l->sys, NULL, &sys, e);
		if (r < 0)
			r = err_wrap(e, r,
				     "what was installed can be saved when the sandbox does not "
				     "run");
	}
	if (r < 0) {
		free(ws.v);
		free(home.v);
		free(sys.v);
		return r;
	}
	p = add_point(l, TREE_MANUAL, message, 0);
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

/* A head that shows what `frozen` does: a new layer on top of it. */
static int new_head(struct layers *l, struct stack *head, const struct stack *frozen, struct err *e)
{
	char id[LAYER_ID_BYTES];
	mode_t mode = head->n ? mode_of_top(l, head) : 0755;
	int r = make_layer(l, mode, true, id, e);

	if (r < 0)
		return r;
	stack_copy(head, frozen);
	stack_push(head, id);
	return 0;
}

int layers_restore(struct layers *l, uint64_t id, uint64_t *ret_present, struct err *e)
{
	_free_ char *message = mem_fmt("before going back to %llu", (unsigned long long)id);
	_close_ int lock = layers_lock(l->state_dir, e);
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
	if (l->ws.n > 0)
		r = new_head(l, &l->ws, &p->ws, e);
	if (r == 0 && l->home.n > 0)
		r = new_head(l, &l->home, &p->home, e);
	if (r == 0 && l->sys.n > 0)
		r = new_head(l, &l->sys, &p->sys, e);
	return r < 0 ? r : layers_write(l, e);
}

int layers_discard(struct layers *l, int base, char *const *only, uint64_t *ret_present,
		   struct err *e)
{
	static const struct stack nothing = { 0 };
	struct overlay o = { 0 };
	_free_ char *path = NULL;
	_close_ int lock = layers_lock(l->state_dir, e), to = FD_NONE;
	int r = lock < 0 ? lock : save_present(l, "before a discard", 0, ret_present, e);

	if (r == 0 && only)
		r = layers_open(l, &l->ws, base, &o, e);
	if (r == 0)
		r = new_head(l, &l->ws, &nothing, e);
	if (r == 0 && only) {
		path = layer_path(l, l->ws.v[0], "/fs");
		to = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = to < 0 ? err_sys(e, "'%s'", path) : overlay_flatten(&o, only, to, e);
	}
	layers_close(&o);
	return r < 0 ? r : layers_write(l, e);
}

/* The head keeps the layer that is written. The lock is held. */
static int merge_stack(struct layers *l, struct stack *s, int base, struct err *e)
{
	struct stack frozen = { 0 };
	int r;

	if (s->n < LAYERS_MERGE_AT)
		return 0;
	for (size_t i = s->n; i-- > 1;)
		stack_push(&frozen, s->v[i]);
	r = merge_frozen(l, &frozen, base, mode_of_top(l, s), e);
	if (r == 0) {
		stack_push(&frozen, s->v[0]);
		stack_copy(s, &frozen);
	}
	free(frozen.v);
	return r < 0 ? r : 1;
}

/* `sys` is left alone: what lies below it is another directory, and it is frozen only by checkpoints. */
int layers_merge(struct layers *l, int base, struct err *e)
{
	_free_ char *nothing = mem_fmt("%s/layers/.empty", l->state_dir);
	_close_ int lock = FD_NONE, empty = FD_NONE;
	int ws, home;

	if (l->ws.n < LAYERS_MERGE_AT && l->home.n < LAYERS_MERGE_AT)
		return 0;
	lock = layers_lock(l->state_dir, e);
	if (lock < 0)
		return lock;
	(void)mkdir(nothing, 0700); /* it may be there */
	empty = open(nothing, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (empty < 0)
		return err_sys(e, "'%s'", nothing);
	ws = merge_stack(l, &l->ws, base, e);
	home = ws < 0 ? ws : merge_stack(l, &l->home, empty, e);
	return home < 0 ? home : layers_write(l, e);
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
		if (p->kind == TREE_PRESENT || p->id > most)
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

	for (size_t i = l->n_points; i-- > 0;) {
		struct point *p = &l->points[i];

		if (p->kind != kind || ++seen <= keep)
			continue;
		free(p->message);
		free(p->ws.v);
		free(p->home.v);
		free(p->sys.v);
		memmove(p, p + 1, (l->n_points - i - 1) * sizeof(*p));
		l->n_points--;
	}
}

int layers_before_start(struct layers *l, int base, const char *message, struct err *e)
{
	uint64_t id;
	int r;

	if (l->ws.n == 0 || is_empty(l, l->ws.v[0]))
		return 0;
	drop_points(l, TREE_START, LAYERS_AUTO_KEPT - 1);
	drop_points(l, TREE_PRESENT, LAYERS_AUTO_KEPT);
	r = layers_checkpoint(l, TREE_START, message, 0, &id, e);
	if (r == 0)
		r = layers_merge(l, base, e);
	return r < 0 ? r : layers_collect(l->state_dir, &(uint64_t){ 0 }, e);
}

int layers_clear(struct layers *l, struct err *e)
{
	static const struct stack nothing = { 0 };
	_close_ int lock = layers_lock(l->state_dir, e);
	int r = lock < 0 ? lock : new_head(l, &l->ws, &nothing, e);

	return r < 0 ? r : layers_write(l, e);
}

int layers_fresh(struct layers *l, bool with_ws, uint64_t *ret_present, struct err *e)
{
	static const struct stack nothing = { 0 };
	_close_ int lock = layers_lock(l->state_dir, e);
	int r = lock < 0 ? lock : save_present(l, "before a fresh start", 0, ret_present, e);

	if (r == 0 && l->home.n > 0)
		r = new_head(l, &l->home, &nothing, e);
	if (r == 0 && l->sys.n > 0)
		r = new_head(l, &l->sys, &nothing, e);
	if (r == 0 && with_ws && l->ws.n > 0)
		r = new_head(l, &l->ws, &nothing, e);
	return r < 0 ? r : layers_write(l, e);
}

int layers_reset_home(struct layers *l, struct err *e)
{
	if (l->home.n == 0)
		return 0;
	l->home.n = 0;
	return layers_write(l, e);
}

int layers_prune(struct layers *l, uint64_t keep, uint64_t *ret_removed, struct err *e)
{
	size_t n = l->n_points > keep ? l->n_points - (size_t)keep : 0;
	int r;

	for (size_t i = 0; i < n; i++) {
		free(l->points[i].message);
		free(l->points[i].ws.v);
		free(l->points[i].home.v);
		free(l->points[i].sys.v);
	}
	memmove(l->points, l->points + n, (l->n_points - n) * sizeof(*l->points));
	l->n_points -= n;
	*ret_removed = n;
	r = layers_write(l, e);
	return r < 0 ? r : layers_collect(l->state_dir, &(uint64_t){ 0 }, e);
}

int layers_fork(struct layers *from, const char *name, struct err *e)
{
	struct layers to = { .state_dir = mem_str(from->state_dir), .name = mem_str(name) };
	_close_ int lock = FD_NONE;
	const struct point *p;
	uint64_t id = 0;
	int r = layers_checkpoint(from, TREE_PRESENT, "before a fork", 0, &id, e);

	if (r == 0)
		lock = layers_lock(from->state_dir, e);
	r = r < 0 ? r : lock < 0 ? lock : 0;
	p = r < 0 ? NULL : layers_point(from, id);
	if (p && from->ws.n > 0)
		r = new_head(&to, &to.ws, &p->ws, e);
	if (r == 0 && p && from->home.n > 0)
		r = new_head(&to, &to.home, &p->home, e);
	if (r == 0 && p && from->sys.n > 0)
		r = new_head(&to, &to.sys, &p->sys, e);
	if (r == 0)
		r = layers_write(&to, e);
	layers_done(&to);
	return r;
}

/* The tree becomes a frozen layer, with a new one on top. The lock is held. */
static int import_tree(const struct layers *l, struct stack *s, const char *tree, struct err *e)
{
	_free_ char *fs = NULL;
	char id[LAYER_ID_BYTES];
	struct stat st;
	int r = lstat(tree, &st) < 0 ? err_sys(e, "'%s'", tree) : make_layer(l, 0700, false, id, e);

	if (r < 0)
		return r;
	fs = layer_path(l, id, "/fs");
	if (rename(tree, fs) < 0)
		return err_sys(e, "'%s'", tree);
	stack_push(s, id);
	r = make_layer(l, st.st_mode, true, id, e);
	if (r == 0)
		stack_push(s, id);
	return r;
}

int layers_import(const char *state_dir, const char *name, const char *home, const char *ws,
		  struct err *e)
{
	struct layers l = { .state_dir = mem_str(state_dir), .name = mem_str(name) };
	_close_ int lock = layers_lock(state_dir, e);
	int r = lock < 0 ? lock : 0;

	if (r == 0 && home)
		r = import_tree(&l, &l.home, home, e);
	if (r == 0 && ws)
		r = import_tree(&l, &l.ws, ws, e);
	if (r == 0)
		r = layers_write(&l, e);
	layers_done(&l);
	return r;
}
