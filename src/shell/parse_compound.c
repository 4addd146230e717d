/* SPDX-License-Identifier: Apache-2.0 */
/* shell/parse_compound.c - what holds other commands: if, while, for, case, [[ ]], groups, functions, coproc
 *
 * Each is entered with its first word taken and leaves behind its last.
 */
#include <ctype.h>

#include "shell/parse.h"

static struct node *parse_if(struct parser *p)
{
	struct node *n = parse_node(p, NODE_BRANCH);

	parse_append(n, parse_list(p));
	parse_expect_keyword(p, KEY_THEN, "if without then");
	parse_append(n, parse_list(p));
	for (;;) {
		if (parse_take_keyword(p, KEY_ELIF)) {
			parse_append(n, parse_list(p));
			parse_expect_keyword(p, KEY_THEN, "elif without then");
			parse_append(n, parse_list(p));
		} else if (parse_take_keyword(p, KEY_ELSE)) {
			parse_append(n, parse_list(p));
		} else {
			break;
		}
	}
	parse_expect_keyword(p, KEY_FI, "if without fi");
	return n;
}

static void parse_do(struct parser *p, struct node *n)
{
	parse_skip_newlines(p);
	if (parse_take_keyword(p, KEY_OPEN)) {
		parse_append(n, parse_list(p));
		parse_expect_keyword(p, KEY_CLOSE, "{ without }");
		return;
	}
	parse_expect_keyword(p, KEY_DO, "a loop without do");
	parse_append(n, parse_list(p));
	parse_expect_keyword(p, KEY_DONE, "a loop without done");
}

static struct node *parse_while(struct parser *p)
{
	struct node *n = parse_node(p, NODE_LOOP);

	parse_append(n, parse_list(p));
	parse_expect_keyword(p, KEY_DO, "a loop without do");
	parse_append(n, parse_list(p));
	parse_expect_keyword(p, KEY_DONE, "a loop without done");
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
	struct node *n = parse_node(p, NODE_LOOP);
	struct word **end = &n->words, *w;

	lex_blanks(p);
	if (lex_looking_at(p, "(("))
		return parse_for_arith(p, n);
	w = lex_word(p);
	if (w == NULL) {
		lex_fail(p, "for without a name");
		return NULL;
	}
	n->name = parse_word_text(p, w);
	lex_blanks(p);
	if (lex_cur(p) == ';' && lex_next(p) != ';')
		p->at++;
	parse_skip_newlines(p);
	if (parse_take_keyword(p, KEY_IN)) {
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
	p->unpaired++;
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
	struct node *n = parse_node(p, NODE_BRANCH);
	struct word **end = &n->words, *w;

	lex_blanks(p);
	w = lex_word(p);
	if (w == NULL) {
		lex_fail(p, "case without a word");
		return NULL;
	}
	parse_add_word(&end, w);
	parse_expect_keyword(p, KEY_IN, "case without in");
	for (;;) {
		parse_skip_newlines(p);
		if (parse_take_keyword(p, KEY_ESAC))
			return n;
		if (lex_failed(p) || lex_cur(p) == LEX_END)
			break;
		if (lex_cur(p) == '(')
			p->at++;
		parse_case_patterns(p, &end);
		parse_append(n, parse_list(p));
		if (lex_looking_at(p, ";;&"))
			parse_take(p, 3);
		else if (lex_looking_at(p, ";;") || lex_looking_at(p, ";&"))
			parse_take(p, 2);
		else if (parse_take_keyword(p, KEY_ESAC))
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
	struct node *n = parse_node(p, NODE_TEST);
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
	struct node *n = parse_node(p, kind);

	parse_append(n, parse_list(p));
	if (kind == NODE_GROUP) {
		parse_expect_keyword(p, KEY_CLOSE, "{ without }");
		return n;
	}
	if (lex_cur(p) != ')')
		lex_fail(p, "( without )");
	p->at++;
	return n;
}

struct node *parse_paren(struct parser *p)
{
	struct node *n;
	size_t at;

	p->at++;
	if (lex_cur(p) != '(')
		return parse_group(p, NODE_SUBSHELL);
	at = p->at++;
	n = parse_node(p, NODE_TEST);
	if (lex_arith(p, &n->words))
		return n;
	p->at = at;
	return parse_group(p, NODE_SUBSHELL);
}

static struct node *parse_function_word(struct parser *p)
{
	struct node *fn = parse_node(p, NODE_FUNCTION);
	struct word *w;

	lex_blanks(p);
	w = lex_word(p);
	if (w == NULL) {
		lex_fail(p, "function without a name");
		return NULL;
	}
	fn->name = parse_word_text(p, w);
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
	if (parse_peek_keyword(p, &end) == KEY_NONE && lex_cur(p) != '(') {
		w = lex_word(p);
		lex_blanks(p);
		k = parse_peek_keyword(p, &end);
		if (w == NULL || (lex_cur(p) != '(' && (k == KEY_NONE || k == KEY_IN ||
							k == KEY_CLOSE || k == KEY_BANG)))
			p->at = at;
		else if (!is_plain_name(w))
			/* An assignment, say: then the brace behind it is a command's name. */
			lex_fail(p, "a coproc whose name is none");
	}
	return parse_command(p);
}

struct node *parse_compound(struct parser *p, enum keyword k)
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
