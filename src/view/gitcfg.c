/* SPDX-License-Identifier: Apache-2.0 */
/* view/gitcfg.c - see gitcfg.h
 *
 * The grammar is that of git's own reader: sections "[a]" and "[a "b"]" (or "[a.b]", the old way), keys with an
 * optional value, quotes anywhere in a value, five escapes, "\" at the end of a line, "#" and ";" comments. The
 * strict grammar drops what `git config` never writes (continued lines, the old way, a key behind its section
 * header, bare tabs in values, carriage returns and other control characters), because other readers of these files differ from git
 * exactly there.
 *
 * Which entries are harmless is decided in gitcfg_keys.c.
 */
#include "view/gitcfg.h"

#include "base/buf.h"

#define SECTION_MAX 1024
#define KEY_MAX 256
#define VALUE_MAX (16 * KIB)

struct cursor {
	const unsigned char *p, *end;
	const unsigned char *comment; /* behind the last value; NULL when there was none */
	bool is_strict;
};

static bool is_alpha(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_word(int c)
{
	return is_alpha(c) || (c >= '0' && c <= '9') || c == '-';
}

static char to_lower(int c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c + 'a' - 'A' : c);
}

/* The next character as git sees it: CRLF is one newline, the end is a newline and then -1. */
static int peek(const struct cursor *c)
{
	if (c->p >= c->end)
		return -1;
	if (c->p[0] == '\r' && c->end - c->p > 1 && c->p[1] == '\n')
		return '\n';
	return c->p[0];
}

static int next(struct cursor *c)
{
	int ch = peek(c);

	if (ch >= 0)
		c->p += c->p[0] == '\r' && ch == '\n' ? 2 : 1;
	return ch;
}

static bool is_blank(int ch)
{
	return ch == ' ' || ch == '\t';
}

/* What isspace() is to git: no vertical tab, no form feed. */
static bool is_space(int ch)
{
	return is_blank(ch) || ch == '\n' || ch == '\r';
}

static void skip_line(struct cursor *c)
{
	int ch;

	do {
		ch = next(c);
	} while (ch >= 0 && ch != '\n');
}

/* Behind the blank that follows the section's name. */
static int read_sub(struct cursor *c, struct buf *sub)
{
	while (is_blank(peek(c)))
		(void)next(c);
	if (next(c) != '"')
		return -EINVAL;
	for (;;) {
		int ch = next(c);

		if (ch == '\\')
			ch = next(c);
		else if (ch == '"')
			return next(c) == ']' ? 0 : -EINVAL;
		if (ch < 0 || ch == '\n' || ch == '\0')
			return -EINVAL;
		buf_putc(sub, (char)ch);
	}
}

/* Behind "[". *ret_has_sub: there is a subsection, perhaps empty. */
static int read_section(struct cursor *c, struct buf *section, struct buf *sub, bool *ret_has_sub)
{
	section->n = sub->n = 0;
	*ret_has_sub = false;
	for (;;) {
		int ch = next(c);

		if (ch == ']')
			break;
		if (is_blank(ch)) {
			if (section->n == 0 || *ret_has_sub)
				return -EINVAL;
			*ret_has_sub = true;
			return read_sub(c, sub);
		}
		if (ch == '.' && !*ret_has_sub && !c->is_strict) {
			*ret_has_sub = true;
			continue;
		}
		if (!is_word(ch) && !(ch == '.' && *ret_has_sub))
			return -EINVAL;
		buf_putc(*ret_has_sub ? sub : section, to_lower(ch));
	}
	return section->n || *ret_has_sub ? 0 : -EINVAL;
}

static int unescape(struct cursor *c, struct buf *value)
{
	int ch = next(c);

	switch (ch) {
	case -1: /* the end counts as a newline */
	case '\n':
		return c->is_strict ? -EINVAL : 0;
	case 't':
		buf_putc(value, '\t');
		return 0;
	case 'b':
		buf_putc(value, '\b');
		return 0;
	case 'n':
		buf_putc(value, '\n');
		return 0;
	case '\\':
	case '"':
		buf_putc(value, (char)ch);
		return 0;
	default:
		return -EINVAL;
	}
}

struct value {
	struct buf *text;
	size_t keep; /* white space outside quotes counts only when something follows */
	bool is_quoted, has_tab;
};

/* A character that is part of the value, or a quote. */
static int put_char(struct cursor *c, struct value *v, int ch)
{
	int r = 0;

	/* Versions of git differ on what a bare tab within a value is. */
	if (c->is_strict && v->has_tab && v->keep)
		return -EINVAL;
	v->has_tab = false;
	if (ch == '"')
		v->is_quoted = !v->is_quoted;
	else if (ch == '\\')
		r = unescape(c, v->text);
	else
		buf_putc(v->text, (char)ch);
	v->keep = v->text->n;
	return r;
}

/* Behind "=". Up to and with the end of the line. */
static int read_value(struct cursor *c, struct buf *text)
{
	struct value v = { .text = text };
	int r = 0;

	text->n = 0;
	while (r == 0) {
		int ch = next(c);

		if (!v.is_quoted && (ch == '#' || ch == ';')) {
			c->comment = c->p - 1;
			skip_line(c);
			ch = '\n';
		}
		if (ch < 0 || ch == '\n')
			break;
		if (v.is_quoted || !is_space(ch)) {
			r = put_char(c, &v, ch);
			continue;
		}
		v.has_tab = v.has_tab || ch == '\t';
		if (v.keep)
			buf_putc(text, (char)ch);
	}
	text->n = v.keep;
	return v.is_quoted ? -EINVAL : r;
}

static int read_key(struct cursor *c, struct buf *key, struct buf *value, bool *ret_has_value)
{
	key->n = 0;
	while (is_word(peek(c)))
		buf_putc(key, to_lower(next(c)));
	while (is_blank(peek(c)))
		(void)next(c);
	*ret_has_value = peek(c) == '=';
	if (!*ret_has_value)
		return peek(c) == '\n' || peek(c) < 0 ? 0 : -EINVAL;
	(void)next(c);
	return read_value(c, value);
}

struct reader {
	struct buf section, sub, key, value;
	bool has_sub, has_section;
};

static void reader_done(struct reader *r)
{
	buf_done(&r->section);
	buf_done(&r->sub);
	buf_done(&r->key);
	buf_done(&r->value);
}

static const char *text_of(struct buf *b)
{
	/* n was set back by hand at places. */
	if (b->p)
		b->p[b->n] = '\0';
	return buf_cstr(b);
}

static int read_entry(struct cursor *c, struct reader *r, gitcfg_fn fn, void *arg)
{
	const unsigned char *at = c->p;
	bool has_value = false;
	struct gitcfg_item it;

	c->comment = NULL;
	/* Git lets a key stand before the first section, where it means nothing. */
	if ((c->is_strict && !r->has_section) || read_key(c, &r->key, &r->value, &has_value) < 0)
		return -EINVAL;
	if (r->section.is_over || r->sub.is_over || r->key.is_over || r->value.is_over)
		return -EINVAL;
	it = (struct gitcfg_item){ .section = text_of(&r->section),
				   .sub = r->has_sub ? text_of(&r->sub) : NULL,
				   .key = text_of(&r->key),
				   .value = has_value ? text_of(&r->value) : NULL,
				   .at = (const char *)at,
				   .comment = (const char *)c->comment,
				   .end = (const char *)c->p };
	return fn(arg, &it);
}

/* What only a hand or an attacker writes. */
static bool has_odd_bytes(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char ch = (unsigned char)text[i];

		if ((ch < 0x20 && ch != '\n' && ch != '\t') || ch == 0x7f)
			return true;
	}
	return false;
}

static int read_header(struct cursor *c, struct reader *r)
{
	if (read_section(c, &r->section, &r->sub, &r->has_sub) < 0)
		return -EINVAL;
	r->has_section = true;
	if (!c->is_strict)
		return 0;
	while (is_blank(peek(c)))
		(void)next(c);
	return peek(c) < 0 || peek(c) == '\n' ? 0 : -EINVAL;
}

int gitcfg_read(const char *text, size_t n, enum gitcfg_grammar grammar, gitcfg_fn fn, void *arg)
{
	struct cursor c = { .p = (const unsigned char *)text,
			    .is_strict = grammar == GITCFG_STRICT };
	_cleanup_(reader_done) struct reader r = { .section = BUF(SECTION_MAX),
						   .sub = BUF(SECTION_MAX),
						   .key = BUF(KEY_MAX),
						   .value = BUF(VALUE_MAX) };
	int ret = 0;

	c.end = c.p + n;
	if (c.is_strict && has_odd_bytes(text, n))
		return -EINVAL;
	if (!c.is_strict && n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		c.p += 3;
	while (ret == 0 && peek(&c) >= 0) {
		int ch = peek(&c);

		if (is_space(ch)) {
			(void)next(&c);
		} else if (ch == '#' || ch == ';') {
			skip_line(&c);
		} else if (ch == '[') {
			(void)next(&c);
			ret = read_header(&c, &r);
		} else if (is_alpha(ch)) {
			ret = read_entry(&c, &r, fn, arg);
		} else {
			ret = -EINVAL;
		}
	}
	return ret;
}

/* ---- leaving entries out ---- */

struct cutting {
	const char *from; /* what of the text is not yet copied */
	gitcfg_keep_fn keep;
	void *arg;
	struct buf *ret;
};

static int cut_item(void *arg, const struct gitcfg_item *it)
{
	struct cutting *c = arg;
	const char *at = it->at;

	if (c->keep(c->arg, it))
		return 0;
	/* With what stands before it on its line. */
	while (at > c->from && is_blank(at[-1]))
		at--;
	buf_add(c->ret, c->from, (size_t)(at - c->from));
	c->from = it->end;
	return 0;
}

static size_t line_at(const char *p, size_t at, size_t n)
{
	const char *end = memchr(p + at, '\n', n - at);

	return end ? (size_t)(end - p) + 1 : n;
}

/* Leaves out headings with nothing below them: after many cuts there would be many. */
static void add_tidy(struct buf *ret, const char *p, size_t n)
{
	size_t head = n; /* the heading that waits for an entry */

	for (size_t at = 0, next; at < n; at = next) {
		size_t blank = strspn(p + at, " \t\n");

		next = line_at(p, at, n);
		if (p[at] == '[') {
			head = at;
		} else if (at + blank < next) {
			if (head < at)
				buf_add(ret, p + head, line_at(p, head, n) - head);
			head = n;
			buf_add(ret, p + at, next - at);
		}
	}
}

int gitcfg_cut(const char *text, size_t n, gitcfg_keep_fn keep, void *arg, struct buf *ret)
{
	_cleanup_(buf_done) struct buf left = BUF(MIB);
	struct cutting c = { .from = text, .keep = keep, .arg = arg, .ret = &left };

	if (n > GITCFG_NEW_MAX || gitcfg_read(text, n, GITCFG_STRICT, cut_item, &c) != 0)
		return -EINVAL;
	buf_add(&left, c.from, (size_t)(text + n - c.from));
	if (left.is_over)
		return -EINVAL;
	add_tidy(ret, buf_cstr(&left), left.n);
	return ret->is_over ? -EMSGSIZE : 0;
}
