/* SPDX-License-Identifier: Apache-2.0 */
/* guard/place.h - what kind of place a path names, as text: nothing is looked up on the disk
 *
 *   @root     the root, a system directory directly below it, or a pattern that covers one
 *   @home     a home directory, or a directory above the workspace
 *   @cwd      the workspace itself or everything in it
 *   @git      a repository's .git, or below it
 *   @outside  neither below the workspace nor in a directory for temporary files
 *   @tmp      in a directory for temporary files
 *   @secret   a file that holds credentials (rules/credentials.json)
 *   @credentials   the same, a directory that holds one, and everything such a directory is in below the home
 *   @startup  what runs by itself later: shells, schedulers, logins
 *   @guard    what says whether the guard is asked, or a directory that holds it: agents' settings and ours
 *   @system   below a directory of the system
 *   @device   a disk
 *   @made     a file that tools make again by themselves (rules/files.json)
 *   @unknown  begins with something made at run time
 *   @dynamic  has something made at run time anywhere
 *   @any      every argument
 */
#ifndef VITRINE_GUARD_PLACE_H
#define VITRINE_GUARD_PLACE_H

#include "guard/rule.h"
#include "guard/value.h"

enum place_class {
	PLACE_ANY,
	PLACE_CREDENTIALS,
	PLACE_CWD,
	PLACE_DEVICE,
	PLACE_DYNAMIC,
	PLACE_GIT,
	PLACE_GUARD,
	PLACE_HOME,
	PLACE_MADE,
	PLACE_OUTSIDE,
	PLACE_ROOT,
	PLACE_SECRET,
	PLACE_STARTUP,
	PLACE_SYSTEM,
	PLACE_TMP,
	PLACE_UNKNOWN,
	PLACE_COUNT_
};

/* By its name with the '@'; PLACE_COUNT_ when there is none. */
enum place_class place_class_find(const char *name, size_t n);

struct places {
	struct arena *mem;
	const char *home, *cwd, *tmp; /* cwd: where the command runs, NULL when unknown */
	const char *workspace;        /* where the agent works */
	const struct rules *const *sets;
	size_t n_sets;
	size_t *joined; /* bytes of paths that words became so far; NULL: not counted */
};

/* Does this argument fit one of the alternatives ("@root|*.pem")? */
bool place_fits(const struct places *p, const char *list, const struct value *v);

/* Has the word a substitution with a command that has one of these words ("a|b") in it? */
bool place_script_names(const struct word *word, const char *names);

bool place_is_secret(const struct places *p, const struct value *v);

#endif
