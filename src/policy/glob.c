/* SPDX-License-Identifier: Apache-2.0 */
/* policy/glob.c - path patterns
 *
 * Two loops of the same shape: components against components, where "**" may take any number, and characters against
 * characters within a component, where "*" may. On a mismatch only the last star is stretched by one; earlier stars
 * never need another look, because whatever they could give the last one can take itself. So there is no recursion
 * and no exponential case: a hostile project file gets to choose patterns and, through the workspace, names.
 *
 * Stars move by characters, so the argument needs patterns made of whole characters: glob_check() asks for UTF-8. Names
 * may be any bytes; one that is part of no character counts as one.
 */
#include "base/utf8.h"
#include "policy/table.h"

/* Length of the character at s: a whole UTF-8 sequence, or one byte of anything else. */
static size_t char_len(const char *s, const char *end)
{
	size_t n = utf8_decode(s, (size_t)(end - s), NULL);

	return n ? n : 1;
}

/* p stands behind '['. Returns the byte behind the closing bracket, or NULL when there is none. */
static const char *class_match(const char *p, const char *pe, const char *s, size_t n,
			       bool *ret_is_match)
{
	bool is_negated = p < pe && (*p == '!' || *p == '^'), is_in = false;

	p += is_negated;
	for (const char *first = p; p < pe && (*p != ']' || p == first);) {
		unsigned char from = (unsigned char)*p++, to = from;

		if (pe - p >= 2 && p[0] == '-' && p[1] != ']') {
			to = (unsigned char)p[1];
			p += 2;
		}
		/* Only ASCII can be listed (glob_check); a longer character can only match a negated class. */
		if (n == 1 && (unsigned char)*s >= from && (unsigned char)*s <= to)
			is_in = true;
	}
	if (p >= pe)
		return NULL;
	*ret_is_match = is_in != is_negated;
	return p + 1;
}

/* One element of the pattern against one character; moves both on a match and neither otherwise. */
static bool element_match(const char **pp, const char *pe, const char **ps, const char *se)
{
	const char *p = *pp, *s = *ps;
	size_t n = 1;

	if (*p == '?') {
		n = char_len(s, se);
		p++;
	} else if (*p == '[') {
		bool is_match = false;

		n = char_len(s, se);
		p = class_match(p + 1, pe, s, n, &is_match);
		if (p == NULL || !is_match)
			return false;
	} else {
		if (*p == '\\' && pe - p > 1)
			p++;
		if (*p++ != *s)
			return false;
	}
	*pp = p;
	*ps = s + n;
	return true;
}

/* One step less; false when none is left. */
static bool spend(uint64_t *steps)
{
	if (steps == NULL)
		return true;
	if (*steps == 0)
		return false;
	(*steps)--;
	return true;
}

static bool component_match(const char *p, const char *pe, const char *s, const char *se,
			    uint64_t *steps)
{
	const char *star_p = NULL, *star_s = NULL;

	while (p < pe || s < se) {
		if (!spend(steps))
			return false;
		if (p < pe && *p == '*') {
			star_p = ++p;
			star_s = s;
		} else if (p < pe && s < se && element_match(&p, pe, &s, se)) {
			continue;
		} else if (star_p && star_s < se) {
			star_s += char_len(star_s, se);
			p = star_p;
			s = star_s;
		} else {
			return false;
		}
	}
	return true;
}

static const char *component_end(const char *s)
{
	return strchrnul(s, '/');
}

/* The component behind the one at s, NULL behind the last. */
static const char *component_next(const char *s)
{
	const char *end = component_end(s);

	return *end ? end + 1 : NULL;
}

static bool is_any_depth(const char *p)
{
	return p[0] == '*' && p[1] == '*' && (p[2] == '/' || p[2] == '\0');
}

static bool path_match(const char *pattern, const char *rel, uint64_t *steps)
{
	const char *p = pattern, *s = rel, *star_p = NULL, *star_s = NULL;

	while (p || s) {
		if (!spend(steps))
			return false;
		if (p && is_any_depth(p)) {
			star_p = component_next(p);
			if (star_p == NULL)
				return s != NULL;
			star_s = s;
			p = star_p;
		} else if (p && s &&
			   component_match(p, component_end(p), s, component_end(s), steps)) {
			p = component_next(p);
			s = component_next(s);
		} else if (star_p && star_s) {
			star_s = component_next(star_s);
			p = star_p;
			s = star_s;
		} else {
			return false;
		}
	}
	return true;
}

static const char *last_name(const char *rel)
{
	const char *slash = strrchr(rel, '/');

	return slash ? slash + 1 : rel;
}

static bool pattern_match(const char *pattern, size_t n, bool is_path, const char *rel,
			  const char *name, uint64_t *steps)
{
	if (*rel == '\0')
		return false;
	if (is_path || is_any_depth(pattern))
		return path_match(pattern, rel, steps);
	return component_match(pattern, pattern + n, name, name + strlen(name), steps);
}

bool glob_match(const char *pattern, const char *rel)
{
	return glob_match_within(pattern, rel, NULL);
}

bool glob_match_within(const char *pattern, const char *rel, uint64_t *steps)
{
	return pattern_match(pattern, strlen(pattern), strchr(pattern, '/') != NULL, rel,
			     last_name(rel), steps);
}

static bool is_plain(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (s[i] == '*' || s[i] == '?' || s[i] == '[' || s[i] == '\\' || s[i] == '{')
			return false;
	return n > 0;
}

static void prepare_name(struct item *it)
{
	const char *name = last_name(it->text);
	size_t n = strlen(name);

	it->is_literal = it->text[0] != '!' && is_plain(name, n);
	if (!it->is_literal)
		return;
	it->name_at = (uint32_t)(name - it->text);
	it->name_hash = name_hash(name, n);
}

/* Nearly all answers are no, and nearly all of those can be had from the first and the last byte of the name. */
void item_prepare(struct item *it)
{
	const char *text = it->text + (it->text[0] == '!');
	size_t n = strlen(it->text);

	bug_on(n > UINT32_MAX);
	it->n = (uint32_t)n;
	it->is_path = strchr(text, '/') != NULL;
	it->first = text[0];
	if (it->is_path || text[0] == '*' || text[0] == '?' || text[0] == '[' || text[0] == '\\')
		it->first = 0;
	if (n > 0 && it->text[n - 1] != '*' && it->text[n - 1] != '?' && it->text[n - 1] != ']')
		it->last = it->text[n - 1];
	prepare_name(it);
}

int items_match(const struct items *l, const char *rel)
{
	const char *name = last_name(rel);
	size_t n = strlen(rel);
	char first = name[0], last = rel[n > 0 ? n - 1 : 0];

	for (size_t i = l->n; i-- > 0;) {
		const struct item *it = &l->v[i];
		bool is_taken_back;

		if ((it->first && it->first != first) || (it->last && it->last != last))
			continue;
		is_taken_back = it->text[0] == '!';
		if (pattern_match(it->text + is_taken_back, it->n - is_taken_back, it->is_path, rel,
				  name, NULL))
			return is_taken_back ? -1 : (int)i;
	}
	return -1;
}

/* p stands behind '['. */
static int check_class(const char *p, const char **ret, struct err *e)
{
	const char *first;

	p += *p == '!' || *p == '^';
	for (first = p; *p && (*p != ']' || p == first); p++) {
		if (*p == '/' || *p == '\\' || *p == '[' || (unsigned char)*p >= 0x80)
			return err_set(e, ERR_USAGE, EINVAL,
				       "a [class] may list plain ASCII characters only, no '/', "
				       "'\\' or '['");
		if (p[1] == '-' && p[2] && p[2] != ']') {
			if (*p > p[2] || (unsigned char)p[2] >= 0x80 || (*p <= '/' && p[2] >= '/'))
				return err_set(e, ERR_USAGE, EINVAL,
					       "a range in a [class] runs backwards or over '/'");
			p += 2;
		}
	}
	if (*p == '\0')
		return err_set(e, ERR_USAGE, EINVAL,
			       "'[' is never closed; write \\[ for the character");
	*ret = p + 1;
	return 0;
}

static int check_element(const char *p, const char **ret, struct err *e)
{
	if (p[0] == '*' && p[1] == '*')
		return err_set(e, ERR_USAGE, EINVAL, "'**' must stand alone between slashes");
	if (p[0] == '\\' && (p[1] == '\0' || p[1] == '/'))
		return err_set(e, ERR_USAGE, EINVAL,
			       "'\\' must be followed by a character that is not '/'");
	if (p[0] == '[')
		return check_class(p + 1, ret, e);
	*ret = p + (p[0] == '\\' ? 2 : 1);
	return 0;
}

static int check_component(const char *p, const char *pe, struct err *e)
{
	size_t n = (size_t)(pe - p);

	if (n == 0)
		return err_set(e, ERR_USAGE, EINVAL,
			       "an empty component; a pattern has no slash at either end");
	if ((n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
		return err_set(e, ERR_USAGE, EINVAL, "'.' and '..' have no meaning in a pattern");
	if (n == 2 && is_any_depth(p))
		return 0;
	while (p < pe) {
		int r = check_element(p, &p, e);

		if (r < 0)
			return r;
	}
	return 0;
}

int glob_check(const char *pattern, struct err *e)
{
	const char *p = pattern;

	if (*p == '!')
		return err_set(e, ERR_USAGE, EINVAL,
			       "'!' begins an entry that is taken back; write \\! for the "
			       "character");
	if (*p == '/' || *p == '~')
		return err_set(e, ERR_USAGE, EINVAL,
			       "a pattern is relative to the workspace, it cannot begin with '%c'",
			       *p);
	if (strlen(p) > GLOB_MAX_BYTES)
		return err_set(e, ERR_USAGE, EINVAL, "a pattern of more than %d bytes",
			       GLOB_MAX_BYTES);
	for (const char *c = p, *end = p + strlen(p); c < end; c += char_len(c, end))
		if (utf8_decode(c, (size_t)(end - c), NULL) == 0)
			return err_set(e, ERR_USAGE, EILSEQ, "a pattern that is not valid UTF-8");
	for (; p; p = component_next(p)) {
		int r = check_component(p, component_end(p), e);

		if (r < 0)
			return r;
	}
	return 0;
}
