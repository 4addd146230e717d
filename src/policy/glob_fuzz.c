/* SPDX-License-Identifier: Apache-2.0 */
/* policy/glob_fuzz.c - the matcher against a second one that is too simple to be wrong
 *
 * Input is PATTERN NUL PATH. The second one follows the definition by recursion over a list of components and may take
 * exponential time, so the input is kept short. Only patterns that glob_check() accepts have a definition.
 */
#include "base/utf8.h"
#include "policy/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define SHORT 40

/* A path: components as strings. */
struct parts {
	char text[SHORT + 1];
	const char *v[SHORT + 2];
	size_t n;
};

static void split(struct parts *p, const char *s)
{
	(void)snprintf(p->text, sizeof(p->text), "%s", s);
	p->n = 0;
	p->v[p->n++] = p->text;
	for (char *c = p->text; *c; c++) {
		if (*c == '/') {
			*c = '\0';
			p->v[p->n++] = c + 1;
		}
	}
}

/* Bytes of the character at s. */
static size_t width(const char *s)
{
	size_t n = utf8_decode(s, strlen(s), NULL);

	return n ? n : 1;
}

static bool in_class(const char *list, size_t n, const char *s)
{
	bool is_not = n > 0 && (list[0] == '!' || list[0] == '^'), is_in = false;

	for (size_t i = is_not; i < n; i++) {
		if (i + 2 < n && list[i + 1] == '-') {
			is_in |= width(s) == 1 && *s >= list[i] && *s <= list[i + 2];
			i += 2;
		} else {
			is_in |= *s == list[i];
		}
	}
	return is_in != is_not;
}

static bool name_matches(const char *p, const char *s)
{
	const char *end;

	switch (*p) {
	case '\0':
		return *s == '\0';
	case '*':
		return name_matches(p + 1, s) || (*s && name_matches(p, s + width(s)));
	case '?':
		return *s && name_matches(p + 1, s + width(s));
	case '[':
		end = p + 1 + (p[1] == '!' || p[1] == '^');
		end = strchr(end + 1, ']'); /* one character at least is listed */
		return *s && in_class(p + 1, (size_t)(end - p - 1), s) &&
		       name_matches(end + 1, s + width(s));
	case '\\':
		p++;
		break;
	default:
		break;
	}
	return *p == *s && name_matches(p + 1, s + 1);
}

static bool parts_match(const struct parts *p, size_t i, const struct parts *s, size_t k)
{
	if (i == p->n)
		return k == s->n;
	if (!str_eq(p->v[i], "**"))
		return k < s->n && name_matches(p->v[i], s->v[k]) &&
		       parts_match(p, i + 1, s, k + 1);
	if (i + 1 == p->n)
		return k < s->n;
	for (; k <= s->n; k++)
		if (parts_match(p, i + 1, s, k))
			return true;
	return false;
}

static bool matches(const char *pattern, const char *rel)
{
	struct parts p, s;

	split(&p, pattern);
	split(&s, rel);
	if (rel[0] == '\0')
		return false;
	if (p.n == 1 && !str_eq(pattern, "**"))
		return name_matches(pattern, s.v[s.n - 1]);
	return parts_match(&p, 0, &s, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	_free_ char *text = mem_strn((const char *)data, n);
	const char *pattern = text, *rel = text + strlen(text) + (strlen(text) < n);
	struct err e = ERR_INIT;
	int r = glob_check(pattern, &e);
	bool is_match = glob_match(pattern, rel);

	struct items one = { 0 };

	items_add(&one, pattern, LAYER_FLAGS);
	bug_on(pattern[0] != '!' &&
	       is_match != (items_match(&one, rel) == 0)); /* its short cuts change nothing */
	items_done(&one);
	bug_on((r < 0) != (e.kind != ERR_NONE));
	if (r < 0 || strlen(pattern) > 20 || strlen(rel) > SHORT)
		return 0;
	bug_on(is_match != matches(pattern, rel));
	return 0;
}
