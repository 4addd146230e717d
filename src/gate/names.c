/* SPDX-License-Identifier: Apache-2.0 */
/* gate/names.c - see names.h
 *
 * Name number i has the addresses NETNS_V4 + i + 2 and NETNS_V6 + i + 2. Addresses are never taken back: a program
 * that remembers one for hours still reaches the name it asked for, and never another.
 */
#include "gate/names.h"

#include "sys/netns.h"

#define FIRST 2 /* .0 is the network, .1 lies on lo */

void names_init(struct names *t)
{
	*t = (struct names){ .n_slots = 2 * NAMES_MAX };
}

void names_done(struct names *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->v[i]);
	free(t->v);
	free(t->slots);
	*t = (struct names){ 0 };
}

static size_t hash(const char *s)
{
	uint64_t h = 14695981039346656037ULL;

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 1099511628211ULL;
	return (size_t)(h ^ h >> 32);
}

/* The slot of the name, or the free one where it would be. */
static uint32_t *slot_of(const struct names *t, const char *name)
{
	size_t at = hash(name) % t->n_slots;

	while (t->slots[at] != 0 && !str_eq(t->v[t->slots[at] - 1], name))
		at = (at + 1) % t->n_slots;
	return &t->slots[at];
}

static struct addr base(const char *text)
{
	struct addr a;

	bug_on(addr_parse(text, strlen(text), &a) < 0);
	return a;
}

static struct addr nth(const char *text, size_t i)
{
	struct addr a = base(text);
	uint32_t low = (uint32_t)a.b[12] << 24 | (uint32_t)a.b[13] << 16 | (uint32_t)a.b[14] << 8 |
		       a.b[15];

	low += (uint32_t)(i + FIRST);
	for (int k = 0; k < 4; k++)
		a.b[12 + k] = (uint8_t)(low >> (24 - 8 * k));
	return a;
}

int names_address(struct names *t, const char *name, struct addr *ret4, struct addr *ret6)
{
	uint32_t *slot;

	if (t->slots == NULL)
		t->slots = mem_new(t->n_slots, sizeof(*t->slots));
	slot = slot_of(t, name);
	if (*slot == 0) {
		if (t->n == NAMES_MAX)
			return -ENOSPC;
		/* NOLINTNEXTLINE(bugprone-sizeof-expression): a vector of pointers */
		vec_reserve(t->v, t->n, t->cap);
		t->v[t->n++] = mem_str(name);
		*slot = (uint32_t)t->n;
	}
	*ret4 = nth(NETNS_V4, *slot - 1);
	*ret6 = nth(NETNS_V6, *slot - 1);
	return 0;
}

const char *names_find(const struct names *t, const struct addr *a, bool *ret_ours)
{
	struct addr v4 = base(NETNS_V4), v6 = base(NETNS_V6);
	bool is_v4 = addr_in(a, &v4, 96 + NETNS_V4_BITS);
	bool is_v6 = addr_in(a, &v6, NETNS_V6_BITS);
	const struct addr *from = is_v4 ? &v4 : &v6;
	struct addr back;
	uint32_t i = 0;

	*ret_ours = is_v4 || is_v6;
	if (!*ret_ours)
		return NULL;
	for (int k = 12; k < 16; k++)
		i = i << 8 | (uint32_t)(a->b[k]);
	for (int k = 0; k < 4; k++)
		i -= (uint32_t)from->b[12 + k] << (24 - 8 * k);
	if (i < FIRST || i - FIRST >= t->n)
		return NULL;
	/* Of the /64 only its low 32 bits count: all the others must be as we gave them. */
	back = nth(is_v4 ? NETNS_V4 : NETNS_V6, i - FIRST);
	return addr_eq(&back, a) ? t->v[i - FIRST] : NULL;
}
