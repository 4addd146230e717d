/* SPDX-License-Identifier: Apache-2.0 */
/* cli/run.h - what verbs that start or explain a sandbox share: options -> policy -> facts -> plan */
#ifndef VITRINE_CLI_RUN_H
#define VITRINE_CLI_RUN_H

#include "agent/preset.h"
#include "cli/cli.h"
#include "core/def.h"
#include "core/facts.h"
#include "core/layers.h"
#include "core/secrets.h"
#include "engine/engine.h"
#include "keep/keep.h"

extern const struct opt run_opts[];

struct run {
	struct policy policy;
	struct host host;
	struct secrets secrets;
	struct plan plan;
	bool is_quiet; /* create */
	bool has_plan;
	const struct engine *engine;
	int argc;
	char **argv;
	const char *name, *workdir, *workspace, *user, *policy_file, *detach_keys;
	const char *words[2]; /* AGENT or NAME, PATH */
	size_t n_words;
	int first_word; /* where words[0] stands in argv */
	struct err
		word_err; /* what is wrong with the options and words behind it, if those are ours */
	bool as_json, is_rm, is_fresh;
	bool accepts_moved;   /* what lies at the sandbox's paths now is what it is for */
	bool is_as_root;      /* the command is root inside */
	const char *template; /* the caller's */
	bool is_local;        /* it may be taken from an engine's images */
	bool is_free;         /* "no questions" was said */
	bool is_eager;        /* have a keeper make the namespaces while we plan */
	struct early early;   /* it */
	unsigned flags;       /* enum keep_flags */
	uint8_t keys[KEEP_KEYS];
	char *const *command;
	/* A sandbox that lasts: which, and whether it is yet to be made. */
	struct def def;
	bool has_def, is_new;
	bool is_made;         /* by run_create() of this process */
	struct places was;    /* what its paths led to at its last start */
	struct preset preset; /* of def.agent */
	struct etc_text
		*etc_texts; /* its files in /etc, for the plan; ended by one without a path */
	char **made_command;
	struct layers layers;
	char **ws_layers, **home_layers, **sys_layers;
	bool is_starting; /* planned in order to be started, not to be shown */
	pid_t saver;      /* begin.c: the child that saves the workspace; 0: none */
	int saver_says;
	struct keeper_saved saved;
	char *ws_repo;
};

/* begin.c: before it is planned, when it may really be started: freezes what its layers hold. */
int run_freeze(struct run *r, struct err *e);
/* begin.c: the layers of a sandbox that lasts, as facts for the plan. */
int run_layers(struct run *r, struct err *e);
/* When it ended: the commits of a clone come out. */
void run_end(const struct run *r);
/* Before it starts: a checkpoint, or a look at what it will build on. The first half, as soon as the policy is known;
 * the second waits for the end of it; or there will be no start. */
int run_begin_soon(struct run *r, struct err *e);
int run_begin(struct run *r, struct err *e);
void run_begin_not(struct run *r);

/* run.c: the keeper gets the plan and the values of secrets; the connection to it. `in` is in shared memory where *r is. */
void run_last(const struct run *r);
int run_hand_over(struct run *r, struct keeper_in *in, bool is_again, struct err *e);
/* changed.c: ',"runs":[...]', what the last run of this sandbox changed that runs on the host later; nothing where that is
 * not known. */
void changed_json(const char *name, struct buf *b);
#define RUN_SHARE_MAX (16 * MIB) /* of mem_share(): address space; only what is used costs memory */

/* Parses argv of the verb and finds out which sandbox is meant; makes nothing, and starts nothing but, for an eager
 * run without a name and after mem_share(), a keeper that waits for the plan. */
int run_parse(struct run *r, int argc, char **argv, struct err *e);
/* From there to the plan. Eager: with such a keeper, if there is none yet. */
int run_plan(struct run *r, struct err *e);
/* Every option that is about walls and that the definition does not hold, as the definition would keep it. Needs
 * host.cwd. */
int run_each_flag(struct run *r, int argc, char **argv,
		  int (*fn)(struct run *r, const char *text, struct err *e), struct err *e);
/* Lets go of all but the plan. */
void run_forget(struct run *r);
void run_done(struct run *r);

/* target.c: is the first word a program (`run npm test`), and neither an agent, a sandbox nor a directory? Needs the host. */
bool run_is_command(const struct run *r);
/* target.c: words and --name -> r->def and r->command. */
int run_target(struct run *r, struct err *e);
/* Writes the definition of a new sandbox; one that somebody else has just made is as good. */
int run_create(struct run *r, struct err *e);
/* Takes it away again, where this process made it and nothing was ever begun in it. */
void run_uncreate(const struct run *r);

#endif
