/* SPDX-License-Identifier: Apache-2.0 */
/* tree/restore.c - make a live tree what an index says
 *
 * Three passes over what differs: remove, deepest first; make and replace, parents first; then modes and times of the
 * directories that were touched, deepest first. A file is made whole under a name of ours beside its place and renamed
 * over it, so each file is the old or the new one. Directly before a name is touched it must still be what the index
 * of the present says; else somebody else is at work there, and it stays.
 *
 * The tree may be hostile: a directory is opened from the root without following links, and all work is done on that
 * descriptor and one name.
 */
#include <fcntl.h>
#include <sys/random.h>

#include "tree/look.h"

#include "base/path.h"
#include "base/sabotage.h"
#include "view/walk.h"

struct restore {
	const struct restore_job *job;
	struct restored *sum;
	struct err *e;
	int dir; /* of the last name worked on */
	char *dir_path;
	bool *touched; /* per entry of the target: a directory to be settled at the end */
};

static void restore_done(struct restore *r)
{
	fd_close(r->dir);
	free(r->dir_path);
	free(r->touched);
}

static void conflict(struct restore *r, const char *path, const char *why)
{
	r->sum->conflicts++;
	if (r->job->conflict)
		r->job->conflict(r->job->arg, path, why);
}

/* ---- where ---- */

static int open_parent(struct restore *r, const struct tree_entry *en)
{
	size_t n = (size_t)(en->name - en->path);
	_free_ char *path = mem_strn(en->path, n > 0 ? n - 1 : 0);
	int fd;

	if (r->dir >= 0 && str_eq(path, r->dir_path))
		return r->dir;
	fd = tree_open(r->job->root_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	if (fd < 0)
		return fd;
	fd_close(r->dir);
	free(r->dir_path);
	r->dir = fd;
	r->dir_path = take(path);
	return fd;
}

/* A directory that may not be written in is opened for the moment; its own mode comes back at the end. */
static bool open_up(int dir)
{
	struct stat st;

	return fstat(dir, &st) == 0 && (st.st_mode & 0700) != 0700 &&
	       fchmod(dir, (st.st_mode & 07777) | 0700) == 0;
}

static void touch_parent(struct restore *r, const struct tree_entry *en)
{
	size_t n = (size_t)(en->name - en->path);
	_free_ char *path = mem_strn(en->path, n > 0 ? n - 1 : 0);
	const struct tree_entry *dir = n > 0 ? tree_find(r->job->target, path) : NULL;

	if (dir)
		r->touched[dir - r->job->target->v] = true;
}

/* Is the name still what it was when the present was saved? */
static bool is_expected(int dir, const char *name, const struct tree_entry *was)
{
	struct tree_entry now = { 0 };
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return was == NULL && errno == ENOENT;
	if (was == NULL)
		return false;
	tree_from_stat(&now, &st);
	if (S_ISDIR(was->mode))
		return S_ISDIR(now.mode) && now.ino == was->ino;
	return now.ino == was->ino && now.size == was->size && now.mtime == was->mtime &&
	       (now.mode & S_IFMT) == (was->mode & S_IFMT);
}

/* ---- removing ---- */

static void remove_one(struct restore *r, const struct tree_entry *en)
{
	int dir, flags = S_ISDIR(en->mode) ? AT_REMOVEDIR : 0;

	if (en->flags & (TREE_OPAQUE | TREE_UNSAVED)) {
		conflict(r, en->path,
			 en->flags & TREE_OPAQUE ? "ignored, so not saved; left alone"
						 : "too large to be saved; left alone");
		return;
	}
	dir = open_parent(r, en);
	if (dir < 0) {
		if (dir != -ENOENT)
			conflict(r, en->path, strerrordesc_np(-dir));
		return;
	}
	if (!is_expected(dir, en->name, en)) {
		struct stat st;

		if (fstatat(dir, en->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			conflict(r, en->path, "changed just now; left alone");
		return;
	}
	touch_parent(r, en);
	if (unlinkat(dir, en->name, flags) < 0 &&
	    (errno != EACCES || !open_up(dir) || unlinkat(dir, en->name, flags) < 0)) {
		conflict(r, en->path,
			 errno == ENOTEMPTY || errno == EEXIST ? "holds what is not part of the "
								 "checkpoint; left alone"
							       : strerrordesc_np(errno));
		return;
	}
	r->sum->removed++;
}

/* ---- making ---- */

static void temp_name(char *name, size_t size)
{
	uint64_t n = 0;

	bug_on(getrandom(&n, sizeof(n), 0) != (ssize_t)sizeof(n));
	(void)snprintf(name, size, TREE_TEMP "%016llx", (unsigned long long)n);
}

static void set_owner(int fd, const struct tree_entry *en)
{
	struct stat st;

	/* Only root can, and only where it differs. An owner that cannot be given stays ours, without another's rights. */
	if (geteuid() == 0 && fstat(fd, &st) == 0 &&
	    (st.st_uid != en->uid || st.st_gid != en->gid) && fchown(fd, en->uid, en->gid) < 0)
		return;
}

static void times_of(const struct tree_entry *en, struct timespec t[static 2])
{
	int64_t ns = (int64_t)NS_PER_SEC, rest = en->mtime % ns;

	t[0] = (struct timespec){ .tv_nsec = UTIME_OMIT };
	t[1] = (struct timespec){ .tv_sec = en->mtime / ns - (rest < 0),
				  .tv_nsec = rest < 0 ? rest + ns : rest };
}

static mode_t mode_of(const struct restore *r, const struct tree_entry *en)
{
	/* A checkpoint may have been made while the bits of a file were there that the end of a run takes off. */
	mode_t most = r->job->no_xattrs                          ? 0777
		      : S_ISDIR(en->mode) || sabotaged("set-id") ? 07777
								 : 01777;

	return en->mode & most;
}

/* Nobody knows who made the bit, so it is not put back; whoever wants it on the host can. */
static void say_unset(const struct restore *r, const struct tree_entry *en)
{
	if (!r->job->no_xattrs && S_ISREG(en->mode) && en->mode & (S_ISUID | S_ISGID) &&
	    r->job->conflict)
		r->job->conflict(r->job->arg, en->path,
				 "its set-user-id or set-group-id bit is not put back; 'chmod' "
				 "does that");
}

static int fill_file(struct restore *r, int fd, const struct tree_entry *en)
{
	struct timespec t[2];
	int x = r->job->write ? r->job->write(r->job->write_arg, en, fd, r->e)
			      : store_write_to(r->job->store, en, fd, r->e);

	if (x < 0)
		return x;
	if (!r->job->no_xattrs) {
		set_owner(fd, en);
		tree_write_xattrs(fd, en);
	}
	times_of(en, t);
	if (fchmod(fd, mode_of(r, en)) < 0 || futimens(fd, t) < 0)
		return err_sys(r->e, "restore '%s'", en->path);
	say_unset(r, en);
	return 0;
}

static int make_file(struct restore *r, int dir, const char *temp, const struct tree_entry *en)
{
	_close_ int fd =
		openat(dir, temp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int x;

	if (fd < 0)
		return err_sys(r->e, "restore '%s'", en->path);
	x = fill_file(r, fd, en);
	if (x < 0)
		(void)unlinkat(dir, temp, 0);
	return x;
}

/* The first name may have been left as it was, and be another file. */
static bool is_first(int fd, const struct tree_entry *en)
{
	uint8_t sum[SHA256_BYTES];
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       (uint64_t)st.st_size == en->size && tree_hash_fd(fd, en->size, sum) == 0 &&
	       memcmp(sum, en->hash, sizeof(sum)) == 0;
}

static int make_link(struct restore *r, int dir, const char *temp, const struct tree_entry *en)
{
	const struct tree_entry *first = &r->job->target->v[en->link_of];
	_close_ int from = tree_open(r->job->root_fd, first->path,
				     O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", from);
	if (!is_first(from, en) || linkat(AT_FDCWD, path, dir, temp, AT_SYMLINK_FOLLOW) < 0)
		return make_file(r, dir, temp, en); /* a copy is better than nothing */
	return 0;
}

static int make_symlink(struct restore *r, int dir, const char *temp, const struct tree_entry *en)
{
	struct timespec t[2];

	if (symlinkat(en->target, dir, temp) < 0)
		return err_sys(r->e, "restore '%s'", en->path);
	times_of(en, t);
	(void)utimensat(dir, temp, t, AT_SYMLINK_NOFOLLOW); /* a link's time is of no consequence */
	return 0;
}

static int make_temp(struct restore *r, int dir, const char *temp, const struct tree_entry *en)
{
	if (S_ISLNK(en->mode))
		return make_symlink(r, dir, temp, en);
	if (S_ISFIFO(en->mode))
		return mkfifoat(dir, temp, mode_of(r, en)) < 0
			       ? err_sys(r->e, "restore '%s'", en->path)
			       : 0;
	return en->link_of == TREE_NONE ? make_file(r, dir, temp, en) : make_link(r, dir, temp, en);
}

static bool is_out_of_space(int x)
{
	return x == -ENOSPC || x == -EDQUOT || x == -EROFS || x == -EIO || x == -ENOMEM ||
	       x == -EMFILE || x == -ENFILE;
}

/* Makes `en` in place of `was` (NULL: of nothing). Negative only when going on is of no use. */
static int put_one(struct restore *r, const struct tree_entry *was, const struct tree_entry *en)
{
	int dir = open_parent(r, en), x;
	char temp[64];

	if (S_ISSOCK(en->mode) || S_ISCHR(en->mode) || S_ISBLK(en->mode))
		return 0; /* means nothing without the process or driver behind it */
	if (S_ISREG(en->mode) && en->flags & (TREE_UNSAVED | TREE_UNHASHED) && !r->job->write) {
		conflict(r, en->path, "its content was not saved; left as it is");
		return 0;
	}
	if (dir < 0) {
		conflict(r, en->path, strerrordesc_np(-dir));
		return 0;
	}
	if (!is_expected(dir, en->name, was)) {
		conflict(r, en->path, "changed just now; left alone");
		return 0;
	}
	touch_parent(r, en);
	if (faccessat(dir, ".", W_OK | X_OK, 0) < 0)
		(void)open_up(dir); /* if not, the next step says so */
	temp_name(temp, sizeof(temp));
	x = make_temp(r, dir, temp, en);
	if (x < 0 && !is_out_of_space(x)) {
		conflict(r, en->path, r->e->msg);
		return 0;
	}
	if (x < 0)
		return x;
	if (was ? renameat(dir, temp, dir, en->name) < 0
		: renameat2(dir, temp, dir, en->name, RENAME_NOREPLACE) < 0) {
		conflict(r, en->path, strerrordesc_np(errno));
		(void)unlinkat(dir, temp, 0);
		return 0;
	}
	(void)unlinkat(dir, temp, 0); /* still there when both were names of one file */
	r->sum->written++;
	return 0;
}

static void make_dir(struct restore *r, const struct tree_entry *en)
{
	int dir = open_parent(r, en);

	if (dir < 0 || (mkdirat(dir, en->name, 0700) < 0 &&
			(errno != EACCES || !open_up(dir) || mkdirat(dir, en->name, 0700) < 0))) {
		conflict(r, en->path, strerrordesc_np(dir < 0 ? -dir : errno));
		return;
	}
	touch_parent(r, en);
	r->touched[en - r->job->target->v] = true;
	r->sum->written++;
}

static void set_meta(struct restore *r, const struct tree_entry *was, const struct tree_entry *en)
{
	_close_ int fd =
		tree_open(r->job->root_fd, en->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	char path[64];

	if (fd == -EACCES) /* closed on purpose; it needs not be read to be opened */
		fd = tree_open(r->job->root_fd, en->path, O_PATH | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_ino != was->ino) {
		conflict(r, en->path,
			 fd < 0 ? strerrordesc_np(-fd) : "changed just now; left alone");
		return;
	}
	if (!r->job->no_xattrs)
		tree_write_xattrs(fd, en);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if ((st.st_mode & 07777) != mode_of(r, en) && chmod(path, mode_of(r, en)) < 0)
		conflict(r, en->path, strerrordesc_np(errno));
	else
		r->sum->written++;
}

/* ---- the passes ---- */

static bool is_wanted(const struct restore *r, const struct change *c)
{
	const char *path = c->b ? c->b->path : c->a->path;

	if (r->job->skips && r->job->skips(r->job->arg, c)) {
		r->sum->kept++;
		return false;
	}
	/* What is to be made needs the directories on the way. */
	return tree_is_among(r->job->only, path) ||
	       (c->kind == CHANGE_ADDED && c->b && S_ISDIR(c->b->mode) &&
		tree_is_above(r->job->only, path));
}

static int make_change(struct restore *r, const struct change *c)
{
	const struct tree_index *now = r->job->now;
	bool needs_link;

	switch (c->kind) {
	case CHANGE_ADDED:
	case CHANGE_TYPE: /* what was there is gone by now */
		if (S_ISDIR(c->b->mode)) {
			make_dir(r, c->b);
			return 0;
		}
		return put_one(r, NULL, c->b);
	case CHANGE_MODIFIED:
		if (c->a->flags & TREE_UNSAVED) {
			conflict(r, c->a->path, "too large to be saved; left alone");
			return 0;
		}
		return put_one(r, c->a, c->b);
	case CHANGE_MODE:
		needs_link = S_ISREG(c->b->mode) &&
			     (c->a->link_of != TREE_NONE) != (c->b->link_of != TREE_NONE);
		if (needs_link ||
		    (c->b->link_of != TREE_NONE && c->a->link_of != TREE_NONE &&
		     !str_eq(now->v[c->a->link_of].path, r->job->target->v[c->b->link_of].path)))
			return put_one(r, c->a, c->b);
		if (S_ISREG(c->b->mode) || S_ISDIR(c->b->mode))
			set_meta(r, c->a, c->b);
		return 0;
	case CHANGE_REMOVED:
	case CHANGE_RENAMED:
	case CHANGE_KIND_COUNT_:
		break;
	}
	return 0;
}

static void settle_dirs(struct restore *r)
{
	for (size_t i = r->job->target->n; i-- > 0;) {
		const struct tree_entry *en = &r->job->target->v[i];
		struct timespec t[2];
		_close_ int fd = FD_NONE;

		if (!r->touched[i])
			continue;
		fd = tree_open(r->job->root_fd, en->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
		if (fd < 0)
			continue;
		if (!r->job->no_xattrs) {
			tree_write_xattrs(fd, en);
			set_owner(fd, en);
		}
		times_of(en, t);
		if (futimens(fd, t) < 0 || fchmod(fd, mode_of(r, en)) < 0)
			conflict(r, en->path, strerrordesc_np(errno));
	}
}

int tree_restore(const struct restore_job *job, struct restored *ret, struct err *e)
{
	_cleanup_(
		restore_done) struct restore r = { .job = job, .sum = ret, .e = e, .dir = FD_NONE };
	_cleanup_(changes_done) struct changes c = { 0 };
	_free_ bool *wanted = NULL;
	int x = 0;

	*ret = (struct restored){ 0 };
	r.touched = mem_new(job->target->n + 1, sizeof(bool));
	tree_compare(job->now, job->target, false, &c);
	wanted = mem_new(c.n + 1, sizeof(bool));
	for (size_t i = c.n; i-- > 0;) {
		wanted[i] = is_wanted(&r, &c.v[i]);
		if (wanted[i] && (c.v[i].kind == CHANGE_REMOVED || c.v[i].kind == CHANGE_TYPE))
			remove_one(&r, c.v[i].a);
	}
	for (size_t i = 0; x >= 0 && i < c.n; i++)
		if (wanted[i])
			x = make_change(&r, &c.v[i]);
	settle_dirs(&r);
	if (x == 0 && syncfs(job->root_fd) < 0)
		x = err_sys(e, "the restored files may not be on disk");
	return x;
}

/* ---- what a killed restore left ---- */

static unsigned on_temp(void *arg, struct walk_dir *d, const char *name, size_t len,
			unsigned char type)
{
	if (str_starts(name, TREE_TEMP) && len == strlen(TREE_TEMP) + 16)
		(void)unlinkat(d->fd, name, 0); /* tried again next time */
	return type == DT_DIR;
}

void tree_clean(int root_fd)
{
	static const struct walk_ops ops = { .entry = on_temp };
	struct walk_stats stats = { 0 };
	struct err ignored;

	(void)walk_run(root_fd, 1, &ops, NULL, &stats, &ignored); /* as above */
}
