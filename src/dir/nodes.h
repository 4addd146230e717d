/* SPDX-License-Identifier: Apache-2.0 */
/* dir/nodes.h - what the kernel has in hand: numbers that the server gave out, each for one name of one file
 *
 * A node is a name in a directory and the file (device, inode) that it led to. It holds no descriptor: the inside could
 * use them up at will. Numbers are never given out twice.
 */
#ifndef VITRINE_DIR_NODES_H
#define VITRINE_DIR_NODES_H

#include <sys/types.h>

#include "base/base.h"

#define NODES_MAX 262144
#define NODE_ROOT 1

struct node {
	uint64_t id, parent;
	uint64_t lookups;  /* of the kernel */
	uint64_t children; /* nodes that need this one for their path */
	char *name;
	dev_t dev;
	ino_t ino;
	bool is_dead; /* the name leads elsewhere by now */
	struct node *next_id, *next_name;
};

#define NODE_BUCKETS 4096
struct nodes {
	struct node *by_id[NODE_BUCKETS], *by_name[NODE_BUCKETS];
	struct node root;
	uint64_t last;
	size_t n;
};

void nodes_init(struct nodes *t, dev_t dev, ino_t ino);
void nodes_done(struct nodes *t);
/* NULL: the kernel was given no such number, or has forgotten it. */
struct node *nodes_get(struct nodes *t, uint64_t id);
/* The node of that name and file, made when there is none; counts as looked up. NULL: too many. */
struct node *nodes_look(struct nodes *t, struct node *parent, const char *name, dev_t dev,
			ino_t ino);
void nodes_forget(struct nodes *t, uint64_t id, uint64_t lookups);
/* Whatever has this name from now on is another file. */
void nodes_kill(struct nodes *t, const struct node *parent, const char *name);
/* What was called `name` is called `to_name` now. */
void nodes_move(struct nodes *t, const struct node *parent, const char *name, struct node *to,
		const char *to_name);

/* The path below the root: 0, -ESTALE for a node without a name, -ENAMETOOLONG. */
int nodes_path(struct nodes *t, const struct node *n, char *ret, size_t size);
/* The same for a name in it. */
int nodes_path_in(struct nodes *t, const struct node *dir, const char *name, char *ret,
		  size_t size);

#endif
