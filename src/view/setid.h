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
 * known that no such bit was made, setid_look_listed() looks at the files alone that had one before.
 */
#ifndef VITRINE_VIEW_SETID_H
#define VITRINE_VIEW_SETID_H

#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"

/* A directory whose names are known. All pointers but `files` are the caller's. */
struct setid_dir {
	int parent_fd;
	const char *parent; /* below the root */
	const char *name;
	const char *files; /* the names in it, each with its NUL; stays until setid_settle() */
	size_t len;
};

/* A file that had such a bit: where it was, and what it was. */
struct setid_file {
	const char *rel; /* below the root */
	dev_t dev;
	ino_t ino;
};

struct setid_later;

struct setid {
	int root_fd;
	int64_t since; /* realtime, ns */
	/* Called before bits are taken off a file; `bits` are those of the mode that go. is_old: its inode last changed before
	 * `since`, so the bits are the host's own. False: the file keeps them. */
	bool (*on_found)(void *arg, const char *rel, mode_t bits, bool is_old);
	void *arg;
	size_t n_files;  /* how many are expected: many are looked at by several processes */
	uint64_t failed; /* still there, or not to be looked at */
	/* internal */
	struct setid_later *later;
	size_t n_later, cap_later;
	struct buf path;
	int report; /* in a process that only looks: where to write what is found; FD_NONE in the keeper */
};

void setid_init(struct setid *s, int root_fd);
void setid_done(struct setid *s);

/* A tree, or one file: the root. Follows no link, stays beneath root_fd (O_PATH will do). */
int setid_strip(struct setid *s, struct err *e);

/* These files only. False: one is not where it was any more, so it may be anywhere; the caller looks at all. */
bool setid_look_listed(struct setid *s, const struct setid_file *files, size_t n);

/* The parts of a walk that somebody else makes: one file; the files of a directory that need not be read; a directory that
 * the walk does not enter (fd, which is rel). setid_settle() at the end. */
void setid_look(struct setid *s, int dir_fd, const char *rel, const char *name);
void setid_look_all(struct setid *s, const struct setid_dir *d);
int setid_look_below(struct setid *s, int fd, const char *rel, struct err *e);
void setid_settle(struct setid *s);

#endif
