/* SPDX-License-Identifier: Apache-2.0 */
/* shell/heredoc.c - where the body of a heredoc ends, as bash finds it: line by line, before anything in it is read */
#include "shell/lex.h"

/* One line, joined with the next where the body is not quoted and a backslash ends it; without its newline. */
static void heredoc_line(struct parser *p, const struct redir *r, struct text *line)
{
	line->n = 0;
	while (p->at < p->n) {
		char c = p->s[p->at++];

		if (c == '\n')
			break;
		/* Joined first: tabs behind a backslash that began the line still begin it. */
		if (line->n == 0 && r->strips_tabs && c == '\t')
			continue;
		if (c == '\\' && !r->is_body_quoted && p->at < p->n) {
			char next = p->s[p->at++];

			if (next == '\n')
				continue;
			text_putc(line, c);
			c = next;
		}
		text_putc(line, c);
	}
	text_add(line, "", 0);
}

/* Inside $( ), bash lets "EOF )" end the body too. */
static bool ends_early(struct parser *p, const struct redir *r, const struct text *line,
		       const struct text *delimiter, size_t from)
{
	if (!p->in_substitution || line->n <= delimiter->n ||
	    memcmp(line->p, delimiter->p, delimiter->n) != 0 ||
	    memchr(line->p + delimiter->n, ')', line->n - delimiter->n) == NULL)
		return false;
	while (r->strips_tabs && p->s[from] == '\t')
		from++;
	if (from + delimiter->n > p->n || memcmp(p->s + from, delimiter->p, delimiter->n) != 0) {
		lex_fail(p, "a heredoc whose end is unclear");
		return true;
	}
	p->at = from + delimiter->n;
	return true;
}

static void heredoc_delimiter(struct parser *p, const struct redir *r, struct text *ret)
{
	text_add(ret, "", 0);
	for (const struct part *part = r->target->first; part; part = part->next) {
		if (part->kind != PART_TEXT)
			lex_fail(p, "an expansion as a heredoc's end mark");
		text_add(ret, part->text, part->n);
	}
}

static void heredoc_body(struct parser *p, struct redir *r)
{
	struct text delimiter = { .mem = p->mem }, body = { .mem = p->mem },
		    line = { .mem = p->mem };

	p->unpaired++;
	heredoc_delimiter(p, r, &delimiter);
	text_add(&body, "", 0);
	while (p->at < p->n && !lex_failed(p)) {
		size_t from = p->at;

		heredoc_line(p, r, &line);
		if (line.n == delimiter.n && memcmp(line.p, delimiter.p, line.n) == 0)
			break;
		if (ends_early(p, r, &line, &delimiter, from))
			break;
		text_add(&body, line.p, line.n);
		text_putc(&body, '\n');
	}
	r->body_raw = body.p;
	r->body_n = body.n;
	lex_body(p, r);
}

void lex_heredocs(struct parser *p)
{
	while (p->pending && !lex_failed(p)) {
		struct redir *r = p->pending;

		p->pending = r->next_pending;
		if (p->pending == NULL)
			p->pending_end = &p->pending;
		heredoc_body(p, r);
	}
}
