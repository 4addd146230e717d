/* SPDX-License-Identifier: Apache-2.0 */
/* files/fids.c - see fids.h
 *
 * The saved form is a struct for each fid, its path behind it, and of a file that is open but has no name any more its bytes.
 * It is written and read by this program only, from a file that nobody else can write; it is checked all the same.
 */
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

#include "base/io.h"
#include "files/fids.h"

/* ---- life ---- */

void fid_proc(int fd, char ret[FID_PROC])
{
	(void)snprintf(ret, FID_PROC, "/proc/self/fd/%d", fd);
}

static char *path_of(int fd)
{
	char link[FID_PROC], text[8192];
	ssize_t n;

	fid_proc(fd, link);
	n = readlink(link, text, sizeof(text));
	return n <= 0 || (size_t)n == sizeof(text) ? NULL : mem_strn(text, (size_t)n);
}

int fids_init(struct fids *f, int take_root, size_t files)
{
	*f = (struct fids){ .root = take_root, .most = files / 2 };
	f->root_path = path_of(take_root);
	return f->root_path ? 0 : -EIO;
}

void fids_done(struct fids *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->v[i].is_used)
			fids_drop(f, &f->v[i]);
	free(f->v);
	free(f->root_path);
	fd_close(f->root);
}

struct fid *fids_get(struct fids *f, uint64_t id)
{
	if (id >= f->n || !f->v[id].is_used)
		return NULL;
	f->v[id].used = ++f->clock;
	return &f->v[id];
}

static void let_at_go(struct fids *f, struct fid *fid)
{
	if (fid->at >= 0)
		f->n_at--;
	fd_close(take_fd(fid->at));
}

void fids_drop(struct fids *f, struct fid *fid)
{
	let_at_go(f, fid);
	fd_close(fid->open);
	free(fid->path);
	*fid = (struct fid){ .at = FD_NONE, .open = FD_NONE };
}

/* ---- a path instead of a descriptor ---- */

/* Where it lies below the root; NULL: nowhere any more. */
static char *relative(const struct fids *f, int fd)
{
	_free_ char *path = path_of(fd);
	size_t n = strlen(f->root_path);
	struct stat st;

	if (path == NULL || fstat(fd, &st) < 0 || st.st_nlink == 0)
		return NULL;
	if (str_eq(path, f->root_path))
		return mem_str("");
	if (str_eq(f->root_path, "/"))
		return mem_str(path + 1);
	return strncmp(path, f->root_path, n) == 0 && path[n] == '/' ? mem_str(path + n + 1) : NULL;
}

static int look_up(const struct fids *f, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
					   RESOLVE_NO_MAGICLINKS };
	long fd = path[0] ? syscall(SYS_openat2, f->root, path, &how, sizeof(how))
			  : fcntl(f->root, F_DUPFD_CLOEXEC, 3);

	return fd < 0 ? -errno : (int)fd;
}

/* The one that was used longest ago and is not open becomes its path. One sweep makes room for many. */
static void make_room(struct fids *f)
{
	uint64_t old = f->clock > f->most / 2 ? f->clock - f->most / 2 : 0;

	for (size_t i = 0; i < f->n && f->n_at >= f->most / 2; i++) {
		struct fid *fid = &f->v[i];

		if (!fid->is_used || fid->at < 0 || fid->open >= 0 || fid->used > old)
			continue;
		free(fid->path);
		fid->path = relative(f, fid->at);
		if (fid->path)
			let_at_go(f, fid);
	}
}

static void set_at(struct fids *f, struct fid *fid, int take_at)
{
	struct stat st = { 0 };

	if (f->n_at >= f->most)
		make_room(f);
	(void)fstat(take_at, &st); /* a descriptor of ours */
	fid->at = take_at;
	fid->dev = st.st_dev;
	fid->ino = st.st_ino;
	f->n_at++;
}

int fid_at(struct fids *f, struct fid *fid)
{
	struct stat st;
	int fd;

	if (fid->at >= 0 || fid->is_lost)
		return fid->is_lost ? -ESTALE : fid->at;
	fd = fid->path ? look_up(f, fid->path) : -ESTALE;
	if (fd < 0)
		return fd == -EMFILE ? fd : -ESTALE;
	if (fstat(fd, &st) < 0 || st.st_dev != fid->dev || st.st_ino != fid->ino) {
		fd_close(fd);
		return -ESTALE;
	}
	set_at(f, fid, fd);
	return fd;
}

static int reach(struct fids *f, uint64_t id)
{
	size_t n = f->n ? f->n : 64;

	if (id >= FIDS_MAX)
		return -ENFILE;
	while (n <= id)
		n *= 2;
	if (n > f->n) {
		struct fid *v = mem_new(n, sizeof(*v));

		if (f->n)
			memcpy(v, f->v, f->n * sizeof(*v));
		for (size_t i = f->n; i < n; i++)
			v[i] = (struct fid){ .at = FD_NONE, .open = FD_NONE };
		free(f->v);
		f->v = v;
		f->n = n;
	}
	return f->v[id].is_used ? -EINVAL : 0;
}

int fids_add(struct fids *f, uint64_t id, int take_at)
{
	int r = reach(f, id);

	if (r < 0) {
		fd_close(take_at);
		return r;
	}
	f->v[id].is_used = true;
	f->v[id].used = ++f->clock;
	set_at(f, &f->v[id], take_at);
	return 0;
}

void fid_move(struct fids *f, struct fid *fid, int take_at)
{
	let_at_go(f, fid);
	free(fid->path);
	fid->path = NULL;
	set_at(f, fid, take_at);
}

/* ---- saved ---- */

#define SAVED_MAGIC 0x3144494656545256U /* "VRTVFID1" */

struct saved {
	uint64_t magic;
	uint32_t id, flags, mode, n_path;
	uint64_t n_bytes; /* of an orphan */
	uint8_t is_open, is_lost, is_orphan, spare[5];
};

static int put_bytes(int to, int from, uint64_t n)
{
	char chunk[64 * KIB];

	for (uint64_t at = 0; at < n;) {
		ssize_t r = pread(from, chunk, sizeof(chunk), (off_t)at);

		if (r <= 0 || io_write_all(to, chunk, (size_t)r) < 0)
			return r == 0 ? -EIO : -errno;
		at += (uint64_t)r;
	}
	return 0;
}

static bool is_orphan(const struct fid *fid, const struct stat *st)
{
	return fid->open >= 0 && S_ISREG(st->st_mode) && st->st_size >= 0 &&
	       (uint64_t)st->st_size <= FIDS_ORPHAN_MAX;
}

/* What the file's bytes are read through: it may be open for writing only. */
static int readable(const struct fid *fid)
{
	char path[FID_PROC];

	fid_proc(fid->open, path);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static int save_one(struct fids *f, size_t id, int to, size_t *lost)
{
	struct fid *fid = &f->v[id];
	int at = fid_at(f, fid), r;
	_free_ char *path = at < 0 ? NULL : relative(f, at);
	struct saved s = { .magic = SAVED_MAGIC,
			   .id = (uint32_t)id,
			   .flags = fid->flags,
			   .is_open = fid->open >= 0 };
	_close_ int from = FD_NONE;
	struct stat st = { 0 };

	if (at >= 0)
		(void)fstat(at, &st); /* a descriptor of ours */
	s.mode = st.st_mode;
	if (path) {
		s.n_path = (uint32_t)strlen(path);
	} else if (at >= 0 && is_orphan(fid, &st) && (from = readable(fid)) >= 0) {
		s.is_orphan = 1;
		s.n_bytes = (uint64_t)st.st_size;
	} else {
		s.is_lost = 1;
		*lost += 1;
	}
	r = io_write_all(to, &s, sizeof(s));
	if (r == 0 && s.n_path)
		r = io_write_all(to, path, s.n_path);
	return r == 0 && s.is_orphan ? put_bytes(to, from, s.n_bytes) : r;
}

int fids_save(struct fids *f, int to, size_t *ret_lost, struct err *e)
{
	int r = 0;

	*ret_lost = 0;
	for (size_t i = 0; r == 0 && i < f->n; i++)
		if (f->v[i].is_used)
			r = save_one(f, i, to, ret_lost);
	return r < 0 ? err_set(e, ERR_SYSTEM, -r, "open files: %s", strerrordesc_np(-r)) : 0;
}

/* ---- and back ---- */

static int reopen(struct fid *fid, uint32_t flags)
{
	char path[FID_PROC];

	fid_proc(fid->at, path);
	fid->open = open(path, (int)(flags & ~(unsigned)(O_TRUNC | O_CREAT | O_EXCL)) | O_NONBLOCK |
				       O_NOCTTY | O_CLOEXEC);
	fid->flags = flags;
	return fid->open < 0 ? -errno : 0;
}

static int take_bytes(int from, int to, uint64_t n)
{
	char chunk[64 * KIB];

	while (n > 0) {
		size_t want = n < sizeof(chunk) ? (size_t)n : sizeof(chunk);
		ssize_t r = io_read(from, chunk, want);

		if (r <= 0)
			return -EIO;
		if (to >= 0 && io_write_all(to, chunk, (size_t)r) < 0)
			return -ENOSPC;
		n -= (uint64_t)r;
	}
	return 0;
}

/* A file that never had a name again, in memory: whoever has it open does not see the difference. */
static int load_orphan(struct fids *f, const struct saved *s, int from)
{
	int fd = (int)syscall(SYS_memfd_create, "orphan", 1U /* MFD_CLOEXEC */);
	char path[FID_PROC];
	int r = take_bytes(from, fd, s->n_bytes), at;

	if (r == 0 && fd < 0)
		r = -ENOSPC;
	if (r == 0) {
		fid_proc(fd, path);
		at = open(path, O_PATH | O_CLOEXEC);
		r = at < 0 ? -errno : fids_add(f, s->id, at);
	}
	if (r < 0) {
		fd_close(fd);
		return r;
	}
	f->v[s->id].open = fd;
	f->v[s->id].flags = s->flags;
	return 0;
}

static int load_path(struct fids *f, const struct saved *s, const char *path)
{
	int at = look_up(f, path), r;
	struct stat st;

	if (at < 0)
		return at;
	if (fstat(at, &st) < 0 || (st.st_mode & S_IFMT) != (s->mode & S_IFMT)) {
		fd_close(at);
		return -ESTALE;
	}
	r = fids_add(f, s->id, at);
	if (r == 0 && s->is_open && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))) {
		r = reopen(&f->v[s->id], s->flags);
		if (r < 0)
			fids_drop(f, &f->v[s->id]);
	}
	return r;
}

static int load_one(struct fids *f, const struct saved *s, int from, size_t *lost)
{
	_free_ char *path = mem_new(s->n_path + 1UL, 1);
	int r = s->n_path ? (io_read(from, path, s->n_path) == (ssize_t)s->n_path ? 0 : -EIO) : 0;

	if (r < 0)
		return r;
	if (s->is_orphan)
		r = load_orphan(f, s, from);
	else
		r = s->is_lost ? -ESTALE : load_path(f, s, path);
	if (r == 0)
		return 0;
	*lost += 1;
	r = reach(f, s->id);
	if (r == 0) {
		f->v[s->id].is_used = f->v[s->id].is_lost = true;
		f->v[s->id].flags = s->flags;
	}
	return r;
}

int fids_load(struct fids *f, int from, size_t *ret_lost, struct err *e)
{
	struct saved s;
	ssize_t n;
	int r = 0;

	*ret_lost = 0;
	while (r == 0 && (n = io_read(from, &s, sizeof(s))) != 0) {
		if (n != (ssize_t)sizeof(s) || s.magic != SAVED_MAGIC || s.n_path > 8192)
			r = -EBADMSG;
		else
			r = load_one(f, &s, from, ret_lost);
	}
	return r < 0 ? err_set(e, ERR_SYSTEM, -r, "open files: %s", strerrordesc_np(-r)) : 0;
}
