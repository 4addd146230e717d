/* SPDX-License-Identifier: Apache-2.0 */
/* tree/text.c - see text.h */
#include "tree/text.h"

/* Blocks grow: each large one is a mapping of its own, and giving it back is not free. */
#define ROOM_FIRST (64 * KIB)
#define ROOM_LAST (16 * MIB)

struct block {
	struct block *next;
	size_t n, size;
	char p[];
};

struct tree_text {
	struct block *first;
	uint64_t total;
};

char *text_room(struct tree_text **t, size_t n)
{
	struct block *b;

	if (*t == NULL)
		*t = mem_new(1, sizeof(**t));
	if (n > TREE_TEXT_MAX || (*t)->total + n > TREE_TEXT_MAX)
		return NULL;
	(*t)->total += n;
	b = (*t)->first;
	if (b == NULL || b->size - b->n < n) {
		size_t size = b ? b->size * 2 : ROOM_FIRST;

		size = size > ROOM_LAST ? ROOM_LAST : size;
		size = size < n ? n : size;

		b = mem_grow(NULL, sizeof(*b) + size, 1);
		b->size = size;
		b->n = 0;
		b->next = (*t)->first;
		(*t)->first = b;
	}
	b->n += n;
	return b->p + b->n - n;
}

char *text_copy(struct tree_text **t, const void *p, size_t n)
{
	char *s = text_room(t, n + 1);

	if (s == NULL)
		return NULL;
	if (n > 0)
		memcpy(s, p, n);
	s[n] = '\0';
	return s;
}

char *text_join(struct tree_text **t, const char *dir, const char *name)
{
	size_t a = dir ? strlen(dir) : 0, b = strlen(name);
	char *s = text_room(t, a + b + 2);

	if (s == NULL)
		return NULL;
	if (a > 0) {
		/* NOLINTNEXTLINE(bugprone-not-null-terminated-result): the name follows */
		memcpy(s, dir, a);
		s[a++] = '/';
	}
	memcpy(s + a, name, b + 1);
	return s;
}

void text_free(struct tree_text *t)
{
	struct block *next;

	if (t == NULL)
		return;
	for (struct block *b = t->first; b; b = next) {
		next = b->next;
		free(b);
	}
	free(t);
}
