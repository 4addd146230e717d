/* SPDX-License-Identifier: Apache-2.0 */
/* shell/lex.c - the cursor, and words: quotes, expansions, what is literal and what is not
 *
 * Bash takes a backslash before a newline out of the text before it looks at anything else, but not in single
 * quotes, comments and quoted heredocs. So the cursor does it, and whoever needs the raw text says so. A carriage
 * return is an ordinary character; only blank and tab are blanks.
 *
 * Where bash's own reading depends on its version or on what happens at run time (quotes inside "${...}", comments
 * inside backquotes, $[ ]), this one refuses. Memory of refusals is the error itself: after the first, every cursor
 * is at the end, so all loops stop.
 */
#include "shell/lex.h"

#include <ctype.h>

/* Where a text stands decides which characters are special in it. */
enum quoting { PLAIN, DQUOTE, HEREDOC };

static void dollar(struct parser *p, struct word *w, enum quoting q);

void lex_fail(struct parser *p, const char *what)
{
	if (p->error->what)
		return;
	p->error->what = what;
	p->error->at = p->at;
}

bool lex_enter(struct parser *p)
{
	if (p->depth >= SHELL_MAX_DEPTH) {
		lex_fail(p, "nested too deep");
		return false;
	}
	p->depth++;
	return true;
}

int lex_raw(const struct parser *p)
{
	return p->at < p->n && !lex_failed(p) ? (unsigned char)p->s[p->at] : LEX_END;
}

int lex_cur(struct parser *p)
{
	while (p->at + 1 < p->n && p->s[p->at] == '\\' && p->s[p->at + 1] == '\n')
		p->at += 2;
	return lex_raw(p);
}

int lex_next(struct parser *p)
{
	size_t at;
	int c;

	if (lex_cur(p) == LEX_END)
		return LEX_END;
	at = p->at++;
	c = lex_cur(p);
	p->at = at;
	return c;
}

bool lex_looking_at(struct parser *p, const char *s)
{
	size_t at = p->at;

	for (; *s && lex_cur(p) == (unsigned char)*s; s++)
		p->at++;
	p->at = at;
	return *s == '\0';
}

/* The present character is taken. */
static void step(struct parser *p)
{
	(void)lex_cur(p);
	p->at++;
}

void lex_blanks(struct parser *p)
{
	while (lex_is_blank(lex_cur(p)))
		p->at++;
}

/* Parts. */

struct word *lex_word_new(struct parser *p)
{
	struct word *w = arena_new(p->mem, struct word);

	if (++*p->words > SHELL_MAX_WORDS)
		lex_fail(p, "too many words");
	w->raw = p->s + p->at;
	return w;
}

static struct part *add_part(struct parser *p, struct word *w, enum part_kind kind, enum quoting q)
{
	struct part *part = arena_new(p->mem, struct part);

	part->kind = kind;
	part->is_quoted = q != PLAIN;
	part->text = "";
	part->op = "";
	if (w->last)
		w->last->next = part;
	else
		w->first = part;
	w->last = part;
	return part;
}

/* Text grows in place as long as it is the last thing in the arena's mind; a part's buffer doubles otherwise. */
struct text_part {
	struct part part;
	struct text text;
};

static void add_text(struct parser *p, struct word *w, const char *s, size_t n, bool is_quoted)
{
	struct part *last = w->last;
	struct text_part *t;

	if (last && last->kind == PART_TEXT && last->is_quoted == is_quoted) {
		t = (struct text_part *)(void *)last;
	} else {
		t = arena_new(p->mem, struct text_part);
		t->part = (struct part){ .kind = PART_TEXT, .is_quoted = is_quoted, .op = "" };
		t->text.mem = p->mem;
		if (last)
			last->next = &t->part;
		else
			w->first = &t->part;
		w->last = &t->part;
	}
	text_add(&t->text, s, n);
	t->part.text = t->text.p;
	t->part.n = t->text.n;
}

static void add_char(struct parser *p, struct word *w, int c, bool is_quoted)
{
	char byte = (char)c;

	add_text(p, w, &byte, 1, is_quoted);
}

/* Quotes. */

static void single_quotes(struct parser *p, struct word *w)
{
	const char *from = p->s + p->at + 1;
	const char *to = p->at + 1 < p->n ? memchr(from, '\'', p->n - p->at - 1) : NULL;

	w->has_quote = true;
	if (to == NULL) {
		lex_fail(p, "a single quote is not closed");
		return;
	}
	add_text(p, w, from, (size_t)(to - from), true);
	p->at = (size_t)(to - p->s) + 1;
}

static int digit_of(int c, int base)
{
	int v = -1;

	if (c >= '0' && c <= '9')
		v = c - '0';
	else if (c >= 'a' && c <= 'f')
		v = c - 'a' + 10;
	else if (c >= 'A' && c <= 'F')
		v = c - 'A' + 10;
	return v < base ? v : -1;
}

static uint32_t escape_number(struct parser *p, int base, int max, int *ret_digits)
{
	uint32_t v = 0;
	int n = 0;

	for (; n < max && digit_of(lex_raw(p), base) >= 0; n++, p->at++)
		v = v * (uint32_t)base + (uint32_t)digit_of(lex_raw(p), base);
	*ret_digits = n;
	return v;
}

static void put_utf8(struct parser *p, struct word *w, uint32_t v)
{
	char s[4];
	size_t n = 0;

	if (v < 0x80) {
		s[n++] = (char)v;
	} else if (v < 0x800) {
		s[n++] = (char)(0xc0 | v >> 6);
		s[n++] = (char)(0x80 | (v & 0x3f));
	} else if (v < 0x10000) {
		s[n++] = (char)(0xe0 | v >> 12);
		s[n++] = (char)(0x80 | (v >> 6 & 0x3f));
		s[n++] = (char)(0x80 | (v & 0x3f));
	} else {
		lex_fail(p, "a character beyond the basic plane in $'...'");
		return;
	}
	add_text(p, w, s, n, true);
}

/* Behind the backslash of $'...'. */
static void ansi_escape(struct parser *p, struct word *w)
{
	static const char names[] = "abeEfnrtv\\'\"?";
	static const char values[] = "\a\b\033\033\f\n\r\t\v\\'\"?";
	int c = lex_raw(p), digits = 0;
	const char *at = c > 0 ? strchr(names, c) : NULL;
	uint32_t v;

	if (at) {
		p->at++;
		v = (unsigned char)values[at - names];
	} else if (digit_of(c, 8) >= 0) {
		v = escape_number(p, 8, 3, &digits) & 0xff;
	} else if (c == 'x' || c == 'u' || c == 'U') {
		p->at++;
		v = escape_number(p, 16, c == 'x' ? 2 : c == 'u' ? 4 : 8, &digits);
		if (digits == 0)
			lex_fail(p, "an escape without digits in $'...'");
	} else if (c == 'c' || c == LEX_END) {
		lex_fail(p, "a control character in $'...'");
		return;
	} else {
		add_char(p, w, '\\', true);
		return;
	}
	/* Our own marks for what is not known stand below 9; NUL ends a string. */
	if (v < 9)
		lex_fail(p, "a control character in $'...'");
	else if (c == 'u' || c == 'U')
		put_utf8(p, w, v);
	else
		add_char(p, w, (int)v, true);
}

/* Cursor behind $'. */
static void ansi_quotes(struct parser *p, struct word *w)
{
	w->has_quote = true;
	p->unpaired++;
	for (;;) {
		int c = lex_raw(p);

		if (c == LEX_END) {
			lex_fail(p, "$' is not closed");
			return;
		}
		p->at++;
		if (c == '\'')
			break;
		if (c == '\\')
			ansi_escape(p, w);
		else
			add_char(p, w, c, true);
	}
	add_text(p, w, "", 0, true);
}

/* Cursor on a backslash inside backquotes: which character it leaves there, or -1 for none. */
static int unescape(struct parser *p, struct text *t, enum quoting q)
{
	int n = p->at + 1 < p->n ? (unsigned char)p->s[p->at + 1] : 0;

	if (n == 0)
		return '\\';
	p->at++;
	if (n == '\n')
		return -1;
	if (n != '$' && n != '`' && n != '\\' && !(n == '"' && q == DQUOTE))
		text_putc(t, '\\');
	return n;
}

/* Cursor on a backquote. What is inside loses one layer of backslashes and is a text of its own. */
static void backquotes(struct parser *p, struct word *w, enum quoting q)
{
	struct text t = { .mem = p->mem };
	int c;

	p->at++;
	for (; (c = lex_raw(p)) != '`'; p->at++) {
		if (c == LEX_END) {
			lex_fail(p, "a backquote is not closed");
			return;
		}
		/* Bash looks for the end of such a comment in a way of its own. */
		if (c == '#' && (t.n == 0 || lex_is_blank(t.p[t.n - 1]) || t.p[t.n - 1] == '\n')) {
			lex_fail(p, "a comment inside backquotes");
			return;
		}
		if (c == '\\')
			c = unescape(p, &t, q);
		if (c >= 0)
			text_putc(&t, (char)c);
	}
	p->at++;
	add_part(p, w, PART_SCRIPT, q)->script = parse_nested(p, t.p ? t.p : "", t.n);
}

/* Cursor on the opening quote. */
static void double_quotes(struct parser *p, struct word *w)
{
	if (!lex_enter(p))
		return;
	w->has_quote = true;
	p->at++;
	for (;;) {
		int c = lex_cur(p);

		if (c == LEX_END) {
			lex_fail(p, "a double quote is not closed");
			break;
		}
		if (c == '$') {
			dollar(p, w, DQUOTE);
			continue;
		}
		if (c == '`') {
			backquotes(p, w, DQUOTE);
			continue;
		}
		p->at++;
		if (c == '"')
			break;
		if (c == '\\' && lex_raw(p) != LEX_END && strchr("$`\"\\", lex_raw(p)))
			c = (unsigned char)p->s[p->at++];
		add_char(p, w, c, true);
	}
	add_text(p, w, "", 0, true);
	lex_leave(p);
}

/* Expansions. */

static void process(struct parser *p, struct word *w)
{
	struct part *part = add_part(p, w, PART_PROC, PLAIN);

	part->is_input = lex_cur(p) == '<';
	step(p);
	step(p);
	part->script = parse_substitution(p);
}

static bool is_name_start(int c)
{
	return c != LEX_END && (isalpha(c) || c == '_') && c < 0x80;
}

static bool is_name(int c)
{
	return is_name_start(c) || (c >= '0' && c <= '9');
}

static bool is_special(int c)
{
	return c > 0 && strchr("*@#?-$!", c) != NULL;
}

static const char *take_name(struct parser *p, struct text *t)
{
	int c = lex_cur(p);

	if (is_special(c) || (c >= '0' && c <= '9')) {
		text_putc(t, (char)c);
		step(p);
		return t->p;
	}
	while (is_name(lex_cur(p))) {
		text_putc(t, (char)lex_cur(p));
		step(p);
	}
	return t->p;
}

/* One piece of what stands behind the name in ${name...}. Quotes inside a quoted one mean different things to
 * different operators and versions. */
static void braced_piece(struct parser *p, struct word *w, enum quoting q, int c)
{
	if (c == '$')
		dollar(p, w, q);
	else if (c == '`')
		backquotes(p, w, q);
	else if ((c == '\'' || c == '"') && q != PLAIN)
		lex_fail(p, "quotes inside a quoted ${...}");
	else if (c == '\'')
		single_quotes(p, w);
	else if (c == '"')
		double_quotes(p, w);
	else if ((c == '<' || c == '>') && q == PLAIN && lex_next(p) == '(')
		process(p, w);
	else {
		bool is_escaped = c == '\\';

		step(p);
		if (is_escaped && lex_raw(p) != LEX_END)
			c = (unsigned char)p->s[p->at++];
		add_char(p, w, c, q != PLAIN || is_escaped);
	}
}

static const char *braced_op(struct parser *p)
{
	char op[3] = { 0 };
	int c = lex_cur(p);

	if (c == LEX_END || c == '}')
		return "";
	op[0] = (char)c;
	if (c == ':' && lex_next(p) > 0 && strchr("-=?+", lex_next(p)))
		op[1] = (char)lex_next(p);
	for (size_t i = 0; op[i]; i++)
		step(p);
	return arena_strn(p->mem, op, strlen(op));
}

/* Cursor on "${" . */
static void braced(struct parser *p, struct word *w, enum quoting q)
{
	struct text name = { .mem = p->mem };
	struct part *part = add_part(p, w, PART_VAR, q);
	bool is_indirect = false;
	int c;

	if (!lex_enter(p))
		return;
	step(p);
	step(p);
	c = lex_cur(p);
	if ((c == '!' || c == '#') && lex_next(p) != '}') {
		is_indirect = true;
		step(p);
	}
	part->text = take_name(p, &name);
	part->n = name.n;
	if (name.n == 0) {
		lex_fail(p, "${ without a name");
		return;
	}
	while (name.p[0] >= '0' && name.p[0] <= '9' && lex_cur(p) >= '0' && lex_cur(p) <= '9') {
		text_putc(&name, (char)lex_cur(p));
		step(p);
		part->text = name.p;
		part->n = name.n;
	}
	part->op = is_indirect ? "!" : braced_op(p);
	part->arg = lex_word_new(p);
	while ((c = lex_cur(p)) != '}') {
		if (c == LEX_END) {
			lex_fail(p, "${ is not closed");
			return;
		}
		braced_piece(p, part->arg, q, c);
	}
	step(p);
	lex_leave(p);
}

/* Cursor on "$(". */
static void substitution(struct parser *p, struct word *w, enum quoting q)
{
	struct word *inner = NULL;

	step(p);
	step(p);
	if (lex_cur(p) == '(') {
		size_t at = p->at;

		step(p);
		if (lex_arith(p, &inner)) {
			add_part(p, w, PART_ARITH, q)->arg = inner;
			return;
		}
		p->at = at;
	}
	add_part(p, w, PART_SCRIPT, q)->script = parse_substitution(p);
}

static void variable(struct parser *p, struct word *w, enum quoting q)
{
	struct text name = { .mem = p->mem };
	struct part *part = add_part(p, w, PART_VAR, q);

	step(p);
	part->text = take_name(p, &name);
	part->n = name.n;
}

static void dollar(struct parser *p, struct word *w, enum quoting q)
{
	int c = lex_next(p);

	if (c == '(') {
		substitution(p, w, q);
	} else if (c == '{') {
		braced(p, w, q);
	} else if (c == '\'' && q == PLAIN) {
		step(p);
		step(p);
		ansi_quotes(p, w);
	} else if (c == '"' && q == PLAIN) {
		step(p);
		(void)lex_cur(p);
		double_quotes(p, w);
	} else if (c == '[') {
		lex_fail(p, "the old form of arithmetic, $[...]");
	} else if (is_name(c) || is_special(c)) {
		variable(p, w, q);
	} else {
		step(p);
		add_char(p, w, '$', q != PLAIN);
	}
}

/* One character inside an arithmetic text; true when it was no plain text. */
static bool arith_piece(struct parser *p, struct word *w, int c)
{
	if (c == '$') {
		dollar(p, w, DQUOTE);
	} else if (c == '`') {
		backquotes(p, w, DQUOTE);
	} else if (c == '"') {
		double_quotes(p, w);
	} else {
		if (c == '\'' || c == '\\' || c == '#')
			/* A comment or a quote here is bash's to guess about. '#' is also "base#number". */
			if (c != '#' || p->at == 0 || !isalnum((unsigned char)p->s[p->at - 1]))
				lex_fail(p, "quotes or comments in arithmetic");
		add_char(p, w, c, true);
		step(p);
		return false;
	}
	return true;
}

/* As bash counts them: with and without what it takes for quoted, which is not always what is. */
static bool parens_pair(const char *s, size_t n, bool has_quotes)
{
	size_t open = 0;

	for (size_t i = 0; i < n; i++) {
		if (has_quotes && s[i] == '\\') {
			i++;
		} else if (has_quotes && (s[i] == '\'' || s[i] == '"')) {
			char quote = s[i++];

			while (i < n && s[i] != quote)
				i += 1 + (quote == '"' && s[i] == '\\');
		} else if (s[i] == '(') {
			open++;
		} else if (s[i] == ')' && open-- == 0) {
			return false;
		}
	}
	return open == 0;
}

/* Bash takes $((...)) for commands when the parentheses in it, counted without looking at what they belong to, do not pair. */
static void check_parens(struct parser *p, size_t from, unsigned unpaired)
{
	const char *s = p->s + from;
	size_t n = p->at - from;

	if (p->unpaired != unpaired || !parens_pair(s, n, true) || !parens_pair(s, n, false))
		lex_fail(p, "parentheses in arithmetic that do not pair");
}

bool lex_arith(struct parser *p, struct word **ret)
{
	struct word *w = lex_word_new(p);
	size_t from = p->at;
	unsigned open = 0, unpaired = p->unpaired;
	bool has_expansion = false;
	int c;

	if (!lex_enter(p))
		return false;
	while ((c = lex_cur(p)) != LEX_END) {
		if (c == ')' && open == 0)
			break;
		if (c == '(')
			open++;
		if (c == ')')
			open--;
		has_expansion |= arith_piece(p, w, c);
	}
	lex_leave(p);
	if (c == ')' && lex_next(p) == ')') {
		if (has_expansion)
			check_parens(p, from, unpaired);
		step(p);
		step(p);
		*ret = w;
		return true;
	}
	/* Read again as commands, it could be read twice at each level: refuse what makes that dear. */
	if (c == LEX_END)
		lex_fail(p, "(( is not closed");
	else if (has_expansion)
		lex_fail(p, "expansions in nested parentheses");
	/* Bash has lost the lines by the time it reads it as commands. */
	else if (memchr(p->s + from, '\n', p->at - from))
		lex_fail(p, "nested parentheses over several lines");
	p->at = from;
	return false;
}

/* Words. */

static void unquoted_piece(struct parser *p, struct word *w, int c)
{
	switch (c) {
	case '\'':
		single_quotes(p, w);
		break;
	case '"':
		double_quotes(p, w);
		break;
	case '`':
		backquotes(p, w, PLAIN);
		break;
	case '$':
		dollar(p, w, PLAIN);
		break;
	case '\\':
		w->has_quote = true;
		p->at++;
		/* Behind an eval whose text ends so, bash 5.2 does not know the next line's reserved words. */
		if (lex_raw(p) == LEX_END)
			lex_fail(p, "a backslash at the very end");
		else
			add_char(p, w, p->s[p->at++], true);
		break;
	default:
		add_char(p, w, c, false);
		p->at++;
	}
}

void lex_word_more(struct parser *p, struct word *w)
{
	for (;;) {
		int c = lex_cur(p);

		if ((c == '<' || c == '>') && lex_next(p) == '(')
			process(p, w);
		else if (lex_is_meta(c))
			break;
		else
			unquoted_piece(p, w, c);
	}
	w->raw_n = (size_t)(p->s + p->at - w->raw);
}

struct word *lex_word(struct parser *p)
{
	struct word *w;
	int c = lex_cur(p);

	if (lex_is_meta(c) && !((c == '<' || c == '>') && lex_next(p) == '('))
		return NULL;
	w = lex_word_new(p);
	lex_word_more(p, w);
	return w;
}

void lex_subscript(struct parser *p, struct word *w)
{
	unsigned open = 0;

	for (;;) {
		int c = lex_cur(p);

		if (c == LEX_END || c == '\n') {
			lex_fail(p, "[ is not closed");
			return;
		}
		/* Bash looks twice at these, in two ways. */
		if (c == '(' || c == '{' || c == ')' || c == '}') {
			lex_fail(p, "brackets in a subscript");
			return;
		}
		if (c == '[')
			open++;
		if (c == ']')
			open--;
		unquoted_piece(p, w, c);
		if (c == ']' && open == 0)
			return;
	}
}

/* The body of a heredoc. */

void lex_body(struct parser *p, struct redir *r)
{
	struct parser in = *p;

	in.s = r->body_raw;
	in.n = r->body_n;
	in.at = 0;
	r->body = lex_word_new(&in);
	if (r->is_body_quoted) {
		add_text(&in, r->body, in.s, in.n, true);
		return;
	}
	for (;;) {
		int c = lex_cur(&in);

		if (c == LEX_END)
			return;
		if (c == '$') {
			dollar(&in, r->body, HEREDOC);
			continue;
		}
		if (c == '`') {
			backquotes(&in, r->body, HEREDOC);
			continue;
		}
		in.at++;
		if (c == '\\' && lex_raw(&in) != LEX_END && strchr("$`\\", lex_raw(&in)))
			c = (unsigned char)in.s[in.at++];
		add_char(&in, r->body, c, true);
	}
}
