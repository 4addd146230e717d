/* SPDX-License-Identifier: Apache-2.0 */
/* shell/shell.h - a command line as bash reads it: words, commands, redirections
 *
 * The reader accepts what it models and refuses the rest; whoever asks treats a refusal as "I cannot tell", which is
 * never a yes. It may accept text that bash would call a syntax error (bash then runs nothing of it), but what bash
 * does run must be visible in the tree: `make fuzz` holds it against the real bash.
 *
 * A word is a list of parts. Text is kept with quotes removed and knows whether it was quoted; everything whose
 * value is made at run time is a part of its own, and the commands inside it are in the tree too.
 */
#ifndef VITRINE_SHELL_SHELL_H
#define VITRINE_SHELL_SHELL_H

#include "base/arena.h"

#define SHELL_MAX_BYTES ((size_t)128 * KIB)
#define SHELL_MAX_DEPTH 64
#define SHELL_MAX_COMMANDS 4096
#define SHELL_MAX_WORDS 8192

enum part_kind {
	PART_TEXT,
	PART_VAR,    /* $x ${x} ${x:-word}: name, op and arg */
	PART_SCRIPT, /* $(...) and `...` */
	PART_PROC,   /* <(...) and >(...) */
	PART_ARITH,  /* $((...)): arg holds what is expanded inside */
	PART_KIND_COUNT_
};

struct part {
	enum part_kind kind;
	bool is_quoted;
	bool is_input;    /* PART_PROC: <( */
	const char *text; /* PART_TEXT; PART_VAR: the name */
	size_t n;         /* bytes of text */
	const char *
		op; /* PART_VAR: what stands behind the name ("" for none), two characters at most */
	struct word *arg;    /* PART_VAR, PART_ARITH */
	struct node *script; /* PART_SCRIPT, PART_PROC */
	struct part *next;
};

struct word {
	struct part *first, *last;
	bool has_quote;
	const char *raw; /* as written */
	size_t raw_n;
	struct word *next;
};

struct assign {
	const char *name;
	bool is_append;
	struct word *index;  /* name[index]= */
	struct word *value;  /* NULL for an array */
	struct word *values; /* array elements */
	struct assign *next;
};

enum redir_op {
	REDIR_IN,      /* < */
	REDIR_OUT,     /* > >| */
	REDIR_APPEND,  /* >> */
	REDIR_RDWR,    /* <> */
	REDIR_DUP_IN,  /* <& */
	REDIR_DUP_OUT, /* >& */
	REDIR_BOTH,    /* &> &>> */
	REDIR_HEREDOC, /* << <<- */
	REDIR_STRING,  /* <<< */
	REDIR_OP_COUNT_
};

struct redir {
	enum redir_op op;
	int fd;              /* -1: the operator's own */
	struct word *target; /* for a heredoc: its delimiter */
	struct word *body;   /* heredoc */
	const char *body_raw;
	size_t body_n;
	bool is_body_quoted, strips_tabs;
	struct redir *next;
	struct redir *next_pending;
};

enum node_kind {
	NODE_LIST,     /* children one after the other */
	NODE_AND_OR,   /* children joined by && and || */
	NODE_PIPE,     /* children joined by | */
	NODE_SIMPLE,   /* assigns, words, redirs */
	NODE_SUBSHELL, /* ( list ) */
	NODE_GROUP,    /* { list } */
	NODE_BRANCH,   /* if, case: children may run */
	NODE_LOOP,     /* while, until, for, select: name and words for the latter two */
	NODE_FUNCTION, /* name, one child */
	NODE_TEST,     /* [[ ]] and (( )): words */
	NODE_KIND_COUNT_
};

struct node {
	enum node_kind kind;
	struct node *first, *last, *next;
	struct assign *assigns;
	struct word *words;
	struct redir *redirs;
	const char *name;
	bool is_background;
	bool has_list; /* for name in words */
};

struct shell_error {
	const char *what; /* NULL: none */
	size_t at;
};

/* The whole text as one NODE_LIST, or NULL and ret_error. Text and tree live as long as the arena and the text. */
struct node *shell_parse(struct arena *mem, const char *text, size_t n,
			 struct shell_error *ret_error);

#endif
