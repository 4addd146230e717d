/* SPDX-License-Identifier: Apache-2.0 */
/* guard/rule.h - rules are data: what a command looks like, what to say about it
 *
 * A rule names programs and then narrows them: subcommand, options, arguments, where the command comes from. Every
 * field is a list of alternatives separated by '|' unless said otherwise, and every field that is set must hold.
 * Rules are written as JSON in rules/, each with commands that prove it; the build turns them into tables, so that
 * a decision reads no file. A user's own file and a project's are read at run time into the same structs.
 *
 *   program    names without directory, in lower case; '*' for any
 *   no_program names that are not meant, with program '*'
 *   sub        subcommand words in order ("stash drop"); a word may be a pattern; '**' skips any number of words
 *   option     up to four lists; one of each must be given. Bundled (-xf) and shortened (--forc) forms count,
 *              --no-x takes --x back
 *   no_option  none of these may be given
 *   arg        at least one argument fits: a pattern, or a class of paths with '@' (guard/place.h)
 *   no_arg     no argument fits
 *   no_value   no option's value fits
 *   args       at least so many arguments
 *   env        variables set for the command ("GIT_SSH*")
 *   via        it is started by one of these (xargs, parallel, find, ssh, sudo, ...)
 *   no_via     and by none of these ("argument": a substitution in the arguments of a program that does not print them)
 *   target     a file that is written to by redirection fits
 *   source     a file that is read by redirection fits
 *   finding    what the reader itself found out (guard/walk.h); then there is no program
 *   effect     what a command does to something (guard/effect.h): "removes|moves"; then program is not needed
 *   at         and where that falls: patterns or classes of places, as for arg
 *   no_at      and where not
 */
#ifndef VITRINE_GUARD_RULE_H
#define VITRINE_GUARD_RULE_H

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"

enum verdict { VERDICT_ALLOW, VERDICT_ASK, VERDICT_DENY, VERDICT_COUNT_ };

/* What the agent is to make of a refusal. */
enum intent {
	INTENT_STOP,        /* hard_stop: no way of doing this is wanted */
	INTENT_ALTERNATIVE, /* use_alternative: the sentence names a better way */
	INTENT_SCOPE,       /* scope_down: do less, name exactly what is meant */
	INTENT_HUMAN,       /* ask_human: a person decides or does it */
	INTENT_COUNT_
};

#define RULE_OPTIONS 4

struct rule {
	const char *id;
	const char *program, *no_program, *sub, *option[RULE_OPTIONS], *no_option, *arg, *no_arg,
		*no_value, *env, *via, *no_via, *target, *source;
	const char *finding;
	const char *effect, *at, *no_at;
	const char *say;
	uint8_t args;
	enum verdict verdict;
	enum intent intent;
};

/* How a program's words are read: which options take the next word. */
struct syntax {
	const char *name; /* "git", or "git checkout" for a subcommand's own */
	const char *values;
	const char *does; /* its effects (guard/effect.h); NULL: not known */
	const char *test; /* "command => effects", in the files only */
	bool has_sub;     /* the first argument is a subcommand */
	bool single_dash; /* -name is one option, not four */
};

/* Where the rules for a program stand: order[first .. first + n), sorted by name. */
struct rule_index {
	const char *name;
	uint16_t first, n;
};

struct rule_test {
	const char *rule;
	enum verdict verdict;
	const char *command;
};

/* Lists of patterns. Paths are whole, with ~ for the home directory. */
enum pattern_list {
	PATTERNS_SECRET_NAME, /* names of files that hold credentials */
	PATTERNS_SECRET,
	PATTERNS_NOT_SECRET, /* names that are no secrets after all */
	PATTERNS_STARTUP,    /* paths of what runs by itself later: shells, schedulers, logins */
	PATTERNS_MADE,       /* names of files that tools make again by themselves */
	PATTERNS_GUARD, /* paths of what says whether the guard is asked: agents' settings and ours */
	PATTERNS_COUNT_
};

struct patterns {
	const char *const *v;
	size_t n;
};

struct rules {
	const struct rule *rules;
	size_t n_rules;
	const struct rule *safe; /* verdict allow: commands that only look */
	size_t n_safe;
	const struct syntax *syntaxes;
	size_t n_syntaxes;
	struct patterns lists[PATTERNS_COUNT_];
	/* Made by the build only; without them every rule is tried. Syntaxes are then sorted by name, too. */
	const struct rule_index *index;
	size_t n_index;
	const uint16_t *order;
	bool is_strict;  /* "level": "strict" */
	const char *off; /* "off": rules that are not used, "a|b"; only from the user's own file */
	const char *actions
		[2];    /* "effects": "sends=deny|starts=allow", outside of sandboxes and inside */
	bool may_allow; /* not a project's: it may make the guard weaker */
	const char *title; /* when loaded from a file */
	const struct rule_test *tests;
	size_t n_tests;
};

/* The tables made by the build. */
const struct rules *rules_built_in(void);

/* One file. Everything that is found lives in the arena. `may_allow`: safe entries are accepted (not from projects). */
int rules_load(struct arena *mem, const char *text, size_t n, bool may_allow, struct rules *ret,
	       struct err *e);

const char *verdict_name(enum verdict v);
const char *intent_name(enum intent i);

/* Is item among "a|b|c"? rules_list_fits() takes the alternatives as patterns. */
bool rules_list_has(const char *list, const char *item);
bool rules_list_fits(const char *list, const char *item);

#endif
