/* SPDX-License-Identifier: Apache-2.0 */
/* shell/parse.c - commands: lists, pipelines, simple commands
 *
 * Recursive descent straight over the characters. A reserved word is one only where a command may begin, and only
 * without quotes, so it is looked for there (parse_peek_keyword) and nowhere else. A list ends at whatever cannot begin a
 * command; who called for the list knows which end it wants and refuses any other.
 *
 * The heredocs announced on a line are read when its newline is taken, wherever that is. In a substitution the
 * outer line's heredocs wait, and its own must have been read when it closes.
 */
#include <ctype.h>

#include "shell/parse.h"

static const char *const keywords[KEY_COUNT_] = {
	[KEY_NONE] = "",         [KEY_IF] = "if",         [KEY_THEN] = "then",
	[KEY_ELIF] = "elif",     [KEY_ELSE] = "else",     [KEY_FI] = "fi",
	[KEY_WHILE] = "while",   [KEY_UNTIL] = "until",   [KEY_FOR] = "for",
	[KEY_SELECT] = "select", [KEY_DO] = "do",         [KEY_DONE] = "done",
	[KEY_CASE] = "case",     [KEY_ESAC] = "esac",     [KEY_FUNCTION] = "function",
	[KEY_OPEN] = "{",        [KEY_CLOSE] = "}",       [KEY_BANG] = "!",
	[KEY_TIME] = "time",     [KEY_COPROC] = "coproc", [KEY_TEST] = "[[",
	[KEY_IN] = "in",
};

struct node *parse_node(struct parser *p, enum node_kind kind)
{
	struct node *n = arena_new(p->mem, struct node);

	n->kind = kind;
	if (p->mem->is_over)
		lex_fail(p, "too large");
	return n;
}

void parse_append(struct node *parent, struct node *child)
{
	if (child == NULL)
		return;
	if (parent->last)
		parent->last->next = child;
	else
		parent->first = child;
	parent->last = child;
}

/* Reserved words. */

enum keyword parse_peek_keyword(struct parser *p, size_t *ret_end)
{
	size_t at = p->at, n = 0;
	char text[12] = { 0 };
	enum keyword found = KEY_NONE;
	int c;

	while (n < sizeof(text) - 1 && !lex_is_meta(c = lex_cur(p))) {
		text[n++] = (char)c;
		p->at++;
	}
	if (lex_is_meta(lex_cur(p)))
		for (enum keyword k = KEY_IF; k < KEY_COUNT_; k++)
			if (str_eq(text, keywords[k]))
				found = k;
	*ret_end = p->at;
	p->at = at;
	return found;
}

bool parse_take_keyword(struct parser *p, enum keyword want)
{
	size_t end;

	if (parse_peek_keyword(p, &end) != want)
		return false;
	p->at = end;
	return true;
}

void parse_expect_keyword(struct parser *p, enum keyword want, const char *otherwise)
{
	parse_skip_newlines(p);
	if (!parse_take_keyword(p, want))
		lex_fail(p, otherwise);
}

/* Simple commands. */

static bool is_declaring(const struct word *w)
{
	static const char *const names[] = { "declare", "typeset", "local", "export", "readonly" };

	if (w == NULL || w->has_quote || w->first == NULL || w->first->next ||
	    w->first->kind != PART_TEXT)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq(w->first->text, names[i]))
			return true;
	return false;
}

struct node *parse_function_body(struct parser *p, struct node *fn)
{
	size_t end;
	struct node *body;

	parse_skip_newlines(p);
	switch (parse_peek_keyword(p, &end)) {
	case KEY_OPEN:
	case KEY_IF:
	case KEY_WHILE:
	case KEY_UNTIL:
	case KEY_FOR:
	case KEY_SELECT:
	case KEY_CASE:
	case KEY_TEST:
		break;
	case KEY_NONE:
	case KEY_THEN:
	case KEY_ELIF:
	case KEY_ELSE:
	case KEY_FI:
	case KEY_DO:
	case KEY_DONE:
	case KEY_ESAC:
	case KEY_FUNCTION:
	case KEY_CLOSE:
	case KEY_BANG:
	case KEY_TIME:
	case KEY_COPROC:
	case KEY_IN:
	case KEY_COUNT_:
		if (lex_cur(p) != '(')
			lex_fail(p, "a function without a body");
	}
	body = parse_command(p);
	parse_append(fn, body);
	return fn;
}

const char *parse_word_text(struct parser *p, const struct word *w)
{
	struct text t = { .mem = p->mem };

	text_add(&t, "", 0);
	for (const struct part *part = w->first; part; part = part->next) {
		if (part->kind != PART_TEXT)
			lex_fail(p, "an expansion where a name must stand");
		text_add(&t, part->text, part->n);
	}
	return t.p;
}

/* "name ()" was seen up to the first parenthesis. */
static struct node *parse_function(struct parser *p, const struct node *n)
{
	struct node *fn = parse_node(p, NODE_FUNCTION);

	p->at++;
	lex_blanks(p);
	if (lex_cur(p) != ')' || n->assigns || n->redirs) {
		lex_fail(p, "a parenthesis that bash does not expect");
		return NULL;
	}
	p->at++;
	fn->name = parse_word_text(p, n->words);
	return parse_function_body(p, fn);
}

void parse_count_command(struct parser *p)
{
	if (++*p->commands > SHELL_MAX_COMMANDS)
		lex_fail(p, "too many commands");
}

/* Before the command's name, or behind "declare" and its like. */
static bool parse_assigned(struct parser *p, const struct node *n, struct assign ***end)
{
	if (n->words == NULL)
		return parse_assign(p, end);
	return is_declaring(n->words) && parse_declared_array(p, end);
}

static bool at_paren(struct parser *p)
{
	lex_blanks(p);
	return lex_cur(p) == '(';
}

static struct node *parse_simple(struct parser *p)
{
	struct node *n = parse_node(p, NODE_SIMPLE);
	struct assign **assigns = &n->assigns;
	struct redir **redirs = &n->redirs;
	struct word **words = &n->words;

	parse_count_command(p);
	for (;;) {
		struct word *w;

		lex_blanks(p);
		parse_skip_comment(p);
		if (parse_redir(p, &redirs) || parse_assigned(p, n, &assigns))
			continue;
		w = lex_word(p);
		if (w == NULL)
			break;
		parse_add_word(&words, w);
		if (n->words->next == NULL && at_paren(p))
			return parse_function(p, n);
	}
	if (n->words == NULL && n->assigns == NULL && n->redirs == NULL)
		lex_fail(p, "a command is missing");
	return n;
}

struct node *parse_command(struct parser *p)
{
	struct node *n;
	enum keyword k;
	size_t end;

	lex_blanks(p);
	if (!lex_enter(p))
		return NULL;
	k = parse_peek_keyword(p, &end);
	if (lex_cur(p) == '(') {
		n = parse_paren(p);
	} else if (k != KEY_NONE && k != KEY_IN && k != KEY_BANG && k != KEY_TIME) {
		p->at = end;
		parse_count_command(p);
		n = parse_compound(p, k);
	} else {
		n = parse_simple(p);
		lex_leave(p);
		return n;
	}
	if (n && !lex_failed(p))
		parse_redirs(p, n);
	lex_leave(p);
	return n;
}

/* Pipelines and lists. */

/* "time -p" and "time --" are bash's own. Behind anything else that looks like an option shells disagree about what is
 * the command. */
static void skip_time_options(struct parser *p)
{
	static const char *const options[] = { "-p", "--" };

	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		lex_blanks(p);
		if (!lex_looking_at(p, options[i]))
			continue;
		parse_take(p, 2);
		if (!lex_is_meta(lex_cur(p)))
			lex_fail(p, "an option of time that bash does not know");
	}
	lex_blanks(p);
	if (lex_cur(p) == '-')
		lex_fail(p, "an option of time that bash does not know");
}

/* "!" and "time" in front. True when nothing follows them, which bash accepts. */
static bool skip_pipeline_prefix(struct parser *p, bool is_first)
{
	bool is_any = false;

	for (;;) {
		enum keyword k;
		size_t end;

		lex_blanks(p);
		k = parse_peek_keyword(p, &end);
		/* Behind a "|", time is the program of that name. */
		if (k != KEY_BANG && !(k == KEY_TIME && is_first))
			break;
		p->at = end;
		if (k == KEY_TIME)
			skip_time_options(p);
		is_any = true;
	}
	return is_any && (lex_cur(p) == LEX_END || lex_cur(p) == '\n' || lex_cur(p) == ';');
}

struct node *parse_pipeline(struct parser *p)
{
	struct node *pipe = parse_node(p, NODE_PIPE), *n;

	if (skip_pipeline_prefix(p, true))
		return pipe;
	for (;;) {
		n = parse_command(p);
		if (n == NULL || lex_failed(p))
			return NULL;
		parse_append(pipe, n);
		lex_blanks(p);
		if (lex_cur(p) != '|' || lex_next(p) == '|')
			break;
		parse_take(p, lex_next(p) == '&' ? 2 : 1);
		parse_skip_newlines(p);
		(void)skip_pipeline_prefix(p, false);
	}
	return pipe->first == pipe->last ? pipe->first : pipe;
}

static struct node *parse_and_or(struct parser *p)
{
	struct node *list = parse_node(p, NODE_AND_OR), *n;

	for (;;) {
		n = parse_pipeline(p);
		if (n == NULL || lex_failed(p))
			return NULL;
		parse_append(list, n);
		lex_blanks(p);
		if (!lex_looking_at(p, "&&") && !lex_looking_at(p, "||"))
			break;
		parse_take(p, 2);
		parse_skip_newlines(p);
	}
	return list->first == list->last ? list->first : list;
}

static bool at_list_end(struct parser *p)
{
	size_t end;
	int c = lex_cur(p);

	if (c == LEX_END || c == ')')
		return true;
	if (c == ';' && (lex_next(p) == ';' || lex_next(p) == '&'))
		return true;
	switch (parse_peek_keyword(p, &end)) {
	case KEY_THEN:
	case KEY_ELIF:
	case KEY_ELSE:
	case KEY_FI:
	case KEY_DO:
	case KEY_DONE:
	case KEY_ESAC:
	case KEY_CLOSE:
		return true;
	case KEY_NONE:
	case KEY_IF:
	case KEY_WHILE:
	case KEY_UNTIL:
	case KEY_FOR:
	case KEY_SELECT:
	case KEY_CASE:
	case KEY_FUNCTION:
	case KEY_OPEN:
	case KEY_BANG:
	case KEY_TIME:
	case KEY_COPROC:
	case KEY_TEST:
	case KEY_IN:
	case KEY_COUNT_:
		return false;
	}
	return false;
}

/* True when another command may follow. */
static bool take_separator(struct parser *p, struct node *n)
{
	int c;

	lex_blanks(p);
	parse_skip_comment(p);
	c = lex_cur(p);
	if (c == '&') {
		n->is_background = true;
		p->at++;
		return true;
	}
	if (c == ';' && lex_next(p) != ';' && lex_next(p) != '&') {
		p->at++;
		return true;
	}
	return c == '\n';
}

struct node *parse_list(struct parser *p)
{
	struct node *list = parse_node(p, NODE_LIST), *n;

	if (!lex_enter(p))
		return NULL;
	for (;;) {
		parse_skip_newlines(p);
		if (at_list_end(p))
			break;
		n = parse_and_or(p);
		if (n == NULL || lex_failed(p))
			return NULL;
		parse_append(list, n);
		if (!take_separator(p, n))
			break;
	}
	lex_leave(p);
	return list;
}

struct node *parse_substitution(struct parser *p)
{
	struct redir *pending = p->pending, **pending_end = p->pending_end;
	bool in_substitution = p->in_substitution;
	struct node *n;

	p->pending = NULL;
	p->pending_end = &p->pending;
	p->in_substitution = true;
	n = parse_list(p);
	if (lex_cur(p) != ')')
		lex_fail(p, "$( without )");
	if (p->pending)
		lex_fail(p, "a heredoc that does not end inside $( )");
	p->at++;
	p->pending = pending;
	p->pending_end = pending ? pending_end : &p->pending;
	p->in_substitution = in_substitution;
	return n;
}

static struct node *parse_all(struct parser *p)
{
	struct node *n = parse_list(p);

	if (!lex_failed(p) && lex_cur(p) != LEX_END)
		lex_fail(p, "something that bash does not expect");
	lex_heredocs(p);
	return lex_failed(p) ? NULL : n;
}

struct node *parse_nested(struct parser *p, const char *s, size_t n)
{
	struct parser in = *p;

	in.s = s;
	in.n = n;
	in.at = 0;
	in.pending = NULL;
	in.pending_end = &in.pending;
	in.in_substitution = false;
	if (!lex_enter(&in))
		return NULL;
	return parse_all(&in);
}

struct node *shell_parse(struct arena *mem, const char *text, size_t n,
			 struct shell_error *ret_error)
{
	size_t commands = 0, words = 0;
	struct parser p = { .mem = mem,
			    .s = text,
			    .n = n,
			    .commands = &commands,
			    .words = &words,
			    .error = ret_error };

	*ret_error = (struct shell_error){ 0 };
	p.pending_end = &p.pending;
	if (n > SHELL_MAX_BYTES)
		lex_fail(&p, "too long");
	for (size_t i = 0; i < n && i <= SHELL_MAX_BYTES; i++)
		if ((unsigned char)text[i] < 9)
			lex_fail(&p, "a control character");
	return parse_all(&p);
}
