/* SPDX-License-Identifier: Apache-2.0 */
/* guard/parse.h - between the two halves of the parser: commands (parse.c) and what stands around them (parse_around.c) */
#ifndef VITRINE_GUARD_PARSE_H
#define VITRINE_GUARD_PARSE_H

#include "guard/lex.h"

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
