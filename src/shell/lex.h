/* SPDX-License-Identifier: Apache-2.0 */
/* shell/lex.h - what lex.c (words) and parse.c (commands) share */
#ifndef VITRINE_SHELL_LEX_H
#define VITRINE_SHELL_LEX_H

#include "shell/shell.h"

struct parser {
	struct arena *mem;
	const char *s;
	size_t n, at;
	unsigned depth;
	size_t *commands, *words; /* shared with the readers of `...` and heredocs inside */
	struct redir *pending, **pending_end;
	bool in_substitution; /* $( ) around us: heredocs may end early */
	/* Texts so far in which parentheses need not pair: patterns of case, comments, heredocs, $''. */
	unsigned unpaired;
	struct shell_error *error;
};

#define LEX_END (-1)

/* The first error is kept; after it every cursor is at the end. */
void lex_fail(struct parser *p, const char *what);
static inline bool lex_failed(const struct parser *p)
{
	return p->error->what != NULL;
}

/* The present character with line continuations taken out; lex_raw() leaves them in. LEX_END at the end. */
int lex_cur(struct parser *p);
int lex_raw(const struct parser *p);
/* The character behind the present one. */
int lex_next(struct parser *p);
/* Text at the cursor (continuations taken out) begins with this. */
bool lex_looking_at(struct parser *p, const char *s);

static inline bool lex_is_blank(int c)
{
	return c == ' ' || c == '\t';
}

/* Ends a word that has no quotes. */
static inline bool lex_is_meta(int c)
{
	return c == LEX_END || lex_is_blank(c) || c == '\n' || c == '|' || c == '&' || c == ';' ||
	       c == '(' || c == ')' || c == '<' || c == '>';
}

void lex_blanks(struct parser *p);

/* One word; NULL when there is none here. In a test ([[ ]]) parentheses do not end in an error. */
struct word *lex_word(struct parser *p);
/* Adds to a word that has begun: up to its end. */
void lex_word_more(struct parser *p, struct word *w);
/* name[ ... ] of an assignment, cursor on '['. */
void lex_subscript(struct parser *p, struct word *w);
struct word *lex_word_new(struct parser *p);

/* An arithmetic text between the cursor and the `))` that closes it; false and an unmoved cursor when the
 * parentheses are those of subshells. Cursor behind "((". */
bool lex_arith(struct parser *p, struct word **ret);

/* The words of a heredoc's body, which is in body_raw. */
void lex_body(struct parser *p, struct redir *r);
/* Bodies of the heredocs announced on the line that has just ended. */
void lex_heredocs(struct parser *p);

/* A nested text (backquotes) as a list of commands. */
struct node *parse_nested(struct parser *p, const char *s, size_t n);
/* Commands up to `)`, which is taken. Cursor behind `(`. */
struct node *parse_substitution(struct parser *p);

bool lex_enter(struct parser *p); /* one level deeper; false and an error at the limit */
static inline void lex_leave(struct parser *p)
{
	p->depth--;
}

#endif
