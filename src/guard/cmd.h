/* SPDX-License-Identifier: Apache-2.0 */
/* guard/cmd.h - one command as it will be run, its words read as options and arguments, and rules held against it */
#ifndef VITRINE_GUARD_CMD_H
#define VITRINE_GUARD_CMD_H

#include "guard/place.h"

enum input_kind { INPUT_NONE, INPUT_UNKNOWN, INPUT_TEXT };

struct file_use {
	const struct value *path;
	bool is_read, is_written, is_appended;
};

struct cmd {
	const struct value **argv;
	size_t argc;
	const char *
		name; /* of the program: no directory, lower case; "" when it is made at run time */
	const char *via; /* what starts it, "sudo|xargs"; "" for nothing */
	const char *env[16];
	size_t n_env;
	struct file_use files[16];
	size_t n_files;
	enum input_kind input;
	const char *input_text;
	const struct args *args; /* once they were read */
	bool is_fed;             /* some of its arguments come from another program's output */
};

struct option {
	const char *name;          /* "-x" or "--word", without a value */
	const struct value *value; /* the value, in whatever way it was given; or NULL */
};

struct args {
	struct option *options;
	size_t n_options;
	const struct value **pos; /* what is no option, subcommands included */
	size_t n_pos;
	size_t n_pos_plain; /* of these, so many stand before "--" */
	const struct syntax
		*syntax; /* its own, or its subcommand's; NULL: nothing is known about it */
	bool has_unknown_option;
};

/* The name by which rules know a program. */
const char *cmd_name(struct arena *mem, const char *word);

void args_read(struct arena *mem, const struct cmd *c, const struct places *p, struct args *ret);

/* Is one of "-f|--force" given (and not taken back)? */
bool args_have(const struct args *a, const char *list);
/* Is this option, as it was given, one of them? */
bool args_is(const char *given, const char *list);

enum fit { FIT_NO, FIT_MAYBE, FIT_YES };

/* Everything of a rule that depends on neither options nor arguments: variables, what starts it, redirections. */
bool cmd_context_fits(const struct cmd *c, const struct places *p, const struct rule *r);

/* FIT_MAYBE: only if something made at run time turns out so. */
enum fit cmd_fits(const struct cmd *c, const struct args *a, const struct places *p,
		  const struct rule *r);

#endif
