/* SPDX-License-Identifier: Apache-2.0 */
/* shell/parse_around.c - what stands around a command's words: blanks and comments, redirections, assignments */
#include <ctype.h>

#include "shell/parse.h"

void parse_add_word(struct word ***end, struct word *w)
{
	**end = w;
	*end = &w->next;
}

/* Between words and commands. */

void parse_skip_comment(struct parser *p)
{
	if (lex_cur(p) != '#')
		return;
	p->unpaired++;
	while (lex_raw(p) != LEX_END && lex_raw(p) != '\n')
		p->at++;
}

void parse_skip_newlines(struct parser *p)
{
	for (;;) {
		lex_blanks(p);
		parse_skip_comment(p);
		if (lex_cur(p) != '\n')
			return;
		p->at++;
		lex_heredocs(p);
	}
}

/* Redirections. */

static const struct {
	const char *text;
	enum redir_op op;
} operators[] = {
	/* The longest first. */
	{ "&>>", REDIR_BOTH },  { "<<<", REDIR_STRING }, { "<<-", REDIR_HEREDOC },
	{ "&>", REDIR_BOTH },   { "<<", REDIR_HEREDOC }, { ">>", REDIR_APPEND },
	{ "<&", REDIR_DUP_IN }, { ">&", REDIR_DUP_OUT }, { "<>", REDIR_RDWR },
	{ ">|", REDIR_OUT },    { "<", REDIR_IN },       { ">", REDIR_OUT },
};

void parse_take(struct parser *p, size_t n)
{
	while (n--) {
		(void)lex_cur(p);
		p->at++;
	}
}

static void heredoc_announce(struct parser *p, struct redir *r, bool strips_tabs)
{
	r->strips_tabs = strips_tabs;
	r->is_body_quoted = r->target->has_quote;
	*p->pending_end = r;
	p->pending_end = &r->next_pending;
}

/* Behind <& and >& a dash is a word of its own, whatever follows it: ">&-rm x" runs rm. */
static struct word *parse_target(struct parser *p, enum redir_op op)
{
	struct word *w;
	struct parser dash;

	if ((op != REDIR_DUP_IN && op != REDIR_DUP_OUT) || lex_cur(p) != '-')
		return lex_word(p);
	dash = *p;
	dash.n = p->at + 1;
	w = lex_word(&dash);
	p->at = dash.at;
	return w;
}

/* Cursor on an operator, fd known. NULL when it is none. */
static struct redir *parse_operator(struct parser *p, int fd)
{
	struct redir *r;

	for (size_t i = 0; i < ARRAY_LEN(operators); i++) {
		if (!lex_looking_at(p, operators[i].text))
			continue;
		r = arena_new(p->mem, struct redir);
		r->op = operators[i].op;
		r->fd = fd;
		parse_take(p, strlen(operators[i].text));
		lex_blanks(p);
		r->target = parse_target(p, r->op);
		if (r->target == NULL)
			lex_fail(p, "a redirection without a target");
		else if (r->op == REDIR_HEREDOC)
			heredoc_announce(p, r, operators[i].text[2] == '-');
		return r;
	}
	return NULL;
}

static bool at_operator(struct parser *p)
{
	int c = lex_cur(p);

	if (c == '&')
		return lex_next(p) == '>';
	return (c == '<' || c == '>') && lex_next(p) != '(';
}

/* "2" or "{name}" directly before an operator. */
static size_t redir_prefix(struct parser *p)
{
	size_t at = p->at, end = 0;
	int c = lex_cur(p);

	if (c >= '0' && c <= '9') {
		while ((c = lex_cur(p)) >= '0' && c <= '9')
			p->at++;
		end = p->at;
	} else if (c == '{') {
		p->at++;
		while ((c = lex_cur(p)) != LEX_END && (isalnum(c) || c == '_'))
			p->at++;
		if (c == '}' && p->at > at + 1)
			end = ++p->at;
	}
	if (end && !((lex_cur(p) == '<' || lex_cur(p) == '>') && lex_next(p) != '('))
		end = 0;
	p->at = at;
	return end;
}

/* True when there was one. */
bool parse_redir(struct parser *p, struct redir ***end)
{
	size_t prefix = redir_prefix(p);
	struct redir *r;
	int fd = -1;

	if (prefix) {
		fd = lex_cur(p) == '{' ? 10 : lex_cur(p) - '0';
		if (prefix - p->at > 1)
			fd = 10;
		p->at = prefix;
	} else if (!at_operator(p)) {
		return false;
	}
	r = parse_operator(p, fd);
	if (r == NULL) {
		lex_fail(p, "a redirection that is none");
		return false;
	}
	**end = r;
	*end = &r->next;
	return true;
}

void parse_redirs(struct parser *p, struct node *n)
{
	struct redir **end = &n->redirs;

	while (*end)
		end = &(*end)->next;
	do
		lex_blanks(p);
	while (parse_redir(p, &end));
}

/* Assignments. */

static void parse_array(struct parser *p, struct assign *a)
{
	struct word **end = &a->values;

	p->at++;
	for (;;) {
		struct word *w;

		parse_skip_newlines(p);
		if (lex_cur(p) == ')')
			break;
		if (lex_cur(p) == '[') {
			w = lex_word_new(p);
			lex_subscript(p, w);
			lex_word_more(p, w);
		} else {
			w = lex_word(p);
		}
		if (w == NULL || lex_failed(p)) {
			lex_fail(p, "an array that is not closed");
			return;
		}
		parse_add_word(&end, w);
	}
	p->at++;
}

/* The part of an assignment up to "=", or NULL with an unmoved cursor. *ret_word gets a word that has begun when a
 * subscript turned out to belong to no assignment: then that word goes on. */
static struct assign *parse_assign_name(struct parser *p, struct word **ret_word)
{
	struct assign *a = arena_new(p->mem, struct assign);
	struct text name = { .mem = p->mem };
	size_t at = p->at;
	int c;

	for (; (c = lex_cur(p)) != LEX_END && c < 0x80 &&
	       (isalpha(c) || c == '_' || (name.n && isdigit(c)));
	     p->at++)
		text_putc(&name, (char)c);
	if (name.n && c == '[') {
		struct word *w = lex_word_new(p);

		w->raw = p->s + at;
		lex_subscript(p, w);
		a->index = w;
		c = lex_cur(p);
	}
	if (c == '+' && lex_next(p) == '=') {
		a->is_append = true;
		parse_take(p, 1);
		c = lex_cur(p);
	}
	if (name.n && c == '=') {
		p->at++;
		a->name = name.p;
		return a;
	}
	if (a->index && !lex_failed(p)) {
		/* A command called "x[...]"; nobody's name begins so. */
		lex_fail(p, "a subscript in a command's name");
		*ret_word = a->index;
	}
	p->at = at;
	return NULL;
}

bool parse_assign(struct parser *p, struct assign ***end)
{
	struct word *rest = NULL;
	struct assign *a = parse_assign_name(p, &rest);

	if (a == NULL)
		return false;
	if (lex_cur(p) == '(') {
		parse_array(p, a);
		if (!lex_is_meta(lex_cur(p)))
			lex_fail(p, "text behind an array");
	} else {
		a->value = lex_word(p);
		if (a->value == NULL)
			a->value = lex_word_new(p);
	}
	**end = a;
	*end = &a->next;
	return true;
}

/* Behind "declare": x=(...) is an array, not a parenthesis. */
bool parse_declared_array(struct parser *p, struct assign ***end)
{
	size_t at = p->at;
	struct word *rest = NULL;
	struct assign *a;

	if (!isalpha(lex_cur(p) > 0 ? lex_cur(p) : 0) && lex_cur(p) != '_')
		return false;
	a = parse_assign_name(p, &rest);
	if (a && lex_cur(p) == '(') {
		p->at = at;
		return parse_assign(p, end);
	}
	p->at = at;
	return false;
}
