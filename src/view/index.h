/* SPDX-License-Identifier: Apache-2.0 */
/* view/index.h - which names lie in the directories of a tree, so that an unchanged directory need not be read again
 *
 * Internal to view/ and for who keeps it (core/, keep/). A list has one entry for each directory that a walk saw: what
 * identifies the directory (inode, time of change, time of birth) and the names in it that matter (subdirectories, and
 * what a pattern, git or the rule on sockets may ask for). It holds names, never verdicts: a walk that takes a directory
 * from the list asks the same questions about the same names as one that reads it. Files are looked at anew each time.
 *
 * A directory's time of change moves with every name that is made, removed or renamed in it, and with every move of the
 * directory itself; nobody can set it. So one statx() proves that the names are still those. What that takes:
 *
 *   age       The time was at least INDEX_OLD_NS older than the clock before the directory was read. In one tick of the
 *             clock two changes may get the same time.
 *   order     statx() comes before the reading. A change in between gives a later time, which the next statx() finds.
 *   clock     Same boot, and the real time clock was not set since: else the list is not used.
 *   identity  Device, inode, both times, and the mount of the tree's root. What lies on another mount is always read.
 *   place     ext4, xfs, btrfs, f2fs and tmpfs only: their times are this kernel's.
 *   rules     A digest over the patterns and the tables that select names is in the file.
 */
#ifndef VITRINE_VIEW_INDEX_H
#define VITRINE_VIEW_INDEX_H

#include <sys/stat.h>

#include "base/sha256.h"
#include "base/str.h"

#define INDEX_OLD_NS (20 * NS_PER_MS)
#define INDEX_OLD_WHOLE_NS (2 * NS_PER_SEC) /* where times are whole seconds */
#define INDEX_DIRS_MIN 64                   /* fewer are as soon read: nothing is written */
#define INDEX_DIRS_MAX 250000               /* more are read each time */
#define INDEX_TEXT_MAX (64 * MIB)
#define INDEX_NONE UINT32_MAX
/* Test builds read so many of the directories that are taken from a list as well: every so many-th. */
#ifdef VITRINE_SABOTAGE
#define INDEX_SAMPLE 7
#else
#define INDEX_SAMPLE 0
#endif

enum {
	INDEX_TRUSTED = BIT(0),   /* may be taken from the list when it is the same */
	INDEX_HAS_SETID = BIT(1), /* its set-id files are listed */
	INDEX_FRESH = BIT(2),     /* not so in the file that was read; never in a file */
};

struct index_dir {
	uint64_t ino;
	int64_t ctime_s, btime_s;
	uint32_t ctime_ns, btime_ns;
	uint32_t flags;
	uint32_t files;            /* names in it that are no directories */
	uint32_t names, names_len; /* in the text: items, see index_item */
	uint32_t parent;           /* INDEX_NONE for the root, which is the first */
	uint32_t name;             /* its own, in the text */
	uint32_t setid, setid_len; /* names of regular files with such a bit, each with its NUL */
};

struct index {
	struct index_dir *dirs;
	size_t n, cap;
	char *text;
	size_t text_n, text_cap;
	char *setid;
	size_t setid_n, setid_cap;
	uint64_t dev, mnt, ino; /* of the root */
	int64_t began;          /* ns of the clock that file systems use */
	int64_t clock;          /* real time minus time since boot, ns */
	bool is_off; /* no directory here can be trusted, or there are too many: nothing is kept */
	bool was_loaded; /* a file was there */
	void *map;       /* the file, when the arrays lie in it */
	size_t map_len;
	uint32_t *by_ino; /* built when first asked; open addressing */
	size_t by_ino_size;
};

/* What identifies a directory, and says when its names last changed. */
struct index_id {
	uint64_t ino, dev, mnt;
	int64_t ctime_s, btime_s; /* birth: 0 where the file system does not say */
	uint32_t ctime_ns, btime_ns;
	bool is_whole; /* the kernel gave all that is needed */
};

/* One name in a directory. */
struct index_item {
	unsigned char type; /* DT_* */
	uint32_t dir;       /* a directory's entry, INDEX_NONE when the walk did not enter it */
	const char *name;
	size_t len;
	uint32_t at; /* where it lies in the text */
};

/* A list for the tree of root_fd (O_PATH will do), empty and begun now. */
void index_init(struct index *x, int root_fd);
void index_done(struct index *x);
struct index *index_new(int root_fd);
void index_free(struct index *x);

/* ---- one walk ---- */

/* By statx(); path "" is dir_fd itself. False: it is not there, or is no directory. */
bool index_look(int dir_fd, const char *path, struct index_id *ret);
/* Is the directory that was looked at, in the tree of `now`, the one of that entry, with the same names? */
bool index_is_same(const struct index *old, uint32_t dir, const struct index *now,
		   const struct index_id *id);
/* The entry with this inode number, or INDEX_NONE. */
uint32_t index_find(struct index *x, uint64_t ino);
/* Was the clock set, or the machine started, between the two? */
bool index_has_one_clock(const struct index *a, const struct index *b);

/* Room for a list about as long as that one, before the first directory. */
void index_reserve(struct index *x, const struct index *like);
/* Adds a directory; `item` is where its name lies in its parent's entry. Its names follow, before the next directory.
 * id NULL: it cannot be trusted. The entry's number; INDEX_NONE when the list is off. */
uint32_t index_add(struct index *x, uint32_t parent, uint32_t item, const struct index_id *id);
/* Where the name lies. */
uint32_t index_add_name(struct index *x, unsigned char type, const char *name, size_t len);
/* The directory just added is the same as that one, and need not be looked through for set-id files again. */
void index_keep(struct index *x, const struct index *old, uint32_t dir);
void index_distrust(struct index *x, uint32_t dir);

/* The names of an entry: *at begins with 0. False at the end. */
bool index_next(const struct index *x, uint32_t dir, size_t *at, struct index_item *ret);

/* What the entry was made from. */
struct index_id index_id_of(const struct index *x, uint32_t dir, const struct index *now);

/* ---- a second process (index_share.c) ---- */

struct index_share {
	unsigned char *said; /* for each entry; the first stops the process */
	size_t n;
	int pid;
};

/* Looks at all entries of a long list, beside who called. Nothing to be waited for. */
void index_share_begin(struct index_share *h, const struct index *old, const struct index *now,
		       int root_fd);
/* It is the same, at the path that it had. False: not looked at yet, or not the same. */
bool index_share_says(const struct index_share *h, uint32_t dir);
void index_share_end(struct index_share *h);

/* ---- the file (index_file.c) ---- */

/* What selects names. */
struct index_rules {
	uint8_t digest[SHA256_BYTES];
};

/* Takes a file's content apart; everything in it is checked. False: it is not to be used. The bytes must stay. */
bool index_parse(struct index *x, const void *bytes, size_t len, const struct index_rules *r);
/* The file of the tree of `now` in the state directory, if it can be used with `now`. False: read everything. */
bool index_load(struct index *x, const char *state_dir, const struct index *now,
		const struct index_rules *r);
/* Looks for set-id files where that was not done, and writes the file if it would differ. 0 or -errno. */
int index_save(struct index *x, const char *state_dir, int root_fd, const struct index_rules *r);
bool index_is_worth_saving(const struct index *x);

/* Every regular file that had a set-user-id or set-group-id bit when its directory was last looked through, by its path
 * below the root, with what arg takes; false ends it. INDEX_HAS_SETID says for which directories that is known. */
typedef bool (*index_setid_fn)(void *arg, const char *rel);
void index_setid_files(const struct index *x, index_setid_fn fn, void *arg);
/* All of them were looked through. */
bool index_knows_setid(const struct index *x);

/* ---- sandboxes that may write there now (index_live.c) ---- */

/* Before the start of a sandbox: takes a mark, which the lock on the returned descriptor keeps alive. The keeper takes the
 * same lock with index_live_join() and removes the mark with index_live_leave() when the tree was swept to its end. A mark
 * without a lock is of a keeper that died: index_live_check() then removes the files of the tree and returns false. */
int index_live_claim(const char *state_dir, const struct index *x, unsigned *ret_slot);
int index_live_join(const char *state_dir, const struct index *x, unsigned slot);
void index_live_leave(int fd, unsigned slot);
bool index_live_check(const char *state_dir, const struct index *x);

/* At most so many files, and so many bytes; the oldest are removed. */
#define INDEX_FILES_MAX 64
#define INDEX_BYTES_MAX (128 * MIB)

#endif
