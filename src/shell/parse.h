/* SPDX-License-Identifier: Apache-2.0 */
/* shell/parse.h - between the parts of the parser: commands (parse.c), those that hold others (parse_compound.c) and what
 * stands around their words (parse_around.c) */
#ifndef VITRINE_SHELL_PARSE_H
#define VITRINE_SHELL_PARSE_H

#include "shell/lex.h"

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

/* ---- parse.c ---- */

struct node *parse_node(struct parser *p, enum node_kind kind);
void parse_append(struct node *parent, struct node *child);
enum keyword parse_peek_keyword(struct parser *p, size_t *ret_end);
bool parse_take_keyword(struct parser *p, enum keyword want);
void parse_expect_keyword(struct parser *p, enum keyword want, const char *otherwise);
const char *parse_word_text(struct parser *p, const struct word *w);
void parse_count_command(struct parser *p);
struct node *parse_command(struct parser *p);
struct node *parse_pipeline(struct parser *p);
struct node *parse_list(struct parser *p);
struct node *parse_function_body(struct parser *p, struct node *fn);

/* ---- parse_compound.c ---- */

/* The compound that this reserved word begins. */
struct node *parse_compound(struct parser *p, enum keyword k);
/* At "(": a subshell, or "((": arithmetic. */
struct node *parse_paren(struct parser *p);

/* ---- parse_around.c ---- */

void parse_add_word(struct word ***end, struct word *w);
void parse_skip_comment(struct parser *p);
/* Blanks, comments and newlines; the heredocs of each line are read with its newline. */
void parse_skip_newlines(struct parser *p);
void parse_take(struct parser *p, size_t n); /* so many characters, which are there */

/* True when there was one. */
bool parse_redir(struct parser *p, struct redir ***end);
void parse_redirs(struct parser *p, struct node *n);
bool parse_assign(struct parser *p, struct assign ***end);
/* Behind "declare": x=(...) is an array, not a parenthesis. */
bool parse_declared_array(struct parser *p, struct assign ***end);

#endif
