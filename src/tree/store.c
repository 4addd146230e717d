/* SPDX-License-Identifier: Apache-2.0 */
/* tree/store.c - where checkpoints and contents lie
 *
 * Order makes it safe against kill -9 and power loss: contents first, on disk under their names; then the index, on
 * disk and renamed. A checkpoint exists when its index has its name, and then all it needs does too. What was being
 * written when we died has a name that begins with a dot and goes when the store is opened next. Removing is the
 * other way round: the index first, contents when no index needs them.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>

#include "tree/store.h"

#include "base/num.h"
#include "base/path.h"

#define NEW_NAME ".new"
#define SEAL "seal"
#define PENDING "pending"
#define FEW 64

static const char *const folders[] = { "packs", "objects", "checkpoints" };

void store_hex(const uint8_t hash[static SHA256_BYTES], char ret[static SHA256_HEX_BYTES])
{
	static const char hex[] = "0123456789abcdef";

	for (size_t i = 0; i < SHA256_BYTES; i++) {
		ret[2 * i] = hex[hash[i] >> 4];
		ret[2 * i + 1] = hex[hash[i] & 15];
	}
	ret[SHA256_HEX_BYTES - 1] = '\0';
}

/* ---- opening ---- */

static int open_folder(const struct store *s, const char *name, struct err *e)
{
	int fd = openat(s->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? err_sys(e, "'%s/%s'", s->path, name) : fd;
}

/* Calls fn for each name that does not begin with a dot, or, with is_new, for each that does. */
static int each_name(const struct store *s, const char *folder, bool is_new,
		     void (*fn)(void *arg, int dir, const char *name), void *arg, struct err *e)
{
	int fd = open_folder(s, folder, e);
	struct dirent *en;
	DIR *d;

	if (fd < 0)
		return fd;
	d = fdopendir(fd);
	if (d == NULL) {
		fd_close(fd);
		return err_sys(e, "'%s/%s'", s->path, folder);
	}
	while ((en = readdir(d)) != NULL)
		if (!str_eq(en->d_name, ".") && !str_eq(en->d_name, "..") &&
		    (en->d_name[0] == '.') == is_new)
			fn(arg, dirfd(d), en->d_name);
	(void)closedir(d);
	return 0;
}

static void remove_name(void *arg, int dir, const char *name)
{
	(void)unlinkat(dir, name, 0); /* tried again at the next opening */
}

static void store_freep(struct store **s)
{
	store_close(*s);
}

int store_open(const char *path, bool may_wait, struct store **ret, struct err *e)
{
	_cleanup_(store_freep) struct store *s = mem_new(1, sizeof(*s));
	int r = path_make(path, 0700);

	s->dir = s->lock = s->out = FD_NONE;
	s->path = mem_str(path);
	if (r < 0)
		return err_set(e, ERR_SYSTEM, -r, "'%s': %s", path, strerrordesc_np(-r));
	s->dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s->dir < 0)
		return err_sys(e, "'%s'", path);
	for (size_t i = 0; i < ARRAY_LEN(folders); i++)
		if (mkdirat(s->dir, folders[i], 0700) < 0 && errno != EEXIST)
			return err_sys(e, "'%s/%s'", path, folders[i]);
	s->lock = openat(s->dir, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (s->lock < 0)
		return err_sys(e, "'%s/lock'", path);
	while (flock(s->lock, LOCK_EX | (may_wait ? 0 : LOCK_NB)) < 0)
		if (errno != EINTR)
			return err_set(e, ERR_CONFLICT, EBUSY,
				       "another vitrine is at work on the checkpoints of this "
				       "directory");
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(folders); i++)
		r = each_name(s, folders[i], true, remove_name, NULL, e);
	if (r < 0)
		return r;
	*ret = take(s);
	return 0;
}

void store_close(struct store *s)
{
	if (s == NULL)
		return;
	packs_done(s);
	fd_close(s->dir);
	fd_close(s->lock);
	free(s->path);
	free(s);
}

/* ---- files of our own ---- */

static int replace(int dir, const char *name, const struct buf *b, bool is_synced, struct err *e)
{
	_close_ int fd =
		openat(dir, NEW_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : io_write_all(fd, buf_cstr(b), b->n);

	if (r == 0 && ((is_synced && fdatasync(fd) < 0) || renameat(dir, NEW_NAME, dir, name) < 0 ||
		       (is_synced && fsync(dir) < 0)))
		r = -errno;
	if (r < 0) {
		(void)unlinkat(dir, NEW_NAME, 0);
		errno = -r;
		return err_sys(e, "write '%s'", name);
	}
	return 0;
}

int tree_load(int dir, const char *name, struct tree_index *ret, struct err *e)
{
	_close_ int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	_free_ char *p = NULL;
	struct stat st;
	int r;

	if (fd < 0 && errno == ENOENT)
		return err_set(e, ERR_NOTFOUND, ENOENT, "there is no checkpoint %s", name);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "checkpoint %s", name);
	if (!S_ISREG(st.st_mode) || st.st_size < 0 || (uint64_t)st.st_size > TREE_FILE_MAX)
		return err_set(e, ERR_SYSTEM, EBADMSG, "checkpoint %s: not an index", name);
	p = mem_grow(NULL, (size_t)st.st_size + 1, 1);
	if (content_read(fd, p, (size_t)st.st_size, 0) != (ssize_t)st.st_size)
		return err_set(e, ERR_SYSTEM, EIO, "checkpoint %s cannot be read", name);
	r = tree_decode_take(take(p), (size_t)st.st_size, ret, e);
	return r < 0 ? err_wrap(e, r, "checkpoint %s", name) : 0;
}

int tree_save(int dir, const char *name, const struct tree_index *x, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(TREE_FILE_MAX);
	int r = tree_encode(x, &b, e);

	return r < 0 ? r : replace(dir, name, &b, x->kind != TREE_SEAL, e);
}

/* ---- checkpoints ---- */

struct list {
	uint64_t *v;
	size_t n, cap;
};

static void add_id(void *arg, int dir, const char *name)
{
	struct list *l = arg;
	struct err ignored;
	uint64_t id;

	if (num_parse(name, 1, INT64_MAX, &id, &ignored) < 0)
		return;
	vec_reserve(l->v, l->n, l->cap);
	l->v[l->n++] = id;
}

static int by_id(const void *a, const void *b)
{
	uint64_t x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return x < y ? -1 : x > y;
}

int store_list(struct store *s, uint64_t **ret, size_t *ret_n, struct err *e)
{
	struct list l = { 0 };
	int r = each_name(s, "checkpoints", false, add_id, &l, e);

	if (r < 0) {
		free(l.v);
		return r;
	}
	if (l.n > 0)
		qsort(l.v, l.n, sizeof(*l.v), by_id);
	*ret = l.v;
	*ret_n = l.n;
	return 0;
}

int store_load(struct store *s, uint64_t id, struct tree_index *ret, struct err *e)
{
	_close_ int dir = open_folder(s, "checkpoints", e);
	char name[24];

	if (dir < 0)
		return dir;
	(void)snprintf(name, sizeof(name), "%llu", (unsigned long long)id);
	return tree_load(dir, name, ret, e);
}

int store_commit(struct store *s, struct tree_index *x, struct err *e)
{
	_close_ int dir = open_folder(s, "checkpoints", e);
	_free_ uint64_t *ids = NULL;
	size_t n = 0;
	char name[24];
	int r;

	if (dir < 0)
		return dir;
	r = store_list(s, &ids, &n, e);
	if (r < 0)
		return r;
	x->id = n > 0 ? ids[n - 1] + 1 : 1;
	(void)snprintf(name, sizeof(name), "%llu", (unsigned long long)x->id);
	r = pack_commit(s, name, e);
	return r < 0 ? r : tree_save(dir, name, x, e);
}

int store_resave(struct store *s, const struct tree_index *x, struct err *e)
{
	_close_ int dir = open_folder(s, "checkpoints", e);
	char name[24];

	if (dir < 0)
		return dir;
	(void)snprintf(name, sizeof(name), "%llu", (unsigned long long)x->id);
	return tree_save(dir, name, x, e);
}

int store_remove(struct store *s, uint64_t id, struct err *e)
{
	_close_ int dir = open_folder(s, "checkpoints", e);
	char name[24];

	if (dir < 0)
		return dir;
	(void)snprintf(name, sizeof(name), "%llu", (unsigned long long)id);
	if (unlinkat(dir, name, 0) < 0)
		return errno == ENOENT
			       ? err_set(e, ERR_NOTFOUND, ENOENT, "there is no checkpoint %s", name)
			       : err_sys(e, "remove checkpoint %s", name);
	return fsync(dir) < 0 ? err_sys(e, "remove checkpoint %s", name) : 0;
}

int store_load_seal(struct store *s, struct tree_index *ret, struct err *e)
{
	return tree_load(s->dir, SEAL, ret, e);
}

int store_save_seal(struct store *s, const struct tree_index *x, struct err *e)
{
	return tree_save(s->dir, SEAL, x, e);
}

int store_pending(struct store *s, uint64_t *ret_target, uint64_t *ret_present)
{
	_close_ int fd = openat(s->dir, PENDING, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	uint64_t v[2];

	*ret_target = *ret_present = 0;
	if (fd < 0 || content_read(fd, (char *)v, sizeof(v), 0) != (ssize_t)sizeof(v))
		return 0;
	*ret_target = v[0];
	*ret_present = v[1];
	return 0;
}

int store_set_pending(struct store *s, uint64_t target, uint64_t present, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(64);

	buf_add(&b, &target, sizeof(target));
	buf_add(&b, &present, sizeof(present));
	if (target > 0)
		return replace(s->dir, PENDING, &b, true, e);
	if (unlinkat(s->dir, PENDING, 0) < 0 && errno != ENOENT)
		return err_sys(e, "'%s/%s'", s->path, PENDING);
	return 0;
}

/* ---- large objects ---- */

static int put_large(struct store *s, int fd, struct tree_entry *en, uint64_t *slack,
		     uint64_t *ret_new, struct err *e)
{
	_close_ int objects = open_folder(s, "objects", e);
	_close_ int out = FD_NONE;
	char name[SHA256_HEX_BYTES];
	struct stat st;
	int r;

	if (objects < 0)
		return objects;
	out = openat(objects, NEW_NAME, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (out < 0)
		return err_sys(e, "'%s/objects'", s->path);
	r = content_copy(fd, out, en->size, slack, en->hash);
	if (r < 0) {
		(void)unlinkat(objects, NEW_NAME, 0);
		errno = -r;
		return r == -ESTALE || r == -EFBIG ? r : err_sys(e, "save '%s'", en->path);
	}
	store_hex(en->hash, name);
	if (faccessat(objects, name, F_OK, 0) == 0) {
		(void)unlinkat(objects, NEW_NAME, 0);
		return 0;
	}
	if (fdatasync(out) < 0 || fstat(out, &st) < 0 ||
	    renameat(objects, NEW_NAME, objects, name) < 0 || fsync(objects) < 0)
		return err_sys(e, "save '%s'", en->path);
	*ret_new = (uint64_t)st.st_blocks * 512;
	return 0;
}

int store_put(struct store *s, int fd, struct tree_entry *en, uint64_t *slack, uint64_t *ret_new,
	      struct err *e)
{
	_free_ char *p = NULL;
	ssize_t got;
	int r;

	*ret_new = 0;
	if (en->size > PACK_OBJECT_MAX)
		return put_large(s, fd, en, slack, ret_new, e);
	p = mem_grow(NULL, (size_t)en->size + 1, 1);
	got = content_read(fd, p, (size_t)en->size, 0);
	if (got < 0) {
		errno = (int)-got;
		return err_sys(e, "read '%s'", en->path);
	}
	en->size = (uint64_t)got;
	/* For a few files the tables of what is there already cost more than storing a content twice. */
	r = ++s->n_put > FEW ? pack_load_all(s, e) : 0;
	if (r < 0)
		return r;
	sha256(p, (size_t)got, en->hash);
	if (pack_find(s, en->hash))
		return 0;
	*ret_new = (uint64_t)got;
	return pack_add(s, en->hash, p, (size_t)got, e);
}

/* ---- reading contents ---- */

static int open_large(struct store *s, const uint8_t *hash, struct err *e)
{
	char hex[SHA256_HEX_BYTES];
	_free_ char *name = NULL;
	int fd;

	store_hex(hash, hex);
	name = mem_fmt("objects/%s", hex);
	fd = openat(s->dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? err_set(e, ERR_SYSTEM, errno, "content %.12s is not in the store", hex)
		      : fd;
}

bool store_has(struct store *s, const uint8_t hash[static SHA256_BYTES])
{
	_close_ int fd = FD_NONE;
	struct err ignored;

	if (pack_load_all(s, &ignored) == 0 && pack_find(s, hash))
		return true;
	fd = open_large(s, hash, &ignored);
	return fd >= 0;
}

int store_read(struct store *s, const uint8_t hash[static SHA256_BYTES], uint64_t size,
	       struct buf *ret, struct err *e)
{
	const struct place *at;
	_free_ char *p = NULL;
	_close_ int fd = FD_NONE;
	int r = pack_load_all(s, e);

	if (r < 0)
		return r;
	at = pack_find(s, hash);
	if (size > ret->max || (at && at->n != size))
		return err_set(e, ERR_SYSTEM, EMSGSIZE, "content of %llu bytes is too long",
			       (unsigned long long)size);
	p = mem_grow(NULL, (size_t)size + 1, 1);
	if (at) {
		r = pack_read(s, at, p, e);
	} else {
		fd = open_large(s, hash, e);
		r = fd < 0 ? fd : 0;
		if (r == 0 && content_read(fd, p, (size_t)size, 0) != (ssize_t)size)
			r = err_set(e, ERR_SYSTEM, EBADMSG, "content is cut short");
	}
	if (r == 0)
		buf_add(ret, p, (size_t)size);
	return r;
}

int store_write_to(struct store *s, const struct tree_entry *en, int fd, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(PACK_OBJECT_MAX);
	_close_ int from = FD_NONE;
	uint8_t sum[SHA256_BYTES];
	int r;

	if (en->size <= PACK_OBJECT_MAX) {
		r = store_read(s, en->hash, en->size, &b, e);
		if (r == 0 && (r = io_write_all(fd, buf_cstr(&b), b.n)) < 0) {
			errno = -r;
			r = err_sys(e, "write '%s'", en->path);
		}
		return r;
	}
	from = open_large(s, en->hash, e);
	if (from < 0)
		return from;
	r = content_copy(from, fd, en->size, NULL, sum);
	if (r < 0) {
		errno = -r;
		return err_sys(e, "write '%s'", en->path);
	}
	if (memcmp(sum, en->hash, sizeof(sum)) != 0)
		return err_set(e, ERR_SYSTEM, EBADMSG, "saved content of '%s' is damaged",
			       en->path);
	return 0;
}
