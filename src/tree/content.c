/* SPDX-License-Identifier: Apache-2.0 */
/* tree/content.c - the bytes of a file and its extended attributes
 *
 * A file longer than one chunk is hashed as the hash of its chunks' hashes. A chunk that is a hole has the hash of
 * zeros without being read, so a sparse file costs what it holds.
 */
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>

#include "tree/content.h"

#include "base/sabotage.h"
#include "tree/text.h"

#define XATTRS_MAX (64 * KIB)
#define CONTENT_MAX (16 * TREE_SIZE_MAX) /* what earlier versions have saved */

/* ---- hashing ---- */

ssize_t content_read(int fd, char *p, size_t n, uint64_t at)
{
	size_t got = 0;

	while (got < n) {
		ssize_t r = pread(fd, p + got, n - got, (off_t)(at + got));

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (r == 0)
			break;
		got += (size_t)r;
	}
	return (ssize_t)got;
}

/* The next byte from `at` that is no hole; `size` when there is none. */
static uint64_t next_data(int fd, uint64_t at, uint64_t size)
{
	off_t data = sabotaged("holes") ? (off_t)at : lseek(fd, (off_t)at, SEEK_DATA);

	if (data < 0)
		return errno == ENXIO ? size : at;
	return (uint64_t)data;
}

void content_zero_hash(size_t n, uint8_t ret[static SHA256_BYTES])
{
	static uint8_t known[SHA256_BYTES];
	static bool is_known;
	_free_ char *zeros = NULL;

	if (n == TREE_CHUNK && is_known) {
		memcpy(ret, known, SHA256_BYTES);
		return;
	}
	zeros = mem_new(n, 1);
	sha256(zeros, n, ret);
	if (n == TREE_CHUNK) {
		memcpy(known, ret, SHA256_BYTES);
		is_known = true;
	}
}

struct chunk {
	char *p; /* TREE_CHUNK bytes */
	uint64_t at;
	size_t n;
};

static int read_exactly(int fd, char *p, size_t n, uint64_t at)
{
	ssize_t got = content_read(fd, p, n, at);

	return got == (ssize_t)n ? 0 : got < 0 ? (int)got : -ESTALE; /* cut while we read */
}

/* The parts of a chunk that are no hole, each shown to `fn`; the rest is zeros. *ret_data: how many bytes they have. */
static int read_parts(int fd, const struct chunk *c, content_fn *fn, void *arg, size_t *ret_data)
{
	uint64_t end = c->at + c->n, hole = c->at;
	size_t sum = 0;

	memset(c->p, 0, c->n);
	for (;;) {
		uint64_t data = next_data(fd, hole, end);
		size_t n;
		off_t to;
		int r;

		if (data >= end)
			break;
		to = sabotaged("holes") ? -1 : lseek(fd, (off_t)data, SEEK_HOLE);
		hole = to < 0 || (uint64_t)to > end ? end : (uint64_t)to;
		if (hole <= data)
			break;
		n = (size_t)(hole - data);
		r = read_exactly(fd, c->p + (data - c->at), n, data);
		if (r == 0 && fn)
			r = fn(arg, c->p + (data - c->at), n, data);
		if (r < 0)
			return r;
		sum += n;
	}
	*ret_data = sum;
	return 0;
}

int content_chunks(int fd, uint64_t size, content_fn *fn, void *arg, uint64_t *slack,
		   uint8_t ret[static SHA256_BYTES])
{
	size_t n = size > CONTENT_MAX ? 0 : (size_t)((size + TREE_CHUNK - 1) / TREE_CHUNK);
	_free_ uint8_t *sums = mem_new(n + 1, SHA256_BYTES);
	_free_ char *p = mem_grow(NULL, TREE_CHUNK, 1);
	uint64_t data = 0;

	if (size > CONTENT_MAX)
		return -EFBIG;
	for (size_t i = 0; i < n; i++) {
		struct chunk c = { .p = p, .at = (uint64_t)i * TREE_CHUNK, .n = TREE_CHUNK };
		size_t part = 0;
		int r;

		if (size - c.at < TREE_CHUNK)
			c.n = (size_t)(size - c.at);
		if (data <= c.at) /* one question for a hole, however long it is */
			data = next_data(fd, c.at, size);
		if (data >= c.at + c.n) {
			content_zero_hash(c.n, sums + i * SHA256_BYTES);
			continue;
		}
		r = read_parts(fd, &c, fn, arg, &part);
		if (r < 0)
			return r;
		if (slack && c.n - part > *slack)
			return -EFBIG;
		if (slack)
			*slack -= c.n - part;
		sha256(c.p, c.n, sums + i * SHA256_BYTES);
	}
	sha256(sums, n * SHA256_BYTES, ret);
	return 0;
}

int tree_hash_fd(int fd, uint64_t size, uint8_t ret[static SHA256_BYTES])
{
	return content_hash(fd, size, NULL, ret);
}

int content_hash(int fd, uint64_t size, uint64_t *slack, uint8_t ret[static SHA256_BYTES])
{
	_free_ char *p = NULL;
	ssize_t got;

	sha256_expect_much();
	if (size > TREE_CHUNK)
		return content_chunks(fd, size, NULL, NULL, slack, ret);
	p = mem_grow(NULL, (size_t)size + 1, 1);
	got = content_read(fd, p, (size_t)size, 0);
	if (got != (ssize_t)size)
		return got < 0 ? (int)got : -ESTALE;
	sha256(p, (size_t)size, ret);
	return 0;
}

void tree_hash_bytes(const char *p, size_t n, uint8_t ret[static SHA256_BYTES])
{
	_free_ uint8_t *sums = NULL;
	size_t chunks = (n + TREE_CHUNK - 1) / TREE_CHUNK;

	if (n <= TREE_CHUNK) {
		sha256(p, n, ret);
		return;
	}
	sums = mem_new(chunks, SHA256_BYTES);
	for (size_t i = 0; i < chunks; i++) {
		size_t at = i * TREE_CHUNK;

		sha256(p + at, n - at < TREE_CHUNK ? n - at : TREE_CHUNK, sums + i * SHA256_BYTES);
	}
	sha256(sums, chunks * SHA256_BYTES, ret);
}

/* ---- copying ---- */

struct copy {
	int fd;
};

static int copy_chunk(void *arg, const char *p, size_t n, uint64_t at)
{
	const struct copy *c = arg;

	while (n > 0) {
		ssize_t w = pwrite(c->fd, p, n, (off_t)at);

		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return -errno;
		p += w;
		n -= (size_t)w;
		at += (size_t)w;
	}
	return 0;
}

int content_copy(int from, int to, uint64_t size, uint64_t *slack,
		 uint8_t hash[static SHA256_BYTES])
{
	struct copy c = { .fd = to };
	int r;

	if (ioctl(to, FICLONE, from) == 0) /* which may have grown: no byte without a hash */
		return ftruncate(to, (off_t)size) < 0 ? -errno
						      : content_hash(to, size, slack, hash);
	r = content_chunks(from, size, copy_chunk, &c, slack, hash);
	if (r == 0 && ftruncate(to, (off_t)size) < 0)
		r = -errno;
	return r;
}

/* ---- looking at one file ---- */

int content_open(int root_fd, struct tree_entry *en)
{
	_close_ int fd =
		tree_open(root_fd, en->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	int r;

	if (fd < 0)
		return fd;
	r = content_stat(fd, en);
	return r < 0 ? r : take_fd(fd);
}

/* In this order: whoever opens the file after the second step changes its ctime from what the first step saw. */
int content_stat(int fd, struct tree_entry *en)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ESTALE;
	tree_from_stat(en, &st);
	en->flags &= ~(uint32_t)TREE_STEADY;
	if (!tree_may_be_written(fd))
		en->flags |= TREE_STEADY;
	return 0;
}

bool content_is_too_long(const struct tree_entry *en, struct content_bounds *b)
{
	uint64_t more = en->size > en->alloc ? en->size - en->alloc : 0;

	if (en->size > TREE_SIZE_MAX || more > b->holes)
		return !sabotaged("lengths");
	b->holes -= more;
	return false;
}

void content_settle(int fd, struct tree_entry *en)
{
	struct tree_entry now = { 0 };
	struct stat st;

	if (fstat(fd, &st) == 0)
		tree_from_stat(&now, &st);
	if (now.ctime != en->ctime || now.size != en->size)
		en->flags |= TREE_UNSETTLED;
}

struct hashing {
	const struct tree_index *before;
	struct content_bounds b;
	uint64_t bytes; /* so far */
};

/* Is this content worth its time? What the earlier index knows with this length was within the bounds then. */
static bool is_wanted(struct hashing *h, const struct tree_entry *en)
{
	const struct tree_entry *old = h->before ? tree_find(h->before, en->path) : NULL;
	bool is_known =
		old && S_ISREG(old->mode) && old->size == en->size && !(old->flags & TREE_UNHASHED);

	if (content_is_too_long(en, &h->b))
		return false;
	if (is_known)
		return true;
	h->bytes += en->alloc;
	return h->bytes <= TREE_NEW_MAX;
}

int tree_hash_all(int root_fd, const struct tree_index *before, struct tree_index *x, struct err *e)
{
	struct hashing h = { .before = before, .b = CONTENT_BOUNDS };

	for (size_t i = 0; i < x->n; i++) {
		struct tree_entry *en = &x->v[i];
		_close_ int fd = FD_NONE;
		int r;

		if (!(en->flags & TREE_UNHASHED) || en->flags & TREE_UNSAVED)
			continue;
		if (en->link_of != TREE_NONE) {
			content_follow(x, en);
			continue;
		}
		fd = content_open(root_fd, en);
		r = fd < 0              ? fd
		    : is_wanted(&h, en) ? content_hash(fd, en->size, &h.b.slack, en->hash)
					: -EFBIG;
		if (r < 0)
			continue; /* unreadable, gone or over the bounds: it stays unhashed */
		tree_read_xattrs_fd(fd, x, en);
		content_settle(fd, en);
		en->flags &= ~(uint32_t)TREE_UNHASHED;
	}
	return 0;
}

void content_follow(struct tree_index *x, struct tree_entry *en)
{
	const struct tree_entry *first = &x->v[en->link_of];
	uint32_t keep = en->flags & (TREE_OPAQUE | TREE_SPARSE);

	memcpy(en->hash, first->hash, sizeof(en->hash));
	en->size = first->size;
	en->flags = keep |
		    (first->flags & (TREE_UNSETTLED | TREE_UNSAVED | TREE_UNHASHED | TREE_STEADY));
	en->xattrs = first->xattrs;
	en->xattr_len = first->xattr_len;
}

/* ---- extended attributes ---- */

static bool is_kept(const char *name)
{
	return str_starts(name, "user.") || str_eq(name, "system.posix_acl_access") ||
	       str_eq(name, "system.posix_acl_default");
}

static int by_text(const void *a, const void *b)
{
	const char *x, *y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return strcmp(x, y);
}

static void pack_xattrs(struct tree_index *x, struct tree_entry *en, struct buf *b)
{
	if (b->n == 0 || b->is_over)
		return;
	en->xattrs = text_copy(&x->text, b->p, b->n);
	en->xattr_len = en->xattrs ? (uint32_t)b->n : 0;
}

/* `path` is one of /proc/self/fd, so that descriptors opened with O_PATH will do. */
static void read_xattrs(const char *path, struct tree_index *x, struct tree_entry *en)
{
	_cleanup_(buf_done) struct buf b = BUF(XATTRS_MAX);
	_free_ char *value = NULL;
	char names[4096];
	const char *sorted[128];
	ssize_t n = listxattr(path, names, sizeof(names) - 1);
	size_t count = 0;

	en->xattrs = NULL;
	en->xattr_len = 0;
	if (n <= 0)
		return;
	names[n] = '\0';
	for (const char *p = names; p < names + n && count < ARRAY_LEN(sorted); p += strlen(p) + 1)
		if (is_kept(p))
			sorted[count++] = p;
	if (count == 0)
		return;
	qsort(sorted, count, sizeof(*sorted), by_text);
	value = mem_grow(NULL, XATTRS_MAX, 1);
	for (size_t i = 0; i < count; i++) {
		ssize_t len = getxattr(path, sorted[i], value, XATTRS_MAX);
		uint32_t len32 = (uint32_t)len;

		if (len < 0)
			continue;
		buf_add(&b, sorted[i], strlen(sorted[i]) + 1);
		buf_add(&b, &len32, sizeof(len32));
		buf_add(&b, value, (size_t)len);
	}
	pack_xattrs(x, en, &b);
}

void tree_read_xattrs_fd(int fd, struct tree_index *x, struct tree_entry *en)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	read_xattrs(path, x, en);
}

void tree_read_xattrs(int root_fd, struct tree_index *x, struct tree_entry *en)
{
	_close_ int fd = tree_open(root_fd, en->path, O_PATH | O_NOFOLLOW);

	if (fd >= 0)
		tree_read_xattrs_fd(fd, x, en);
}

static bool has_xattr(const struct tree_entry *en, const char *name)
{
	for (const char *p = en->xattrs; p && p < en->xattrs + en->xattr_len;) {
		uint32_t len;

		if (str_eq(p, name))
			return true;
		p += strlen(p) + 1;
		memcpy(&len, p, sizeof(len));
		p += sizeof(len) + len;
	}
	return false;
}

void tree_write_xattrs(int fd, const struct tree_entry *en)
{
	char path[64], names[4096];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = listxattr(path, names, sizeof(names) - 1);
	if (n > 0)
		names[n] = '\0';
	for (const char *p = names; n > 0 && p < names + n; p += strlen(p) + 1)
		if (is_kept(p) && !has_xattr(en, p))
			(void)removexattr(path, p); /* passed over, see the header */
	for (const char *p = en->xattrs; p && p < en->xattrs + en->xattr_len;) {
		const char *name = p;
		uint32_t len;

		p += strlen(p) + 1;
		memcpy(&len, p, sizeof(len));
		p += sizeof(len);
		if (is_kept(name))
			(void)setxattr(path, name, p, len, 0); /* passed over, see the header */
		p += len;
	}
}
