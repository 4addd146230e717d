/* SPDX-License-Identifier: Apache-2.0 */
/* files/fids.h - what the guest's kernel has in hand: numbers of its own choice, each one file of the view
 *
 * A fid is a descriptor that only names its file (O_PATH), and where it was opened a second one. Both are made from one
 * component at a time and follow no link. There may be more fids than a process may have descriptors, so one that was not
 * used for long keeps its path and what it was instead, and is looked up anew; the same is what is written when the machine
 * is saved, and read when it goes on.
 */
#ifndef VITRINE_FILES_FIDS_H
#define VITRINE_FILES_FIDS_H

#include <sys/stat.h>

#include "base/err.h"
#include "files/p9.h"

#define FIDS_MAX 262144
#define FIDS_ORPHAN_MAX (64 * MIB) /* of a file that is open and has no name any more */

struct fid {
	bool is_used;
	bool is_lost; /* its file did not come back: ESTALE, until it is let go */
	int at;       /* O_PATH; FD_NONE: see path */
	char *path;   /* relative to the root, "" is the root itself */
	int open;
	uint32_t flags; /* it was opened with */
	dev_t dev;
	ino_t ino;
	uint64_t used; /* by the clock of uses */
};

struct fids {
	int root;
	char *root_path; /* as /proc has it */
	struct fid *v;
	size_t n;
	size_t n_at, most; /* descriptors held that only name; how many there may be */
	uint64_t clock;
};

int fids_init(struct fids *f, int take_root, size_t files);
void fids_done(struct fids *f);
/* NULL: there is none of that number. */
struct fid *fids_get(struct fids *f, uint64_t id);
/* Its O_PATH descriptor, or -errno. */
int fid_at(struct fids *f, struct fid *fid);
/* A new one, of a number that is free. Takes the descriptor; -errno. */
int fids_add(struct fids *f, uint64_t id, int take_at);
/* Another file for the same number. */
void fid_move(struct fids *f, struct fid *fid, int take_at);
void fids_drop(struct fids *f, struct fid *fid);
/* "/proc/self/fd/N" */
#define FID_PROC 40
void fid_proc(int fd, char ret[FID_PROC]);

/* All of them, for the machine that goes on from here; *ret_lost: how many cannot come back. */
int fids_save(struct fids *f, int to, size_t *ret_lost, struct err *e);
int fids_load(struct fids *f, int from, size_t *ret_lost, struct err *e);

#endif
