/* SPDX-License-Identifier: Apache-2.0 */
/* policy/near.c - the word somebody probably meant
 *
 * Edit distance with swaps of neighbours as one edit (optimal string alignment). Near means at most two edits and
 * less than half of the word. Words longer than any of our names are near to nothing.
 */
#include "policy/table.h"

#define WORD_MAX 32

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

static unsigned distance(const char *a, size_t n, const char *b, size_t m)
{
	unsigned row[3][WORD_MAX + 1];

	for (unsigned j = 0; j <= m; j++)
		row[0][j] = j;
	for (unsigned i = 1; i <= n; i++) {
		unsigned *now = row[i % 3], *above = row[(i + 2) % 3], *above2 = row[(i + 1) % 3];

		now[0] = i;
		for (unsigned j = 1; j <= m; j++) {
			now[j] = least(least(above[j], now[j - 1]) + 1,
				       above[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = least(now[j], above2[j - 2] + 1);
		}
	}
	return row[n % 3][m];
}

const char *near_name(const char *word, const char *const *candidates, size_t n)
{
	size_t len = strlen(word);
	const char *best = NULL;
	unsigned best_d = 3;

	if (len == 0 || len > WORD_MAX)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		size_t m = strlen(candidates[i]);
		unsigned d;

		if (m > WORD_MAX)
			continue;
		d = distance(word, len, candidates[i], m);
		if (d < best_d && (size_t)d * 2 < (m > len ? m : len)) {
			best = candidates[i];
			best_d = d;
		}
	}
	return best;
}
