/* SPDX-License-Identifier: Apache-2.0 */
/* guard/wrap.h - what wrap.c, wrap_shell.c and wrap_feed.c share: the table of commands that start others */
#ifndef VITRINE_GUARD_WRAP_H
#define VITRINE_GUARD_WRAP_H

#include "guard/walk.h"

struct wrapper {
	/* Arrays: a table of pointers would cost every start of the program. */
	char name[20];
	unsigned char way; /* of being given a command */
	char values[72];   /* options that take a value */
	unsigned skip;     /* arguments before the command */
};

const struct wrapper *wrap_table(size_t *ret_n);

/* Does this program start others? */
bool wrap_is(const char *name);
size_t wrap_skip_options(const struct cmd *c, size_t at, const char *values);
bool wrap_is_assignment(const char *s);
/* A shell that runs its standard input, or a file. */
void wrap_run_input(struct walk *w, const struct cmd *c);
void wrap_run_file(struct walk *w, const struct cmd *c, const struct value *file);

void wrap_alias(struct walk *w, struct cmd *c, const struct wrapper *t);
void wrap_command(struct walk *w, struct cmd *c, const struct wrapper *t);
void wrap_container(struct walk *w, struct cmd *c, const struct wrapper *t);
void wrap_dashes(struct walk *w, struct cmd *c, const struct wrapper *t);
void wrap_env(struct walk *w, struct cmd *c, const struct wrapper *t);
void wrap_eval(struct walk *w, struct cmd *c, const struct wrapper *t);
void wrap_find(struct walk *w, struct cmd *c, const struct wrapper *t);
void wrap_flock(struct walk *w, struct cmd *c, const struct wrapper *t);
void wrap_parallel(struct walk *w, struct cmd *c, const struct wrapper *t);
void wrap_runner(struct walk *w, struct cmd *c, const struct wrapper *t);
void wrap_script(struct walk *w, struct cmd *c, const struct wrapper *t);
void wrap_source(struct walk *w, struct cmd *c, const struct wrapper *t);
void wrap_ssh(struct walk *w, struct cmd *c, const struct wrapper *t);
void wrap_stdin(struct walk *w, struct cmd *c, const struct wrapper *t);
void wrap_su(struct walk *w, struct cmd *c, const struct wrapper *t);
void wrap_sudo(struct walk *w, struct cmd *c, const struct wrapper *t);
void wrap_trap(struct walk *w, struct cmd *c, const struct wrapper *t);
void wrap_watch(struct walk *w, struct cmd *c, const struct wrapper *t);
void wrap_xargs(struct walk *w, struct cmd *c, const struct wrapper *t);

#endif
