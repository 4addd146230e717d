/* SPDX-License-Identifier: Apache-2.0 */
/* files/serve.c - one function for each request
 *
 * Whoever asks is the guest's kernel, or has taken it over: it may do here what the user's id may do below the root, as mounts
 * of this side allow it, and nothing else. A walk goes one component at a time and never through a link; only files and
 * directories are opened; no device is made and no set-user-id bit set.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "base/io.h"
#include "files/serve.h"

#define QID_DIR 0x80
#define QID_LINK 0x02

/* ---- what a file is ---- */

static uint64_t number_of(struct files *f, dev_t dev, ino_t ino)
{
	size_t i = 0;

	while (i < f->n_devs && f->devs[i] != dev)
		i++;
	if (i == f->n_devs && i < DEVS_MAX)
		f->devs[f->n_devs++] = dev;
	return (uint64_t)ino ^ (uint64_t)i << 54;
}

static struct p9_qid qid_of(struct files *f, const struct stat *st)
{
	return (struct p9_qid){
		.type = S_ISDIR(st->st_mode)   ? QID_DIR
			: S_ISLNK(st->st_mode) ? QID_LINK
					       : 0,
		.version = (uint32_t)((uint64_t)st->st_mtim.tv_sec ^ ((uint64_t)st->st_size << 8) ^
				      (uint64_t)st->st_mtim.tv_nsec),
		.path = number_of(f, st->st_dev, st->st_ino),
	};
}

static int put_qid_of(struct files *f, int fd)
{
	struct stat st;
	struct p9_qid q;

	if (fstat(fd, &st) < 0)
		return -errno;
	q = qid_of(f, &st);
	p9_put_qid(&f->out, &q);
	return 0;
}

/* The O_PATH descriptor of a fid of the request's. */
static int at_of(struct files *f, uint64_t id)
{
	struct fid *fid = fids_get(&f->fids, id);

	return fid ? fid_at(&f->fids, fid) : -EBADF;
}

/* What was opened under that number; only such a one is read and written. */
static int open_of(struct files *f, uint64_t id, struct fid **ret)
{
	*ret = fids_get(&f->fids, id);
	if (*ret == NULL)
		return -EBADF;
	return (*ret)->is_lost ? -ESTALE : (*ret)->open >= 0 ? (*ret)->open : -EBADF;
}

/* ---- sessions and walks ---- */

static int do_version(struct files *f, const struct p9_request *q)
{
	uint32_t size = q->n[0] < P9_MSIZE ? (uint32_t)q->n[0] : P9_MSIZE;
	const char *version = str_eq(q->s[0], "9P2000.L") ? q->s[0] : "unknown";

	if (size < 4096)
		return -EMSGSIZE;
	for (size_t i = 0; i < f->fids.n; i++) /* a new session has none */
		if (f->fids.v[i].is_used)
			fids_drop(&f->fids, &f->fids.v[i]);
	f->is_open = version == q->s[0];
	p9_put4(&f->out, size);
	p9_put_text(&f->out, version, strlen(version));
	return 0;
}

static int do_attach(struct files *f, const struct p9_request *q)
{
	_close_ int at = fcntl(f->fids.root, F_DUPFD_CLOEXEC, 3);
	int r = at < 0 ? -errno : put_qid_of(f, at);

	if (q->n[1] != P9_NO_FID)
		r = -EACCES; /* nobody was asked who they are */
	return r < 0 ? r : fids_add(&f->fids, q->n[0], take_fd(at));
}

static int step(int from, const char *name)
{
	int fd = openat(from, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* As far as it goes; when that is not all of it, no fid is made. */
static int do_walk(struct files *f, const struct p9_request *q)
{
	struct fid *fid = fids_get(&f->fids, q->n[0]);
	int from = fid ? fid_at(&f->fids, fid) : -EBADF;
	struct p9_qid qids[P9_WALK_MAX];
	_close_ int at = from < 0 ? FD_NONE : fcntl(from, F_DUPFD_CLOEXEC, 3);
	size_t n = 0;
	int r = 0;

	if (from < 0 || at < 0)
		return from < 0 ? from : -errno;
	if (fid->open >= 0 && q->n[0] == q->n[1])
		return -EBUSY;
	for (; n < q->n_s; n++) {
		int next = step(at, q->s[n]);
		struct stat st;

		if (next < 0 || fstat(next, &st) < 0) {
			r = next < 0 ? next : -errno;
			break;
		}
		fd_close(at);
		at = next;
		qids[n] = qid_of(f, &st);
	}
	if (n < q->n_s && n == 0)
		return r;
	p9_put2(&f->out, (uint16_t)n);
	for (size_t i = 0; i < n; i++)
		p9_put_qid(&f->out, &qids[i]);
	if (n < q->n_s)
		return 0;
	if (q->n[0] != q->n[1])
		return fids_add(&f->fids, q->n[1], take_fd(at));
	fid_move(&f->fids, fid, take_fd(at));
	return 0;
}

static int do_clunk(struct files *f, const struct p9_request *q)
{
	struct fid *fid = fids_get(&f->fids, q->n[0]);

	if (fid == NULL)
		return -EBADF;
	fids_drop(&f->fids, fid);
	return 0;
}

/* A Linux kernel asks for it only where it is told that we do not know a better way. */
static int do_remove(struct files *f, const struct p9_request *q)
{
	(void)do_clunk(f, q); /* it is let go in any case */
	return -EOPNOTSUPP;
}

/* Requests are answered one after the other: what was asked before has been answered. */
static int do_flush(struct files *f, const struct p9_request *q)
{
	return 0;
}

static int do_unknown(struct files *f, const struct p9_request *q)
{
	return -EOPNOTSUPP;
}

/* ---- open files ---- */

#define OPEN_FLAGS (O_ACCMODE | O_TRUNC | O_APPEND | O_DSYNC | O_SYNC | O_DIRECTORY)
#define OPEN_ALWAYS (O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

static bool may_open(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode));
}

static int put_opened(struct files *f, int fd)
{
	int r = put_qid_of(f, fd);

	p9_put4(&f->out, 0);
	return r;
}

static int do_lopen(struct files *f, const struct p9_request *q)
{
	struct fid *fid = fids_get(&f->fids, q->n[0]);
	int at = fid ? fid_at(&f->fids, fid) : -EBADF;
	char path[FID_PROC];

	if (at < 0)
		return at;
	if (fid->open >= 0)
		return -EBUSY;
	if (!may_open(at))
		return -ENXIO;
	fid_proc(at, path);
	fid->flags = (uint32_t)q->n[1] & OPEN_FLAGS;
	fid->open = open(path, (int)fid->flags | OPEN_ALWAYS);
	return fid->open < 0 ? -errno : put_opened(f, fid->open);
}

static int do_lcreate(struct files *f, const struct p9_request *q)
{
	struct fid *fid = fids_get(&f->fids, q->n[0]);
	int at = fid ? fid_at(&f->fids, fid) : -EBADF, r;
	unsigned flags = (unsigned)q->n[1] & (OPEN_FLAGS | O_EXCL);
	_close_ int fd = FD_NONE;
	_close_ int named = FD_NONE;

	if (at < 0)
		return at;
	if (fid->open >= 0)
		return -EBUSY;
	fd = openat(at, q->s[0],
		    (int)(flags & ~(unsigned)O_TRUNC) | O_CREAT | O_NOFOLLOW | OPEN_ALWAYS,
		    (mode_t)q->n[2] & 0777);
	if (fd < 0)
		return -errno;
	if (!may_open(fd))
		return -ENXIO;
	if (flags & O_TRUNC && ftruncate(fd, 0) < 0)
		return -errno;
	named = step(at, q->s[0]);
	if (named < 0)
		return take_fd(named);
	r = put_opened(f, fd);
	if (r < 0)
		return r;
	fid_move(&f->fids, fid, take_fd(named));
	fid->open = take_fd(fd);
	fid->flags = flags & ~(unsigned)(O_EXCL | O_TRUNC);
	return 0;
}

static int do_read(struct files *f, const struct p9_request *q)
{
	struct fid *fid;
	int fd = open_of(f, q->n[0], &fid);
	size_t want = q->n[2] < P9_IO ? q->n[2] : P9_IO;
	_free_ char *bytes = NULL;
	ssize_t n;

	if (fd < 0 || q->n[1] > INT64_MAX)
		return fd < 0 ? fd : -EINVAL;
	bytes = mem_new(want + 1, 1);
	n = pread(fd, bytes, want, (off_t)q->n[1]);
	if (n < 0)
		return -errno;
	p9_put4(&f->out, (uint32_t)n);
	buf_add(&f->out, bytes, (size_t)n);
	return 0;
}

static int do_write(struct files *f, const struct p9_request *q)
{
	struct fid *fid;
	int fd = open_of(f, q->n[0], &fid);
	ssize_t n;

	if (fd < 0 || q->n[1] > INT64_MAX)
		return fd < 0 ? fd : -EINVAL;
	n = pwrite(fd, q->data, q->n_data, (off_t)q->n[1]);
	if (n < 0)
		return -errno;
	p9_put4(&f->out, (uint32_t)n);
	return 0;
}

static int do_fsync(struct files *f, const struct p9_request *q)
{
	struct fid *fid;
	int fd = open_of(f, q->n[0], &fid);

	if (fd < 0)
		return fd;
	return (q->n[1] ? fdatasync(fd) : fsync(fd)) < 0 ? -errno : 0;
}

/* Locks are between processes of the one guest, whose kernel keeps them. */
static int do_lock(struct files *f, const struct p9_request *q)
{
	if (fids_get(&f->fids, q->n[0]) == NULL)
		return -EBADF;
	p9_put1(&f->out, 0);
	return 0;
}

static int do_getlock(struct files *f, const struct p9_request *q)
{
	if (fids_get(&f->fids, q->n[0]) == NULL)
		return -EBADF;
	p9_put1(&f->out, 2); /* unlocked */
	p9_put8(&f->out, q->n[2]);
	p9_put8(&f->out, q->n[3]);
	p9_put4(&f->out, (uint32_t)q->n[4]);
	p9_put_text(&f->out, q->s[0], strlen(q->s[0]));
	return 0;
}

/* ---- directories ---- */

struct entry { /* struct linux_dirent64 */
	uint64_t ino;
	int64_t off;
	uint16_t length;
	uint8_t type;
	char name[];
};

static size_t put_entry(struct files *f, dev_t dev, const struct entry *en, size_t room)
{
	size_t n = strlen(en->name), size = 13 + 8 + 1 + 2 + n;
	struct p9_qid q = { .type = en->type == DT_DIR   ? QID_DIR
				    : en->type == DT_LNK ? QID_LINK
							 : 0,
			    .path = number_of(f, dev, en->ino) };

	if (size > room)
		return 0;
	p9_put_qid(&f->out, &q);
	p9_put8(&f->out, (uint64_t)en->off);
	p9_put1(&f->out, en->type);
	p9_put_text(&f->out, en->name, n);
	return size;
}

static int do_readdir(struct files *f, const struct p9_request *q)
{
	struct fid *fid;
	int fd = open_of(f, q->n[0], &fid);
	size_t room = q->n[2] < P9_IO ? q->n[2] : P9_IO, used = 0, head = f->out.n;
	char list[16 * KIB] __attribute__((aligned(8)));
	long n;

	if (fd < 0)
		return fd;
	if (lseek(fd, (off_t)q->n[1], SEEK_SET) < 0)
		return -errno;
	p9_put4(&f->out, 0);
	n = syscall(SYS_getdents64, fd, list, sizeof(list));
	if (n < 0)
		return -errno;
	for (long at = 0; at < n;) {
		const struct entry *en = (const void *)(list + at);
		size_t size = put_entry(f, fid->dev, en, room - used);

		if (size == 0)
			break;
		used += size;
		at += en->length;
	}
	if (n > 0 && used == 0)
		return -EINVAL;
	for (size_t i = 0; i < 4; i++)
		f->out.p[head + i] = (char)(uint8_t)(used >> (8 * i));
	return 0;
}

/* Makes q->s[0] in a directory, by one of the calls below; the answer is what it is. */
static int made(struct files *f, int at, int r, const char *name)
{
	_close_ int fd = FD_NONE;

	if (r < 0)
		return -errno;
	fd = step(at, name);
	return fd < 0 ? take_fd(fd) : put_qid_of(f, fd);
}

static int do_mkdir(struct files *f, const struct p9_request *q)
{
	int at = at_of(f, q->n[0]);

	return at < 0 ? at : made(f, at, mkdirat(at, q->s[0], (mode_t)q->n[1] & 01777), q->s[0]);
}

static int do_symlink(struct files *f, const struct p9_request *q)
{
	int at = at_of(f, q->n[0]);

	return at < 0 ? at : made(f, at, symlinkat(q->s[1], at, q->s[0]), q->s[0]);
}

static int do_mknod(struct files *f, const struct p9_request *q)
{
	int at = at_of(f, q->n[0]);
	mode_t mode = (mode_t)q->n[1];

	if (at < 0)
		return at;
	if (!S_ISFIFO(mode) && !S_ISSOCK(mode) && !S_ISREG(mode))
		return -EPERM;
	return made(f, at, mknodat(at, q->s[0], mode & (S_IFMT | 0777), 0), q->s[0]);
}

static int do_link(struct files *f, const struct p9_request *q)
{
	int to = at_of(f, q->n[0]), from = at_of(f, q->n[1]);
	char path[FID_PROC];

	if (to < 0 || from < 0)
		return to < 0 ? to : from;
	fid_proc(from, path);
	return linkat(AT_FDCWD, path, to, q->s[0], AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

static int do_renameat(struct files *f, const struct p9_request *q)
{
	int from = at_of(f, q->n[0]), to = at_of(f, q->n[1]);

	if (to < 0 || from < 0)
		return to < 0 ? to : from;
	return renameat(from, q->s[0], to, q->s[1]) < 0 ? -errno : 0;
}

static int do_unlinkat(struct files *f, const struct p9_request *q)
{
	int at = at_of(f, q->n[0]);

	return at < 0                                                                 ? at
	       : unlinkat(at, q->s[0], q->n[1] & AT_REMOVEDIR ? AT_REMOVEDIR : 0) < 0 ? -errno
										      : 0;
}

static int do_readlink(struct files *f, const struct p9_request *q)
{
	char text[8192];
	int at = at_of(f, q->n[0]);
	ssize_t n = at < 0 ? 0 : readlinkat(at, "", text, sizeof(text));

	if (at < 0 || n < 0)
		return at < 0 ? at : -errno;
	p9_put_text(&f->out, text, (size_t)n);
	return 0;
}

/* ---- attributes ---- */

static void put_time(struct files *f, const struct timespec *t)
{
	p9_put8(&f->out, (uint64_t)t->tv_sec);
	p9_put8(&f->out, (uint64_t)t->tv_nsec);
}

static int do_getattr(struct files *f, const struct p9_request *q)
{
	const struct timespec none = { 0 };
	int at = at_of(f, q->n[0]);
	struct p9_qid id;
	struct stat st;

	if (at < 0 || fstat(at, &st) < 0)
		return at < 0 ? at : -errno;
	id = qid_of(f, &st);
	p9_put8(&f->out, 0x7ff); /* the basic ones */
	p9_put_qid(&f->out, &id);
	p9_put4(&f->out, st.st_mode);
	p9_put4(&f->out, st.st_uid);
	p9_put4(&f->out, st.st_gid);
	p9_put8(&f->out, st.st_nlink);
	p9_put8(&f->out, 0); /* no device is one here */
	p9_put8(&f->out, (uint64_t)st.st_size);
	p9_put8(&f->out, (uint64_t)st.st_blksize);
	p9_put8(&f->out, (uint64_t)st.st_blocks);
	put_time(f, &st.st_atim);
	put_time(f, &st.st_mtim);
	put_time(f, &st.st_ctim);
	put_time(f, &none);
	p9_put8(&f->out, 0);
	p9_put8(&f->out, 0);
	return 0;
}

enum {
	SET_MODE = 1,
	SET_UID = 2,
	SET_GID = 4,
	SET_SIZE = 8,
	SET_ATIME = 16,
	SET_MTIME = 32,
	SET_ATIME_TO = 128,
	SET_MTIME_TO = 256
};

static struct timespec time_of(uint64_t valid, unsigned is_set, unsigned is_given,
			       const uint64_t n[2])
{
	if (!(valid & is_set))
		return (struct timespec){ .tv_nsec = UTIME_OMIT };
	if (!(valid & is_given))
		return (struct timespec){ .tv_nsec = UTIME_NOW };
	return (struct timespec){ .tv_sec = (time_t)n[0], .tv_nsec = (long)(n[1] % 1000000000) };
}

static int do_setattr(struct files *f, const struct p9_request *q)
{
	int at = at_of(f, q->n[0]);
	uint64_t valid = q->n[1];
	struct timespec times[2] = { time_of(valid, SET_ATIME, SET_ATIME_TO, q->n + 6),
				     time_of(valid, SET_MTIME, SET_MTIME_TO, q->n + 8) };
	char path[FID_PROC];

	if (at < 0)
		return at;
	fid_proc(at, path);
	if (valid & (SET_UID | SET_GID) &&
	    fchownat(at, "", valid & SET_UID ? (uid_t)q->n[3] : (uid_t)-1,
		     valid & SET_GID ? (gid_t)q->n[4] : (gid_t)-1, AT_EMPTY_PATH) < 0)
		return -errno;
	if (valid & SET_MODE && fchmodat(AT_FDCWD, path, (mode_t)q->n[2] & 01777, 0) < 0)
		return -errno;
	if (valid & SET_SIZE) {
		if (q->n[5] > INT64_MAX || !may_open(at))
			return -EINVAL;
		if (truncate(path, (off_t)q->n[5]) < 0)
			return -errno;
	}
	if (valid & (SET_ATIME | SET_MTIME) && utimensat(at, "", times, AT_EMPTY_PATH) < 0)
		return -errno;
	return 0;
}

static int do_statfs(struct files *f, const struct p9_request *q)
{
	int at = at_of(f, q->n[0]);
	struct statfs fs;

	if (at < 0 || fstatfs(at, &fs) < 0)
		return at < 0 ? at : -errno;
	p9_put4(&f->out, 0x01021997);
	p9_put4(&f->out, (uint32_t)fs.f_bsize);
	p9_put8(&f->out, fs.f_blocks);
	p9_put8(&f->out, fs.f_bfree);
	p9_put8(&f->out, fs.f_bavail);
	p9_put8(&f->out, fs.f_files);
	p9_put8(&f->out, fs.f_ffree);
	p9_put8(&f->out, 0);
	p9_put4(&f->out, (uint32_t)fs.f_namelen);
	return 0;
}

/* ---- all of them ---- */

static const struct {
	uint8_t type;
	int (*fn)(struct files *f, const struct p9_request *q);
} acts[] = {
	{ P9_STATFS, do_statfs },     { P9_LOPEN, do_lopen },         { P9_LCREATE, do_lcreate },
	{ P9_SYMLINK, do_symlink },   { P9_MKNOD, do_mknod },         { P9_RENAME, do_unknown },
	{ P9_READLINK, do_readlink }, { P9_GETATTR, do_getattr },     { P9_SETATTR, do_setattr },
	{ P9_XATTRWALK, do_unknown }, { P9_XATTRCREATE, do_unknown }, { P9_READDIR, do_readdir },
	{ P9_FSYNC, do_fsync },       { P9_LOCK, do_lock },           { P9_GETLOCK, do_getlock },
	{ P9_LINK, do_link },         { P9_MKDIR, do_mkdir },         { P9_RENAMEAT, do_renameat },
	{ P9_UNLINKAT, do_unlinkat }, { P9_VERSION, do_version },     { P9_AUTH, do_unknown },
	{ P9_ATTACH, do_attach },     { P9_FLUSH, do_flush },         { P9_WALK, do_walk },
	{ P9_READ, do_read },         { P9_WRITE, do_write },         { P9_CLUNK, do_clunk },
	{ P9_REMOVE, do_remove },
};

static int act(struct files *f, const struct p9_request *q)
{
	if (q->is_bad_name)
		return -EINVAL;
	if (!f->is_open && q->type != P9_VERSION)
		return -EPROTO;
	for (size_t i = 0; i < ARRAY_LEN(acts); i++)
		if (acts[i].type == q->type)
			return acts[i].fn(f, q);
	return -EOPNOTSUPP;
}

int files_answer(struct files *f, const void *p, size_t n)
{
	_cleanup_(p9_done) struct p9_request q = { 0 };
	int r = p9_parse(p, n, &q);

	if (r < 0)
		return r;
	p9_begin(&f->out, q.type, q.tag);
	r = act(f, &q);
	if (r < 0)
		p9_error(&f->out, q.tag, -r);
	else
		p9_end(&f->out);
	return 0;
}

int files_init(struct files *f, int take_root, size_t most)
{
	*f = (struct files){ .out = BUF(P9_MSIZE + KIB) };
	return fids_init(&f->fids, take_root, most);
}

void files_done(struct files *f)
{
	fids_done(&f->fids);
	buf_done(&f->out);
}
