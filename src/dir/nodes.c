/* SPDX-License-Identifier: Apache-2.0 */
/* dir/nodes.c - see nodes.h
 *
 * Two hash tables over the same nodes, by number and by (directory, name). A directory's node stays as long as one of
 * its children does, whatever the kernel has forgotten, because paths are put together from the names on the way.
 */
#include "dir/nodes.h"

static size_t bucket_id(uint64_t id)
{
	return (size_t)(id * 0x9e3779b97f4a7c15ULL >> 32) % NODE_BUCKETS;
}

static size_t bucket_name(uint64_t parent, const char *name)
{
	uint64_t h = parent * 0x9e3779b97f4a7c15ULL + 0xcbf29ce484222325ULL;

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 0x100000001b3ULL;
	return (size_t)(h >> 20) % NODE_BUCKETS;
}

void nodes_init(struct nodes *t, dev_t dev, ino_t ino)
{
	*t = (struct nodes){ .last = NODE_ROOT };
	t->root = (struct node){ .id = NODE_ROOT, .lookups = 1, .dev = dev, .ino = ino };
}

void nodes_done(struct nodes *t)
{
	for (size_t i = 0; i < NODE_BUCKETS; i++)
		for (struct node *n = t->by_id[i], *next; n; n = next) {
			next = n->next_id;
			free(n->name);
			free(n);
		}
}

struct node *nodes_get(struct nodes *t, uint64_t id)
{
	struct node *n = id == NODE_ROOT ? &t->root : t->by_id[bucket_id(id)];

	while (n && n->id != id)
		n = n->next_id;
	return n;
}

static void put_name(struct nodes *t, struct node *n)
{
	struct node **at = &t->by_name[bucket_name(n->parent, n->name)];

	n->next_name = *at;
	*at = n;
}

static void take_name(struct nodes *t, struct node *n)
{
	struct node **at = &t->by_name[bucket_name(n->parent, n->name)];

	while (*at != n)
		at = &(*at)->next_name;
	*at = n->next_name;
}

static void drop(struct nodes *t, struct node *n)
{
	struct node **at = &t->by_id[bucket_id(n->id)];

	while (*at != n)
		at = &(*at)->next_id;
	*at = n->next_id;
	take_name(t, n);
	free(n->name);
	free(n);
	t->n--;
}

/* Upward: the last child of a directory that was forgotten before may be this one. */
static void drop_unused(struct nodes *t, struct node *n)
{
	while (n->id != NODE_ROOT && n->lookups == 0 && n->children == 0) {
		struct node *up = nodes_get(t, n->parent);

		drop(t, n);
		bug_on(up == NULL);
		up->children--;
		n = up;
	}
}

struct node *nodes_look(struct nodes *t, struct node *parent, const char *name, dev_t dev,
			ino_t ino)
{
	struct node *n = t->by_name[bucket_name(parent->id, name)];

	for (; n; n = n->next_name)
		if (n->parent == parent->id && !n->is_dead && n->dev == dev && n->ino == ino &&
		    str_eq(n->name, name)) {
			n->lookups++;
			return n;
		}
	if (t->n >= NODES_MAX)
		return NULL;
	nodes_kill(t, parent, name);
	n = mem_new(1, sizeof(*n));
	*n = (struct node){ .id = ++t->last,
			    .parent = parent->id,
			    .lookups = 1,
			    .name = mem_str(name),
			    .dev = dev,
			    .ino = ino };
	n->next_id = t->by_id[bucket_id(n->id)];
	t->by_id[bucket_id(n->id)] = n;
	put_name(t, n);
	parent->children++;
	t->n++;
	return n;
}

void nodes_forget(struct nodes *t, uint64_t id, uint64_t lookups)
{
	struct node *n = nodes_get(t, id);

	if (n == NULL || id == NODE_ROOT)
		return;
	n->lookups -= lookups < n->lookups ? lookups : n->lookups;
	drop_unused(t, n);
}

void nodes_kill(struct nodes *t, const struct node *parent, const char *name)
{
	for (struct node *n = t->by_name[bucket_name(parent->id, name)]; n; n = n->next_name)
		if (n->parent == parent->id && str_eq(n->name, name))
			n->is_dead = true;
}

void nodes_move(struct nodes *t, const struct node *parent, const char *name, struct node *to,
		const char *to_name)
{
	struct node *n = t->by_name[bucket_name(parent->id, name)];

	while (n && (n->parent != parent->id || n->is_dead || !str_eq(n->name, name)))
		n = n->next_name;
	nodes_kill(t, to, to_name);
	if (n == NULL)
		return;
	n->is_dead = false; /* a rename onto itself */
	take_name(t, n);
	free(n->name);
	n->name = mem_str(to_name);
	to->children++;
	if (n->parent != to->id) {
		struct node *up = nodes_get(t, n->parent);

		n->parent = to->id;
		put_name(t, n);
		bug_on(up == NULL);
		up->children--;
		drop_unused(t, up);
	} else {
		to->children--;
		put_name(t, n);
	}
}

static int put_front(char *ret, size_t *at, const char *name)
{
	size_t n = strlen(name);

	if (*at < n + 1)
		return -ENAMETOOLONG;
	*at -= n;
	memcpy(ret + *at, name,
	       n); /* NOLINT(bugprone-not-null-terminated-result): the end is put last */
	if (*at > 0)
		ret[--*at] = '/';
	return 0;
}

int nodes_path_in(struct nodes *t, const struct node *dir, const char *name, char *ret, size_t size)
{
	size_t at = size - 1;
	int r = name[0] ? put_front(ret, &at, name) : 0;

	for (; r == 0 && dir->id != NODE_ROOT; dir = nodes_get(t, dir->parent)) {
		if (dir->is_dead)
			return -ESTALE;
		r = put_front(ret, &at, dir->name);
	}
	if (r < 0)
		return r;
	at += at < size - 1; /* the first slash */
	memmove(ret, ret + at, size - 1 - at);
	ret[size - 1 - at] = '\0';
	return 0;
}

int nodes_path(struct nodes *t, const struct node *n, char *ret, size_t size)
{
	return nodes_path_in(t, n, "", ret, size);
}
