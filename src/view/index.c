/* SPDX-License-Identifier: Apache-2.0 */
/* view/index.c - see index.h
 *
 * The list in memory has the form of the file: an array of entries in the order of the walk (a parent before its children)
 * and one text with all names. An item of the text is a type, the number of a directory's entry, the name and its NUL; the
 * number is written when the walk enters the directory, so an item without one is always read.
 */
#include "view/index.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>

#include "base/sabotage.h"
#include "view/index_own.h"

#define ITEM_DIR 1                       /* where the number lies in an item */
#define ITEM_NAME (1 + sizeof(uint32_t)) /* where the name begins */
#define CLOCK_SLACK_NS (2 * NS_PER_MS)   /* two clocks are read one after the other */

/* Not every libc has it. */
struct raw_time {
	int64_t s;
	uint32_t ns;
	int32_t pad;
};

struct raw_statx {
	uint32_t mask, blksize;
	uint64_t attributes;
	uint32_t nlink, uid, gid;
	uint16_t mode, pad;
	uint64_t ino, size, blocks, attributes_mask;
	struct raw_time atime, btime, ctime, mtime;
	uint32_t rdev_major, rdev_minor, dev_major, dev_minor;
	uint64_t mnt_id;
	uint64_t rest[13];
};

_Static_assert(sizeof(struct raw_statx) == 256, "as the kernel has it");

#define GET_NEEDED                                                                                 \
	(0x1U /* type */ | 0x80U /* time of change */ | 0x100U /* inode */ | 0x1000U /* mount */)
#define GET_BIRTH 0x800U
#define DONT_SYNC 0x4000 /* these file systems are local */

/* ---- life ---- */

static int64_t ns_of(const struct timespec *t)
{
	return (int64_t)t->tv_sec * (int64_t)NS_PER_SEC + t->tv_nsec;
}

static int64_t clock_difference(void)
{
	struct timespec real, boot;

	(void)clock_gettime(CLOCK_BOOTTIME, &boot);
	(void)clock_gettime(CLOCK_REALTIME, &real);
	return ns_of(&real) - ns_of(&boot);
}

/* File systems that take their times from the clock of this kernel. */
static bool has_own_times(int fd)
{
	static const uint64_t known[] = { 0xef53 /* ext4 */, 0x58465342 /* xfs */,
					  0x9123683e /* btrfs */, 0xf2f52010 /* f2fs */,
					  0x01021994 /* tmpfs */ };
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if ((uint64_t)fs.f_type == known[i])
			return true;
	return false;
}

void index_init(struct index *x, int root_fd)
{
	struct timespec began;
	struct index_id id;

	/* The clock that file systems take their times from, before anything is looked at. */
	(void)clock_gettime(CLOCK_REALTIME_COARSE, &began);
	*x = (struct index){ .began = ns_of(&began), .clock = clock_difference() };
	if (!index_look(root_fd, "", &id) || !id.is_whole || !has_own_times(root_fd)) {
		x->is_off = true;
		return;
	}
	x->dev = id.dev;
	x->mnt = id.mnt;
	x->ino = id.ino;
}

struct index *index_new(int root_fd)
{
	struct index *x = mem_new(1, sizeof(*x));

	index_init(x, root_fd);
	return x;
}

static void forget(struct index *x)
{
	if (x->map == NULL) {
		free(x->dirs);
		free(x->text);
		free(x->setid);
	}
	x->dirs = NULL;
	x->text = x->setid = NULL;
	x->n = x->cap = x->text_n = x->text_cap = x->setid_n = x->setid_cap = 0;
}

void index_done(struct index *x)
{
	forget(x);
	free(x->by_ino);
	index_unmap(x);
	*x = (struct index){ 0 };
}

void index_free(struct index *x)
{
	if (x == NULL)
		return;
	index_done(x);
	free(x);
}

/* ---- is it the same? ---- */

bool index_look(int dir_fd, const char *path, struct index_id *ret)
{
	const int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | DONT_SYNC;
	struct raw_statx st;

	if (syscall(SYS_statx, dir_fd, path, path[0] ? flags : flags | AT_EMPTY_PATH,
		    GET_NEEDED | GET_BIRTH, &st) < 0 ||
	    !S_ISDIR(st.mode))
		return false;
	*ret = (struct index_id){ .ino = st.ino,
				  .dev = (uint64_t)st.dev_major << 32 | st.dev_minor,
				  .mnt = st.mnt_id,
				  .ctime_s = st.ctime.s,
				  .ctime_ns = st.ctime.ns,
				  .is_whole = (st.mask & GET_NEEDED) == GET_NEEDED };
	if (st.mask & GET_BIRTH) {
		ret->btime_s = st.btime.s;
		ret->btime_ns = st.btime.ns;
	}
	return true;
}

bool index_has_one_clock(const struct index *a, const struct index *b)
{
	int64_t moved = a->clock - b->clock;

	return moved < (int64_t)CLOCK_SLACK_NS && moved > -(int64_t)CLOCK_SLACK_NS;
}

static bool is_here(const struct index *x, const struct index_id *id)
{
	return id->is_whole && id->dev == x->dev && id->mnt == x->mnt;
}

/* Two changes in one tick of the clock may get one time. So what changed just now can change again unseen. */
static bool is_old(const struct index *x, const struct index_id *id)
{
	int64_t t = id->ctime_s * (int64_t)NS_PER_SEC + id->ctime_ns;
	int64_t age = id->ctime_ns ? (int64_t)INDEX_OLD_NS : (int64_t)INDEX_OLD_WHOLE_NS;

	return t + age < x->began || sabotaged("index-young");
}

bool index_is_same(const struct index *old, uint32_t dir, const struct index *now,
		   const struct index_id *id)
{
	const struct index_dir *d = &old->dirs[dir];

	if (!(d->flags & INDEX_TRUSTED) || now->is_off || d->ino != id->ino || !is_here(now, id))
		return false;
	return (d->ctime_s == id->ctime_s && d->ctime_ns == id->ctime_ns &&
		d->btime_s == id->btime_s && d->btime_ns == id->btime_ns) ||
	       sabotaged("index-trust");
}

struct index_id index_id_of(const struct index *x, uint32_t dir, const struct index *now)
{
	const struct index_dir *d = &x->dirs[dir];

	return (struct index_id){ .ino = d->ino,
				  .dev = now->dev,
				  .mnt = now->mnt,
				  .ctime_s = d->ctime_s,
				  .ctime_ns = d->ctime_ns,
				  .btime_s = d->btime_s,
				  .btime_ns = d->btime_ns,
				  .is_whole = true };
}

static size_t slot_of(const struct index *x, uint64_t ino)
{
	return (size_t)((ino * 0x9e3779b97f4a7c15ULL) >> 20) & (x->by_ino_size - 1);
}

static void number(struct index *x)
{
	x->by_ino_size = 64;
	while (x->by_ino_size < 2 * x->n)
		x->by_ino_size *= 2;
	x->by_ino = mem_grow(NULL, x->by_ino_size, sizeof(*x->by_ino));
	memset(x->by_ino, 0xff, x->by_ino_size * sizeof(*x->by_ino));
	for (size_t i = 0; i < x->n; i++) {
		size_t at = slot_of(x, x->dirs[i].ino);

		while (x->by_ino[at] != INDEX_NONE)
			at = (at + 1) & (x->by_ino_size - 1);
		x->by_ino[at] = (uint32_t)i;
	}
}

uint32_t index_find(struct index *x, uint64_t ino)
{
	if (x->by_ino == NULL)
		number(x);
	for (size_t at = slot_of(x, ino); x->by_ino[at] != INDEX_NONE;
	     at = (at + 1) & (x->by_ino_size - 1))
		if (x->dirs[x->by_ino[at]].ino == ino)
			return x->by_ino[at];
	return INDEX_NONE;
}

/* ---- adding ---- */

static bool has_room(struct index *x, size_t more)
{
	if (x->is_off)
		return false;
	if (x->n >= INDEX_DIRS_MAX || x->text_n + more > INDEX_TEXT_MAX) {
		x->is_off = true;
		forget(x);
		return false;
	}
	return true;
}

static void put_text(struct index *x, const void *p, size_t n)
{
	if (x->text_n + n > x->text_cap) {
		x->text_cap = 2 * (x->text_n + n) + 512;
		x->text = mem_grow(x->text, x->text_cap, 1);
	}
	memcpy(x->text + x->text_n, p, n);
	x->text_n += n;
}

void index_reserve(struct index *x, const struct index *like)
{
	if (x->is_off || x->cap || x->text_cap)
		return;
	x->cap = like->n + like->n / 8 + 16;
	x->dirs = mem_grow(NULL, x->cap, sizeof(*x->dirs));
	x->text_cap = like->text_n + like->text_n / 8 + 512;
	x->text = mem_grow(NULL, x->text_cap, 1);
}

uint32_t index_add(struct index *x, uint32_t parent, uint32_t item, const struct index_id *id)
{
	struct index_dir d = { .parent = parent, .name = item };
	uint32_t number = (uint32_t)x->n;

	if (!has_room(x, 0))
		return INDEX_NONE;
	if (item != INDEX_NONE) {
		memcpy(x->text + item + ITEM_DIR, &number, sizeof(number));
		d.name = item + (uint32_t)ITEM_NAME;
	}
	d.names = (uint32_t)x->text_n;
	if (id) {
		d.ino = id->ino;
		d.ctime_s = id->ctime_s;
		d.ctime_ns = id->ctime_ns;
		d.btime_s = id->btime_s;
		d.btime_ns = id->btime_ns;
		if (is_here(x, id) && is_old(x, id))
			d.flags = INDEX_TRUSTED | INDEX_FRESH;
	}
	vec_reserve(x->dirs, x->n, x->cap);
	x->dirs[x->n++] = d;
	return number;
}

uint32_t index_add_name(struct index *x, unsigned char type, const char *name, size_t len)
{
	const uint32_t none = INDEX_NONE;
	uint32_t at = (uint32_t)x->text_n;

	if (!has_room(x, ITEM_NAME + len + 1))
		return INDEX_NONE;
	bug_on(x->n == 0);
	put_text(x, &type, 1);
	put_text(x, &none, sizeof(none));
	put_text(x, name, len + 1);
	x->dirs[x->n - 1].names_len = (uint32_t)(x->text_n - x->dirs[x->n - 1].names);
	return at;
}

void index_keep(struct index *x, const struct index *old, uint32_t dir)
{
	const struct index_dir *from = &old->dirs[dir];
	struct index_dir *d;

	if (x->is_off)
		return;
	d = &x->dirs[x->n - 1];
	d->flags = from->flags;
	d->setid = (uint32_t)x->setid_n;
	d->setid_len = from->setid_len;
	if (from->setid_len)
		index_add_setid(x, old->setid + from->setid, from->setid_len);
}

void index_add_setid(struct index *x, const char *names, size_t len)
{
	if (x->setid_n + len > x->setid_cap) {
		x->setid_cap = 2 * (x->setid_n + len);
		x->setid = mem_grow(x->setid, x->setid_cap, 1);
	}
	memcpy(x->setid + x->setid_n, names, len);
	x->setid_n += len;
}

void index_distrust(struct index *x, uint32_t dir)
{
	if (!x->is_off && dir != INDEX_NONE)
		x->dirs[dir].flags = 0;
}

bool index_next(const struct index *x, uint32_t dir, size_t *at, struct index_item *ret)
{
	const struct index_dir *d = &x->dirs[dir];
	const char *p = x->text + d->names + *at;

	if (*at >= d->names_len)
		return false;
	ret->type = (unsigned char)*p;
	memcpy(&ret->dir, p + ITEM_DIR, sizeof(ret->dir));
	ret->name = p + ITEM_NAME;
	ret->len = strlen(ret->name);
	ret->at = d->names + (uint32_t)*at;
	*at += ITEM_NAME + ret->len + 1;
	return true;
}

/* ---- paths, and set-id files ---- */

char *index_path(const struct index *x, uint32_t dir, const char *name)
{
	const struct str last = str_of(name);
	size_t at = last.n;
	char *path;

	for (uint32_t d = dir; d != 0; d = x->dirs[d].parent)
		at += str_of(x->text + x->dirs[d].name).n + 1;
	path = mem_new(at + 1, 1); /* with its NUL */
	at -= last.n;
	memcpy(path + at, last.p, last.n);
	for (uint32_t d = dir; d != 0; d = x->dirs[d].parent) {
		const struct str own = str_of(x->text + x->dirs[d].name);

		path[--at] = '/';
		at -= own.n;
		memcpy(path + at, own.p, own.n);
	}
	return path;
}

bool index_knows_setid(const struct index *x)
{
	for (size_t i = 0; i < x->n; i++)
		if (!(x->dirs[i].flags & INDEX_HAS_SETID))
			return false;
	return x->n > 0 && !x->is_off;
}

void index_setid_files(const struct index *x, index_setid_fn fn, void *arg)
{
	for (uint32_t i = 0; i < x->n; i++) {
		const char *p = x->setid + x->dirs[i].setid;

		for (const char *end = p + x->dirs[i].setid_len; p < end; p += strlen(p) + 1) {
			_free_ char *rel = index_path(x, i, p);

			if (!fn(arg, rel))
				return;
		}
	}
}
