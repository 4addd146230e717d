/* SPDX-License-Identifier: Apache-2.0 */
/* tree/tree.h - the state of a directory tree: remembered, compared, put back
 *
 * An index says what a tree was like: one record per name, sorted, with all that is needed to see later that nothing
 * changed (inode, size, times) and all that is needed to make it again (mode, link target, extended
 * attributes, and the hash under which the content lies in a store). A checkpoint is an index whose contents are all
 * in the store beside it; it exists from the moment its index file has its name.
 *
 * A file is unchanged when inode, size, mode, mtime and ctime are, and nobody had it open for writing when its content was
 * read, and its file system moves the times at each first store through a mapping (steady.c); else the content is read
 * again. What is inside a sandbox can set mtime but not ctime. A file that was changed in the same tick of the clock as it
 * was looked at is remembered as unsettled and looked at again.
 *
 * Nothing here follows a symbolic link or leaves the tree, and nothing of the tree is ever executed: it may belong to
 * a hostile process that runs at the same time.
 */
#ifndef VITRINE_TREE_TREE_H
#define VITRINE_TREE_TREE_H

#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"

/* ---- the index ---- */

#define TREE_NONE UINT32_MAX
#define TREE_ENTRIES_MAX ((size_t)8 << 20)
#define TREE_FILE_MAX (2 * GIB)
/* Whoever writes in the tree chooses lengths, and a hole costs nothing to make: longer files are known by their stat alone,
 * and so are those beyond what one look reads of lengths together. */
#define TREE_SIZE_MAX ((uint64_t)1 << 40)
#define TREE_SIZES_MAX (4 * TREE_SIZE_MAX)
#define TREE_NEW_MAX (8 * GIB)

enum tree_flags {
	TREE_UNSETTLED = 1, /* changed while, or just before, we looked: its times prove nothing */
	TREE_OPAQUE = 2,    /* a directory that was left out: nothing is known of what is in it */
	TREE_UNSAVED = 4,   /* over the size cap: content is not in the store */
	TREE_UNHASHED = 8,  /* only looked at, content not read: hash is not set */
	TREE_SPARSE = 16,
	TREE_STEADY = 64, /* nobody had it open for writing when its content was read */
	TREE_FLAGS_ALL_ = 31 | TREE_STEADY,
	TREE_CLOSED =
		32 /* of a layer, never saved: a directory that the caller may not look into */
};

struct tree_entry {
	const char *path; /* below the root, never "" */
	const char *name; /* its last component */
	uint32_t parent;  /* index of the directory, TREE_NONE at the top */
	uint32_t
		link_of; /* hard links: the first entry of the same file; TREE_NONE: it is the first */
	uint32_t mode, uid, gid, nlink, flags;
	uint64_t dev, ino, size, alloc; /* alloc: bytes on disk */
	int64_t mtime, ctime;           /* ns */
	const char *target;             /* of a symbolic link */
	uint32_t target_len, xattr_len;
	const char *xattrs; /* name NUL u32 length, value; again and again; sorted by name */
	uint8_t hash[SHA256_BYTES]; /* of a regular file's content, see tree_hash_fd() */
};

enum tree_kind {
	TREE_MANUAL,  /* somebody asked */
	TREE_START,   /* before a sandbox started */
	TREE_LOOP,    /* before an iteration of a loop */
	TREE_PRESENT, /* what was there before a restore */
	TREE_SEAL,    /* what a sandbox left when it ended; contents not saved */
	TREE_INSIDE, /* a sandbox asked, by vitrine-checkpoint: never chosen unless somebody names it */
	TREE_KIND_COUNT_
};

struct tree_text; /* owns strings */

struct tree_index {
	struct tree_entry *v; /* parents before children, siblings by bytes of their names */
	size_t n, cap;
	uint64_t id;      /* in its store; 0: none yet */
	uint64_t created; /* realtime ns */
	uint64_t since;   /* TREE_PRESENT: the checkpoint that was restored over it */
	enum tree_kind kind;
	bool is_alone; /* no sandbox ran in the tree while it was saved: all in it is the host's own */
	uint32_t root_mode;
	char *message;
	char *root; /* path of the tree */
	struct tree_text *text;
	char *loaded; /* the file's bytes, which names point into */
	/* Of a look, never saved: files of this device (0: of none) that are steady and have the same times are unchanged. */
	uint64_t steady_dev;
	/* The same: .gitignore files cost too much to be followed to their end, so more is in it. */
	bool is_ignore_cut;
};

void tree_index_done(struct tree_index *x);
const char *tree_kind_name(enum tree_kind kind);
/* What a record of an earlier version is: it called those of the inside manual, and said so in their text. */
enum tree_kind tree_kind_of(enum tree_kind kind, const char *message);

/* The entry with exactly this path, or NULL. */
const struct tree_entry *tree_find(const struct tree_index *x, const char *path);

/* Bytes of an index file, and back. The reader takes nothing on trust: every offset, order, parent, name and the hash
 * over all of it. -EBADMSG when something is wrong. The first copies, the second takes ownership. */
int tree_encode(const struct tree_index *x, struct buf *out, struct err *e);
int tree_decode(const void *p, size_t n, struct tree_index *ret, struct err *e);
int tree_decode_take(char *take_p, size_t n, struct tree_index *ret, struct err *e);

/* Do the two records say the same of inode, size, mode and times? */
bool tree_same_stat(const struct tree_entry *a, const struct tree_entry *b);

/* ---- looking ---- */

struct tree_progress {
	void (*fn)(void *arg, uint64_t files, uint64_t bytes); /* may be NULL */
	void *arg;
};

struct tree_options {
	bool with_ignored; /* go into directories that .gitignore names */
	uint64_t max_file; /* bytes on disk of one file; 0: no cap */
	uint64_t max_new;  /* bytes of content that one checkpoint may add; 0: no cap */
	struct tree_progress progress;
};

/* Names that begin so and go on with 16 hex digits are half-made files of a restore. After one that was killed they are
 * removed (tree_clean); otherwise they are names like any other, because a sandbox can make them too. */
#define TREE_TEMP ".vitrine-tmp-"

/* One walk, stats only. Records that `before` (may be NULL) proves unchanged take their hash and attributes from it;
 * other regular files are TREE_UNHASHED. (One whose content was never read is known by its stat alone, then and now.) A directory that was not left out in `before` is not left out now. */
int tree_look(int root_fd, const struct tree_index *before, const struct tree_options *o,
	      struct tree_index *ret, struct err *e);

/* Does the file system of root_fd move the times of a file at each first store through a mapping, and can we see who has
 * a file open for writing? Makes a nameless file there. */
bool tree_times_hold(int root_fd);

/* Hashes what is still unhashed, without saving it: all that `before` (may be NULL) knows with the same size, and of the
 * rest, whose hash serves only to find renames, what is under TREE_NEW_MAX. What is over that stays unhashed. */
int tree_hash_all(int root_fd, const struct tree_index *before, struct tree_index *x,
		  struct err *e);

/* The hash of a file's content: SHA-256 of the bytes up to 1 MiB; of anything longer SHA-256 over the SHA-256 of each
 * MiB, so that holes cost nothing. */
int tree_hash_fd(int fd, uint64_t size, uint8_t ret[static SHA256_BYTES]);

/* The same of bytes in memory. */
void tree_hash_bytes(const char *p, size_t n, uint8_t ret[static SHA256_BYTES]);

/* Opens a path of the tree, no link followed. fd or -errno. */
int tree_open(int root_fd, const char *path, int flags);

/* ---- the store ---- */

/* A directory: lock, packs/ (small contents, one file per checkpoint), objects/ (large ones, one file each),
 * checkpoints/N (index files), seal. */
struct store;

/* Opens or makes it. Waits for a lock somebody else holds; -EBUSY when may_wait is false. */
int store_open(const char *path, bool may_wait, struct store **ret, struct err *e);
void store_close(struct store *s);

/* One index as a file of its own, below `dir`; replaced in one step, and on disk when this returns, but for a seal: that
 * is only a help, and its maker is waited for. */
int tree_save(int dir, const char *name, const struct tree_index *x, struct err *e);
int tree_load(int dir, const char *name, struct tree_index *ret, struct err *e);

/* The whole content of a small object; -EMSGSIZE when it is over the buffer's ceiling, -ENOENT, -EBADMSG when what lies
 * there is not what its name says. */
int store_read(struct store *s, const uint8_t hash[static SHA256_BYTES], uint64_t size,
	       struct buf *ret, struct err *e);
bool store_has(struct store *s, const uint8_t hash[static SHA256_BYTES]);
/* Writes the content to fd, holes kept, and verifies it. */
int store_write_to(struct store *s, const struct tree_entry *en, int fd, struct err *e);

/* All checkpoints' numbers, ascending. */
int store_list(struct store *s, uint64_t **ret, size_t *ret_n, struct err *e);
int store_load(struct store *s, uint64_t id, struct tree_index *ret, struct err *e);
int store_load_seal(struct store *s, struct tree_index *ret, struct err *e); /* -ENOENT */
int store_save_seal(struct store *s, const struct tree_index *x, struct err *e);
int store_remove(struct store *s, uint64_t id, struct err *e);
/* Frees what no checkpoint needs any more. */
int store_collect(struct store *s, uint64_t *ret_freed, struct err *e);
/* Bytes on disk. */
uint64_t store_disk(struct store *s);

/* ---- checkpoint ---- */

struct tree_saved {
	uint64_t id;
	uint64_t files, new_files, new_bytes; /* seen; whose content had to be read; bytes added */
	uint64_t left_out, unsaved;           /* ignored directories; files over the cap */
	bool is_same;                         /* nothing changed since the one before */
	bool is_ignore_cut; /* directories are in it that .gitignore names: see tree_index */
};

struct tree_note {
	int root_fd; /* the tree */
	enum tree_kind kind;
	bool (*is_alone)(
		void *arg); /* does no sandbox run there? Asked before and after; NULL: not known */
	void *arg;
	const char *message; /* "" */
	const char *root;
	uint64_t since;
	bool may_skip; /* when nothing changed since the newest one, make none */
};

/* Afterwards the new checkpoint exists whole or not at all. ret_index may be NULL. */
int tree_checkpoint(struct store *s, const struct tree_note *note, const struct tree_options *o,
		    struct tree_saved *ret, struct tree_index *ret_index, struct err *e);

/* ---- comparing ---- */

enum change_kind {
	CHANGE_ADDED,
	CHANGE_REMOVED,
	CHANGE_MODIFIED, /* content, or a link's target */
	CHANGE_MODE,     /* only mode or attributes */
	CHANGE_TYPE,     /* a file became a directory or the like */
	CHANGE_RENAMED,  /* from `from`, with or without a change of content */
	CHANGE_KIND_COUNT_
};

struct change {
	enum change_kind kind;
	const struct tree_entry *a, *b; /* before, after; NULL where there is none */
};

struct changes {
	struct change *v;
	size_t n, cap;
};

const char *change_kind_name(enum change_kind kind);

/* In the order of the index. Both must be hashed. The result borrows from both. */
void tree_compare(const struct tree_index *a, const struct tree_index *b, bool with_renames,
		  struct changes *ret);
void changes_done(struct changes *c);

/* Is what lies at `path` now (NULL: nothing) another thing than an earlier look found there? */
bool tree_was_touched(const struct tree_index *earlier, const char *path,
		      const struct tree_entry *now);

/* Is path one of these, or below one? NULL: all are meant; "" is the root. */
bool tree_is_among(char *const *paths, const char *path);
/* Somebody named paths: one that is neither there nor among what changed is a slip, and doing nothing would look like success. */
int changes_check(const struct changes *c, char *const *paths, int root_fd, struct err *e);
/* Does one of these lie below dir? */
bool tree_is_above(char *const *paths, const char *dir);

/* ---- restoring ---- */

struct restore_job {
	int root_fd;
	struct store *store;
	const struct tree_index *now;    /* a checkpoint of the present, just made */
	const struct tree_index *target; /* what it shall be */
	char *const *only;               /* NULL-ended paths to restore, or NULL: all */
	bool (*skips)(void *arg,
		      const struct change *c); /* may be NULL; true: leave it, count it as kept */
	void (*conflict)(void *arg, const char *path, const char *why); /* left as it is */
	void *arg;
	/* Where contents come from when it is not the store. */
	int (*write)(void *arg, const struct tree_entry *en, int fd, struct err *e);
	void *write_arg;
	bool no_xattrs; /* leave extended attributes, owners and special mode bits out */
};

struct restored {
	uint64_t written, removed, kept, conflicts;
};

/* Writes what differs, file by file, each replaced in one step. A file that is no longer what `now` says is a conflict
 * and stays. May be called again after it was cut off. */
int tree_restore(const struct restore_job *job, struct restored *ret, struct err *e);

/* Removes what a restore that was killed left half-made. */
void tree_clean(int root_fd);

/* A restore that was begun and not finished: its target and the present it saved; 0 when there is none. */
int store_pending(struct store *s, uint64_t *ret_target, uint64_t *ret_present);
int store_set_pending(struct store *s, uint64_t target, uint64_t present, struct err *e);

/* ---- showing ---- */

struct text_count {
	uint64_t added, removed;
};

/* A NUL in the first 8000 bytes, as git has it. */
bool text_is_binary(const char *p, size_t n);

/* Unified diff with three lines of context, without the two lines that name the files; `out` may be NULL to count
 * only. Differences beyond a bound are shown as one block, still right but not the shortest. */
void text_diff(const char *a, size_t a_n, const char *b, size_t b_n, struct text_count *ret,
	       struct buf *out);

#endif
