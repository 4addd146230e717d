/* SPDX-License-Identifier: Apache-2.0 */
/* view/setid.h - no set-user-id and no set-group-id bit outlives the sandbox that made it
 *
 * Inside such a bit means nothing: the mounts are nosuid. On the host the file belongs to the caller, so whoever runs it
 * there gets the caller's user or group. The system call filter refuses chmod() with the set-user-id bit; it cannot refuse
 * the set-group-id bit, which directories use, nor see the mode of openat2(). So the bits are taken off regular files when
 * nothing inside lives any more.
 *
 * A changed mode leaves no trace in the directory, so every file has to be looked at. The sweep does that on its own
 * walk (sweep_run); what it does not reach, and directories that it is not run for, are walked by setid_strip(). Where it is
 * known that no such bit was made (is_listed), two kinds of files are enough: those that had a bit before, which
 * setid_look_listed() looks at, and those in directories that changed or whose files were never listed.
 */
#ifndef VITRINE_VIEW_SETID_H
#define VITRINE_VIEW_SETID_H

#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"

struct index;

struct setid {
	int root_fd;
	int64_t since; /* realtime, ns */
	/* Called before bits are taken off a file; `bits` are those of the mode that go. is_old: its inode last changed before
	 * `since`, so the bits are the host's own. False: the file keeps them. */
	bool (*on_found)(void *arg, const char *rel, mode_t bits, bool is_old);
	void *arg;
	bool is_listed; /* no bit was made: a directory that is unchanged and whose set-id files are listed need not be read */
	uint64_t failed; /* still there, or not to be looked at */
};

/* A tree, or one file: the root. Follows no link, stays beneath root_fd (O_PATH will do). */
int setid_strip(struct setid *s, struct err *e);

/* The set-id files that the list of the tree names. False: one of them is not there any more, so it may be anywhere, and the
 * caller looks at all. */
bool setid_look_listed(struct setid *s, const struct index *list);

/* The parts of a walk that another module makes: one file; a directory that the walk does not enter (fd, which is rel). */
void setid_look(struct setid *s, int dir_fd, const char *rel, const char *name);
int setid_look_below(struct setid *s, int fd, const char *rel, struct err *e);

#endif
