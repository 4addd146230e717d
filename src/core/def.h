/* SPDX-License-Identifier: Apache-2.0 */
/* core/def.h - sandboxes that last: their folders, and the definition that lies in each
 *
 * `sandboxes/NAME/` below the state directory is the truth about which sandboxes exist; `sandbox.json` in it says
 * what the sandbox is for. It is written once, when the sandbox is made, and appears whole or not at all. A folder
 * without one is a run without a name, or what a crash left: nobody's sandbox. A folder is removed by renaming it
 * first, so that a sandbox is there whole or not there.
 *
 * `lock` is held (flock) by whoever owns the folder at the moment: the keeper while it runs, else the one command
 * that removes, renames or resets it.
 */
#ifndef VITRINE_CORE_DEF_H
#define VITRINE_CORE_DEF_H

#include "base/buf.h"
#include "base/err.h"

#define DEF_FILE "sandbox.json"
#define DEF_RUN_WORKSPACE                                                                          \
	"workspace" /* in the folder of a run without a name: a link to its workspace */
#define DEF_NAME_MAX 64
#define DEF_MAX_BYTES (256 * KIB)

struct def {
	char *name; /* of the folder, which is right when the file says otherwise */
	char *id;   /* 16 hex digits, for good */
	char *agent, *workspace;
	char **flags; /* "--memory=1g": options of `run`, as they were given when it was made */
	size_t n_flags;
	uint64_t created; /* seconds since 1970 */
};

void def_done(struct def *d);
void def_add_flag(struct def *d, const char *text);
/* The last value of "--flag="; NULL: it is not among them. */
const char *def_flag(const struct def *d, const char *flag);

/* Letters, digits, '_', '.' and '-', at most 64, not beginning with '-' or '.'; "run-..." belongs to runs without a
 * name. */
bool def_is_name(const char *name);

/* "shell-proj", or with is_long "shell-proj-1a2b3c": where another directory has the short one. */
char *def_default_name(const char *agent, const char *workspace, bool is_long);

/* -ENOENT: there is no such sandbox. */
int def_read(const char *state_dir, const char *name, struct def *ret, struct err *e);

/* Makes folder and file; gives it its id and time. -EEXIST: it is there already. */
int def_create(const char *state_dir, struct def *d, struct err *e);

/* Names of all sandboxes in order, NULL-ended; and with `runs` those of runs without a name. */
int def_list(const char *state_dir, bool runs, char ***ret, struct err *e);
void def_list_free(char **names);

/* May a sandbox that lasts write below (or at) this path, by its workspace or a grant? Its name, to be freed, or NULL. What
 * policy files grant besides is not looked at. */
char *def_may_write(const char *state_dir, const char *path);

/* The text of the file, strictly; for def_read() and its fuzzer. */
int def_parse(const char *text, size_t n, struct def *ret, struct err *e);
void def_print(const struct def *d, struct buf *out);

/* ---- owning a folder that does not run ---- */

struct owned {
	int dir, lock;
};

#define OWNED_NONE ((struct owned){ .dir = FD_NONE, .lock = FD_NONE })

/* -EBUSY (conflict): it runs. -ENOENT: it is not there. */
int def_own(const char *state_dir, const char *name, struct owned *ret, struct err *e);
void def_let_go(struct owned *o);

/* Renamed out of the way first, so that it is gone at once and whole. The lock goes with it. */
int def_remove(const char *state_dir, const char *name, struct owned *o, struct err *e);
/* Needs room on the disk, the way back needs none; done() when there is no way back any more. */
int def_rename(const char *state_dir, const char *from, const char *to, struct owned *o,
	       struct err *e);
int def_rename_back(const char *state_dir, const char *from, const char *to, struct owned *o,
		    struct err *e);
void def_rename_done(struct owned *o);

/* The name of a sandbox that runs and whose workspace is `workspace` (a real path), above it or below it; NULL: none. Costs
 * one look-up for each sandbox there is. */
char *def_runs_in(const char *state_dir, const char *workspace);
bool def_none_runs(const char *state_dir, const char *workspace);

/* What commands that were killed have left: removed folders, files not yet in place, dead runs without a name. */
void def_clean(const char *state_dir, const char *except);

#endif
