/* SPDX-License-Identifier: Apache-2.0 */
/* core/shown.c - see shown.h */
#include "core/shown.h"

#include <fcntl.h>

#include "base/io.h"

#define FILE_NAME "ws.shown"
#define FILE_NEW "ws.shown.new"
#define FILE_MAX ((TREE_ENTRIES_MAX + 1) * SHA256_BYTES)

static int by_bytes(const void *a, const void *b)
{
	return memcmp(a, b, SHA256_BYTES);
}

static void put_number(struct buf *b, uint64_t n)
{
	buf_add(b, &n, sizeof(n));
}

/* Every field has a length of its own or ends with a NUL that it cannot contain. */
static void hash_change(const struct change *c, uint8_t ret[static SHA256_BYTES])
{
	const struct tree_entry *en = c->b ? c->b : c->a;
	_cleanup_(buf_done) struct buf b = BUF(MIB);

	buf_add(&b, en->path, strlen(en->path) + 1);
	put_number(&b, c->b ? c->b->mode : 0);
	if (c->b && S_ISREG(en->mode)) {
		put_number(&b, en->size);
		put_number(&b, en->flags & (TREE_UNHASHED | TREE_CLOSED));
		buf_add(&b, en->hash, sizeof(en->hash));
	} else if (c->b && S_ISLNK(en->mode)) {
		buf_add(&b, en->target, en->target_len);
	}
	sha256(buf_cstr(&b), b.n, ret);
}

static void sort(struct shown *s)
{
	size_t n = 0;

	if (s->n > 0)
		qsort(s->v, s->n, SHA256_BYTES, by_bytes);
	for (size_t i = 0; i < s->n; i++)
		if (n == 0 || memcmp(s->v[n - 1], s->v[i], SHA256_BYTES) != 0)
			memmove(s->v[n++], s->v[i], SHA256_BYTES);
	s->n = n;
}

void shown_of(const struct tree_index *before, const struct tree_index *after, char *const *only,
	      struct shown *ret)
{
	_cleanup_(changes_done) struct changes c = { 0 };

	*ret = (struct shown){ 0 };
	tree_compare(before, after, false, &c);
	for (size_t i = 0; i < c.n; i++) {
		const char *path = c.v[i].b ? c.v[i].b->path : c.v[i].a->path;

		if (!tree_is_among(only, path))
			continue;
		vec_reserve(ret->v, ret->n, ret->cap);
		hash_change(&c.v[i], ret->v[ret->n++]);
	}
	sort(ret);
}

void shown_join(struct shown *s, const struct shown *more)
{
	for (size_t i = 0; i < more->n && s->n < TREE_ENTRIES_MAX; i++) {
		vec_reserve(s->v, s->n, s->cap);
		memcpy(s->v[s->n++], more->v[i], SHA256_BYTES);
	}
	sort(s);
}

bool shown_has(const struct shown *s, const struct change *c)
{
	uint8_t sum[SHA256_BYTES];

	hash_change(c, sum);
	return s->n > 0 && bsearch(sum, s->v, s->n, SHA256_BYTES, by_bytes) != NULL;
}

void shown_token(const struct shown *s, char ret[static SHOWN_TOKEN_BYTES])
{
	char hex[SHA256_HEX_BYTES];

	sha256_hex(s->v ? (const void *)s->v : "", s->n * SHA256_BYTES, hex);
	memcpy(ret, hex, SHOWN_TOKEN_BYTES - 1);
	ret[SHOWN_TOKEN_BYTES - 1] = '\0';
}

void shown_done(struct shown *s)
{
	free(s->v);
	*s = (struct shown){ 0 };
}

void shown_load(int dir, struct shown *ret)
{
	_cleanup_(buf_done) struct buf b = BUF(FILE_MAX);
	_close_ int fd = openat(dir, FILE_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct err ignored = ERR_INIT;

	*ret = (struct shown){ 0 };
	if (fd < 0 || io_read_fd(fd, &b, &ignored) < 0 || b.n % SHA256_BYTES)
		return;
	for (size_t at = 0; at < b.n; at += SHA256_BYTES) {
		vec_reserve(ret->v, ret->n, ret->cap);
		memcpy(ret->v[ret->n++], b.p + at, SHA256_BYTES);
	}
	sort(ret);
}

int shown_save(int dir, const struct shown *s, struct err *e)
{
	_close_ int fd =
		openat(dir, FILE_NEW, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : io_write_all(fd, s->v, s->n * SHA256_BYTES);

	if (r == 0 && renameat(dir, FILE_NEW, dir, FILE_NAME) < 0)
		r = -errno;
	if (r < 0) {
		errno = -r;
		return err_sys(e, "'%s' cannot be written", FILE_NAME);
	}
	return 0;
}
