/* SPDX-License-Identifier: Apache-2.0 */
/* guard/walk.h - the second pass: go through everything that would run and hold the rules against it
 *
 * Commands are met in the order in which they would run, as far as that can be known: variables, the working
 * directory and files written on the way are followed through straight-line code and forgotten where the way splits.
 * A command that starts another one (sudo, xargs, sh -c, find -exec, ...) is opened until nothing is left to open.
 *
 * Findings are what no table can see; rules give each its verdict and its sentence:
 *   unreadable         the text cannot be read, or is too large or nested too deep
 *   dynamic-command    the command's name is made at run time
 *   dynamic-code       code for a shell or an interpreter is made at run time
 *   unknown-source     a shell runs what another program prints or a file that is chosen at run time
 *   code-deletes       inline code of an interpreter deletes files outside the workspace
 *   code-secret        inline code of an interpreter names a file with credentials
 *   code-runs          inline code of an interpreter runs commands that it makes up
 *   wrapped            an unknown program is given a dangerous command as its arguments
 *   privilege          something that does more than look runs with another account's rights
 *   fork-bomb          a function starts itself more than once
 *   endless            a loop without an end starts or sends something each time and never waits
 */
#ifndef VITRINE_GUARD_WALK_H
#define VITRINE_GUARD_WALK_H

#include "guard/cmd.h"
#include "guard/effect.h"

#define WALK_MAX_DEPTH 24
#define WALK_MAX_COMMANDS ((size_t)6000)
#define WALK_MAX_TEXT (2 * SHELL_MAX_BYTES) /* in all texts inside texts together */
#define WALK_MAX_FINDINGS 16
#define WALK_MAX_PIPED 16
#define WALK_MAX_EFFECTS 64 /* on record; all are judged */

struct found {
	const struct rule *rule;
	enum verdict verdict;
	const char *command; /* the words of the command it is about */
};

/* What was read out of the text, for people (guard/effect.h). */
struct effect {
	enum effect_kind kind;
	const char *what;
	const char *command;
	const struct rule *rule; /* the one that judged it worst; NULL: none fits */
	enum verdict verdict;
};

/* A script written earlier in the same text. */
struct written {
	const char *path, *text;
	struct written *next;
};

struct walk {
	struct arena *mem;
	struct vars vars;
	struct places places;
	const struct rules *const *sets;
	size_t n_sets;
	const char *off; /* rules that the user switched off, "a|b" */
	unsigned depth, branches;
	const char *via; /* of the texts around: ssh, su, ... */
	size_t commands, text_bytes;
	size_t expanded, joined; /* bytes, of all values and of all places */
	struct written *written;
	const char *exported[8];
	size_t n_exported;
	struct found found[WALK_MAX_FINDINGS];
	size_t n_found;
	const struct rule **effect_rules[EFFECT_COUNT_]; /* those about each */
	size_t n_effect_rules[EFFECT_COUNT_];
	const struct rule **finding_rules; /* those about findings */
	size_t n_finding_rules;
	struct effect effects[WALK_MAX_EFFECTS];
	size_t n_effects;
	struct {
		const struct args *args;
		const char *list;
		bool is_given;
	} asked;         /* the last option that a rule asked for */
	bool is_inside;  /* a sandbox of ours */
	bool is_bounded; /* what is printed now goes to something that stops reading */
	bool is_piped;   /* what is printed now goes into a pipe */
	const char *piped[WALK_MAX_PIPED]; /* words of the commands before, in this pipe */
	size_t n_piped;
	enum verdict verdict;
	const struct found *worst;
	enum verdict ceiling; /* what is found now counts at most as this */
	void (*on_command)(void *to, const char *name);
	void *to;
};

void walk_script(struct walk *w, const struct node *script);
/* A text that is run as a script; marks in it stand for unknown text. */
void walk_text(struct walk *w, const char *text, size_t n, const struct cmd *by, const char *via);
/* A command that another one starts: words from `skip` on. */
void walk_inner(struct walk *w, const struct cmd *c, size_t skip, const char *via);
void walk_command(struct walk *w, struct cmd *c);
/* Words from `from` on that are evaluated once more, as subscripts. */
void walk_subscripts(struct walk *w, const struct cmd *c, size_t from);
void walk_find(struct walk *w, const char *finding, const struct cmd *c);
void walk_hit(struct walk *w, const struct rule *r, enum fit fit, const struct cmd *c);
/* The same with another verdict than the rule's own. */
void walk_hit_as(struct walk *w, const struct rule *r, enum verdict v, const struct cmd *c);

/* Opens what starts other commands (guard/wrap.c). True when it was such a one. */
bool wrap_open(struct walk *w, struct cmd *c);
/* Inline code of interpreters (guard/code.c). */
void code_open(struct walk *w, const struct cmd *c);
void code_scan(struct walk *w, const struct cmd *c, const char *text);
/* Calls in it that have effects (guard/code_calls.c). */
#define CODE_MAX_RAN 16
struct ran {
	const char *texts[CODE_MAX_RAN]; /* that calls gave to a shell */
	size_t n;
};
void code_calls(struct walk *w, const struct cmd *c, const char *code, struct ran *ret);
/* Loops without an end, and sizes that no memory holds (guard/code_words.c). */
void code_loops(struct walk *w, const struct cmd *c, const char *code);
/* Libraries of services and databases. */
void code_services(struct walk *w, const struct cmd *c, const char *code);
/* Statements that throw data away or change accounts. */
void code_sql(struct walk *w, const struct cmd *c, const char *text);
/* Options of ssh that hold a command (guard/code.c). */
void code_ssh(struct walk *w, const struct cmd *c);

/* A text in inline code that is a list of words: ['rm', '-rf', 'x']. */
void walk_words_of(struct walk *w, const struct cmd *by, const char *const *words, size_t n,
		   const char *via);

const char *walk_written(const struct walk *w, const char *path);
const char *walk_join(struct walk *w, const struct cmd *c, size_t from);

#endif
