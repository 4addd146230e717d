/* SPDX-License-Identifier: Apache-2.0 */
/* view/walk.c - see walk.h
 *
 * A directory is read to its end in one go; the names of the subdirectories to visit wait in one arena that
 * grows and shrinks like a stack. A frame keeps its descriptor only while it is among the WINDOW deepest and
 * still has children to visit; one that comes up again without it is opened anew from the root, beneath and
 * without links. So a chain of any depth costs WINDOW descriptors and no C stack.
 *
 * With a list of an earlier walk (index.h) a directory that is the same is not opened: its names come from the list. It is
 * looked at by its path from the nearest directory above that has a descriptor; one with many children gets one for that.
 * A link in the place of a directory on that path is a change of the directory it lies in, which was looked at before.
 */
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/buf.h"
#include "base/path.h"
#include "view/walk.h"

#define WINDOW 24
#define DENTS_SIZE (64 * KIB)
#define ANCHOR_CHILDREN 8 /* with so many, looking at them from nearer is worth a descriptor */
/* Another process holds a lease on a file: it was told to let go. Half a second in all. */
#define LEASE_TRIES 25
#define LEASE_WAIT_NS 20000000L
#define REL_MAX MIB /* nobody can work that deep; it only bounds our memory */

struct dent {
	uint64_t ino;
	int64_t off;
	uint16_t reclen;
	uint8_t type;
	char name[];
};

struct frame {
	int fd;
	size_t rel_len;
	size_t base, next, end; /* its children in the arena */
	unsigned mode;
	uint32_t listed; /* its entry in the list of this walk */
	uint32_t
		place; /* its entry in the earlier list, when it came from there and lies where it did */
};

/* A child in the arena, with its name and a NUL behind it. */
struct child {
	uint64_t ino; /* as its parent lists it; 0 when that is not known */
	uint32_t
		old; /* its entry in the list of an earlier walk, when the parent came from there */
	uint32_t item; /* where its name lies in the list of this walk */
	uint8_t mode;
};

struct walk {
	int root_fd;
	const struct walk_ops *ops;
	void *arg;
	struct walk_stats *stats;
	struct frame *v;
	size_t n, cap;
	char *arena;
	size_t arena_n, arena_cap;
	char *rel;
	size_t rel_cap;
	char *dents;
	struct walk_list list; /* `now` is NULL when none is made */
	struct index_share share;
	size_t taken; /* directories that were not read */
	bool is_stopped;
};

int walk_opendir(int dir_fd, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
	int fd = openat(dir_fd, name, flags | O_NOATIME);

	/* Only the owner may ask for O_NOATIME. */
	if (fd < 0 && errno == EPERM)
		fd = openat(dir_fd, name, flags);
	return fd < 0 ? -errno : fd;
}

unsigned char walk_type(int dir_fd, const char *name)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return DT_UNKNOWN;
	return (unsigned char)IFTODT(st.st_mode);
}

bool walk_is_gone(int num)
{
	return num == ENOENT || num == ENOTDIR || num == ELOOP;
}

int walk_open(int root_fd, const char *rel, int flags)
{
	const uint64_t how = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
	_close_ int at = FD_NONE;

	if (rel[0] == '\0')
		rel = ".";
	while (strlen(rel) >= PATH_MAX) {
		char part[PATH_MAX];
		size_t n = PATH_MAX - 1;
		int next;

		while (n > 0 && rel[n] != '/')
			n--;
		if (n == 0)
			return -ENAMETOOLONG;
		memcpy(part, rel, n);
		part[n] = '\0';
		next = path_openat2(at >= 0 ? at : root_fd, part, O_PATH | O_DIRECTORY, how);
		if (next < 0)
			return next;
		fd_close(at);
		at = next;
		rel += n + 1;
	}
	for (unsigned i = 0;; i++) {
		int fd = path_openat2(at >= 0 ? at : root_fd, rel, flags, how);

		if (fd != -EAGAIN || !(flags & O_NONBLOCK) || i == LEASE_TRIES)
			return fd;
		(void)nanosleep(&(struct timespec){ .tv_nsec = LEASE_WAIT_NS }, NULL);
	}
}

static void walk_done(struct walk *w)
{
	index_share_end(&w->share);
	for (size_t i = 0; i < w->n; i++)
		fd_close(w->v[i].fd);
	free(w->v);
	free(w->arena);
	free(w->rel);
	free(w->dents);
}

static void arena_add(struct walk *w, const struct child *c, const char *name, size_t len)
{
	size_t need = w->arena_n + sizeof(*c) + len + 1;

	if (need > w->arena_cap) {
		w->arena_cap = need * 2;
		w->arena = mem_grow(w->arena, w->arena_cap, 1);
	}
	memcpy(w->arena + w->arena_n, c, sizeof(*c));
	memcpy(w->arena + w->arena_n + sizeof(*c), name, len + 1);
	w->arena_n = need;
}

/* Shows one name. */
static void take_name(struct walk *w, struct walk_dir *d, struct child *c,
		      const struct index_item *it)
{
	unsigned r = w->ops->entry(w->arg, d, it->name, it->len, it->type);

	bug_on((r & ~WALK_LISTED) > WALK_MODE_MAX);
	w->stats->files += it->type != DT_DIR;
	c->item = INDEX_NONE;
	if (w->list.now && (it->type == DT_DIR || r & WALK_LISTED))
		c->item = index_add_name(w->list.now, it->type, it->name, it->len);
	c->mode = (uint8_t)(r & WALK_MODE_MAX);
	if (it->type == DT_DIR && c->mode)
		arena_add(w, c, it->name, it->len);
}

static void take_dents(struct walk *w, struct walk_dir *d, uint32_t listed, size_t got)
{
	for (size_t at = 0; at < got && !w->is_stopped;) {
		const struct dent *e = (const void *)(w->dents + at);
		struct index_item it = { .type = e->type, .name = e->name };
		struct child c = { .ino = e->ino, .old = INDEX_NONE };

		at += e->reclen;
		if (it.name[0] == '.' &&
		    (it.name[1] == '\0' || (it.name[1] == '.' && it.name[2] == '\0')))
			continue;
		it.len = strlen(it.name);
		if (it.type == DT_UNKNOWN)
			it.type = walk_type(d->fd, it.name);
		/* Not to be looked at: to open it will tell whether that matters. */
		if (it.type == DT_UNKNOWN) {
			it.type = DT_DIR;
			if (w->list.now)
				index_distrust(w->list.now, listed);
		}
		take_name(w, d, &c, &it);
	}
}

/* An entry for a directory that is about to be read. */
static void begin_list(struct walk *w, struct frame *f, const struct child *c, uint32_t parent)
{
	struct index *now = w->list.now, *old = w->list.old;
	struct index_id id;
	uint32_t was = c->old;

	if (!index_look(f->fd, "", &id)) {
		f->listed = index_add(now, parent, c->item, NULL);
		return;
	}
	f->listed = index_add(now, parent, c->item, &id);
	if (old && was == INDEX_NONE)
		was = index_find(old, id.ino);
	if (was != INDEX_NONE && index_is_same(old, was, now, &id))
		index_keep(now, old, was);
}

static int read_names(struct walk *w, struct walk_dir *d, uint32_t listed, struct err *e)
{
	for (;;) {
		long got = syscall(SYS_getdents64, d->fd, w->dents, (unsigned)DENTS_SIZE);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno != ENOENT) /* ENOENT: removed while we read it */
			return err_sys(e, "read directory '%s'", w->rel);
		if (got <= 0 || w->is_stopped)
			return 0;
		take_dents(w, d, listed, (size_t)got);
	}
}

/* ---- directories from the list ---- */

/* The directory from the list that was read all the same: are the names those of the list? */
static void compare(const struct walk *w, int fd, uint32_t old)
{
	_cleanup_(buf_done) struct buf names = BUF(16 * MIB);
	_Alignas(8) char dents[16 * KIB];
	const struct index *x = w->list.old;
	struct index_item it;
	struct index_id id;
	size_t dirs = 0, others = 0, listed_dirs = 0;
	long got;

	if (fd < 0 || !index_look(fd, "", &id) || !index_is_same(x, old, w->list.now, &id))
		return;
	while ((got = syscall(SYS_getdents64, fd, dents, (unsigned)sizeof(dents))) > 0)
		for (long at = 0; at < got;) {
			const struct dent *e = (const void *)(dents + at);

			at += e->reclen;
			if (str_eq(e->name, ".") || str_eq(e->name, ".."))
				continue;
			dirs += e->type == DT_DIR;
			others += e->type != DT_DIR;
			buf_putc(&names, '/');
			buf_puts(&names, e->name);
			buf_putc(&names, '/');
		}
	/* A change since is seen by the time. */
	if (names.is_over || !index_look(fd, "", &id) || !index_is_same(x, old, w->list.now, &id))
		return;
	for (size_t at = 0; index_next(x, old, &at, &it);) {
		_free_ char *name = mem_fmt("/%s/", it.name);

		listed_dirs += it.type == DT_DIR;
		bug_on(memmem(names.p, names.n, name, strlen(name)) == NULL);
	}
	bug_on(dirs != listed_dirs || others != x->dirs[old].files);
}

/* The directory above f, or f itself, that has a descriptor; how much of rel leads to it. */
static int anchor(const struct walk *w, size_t *ret_len)
{
	for (size_t i = w->n; i-- > 0;)
		if (w->v[i].fd >= 0) {
			*ret_len = w->v[i].rel_len;
			return w->v[i].fd;
		}
	*ret_len = 0;
	return w->root_fd;
}

/* Is what lies at w->rel, of rel_len bytes, the directory of that entry? */
static bool is_same(const struct walk *w, uint32_t old, struct index_id *ret)
{
	size_t from;
	int fd = anchor(w, &from);
	const char *path = w->rel + from + (from && w->rel[from] ? 1 : 0);

	return index_look(fd, path, ret) && index_is_same(w->list.old, old, w->list.now, ret);
}

static void take_list(struct walk *w, struct walk_dir *d, struct frame *f, uint32_t old)
{
	const struct index *x = w->list.old;
	struct index_item it;
	uint64_t files = w->stats->files;
	size_t children = 0;

	for (size_t at = 0; index_next(x, old, &at, &it) && !w->is_stopped;) {
		struct child c = { .old = it.dir,
				   .ino = it.dir == INDEX_NONE ? 0 : x->dirs[it.dir].ino };

		children += it.type == DT_DIR;
		take_name(w, d, &c, &it);
	}
	w->stats->files = files + x->dirs[old].files;
	w->taken++;
	if (w->list.sample && w->taken % w->list.sample == 0) {
		_close_ int fd = walk_open(w->root_fd, w->rel, O_RDONLY | O_DIRECTORY | O_NONBLOCK);

		compare(w, fd, old);
	}
	if (children >= ANCHOR_CHILDREN && f->fd < 0)
		(void)walk_fd(d); /* it only shortens the paths */
}

/* ---- frames ---- */

int walk_fd(struct walk_dir *d)
{
	struct frame *f = &d->w->v[d->w->n - 1];

	if (f->fd < 0)
		f->fd = walk_open(d->w->root_fd, d->w->rel, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
	d->fd = f->fd;
	return f->fd;
}

/* `id` is what the entry `c->old` was compared with; NULL: the directory is to be read. */
static int fill_frame(struct walk *w, const struct child *c, const struct index_id *id,
		      struct err *e)
{
	struct frame *f = &w->v[w->n - 1];
	struct walk_dir d = {
		.w = w, .fd = f->fd, .rel = w->rel, .rel_len = f->rel_len, .mode = f->mode
	};
	uint32_t parent = w->n > 1 ? w->v[w->n - 2].listed : INDEX_NONE;
	uint64_t files = w->stats->files;
	int r = 0;

	f->base = f->next = w->arena_n;
	f->listed = INDEX_NONE;
	w->stats->dirs++;
	if (id) {
		f->listed = index_add(w->list.now, parent, c->item, id);
		if (f->listed != INDEX_NONE)
			index_keep(w->list.now, w->list.old, c->old);
		take_list(w, &d, f, c->old);
	} else {
		if (w->list.now)
			begin_list(w, f, c, parent);
		r = read_names(w, &d, f->listed, e);
	}
	if (f->listed != INDEX_NONE && !w->list.now->is_off)
		w->list.now->dirs[f->listed].files = (uint32_t)(w->stats->files - files);
	f->end = w->arena_n;
	if (r >= 0 && w->ops->end && !w->is_stopped)
		r = w->ops->end(w->arg, w, &d, e);
	return r;
}

/* Makes w->rel the path of `name` in the top frame. */
static size_t extend(struct walk *w, const char *name)
{
	size_t len = strlen(name), parent = w->n ? w->v[w->n - 1].rel_len : 0;
	size_t rel_len = parent + (parent ? 1 : 0) + len;

	if (rel_len + 1 > w->rel_cap) {
		w->rel_cap = (rel_len + 1) * 2;
		w->rel = mem_grow(w->rel, w->rel_cap, 1);
	}
	if (parent)
		w->rel[parent] = '/';
	memcpy(w->rel + rel_len - len, name, len);
	w->rel[rel_len] = '\0';
	return rel_len;
}

/* Takes ownership of fd. w->rel is its path. */
static void push_take_fd(struct walk *w, int fd, unsigned mode, size_t rel_len)
{
	vec_reserve(w->v, w->n, w->cap);
	w->v[w->n++] =
		(struct frame){ .fd = fd, .mode = mode, .rel_len = rel_len, .place = INDEX_NONE };
	if (w->n > WINDOW) {
		struct frame *old = &w->v[w->n - 1 - WINDOW];

		fd_close(old->fd);
		old->fd = FD_NONE;
	}
}

static void pop(struct walk *w)
{
	struct frame *f = &w->v[--w->n];

	fd_close(f->fd);
	w->arena_n = f->base;
}

/* What ends the walk is our own trouble; what a file system or a racing rename says is refused()'s to judge. */
static bool is_ours(int num)
{
	return num == EMFILE || num == ENFILE || num == ENOMEM || num == ENOSYS;
}

/* FD_NONE: nothing is to be read there. */
static int open_child(struct walk *w, struct frame *f, const char *name)
{
	int fd;

	w->rel[f->rel_len] = '\0';
	if (f->fd < 0)
		f->fd = walk_open(w->root_fd, w->rel, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
	fd = f->fd;
	if (fd >= 0 && f->rel_len + strlen(name) + 1 > REL_MAX)
		fd = -ENAMETOOLONG;
	else if (fd >= 0)
		fd = walk_opendir(f->fd, name);
	if (fd < 0 && !is_ours(-fd) && w->ops->refused) {
		int got = w->ops->refused(w->arg, f->fd, w->rel, name, -fd);

		fd = got >= 0 ? got : fd;
	}
	return fd;
}

/* All directories above it are those of the list, at the same paths, and so is its name. */
static bool is_in_place(const struct walk *w, const struct child *c)
{
	uint32_t above = w->v[w->n - 1].place;

	return above != INDEX_NONE && w->list.old->dirs[c->old].parent == above;
}

static bool may_be_taken(const struct walk *w, uint32_t dir)
{
	return !w->list.needs_setid || w->list.old->dirs[dir].flags & INDEX_HAS_SETID;
}

/* Is the child in the list of an earlier walk, and the same? */
static bool is_known(struct walk *w, struct child *c, const char *name, struct index_id *ret)
{
	struct index *old = w->list.old;

	if (old == NULL || w->list.reads_all || w->list.now->is_off)
		return false;
	if (c->old == INDEX_NONE && c->ino)
		c->old = index_find(old, c->ino);
	if (c->old == INDEX_NONE || !may_be_taken(w, c->old))
		return false;
	if (is_in_place(w, c) && index_share_says(&w->share, c->old)) {
		*ret = index_id_of(old, c->old, w->list.now);
		return true;
	}
	(void)extend(w, name);
	return is_same(w, c->old, ret);
}

/* Visits the next child of the top frame. */
static int step(struct walk *w, struct err *e)
{
	struct frame *f = &w->v[w->n - 1];
	char name[NAME_MAX * 4 + 1]; /* some file systems have names over NAME_MAX bytes */
	struct child c;
	size_t len;
	struct index_id id;
	int fd = FD_NONE;
	bool is_taken, is_placed, is_last;

	memcpy(&c, w->arena + f->next, sizeof(c));
	len = strlen(w->arena + f->next + sizeof(c));
	if (len >= sizeof(name))
		return err_set(e, ERR_UNSUPPORTED, ENAMETOOLONG, "a name in '%.200s' is too long",
			       w->rel);
	memcpy(name, w->arena + f->next + sizeof(c), len + 1);
	f->next += sizeof(c) + len + 1;
	if (!c.mode)
		return 0;
	is_taken = is_known(w, &c, name, &id);
	is_placed = is_taken && is_in_place(w, &c);
	if (!is_taken)
		fd = open_child(w, f, name);
	if (fd < 0 && is_ours(-fd)) {
		errno = -fd;
		return err_sys(e, "open directory '%s' in '%s'", name, w->rel);
	}
	is_last = f->next == f->end;
	if (is_last && !is_taken) {
		fd_close(f->fd);
		f->fd = FD_NONE;
	}
	if (fd < 0 && !is_taken) {
		w->stats->skipped += fd != FD_NONE;
		return 0;
	}
	push_take_fd(w, fd, c.mode, extend(w, name));
	if (is_placed)
		w->v[w->n - 1].place = c.old;
	return fill_frame(w, &c, is_taken ? &id : NULL, e);
}

void walk_leave_out(struct walk *w, const char *name)
{
	const struct frame *f = &w->v[w->n - 1];
	struct child c;

	for (size_t at = f->base; at < w->arena_n;
	     at += sizeof(c) + strlen(w->arena + at + sizeof(c)) + 1) {
		memcpy(&c, w->arena + at, sizeof(c));
		c.mode = 0;
		if (str_eq(w->arena + at + sizeof(c), name))
			memcpy(w->arena + at, &c, sizeof(c));
	}
}

void walk_stop(struct walk *w)
{
	w->is_stopped = true;
}

static void take_lists(struct walk *w, const struct walk_list *list)
{
	if (list == NULL || list->now->is_off)
		return;
	w->list = *list;
	if (list->old && !index_has_one_clock(list->old, list->now))
		w->list.old = NULL;
	if (w->list.old)
		index_reserve(list->now, list->old);
}

int walk_run_job(const struct walk_job *job, struct walk_stats *stats, struct err *e)
{
	_cleanup_(walk_done) struct walk w = {
		.root_fd = job->root_fd, .ops = job->ops, .arg = job->arg, .stats = stats
	};
	struct child root = { .old = INDEX_NONE, .item = INDEX_NONE };
	int fd = walk_opendir(job->root_fd, "."), r;
	struct index_id id;
	bool is_taken;

	if (fd < 0) {
		errno = -fd;
		return err_sys(e, "open the root of the walk");
	}
	take_lists(&w, job->list);
	w.dents = mem_grow(NULL, DENTS_SIZE, 1); /* not cleared: most walks use little of it */
	push_take_fd(&w, fd, job->mode, extend(&w, ""));
	if (w.list.old && !w.list.reads_all && may_be_taken(&w, 0))
		root.old = 0;
	is_taken = root.old == 0 && is_same(&w, 0, &id);
	if (is_taken) {
		w.v[0].place = 0;
		index_share_begin(&w.share, w.list.old, w.list.now, fd);
	}
	r = fill_frame(&w, &root, is_taken ? &id : NULL, e);
	while (r >= 0 && w.n > 0 && !w.is_stopped) {
		struct frame *f = &w.v[w.n - 1];

		if (f->next == f->end)
			pop(&w);
		else
			r = step(&w, e);
	}
	return r < 0 ? r : 0;
}

int walk_run(int root_fd, unsigned mode, const struct walk_ops *ops, void *arg,
	     struct walk_stats *stats, struct err *e)
{
	const struct walk_job job = { .root_fd = root_fd, .mode = mode, .ops = ops, .arg = arg };

	return walk_run_job(&job, stats, e);
}
