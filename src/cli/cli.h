/* SPDX-License-Identifier: Apache-2.0 */
/* cli/cli.h - the verb table, option tables and what is made from them
 *
 * One struct verb per verb, one struct opt per option. Parsing, --help, the man pages and the shell completions
 * all come from these tables, so they cannot disagree.
 */
#ifndef VITRINE_CLI_CLI_H
#define VITRINE_CLI_CLI_H

#include "base/buf.h"
#include "base/err.h"

struct opt {
	const char *name; /* long name without dashes */
	char letter;      /* 0: none */
	const char *arg;  /* NULL: a switch; else what --help shows: "SIZE", "PATH", "K=V", ... */
	const char *help; /* one sentence, lower case, no full stop */
	int id;           /* > 0, what opts_next() returns */
};

struct verb {
	const char *name;
	int (*fn)(int argc, char **argv,
		  struct err *e); /* argv[0] is the verb; returns the exit status or < 0 */
	const char *usage;        /* "run [options] -- CMD [ARGS...]" */
	const char *summary;      /* "run a command in a sandbox" */
	const struct opt *opts;   /* ends with a NULL name; may be NULL */
	const char *text; /* paragraphs for the man page and --help: how to use it, examples */
	unsigned flags;   /* VERB_x */
};

enum {
	VERB_STORE =
		1, /* it needs SQLite: fn is NULL, and vitrine-store (prog/vitrine-store.c) is executed in our place */
	VERB_LOOP = 2, /* likewise vitrine-loop (prog/vitrine-loop.c) */
	VERB_ORDER =
		4, /* words with options of their own may stand among its words: argv is not arranged */
};

extern const struct verb verbs[]; /* ends with a NULL name; in cli/verbs.c */

/* How `help` shows them: each verb is in one group. */
struct verb_group {
	const char *title;
	const char *names; /* with blanks between */
};

extern const struct verb_group verb_groups[]; /* ends with a NULL title; in cli/verbs.c */

/* Option parser: strict, getopt_long-like (--name VALUE, --name=VALUE, -nVALUE, -n VALUE, bundled switches -it).
 * Stops at the first word that is not an option, or after "--". An unknown option is an ERR_USAGE that names the
 * nearest valid one; a missing or unwanted value likewise. --help is handled by the caller of verbs. */
struct opts {
	const struct opt *table;
	int argc;
	char **argv;
	int at;            /* index of the first word not yet taken */
	const char *value; /* of the option just returned, or NULL */
	const struct opt *opt;
	const char *bundle; /* rest of -abc */
	bool saw_dashdash;
	/* Where a letter stands for a switch and for an option with a value, alone, in front of this word: is it the
	 * value? NULL: never. */
	bool (*is_value)(const char *word);
};

void opts_init(struct opts *o, const struct opt *table, int argc,
	       char **argv);                  /* argv[0] is skipped */
int opts_next(struct opts *o, struct err *e); /* id, 0 at the end, or < 0 */

/* Moves the options of argv[1..] in front of its words, each in its order; "--" and what is behind it stay behind both
 * the options and in front of the words. Fails as opts_next() does. */
int opts_arrange(const struct opt *table, int argc, char **argv, struct err *e);

/* Each variable of a file, as -e takes one. What fn refuses (< 0) is a usage error that names the line. */
typedef int env_fn(void *arg, const char *text, struct err *e);
int env_file_each(const char *path, env_fn *fn, void *arg, struct err *e);

/* 10m: so long ago. today, yesterday: since midnight. 2026-01-31, 2026-01-31T12:00, with :00 and Z: then, local time
 * unless Z says otherwise. Nanoseconds since 1970. */
int cli_since(const char *text, uint64_t *ret, struct err *e);

/* The candidate nearest to `word` (edit distance at most 2 and less than half its length), or NULL. */
const char *cli_nearest(const char *word, const char *const *candidates);

/* The first executable file of this name on PATH, or NULL. */
char *cli_find_program(const char *name);

/* Table-made texts. */
void cli_help_verb(const struct verb *v, struct buf *out);
void cli_help_all(struct buf *out);
void cli_man_page(const struct verb *v, struct buf *out); /* roff; v == NULL: vitrine(1) itself */
int cli_completion(const char *shell, struct buf *out, struct err *e); /* bash, zsh, fish */

/* known.c: the names of these kinds (NULL-ended), a line each: sandboxes, agents, engines, modes, presets, groups, hosts,
 * templates, secrets. */
int cli_known_words(char *const *kinds, struct buf *out, struct err *e);

/* The whole buffer to stdout; over its ceiling is a bug, a reader that went away is a plain failure. */
int cli_print(const struct buf *out, struct err *e);

/* "vitrine: TEXT" on stderr, foreign bytes escaped. */
void cli_complain(const char *text);
/* Asks on a terminal; without one the answer is no. */
bool cli_is_agreed(const char *question);

struct sibling_verb {
	const char *name;
	int (*fn)(int argc, char **argv, struct err *e);
};

/* main() of a program that `vitrine` executes in its place: the verb argv[1], its failure reported once. Ends with NULL. */
int cli_sibling(const struct sibling_verb *table, const char *program, int argc, char **argv);

struct preset;
/* Is its program on PATH, and seen inside? */
bool cli_agent_is_here(const struct preset *p, const char *home);
/* `vitrine WORD ...` where the word is no verb: an agent's, so that `run` is meant? */
bool cli_is_agent(const char *word);
/* `vitrine` alone. */
int cmd_overview(struct err *e);
int cmd_agents(int argc, char **argv, struct err *e);
int cmd_run(int argc, char **argv, struct err *e);
int cmd_exec(int argc, char **argv, struct err *e);
int cmd_attach(int argc, char **argv, struct err *e);
int cmd_create(int argc, char **argv, struct err *e);
int cmd_start(int argc, char **argv, struct err *e);
int cmd_stop(int argc, char **argv, struct err *e);
int cmd_rm(int argc, char **argv, struct err *e);
int cmd_prune(int argc, char **argv, struct err *e);
int cmd_reset(int argc, char **argv, struct err *e);
int cmd_rename(int argc, char **argv, struct err *e);
int cmd_wait(int argc, char **argv, struct err *e);
int cmd_ls(int argc, char **argv, struct err *e);
int cmd_ps(int argc, char **argv, struct err *e);
int cmd_inspect(int argc, char **argv, struct err *e);
int cmd_stats(int argc, char **argv, struct err *e);
int cmd_logs(int argc, char **argv, struct err *e);
int cmd_cp(int argc, char **argv, struct err *e);
int cmd_net(int argc, char **argv, struct err *e);
int cmd_network(int argc, char **argv, struct err *e);
int cmd_explain(int argc, char **argv, struct err *e);
int cmd_policy(int argc, char **argv, struct err *e);
int cmd_trust(int argc, char **argv, struct err *e);
int cmd_secret(int argc, char **argv, struct err *e);
int cmd_engines(int argc, char **argv, struct err *e);
int cmd_export(int argc, char **argv, struct err *e);
int cmd_doctor(int argc, char **argv, struct err *e);
int cmd_demo(int argc, char **argv, struct err *e);
int cmd_hook(int argc, char **argv, struct err *e);
int cmd_guard(int argc, char **argv, struct err *e);
int cmd_trash(int argc, char **argv, struct err *e);
int cmd_quarantine(int argc, char **argv, struct err *e);
int cmd_broker(int argc, char **argv, struct err *e);
int cmd_checkpoint(int argc, char **argv, struct err *e);
int cmd_checkpoints(int argc, char **argv, struct err *e);
int cmd_restore(int argc, char **argv, struct err *e);
int cmd_undo(int argc, char **argv, struct err *e);
int cmd_fetch(int argc, char **argv, struct err *e);
int cmd_save(int argc, char **argv, struct err *e);
int cmd_load(int argc, char **argv, struct err *e);
int cmd_template(int argc, char **argv, struct err *e);
int cmd_apply(int argc, char **argv, struct err *e);
int cmd_discard(int argc, char **argv, struct err *e);
int cmd_fork(int argc, char **argv, struct err *e);
int cmd_diff(int argc, char **argv, struct err *e);
int cmd_version(int argc, char **argv, struct err *e);
int cmd_help(int argc, char **argv, struct err *e);
int cmd_completion(int argc, char **argv, struct err *e);

#endif
