/* SPDX-License-Identifier: Apache-2.0 */
/* seal/mask.c - see mask.h
 *
 * One Knuth-Morris-Pratt matcher per word, all fed byte by byte. What has been seen but not released is in `held`;
 * a complete word is replaced there.
 */
#include "seal/mask.h"
#include "seal/fifo.h"

enum { LET_GO = 3 }; /* a start this short is not held back */

struct word {
	char *text, *by;
	uint32_t *back; /* KMP: where to go on after a mismatch behind i bytes */
	size_t n, at;
};

struct mask {
	struct word *v;
	size_t n, cap;
	struct fifo held, out;
};

struct mask *mask_new(void)
{
	struct mask *m = mem_new(1, sizeof(*m));

	m->held = FIFO(SIZE_MAX);
	m->out = FIFO(SIZE_MAX);
	return m;
}

void mask_free(struct mask *m)
{
	if (m == NULL)
		return;
	for (size_t i = 0; i < m->n; i++) {
		explicit_bzero(m->v[i].text, m->v[i].n);
		explicit_bzero(m->v[i].by, m->v[i].n);
		free(m->v[i].text);
		free(m->v[i].by);
		free(m->v[i].back);
	}
	free(m->v);
	fifo_done(&m->held);
	fifo_done(&m->out);
	free(m);
}

static void fill_back(struct word *w)
{
	size_t k = 0;

	for (size_t i = 1; i < w->n; i++) {
		while (k > 0 && w->text[i] != w->text[k])
			k = w->back[k - 1];
		k += w->text[i] == w->text[k];
		w->back[i] = (uint32_t)k;
	}
}

bool mask_add(struct mask *m, struct str word, struct str by)
{
	struct word w = { .n = word.n };

	if (word.n < MASK_SHORTEST)
		return false;
	w.text = mem_strn(word.p, word.n);
	w.by = mem_new(word.n + 1, 1);
	w.back = mem_new(word.n, sizeof(*w.back));
	memset(w.by, '*', word.n);
	memcpy(w.by, by.p, by.n < word.n ? by.n : word.n);
	fill_back(&w);
	vec_reserve(m->v, m->n, m->cap);
	m->v[m->n++] = w;
	return true;
}

bool mask_is_empty(const struct mask *m)
{
	return m == NULL || m->n == 0;
}

/* True when c completes the word. */
static bool step(const struct word *w, size_t *at, char c)
{
	while (*at > 0 && w->text[*at] != c)
		*at = w->back[*at - 1];
	*at += w->text[*at] == c;
	if (*at < w->n)
		return false;
	*at = 0;
	return true;
}

/* The word ends at byte `end` of held; its first letters may have gone already. */
static void replace(struct mask *m, const struct word *w, size_t end)
{
	size_t n = w->n < end ? w->n : end;

	memcpy(m->held.p + m->held.at + end - n, w->by + w->n - n, n);
}

void mask_feed(struct mask *m, const char *p, size_t n, struct str *ret)
{
	size_t before = m->held.n, keep = 0;
	struct str held;

	fifo_force(&m->held, p, n);
	for (size_t i = 0; i < m->n; i++) {
		struct word *w = &m->v[i];

		for (size_t k = 0; k < n; k++)
			if (step(w, &w->at, p[k]))
				replace(m, w, before + k + 1);
		if (w->at > LET_GO && w->at > keep)
			keep = w->at;
	}
	if (keep > m->held.n)
		keep = m->held.n;
	m->out.n = 0;
	m->out.at = 0;
	held = fifo_view(&m->held);
	fifo_force(&m->out, held.p, held.n - keep);
	fifo_take(&m->held, held.n - keep);
	*ret = fifo_view(&m->out);
}

void mask_end(struct mask *m, struct str *ret)
{
	struct str held;

	for (size_t i = 0; i < m->n; i++) {
		const struct word *w = &m->v[i];
		size_t n = w->at < m->held.n ? w->at : m->held.n;

		if (w->at > LET_GO)
			memcpy(m->held.p + m->held.at + m->held.n - n, w->by + w->at - n, n);
	}
	held = fifo_view(&m->held);
	m->out.n = 0;
	m->out.at = 0;
	fifo_force(&m->out, held.p, held.n);
	fifo_take(&m->held, held.n);
	for (size_t i = 0; i < m->n; i++)
		m->v[i].at = 0;
	*ret = fifo_view(&m->out);
}

size_t mask_held(const struct mask *m)
{
	return m->held.n;
}

bool mask_text(const struct mask *m, char *p, size_t n)
{
	bool is_hit = false;

	for (size_t i = 0; i < m->n; i++) {
		size_t at = 0;

		for (size_t k = 0; k < n; k++)
			if (step(&m->v[i], &at, p[k])) {
				memcpy(p + k + 1 - m->v[i].n, m->v[i].by, m->v[i].n);
				is_hit = true;
			}
	}
	return is_hit;
}
