/* SPDX-License-Identifier: Apache-2.0 */
/* dir/serve.c - see serve.h
 *
 * One request, one answer. A node becomes a path, the path a judgement (rules.c), and then the act is done in the
 * directory that the path leads to, opened beneath the git dir without following a link. Whatever is opened must be
 * the file that the node was given out for: the host works in the same directory at the same time.
 *
 * What the kernel may keep: attributes of directories, so that it need not ask for those of the git dir at each step;
 * those of a file for as long as one open takes, which begins with a name; pages of a file as long as its times say
 * that it is the same. Names of files it may never keep, nor that there is none: git takes a lock and then reads by name
 * what it is about to replace. Names of directories it may keep for a moment, which is half of all requests; when the
 * host removes one that something is attached to, the served one takes its place after that moment.
 *
 * An error is answered by the bare head. A longer answer would be refused by the kernel, and the caller would wait
 * for ever.
 */
#include "dir/serve.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "base/path.h"
#include "base/sabotage.h"

#define DIR_ATTR_SECONDS 3600
#define FILE_ATTR_NS (8 * NS_PER_MS)
#define DIR_NAME_NS (200 * NS_PER_MS)
#define PATH_LONGEST 4096
#define OVERFLOW_ID 65534
#define SAFE (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

/* ---- answers ---- */

static void answer(struct dir *d, const struct fuse_request *q, int error, size_t n)
{
	struct fuse_out_header h = { .len = (uint32_t)(sizeof(h) + (error ? 0 : n)),
				     .error = error,
				     .unique = q->head.unique };

	memcpy(d->out, &h, sizeof(h));
	d->out_n = h.len;
}

static char *body(struct dir *d)
{
	return d->out + sizeof(struct fuse_out_header);
}

/* Behind `at` bytes of the answer; the new end. */
static size_t put(struct dir *d, size_t at, const void *p, size_t n)
{
	memcpy(body(d) + at, p, n);
	return at + n;
}

/* ---- attributes ---- */

static uint32_t inner_id(const struct dir_ids *ids, uint32_t id)
{
	for (size_t i = 0; i < ids->n; i++)
		if (id >= ids->v[i].out && id - ids->v[i].out < ids->v[i].count)
			return ids->v[i].in + (id - ids->v[i].out);
	return OVERFLOW_ID;
}

static void put_time(const struct timespec *t, uint64_t *sec, uint32_t *nsec)
{
	*sec = (uint64_t)t->tv_sec;
	*nsec = (uint32_t)t->tv_nsec;
}

static struct fuse_attr attr_of(const struct dir *d, const struct stat *st)
{
	struct fuse_attr a = { .ino = st->st_ino,
			       .size = (uint64_t)st->st_size,
			       .blocks = (uint64_t)st->st_blocks,
			       .mode = st->st_mode & (S_IFMT | 01777),
			       .nlink = (uint32_t)st->st_nlink,
			       .uid = inner_id(&d->uids, st->st_uid),
			       .gid = inner_id(&d->gids, st->st_gid),
			       .blksize = (uint32_t)st->st_blksize };

	put_time(&st->st_atim, &a.atime, &a.atimensec);
	put_time(&st->st_mtim, &a.mtime, &a.mtimensec);
	put_time(&st->st_ctim, &a.ctime, &a.ctimensec);
	return a;
}

/* As the inside sees it: a configuration has the size of what is shown of it, what is hidden has none. `dir` and `name`
 * are where it lies. */
static struct fuse_attr attr_at(struct dir *d, int dir, const char *name, const char *rel,
				const struct stat *st)
{
	struct fuse_attr a = attr_of(d, st);
	enum dir_kind kind = dir_kind_of(&d->rules, rel);
	const struct shown *s = NULL;

	if (kind == DIR_CONFIG && S_ISREG(st->st_mode)) {
		s = dir_show(d, dir, name, st);
		a.size = s ? s->n : 0;
	}
	if (kind == DIR_HIDDEN || (kind == DIR_CONFIG && S_ISREG(st->st_mode) && s == NULL)) {
		a.mode = st->st_mode & S_IFMT;
		a.size = a.blocks = 0;
	}
	return a;
}

static uint64_t keep_attr(const struct stat *st)
{
	return S_ISDIR(st->st_mode) ? DIR_ATTR_SECONDS : 0;
}

static uint32_t keep_attr_ns(const struct stat *st)
{
	return S_ISDIR(st->st_mode) ? 0 : (uint32_t)FILE_ATTR_NS;
}

static size_t put_entry(struct dir *d, const struct node *n, const struct fuse_attr *a,
			const struct stat *st)
{
	struct fuse_entry_out out = { .nodeid = n->id,
				      .generation = 1,
				      .entry_valid_nsec =
					      S_ISDIR(st->st_mode) ? (uint32_t)DIR_NAME_NS : 0,
				      .attr_valid = keep_attr(st),
				      .attr_valid_nsec = keep_attr_ns(st),
				      .attr = *a };

	return put(d, 0, &out, sizeof(out));
}

/* ---- places ---- */

/* A name, judged: the directory it is in, open, and the paths. */
struct spot {
	struct node *dir_node;
	const char *name;
	int dir; /* the root's own, or opened */
	bool is_opened;
	char rel[PATH_LONGEST];
};

static void spot_done(struct spot *s)
{
	if (s->is_opened)
		fd_close(s->dir);
}

/* The directory of a node: the same one as when the node was given out. */
static int open_dir(struct dir *d, const struct node *n, int flags)
{
	char rel[PATH_LONGEST];
	_close_ int fd = FD_NONE;
	struct stat st;
	int r = nodes_path(&d->nodes, n, rel, sizeof(rel));

	if (r < 0)
		return r;
	fd = path_openat2(d->root, rel[0] ? rel : ".", flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
			  SAFE);
	if (fd < 0)
		return fd == -ELOOP || fd == -ENOTDIR ? -ESTALE : fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_dev != n->dev || st.st_ino != n->ino)
		return -ESTALE;
	return take_fd(fd);
}

static int spot_in(struct dir *d, struct node *dir, const char *name, struct spot *s)
{
	int r;

	s->dir_node = dir;
	s->name = name;
	s->dir = d->root;
	s->is_opened = false;
	r = nodes_path_in(&d->nodes, dir, name, s->rel, sizeof(s->rel));
	if (r < 0 || dir->id == NODE_ROOT)
		return r;
	s->dir = open_dir(d, dir, O_PATH);
	s->is_opened = s->dir >= 0;
	return s->dir < 0 ? s->dir : 0;
}

/* Of a node that is not the root. */
static int spot_of(struct dir *d, const struct node *n, struct spot *s)
{
	struct node *up = nodes_get(&d->nodes, n->parent);

	if (n->is_dead || up == NULL)
		return -ESTALE;
	return spot_in(d, up, n->name, s);
}

static int stat_spot(const struct spot *s, struct stat *st)
{
	return fstatat(s->dir, s->name, st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

/* Judged, and where only the inside's own file will do, looked at. */
static int may(const struct dir *d, const struct spot *s, enum dir_act act)
{
	int r = dir_may(&d->rules, s->rel, act);
	struct stat st;

	if (r != DIR_IF_OWN)
		return r < 0 ? r : 0;
	r = stat_spot(s, &st);
	if (r < 0)
		return r;
	return S_ISDIR(st.st_mode) || dir_is_own(d, &st) ? 0 : -EACCES;
}

/* ---- handles ---- */

static struct handle *handle_of(struct dir *d, uint64_t fh)
{
	struct handle *h = &d->handles[fh % HANDLES_MAX];

	return h->is_used && fh / HANDLES_MAX == h->uses ? h : NULL;
}

static struct handle *handle_new(struct dir *d, uint64_t node, uint64_t *ret_fh)
{
	for (size_t i = 0; i < HANDLES_MAX; i++) {
		struct handle *h = &d->handles[i];

		if (h->is_used)
			continue;
		*h = (struct handle){
			.is_used = true, .uses = h->uses + 1, .fd = FD_NONE, .node = node
		};
		*ret_fh = (uint64_t)h->uses * HANDLES_MAX + i;
		return h;
	}
	return NULL;
}

static void handle_drop(struct handle *h)
{
	fd_close(h->fd);
	free(h->text);
	*h = (struct handle){ .uses = h->uses, .fd = FD_NONE };
}

/* Of a file that lost its name and is still open. */
static struct handle *handle_of_node(struct dir *d, uint64_t node)
{
	for (size_t i = 0; i < HANDLES_MAX; i++)
		if (d->handles[i].is_used && d->handles[i].node == node && d->handles[i].fd >= 0)
			return &d->handles[i];
	return NULL;
}

/* ---- requests: begin and end ---- */

static void on_init(struct dir *d, const struct fuse_request *q)
{
	struct fuse_init_out out;

	if (!fuse_hello(&q->arg.init, &out)) {
		answer(d, q, -EPROTO, 0);
		return;
	}
	d->is_open = true;
	answer(d, q, 0, put(d, 0, &out, sizeof(out)));
}

static void on_forget(struct dir *d, const struct fuse_request *q)
{
	nodes_forget(&d->nodes, q->head.nodeid, q->arg.forget.nlookup);
}

static void on_batch_forget(struct dir *d, const struct fuse_request *q)
{
	for (size_t i = 0; i < q->n; i++) {
		struct fuse_forget_one one;

		memcpy(&one, q->data + i * sizeof(one), sizeof(one));
		nodes_forget(&d->nodes, one.nodeid, one.nlookup);
	}
}

static int on_statfs(struct dir *d, size_t *ret_n)
{
	struct fuse_statfs_out out = { 0 };
	struct statfs s;

	if (fstatfs(d->root, &s) < 0)
		return -errno;
	out.st = (struct fuse_kstatfs){ .blocks = s.f_blocks,
					.bfree = s.f_bfree,
					.bavail = s.f_bavail,
					.files = s.f_files,
					.ffree = s.f_ffree,
					.bsize = (uint32_t)s.f_bsize,
					.namelen = 255,
					.frsize = (uint32_t)s.f_bsize };
	*ret_n = put(d, 0, &out, sizeof(out));
	return 0;
}

/* ---- requests: names ---- */

/* The answer to whatever gives the kernel a node: it is looked up. */
static int enter(struct dir *d, const struct spot *s, size_t *ret_n)
{
	struct stat st;
	struct fuse_attr a;
	struct node *n;
	int r = dir_kind_of(&d->rules, s->rel) == DIR_OWN && !sabotaged("served")
			? -ENOENT
			: stat_spot(s, &st);

	if (r < 0)
		return r;
	a = attr_at(d, s->dir, s->name, s->rel, &st);
	n = nodes_look(&d->nodes, s->dir_node, s->name, st.st_dev, st.st_ino);
	if (n == NULL)
		return -ENFILE;
	*ret_n = put_entry(d, n, &a, &st);
	return 0;
}

static int on_lookup(struct dir *d, const struct fuse_request *q, struct node *n, size_t *ret_n)
{
	_cleanup_(spot_done) struct spot s;
	int r = spot_in(d, n, q->name, &s);

	return r < 0 ? r : enter(d, &s, ret_n);
}

static int on_mkdir(struct dir *d, const struct fuse_request *q, struct node *n, size_t *ret_n)
{
	_cleanup_(spot_done) struct spot s;
	int r = spot_in(d, n, q->name, &s);

	if (r == 0)
		r = may(d, &s, DIR_CREATE);
	if (r == 0 && dir_kind_of(&d->rules, s.rel) == DIR_LOCK && dir_is_lock(s.rel))
		r = -EPERM;
	if (r == 0 && mkdirat(s.dir, s.name, q->arg.mkdir.mode & 01777) < 0)
		r = -errno;
	return r < 0 ? r : enter(d, &s, ret_n);
}

/* Opens a file that the kernel believes not to be there. The host may have made it meanwhile. */
static int make_file(struct dir *d, const struct spot *s, int flags, mode_t mode)
{
	bool is_lock = dir_kind_of(&d->rules, s->rel) == DIR_LOCK;
	_close_ int fd = FD_NONE;
	int r = may(d, s, DIR_CREATE);

	if (r < 0)
		return r;
	fd = openat(s->dir, s->name,
		    (flags & (O_ACCMODE | O_APPEND)) | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    mode & 0777);
	if (fd < 0) /* who did not ask for a new file is to look again */
		return errno == EEXIST && !(flags & O_EXCL) ? -ESTALE : -errno;
	if (is_lock) {
		r = dir_own(d, fcntl(fd, F_DUPFD_CLOEXEC, 3));
		if (r < 0) {
			(void)unlinkat(s->dir, s->name, 0); /* made a moment ago */
			return r;
		}
	}
	return take_fd(fd);
}

static int on_mknod(struct dir *d, const struct fuse_request *q, struct node *n, size_t *ret_n)
{
	_cleanup_(spot_done) struct spot s;
	int r = spot_in(d, n, q->name, &s);

	if (r == 0 && !S_ISREG(q->arg.mknod.mode))
		r = -EPERM;
	if (r == 0)
		r = make_file(d, &s, O_RDONLY, q->arg.mknod.mode);
	if (r < 0)
		return r;
	fd_close(r);
	return enter(d, &s, ret_n);
}

static int on_link(struct dir *d, const struct fuse_request *q, struct node *n)
{
	_cleanup_(spot_done) struct spot s;
	int r = spot_in(d, n, q->name, &s);

	if (r == 0)
		r = dir_may(&d->rules, s.rel, DIR_LINK);
	/* None is made, whatever the rules say: in the three free directories neither is needed. */
	return r < 0 ? r : -EPERM;
}

static int on_remove(struct dir *d, const struct fuse_request *q, struct node *n)
{
	_cleanup_(spot_done) struct spot s;
	struct stat st;
	int r = spot_in(d, n, q->name, &s);

	if (r == 0)
		r = may(d, &s, DIR_REMOVE);
	if (r == 0)
		r = stat_spot(&s, &st);
	if (r == 0 && unlinkat(s.dir, s.name, q->head.opcode == FUSE_RMDIR ? AT_REMOVEDIR : 0) < 0)
		r = -errno;
	if (r < 0)
		return r;
	dir_disown(d, &st);
	nodes_kill(&d->nodes, n, q->name);
	return 0;
}

static int rename_in(struct dir *d, const struct spot *from, const struct spot *to, unsigned flags)
{
	int r = dir_may_move(&d->rules, from->rel, to->rel, flags);
	struct stat st = { 0 };

	if (r == DIR_MOVE_OWN) {
		r = stat_spot(from, &st);
		if (r == 0 && !S_ISDIR(st.st_mode) && !dir_is_own(d, &st))
			r = -EACCES;
	}
	if (r < 0)
		return r;
	if (r == DIR_JUDGE) {
		r = dir_replace(d, from->dir, from->name, to->name, to->rel);
		if (r < 0)
			return r;
		/* Neither name leads to what the kernel has in hand. */
		nodes_kill(&d->nodes, from->dir_node, from->name);
		nodes_kill(&d->nodes, to->dir_node, to->name);
		return 0;
	}
	if (syscall(SYS_renameat2, from->dir, from->name, to->dir, to->name, flags) < 0)
		return -errno;
	dir_disown(d, &st);
	if (flags & RENAME_EXCHANGE) { /* looked up anew, both */
		nodes_kill(&d->nodes, from->dir_node, from->name);
		nodes_kill(&d->nodes, to->dir_node, to->name);
	} else {
		nodes_move(&d->nodes, from->dir_node, from->name, to->dir_node, to->name);
	}
	return 0;
}

static int on_rename(struct dir *d, const struct fuse_request *q, struct node *n)
{
	bool is_new = q->head.opcode == FUSE_RENAME2;
	struct node *to =
		nodes_get(&d->nodes, is_new ? q->arg.rename2.newdir : q->arg.rename.newdir);
	_cleanup_(spot_done) struct spot a = { 0 }, b = { 0 };
	int r = to ? spot_in(d, n, q->name, &a) : -ESTALE;

	if (r == 0)
		r = spot_in(d, to, q->name2, &b);
	return r < 0 ? r : rename_in(d, &a, &b, is_new ? q->arg.rename2.flags : 0);
}

static int on_readlink(struct dir *d, const struct node *n, size_t *ret_n)
{
	_cleanup_(spot_done) struct spot s = { 0 };
	int r = n->id == NODE_ROOT ? -EINVAL : spot_of(d, n, &s);
	ssize_t len;

	if (r == 0)
		r = may(d, &s, DIR_READ);
	if (r < 0)
		return r;
	len = readlinkat(s.dir, s.name, body(d), PATH_LONGEST);
	if (len < 0)
		return -errno;
	*ret_n = (size_t)len;
	return 0;
}

/* ---- requests: attributes ---- */

static int attr_of_node(struct dir *d, const struct node *n, struct fuse_attr *a, struct stat *st)
{
	_cleanup_(spot_done) struct spot s = { 0 };
	struct handle *h;
	int r;

	if (n->id == NODE_ROOT) {
		r = fstat(d->root, st) < 0 ? -errno : 0;
		*a = attr_of(d, st);
		return r;
	}
	r = spot_of(d, n, &s);
	if (r == 0)
		r = stat_spot(&s, st);
	if (r == 0 && st->st_dev == n->dev && st->st_ino == n->ino) {
		*a = attr_at(d, s.dir, s.name, s.rel, st);
		return 0;
	}
	h = handle_of_node(d, n->id);
	if (h == NULL || fstat(h->fd, st) < 0)
		return -ESTALE;
	*a = attr_of(d, st);
	return 0;
}

static int on_getattr(struct dir *d, const struct node *n, size_t *ret_n)
{
	struct fuse_attr_out out = { 0 };
	struct stat st = { 0 };
	int r = attr_of_node(d, n, &out.attr, &st);

	if (r < 0)
		return r;
	out.attr_valid = keep_attr(&st);
	out.attr_valid_nsec = keep_attr_ns(&st);
	*ret_n = put(d, 0, &out, sizeof(out));
	return 0;
}

static bool is_changing_owner(const struct dir *d, const struct fuse_setattr_in *in,
			      const struct stat *st)
{
	return (in->valid & FATTR_UID && in->uid != inner_id(&d->uids, st->st_uid)) ||
	       (in->valid & FATTR_GID && in->gid != inner_id(&d->gids, st->st_gid));
}

static int set_times(int fd, const struct fuse_setattr_in *in)
{
	struct timespec t[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_nsec = UTIME_OMIT } };

	if (in->valid & FATTR_ATIME)
		t[0] = (struct timespec){ (time_t)in->atime, in->atimensec };
	if (in->valid & FATTR_MTIME)
		t[1] = (struct timespec){ (time_t)in->mtime, in->mtimensec };
	if (in->valid & FATTR_ATIME_NOW)
		t[0].tv_nsec = UTIME_NOW;
	if (in->valid & FATTR_MTIME_NOW)
		t[1].tv_nsec = UTIME_NOW;
	return futimens(fd, t) < 0 ? -errno : 0;
}

static int set_attr(const struct dir *d, int fd, const struct fuse_setattr_in *in)
{
	const uint32_t times = FATTR_ATIME | FATTR_MTIME | FATTR_ATIME_NOW | FATTR_MTIME_NOW;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (is_changing_owner(d, in, &st) || (S_ISREG(st.st_mode) && st.st_nlink > 1))
		return -EPERM;
	if (in->valid & FATTR_MODE &&
	    fchmod(fd, in->mode & (S_ISDIR(st.st_mode) ? 01777 : 0777)) < 0)
		return -errno;
	if (in->valid & FATTR_SIZE && ftruncate(fd, (off_t)in->size) < 0)
		return -errno;
	return in->valid & times ? set_times(fd, in) : 0;
}

/* The file of a node, opened and found to be that file. */
static int open_node(const struct spot *s, const struct node *n, int flags, struct stat *st)
{
	_close_ int fd =
		openat(s->dir, s->name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT || errno == ELOOP ? -ESTALE : -errno;
	if (fstat(fd, st) < 0)
		return -errno;
	if (st->st_dev != n->dev || st->st_ino != n->ino)
		return -ESTALE;
	if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode))
		return -EACCES;
	/* Another of its names may be one that is protected. */
	if (S_ISREG(st->st_mode) && (flags & O_ACCMODE) != O_RDONLY && st->st_nlink > 1 &&
	    !sabotaged("served"))
		return -EPERM;
	return take_fd(fd);
}

static int on_setattr(struct dir *d, const struct fuse_request *q, struct node *n, size_t *ret_n)
{
	const struct fuse_setattr_in *in = &q->arg.setattr;
	struct handle *h = in->valid & FATTR_FH ? handle_of(d, in->fh) : NULL;
	_cleanup_(spot_done) struct spot s = { 0 };
	_close_ int opened = FD_NONE;
	struct stat st;
	int r = 0, fd;

	if (n->id == NODE_ROOT)
		return -EPERM;
	/* The size of what is open for writing was judged when it was opened; anything else is judged by the name. */
	if (h && h->node == n->id && h->fd >= 0 && in->valid & FATTR_SIZE &&
	    !(in->valid & (FATTR_MODE | FATTR_UID | FATTR_GID))) {
		fd = h->fd;
	} else {
		r = spot_of(d, n, &s);
		if (r == 0)
			r = may(d, &s, in->valid & FATTR_SIZE ? DIR_WRITE : DIR_SET);
		if (r < 0)
			return r;
		opened = open_node(&s, n, in->valid & FATTR_SIZE ? O_WRONLY : O_RDONLY, &st);
		fd = opened;
	}
	r = fd < 0 ? fd : set_attr(d, fd, in);
	return r < 0 ? r : on_getattr(d, n, ret_n);
}

/* ---- requests: files ---- */

static size_t put_open(struct dir *d, size_t at, uint64_t fh, uint32_t flags)
{
	struct fuse_open_out out = { .fh = fh, .open_flags = flags };

	return put(d, at, &out, sizeof(out));
}

/* A file of a directory that may be replaced at any time has its pages kept only when its times are old enough to tell
 * it from another one with the same number. */
static uint32_t keep_pages(const struct stat *st)
{
	return dir_is_fresh(st) ? 0 : FOPEN_KEEP_CACHE;
}

static int open_config(struct dir *d, const struct spot *s, const struct node *n, size_t *ret_n)
{
	const struct shown *shown;
	struct handle *h;
	struct stat st;
	uint64_t fh;
	int r = stat_spot(s, &st);

	if (r < 0 || st.st_dev != n->dev || st.st_ino != n->ino || !S_ISREG(st.st_mode))
		return -ESTALE;
	shown = dir_show(d, s->dir, s->name, &st);
	if (shown == NULL)
		return -EACCES;
	h = handle_new(d, n->id, &fh);
	if (h == NULL)
		return -EMFILE;
	h->text = mem_strn(shown->text, shown->n);
	h->n = shown->n;
	*ret_n = put_open(d, 0, fh, keep_pages(&st));
	return 0;
}

static int on_open(struct dir *d, const struct fuse_request *q, struct node *n, size_t *ret_n)
{
	int flags = (int)q->arg.open.flags;
	bool is_write = (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC;
	_cleanup_(spot_done) struct spot s = { 0 };
	_close_ int fd = FD_NONE;
	struct handle *h;
	struct stat st;
	uint64_t fh;
	int r = n->id == NODE_ROOT ? -EISDIR : spot_of(d, n, &s);

	if (r == 0)
		r = may(d, &s, is_write ? DIR_WRITE : DIR_READ);
	if (r < 0)
		return r;
	if (dir_kind_of(&d->rules, s.rel) == DIR_CONFIG && !is_write)
		return open_config(d, &s, n, ret_n);
	fd = open_node(&s, n, flags & (O_ACCMODE | O_APPEND), &st);
	if (fd < 0)
		return fd;
	if (flags & O_TRUNC && ftruncate(fd, 0) < 0)
		return -errno;
	h = handle_new(d, n->id, &fh);
	if (h == NULL)
		return -EMFILE;
	*ret_n = put_open(d, 0, fh, is_write ? 0 : keep_pages(&st));
	h->fd = take_fd(fd);
	return 0;
}

static int on_create(struct dir *d, const struct fuse_request *q, struct node *n, size_t *ret_n)
{
	_cleanup_(spot_done) struct spot s = { 0 };
	_close_ int fd = FD_NONE;
	struct fuse_entry_out entry;
	struct handle *h;
	uint64_t fh;
	int r = spot_in(d, n, q->name, &s);

	if (r == 0)
		r = fd = make_file(d, &s, (int)q->arg.create.flags, q->arg.create.mode);
	if (r >= 0)
		r = enter(d, &s, ret_n);
	if (r < 0)
		return r;
	memcpy(&entry, body(d), sizeof(entry));
	h = handle_new(d, entry.nodeid, &fh);
	if (h == NULL)
		return -EMFILE;
	h->fd = take_fd(fd);
	*ret_n = put_open(d, *ret_n, fh, 0);
	return 0;
}

static int on_read(struct dir *d, const struct fuse_request *q, size_t *ret_n)
{
	const struct fuse_read_in *in = &q->arg.read;
	struct handle *h = handle_of(d, in->fh);
	size_t size = in->size < FUSE_WRITE_MAX ? in->size : FUSE_WRITE_MAX;
	ssize_t n;

	if (h == NULL)
		return -EBADF;
	if (h->text) {
		size_t left = in->offset < h->n ? h->n - (size_t)in->offset : 0;

		*ret_n = left ? put(d, 0, h->text + in->offset, left < size ? left : size) : 0;
		return 0;
	}
	n = pread(h->fd, body(d), size, (off_t)in->offset);
	if (n < 0)
		return -errno;
	*ret_n = (size_t)n;
	return 0;
}

static int on_write(struct dir *d, const struct fuse_request *q, size_t *ret_n)
{
	struct handle *h = handle_of(d, q->arg.write.fh);
	struct fuse_write_out out = { 0 };
	ssize_t n;

	if (h == NULL || h->fd < 0)
		return -EBADF;
	n = pwrite(h->fd, q->data, q->n, (off_t)q->arg.write.offset);
	if (n < 0)
		return -errno;
	out.size = (uint32_t)n;
	*ret_n = put(d, 0, &out, sizeof(out));
	return 0;
}

static int on_fsync(struct dir *d, const struct fuse_request *q)
{
	struct handle *h = handle_of(d, q->arg.fsync.fh);

	if (h == NULL)
		return -EBADF;
	return h->fd >= 0 && fsync(h->fd) < 0 ? -errno : 0;
}

static int on_release(struct dir *d, const struct fuse_request *q)
{
	struct handle *h = handle_of(d, q->arg.release.fh);

	if (h)
		handle_drop(h);
	return 0;
}

/* ---- requests: directories ---- */

static int on_opendir(struct dir *d, const struct node *n, size_t *ret_n)
{
	_close_ int fd = FD_NONE;
	char rel[PATH_LONGEST];
	struct handle *h;
	uint64_t fh;
	int r = nodes_path(&d->nodes, n, rel, sizeof(rel));

	if (r == 0 && rel[0])
		r = dir_may(&d->rules, rel, DIR_READ);
	if (r < 0)
		return r;
	fd = open_dir(d, n, O_RDONLY);
	if (fd < 0)
		return fd;
	h = handle_new(d, n->id, &fh);
	if (h == NULL)
		return -EMFILE;
	h->fd = take_fd(fd);
	*ret_n = put_open(d, 0, fh, 0);
	return 0;
}

struct dent {
	uint64_t ino;
	int64_t off;
	uint16_t reclen;
	uint8_t type;
	char name[];
};

/* The new end, or the same when it does not fit. */
static size_t put_dent(struct dir *d, size_t at, size_t size, const struct dent *e)
{
	struct fuse_dirent out = { .ino = e->ino,
				   .off = (uint64_t)e->off,
				   .namelen = (uint32_t)strlen(e->name),
				   .type = e->type };
	size_t n = FUSE_NAME_OFFSET + out.namelen, padded = FUSE_DIRENT_ALIGN(n);

	if (at + padded > size)
		return at;
	memcpy(body(d) + at, &out, FUSE_NAME_OFFSET);
	memcpy(body(d) + at + FUSE_NAME_OFFSET, e->name, out.namelen);
	for (size_t i = n; i < padded; i++)
		body(d)[at + i] = '\0';
	return at + padded;
}

/* What of one bufferful fits into the answer. */
static size_t put_dents(struct dir *d, size_t size, const char *dents, size_t got)
{
	size_t at = 0;

	for (size_t i = 0; i < got;) {
		const struct dent *e = (const void *)(dents + i);
		size_t end;

		i += e->reclen;
		if (str_starts(e->name, DIR_OWN_NAME))
			continue;
		end = put_dent(d, at, size, e);
		if (end == at)
			break;
		at = end;
	}
	return at;
}

static int on_readdir(struct dir *d, const struct fuse_request *q, size_t *ret_n)
{
	const struct fuse_read_in *in = &q->arg.read;
	_Alignas(8) char dents[4096];
	size_t size = in->size < FUSE_WRITE_MAX ? in->size : FUSE_WRITE_MAX;
	struct handle *h = handle_of(d, in->fh);
	long got;

	if (h == NULL || h->fd < 0)
		return -EBADF;
	if (lseek(h->fd, (off_t)in->offset, SEEK_SET) < 0)
		return -errno;
	/* A bufferful with nothing in it that is shown is not the end. */
	for (*ret_n = 0; *ret_n == 0;) {
		got = syscall(SYS_getdents64, h->fd, dents, (unsigned)sizeof(dents));
		if (got <= 0)
			return got < 0 ? -errno : 0;
		*ret_n = put_dents(d, size, dents, (size_t)got);
		if (size < sizeof(struct fuse_dirent) + 256)
			return 0;
	}
	return 0;
}

/* ---- one request ---- */

/* With a node; what gives bytes says how many. */
static int act(struct dir *d, const struct fuse_request *q, struct node *n, size_t *ret_n)
{
	switch (q->head.opcode) {
	case FUSE_LOOKUP:
		return on_lookup(d, q, n, ret_n);
	case FUSE_GETATTR:
		return on_getattr(d, n, ret_n);
	case FUSE_SETATTR:
		return on_setattr(d, q, n, ret_n);
	case FUSE_READLINK:
		return on_readlink(d, n, ret_n);
	case FUSE_MKNOD:
		return on_mknod(d, q, n, ret_n);
	case FUSE_MKDIR:
		return on_mkdir(d, q, n, ret_n);
	case FUSE_UNLINK:
	case FUSE_RMDIR:
		return on_remove(d, q, n);
	case FUSE_RENAME:
	case FUSE_RENAME2:
		return on_rename(d, q, n);
	case FUSE_SYMLINK:
	case FUSE_LINK:
		return on_link(d, q, n);
	case FUSE_OPEN:
		return on_open(d, q, n, ret_n);
	case FUSE_CREATE:
		return on_create(d, q, n, ret_n);
	case FUSE_READ:
		return on_read(d, q, ret_n);
	case FUSE_WRITE:
		return on_write(d, q, ret_n);
	case FUSE_FSYNC:
	case FUSE_FSYNCDIR:
		return on_fsync(d, q);
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
		return on_release(d, q);
	case FUSE_OPENDIR:
		return on_opendir(d, n, ret_n);
	case FUSE_READDIR:
		return on_readdir(d, q, ret_n);
	case FUSE_STATFS:
		return on_statfs(d, ret_n);
	default:
		return -ENOSYS;
	}
}

static void serve_one(struct dir *d, const struct fuse_request *q)
{
	struct node *n = nodes_get(&d->nodes, q->head.nodeid);
	size_t size = 0;
	int r = !d->is_open ? -EIO : n ? act(d, q, n, &size) : -ESTALE;

	answer(d, q, r < 0 ? r : 0, size);
}

bool dir_answer(struct dir *d, const char *p, size_t n)
{
	struct fuse_request q;
	int r = fuse_parse(p, n, &q);

	d->out_n = 0;
	if (r == -EBADMSG)
		return false;
	if (r < 0) {
		answer(d, &q, r, 0);
		return true;
	}
	switch (q.head.opcode) {
	case FUSE_INIT:
		on_init(d, &q);
		break;
	case FUSE_FORGET:
		on_forget(d, &q);
		break;
	case FUSE_BATCH_FORGET:
		on_batch_forget(d, &q);
		break;
	case FUSE_INTERRUPT: /* nothing here waits for long */
		break;
	case FUSE_DESTROY:
		d->is_over = true;
		answer(d, &q, 0, 0);
		break;
	default:
		serve_one(d, &q);
	}
	return true;
}

int dir_init(struct dir *d, int take_root)
{
	struct stat st;

	d->root = take_root;
	for (size_t i = 0; i < HANDLES_MAX; i++)
		d->handles[i].fd = FD_NONE;
	for (size_t i = 0; i < OWN_LOCKS_MAX; i++)
		d->locks[i].fd = FD_NONE;
	if (fstat(take_root, &st) < 0)
		return -errno;
	nodes_init(&d->nodes, st.st_dev, st.st_ino);
	return 0;
}

void dir_done(struct dir *d)
{
	for (size_t i = 0; i < HANDLES_MAX; i++)
		handle_drop(&d->handles[i]);
	for (size_t i = 0; i < OWN_LOCKS_MAX; i++)
		fd_close(d->locks[i].fd);
	for (size_t i = 0; i < SHOWN_MAX; i++)
		free(d->shown[i].text);
	nodes_done(&d->nodes);
	dir_rules_done(&d->rules);
	fd_close(d->root);
}
