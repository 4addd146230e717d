/* SPDX-License-Identifier: Apache-2.0 */
/* core/layers.c - see layers.h
 *
 * The order of every change: make the new (still unnamed) layer, then replace the file. What was named before and is
 * not any more is removed last, by layers_collect(), which holds a lock that makers hold too.
 * Checkpoints and all that goes back to one are in layers_points.c.
 */
#include "core/layers.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/path.h"
#include "core/layers_own.h"

char *layers_path_of(const struct layers *l, const char *id, const char *part)
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

int layers_lock_fresh(struct layers *l, struct err *e)
{
	_close_ int lock = layers_lock(l->state_dir, e);
	struct layers now;
	int r = lock < 0 ? lock : layers_read_held(l->state_dir, l->name, &now, e);

	if (r < 0)
		return r;
	now.tree = l->tree; /* a wish for the next checkpoint */
	layers_done(l);
	*l = now;
	return take_fd(lock);
}

/* ---- stacks ---- */

void stack_push(struct stack *s, const char *id)
{
	s->v = mem_grow(s->v, s->n + 1, sizeof(*s->v));
	memmove(s->v + 1, s->v, s->n * sizeof(*s->v));
	(void)snprintf(s->v[0], sizeof(s->v[0]), "%s", id);
	s->n++;
}

void stack_copy(struct stack *to, const struct stack *from)
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
		_free_ char *path = layers_path_of(l, id, parts[i]);

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

int layers_make(const struct layers *l, mode_t mode, bool with_fs, char id[LAYER_ID_BYTES],
		struct err *e)
{
	int r = new_id(id, e);

	return r < 0 ? r : make_dirs(l, id, mode, with_fs, e);
}

mode_t layers_mode(const struct layers *l, const struct stack *s)
{
	_free_ char *path = layers_path_of(l, s->v[0], "/fs");
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

/* What is on disk, if it has the top that we hold or none yet, and then with ours. The lock is held: since we read it somebody
 * else may have made a checkpoint, which must not be lost. */
static int read_first(const struct layers *l, struct layers *ret, struct err *e)
{
	int r = layers_read_held(l->state_dir, l->name, ret, e);

	if (r < 0)
		return r;
	if (ret->ws.n == 0)
		stack_copy(&ret->ws, &l->ws);
	if (is_top_of(&ret->ws, l->ws.v[0]))
		return 0;
	layers_done(ret);
	return err_set(e, ERR_CONFLICT, EBUSY,
		       "somebody has just changed the layers of '%s'; try again", l->name);
}

int layers_first_sys(struct layers *l, const char *below, struct err *e)
{
	char id[LAYER_ID_BYTES];
	int r;

	if (l->sys.n > 0 && l->below[0] && !str_eq(l->below, below))
		return err_set(e, ERR_CONFLICT, ESTALE,
			       "what '%s' has installed lies above another template, or above this "
			       "one "
			       "before it was made anew; 'vitrine run --fresh --name %s ...' "
			       "begins anew "
			       "with this one and keeps the old state as a checkpoint",
			       l->name, l->name);
	r = l->sys.n > 0 ? 0 : new_id(id, e);
	if (r == 0 && l->sys.n == 0)
		stack_push(&l->sys, id);
	if (r == 0)
		(void)snprintf(l->below, sizeof(l->below), "%s", below);
	return r;
}

int layers_put_sys(struct layers *l, struct err *e)
{
	_close_ int lock = layers_lock(l->state_dir, e);
	_free_ char *path = layers_path_of(l, l->sys.v[0], "");
	struct layers now;
	bool is_same;
	int r = lock < 0 ? lock : layers_read_held(l->state_dir, l->name, &now, e);

	if (r < 0)
		return r;
	is_same = now.sys.n == 0 || is_top_of(&now.sys, l->sys.v[0]);
	if (!is_same)
		r = err_set(e, ERR_CONFLICT, EBUSY,
			    "somebody has just changed the layers of '%s'; try again", l->name);
	else if (access(path, F_OK) < 0)
		r = make_dirs(l, l->sys.v[0], 0755, true, e);
	if (r == 0 && (now.sys.n == 0 || !str_eq(now.below, l->below))) {
		if (now.sys.n == 0)
			stack_copy(&now.sys, &l->sys);
		memcpy(now.below, l->below, sizeof(now.below));
		r = layers_write(&now, e);
	}
	layers_done(&now);
	return r;
}

int layers_put_first(struct layers *l, int ws_fd, struct err *e)
{
	_close_ int lock = layers_lock(l->state_dir, e);
	_free_ char *path = layers_path_of(l, l->ws.v[0], "");
	struct layers now;
	struct stat st;
	int r = lock < 0 ? lock : read_first(l, &now, e);

	if (r < 0)
		return r;
	if (lstat(path, &st) < 0) {
		r = fstat(ws_fd, &st) < 0 ? err_sys(e, "the workspace")
					  : make_dirs(l, l->ws.v[0], st.st_mode, true, e);
		if (r == 0)
			r = layers_write(&now, e);
	}
	layers_done(&now);
	return r;
}

int layers_put_full(struct layers *l, const char *full, struct err *e)
{
	_close_ int lock = layers_lock(l->state_dir, e);
	_free_ char *fs = layers_path_of(l, l->ws.v[0], "/fs");
	struct layers now;
	int r = lock < 0 ? lock : read_first(l, &now, e);

	if (r < 0)
		return r;
	r = make_dirs(l, l->ws.v[0], 0700, false, e);
	if (r == 0 && rename(full, fs) < 0)
		r = err_sys(e, "'%s'", full);
	if (r == 0)
		r = layers_write(&now, e);
	layers_done(&now);
	return r;
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
		v[i] = layers_path_of(l, s->v[i], i ? "/fs" : "");
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
		_free_ char *path = layers_path_of(l, s->v[i], "/fs");
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

/* ---- others' ---- */

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
		r = layers_new_head(&to, &to.ws, &p->ws, e);
	if (r == 0 && p && from->home.n > 0)
		r = layers_new_head(&to, &to.home, &p->home, e);
	if (r == 0 && p && from->sys.n > 0)
		r = layers_new_head(&to, &to.sys, &p->sys, e);
	memcpy(to.below, from->below, sizeof(to.below));
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
	int r = lstat(tree, &st) < 0 ? err_sys(e, "'%s'", tree)
				     : layers_make(l, 0700, false, id, e);

	if (r < 0)
		return r;
	fs = layers_path_of(l, id, "/fs");
	if (rename(tree, fs) < 0)
		return err_sys(e, "'%s'", tree);
	stack_push(s, id);
	r = layers_make(l, st.st_mode, true, id, e);
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
