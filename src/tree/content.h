/* SPDX-License-Identifier: Apache-2.0 */
/* tree/content.h - reading what is in files; internal to tree/ */
#ifndef VITRINE_TREE_CONTENT_H
#define VITRINE_TREE_CONTENT_H

#include "tree/look.h"

#define TREE_CHUNK ((size_t)MIB)

typedef int content_fn(void *arg, const char *p, size_t n, uint64_t at);

/* Up to n bytes from `at`; short only at the end of the file. */
ssize_t content_read(int fd, char *p, size_t n, uint64_t at);
void content_zero_hash(size_t n, uint8_t ret[static SHA256_BYTES]);
/* Every chunk of a long file: hashed, and what is no hole in it shown to `fn` (may be NULL). A chunk with little in it costs as
 * much as a full one: the difference is taken off *slack (NULL: there is no bound), and -EFBIG says that none is left. */
int content_chunks(int fd, uint64_t size, content_fn *fn, void *arg, uint64_t *slack,
		   uint8_t ret[static SHA256_BYTES]);
/* tree_hash_fd() with such a bound. */
int content_hash(int fd, uint64_t size, uint64_t *slack, uint8_t ret[static SHA256_BYTES]);

/* Content of `from` to the empty file `to`: shared where the file system can, else copied without its holes. The hash
 * is of what arrived. */
int content_copy(int from, int to, uint64_t size, uint64_t *slack,
		 uint8_t hash[static SHA256_BYTES]);

/* What one look spends on holes, which cost their maker nothing: bytes of holes in the files that it reads, and bytes that
 * are hashed and are none of a file's. */
struct content_bounds {
	uint64_t holes, slack;
};
#define CONTENT_BOUNDS                                                                             \
	(struct content_bounds)                                                                    \
	{                                                                                          \
		.holes = TREE_SIZES_MAX, .slack = 2 * GIB                                          \
	}

/* Is the file longer than TREE_SIZE_MAX, or are its holes over the bound? Else they are taken off it. */
bool content_is_too_long(const struct tree_entry *en, struct content_bounds *b);

/* Opens the regular file of an entry and takes its stat anew. fd or -errno. */
int content_open(int root_fd, struct tree_entry *en);
/* The stat, and whether anybody could still write: before the content is read. */
int content_stat(int fd, struct tree_entry *en);
/* After the content was read: did it change meanwhile? */
void content_settle(int fd, struct tree_entry *en);
/* A further name of a file takes what is known of the first. */
void content_follow(struct tree_index *x, struct tree_entry *en);
void tree_read_xattrs_fd(int fd, struct tree_index *x, struct tree_entry *en);

#endif
