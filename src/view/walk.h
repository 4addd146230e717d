/* SPDX-License-Identifier: Apache-2.0 */
/* view/walk.h - one pass over a directory tree with few descriptors, no recursion and no link followed
 *
 * Internal to view/. Every name is opened alone, relative to its parent's descriptor, with O_NOFOLLOW, so a
 * tree that changes under the walk can make it miss things but never lead it out.
 */
#ifndef VITRINE_VIEW_WALK_H
#define VITRINE_VIEW_WALK_H

#include <dirent.h>

#include "base/err.h"
#include "view/index.h"

#define WALK_MODE_MAX 0xffU
/* Beside the mode: the name is to be in the list of the directory (index.h), as all directories are. */
#define WALK_LISTED 0x100U

struct walk;

struct walk_dir {
	struct walk *w;
	int fd; /* negative when the names come from a list: walk_fd() */
	const char *
		rel; /* below the root of the walk, "" for the root itself; valid during the call */
	size_t rel_len;
	unsigned mode; /* what entry() returned for it */
	unsigned bits; /* free for the caller, zero at the first entry */
};

struct walk_ops {
	/* A name in d, "." and ".." left out. A non-zero result for a directory is its mode and means: go in. The rest of the
	 * result is WALK_LISTED or nothing. A name that is not listed, and no directory, is not shown again as long as d is
	 * unchanged. */
	unsigned (*entry)(void *arg, struct walk_dir *d, const char *name, size_t len,
			  unsigned char type);
	/* All entries of d were seen, none of its children yet. May be NULL. Negative ends the walk. */
	int (*end)(void *arg, struct walk *w, struct walk_dir *d, struct err *e);
	/* Could not be opened: num is an errno such as EACCES, ENAMETOOLONG when it lies too deep. parent_fd is negative when
	 * the parent could not be opened again. Returns a descriptor, or FD_NONE to skip. May be NULL. */
	int (*refused)(void *arg, int parent_fd, const char *rel, const char *name, int num);
};

/* Directories whose names are known, and those of this walk. */
struct walk_list {
	struct index *old; /* may be NULL */
	struct index *now; /* gets an entry for every directory, unless it is off */
	bool reads_all;    /* no directory is taken from `old`; it only says what has not changed */
	bool needs_setid;  /* none is whose set-id files are not listed there */
	unsigned
		sample; /* every so many directories that are taken are read as well, and must be the same; 0: none */
};

struct walk_stats {
	uint64_t dirs, files;
	uint64_t skipped; /* directories that could not be read, or lie too deep */
};

/* root_fd may be O_PATH. *stats is added to. */
int walk_run(int root_fd, unsigned mode, const struct walk_ops *ops, void *arg,
	     struct walk_stats *stats, struct err *e);
/* The same with lists; NULL: none. */
struct walk_job {
	int root_fd;
	unsigned mode;
	const struct walk_ops *ops;
	void *arg;
	const struct walk_list *list;
};
int walk_run_job(const struct walk_job *job, struct walk_stats *stats, struct err *e);

/* The directory, opened when it is not yet: fd or -errno. It stays the walk's. */
int walk_fd(struct walk_dir *d);

/* From end(): do not go into this child after all. */
void walk_leave_out(struct walk *w, const char *name);

/* From anywhere: stop as soon as possible, without error. */
void walk_stop(struct walk *w);

/* Opens rel beneath root however long it is, no links: fd or -errno; -EAGAIN with O_NONBLOCK when another process holds
 * a lease on the file and did not let go of it within half a second. Directories for a path over PATH_MAX only
 * in the middle; `flags` are for the last part. "" is root itself. */
int walk_open(int root_fd, const char *rel, int flags);

/* Did a name go away, or become something else, between two looks? num is an errno. */
bool walk_is_gone(int num);

/* The type of a name when the directory did not say: DT_*, DT_UNKNOWN when it is gone or cannot be looked at. */
unsigned char walk_type(int dir_fd, const char *name);

/* A directory, opened for reading, by one name. atime stays as it is where the kernel lets us. fd or -errno. */
int walk_opendir(int dir_fd, const char *name);

#endif
