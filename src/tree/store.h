/* SPDX-License-Identifier: Apache-2.0 */
/* tree/store.h - the inside of a store; internal to tree/ */
#ifndef VITRINE_TREE_STORE_H
#define VITRINE_TREE_STORE_H

#include "tree/content.h"

/* Where a small object lies. */
struct place {
	uint8_t hash[SHA256_BYTES];
	uint64_t at, n;
	uint32_t pack; /* index into store.packs + 1; 0: a free slot of the table */
};

struct pack {
	char name[40];
	int fd; /* opened when first read from */
	uint64_t bytes;
};

struct store {
	int dir, lock;
	char *path;
	struct pack *packs;
	size_t n_packs, cap_packs;
	struct place *table; /* open addressing, a power of two */
	size_t n, size;
	bool is_loaded;
	size_t n_put;
	int out;           /* the pack being written, FD_NONE when there is none */
	uint32_t out_pack; /* its number, as in struct place */
	uint64_t out_at;
	struct buf pending; /* bytes of it not yet written */
	struct place *added;
	size_t n_added, cap_added;
};

#define PACK_OBJECT_MAX TREE_CHUNK

/* Tables of all packs, once. */
int pack_load_all(struct store *s, struct err *e);
const struct place *pack_find(const struct store *s, const uint8_t hash[static SHA256_BYTES]);
int pack_read(struct store *s, const struct place *p, char *out, struct err *e);
/* Adds one object to the pack being written. */
int pack_add(struct store *s, const uint8_t hash[static SHA256_BYTES], const char *p, size_t n,
	     struct err *e);
/* Gives the pack its name; it is on disk when this returns. Nothing to do when nothing was added. */
int pack_commit(struct store *s, const char *name, struct err *e);
void packs_done(struct store *s);

/* Saves what is in fd; *ret_new is the bytes it added. Sets hash and size of the entry. -ESTALE: it became shorter; -EFBIG: see
 * content_chunks(). */
int store_put(struct store *s, int fd, struct tree_entry *en, uint64_t *slack, uint64_t *ret_new,
	      struct err *e);
/* Numbers the index, writes it and what was put. */
int store_commit(struct store *s, struct tree_index *x, struct err *e);

/* Writes the index anew under the number that it has. */
int store_resave(struct store *s, const struct tree_index *x, struct err *e);

void store_hex(const uint8_t hash[static SHA256_BYTES], char ret[static SHA256_HEX_BYTES]);

#endif
