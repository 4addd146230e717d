/* SPDX-License-Identifier: Apache-2.0 */
/* view/fswatch.c - see fswatch.h
 *
 * inotify watches an inode, so events come from both sides of every mount. A directory is opened beneath the workspace
 * without links, as O_PATH, and handed to inotify through /proc/self/fd: between looking at a path and watching it
 * nothing can be swapped in.
 *
 * Watch descriptors grow, so the table of watched directories is an array in order of creation with binary search;
 * dead entries are squeezed out when they are the larger part. When a directory is renamed, everything known below
 * it is forgotten and, if it is still in the workspace, found again under its new name.
 *
 * The first round begins after the scan, and while it lasts the first command already runs. So it reports the names in
 * every directory that was changed since the scan began.
 *
 * Only where an interesting name has appeared is the writing of files watched as well, from before it is told of: who
 * looks at the file then sees either the last words or another event.
 */
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/io.h"
#include "base/path.h"
#include "base/sabotage.h"
#include "view/fswatch.h"
#include "view/git.h"
#include "view/match.h"
#include "view/walk.h"
#include "view/ws.h"

/* Names only: a watch that also wants to know what happens to the files makes the kernel look up the parent at every
 * open, read, write and close of theirs, by anybody (a third of a small pread). */
#define MASK_NEW (IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_ONLYDIR | IN_EXCL_UNLINK)
/* Where something is covered its end matters too; elsewhere a directory's own end is told by the end of its watch. */
#define MASK_COVERED (MASK_NEW | IN_DELETE)
#define QUEUE_MAX ((size_t)4 * FSWATCH_DIRS_MAX)
#define DENTS_SIZE (16 * KIB)

struct watched {
	int wd;
	char *rel; /* NULL: dead */
};

struct todo {
	char *rel;
	bool is_new;   /* appeared: report what is in it, at every depth */
	bool is_late;  /* changed since the scan: the names in it may be new */
	bool is_moved; /* it, or a directory above it, may have got its name since the scan */
	bool has_late_parent;
};

struct fswatch {
	int fd;
	int ws_fd;
	const struct policy *p;
	const struct scan *s;
	struct matcher m;
	struct watched *v;
	size_t n, cap, alive;
	struct todo *queue;
	size_t queue_at, queue_n, queue_cap;
	int dir_fd; /* the directory being read */
	struct todo dir;
	bool is_full;
};

struct report {
	fswatch_fn fn;
	void *arg;
	int count;
};

static void tell(struct report *r, enum fswatch_kind kind, const char *rel)
{
	if (r->fn)
		r->fn(r->arg, kind, rel);
	r->count++;
}

/* ---- the table ---- */

static struct watched *find_wd(const struct fswatch *w, int wd)
{
	size_t lo = 0, hi = w->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (w->v[mid].wd == wd)
			return &w->v[mid];
		if (w->v[mid].wd > wd)
			hi = mid;
		else
			lo = mid + 1;
	}
	return NULL;
}

static void squeeze(struct fswatch *w)
{
	size_t n = 0;

	if (w->n < 64 || w->alive * 2 > w->n)
		return;
	for (size_t i = 0; i < w->n; i++)
		if (w->v[i].rel)
			w->v[n++] = w->v[i];
	w->n = n;
}

static void forget(struct fswatch *w, struct watched *at)
{
	if (at->rel)
		w->alive--;
	free(at->rel);
	at->rel = NULL;
}

static void remember(struct fswatch *w, int wd, const char *rel)
{
	struct watched *at = find_wd(w, wd);

	if (at) { /* the same directory again, perhaps under another name */
		w->alive += at->rel == NULL;
		free(at->rel);
		at->rel = mem_str(rel);
		return;
	}
	squeeze(w);
	vec_reserve(w->v, w->n, w->cap);
	/* Nearly always the last; the numbers wrap after two thousand million. */
	for (at = w->v + w->n; at > w->v && at[-1].wd > wd; at--)
		at[0] = at[-1];
	*at = (struct watched){ .wd = wd, .rel = mem_str(rel) };
	w->n++;
	w->alive++;
}

/* ---- adding ---- */

static int inotify_add(const struct fswatch *w, int dir_fd, uint32_t mask)
{
	char proc[40];

	(void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", dir_fd);
	return inotify_add_watch(w->fd, proc, mask);
}

static uint32_t mask_of(const struct fswatch *w, const char *rel)
{
	return scan_has_below(w->s, rel) ? MASK_COVERED : MASK_NEW;
}

static int add_watch(struct fswatch *w, int dir_fd, const char *rel)
{
	int wd;

	if (w->alive >= FSWATCH_DIRS_MAX) {
		w->is_full = true;
		return -ENOSPC;
	}
	wd = inotify_add(w, dir_fd, mask_of(w, rel));
	if (wd < 0) {
		w->is_full = w->is_full || errno == ENOSPC || errno == ENOMEM;
		return -errno;
	}
	remember(w, wd, rel);
	return 0;
}

/* A directory that is gone or elsewhere by now is found again by the event of its move. */
static void watch_writes(const struct fswatch *w, const char *rel)
{
	_close_ int at = walk_open(w->ws_fd, rel, O_PATH | O_DIRECTORY | O_NOFOLLOW);

	if (at >= 0)
		(void)inotify_add(w, at, MASK_COVERED | IN_CLOSE_WRITE);
}

static void enqueue(struct fswatch *w, const char *rel, const struct todo *how)
{
	if (w->queue_n - w->queue_at >= QUEUE_MAX) {
		w->is_full = true;
		return;
	}
	if (w->queue_at > 1024 && w->queue_at * 2 > w->queue_n) {
		memmove(w->queue, w->queue + w->queue_at,
			(w->queue_n - w->queue_at) * sizeof(*w->queue));
		w->queue_n -= w->queue_at;
		w->queue_at = 0;
	}
	vec_reserve(w->queue, w->queue_n, w->queue_cap);
	w->queue[w->queue_n] = *how;
	w->queue[w->queue_n++].rel = mem_str(rel);
}

/* Could a name of that path be protected or hidden, or turn its directory into a repository? */
static bool is_interesting(const struct fswatch *w, const char *dir, const char *name)
{
	const char *up = path_name(dir);

	if (matcher_probe(&w->m, dir, strlen(dir), name, strlen(name)) & ~(unsigned)MATCH_ELSEWHERE)
		return true;
	return str_eq(up, "hooks");
}

static void close_dir(struct fswatch *w)
{
	fd_close(w->dir_fd);
	w->dir_fd = FD_NONE;
	free(w->dir.rel);
	w->dir = (struct todo){ 0 };
}

/* Has the directory been changed since the scan began? No name can be made, and no directory moved, without a change of
 * this time, and nobody inside can set it. Where file systems keep whole seconds only, the two before count too. */
static bool is_late(const struct fswatch *w, int at)
{
	const struct timespec *began = &w->s->began;
	struct stat st;

	if (began->tv_sec == 0 || fstat(at, &st) < 0)
		return false;
	if (st.st_ctim.tv_nsec == 0)
		return st.st_ctim.tv_sec >= began->tv_sec - 2;
	return st.st_ctim.tv_sec > began->tv_sec ||
	       (st.st_ctim.tv_sec == began->tv_sec && st.st_ctim.tv_nsec >= began->tv_nsec);
}

static void open_next(struct fswatch *w)
{
	_close_ int at = FD_NONE;

	w->dir = w->queue[w->queue_at++];
	at = walk_open(w->ws_fd, w->dir.rel, O_PATH | O_DIRECTORY | O_NOFOLLOW);
	if (at >= 0 && add_watch(w, at, w->dir.rel) == 0)
		w->dir_fd = walk_opendir(at, ".");
	/* The watch stands: what is made from here on is an event. */
	w->dir.is_late = at >= 0 && !sabotaged("late") && is_late(w, at);
	/* A move changes the directory it goes into and what is moved. */
	w->dir.is_moved = w->dir.is_moved || (w->dir.has_late_parent && w->dir.is_late);
	if (w->dir_fd < 0)
		close_dir(w);
}

struct dent {
	uint64_t ino;
	int64_t off;
	uint16_t reclen;
	uint8_t type;
	char name[];
};

/* Was the hit replaced between the scan and the watch? */
static bool is_another(const struct fswatch *w, const char *name, const struct hit *h)
{
	struct stat st;

	return fstatat(w->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_ino != h->ino ||
	       st.st_dev != h->dev;
}

static void take_name(struct fswatch *w, const char *name, unsigned char type, struct report *rep)
{
	bool is_new = w->dir.is_new || w->dir.is_late || w->dir.is_moved;
	bool is_told = is_new && is_interesting(w, w->dir.rel, name);
	_free_ char *rel = NULL;
	const struct hit *h;

	if (!is_told && type != DT_DIR)
		return;
	rel = ws_rel(w->dir.rel, name);
	h = is_new ? scan_find(w->s, rel) : NULL;
	if (h && !h->is_link) {
		if (w->dir.is_new || is_another(w, name, h))
			tell(rep, FSWATCH_REPLACED, rel);
	} else if (is_told) {
		(void)inotify_add(w, w->dir_fd, MASK_COVERED | IN_CLOSE_WRITE);
		tell(rep, FSWATCH_APPEARED, rel);
	}
	if (type == DT_DIR) {
		const struct todo below = { .is_new = w->dir.is_new,
					    .is_moved = w->dir.is_moved,
					    .has_late_parent = w->dir.is_late };

		enqueue(w, rel, &below);
	}
}

static void take_dents(struct fswatch *w, const char *dents, size_t got, struct report *rep)
{
	for (size_t at = 0; at < got;) {
		const struct dent *e = (const void *)(dents + at);
		unsigned char type = e->type;

		at += e->reclen;
		if (str_eq(e->name, ".") || str_eq(e->name, ".."))
			continue;
		if (type == DT_UNKNOWN)
			type = walk_type(w->dir_fd, e->name);
		take_name(w, e->name, type, rep);
	}
}

/* One bufferful of one directory. */
static void slice(struct fswatch *w, struct report *rep)
{
	_Alignas(8) char dents[DENTS_SIZE];
	long got;

	if (w->dir_fd < 0)
		open_next(w);
	if (w->dir_fd < 0)
		return;
	got = syscall(SYS_getdents64, w->dir_fd, dents, (unsigned)sizeof(dents));
	if (got > 0)
		take_dents(w, dents, (size_t)got, rep);
	else
		close_dir(w);
}

static uint64_t now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_SEC + (uint64_t)t.tv_nsec;
}

static bool has_more(const struct fswatch *w)
{
	return w->dir_fd >= 0 || (w->queue_at < w->queue_n && w->alive < FSWATCH_DIRS_MAX);
}

int fswatch_step(struct fswatch *w, uint64_t ns, fswatch_fn fn, void *arg, struct err *e)
{
	struct report rep = { .fn = fn, .arg = arg };
	uint64_t end = now() + ns;

	(void)e;
	while (has_more(w)) {
		slice(w, &rep);
		if (now() >= end)
			break;
	}
	if (w->queue_at < w->queue_n && w->alive >= FSWATCH_DIRS_MAX)
		w->is_full = true;
	return has_more(w);
}

bool fswatch_is_complete(const struct fswatch *w)
{
	return !w->is_full && !has_more(w);
}

size_t fswatch_count(const struct fswatch *w)
{
	return w->alive;
}

int fswatch_fd(const struct fswatch *w)
{
	return w->fd;
}

void fswatch_free(struct fswatch *w)
{
	if (w == NULL)
		return;
	close_dir(w);
	for (size_t i = 0; i < w->n; i++)
		free(w->v[i].rel);
	for (size_t i = w->queue_at; i < w->queue_n; i++)
		free(w->queue[i].rel);
	free(w->v);
	free(w->queue);
	matcher_done(&w->m);
	fd_close(w->fd);
	free(w);
}

static void free_watch(struct fswatch **w)
{
	fswatch_free(*w);
}

/* Hits are sorted, so the same parent comes in runs; a repeated one only costs a call. */
static int watch_parents(struct fswatch *w, struct err *e)
{
	_free_ char *last = NULL;

	for (size_t i = 0; i < w->s->n; i++) {
		_free_ char *up = path_parent(w->s->v[i].rel);
		_close_ int fd = FD_NONE;
		int r;

		if (last && str_eq(last, up))
			continue;
		fd = walk_open(w->ws_fd, up, O_PATH | O_DIRECTORY | O_NOFOLLOW);
		r = fd < 0 ? 0 : add_watch(w, fd, up);
		if (r == -ENOSPC || r == -ENOMEM)
			return err_set(e, ERR_UNSUPPORTED, -r,
				       "no more inotify watches (fs.inotify.max_user_watches) for "
				       "the protected paths");
		free(last);
		last = take(up);
	}
	return 0;
}

int fswatch_open(int ws_fd, const struct policy *p, const struct scan *s, struct fswatch **ret,
		 struct err *e)
{
	_cleanup_(free_watch) struct fswatch *w = mem_new(1, sizeof(*w));
	int r;

	*w = (struct fswatch){ .ws_fd = ws_fd, .p = p, .s = s, .dir_fd = FD_NONE };
	matcher_init(&w->m, p);
	w->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (w->fd < 0)
		return err_sys(e, "inotify");
	r = watch_parents(w, e);
	if (r < 0)
		return r;
	enqueue(w, "", &(struct todo){ 0 });
	*ret = take(w);
	return 0;
}

/* ---- events ---- */

/* Everything known at or below rel is out of date. */
static void drop_below(struct fswatch *w, const char *rel)
{
	size_t len = strlen(rel);

	for (size_t i = 0; i < w->n; i++) {
		const char *at = w->v[i].rel;

		if (at && strncmp(at, rel, len) == 0 && (at[len] == '\0' || at[len] == '/')) {
			(void)inotify_rm_watch(w->fd, w->v[i].wd); /* gone already: fine */
			forget(w, &w->v[i]);
		}
	}
}

static void on_name(struct fswatch *w, const char *dir, uint32_t mask, const char *name,
		    struct report *rep)
{
	_free_ char *rel = ws_rel(dir, name);
	const uint32_t moves = IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE;
	const struct hit *h;

	if ((mask & IN_ISDIR) && (mask & (IN_MOVED_FROM | IN_DELETE)))
		drop_below(w, rel);
	if ((mask & IN_ISDIR) && (mask & (IN_CREATE | IN_MOVED_TO)))
		enqueue(w, rel, &(struct todo){ .is_new = true });
	h = scan_find(w->s, rel);
	if (h && !h->is_link) {
		if (mask & moves)
			tell(rep, FSWATCH_REPLACED, rel);
		if (h->kind != HIT_PIN)
			return;
	}
	if (!(mask & (IN_CREATE | IN_MOVED_TO | IN_CLOSE_WRITE)) || !is_interesting(w, dir, name))
		return;
	if (!(mask & IN_CLOSE_WRITE))
		watch_writes(w, dir);
	tell(rep, FSWATCH_APPEARED, rel);
}

static void on_event(struct fswatch *w, const struct inotify_event *ev, struct report *rep)
{
	struct watched *at;
	_free_ char *dir = NULL;

	if (ev->mask & IN_Q_OVERFLOW) {
		/* Directories may have come and gone unseen: start over. */
		enqueue(w, "", &(struct todo){ 0 });
		tell(rep, FSWATCH_OVERFLOW, "");
		return;
	}
	at = find_wd(w, ev->wd);
	if (at == NULL)
		return;
	if (ev->mask & IN_IGNORED) {
		forget(w, at);
		return;
	}
	if (at->rel == NULL || ev->len == 0)
		return;
	dir = mem_str(at->rel);
	on_name(w, dir, ev->mask, ev->name, rep);
}

int fswatch_read(struct fswatch *w, fswatch_fn fn, void *arg, struct err *e)
{
	_Alignas(struct inotify_event) char events[16384];
	struct report rep = { .fn = fn, .arg = arg };

	/* Bounded, so that a storm inside cannot keep the caller's loop here; what is left makes the fd readable. */
	for (int i = 0; i < 16; i++) {
		ssize_t n = io_read(w->fd, events, sizeof(events));

		if (n == -EAGAIN)
			break;
		if (n < 0) {
			errno = (int)-n;
			return err_sys(e, "read inotify events");
		}
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *ev = (const void *)(events + at);

			at += (ssize_t)(sizeof(*ev) + ev->len);
			on_event(w, ev, &rep);
		}
	}
	return rep.count;
}
