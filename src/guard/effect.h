/* SPDX-License-Identifier: Apache-2.0 */
/* guard/effect.h - what a command does, apart from how it is spelled
 *
 * A table gives each known program its effects (the files of rules/, "programs", "does"), redirections and inline code
 * have theirs, and rules judge an effect by where it falls. So a new way of deleting needs a line in the table, and a new
 * place that matters a line in a list.
 *
 *   removes    PATH is gone, with all below it     appends    PATH grows
 *   unlinks    PATH is gone if it is a file
 *   moves      PATH is gone from where it was     modes      rights or owner of PATH change
 *   empties    PATH has no content afterwards     reads      the content of PATH is read
 *   writes     the content of PATH is replaced    sends      the content of PATH goes to another machine
 *   looks      only the name of PATH is used      uses       an unknown program is given PATH
 *   changes    account, schedule, service, rights, tunnel, agent, cloud, data: a word, not a path
 *   starts     something without an end of its own: a word, not a path
 *
 * "does" is a list of clauses, separated by ';':  EFFECT WHAT [if OPTIONS] [unless OPTIONS]
 *
 *   WHAT       args, first, last, rest (all but the first), init (all but the last); -o|--output: values of options;
 *              of=: the rest of an argument that begins so; :word: the word itself
 *   OPTIONS    "-f|--force"; "-m|--mode=PATTERNS": an option has such a value; "-j|--jobs>N": or a number above N;
 *              "stdin": something is piped in or redirected; "N+": at least N arguments; /PATTERNS: an argument fits
 *
 * Two more do something with a text instead: `executes WHAT` reads it as a shell's, `interprets WHAT` searches it as
 * inline code; `runs WHAT` takes the words from there on as a command.
 */
#ifndef VITRINE_GUARD_EFFECT_H
#define VITRINE_GUARD_EFFECT_H

#include <stddef.h>

enum effect_kind {
	EFFECT_REMOVES,
	EFFECT_UNLINKS,
	EFFECT_MOVES,
	EFFECT_EMPTIES,
	EFFECT_WRITES,
	EFFECT_APPENDS,
	EFFECT_MODES,
	EFFECT_READS,
	EFFECT_SENDS,
	EFFECT_LOOKS,
	EFFECT_USES,
	EFFECT_CHANGES,
	EFFECT_STARTS,
	EFFECT_COUNT_
};

const char *effect_name(enum effect_kind k);
/* EFFECT_COUNT_ when there is none of this name. */
enum effect_kind effect_find(const char *name, size_t n);

struct walk;
struct cmd;
struct args;
struct value;

/* Everything that this command does by itself. */
void effect_read(struct walk *w, struct cmd *c, const struct args *a);
/* One effect: on record, and held against the rules. */
void effect_add(struct walk *w, enum effect_kind k, const struct value *what, const struct cmd *c);
/* Programs that talk to other machines (guard/effect_net.c). */
void effect_network(struct walk *w, const struct cmd *c, const struct args *a);
void effect_text(struct walk *w, enum effect_kind k, const char *what, const struct cmd *c);

#endif
