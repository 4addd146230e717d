/* SPDX-License-Identifier: Apache-2.0 */
/* view/match.c - see match.h
 *
 * Nearly every name of a workspace matches nothing, so the way to "no" is two table loads: first byte and
 * length against the literal names, first and last byte against the globs. "!pattern" entries take part only in
 * items_match(): without a positive match there is nothing to take back.
 */
#include "view/match.h"
#include "base/buf.h"
#include "base/sabotage.h"
#include "view/git.h"

static const char meta[] = "*?[\\{";

static struct match_name *slot(const struct matcher *m, const char *s, size_t n, uint32_t hash)
{
	size_t i = hash & (m->names_size - 1);

	while (m->names[i].text && (m->names[i].len != n || memcmp(m->names[i].text, s, n) != 0))
		i = (i + 1) & (m->names_size - 1);
	return &m->names[i];
}

static void add_hashed(struct matcher *m, const char *s, size_t n, uint32_t hash, unsigned bits)
{
	struct match_name *at = slot(m, s, n, hash);

	if (at->text == NULL) {
		*at = (struct match_name){ .text = s, .len = (uint32_t)n };
		m->names_n++;
		bug_on(m->names_n * 2 > m->names_size);
	}
	at->bits |= bits;
	m->lens[(unsigned char)s[0]] |= (uint64_t)1 << (n < 63 ? n : 63);
}

static void add_name(struct matcher *m, const char *s, size_t n, unsigned bits)
{
	add_hashed(m, s, n, name_hash(s, n), bits);
}

/* The last component [s, s + n) of a pattern [whole, s + n). */
static void add_glob(struct matcher *m, const char *whole, const char *s, size_t n, unsigned bits)
{
	struct match_glob g = { .dir = whole, .prefix = s, .bits = bits };
	size_t lit = strcspn(whole, meta);

	g.prefix_len = strcspn(s, meta);
	while (g.suffix_len < n && strchr("*?[]\\{},", s[n - g.suffix_len - 1]) == NULL)
		g.suffix_len++;
	g.suffix = s + n - g.suffix_len;
	/* A class or an escape may hide a literal end of what it is part of: then only the beginning counts. */
	if (memchr(s, '[', n) || memchr(s, '\\', n) || memchr(s, '{', n))
		g.suffix_len = 0;
	while (lit > 0 && whole[lit - 1] != '/')
		lit--;
	g.dir_len = lit;
	if (g.prefix_len)
		m->by_first[(unsigned char)s[0]] = true;
	else if (g.suffix_len)
		m->by_last[(unsigned char)g.suffix[g.suffix_len - 1]] = true;
	else
		m->by_any = true;
	vec_reserve(m->globs, m->globs_n, m->globs_cap);
	m->globs[m->globs_n++] = g;
}

/* Every start asks this of some hundred patterns; strcspn() would set up a table for each. */
static bool is_literal(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (s[i] == '*' || s[i] == '?' || s[i] == '[' || s[i] == '\\' || s[i] == '{')
			return false;
	return true;
}

static void add_pattern(struct matcher *m, const char *text, unsigned bits)
{
	size_t n;

	while (*text == '/')
		text++;
	n = strlen(text);
	while (n > 0) {
		const char *last;
		size_t len;

		while (n > 0 && text[n - 1] == '/')
			n--;
		last = memrchr(text, '/', n);
		last = last ? last + 1 : text;
		len = (size_t)(text + n - last);
		if (len == 0)
			return;
		if (is_literal(last, len))
			add_name(m, last, len, bits);
		else
			add_glob(m, text, last, len, bits);
		/* "a/" followed by two stars may be held to match a itself: ask for that name too. */
		if (len != 2 || memcmp(last, "**", 2) != 0)
			return;
		n = (size_t)(last - text);
	}
}

static void add_items(struct matcher *m, const struct items *l, unsigned bits)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct item *it = &l->v[i];

		if (it->is_literal) /* nearly all, and their hash is known: the build worked it out */
			add_hashed(m, it->text + it->name_at, it->n - it->name_at, it->name_hash,
				   bits);
		else if (it->text[0] != '!')
			add_pattern(m, it->text, bits);
	}
}

/* How many names the patterns have at most: "a" followed by two stars asks for a as well. */
static size_t names_of(const struct items *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		n += l->v[i].is_literal ? 1 : l->v[i].n / 3;
	return n;
}

void matcher_init(struct matcher *m, const struct policy *p)
{
	size_t want = 2 * (names_of(&p->hide) + names_of(&p->protect) + git_names_n) + 128;

	*m = (struct matcher){ .names_size = 64 };
	while (m->names_size < want)
		m->names_size *= 2;
	m->names = mem_new(m->names_size, sizeof(*m->names)); /* zeros */
	for_names(name, names_hide_with_token)
		add_name(m, name, strlen(name), MATCH_TOKEN);
	add_items(m, &p->hide, MATCH_HIDE);
	add_items(m, &p->protect, MATCH_PROTECT);
	for (size_t i = 0; i < git_names_n; i++)
		add_name(m, git_names[i].text, strlen(git_names[i].text), git_names[i].bits);
	for (size_t i = 0; git_hook_names[i]; i++)
		add_name(m, git_hook_names[i], strlen(git_hook_names[i]), MATCH_GIT_PART);
}

static void put_items(struct buf *b, const struct items *l)
{
	for (size_t i = 0; i < l->n; i++)
		buf_add(b, l->v[i].text, strlen(l->v[i].text) + 1);
	buf_add(b, "", 1);
}

/* Also the user and the groups: what one may not read is not listed. */
void matcher_rules(const struct policy *p, struct index_rules *ret)
{
	_cleanup_(buf_done) struct buf b = BUF(64 * MIB);
	gid_t groups[64];
	int n = getgroups(ARRAY_LEN(groups), groups);

	buf_printf(&b, "%s %u %u", VITRINE_VERSION, geteuid(), getegid());
	for (int i = 0; i < n; i++)
		buf_printf(&b, " %u", groups[i]);
	buf_add(&b, "", 1);
	put_items(&b, &p->hide);
	put_items(&b, &p->protect);
	for_names(name, names_hide_with_token)
		buf_add(&b, name, strlen(name) + 1);
	for (size_t i = 0; i < git_names_n; i++)
		buf_printf(&b, "%s %x\n", git_names[i].text, git_names[i].bits);
	for (size_t i = 0; git_hook_names[i]; i++)
		buf_printf(&b, "%s\n", git_hook_names[i]);
	bug_on(b.is_over);
	sha256(b.p, sabotaged("index-rules") ? 0 : b.n, ret->digest);
}

void matcher_done(struct matcher *m)
{
	free(m->names);
	free(m->globs);
	*m = (struct matcher){ 0 };
}

/* The glob's own bits, MATCH_ELSEWHERE, or nothing. */
static unsigned glob_bits(const struct match_glob *g, const char *rel, size_t rel_len,
			  const char *name, size_t len)
{
	if (len < g->prefix_len || len < g->suffix_len)
		return 0;
	if (memcmp(name, g->prefix, g->prefix_len) != 0)
		return 0;
	if (memcmp(name + len - g->suffix_len, g->suffix, g->suffix_len) != 0)
		return 0;
	if (g->dir_len == 0 || rel == NULL)
		return g->bits;
	/* dir ends in a slash, rel does not. */
	if (rel_len >= g->dir_len - 1 && memcmp(rel, g->dir, g->dir_len - 1) == 0 &&
	    (rel_len == g->dir_len - 1 || rel[g->dir_len - 1] == '/'))
		return g->bits;
	return MATCH_ELSEWHERE;
}

unsigned matcher_probe(const struct matcher *m, const char *rel, size_t rel_len, const char *name,
		       size_t len)
{
	unsigned char first = (unsigned char)name[0], last = (unsigned char)name[len - 1];
	unsigned bits = 0;

	if (m->lens[first] >> (len < 63 ? len : 63) & 1) {
		const struct match_name *at = slot(m, name, len, name_hash(name, len));

		bits = at->text ? at->bits : 0;
	}
	if (!m->by_first[first] && !m->by_last[last] && !m->by_any)
		return bits;
	for (size_t i = 0; i < m->globs_n; i++)
		bits |= glob_bits(&m->globs[i], rel, rel_len, name, len);
	return bits;
}

const char *matcher_rule(const struct items *l, const char *rel)
{
	int i = items_match(l, rel);

	if (i < 0 || l->v[i].text[0] == '!')
		return NULL;
	return l->v[i].text;
}
