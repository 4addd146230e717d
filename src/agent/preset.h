/* SPDX-License-Identifier: Apache-2.0 */
/* agent/preset.h - what an agent's word stands for: its command, its layer of the policy, and what it needs at home
 *
 * Presets are data (agents/NAME.json, compiled in as bytes that are read when a preset is named); a file of the same name
 * in the user's own configuration directory takes the place of ours. Nothing but this struct is known of an agent
 * elsewhere. docs/AGENTS.md describes the file.
 */
#ifndef VITRINE_AGENT_PRESET_H
#define VITRINE_AGENT_PRESET_H

#include "base/buf.h"
#include "base/json.h"

struct policy;

#define PRESET_DIR "agents"
#define PRESET_BUILTIN "built-in"

/* What the agent's own output says about a run: lines of JSON, in which members are named by paths ("usage.input_tokens").
 * NULL: it does not say. */
struct preset_report {
	const char *when;      /* "type=result": lines that count */
	const char *text_when; /* lines that hold the text; NULL: the same */
	const char *text, *cost, *tokens_in, *tokens_out, *failed;
};

/* Everything points into the document. Lists are NULL where the file has none. */
struct preset {
	char *name, *origin; /* origin: the file, or PRESET_BUILTIN */
	struct json_doc doc;
	const char *summary, *install, *hook;
	const char *own_sandbox;    /* the setting by which the agent's own sandbox is off inside */
	const struct json *command; /* strings, at least one */
	const struct json
		*free; /* its own words for "no questions"; empty: needs none; NULL: no agent */
	const struct json
		*prompt; /* the command for one prompt without a person; "{prompt}" stands for it */
	const struct json *
		begin; /* the command for a prompt and a person at a terminal; NULL: command, free, prompt */
	const struct json *secrets; /* used where they are there */
	const struct json *share;   /* "~/..." of the user's own, shown read-only when asked for */
	const struct json *seed;    /* path below home -> object, or list of lines */
	const struct json *etc;     /* path below /etc inside -> object, or list of lines */
	const struct json *busy;    /* words in the output that mean: come back later */
	const struct json *policy;
	struct preset_report report;
};

/* Pure. `origin` is what messages call the file; they begin with "FILE:LINE:COLUMN: ". */
int preset_parse(const char *name, const char *origin, const char *text, size_t n,
		 struct preset *ret, struct err *e);
void preset_done(struct preset *p);

/* The program that is run. */
const char *preset_program(const struct preset *p);

/* The command for these words behind "--": words that begin with an option are added to the preset's own command, others
 * take its place, none leave it as it is. Any agent's word for "no questions" becomes this one's. NULL-ended, its
 * strings are borrowed; free() the vector. */
const char **preset_command(const struct preset *p, char *const *words);

/* The command for a prompt behind "--", words[0], and more words of its own: with a person at a terminal it goes on as a
 * conversation, else it does the work and ends. A preset that says neither has it added to its command. As
 * preset_command(). */
const char **preset_begin(const struct preset *p, char *const *words, bool has_terminal);

/* The command for one prompt. NULL-ended; free() the vector, its strings are borrowed. ERR_CONFIG: it has none. */
int preset_prompt(const struct preset *p, const char *prompt, const char ***ret, struct err *e);

/* Is this a word by which some agent is told not to ask? */
bool preset_is_free_word(const char *word);

/* "no questions" said as an option of `run`: what a preset without such words makes of it is a usage error. */
int preset_check_free(const struct preset *p, struct err *e);

struct preset_fill {
	const char *workspace;
	/* What a variable holds inside, where a secret stands behind it; NULL: nothing. May itself be NULL. */
	const char *(*variable)(const void *arg, const char *name, size_t n);
	const void *arg;
};

/* The text of a seed, with {workspace} and {end:VARIABLE} (its last 20 characters) filled in. */
void preset_seed_text(const struct json *seed, const struct preset_fill *fill, struct buf *out);

/* ---- preset_file.c ---- */

/* The user's own, or the built-in one. -ENOENT without a story: there is none. config_dir may be NULL. */
int preset_load(const char *config_dir, const char *name, struct preset *ret, struct err *e);
bool preset_is_there(const char *config_dir, const char *name);
/* Names in order, NULL-ended; preset_names_free(). */
int preset_names(const char *config_dir, char ***ret, struct err *e);
void preset_names_free(char **names);

/* Its layer of the policy. */
int preset_apply(const struct preset *p, struct policy *policy, struct err *e);

#endif
