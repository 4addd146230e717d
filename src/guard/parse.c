/* SPDX-License-Identifier: Apache-2.0 */
/* guard/parse.c - commands: lists, pipelines, compounds, functions
 *
 * Recursive descent straight over the characters. A reserved word is one only where a command may begin, and only
 * without quotes, so it is looked for there (peek_keyword) and nowhere else. A list ends at whatever cannot begin a
 * command; who called for the list knows which end it wants and refuses any other.
 *
 * The heredocs announced on a line are read when its newline is taken, wherever that is. In a substitution the
 * outer line's heredocs wait, and its own must have been read when it closes.
 */
#include <ctype.h>

#include "guard/parse.h"

enum keyword {
	KEY_NONE,
	KEY_IF,
	KEY_THEN,
	KEY_ELIF,
	KEY_ELSE,
	KEY_FI,
	KEY_WHILE,
	KEY_UNTIL,
	KEY_FOR,
	KEY_SELECT,
	KEY_DO,
	KEY_DONE,
	KEY_CASE,
	KEY_ESAC,
	KEY_FUNCTION,
	KEY_OPEN,
	KEY_CLOSE,
	KEY_BANG,
	KEY_TIME,
	KEY_COPROC,
	KEY_TEST,
	KEY_IN,
	KEY_COUNT_
};

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

static struct node *parse_command(struct parser *p);
static struct node *parse_list(struct parser *p);
static struct node *parse_pipeline(struct parser *p);

static struct node *node_new(struct parser *p, enum node_kind kind)
{
	struct node *n = arena_new(p->mem, struct node);

	n->kind = kind;
	if (p->mem->is_over)
		lex_fail(p, "too large");
	return n;
}

static void append(struct node *parent, struct node *child)
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

static enum keyword peek_keyword(struct parser *p, size_t *ret_end)
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

static bool take_keyword(struct parser *p, enum keyword want)
{
	size_t end;

	if (peek_keyword(p, &end) != want)
		return false;
	p->at = end;
	return true;
}

static void expect_keyword(struct parser *p, enum keyword want, const char *otherwise)
{
	parse_skip_newlines(p);
	if (!take_keyword(p, want))
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

static struct node *parse_function_body(struct parser *p, struct node *fn)
{
	size_t end;
	struct node *body;

	parse_skip_newlines(p);
	switch (peek_keyword(p, &end)) {
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
	append(fn, body);
	return fn;
}

static const char *word_text(struct parser *p, const struct word *w)
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
	struct node *fn = node_new(p, NODE_FUNCTION);

	p->at++;
	lex_blanks(p);
	if (lex_cur(p) != ')' || n->assigns || n->redirs) {
		lex_fail(p, "a parenthesis that bash does not expect");
		return NULL;
	}
	p->at++;
	fn->name = word_text(p, n->words);
	return parse_function_body(p, fn);
}

static void count_command(struct parser *p)
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
	struct node *n = node_new(p, NODE_SIMPLE);
	struct assign **assigns = &n->assigns;
	struct redir **redirs = &n->redirs;
	struct word **words = &n->words;

	count_command(p);
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

/* Compounds. */

static struct node *parse_if(struct parser *p)
{
	struct node *n = node_new(p, NODE_BRANCH);

	append(n, parse_list(p));
	expect_keyword(p, KEY_THEN, "if without then");
	append(n, parse_list(p));
	for (;;) {
		if (take_keyword(p, KEY_ELIF)) {
			append(n, parse_list(p));
			expect_keyword(p, KEY_THEN, "elif without then");
			append(n, parse_list(p));
		} else if (take_keyword(p, KEY_ELSE)) {
			append(n, parse_list(p));
		} else {
			break;
		}
	}
	expect_keyword(p, KEY_FI, "if without fi");
	return n;
}

static void parse_do(struct parser *p, struct node *n)
{
	parse_skip_newlines(p);
	if (take_keyword(p, KEY_OPEN)) {
		append(n, parse_list(p));
		expect_keyword(p, KEY_CLOSE, "{ without }");
		return;
	}
	expect_keyword(p, KEY_DO, "a loop without do");
	append(n, parse_list(p));
	expect_keyword(p, KEY_DONE, "a loop without done");
}

static struct node *parse_while(struct parser *p)
{
	struct node *n = node_new(p, NODE_LOOP);

	append(n, parse_list(p));
	expect_keyword(p, KEY_DO, "a loop without do");
	append(n, parse_list(p));
	expect_keyword(p, KEY_DONE, "a loop without done");
	return n;
}

static struct node *parse_for_arith(struct parser *p, struct node *n)
{
	parse_take(p, 2);
	if (!lex_arith(p, &n->words))
		lex_fail(p, "for (( without ))");
	lex_blanks(p);
	if (lex_cur(p) == ';')
		p->at++;
	parse_do(p, n);
	return n;
}

static struct node *parse_for(struct parser *p)
{
	struct node *n = node_new(p, NODE_LOOP);
	struct word **end = &n->words, *w;

	lex_blanks(p);
	if (lex_looking_at(p, "(("))
		return parse_for_arith(p, n);
	w = lex_word(p);
	if (w == NULL) {
		lex_fail(p, "for without a name");
		return NULL;
	}
	n->name = word_text(p, w);
	lex_blanks(p);
	if (lex_cur(p) == ';' && lex_next(p) != ';')
		p->at++;
	parse_skip_newlines(p);
	if (take_keyword(p, KEY_IN)) {
		n->has_list = true;
		for (lex_blanks(p); (w = lex_word(p)) != NULL; lex_blanks(p))
			parse_add_word(&end, w);
		parse_skip_comment(p);
		if (lex_cur(p) == ';')
			p->at++;
		else if (lex_cur(p) != '\n')
			lex_fail(p, "a list that does not end");
	}
	parse_do(p, n);
	return n;
}

static void parse_case_patterns(struct parser *p, struct word ***end)
{
	for (;;) {
		struct word *w;

		lex_blanks(p);
		w = lex_word(p);
		if (w == NULL) {
			lex_fail(p, "a pattern is missing");
			return;
		}
		parse_add_word(end, w);
		lex_blanks(p);
		if (lex_cur(p) != '|')
			break;
		p->at++;
	}
	if (lex_cur(p) != ')')
		lex_fail(p, "a pattern without )");
	p->at++;
}

static struct node *parse_case(struct parser *p)
{
	struct node *n = node_new(p, NODE_BRANCH);
	struct word **end = &n->words, *w;

	lex_blanks(p);
	w = lex_word(p);
	if (w == NULL) {
		lex_fail(p, "case without a word");
		return NULL;
	}
	parse_add_word(&end, w);
	expect_keyword(p, KEY_IN, "case without in");
	for (;;) {
		parse_skip_newlines(p);
		if (take_keyword(p, KEY_ESAC))
			return n;
		if (lex_failed(p) || lex_cur(p) == LEX_END)
			break;
		if (lex_cur(p) == '(')
			p->at++;
		parse_case_patterns(p, &end);
		append(n, parse_list(p));
		if (lex_looking_at(p, ";;&"))
			parse_take(p, 3);
		else if (lex_looking_at(p, ";;") || lex_looking_at(p, ";&"))
			parse_take(p, 2);
		else if (take_keyword(p, KEY_ESAC))
			return n;
		else
			break;
	}
	lex_fail(p, "case without esac");
	return NULL;
}

/* Inside [[ ]]: every token up to the closing word. What is a pattern and what an operator does not matter here. */
static struct node *parse_test(struct parser *p)
{
	struct node *n = node_new(p, NODE_TEST);
	struct word **end = &n->words;
	unsigned open = 0;

	for (;;) {
		struct word *w;
		int c;

		lex_blanks(p);
		c = lex_cur(p);
		if (c == LEX_END || c == ';' || c == '#') {
			lex_fail(p, "[[ is not closed");
			return NULL;
		}
		w = lex_word(p);
		if (w && w->raw_n == 2 && memcmp(w->raw, "]]", 2) == 0) {
			if (open)
				lex_fail(p, "[[ ends inside parentheses");
			return n;
		}
		if (w) {
			parse_add_word(&end, w);
			continue;
		}
		if (c == '\n' && p->pending)
			lex_fail(p, "a heredoc around [[");
		open += c == '(';
		if (c == ')' && open-- == 0)
			lex_fail(p, "a parenthesis that bash does not expect");
		p->at++;
	}
}

static struct node *parse_group(struct parser *p, enum node_kind kind)
{
	struct node *n = node_new(p, kind);

	append(n, parse_list(p));
	if (kind == NODE_GROUP) {
		expect_keyword(p, KEY_CLOSE, "{ without }");
		return n;
	}
	if (lex_cur(p) != ')')
		lex_fail(p, "( without )");
	p->at++;
	return n;
}

static struct node *parse_paren(struct parser *p)
{
	struct node *n;
	size_t at;

	p->at++;
	if (lex_cur(p) != '(')
		return parse_group(p, NODE_SUBSHELL);
	at = p->at++;
	n = node_new(p, NODE_TEST);
	if (lex_arith(p, &n->words))
		return n;
	p->at = at;
	return parse_group(p, NODE_SUBSHELL);
}

static struct node *parse_function_word(struct parser *p)
{
	struct node *fn = node_new(p, NODE_FUNCTION);
	struct word *w;

	lex_blanks(p);
	w = lex_word(p);
	if (w == NULL) {
		lex_fail(p, "function without a name");
		return NULL;
	}
	fn->name = word_text(p, w);
	lex_blanks(p);
	if (lex_cur(p) == '(' && lex_next(p) == ')')
		parse_take(p, 2);
	else if (lex_cur(p) == '(')
		lex_fail(p, "a parenthesis that bash does not expect");
	return parse_function_body(p, fn);
}

static bool is_plain_name(const struct word *w)
{
	for (size_t i = 0; i < w->raw_n; i++)
		if (!isalnum((unsigned char)w->raw[i]) && w->raw[i] != '_')
			return false;
	return true;
}

/* coproc [NAME] command; only a compound can have a name. */
static struct node *parse_coproc(struct parser *p)
{
	size_t at, end;
	struct word *w;
	enum keyword k;

	/* Bash 5.2 prints what it has read in $( ) and reads it again, and prints this one wrongly. */
	if (p->in_substitution)
		lex_fail(p, "coproc inside $( )");
	lex_blanks(p);
	at = p->at;
	if (peek_keyword(p, &end) == KEY_NONE && lex_cur(p) != '(') {
		w = lex_word(p);
		lex_blanks(p);
		k = peek_keyword(p, &end);
		if (w == NULL || (lex_cur(p) != '(' && (k == KEY_NONE || k == KEY_IN ||
							k == KEY_CLOSE || k == KEY_BANG)))
			p->at = at;
		else if (!is_plain_name(w))
			/* An assignment, say: then the brace behind it is a command's name. */
			lex_fail(p, "a coproc whose name is none");
	}
	return parse_command(p);
}

static struct node *parse_compound(struct parser *p, enum keyword k)
{
	switch (k) {
	case KEY_IF:
		return parse_if(p);
	case KEY_WHILE:
	case KEY_UNTIL:
		return parse_while(p);
	case KEY_FOR:
	case KEY_SELECT:
		return parse_for(p);
	case KEY_CASE:
		return parse_case(p);
	case KEY_FUNCTION:
		return parse_function_word(p);
	case KEY_OPEN:
		return parse_group(p, NODE_GROUP);
	case KEY_TEST:
		return parse_test(p);
	case KEY_COPROC:
		return parse_coproc(p);
	case KEY_BANG:
	case KEY_TIME:
		return parse_pipeline(p);
	case KEY_NONE:
	case KEY_THEN:
	case KEY_ELIF:
	case KEY_ELSE:
	case KEY_FI:
	case KEY_DO:
	case KEY_DONE:
	case KEY_ESAC:
	case KEY_CLOSE:
	case KEY_IN:
	case KEY_COUNT_:
		break;
	}
	lex_fail(p, "a reserved word that bash does not expect");
	return NULL;
}

static struct node *parse_command(struct parser *p)
{
	struct node *n;
	enum keyword k;
	size_t end;

	lex_blanks(p);
	if (!lex_enter(p))
		return NULL;
	k = peek_keyword(p, &end);
	if (lex_cur(p) == '(') {
		n = parse_paren(p);
	} else if (k != KEY_NONE && k != KEY_IN && k != KEY_BANG && k != KEY_TIME) {
		p->at = end;
		count_command(p);
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
		k = peek_keyword(p, &end);
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

static struct node *parse_pipeline(struct parser *p)
{
	struct node *pipe = node_new(p, NODE_PIPE), *n;

	if (skip_pipeline_prefix(p, true))
		return pipe;
	for (;;) {
		n = parse_command(p);
		if (n == NULL || lex_failed(p))
			return NULL;
		append(pipe, n);
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
	struct node *list = node_new(p, NODE_AND_OR), *n;

	for (;;) {
		n = parse_pipeline(p);
		if (n == NULL || lex_failed(p))
			return NULL;
		append(list, n);
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
	switch (peek_keyword(p, &end)) {
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

static struct node *parse_list(struct parser *p)
{
	struct node *list = node_new(p, NODE_LIST), *n;

	if (!lex_enter(p))
		return NULL;
	for (;;) {
		parse_skip_newlines(p);
		if (at_list_end(p))
			break;
		n = parse_and_or(p);
		if (n == NULL || lex_failed(p))
			return NULL;
		append(list, n);
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
