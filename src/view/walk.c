/* SPDX-License-Identifier: Apache-2.0 */
/* view/walk.c - see walk.h
 *
 * A directory is read to its end in one go; the names of the subdirectories to visit wait in one arena that
 * grows and shrinks like a stack. A frame keeps its descriptor only while it is among the WINDOW deepest and
 * still has children to visit; one that comes up again without it is opened anew from the root, beneath and
 * without links. So a chain of any depth costs WINDOW descriptors and no C stack.
 */
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/path.h"
#include "view/walk.h"

#define WINDOW 24
#define DENTS_SIZE (64 * KIB)
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
	size_t base, next,
		end; /* its children in the arena: a mode byte, the inode, the name, NUL */
	unsigned mode;
	uint64_t ino;
	bool is_mount; /* it, or a directory above it, is another mount than the root */
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
	for (size_t i = 0; i < w->n; i++)
		fd_close(w->v[i].fd);
	free(w->v);
	free(w->arena);
	free(w->rel);
	free(w->dents);
}

#define ARENA_NAME (1 + sizeof(uint64_t)) /* where a child's name begins */

static void arena_add(struct walk *w, unsigned mode, uint64_t ino, const char *name, size_t len)
{
	size_t need = w->arena_n + ARENA_NAME + len + 1;

	if (need > w->arena_cap) {
		w->arena_cap = need * 2;
		w->arena = mem_grow(w->arena, w->arena_cap, 1);
	}
	w->arena[w->arena_n] = (char)mode;
	memcpy(w->arena + w->arena_n + 1, &ino, sizeof(ino));
	memcpy(w->arena + w->arena_n + ARENA_NAME, name, len + 1);
	w->arena_n = need;
}

static void take_dents(struct walk *w, struct walk_dir *d, size_t got)
{
	for (size_t at = 0; at < got && !w->is_stopped;) {
		const struct dent *e = (const void *)(w->dents + at);
		const char *name = e->name;
		unsigned char type = e->type;
		unsigned mode;
		size_t len;

		at += e->reclen;
		if (name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0')))
			continue;
		len = strlen(name);
		if (type == DT_UNKNOWN)
			type = walk_type(d->fd, name);
		/* Not to be looked at: to open it will tell whether that matters. */
		if (type == DT_UNKNOWN)
			type = DT_DIR;
		w->stats->files += type != DT_DIR;
		mode = w->ops->entry(w->arg, d, name, len, type);
		bug_on(mode > WALK_MODE_MAX);
		if (type == DT_DIR && mode)
			arena_add(w, mode, e->ino, name, len);
	}
}

static int read_frame(struct walk *w, struct frame *f, struct err *e)
{
	struct walk_dir d = { .fd = f->fd, .rel = w->rel, .rel_len = f->rel_len, .mode = f->mode };
	int r = 0;

	d.ino = f->is_mount ? 0 : f->ino;
	f->base = f->next = w->arena_n;
	w->stats->dirs++;
	for (;;) {
		long got = syscall(SYS_getdents64, d.fd, w->dents, (unsigned)DENTS_SIZE);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno != ENOENT) /* ENOENT: removed while we read it */
			return err_sys(e, "read directory '%s'", w->rel);
		if (got <= 0 || w->is_stopped)
			break;
		take_dents(w, &d, (size_t)got);
	}
	f->end = w->arena_n;
	if (w->ops->end && !w->is_stopped)
		r = w->ops->end(w->arg, w, &d, e);
	return r;
}

/* Takes ownership of at->fd. */
static int push_take_fd(struct walk *w, const struct frame *at, const char *name, struct err *e)
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
	vec_reserve(w->v, w->n, w->cap);
	w->v[w->n] = *at;
	w->v[w->n++].rel_len = rel_len;
	if (w->n > WINDOW) {
		struct frame *old = &w->v[w->n - 1 - WINDOW];

		fd_close(old->fd);
		old->fd = FD_NONE;
	}
	return read_frame(w, &w->v[w->n - 1], e);
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

/* As walk_opendir(), and says when that crossed into another mount. */
static int open_dir(int dir_fd, const char *name, bool *is_mount)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_NOATIME;
	int fd = path_openat2(dir_fd, name, flags, RESOLVE_NO_XDEV);

	if (fd >= 0 || (fd != -EXDEV && fd != -EPERM))
		return fd;
	/* EPERM: another's directory, for which O_NOATIME may not be asked. Where it lies is not looked into. */
	*is_mount = true;
	return walk_opendir(dir_fd, name);
}

/* FD_NONE: nothing is to be read there. */
static int open_child(struct walk *w, struct frame *f, const char *name, uint64_t ino,
		      bool *is_mount)
{
	int fd;

	w->rel[f->rel_len] = '\0';
	if (f->fd < 0)
		f->fd = walk_open(w->root_fd, w->rel, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
	fd = f->fd;
	if (fd >= 0 && w->ops->is_known && w->ops->is_known(w->arg, fd, w->rel, name, ino))
		return FD_NONE;
	if (fd >= 0 && f->rel_len + strlen(name) + 1 > REL_MAX)
		fd = -ENAMETOOLONG;
	else if (fd >= 0)
		fd = open_dir(f->fd, name, is_mount);
	if (fd < 0 && !is_ours(-fd) && w->ops->refused) {
		int got = w->ops->refused(w->arg, f->fd, w->rel, name, -fd);

		fd = got >= 0 ? got : fd;
	}
	return fd;
}

/* Visits the next child of the top frame. */
static int step(struct walk *w, struct err *e)
{
	struct frame *f = &w->v[w->n - 1];
	unsigned mode = (unsigned char)w->arena[f->next];
	size_t len = strlen(w->arena + f->next + ARENA_NAME);
	struct frame next = { .is_mount = f->is_mount };
	char name[NAME_MAX * 4 + 1]; /* some file systems have names over NAME_MAX bytes */
	int fd;

	if (len >= sizeof(name))
		return err_set(e, ERR_UNSUPPORTED, ENAMETOOLONG, "a name in '%.200s' is too long",
			       w->rel);
	memcpy(&next.ino, w->arena + f->next + 1, sizeof(next.ino));
	memcpy(name, w->arena + f->next + ARENA_NAME, len + 1);
	f->next += ARENA_NAME + len + 1;
	if (!mode)
		return 0;
	fd = open_child(w, f, name, next.ino, &next.is_mount);
	if (fd < 0 && is_ours(-fd)) {
		errno = -fd;
		return err_sys(e, "open directory '%s' in '%s'", name, w->rel);
	}
	if (f->next == f->end) {
		fd_close(f->fd);
		f->fd = FD_NONE;
	}
	if (fd < 0) {
		w->stats->skipped += fd != FD_NONE;
		return 0;
	}
	next.fd = fd;
	next.mode = mode;
	return push_take_fd(w, &next, name, e);
}

void walk_leave_out(struct walk *w, const char *name)
{
	const struct frame *f = &w->v[w->n - 1];

	for (size_t at = f->base; at < w->arena_n;
	     at += strlen(w->arena + at + ARENA_NAME) + ARENA_NAME + 1)
		if (str_eq(w->arena + at + ARENA_NAME, name))
			w->arena[at] = 0;
}

void walk_stop(struct walk *w)
{
	w->is_stopped = true;
}

int walk_run(int root_fd, unsigned mode, const struct walk_ops *ops, void *arg,
	     struct walk_stats *stats, struct err *e)
{
	_cleanup_(walk_done) struct walk w = {
		.root_fd = root_fd, .ops = ops, .arg = arg, .stats = stats
	};
	int fd = walk_opendir(root_fd, "."), r;

	if (fd < 0) {
		errno = -fd;
		return err_sys(e, "open the root of the walk");
	}
	w.dents = mem_grow(NULL, DENTS_SIZE, 1); /* not cleared: most walks use little of it */
	r = push_take_fd(&w, &(struct frame){ .fd = fd, .mode = mode }, "", e);
	while (r >= 0 && w.n > 0 && !w.is_stopped) {
		struct frame *f = &w.v[w.n - 1];

		if (f->next == f->end)
			pop(&w);
		else
			r = step(&w, e);
	}
	return r < 0 ? r : 0;
}
