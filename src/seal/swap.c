/* SPDX-License-Identifier: Apache-2.0 */
/* seal/swap.c - see swap.h
 *
 * A text is looked through for the words at every byte that begins one. Where the text ends inside a word, the rest of it is
 * held, and looked through again with what comes. A piece in which nothing is found is not copied.
 *
 * The first letters that all words have in common with what they become ("sk-") go out at once, so that a program which waits
 * for an answer to what it has sent so far is not held up by a body that happens to pause behind an 's'. `given` counts those
 * of the held bytes that are out.
 */
#include "seal/swap.h"
#include "seal/fifo.h"

enum { LET_GO = 3 };

struct word {
	char *text, *by;
	size_t n, by_n;
	size_t secret;
};

struct swap {
	struct word *v;
	size_t n, cap;
	bool begins[256];
	size_t common; /* letters that every word shares with what it becomes; at most LET_GO */
	struct fifo held, out;
	size_t given;
	int64_t growth;
	uint64_t secrets;
};

struct swap *swap_new(void)
{
	struct swap *s = mem_new(1, sizeof(*s));

	s->common = LET_GO;
	s->held = FIFO(SIZE_MAX);
	s->out = FIFO(SIZE_MAX);
	return s;
}

void swap_free(struct swap *s)
{
	if (s == NULL)
		return;
	for (size_t i = 0; i < s->n; i++) {
		explicit_bzero(s->v[i].by, s->v[i].by_n);
		free(s->v[i].text);
		free(s->v[i].by);
	}
	free(s->v);
	fifo_done(&s->held);
	fifo_done(&s->out);
	free(s);
}

bool swap_is_empty(const struct swap *s)
{
	return s == NULL || s->n == 0;
}

void swap_add(struct swap *s, struct str word, struct str by, size_t secret)
{
	size_t same = 0;

	bug_on(word.n == 0 || secret >= 64);
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i].n == word.n && memcmp(s->v[i].text, word.p, word.n) == 0)
			return;
	while (same < s->common && same < word.n && same < by.n && word.p[same] == by.p[same])
		same++;
	s->common = same;
	s->begins[(unsigned char)word.p[0]] = true;
	vec_reserve(s->v, s->n, s->cap);
	s->v[s->n++] = (struct word){ .text = mem_strn(word.p, word.n),
				      .by = mem_strn(by.p, by.n),
				      .n = word.n,
				      .by_n = by.n,
				      .secret = secret };
}

bool swap_resizes(const struct swap *s)
{
	for (size_t i = 0; s && i < s->n; i++)
		if (s->v[i].n != s->v[i].by_n)
			return true;
	return false;
}

/* The longest word that stands at the beginning of the text, or NULL; *ret_cut: the text ends inside a word. */
static const struct word *word_at(const struct swap *s, struct str text, bool *ret_cut)
{
	const struct word *found = NULL;

	*ret_cut = false;
	for (size_t i = 0; i < s->n; i++) {
		const struct word *w = &s->v[i];
		bool is_whole = w->n <= text.n;

		if (memcmp(w->text, text.p, is_whole ? w->n : text.n) != 0)
			continue;
		*ret_cut |= !is_whole;
		if (is_whole && (found == NULL || w->n > found->n))
			found = w;
	}
	return found;
}

/* Of the text, whose first bytes may be out already, the bytes from *at to `to` go out. */
static void put_raw(struct swap *s, struct str text, size_t *at, size_t to)
{
	if (to > *at) {
		fifo_force(&s->out, text.p + *at, to - *at);
		*at = to;
	}
}

static void put_value(struct swap *s, const struct word *w, size_t k, size_t *at)
{
	size_t given = *at > k ? *at - k : 0; /* letters of it that are out */

	fifo_force(&s->out, w->by + given, w->by_n - given);
	*at = k + w->n;
	s->growth += (int64_t)w->by_n - (int64_t)w->n;
	s->secrets |= UINT64_C(1) << w->secret;
}

/* Where the text is to be held from: its end, or where a word begins in which it ends. `*at` is behind what is out. */
static size_t scan(struct swap *s, struct str text, size_t *at)
{
	size_t k = 0;

	while (k < text.n) {
		const struct word *w;
		bool is_cut;

		if (!s->begins[(unsigned char)text.p[k]]) {
			k++;
			continue;
		}
		w = word_at(s, str_from(text, k), &is_cut);
		if (is_cut && w == NULL)
			return k;
		if (w == NULL) {
			k++;
			continue;
		}
		put_raw(s, text, at, k);
		put_value(s, w, k, at);
		k = *at;
		if (s->growth > SWAP_GROWTH_MAX)
			return k;
	}
	return k;
}

int swap_feed(struct swap *s, const char *p, size_t n, struct str *ret)
{
	struct str text = { .p = p, .n = n };
	bool is_copied = s->held.n > 0;
	size_t at = s->given, keep, give;

	fifo_take(&s->out, s->out.n);
	if (is_copied) {
		fifo_force(&s->held, p, n);
		text = fifo_view(&s->held);
	}
	keep = scan(s, text, &at);
	if (s->growth > SWAP_GROWTH_MAX)
		return -EMSGSIZE;
	if (at == 0 && keep == text.n && !is_copied) {
		*ret = text;
		return 0;
	}
	give = text.n - keep < s->common ? text.n - keep : s->common;
	put_raw(s, text, &at, keep + give);
	s->given = at > keep ? at - keep : 0;
	if (is_copied)
		fifo_take(&s->held, keep);
	else
		fifo_force(&s->held, text.p + keep, text.n - keep);
	*ret = fifo_view(&s->out);
	return 0;
}

void swap_end(struct swap *s, struct str *ret)
{
	struct str held = fifo_view(&s->held);

	fifo_take(&s->out, s->out.n);
	fifo_force(&s->out, held.p + s->given, held.n - s->given);
	fifo_take(&s->held, held.n);
	s->given = 0;
	*ret = fifo_view(&s->out);
}

int64_t swap_growth(const struct swap *s)
{
	return s->growth;
}

uint64_t swap_secrets(const struct swap *s)
{
	return s->secrets;
}
