/* SPDX-License-Identifier: Apache-2.0 */
/* guard/value.h - what a word may become: expansions that can be known are made, the others leave a mark
 *
 * Known are variables that were assigned a literal in straight-line code, the few of the environment that matter
 * (HOME, PWD, TMPDIR, USER), $(pwd), $(echo literal) and $(mktemp). An unknown value is one byte: VALUE_UNKNOWN
 * stands for any text, VALUE_MANY for any text that may also be several words or none. The reader refuses these
 * bytes in its input, so a mark is always ours.
 */
#ifndef VITRINE_GUARD_VALUE_H
#define VITRINE_GUARD_VALUE_H

#include "shell/shell.h"

#define VALUE_UNKNOWN '\x01'
#define VALUE_MANY '\x02'
#define VALUE_MARKS "\x01\x02"

/* The place it names, worked out once (guard/place.c). */
struct spot {
	const char *cwd; /* for this working directory */
	const char *path;
	bool is_known, is_cut;
	/* Which classes of places were asked for with this working directory, and the answers: bits of enum place_class. */
	const char *answered_cwd;
	uint32_t answered, answers;
};

struct value {
	const char *s; /* NUL-ended */
	size_t n;
	bool is_dynamic; /* has a mark, or may have another value than this */
	bool is_glob;    /* has an active * ? or [ */
	bool is_quoted;
	struct spot *spot;
	const struct word *word; /* where it comes from; NULL when it was made up */
	struct value *next;
};

struct var {
	const char *name;
	const char *value; /* NULL: unknown */
	bool is_lost;      /* assigned where we cannot follow: unknown for good */
	struct var *next;
};

struct vars {
	struct arena *mem;
	struct var *first;
	const char *home, *cwd, *tmp; /* cwd NULL: unknown */
	bool has_ifs;                 /* words are split in some other way */
	size_t made;                  /* words so far */
	size_t *expanded; /* bytes that expansions put in so far, in all scopes; NULL: not counted */
	const char *const *params; /* $0 $1 ... of a shell -c; NULL: unknown */
	size_t n_params;
};

void vars_set(struct vars *v, const char *name, const char *value);
void vars_lose(struct vars *v, const char *name);
/* So many bytes more come out of an expansion. False when that is too many: the arena is then marked as over. */
bool vars_spend(struct vars *v, size_t n);
/* The value, or NULL. */
const char *vars_get(const struct vars *v, const char *name);

/* All words that this one becomes; NULL when it vanishes. */
struct value *value_of(struct vars *v, const struct word *w);
/* Without splitting and patterns: the right side of an assignment, a redirection's target, a heredoc. */
struct value *value_whole(struct vars *v, const struct word *w);
struct value *value_text(struct arena *mem, const char *s, size_t n);

static inline bool value_has_mark(const struct value *v)
{
	return strpbrk(v->s, VALUE_MARKS) != NULL;
}

/* Nothing is known about its beginning. */
static inline bool value_begins_open(const struct value *v)
{
	return v->s[0] == VALUE_UNKNOWN || v->s[0] == VALUE_MANY;
}

#endif
