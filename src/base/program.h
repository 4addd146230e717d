/* SPDX-License-Identifier: Apache-2.0 */
/* base/program.h - the other programs of the house: beside this one in a build, in libexec when installed */
#ifndef VITRINE_BASE_PROGRAM_H
#define VITRINE_BASE_PROGRAM_H

#include "base/buf.h"
#include "base/err.h"

/* The path of a program named like "vitrine-store", or for those of "vitrine" itself. Found by where this program's own file lies, never by PATH. */
int program_find(const char *name, char **ret, struct err *e);

/* Becomes it. Returns only on failure. */
int program_exec(const char *name, char *const argv[], struct err *e);

/* A tool of the host, to its end: a path, or a name that is looked for as the user's shell would. What it says goes to
 * stderr. `env` NULL: the caller's. 0, or a sentence; -ENOENT when there is none. */
int program_run(const char *const *argv, const char *const *env, struct err *e);
/* The same, with the caller's environment; what it says is kept, up to the ceiling of `said`. -ECHILD: it failed. */
int program_hear(const char *const *argv, struct buf *said, struct err *e);

/* Between fork (or vfork) and exec: the n descriptors become 3 and up, /dev/null the three before them, and nothing else
 * goes along, no environment either. role may be NULL. */
_Noreturn void program_become(const char *path, const char *name, const char *role, const int *fds,
			      size_t n);

#endif
