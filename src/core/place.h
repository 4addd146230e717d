/* SPDX-License-Identifier: Apache-2.0 */
/* core/place.h - which directory a path meant when it was decided, so that another one at the same name is noticed
 *
 * A sandbox that lasts keeps names: of its workspace and of what was granted to it. Another sandbox that may write a
 * directory above such a name can put something else there between two starts. So `places.json` in the sandbox's folder
 * says what each name led to, and every start compares. A sandbox without that file (made by an older version) gets one
 * at its next start.
 *
 * The same directory: the same real path, inode, owner and time of birth. The device number is compared only where the
 * file system has no time of birth: disks are numbered anew at each boot, and no program can give a new inode an old
 * birth. A regular file may be replaced (editors do), as long as it is one, at the same real path, of the same owner.
 */
#ifndef VITRINE_CORE_PLACE_H
#define VITRINE_CORE_PLACE_H

#include "base/buf.h"
#include "base/err.h"

struct place {
	char *said; /* the path as the definition, the policy or the user has it */
	char *real; /* where it leads, without links */
	uint64_t dev, ino;
	uint64_t born; /* ns since 1970; 0: the file system does not say */
	uint32_t uid;
	bool is_dir;
};

struct places {
	struct place *v;
	size_t n, cap;
};

/* Adds what lies at `real` now; fd: it is opened already, or FD_NONE. What is neither file nor directory is left out. */
int places_add(struct places *p, const char *said, const char *real, int fd, struct err *e);
const struct place *places_find(const struct places *p, const char *said);
void places_done(struct places *p);

/* NULL: it is the same. Else what changed, for people; to be freed. */
char *place_changed(const struct place *was, const struct place *now);

struct place_of {
	const char *sandbox;
	const char *workspace; /* of its definition, or NULL */
};

/* -ESTALE with the story, when something in `now` is not what `was` says. Names that `was` does not know are new. */
int places_check(const struct places *was, const struct places *now, const struct place_of *of,
		 struct err *e);

/* The file in the sandbox's folder; none is empty. */
int places_read(const char *state_dir, const char *name, struct places *ret, struct err *e);
/* Writes `now` over what `was` says of other names; nothing when all of it is known already. */
int places_keep(const char *state_dir, const char *name, const struct places *was,
		const struct places *now, struct err *e);

/* All of it for the workspace alone: is `path` what the sandbox was made for? For verbs that work there and start nothing. */
int places_check_workspace(const char *state_dir, const char *name, const char *workspace,
			   struct err *e);

int places_parse(const char *text, size_t n, struct places *ret, struct err *e);
void places_print(const struct places *p, struct buf *out);

#endif
