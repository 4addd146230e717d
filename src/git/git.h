/* SPDX-License-Identifier: Apache-2.0 */
/* git/git.h - commits leave a sandbox: from its repository into a bare one that is ours
 *
 * git on the host must never run on a repository that an agent can write: its configuration names programs. So the
 * sandbox's repository is only ever read by the git inside the sandbox (`git upload-pack`), and what comes out is one
 * stream. The git that takes it, checks every object and writes the bare repository runs behind walls of its own, which
 * show it the bare repository's objects and refs and nothing else; its configuration is ours. What it
 * left is looked at once more before anybody relies on it.
 *
 *	the sandbox                  us                    the workshop
 *	git upload-pack  <-- pipe -- counts bytes -- pipe --> git fetch (fsckObjects) --> objects/, refs/
 */
#ifndef VITRINE_GIT_GIT_H
#define VITRINE_GIT_GIT_H

#include <sys/types.h>

#include "base/err.h"

/* ---- a bare repository of ours ---- */

#define GIT_OID_BYTES 65 /* of SHA-1 or SHA-256, in hex, and a NUL */

struct git_ref {
	char *name; /* "refs/heads/main" */
	char oid[GIT_OID_BYTES];
};

struct git_refs {
	struct git_ref *v; /* sorted by name */
	size_t n;
};

/* Makes it where there is none: no hooks, no remotes, and HEAD on a ref that is never written, so that HEAD need not be. */
int git_bare_make(const char *path, struct err *e);

/* All its refs; at the same time the proof that it is what we made: only plain files and directories, every ref one
 * object's name, no alternates, no packed refs. Anything else is ERR_DENIED. */
int git_bare_look(const char *path, struct git_refs *ret, struct err *e);
void git_refs_done(struct git_refs *r);
const struct git_ref *git_refs_find(const struct git_refs *r, const char *name);

/* Writes one ref, or removes it where oid is NULL. The repository was looked at before. */
int git_ref_put(const char *path, const char *name, const char *oid, struct err *e);

/* ---- taking commits ---- */

/* Where commits lie that were taken and not yet judged; they are nobody's branches, and nobody fetches them from here. */
#define GIT_REFS_WAITING "refs/waiting/"

#define GIT_TAKE_BYTES (4 * GIB)
#define GIT_TAKE_SECONDS 600

struct git_take {
	const char *state_dir;
	const char *bare;
	const char *const
		*refspecs;  /* NULL-ended: "+refs/heads/main:refs/heads/main", a star is allowed */
	bool prune;         /* refs that are gone inside go here too */
	uint64_t max_bytes; /* 0: GIT_TAKE_BYTES */
	uint64_t seconds;   /* 0: GIT_TAKE_SECONDS */
};

struct git_taken {
	uint64_t bytes; /* that came out */
	struct git_refs refs;
};

/* `from` and `to` are pipes to a `git upload-pack` that runs inside; both are taken. The caller ends that process. */
int git_take_stream(const struct git_take *t, int take_from, int take_to, struct git_taken *ret,
		    struct err *e);

/* The same with the git of a sandbox that has a name, on the repository at `path` inside; it is started for the time
 * it takes where it does not run. */
int git_take_from(const struct git_take *t, const char *sandbox, const char *path,
		  struct git_taken *ret, struct err *e);

/* From a directory of the host, read-only in the workshop: its configuration may run programs, but only there. `gitdir`
 * is the git directory itself. */
int git_take_host(const struct git_take *t, const char *gitdir, struct git_taken *ret,
		  struct err *e);

/* What a checkout of commits would bring: paths that differ from what the host has checked out, sorted. At most
 * GIT_BRINGS_MAX ids. */
#define GIT_BRINGS_MAX 64
struct git_path {
	char *path;
	unsigned mode; /* git's: 0100644, 0100755, 0120000 a link, 0160000 another repository */
};
struct git_paths {
	struct git_path *v;
	size_t n, cap;
};
int git_brings(const char *state_dir, const char *bare, const struct git_ref *refs, size_t n,
	       struct git_paths *ret, struct err *e);
void git_paths_done(struct git_paths *p);

/* ---- workspace mode `clone` ---- */

#define GIT_CLONE_REPO                                                                             \
	"repo.git" /* in the sandbox's folder: ours; inside, read-only, it is GIT_CLONE_INSIDE */
#define GIT_CLONE_EMPTY "empty" /* what lies below a clone's layers: nothing */
#define GIT_CLONE_INSIDE "/vitrine/repo.git"

/* Where the workspace keeps its repository, and what is checked out. A link, or a `.git` file that the repository it
 * names does not know of, is refused: who wrote in the workspace could have pointed it elsewhere. */
struct git_place {
	char *dir;    /* the common git directory */
	char *branch; /* NULL: none is checked out */
};
int git_place_find(const char *workspace, struct git_place *ret, struct err *e);
void git_place_done(struct git_place *p);

/* Is this sandbox a clone? */
bool git_clone_exists(const char *state_dir, const char *name);

/* Brings the workspace's branches and tags into the sandbox's bare repository, which is made where there is none. */
int git_clone_refresh(const char *state_dir, const char *name, const char *workspace,
		      struct err *e);
/* Makes the private clone in the empty directory `to`: a checkout of the workspace's branch, with objects borrowed from
 * the bare repository, whose name is `host` inside. */
int git_clone_fill(const char *state_dir, const char *name, const char *workspace, const char *to,
		   struct err *e);
/* The bare repository of a fork; objects are shared by hard links. */
int git_clone_fork(const char *state_dir, const char *from, const char *to, struct err *e);

/* Branches of the clone, and HEAD where it is on none, whose commits nobody outside has: no ref of the workspace's
 * repository names them, now or at the last start. `layers`: the directories of the clone, top first; `bare`: its
 * repository beside the sandbox. Runs no git. Sorted by name. */
#define GIT_LAYERS_MAX 64
int git_clone_waits(const char *bare, const char *workspace, const int *layers, size_t n,
		    struct git_refs *ret, struct err *e);

/* The remote "vitrine/NAME" in the configuration of the workspace's repository, by hand: 1 when it was not there. */
int git_remote_put(const char *state_dir, const char *name, const char *workspace, struct err *e);
/* ... and out again, where it is ours. */
void git_remote_drop(const char *name, const char *workspace);

#endif
