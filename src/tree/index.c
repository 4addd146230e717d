/* SPDX-License-Identifier: Apache-2.0 */
/* tree/index.c - the index in memory and as a file
 *
 * The file: a head, one section of strings, fixed-size records, and the SHA-256 of all before it. A record names its
 * directory by number and itself by one component, so a path cannot climb, be absolute or appear twice: the reader
 * checks that a parent comes first and is a directory, that siblings ascend, and that a component is one. Numbers are
 * little-endian, as on every machine this runs on.
 */
#include "base/path.h"
#include "tree/text.h"
#include "tree/tree.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file's order is the machine's");

#define MAGIC "VITRIDX1"
#define PATH_LEN_MAX (64 * KIB)
#define HEAD_ALONE 0x10000u /* in head.kind */

struct head {
	char magic[8];
	uint64_t count, strings;
	uint64_t id, created, since;
	uint32_t kind, root_mode, message_len, root_len;
};

struct record {
	uint32_t parent, link_of;
	uint32_t name, target, xattrs; /* offsets into the strings */
	uint32_t name_len, target_len, xattr_len;
	uint32_t mode, uid, gid, nlink, flags, zero;
	uint64_t dev, ino, size, alloc;
	int64_t mtime, ctime;
	uint8_t hash[SHA256_BYTES];
};

void tree_index_done(struct tree_index *x)
{
	free(x->v);
	free(x->message);
	free(x->root);
	free(x->loaded);
	text_free(x->text);
	*x = (struct tree_index){ 0 };
}

const char *tree_kind_name(enum tree_kind kind)
{
	static const char *const names[TREE_KIND_COUNT_] = { "manual",  "start", "loop",
							     "present", "seal",  "inside" };

	bug_on(kind >= TREE_KIND_COUNT_);
	return names[kind];
}

enum tree_kind tree_kind_of(enum tree_kind kind, const char *message)
{
	return kind == TREE_MANUAL && str_starts(message, "asked for inside") ? TREE_INSIDE : kind;
}

const struct tree_entry *tree_find(const struct tree_index *x, const char *path)
{
	size_t lo = 0, hi = x->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = path_cmp(x->v[mid].path, path);

		if (c == 0)
			return &x->v[mid];
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

bool tree_same_stat(const struct tree_entry *a, const struct tree_entry *b)
{
	return a->ino == b->ino && a->size == b->size && a->mtime == b->mtime &&
	       a->ctime == b->ctime && a->mode == b->mode && !(a->flags & TREE_UNSETTLED);
}

/* ---- writing ---- */

/* NUL-ended, so that a reader can use it where it lies. */
static void put_string(struct buf *b, const char *p, size_t n)
{
	buf_add(b, p, n);
	buf_putc(b, '\0');
}

static void put_strings(struct buf *b, const struct tree_entry *en)
{
	put_string(b, en->name, strlen(en->name));
	if (en->target_len)
		put_string(b, en->target, en->target_len);
	if (en->xattr_len)
		put_string(b, en->xattrs, en->xattr_len);
}

/* `at` is where the entry's strings begin, and then where the next one's do. */
static void put_record(struct buf *b, const struct tree_entry *en, uint32_t *at)
{
	struct record r = { .parent = en->parent,
			    .link_of = en->link_of,
			    .name = *at,
			    .name_len = (uint32_t)strlen(en->name),
			    .target_len = en->target_len,
			    .xattr_len = en->xattr_len,
			    .mode = en->mode,
			    .uid = en->uid,
			    .gid = en->gid,
			    .nlink = en->nlink,
			    .flags = en->flags,
			    .dev = en->dev,
			    .ino = en->ino,
			    .size = en->size,
			    .alloc = en->alloc,
			    .mtime = en->mtime,
			    .ctime = en->ctime };

	memcpy(r.hash, en->hash, sizeof(r.hash));
	*at += r.name_len + 1;
	if (r.target_len) {
		r.target = *at;
		*at += r.target_len + 1;
	}
	if (r.xattr_len) {
		r.xattrs = *at;
		*at += r.xattr_len + 1;
	}
	buf_add(b, &r, sizeof(r));
}

int tree_encode(const struct tree_index *x, struct buf *out, struct err *e)
{
	struct head h = { .count = x->n,
			  .id = x->id,
			  .created = x->created,
			  .since = x->since,
			  .kind = x->kind | (x->is_alone ? HEAD_ALONE : 0),
			  .root_mode = x->root_mode };
	const char *message = x->message ? x->message : "", *root = x->root ? x->root : "";
	uint8_t sum[SHA256_BYTES];
	uint32_t at;

	memcpy(h.magic, MAGIC, sizeof(h.magic));
	h.message_len = (uint32_t)strlen(message);
	h.root_len = (uint32_t)strlen(root);
	at = h.message_len + h.root_len + 2;
	buf_add(out, &h, sizeof(h));
	put_string(out, message, h.message_len);
	put_string(out, root, h.root_len);
	for (size_t i = 0; i < x->n; i++)
		put_strings(out, &x->v[i]);
	while ((out->n - sizeof(h)) % 8)
		buf_putc(out, '\0');
	if (out->is_over || out->n > UINT32_MAX)
		return err_set(e, ERR_SYSTEM, EMSGSIZE, "the tree has too many or too long names");
	h.strings = out->n - sizeof(h);
	memcpy(out->p, &h, sizeof(h));
	for (size_t i = 0; i < x->n; i++)
		put_record(out, &x->v[i], &at);
	sha256(out->p, out->n, sum);
	buf_add(out, sum, sizeof(sum));
	return out->is_over ? err_set(e, ERR_SYSTEM, EMSGSIZE, "the index is too large") : 0;
}

/* ---- reading ---- */

struct reader {
	const char *strings;
	uint64_t strings_n;
	struct tree_index *x;
};

static bool has_string(const struct reader *r, uint32_t at, uint32_t n)
{
	uint64_t end = (uint64_t)at + n;

	return end < r->strings_n && r->strings[end] == '\0';
}

static bool is_name(const char *p, size_t n)
{
	return n > 0 && strlen(p) == n && memchr(p, '/', n) == NULL && !str_eq(p, ".") &&
	       !str_eq(p, "..") && n < 4 * KIB;
}

/* name NUL u32 length, value: whole, and names that we would have written. */
static bool is_xattrs(const char *p, size_t n)
{
	while (n > 0) {
		size_t name = strnlen(p, n);
		uint32_t len;

		if (name == 0 || name > 255 || name + 1 + sizeof(len) > n)
			return false;
		memcpy(&len, p + name + 1, sizeof(len));
		p += name + 1 + sizeof(len);
		n -= name + 1 + sizeof(len);
		if (len > n)
			return false;
		p += len;
		n -= len;
	}
	return true;
}

static bool is_record(const struct reader *r, const struct record *c, size_t i)
{
	const struct tree_index *x = r->x;
	unsigned type = c->mode & S_IFMT;

	if (c->zero || c->flags & ~(unsigned)TREE_FLAGS_ALL_ || c->mode >> 16)
		return false;
	if (!has_string(r, c->name, c->name_len) || !is_name(r->strings + c->name, c->name_len))
		return false;
	if (c->parent != TREE_NONE && (c->parent >= i || !S_ISDIR(x->v[c->parent].mode)))
		return false;
	if (c->link_of != TREE_NONE && (c->link_of >= i || x->v[c->link_of].link_of != TREE_NONE ||
					(x->v[c->link_of].mode & S_IFMT) != type))
		return false;
	if ((c->target_len > 0) != (type == S_IFLNK))
		return false;
	if (c->target_len &&
	    (!has_string(r, c->target, c->target_len) ||
	     strlen(r->strings + c->target) != c->target_len || c->target_len >= 4 * KIB))
		return false;
	if (c->xattr_len && (!has_string(r, c->xattrs, c->xattr_len) ||
			     !is_xattrs(r->strings + c->xattrs, c->xattr_len)))
		return false;
	return (type == S_IFREG || type == S_IFDIR || type == S_IFLNK || type == S_IFIFO ||
		type == S_IFSOCK || type == S_IFCHR || type == S_IFBLK) &&
	       (!(c->flags & TREE_OPAQUE) || type == S_IFDIR);
}

static bool take_record(struct reader *r, const struct record *c, size_t i)
{
	struct tree_index *x = r->x;
	const char *dir = c->parent == TREE_NONE ? NULL : x->v[c->parent].path;
	struct tree_entry *en = &x->v[i];
	char *path;

	if (dir && strlen(dir) + c->name_len > PATH_LEN_MAX)
		return false;
	path = text_join(&x->text, dir, r->strings + c->name);
	if (path == NULL || (i > 0 && path_cmp(x->v[i - 1].path, path) >= 0))
		return false;
	*en = (struct tree_entry){
		.path = path,
		.name = path + strlen(path) - c->name_len,
		.parent = c->parent,
		.link_of = c->link_of,
		.mode = c->mode,
		.uid = c->uid,
		.gid = c->gid,
		.nlink = c->nlink,
		.flags = c->flags,
		.dev = c->dev,
		.ino = c->ino,
		.size = c->size,
		.alloc = c->alloc,
		.mtime = c->mtime,
		.ctime = c->ctime,
		.target = c->target_len ? r->strings + c->target : NULL,
		.target_len = c->target_len,
		.xattrs = c->xattr_len ? r->strings + c->xattrs : NULL,
		.xattr_len = c->xattr_len,
	};
	memcpy(en->hash, c->hash, sizeof(en->hash));
	return true;
}

static bool is_head(const struct head *h, size_t n)
{
	uint64_t want;

	return memcmp(h->magic, MAGIC, sizeof(h->magic)) == 0 &&
	       (h->kind & ~HEAD_ALONE) < TREE_KIND_COUNT_ && h->count <= TREE_ENTRIES_MAX &&
	       h->strings <= n && h->strings % 8 == 0 &&
	       add_ok(h->count * sizeof(struct record), h->strings, &want) &&
	       want + sizeof(*h) + SHA256_BYTES == n &&
	       (uint64_t)h->message_len + h->root_len + 2 <= h->strings;
}

static bool read_all(struct reader *r, const struct head *h)
{
	const char *records = r->strings + r->strings_n;
	struct tree_index *x = r->x;

	if (!has_string(r, 0, h->message_len) || !has_string(r, h->message_len + 1, h->root_len))
		return false;
	x->message = mem_str(r->strings);
	x->root = mem_str(r->strings + h->message_len + 1);
	x->v = mem_grow(NULL, (size_t)h->count + 1, sizeof(*x->v));
	x->cap = (size_t)h->count + 1;
	for (; x->n < h->count; x->n++) {
		struct record c;

		memcpy(&c, records + x->n * sizeof(c), sizeof(c));
		if (!is_record(r, &c, x->n) || !take_record(r, &c, x->n))
			return false;
	}
	return true;
}

int tree_decode_take(char *take_p, size_t n, struct tree_index *ret, struct err *e)
{
	_cleanup_(tree_index_done) struct tree_index x = { .loaded = take_p };
	struct reader r = { .x = &x };
	uint8_t sum[SHA256_BYTES];
	struct head h;

	if (n < sizeof(h) + SHA256_BYTES || n > TREE_FILE_MAX)
		return err_set(e, ERR_SYSTEM, EBADMSG, "not an index: wrong size");
	memcpy(&h, x.loaded, sizeof(h));
	if (!is_head(&h, n))
		return err_set(e, ERR_SYSTEM, EBADMSG, "not an index: wrong head");
	sha256(x.loaded, n - SHA256_BYTES, sum);
	if (memcmp(sum, x.loaded + n - SHA256_BYTES, sizeof(sum)) != 0)
		return err_set(e, ERR_SYSTEM, EBADMSG, "the index is damaged: wrong checksum");
	x.id = h.id;
	x.created = h.created;
	x.since = h.since;
	x.is_alone = h.kind & HEAD_ALONE;
	x.root_mode = h.root_mode;
	r.strings = x.loaded + sizeof(h);
	r.strings_n = h.strings;
	if (!read_all(&r, &h))
		return err_set(e, ERR_SYSTEM, EBADMSG, "the index is damaged: record %zu", x.n);
	x.kind = tree_kind_of(h.kind & ~HEAD_ALONE, x.message);
	*ret = x;
	x = (struct tree_index){ 0 };
	return 0;
}

int tree_decode(const void *p, size_t n, struct tree_index *ret, struct err *e)
{
	char *copy = mem_grow(NULL, n + 1, 1);

	memcpy(copy, p, n);
	return tree_decode_take(copy, n, ret, e);
}
