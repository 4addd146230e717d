/* SPDX-License-Identifier: Apache-2.0 */
/* guard/pattern.c - see pattern.h
 *
 * A word is held against hundreds of patterns, and nearly all of them differ from it in the letters before their first
 * star or behind their last one. Those letters are compared first, in place; fnmatch(3), which decodes every character
 * and looks up its class, is left with the few patterns that have brackets.
 */
#include "guard/pattern.h"

#include <fnmatch.h>

#include "guard/rule.h"

/* The end of a pattern is special, too: nothing behind it is a letter to compare. */
static const bool specials[256] = {
	['\0'] = true, ['*'] = true, ['?'] = true, ['['] = true, [']'] = true, ['\\'] = true
};

static inline bool is_special(char c)
{
	return specials[(unsigned char)c];
}

static bool is_letter(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* Upper and lower case of a letter differ in one bit. */
static inline bool is_same(char a, char b, bool folds)
{
	return a == b || (folds && (a ^ b) == ' ' && is_letter(a));
}

/* '*' and '?' only: on a difference the last star takes one byte more. */
static bool stars_fit(const char *p, const char *p_end, const char *s, const char *s_end,
		      bool folds)
{
	const char *star = NULL, *from = NULL;

	while (s < s_end) {
		if (p < p_end && *p == '*') {
			star = p++;
			from = s;
		} else if (p < p_end && (*p == '?' || is_same(*p, *s, folds))) {
			p++;
			s++;
		} else if (star) {
			p = star + 1;
			s = ++from;
		} else {
			return false;
		}
	}
	while (p < p_end && *p == '*')
		p++;
	return p == p_end;
}

static bool library_fits(const char *pattern, size_t n, const char *s, bool folds)
{
	_free_ char *copy = mem_strn(pattern, n);

	return fnmatch(copy, s, folds ? FNM_CASEFOLD : 0) == 0;
}

/* The first `at` letters are the same and not special; pattern has n bytes, s has s_n. */
static bool rest_fits(const char *pattern, size_t n, size_t at, const char *s, size_t s_n,
		      bool folds)
{
	const char *p = pattern + at, *p_end = pattern + n, *text = s + at, *s_end = s + s_n;

	if (p == p_end)
		return text == s_end;
	for (; !is_special(p_end[-1]); p_end--, s_end--)
		if (s_end == text || !is_same(p_end[-1], s_end[-1], folds))
			return false;
	for (const char *i = p; i < p_end; i++)
		if (*i == '[' || *i == ']' || *i == '\\')
			return library_fits(pattern, n, s, folds);
	return stars_fit(p, p_end, text, s_end, folds);
}

bool pattern_fits(const char *pattern, size_t n, const char *s)
{
	size_t i = 0;

	for (; i < n && !is_special(pattern[i]); i++)
		if (pattern[i] != s[i])
			return false;
	return rest_fits(pattern, n, i, s, i + strlen(s + i), false);
}

bool pattern_fits_fold(const char *pattern, const char *s, size_t n)
{
	size_t i = 0;

	for (; !is_special(pattern[i]); i++)
		if (!is_same(pattern[i], s[i], true))
			return false;
	return rest_fits(pattern, i + strlen(pattern + i), i, s, n, true);
}

bool pattern_leads_below(const char *pattern, const char *dir)
{
	for (; *dir && !is_special(*pattern); dir++, pattern++)
		if (!is_same(*pattern, *dir, true))
			return false;
	return *pattern == '/' || (*pattern && is_special(*pattern));
}

/* Lists. */

bool rules_list_has(const char *list, const char *item)
{
	while (list && *list) {
		const char *s = item;

		while (*list && *list != '|' && *list == *s) {
			list++;
			s++;
		}
		if (*s == '\0' && (*list == '\0' || *list == '|'))
			return true;
		while (*list && *list != '|')
			list++;
		list += *list == '|';
	}
	return false;
}

bool rules_list_fits(const char *list, const char *item)
{
	while (list && *list) {
		size_t n = 0;

		while (list[n] && list[n] != '|')
			n++;
		if (pattern_fits(list, n, item))
			return true;
		list += n + (list[n] == '|');
	}
	return false;
}
