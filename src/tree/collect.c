/* SPDX-License-Identifier: Apache-2.0 */
/* tree/collect.c - what no checkpoint needs any more
 *
 * All remaining indexes say which hashes live. A large object that does not goes. A pack in which nothing lives goes;
 * one in which less than half does is written anew with what lives, and the old one goes when the new one is on disk.
 */
#include <dirent.h>
#include <fcntl.h>

#include "tree/store.h"

struct live {
	uint8_t (*v)[SHA256_BYTES];
	size_t n, size;
};

static size_t slot(const struct live *l, const uint8_t *hash)
{
	uint64_t h;

	memcpy(&h, hash, sizeof(h));
	return (size_t)h & (l->size - 1);
}

static bool is_free(const uint8_t *p)
{
	static const uint8_t zero[SHA256_BYTES];

	return memcmp(p, zero, sizeof(zero)) == 0;
}

static bool lives(const struct live *l, const uint8_t *hash)
{
	for (size_t at = slot(l, hash); l->size && !is_free(l->v[at]);
	     at = (at + 1) & (l->size - 1))
		if (memcmp(l->v[at], hash, SHA256_BYTES) == 0)
			return true;
	return false;
}

static void keep(struct live *l, const uint8_t *hash)
{
	size_t at;

	if (l->n * 2 >= l->size) {
		struct live old = *l;

		l->size = old.size ? old.size * 2 : 4096;
		l->v = mem_new(l->size, SHA256_BYTES);
		l->n = 0;
		for (size_t i = 0; i < old.size; i++)
			if (!is_free(old.v[i]))
				keep(l, old.v[i]);
		free(old.v);
	}
	for (at = slot(l, hash); !is_free(l->v[at]); at = (at + 1) & (l->size - 1))
		if (memcmp(l->v[at], hash, SHA256_BYTES) == 0)
			return;
	memcpy(l->v[at], hash, SHA256_BYTES);
	l->n++;
}

static int find_live(struct store *s, struct live *l, struct err *e)
{
	_free_ uint64_t *ids = NULL;
	size_t n = 0;
	int r = store_list(s, &ids, &n, e);

	for (size_t i = 0; r == 0 && i < n; i++) {
		_cleanup_(tree_index_done) struct tree_index x = { 0 };

		r = store_load(s, ids[i], &x, e);
		for (size_t k = 0; r == 0 && k < x.n; k++)
			if (S_ISREG(x.v[k].mode) && !is_free(x.v[k].hash))
				keep(l, x.v[k].hash);
	}
	return r;
}

static void drop_objects(struct store *s, const struct live *l, uint64_t *freed)
{
	int fd = openat(s->dir, "objects", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *en;

	while (d && (en = readdir(d)) != NULL) {
		uint8_t hash[SHA256_BYTES] = { 0 };
		struct stat st;

		if (en->d_name[0] == '.' || strlen(en->d_name) != SHA256_HEX_BYTES - 1)
			continue;
		for (size_t i = 0; i < SHA256_HEX_BYTES - 1; i++) {
			const char *digits = "0123456789abcdef";
			const char *at = strchr(digits, en->d_name[i]);

			hash[i / 2] = (uint8_t)(hash[i / 2] << 4 | (at ? at - digits : 0));
		}
		if (lives(l, hash) || fstatat(fd, en->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (unlinkat(fd, en->d_name, 0) == 0)
			*freed += (uint64_t)st.st_blocks * 512;
	}
	if (d)
		(void)closedir(d);
	else
		fd_close(fd);
}

/* Copies what lives of pack k to the pack being written. */
static int move_living(struct store *s, const struct live *l, uint32_t k, struct err *e)
{
	_free_ struct place *v = mem_grow(NULL, s->n + 1, sizeof(*v));
	_free_ char *p = mem_grow(NULL, PACK_OBJECT_MAX + 1, 1);
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; i < s->size; i++)
		if (s->table[i].pack == k && lives(l, s->table[i].hash))
			v[n++] = s->table[i];
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = pack_read(s, &v[i], p, e);
		if (r == 0)
			r = pack_add(s, v[i].hash, p, (size_t)v[i].n, e);
	}
	return r;
}

static int collect_packs(struct store *s, const struct live *l, uint64_t *freed, struct err *e)
{
	size_t n_old = s->n_packs;
	_free_ uint64_t *living = mem_new(n_old + 1, sizeof(*living));
	_free_ bool *goes = mem_new(n_old + 1, sizeof(*goes));
	_free_ char *name = NULL;
	int r = 0;

	for (size_t i = 0; i < s->size; i++)
		if (s->table[i].pack && lives(l, s->table[i].hash))
			living[s->table[i].pack - 1] += s->table[i].n + 48;
	for (size_t k = 0; r == 0 && k < n_old; k++) {
		goes[k] = living[k] * 2 < s->packs[k].bytes;
		if (goes[k] && living[k] > 0)
			r = move_living(s, l, (uint32_t)k + 1, e);
	}
	if (r < 0)
		return r;
	name = mem_fmt("c%llu", (unsigned long long)tree_now());
	r = pack_commit(s, name, e);
	for (size_t k = 0; r == 0 && k < n_old; k++) {
		_free_ char *path = mem_fmt("packs/%s", s->packs[k].name);

		if (goes[k] && unlinkat(s->dir, path, 0) == 0)
			*freed += s->packs[k].bytes - living[k];
	}
	return r;
}

int store_collect(struct store *s, uint64_t *ret_freed, struct err *e)
{
	struct live l = { 0 };
	int r;

	*ret_freed = 0;
	packs_done(s);
	r = pack_load_all(s, e);
	if (r == 0)
		r = find_live(s, &l, e);
	if (r == 0) {
		drop_objects(s, &l, ret_freed);
		r = collect_packs(s, &l, ret_freed, e);
	}
	free(l.v);
	packs_done(s);
	return r;
}

uint64_t store_disk(struct store *s)
{
	static const char *const places[] = { "packs", "objects", "checkpoints" };
	uint64_t sum = 0;

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		int fd = openat(s->dir, places[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		DIR *d = fd < 0 ? NULL : fdopendir(fd);
		struct dirent *en;
		struct stat st;

		while (d && (en = readdir(d)) != NULL)
			if (fstatat(fd, en->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
				sum += (uint64_t)st.st_blocks * 512;
		if (d)
			(void)closedir(d);
		else
			fd_close(fd);
	}
	return sum;
}
