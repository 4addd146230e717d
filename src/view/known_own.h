/* SPDX-License-Identifier: Apache-2.0 */
/* view/known_own.h - between known.c and known_record.c */
#ifndef VITRINE_VIEW_KNOWN_OWN_H
#define VITRINE_VIEW_KNOWN_OWN_H

#include <sys/stat.h>

#include "view/known.h"

struct known_one {
	char *rel;
	enum hit_kind kind;
	int fd; /* the host's file, or ours in its place: which one it is; of a directory also what is in it */
	int was; /* of a directory that we put there: what it was made from, until that was verified */
	int wd;
	bool has_text; /* of a file: the bytes, mode and owner that are known to be the host's */
	struct buf text;
	struct stat like;
	bool is_put;  /* not yet verified */
	bool is_gone; /* the host removed it: what appears there is new */
	dev_t dev;
	ino_t ino;
	struct timespec changed; /* when we last put it there */
};

struct known {
	int ws_fd;
	int watch;           /* inotify, for writing in place */
	struct known_one *v; /* in the scan's order */
	size_t n, cap;
	size_t at; /* up to here they were opened */
	size_t bytes;
	int record; /* locked as long as we live; FD_NONE: none was written */
	bool is_dirty;
};

/* All bytes that are known together are bounded; what does not fit is not known. */
void known_set_text(struct known *k, struct known_one *o, struct buf *text,
		    const struct stat *like);
/* A directory that we know, and not only a name or a file. */
bool known_is_dir(const struct known_one *o);

#endif
