/* SPDX-License-Identifier: Apache-2.0 */
/* dir/serve.h - a git dir of the host for the kernel, name by name */
#ifndef VITRINE_DIR_SERVE_H
#define VITRINE_DIR_SERVE_H

#include <sys/stat.h>

#include "dir/fuse.h"
#include "dir/nodes.h"
#include "dir/rules.h"

#define HANDLES_MAX 1024
#define OWN_LOCKS_MAX 256
#define SHOWN_MAX 8
#define RANGES_MAX 8

/* Ids of the host as the inside knows them. */
struct dir_range {
	uint32_t in, out, count;
};
struct dir_ids {
	struct dir_range v[RANGES_MAX];
	size_t n;
};

struct handle {
	bool is_used;
	uint32_t
		uses; /* of this place in the table: part of the number, so that an old one is not taken for a new one */
	int fd;
	uint64_t node;
	char *text; /* of a configuration: what is shown of it, as it was when it was opened */
	size_t n;
};

/* A lock file that the inside made. The descriptor keeps its inode number from being given to another file. */
struct own_lock {
	int fd;
	dev_t dev;
	ino_t ino;
};

/* What is shown of a configuration, for as long as the file does not change. */
struct shown {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec mtim, ctim;
	int status; /* of gitcfg_redact() */
	char *text;
	size_t n;
};

struct dir {
	int root;
	bool is_open; /* the version is agreed on */
	bool is_over; /* unmounted */
	struct dir_rules rules;
	struct dir_ids uids, gids;
	struct nodes nodes;
	struct handle handles[HANDLES_MAX];
	struct own_lock locks[OWN_LOCKS_MAX];
	struct shown shown[SHOWN_MAX];
	size_t next_shown;
	/* A refused change of a configuration, in words for the keeper; empty: none since it was last sent. */
	char refusal[400];
	size_t out_n; /* of the answer; 0: none is due */
	_Alignas(8) char out[sizeof(struct fuse_out_header) + FUSE_WRITE_MAX];
};

/* Takes the descriptor of the git dir. Rules and ids are filled in by the caller. */
int dir_init(struct dir *d, int take_root);
void dir_done(struct dir *d);
/* One request; the answer is in d->out. False: this is not the kernel's protocol. */
bool dir_answer(struct dir *d, const char *p, size_t n);

/* ---- config.c ---- */

/* What is shown of the configuration `name` in `dir`, whose state is *st: NULL where nothing of it may be shown. */
const struct shown *dir_show(struct dir *d, int dir, const char *name, const struct stat *st);
/* The lock file `lock` in `dir`, made by the inside, onto `name`; rel is the path of the latter. 0 or -errno. */
int dir_replace(struct dir *d, int dir, const char *lock, const char *name, const char *rel);
/* Is it one of the lock files that the inside made? */
bool dir_is_own(const struct dir *d, const struct stat *st);
/* Takes a descriptor of a lock file that was just made. */
int dir_own(struct dir *d, int take_fd);
void dir_disown(struct dir *d, const struct stat *st);
/* Was the file changed so lately that another change may not be seen by its times? */
bool dir_is_fresh(const struct stat *st);

/* ---- loop.c: the process, with the descriptors of dir/wire.h ---- */

/* Rules and ids from DIR_FD_SETTINGS, which is closed. */
int dir_take_settings(struct dir *d, struct err *e);
/* Until the mount is gone. */
void dir_loop(struct dir *d);

/* ---- confine.c ---- */

/* Before the first request: this directory and no other file, and only the calls that serve it. */
int dir_confine(int root, struct err *e);

#endif
