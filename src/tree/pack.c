/* SPDX-License-Identifier: Apache-2.0 */
/* tree/pack.c - small contents, many to a file
 *
 * A pack is contents one behind the other, a table of (hash, place, length) sorted by hash, and a foot that says where
 * the table is and what its own hash is. It is written under a name that begins with a dot and renamed when it is
 * whole and on disk. Twenty thousand small files cost one file and one fsync this way, not twenty thousand.
 */
#include <dirent.h>
#include <fcntl.h>

#include "tree/store.h"

#define MAGIC "VITRPAK1"
#define OUT_NAME ".new-pack"
#define FLUSH_AT MIB
#define TABLE_MAX (TREE_ENTRIES_MAX * 2)

struct row {
	uint8_t hash[SHA256_BYTES];
	uint64_t at, n;
};

struct foot {
	uint64_t count, table;
	uint8_t sum[SHA256_BYTES];
	char magic[8];
};

/* ---- the table of all packs ---- */

static size_t slot_of(const struct store *s, const uint8_t *hash)
{
	uint64_t h;

	memcpy(&h, hash, sizeof(h));
	return (size_t)h & (s->size - 1);
}

static void insert(struct store *s, const struct place *p);

static void grow(struct store *s)
{
	struct place *old = s->table;
	size_t old_size = s->size;

	s->size = old_size ? old_size * 2 : 1024;
	s->table = mem_new(s->size, sizeof(*s->table));
	s->n = 0;
	for (size_t i = 0; i < old_size; i++)
		if (old[i].pack)
			insert(s, &old[i]);
	free(old);
}

static void insert(struct store *s, const struct place *p)
{
	size_t at;

	if (s->n * 2 >= s->size)
		grow(s);
	for (at = slot_of(s, p->hash); s->table[at].pack; at = (at + 1) & (s->size - 1))
		if (memcmp(s->table[at].hash, p->hash, SHA256_BYTES) == 0)
			return;
	s->table[at] = *p;
	s->n++;
}

const struct place *pack_find(const struct store *s, const uint8_t hash[static SHA256_BYTES])
{
	if (s->size == 0)
		return NULL;
	for (size_t at = slot_of(s, hash); s->table[at].pack; at = (at + 1) & (s->size - 1))
		if (memcmp(s->table[at].hash, hash, SHA256_BYTES) == 0)
			return &s->table[at];
	return NULL;
}

/* ---- reading ---- */

static bool is_foot(const struct foot *f, uint64_t size)
{
	uint64_t bytes;

	return memcmp(f->magic, MAGIC, sizeof(f->magic)) == 0 && f->count <= TABLE_MAX &&
	       mul_ok(f->count, sizeof(struct row), &bytes) && f->table <= size &&
	       bytes <= size - f->table && f->table + bytes + sizeof(*f) == size;
}

static int load_table(struct store *s, int fd, uint32_t pack, uint64_t size)
{
	_free_ struct row *rows = NULL;
	uint8_t sum[SHA256_BYTES];
	struct foot f;
	size_t bytes;

	if (size < sizeof(f) ||
	    content_read(fd, (char *)&f, sizeof(f), size - sizeof(f)) != (ssize_t)sizeof(f) ||
	    !is_foot(&f, size))
		return -EBADMSG;
	bytes = (size_t)f.count * sizeof(*rows);
	rows = mem_grow(NULL, (size_t)f.count + 1, sizeof(*rows));
	if (content_read(fd, (char *)rows, bytes, f.table) != (ssize_t)bytes)
		return -EBADMSG;
	sha256(rows, bytes, sum);
	if (memcmp(sum, f.sum, sizeof(sum)) != 0)
		return -EBADMSG;
	for (uint64_t i = 0; i < f.count; i++) {
		struct place p = { .at = rows[i].at, .n = rows[i].n, .pack = pack };

		if (p.at > f.table || p.n > f.table - p.at || p.n > PACK_OBJECT_MAX)
			return -EBADMSG;
		memcpy(p.hash, rows[i].hash, sizeof(p.hash));
		insert(s, &p);
	}
	return 0;
}

static struct pack *new_pack(struct store *s, const char *name)
{
	struct pack *p;

	vec_reserve(s->packs, s->n_packs, s->cap_packs);
	p = &s->packs[s->n_packs++];
	*p = (struct pack){ .fd = FD_NONE };
	(void)snprintf(p->name, sizeof(p->name), "%s", name);
	return p;
}

static int load_pack(struct store *s, int packs, const char *name, struct err *e)
{
	_close_ int fd = openat(packs, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct pack *p;
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "pack '%s'", name);
	p = new_pack(s, name);
	p->bytes = (uint64_t)st.st_size;
	r = load_table(s, fd, (uint32_t)s->n_packs, (uint64_t)st.st_size);
	if (r < 0)
		return err_set(e, ERR_SYSTEM, -r, "pack '%s/packs/%s' is damaged", s->path, name);
	p->fd = take_fd(fd);
	return 0;
}

int pack_load_all(struct store *s, struct err *e)
{
	int packs, r = 0;
	struct dirent *en;
	DIR *d;

	if (s->is_loaded)
		return 0;
	packs = openat(s->dir, "packs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (packs < 0)
		return err_sys(e, "'%s/packs'", s->path);
	d = fdopendir(packs);
	if (d == NULL) {
		fd_close(packs);
		return err_sys(e, "'%s/packs'", s->path);
	}
	while (r == 0 && (en = readdir(d)) != NULL)
		if (en->d_name[0] != '.' && strlen(en->d_name) < sizeof(s->packs->name))
			r = load_pack(s, packs, en->d_name, e);
	(void)closedir(d);
	s->is_loaded = r == 0;
	return r;
}

int pack_read(struct store *s, const struct place *p, char *out, struct err *e)
{
	const struct pack *k = &s->packs[p->pack - 1];
	uint8_t sum[SHA256_BYTES];
	ssize_t got;

	bug_on(k->fd < 0 || p->pack > s->n_packs);
	got = content_read(k->fd, out, (size_t)p->n, p->at);
	if (got != (ssize_t)p->n)
		return err_set(e, ERR_SYSTEM, EBADMSG, "pack '%s' is cut short", k->name);
	sha256(out, (size_t)p->n, sum);
	if (memcmp(sum, p->hash, sizeof(sum)) != 0)
		return err_set(e, ERR_SYSTEM, EBADMSG, "pack '%s' is damaged", k->name);
	return 0;
}

/* ---- writing ---- */

static int flush(struct store *s, struct err *e)
{
	int r = io_write_all(s->out, buf_cstr(&s->pending), s->pending.n);

	s->pending.n = 0;
	if (r < 0) {
		errno = -r;
		return err_sys(e, "write to '%s'", s->path);
	}
	return 0;
}

static int begin(struct store *s, struct err *e)
{
	_free_ char *name = mem_fmt("packs/%s", OUT_NAME);

	s->out = openat(s->dir, name, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (s->out < 0)
		return err_sys(e, "'%s/%s'", s->path, name);
	s->out_at = 0;
	buf_done(&s->pending);
	s->pending = BUF(FLUSH_AT + PACK_OBJECT_MAX + 64);
	(void)new_pack(s, OUT_NAME);
	s->out_pack = (uint32_t)s->n_packs;
	return 0;
}

int pack_add(struct store *s, const uint8_t hash[static SHA256_BYTES], const char *p, size_t n,
	     struct err *e)
{
	struct place at = { .n = n };
	int r = s->out < 0 ? begin(s, e) : 0;

	if (r < 0)
		return r;
	memcpy(at.hash, hash, sizeof(at.hash));
	at.at = s->out_at;
	at.pack = s->out_pack;
	buf_add(&s->pending, p, n);
	bug_on(s->pending.is_over);
	s->out_at += n;
	insert(s, &at);
	vec_reserve(s->added, s->n_added, s->cap_added);
	s->added[s->n_added++] = at;
	return s->pending.n >= FLUSH_AT ? flush(s, e) : 0;
}

static int by_hash(const void *a, const void *b)
{
	return memcmp(((const struct row *)a)->hash, ((const struct row *)b)->hash, SHA256_BYTES);
}

static int write_table(struct store *s, struct err *e)
{
	_free_ struct row *rows = mem_grow(NULL, s->n_added + 1, sizeof(*rows));
	struct foot f = { .count = s->n_added, .table = s->out_at };
	int r;

	for (size_t i = 0; i < s->n_added; i++) {
		rows[i] = (struct row){ .at = s->added[i].at, .n = s->added[i].n };
		memcpy(rows[i].hash, s->added[i].hash, SHA256_BYTES);
	}
	qsort(rows, s->n_added, sizeof(*rows), by_hash);
	sha256(rows, s->n_added * sizeof(*rows), f.sum);
	memcpy(f.magic, MAGIC, sizeof(f.magic));
	r = io_write_all(s->out, rows, s->n_added * sizeof(*rows));
	if (r == 0)
		r = io_write_all(s->out, &f, sizeof(f));
	if (r < 0) {
		errno = -r;
		return err_sys(e, "write to '%s'", s->path);
	}
	return 0;
}

int pack_commit(struct store *s, const char *name, struct err *e)
{
	_close_ int packs = FD_NONE;
	int r;

	if (s->out < 0)
		return 0;
	r = flush(s, e);
	if (r == 0)
		r = write_table(s, e);
	if (r < 0)
		return r;
	packs = openat(s->dir, "packs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (packs < 0 || fdatasync(s->out) < 0 || renameat(packs, OUT_NAME, packs, name) < 0 ||
	    fsync(packs) < 0)
		return err_sys(e, "pack in '%s'", s->path);
	s->packs[s->out_pack - 1].fd = take_fd(s->out);
	(void)snprintf(s->packs[s->out_pack - 1].name, sizeof(s->packs->name), "%s", name);
	s->n_added = 0;
	return 0;
}

static void pack_abort(struct store *s)
{
	if (s->out < 0)
		return;
	fd_close(take_fd(s->out));
	(void)unlinkat(s->dir, "packs/" OUT_NAME, 0);
	s->n_added = 0;
}

void packs_done(struct store *s)
{
	pack_abort(s);
	for (size_t i = 0; i < s->n_packs; i++)
		fd_close(s->packs[i].fd);
	free(s->packs);
	free(s->table);
	free(s->added);
	buf_done(&s->pending);
	s->packs = NULL;
	s->table = NULL;
	s->added = NULL;
	s->n_packs = s->cap_packs = s->n = s->size = s->n_added = s->cap_added = 0;
	s->is_loaded = false;
	s->n_put = 0;
}
