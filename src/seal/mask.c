/* SPDX-License-Identifier: Apache-2.0 */
/* seal/mask.c - see mask.h
 *
 * One Knuth-Morris-Pratt matcher per word. While no matcher is inside its word, the scan looks for the next two bytes that
 * begin one, by a small table: so the number of words costs nothing in a body that holds none. Bytes that were seen and not
 * released are in `held`; a complete word is replaced there. A piece in which nothing was found is not copied.
 */
#include "seal/mask.h"
#include "base/sabotage.h"
#include "seal/fifo.h"

enum {
	LET_GO = 3, /* a start this short is not held back */
	PAIRS = 4096
};

struct word {
	char *text, *by;
	uint32_t *back; /* KMP: where to go on after a mismatch behind i bytes */
	size_t n;
};

struct words {
	unsigned refs;
	struct word *v;
	size_t n, cap;
	size_t longest;
	bool begins[PAIRS]; /* two bytes that may begin a word, by pair_of() */
};

struct mask {
	struct words *w;
	size_t *at;     /* how far each matcher is in its word */
	bool is_inside; /* one of them is behind the first letter */
	struct fifo held, out;
};

/* ---- words ---- */

struct words *words_new(void)
{
	struct words *w = mem_new(1, sizeof(*w));

	w->refs = 1;
	return w;
}

struct words *words_ref(struct words *w)
{
	w->refs++;
	return w;
}

void words_unref(struct words *w)
{
	if (w == NULL || --w->refs > 0)
		return;
	for (size_t i = 0; i < w->n; i++) {
		explicit_bzero(w->v[i].text, w->v[i].n);
		explicit_bzero(w->v[i].by, w->v[i].n);
		free(w->v[i].text);
		free(w->v[i].by);
		free(w->v[i].back);
	}
	free(w->v);
	free(w);
}

bool words_is_empty(const struct words *w)
{
	return w == NULL || w->n == 0;
}

static size_t pair_of(const char *p)
{
	return ((size_t)(unsigned char)p[0] << 4 ^ (unsigned char)p[1]) % PAIRS;
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

/* Its place; w->n: it is not there. */
static size_t find_word(const struct words *w, struct str text)
{
	size_t i = 0;

	while (i < w->n && !(w->v[i].n == text.n && memcmp(w->v[i].text, text.p, text.n) == 0))
		i++;
	return i;
}

bool words_add(struct words *w, struct str word, struct str by)
{
	struct word new = { .n = word.n };

	bug_on(w->refs != 1);
	if (word.n < MASK_SHORTEST)
		return false;
	if (find_word(w, word) < w->n)
		return true;
	new.text = mem_strn(word.p, word.n);
	new.by = mem_new(word.n + 1, 1);
	new.back = mem_new(word.n, sizeof(*new.back));
	memset(new.by, '*', word.n);
	memcpy(new.by, by.p, by.n < word.n ? by.n : word.n);
	fill_back(&new);
	w->begins[pair_of(new.text)] = true;
	w->longest = new.n > w->longest ? new.n : w->longest;
	vec_reserve(w->v, w->n, w->cap);
	w->v[w->n++] = new;
	return true;
}

/* ---- a stream ---- */

struct mask *mask_new(struct words *take_words)
{
	struct mask *m = mem_new(1, sizeof(*m));

	m->w = take_words;
	m->at = mem_new(take_words->n + 1, sizeof(*m->at));
	m->held = FIFO(SIZE_MAX);
	m->out = FIFO(SIZE_MAX);
	return m;
}

void mask_free(struct mask *m)
{
	if (m == NULL)
		return;
	words_unref(m->w);
	free(m->at);
	fifo_done(&m->held);
	fifo_done(&m->out);
	free(m);
}

bool mask_is_empty(const struct mask *m)
{
	return m == NULL || words_is_empty(m->w);
}

void mask_learn(struct mask *m, struct words *take_words)
{
	size_t *at = mem_new(take_words->n + 1, sizeof(*at));

	for (size_t i = 0; i < m->w->n; i++) {
		const struct word *w = &m->w->v[i];
		size_t k = find_word(take_words, (struct str){ .p = w->text, .n = w->n });

		if (k < take_words->n)
			at[k] = m->at[i];
	}
	words_unref(m->w);
	free(m->at);
	m->w = take_words;
	m->at = at;
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

/* Where a word may begin at or behind k: the last byte may be the first of two. */
static size_t next_begin(const struct words *w, const char *p, size_t k, size_t n)
{
	while (k + 1 < n && !w->begins[pair_of(p + k)])
		k++;
	return k;
}

/* How many bytes at the end may be the start of a word. */
static size_t kept(const struct mask *m)
{
	size_t keep = 0;

	for (size_t i = 0; i < m->w->n; i++)
		if (m->at[i] > LET_GO && m->at[i] > keep)
			keep = m->at[i];
	return keep;
}

/* All but the last `keep` bytes that are held go on. */
static void let_go(struct mask *m, size_t keep, struct str *ret)
{
	struct str held = fifo_view(&m->held);

	if (keep > held.n)
		keep = held.n;
	m->out.n = 0;
	m->out.at = 0;
	fifo_force(&m->out, held.p, held.n - keep);
	fifo_take(&m->held, held.n - keep);
	*ret = fifo_view(&m->out);
}

void mask_feed(struct mask *m, const char *p, size_t n, struct str *ret)
{
	size_t before = m->held.n, keep;
	bool is_copied = before > 0;

	if (is_copied)
		fifo_force(&m->held, p, n);
	for (size_t k = 0; k < n; k++) {
		if (!m->is_inside)
			k = next_begin(m->w, p, k, n);
		m->is_inside = false;
		for (size_t i = 0; i < m->w->n; i++) {
			if (step(&m->w->v[i], &m->at[i], p[k])) {
				if (!is_copied)
					fifo_force(&m->held, p, n);
				is_copied = true;
				replace(m, &m->w->v[i], before + k + 1);
			}
			m->is_inside |= m->at[i] > 0;
		}
	}
	keep = kept(m);
	if (!is_copied && keep == 0) {
		*ret = (struct str){ .p = p, .n = n };
		return;
	}
	if (!is_copied)
		fifo_force(&m->held, p, n);
	let_go(m, keep, ret);
}

static void flush(struct mask *m, struct str *ret)
{
	let_go(m, 0, ret);
	for (size_t i = 0; i < m->w->n; i++)
		m->at[i] = 0;
	m->is_inside = false;
}

void mask_end(struct mask *m, struct str *ret)
{
	for (size_t i = 0; i < m->w->n; i++) {
		size_t at = m->at[i], n = at < m->held.n ? at : m->held.n;

		if (at > LET_GO && !sabotaged("seal-cut"))
			memcpy(m->held.p + m->held.at + m->held.n - n, m->w->v[i].by + at - n, n);
	}
	flush(m, ret);
}

size_t mask_held(const struct mask *m)
{
	return m->held.n;
}

/* ---- a text ---- */

/* The longest word that stands at p, or NULL. */
static const struct word *word_at(const struct words *w, const char *p, size_t n)
{
	const struct word *found = NULL;

	for (size_t i = 0; i < w->n; i++)
		if (w->v[i].n <= n && memcmp(w->v[i].text, p, w->v[i].n) == 0 &&
		    (found == NULL || w->v[i].n > found->n))
			found = &w->v[i];
	return found;
}

/* Where a word stands, at or behind k; n: nowhere. */
static size_t next_word(const struct words *w, const char *p, size_t k, size_t n)
{
	while (k + MASK_SHORTEST <= n && !(w->begins[pair_of(p + k)] && word_at(w, p + k, n - k)))
		k++;
	return k + MASK_SHORTEST <= n ? k : n;
}

/* Where the text ends inside a word that begins at or behind `from`, behind the word's third letter; n: it does not. */
static size_t cut_word(const struct words *w, const char *p, size_t from, size_t n,
		       const struct word **ret)
{
	if (n > w->longest && from < n - w->longest)
		from = n - w->longest;
	for (size_t k = from; k + LET_GO < n && !sabotaged("seal-cut"); k++)
		for (size_t i = 0; w->begins[pair_of(p + k)] && i < w->n; i++)
			if (w->v[i].n > n - k && memcmp(w->v[i].text, p + k, n - k) == 0) {
				*ret = &w->v[i];
				return k;
			}
	return n;
}

bool mask_finds(const struct mask *m, struct str text)
{
	const struct word *w;

	return next_word(m->w, text.p, 0, text.n) < text.n ||
	       cut_word(m->w, text.p, 0, text.n, &w) < text.n;
}

bool mask_text(const struct mask *m, char *p, size_t n)
{
	const struct word *w;
	bool is_hit = false;
	size_t k, from = 0; /* what stands before it is ours */

	while ((k = next_word(m->w, p, from, n)) < n) {
		w = word_at(m->w, p + k, n - k);
		memcpy(p + k, w->by, w->n);
		from = k + w->n;
		is_hit = true;
	}
	k = cut_word(m->w, p, from, n, &w);
	if (k < n)
		memcpy(p + k, w->by, n - k);
	return is_hit || k < n;
}
