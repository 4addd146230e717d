/* SPDX-License-Identifier: Apache-2.0 */
/* tree/textdiff.c - unified diffs of two texts
 *
 * Lines become numbers (equal lines, equal numbers); what both ends share is set aside; between them the shortest
 * script is searched the way Myers described: for d = 0, 1, 2, ... the furthest point on every diagonal that d edits
 * reach, each d's points kept to walk back. Beyond EDITS_MAX edits the rest is shown as one replaced block, which is
 * right but not the shortest: time and memory stay bounded whatever the input.
 */
#include "tree/tree.h"

#define EDITS_MAX 1500
#define LINES_MAX ((size_t)1 << 22)
#define CONTEXT 3

struct line {
	const char *p;
	size_t n; /* with its newline, so that a last line without one is another line */
	uint32_t id;
};

struct side {
	struct line *v;
	size_t n;
	bool *is_changed; /* per line: not in the other text */
};

bool text_is_binary(const char *p, size_t n)
{
	return memchr(p, '\0', n < 8000 ? n : 8000) != NULL;
}

/* ---- lines ---- */

static void split(struct side *s, const char *p, size_t n)
{
	size_t cap = 0;

	*s = (struct side){ 0 };
	while (n > 0 && s->n < LINES_MAX) {
		const char *nl = memchr(p, '\n', n);
		size_t len = nl ? (size_t)(nl - p) + 1 : n;

		vec_reserve(s->v, s->n, cap);
		s->v[s->n++] = (struct line){ .p = p, .n = len };
		p += len;
		n -= len;
	}
	s->is_changed = mem_new(s->n + 1, sizeof(bool));
}

static void side_done(struct side *s)
{
	free(s->v);
	free(s->is_changed);
}

static uint64_t hash_line(const struct line *l)
{
	uint64_t h = 1469598103934665603U;

	for (size_t i = 0; i < l->n; i++)
		h = (h ^ (unsigned char)l->p[i]) * 1099511628211U;
	return h ^ h >> 29;
}

/* Equal lines get equal numbers. */
static void number(struct side *a, struct side *b)
{
	struct side *const sides[] = { a, b };
	size_t size = 64;
	_free_ const struct line **table = NULL;
	uint32_t next = 1;

	while (size < (a->n + b->n) * 2)
		size *= 2;
	table = mem_new(size, sizeof(*table)); /* NOLINT(bugprone-sizeof-expression): pointers */
	for (size_t k = 0; k < 2; k++) {
		for (size_t i = 0; i < sides[k]->n; i++) {
			struct line *l = &sides[k]->v[i];
			size_t at;

			for (at = hash_line(l) & (size - 1); table[at]; at = (at + 1) & (size - 1))
				if (table[at]->n == l->n && memcmp(table[at]->p, l->p, l->n) == 0)
					break;
			if (table[at] == NULL) {
				l->id = next++;
				table[at] = l;
			}
			l->id = table[at]->id;
		}
	}
}

/* ---- the shortest script ---- */

struct search {
	const struct side *a, *b;
	int64_t a0, b0, n, m; /* the part that differs */
	int32_t **reach;      /* per d: x for diagonals -d..d */
	int64_t edits;
};

static int64_t step(const struct search *s, const int32_t *v, int64_t d, int64_t k)
{
	int64_t x;

	/* v holds the diagonals -(d-1)..(d-1) of one edit less. */
	if (d == 0)
		x = 0;
	else if (k == -d || (k != d && v[k - 1 + d - 1] < v[k + 1 + d - 1]))
		x = v[k + 1 + d - 1];
	else
		x = v[k - 1 + d - 1] + 1;
	while (x < s->n && x - k < s->m && s->a->v[s->a0 + x].id == s->b->v[s->b0 + x - k].id)
		x++;
	return x;
}

/* v over -(d-1)..(d-1) has holes on every other diagonal; -1 stands there and outside. */
static bool search(struct search *s)
{
	for (int64_t d = 0; d <= EDITS_MAX; d++) {
		int32_t *v = mem_grow(NULL, (size_t)(2 * d + 1), sizeof(*v));

		s->reach[d] = v;
		s->edits = d;
		for (int64_t k = -d; k <= d; k += 2) {
			int64_t x = step(s, d ? s->reach[d - 1] : NULL, d, k);

			v[k + d] = (int32_t)x;
			if (k < d)
				v[k + d + 1] = -1;
			if (x >= s->n && k == s->n - s->m)
				return true;
		}
	}
	return false;
}

static void walk_back(const struct search *s)
{
	int64_t x = s->n, y = s->m;

	for (int64_t d = s->edits; d > 0; d--) {
		const int32_t *v = s->reach[d - 1];
		int64_t k = x - y;
		bool is_down = k == -d || (k != d && v[k - 1 + d - 1] < v[k + 1 + d - 1]);
		int64_t from = is_down ? k + 1 : k - 1;
		int64_t px = v[from + d - 1], py = px - from;

		if (is_down)
			s->b->is_changed[s->b0 + py] = true;
		else
			s->a->is_changed[s->a0 + px] = true;
		x = px;
		y = py;
	}
}

static void mark(struct side *a, struct side *b)
{
	struct search s = { .a = a, .b = b };
	size_t head = 0, tail = 0, least = a->n < b->n ? a->n : b->n;

	while (head < least && a->v[head].id == b->v[head].id)
		head++;
	while (tail < least - head && a->v[a->n - 1 - tail].id == b->v[b->n - 1 - tail].id)
		tail++;
	s.a0 = s.b0 = (int64_t)head;
	s.n = (int64_t)(a->n - head - tail);
	s.m = (int64_t)(b->n - head - tail);
	s.reach = mem_new(EDITS_MAX + 1, sizeof(*s.reach));
	/* Where one side has nothing there is nothing to search for, and new files are most of what a sandbox makes. */
	if (s.n > 0 && s.m > 0 && search(&s)) {
		walk_back(&s);
	} else {
		for (int64_t i = 0; i < s.n; i++)
			a->is_changed[s.a0 + i] = true;
		for (int64_t i = 0; i < s.m; i++)
			b->is_changed[s.b0 + i] = true;
	}
	for (size_t d = 0; d <= EDITS_MAX; d++)
		free(s.reach[d]);
	free(s.reach);
}

/* ---- printing ---- */

static void put_line(struct buf *out, char sign, const struct side *s, size_t i)
{
	buf_putc(out, sign);
	buf_add(out, s->v[i].p, s->v[i].n);
	if (s->v[i].p[s->v[i].n - 1] != '\n')
		buf_puts(out, "\n\\ No newline at end of file\n");
}

static void put_range(struct buf *out, char sign, size_t from, size_t n)
{
	buf_printf(out, "%c%zu", sign, n ? from + 1 : from);
	if (n != 1)
		buf_printf(out, ",%zu", n);
}

struct hunk {
	size_t a, b, a_end, b_end;
};

/* From the first changed line at or after (i, k): as far as changes are close enough to share their context. */
static bool next_hunk(const struct side *a, const struct side *b, size_t i, size_t k,
		      struct hunk *h)
{
	size_t quiet = 0;

	while (i < a->n && k < b->n && !a->is_changed[i] && !b->is_changed[k]) {
		i++;
		k++;
	}
	if (i >= a->n && k >= b->n)
		return false;
	h->a = i > CONTEXT ? i - CONTEXT : 0;
	h->b = k > CONTEXT ? k - CONTEXT : 0;
	if (i - h->a != k - h->b) { /* at the very beginning one side may have less before it */
		size_t least = i - h->a < k - h->b ? i - h->a : k - h->b;

		h->a = i - least;
		h->b = k - least;
	}
	while (i < a->n || k < b->n) {
		bool is_a = i < a->n && a->is_changed[i], is_b = k < b->n && b->is_changed[k];

		if (is_a || is_b) {
			i += is_a;
			k += !is_a;
			quiet = 0;
			continue;
		}
		if (quiet == (size_t)2 * CONTEXT)
			break;
		quiet++;
		i++;
		k++;
	}
	quiet = quiet > CONTEXT ? quiet - CONTEXT : 0;
	h->a_end = i - quiet;
	h->b_end = k - quiet;
	return true;
}

static void put_hunk(struct buf *out, const struct side *a, const struct side *b,
		     const struct hunk *h)
{
	size_t i = h->a, k = h->b;

	buf_puts(out, "@@ ");
	put_range(out, '-', h->a, h->a_end - h->a);
	buf_putc(out, ' ');
	put_range(out, '+', h->b, h->b_end - h->b);
	buf_puts(out, " @@\n");
	while (i < h->a_end || k < h->b_end) {
		if (i < h->a_end && a->is_changed[i]) {
			put_line(out, '-', a, i++);
		} else if (k < h->b_end && b->is_changed[k]) {
			put_line(out, '+', b, k++);
		} else {
			put_line(out, ' ', a, i++);
			k++;
		}
	}
}

void text_diff(const char *a_text, size_t a_n, const char *b_text, size_t b_n,
	       struct text_count *ret, struct buf *out)
{
	_cleanup_(side_done) struct side a;
	_cleanup_(side_done) struct side b;
	struct hunk h = { 0 };

	split(&a, a_text, a_n);
	split(&b, b_text, b_n);
	number(&a, &b);
	mark(&a, &b);
	*ret = (struct text_count){ 0 };
	for (size_t i = 0; i < a.n; i++)
		ret->removed += a.is_changed[i];
	for (size_t i = 0; i < b.n; i++)
		ret->added += b.is_changed[i];
	while (out && next_hunk(&a, &b, h.a_end, h.b_end, &h))
		put_hunk(out, &a, &b, &h);
}
