/* SPDX-License-Identifier: Apache-2.0 */
/* view/index_file.c - the list of a tree as a file in the state directory
 *
 * A head, the entries, the names, the set-id files. The file is mapped, never changed: a new one is written beside it and
 * renamed. A sum over all bytes finds what a disk did; who could write to the state directory could do worse things than
 * forge a list, and nothing inside a sandbox can. Whatever is not exactly right is no list, and everything is read.
 *
 * The file is good for one boot: after it nobody knows what the clock showed meanwhile. So it need not reach the disk.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/path.h"
#include "view/index_own.h"
#include "view/replica.h"
#include "view/walk.h"

#define MAGIC "vitrlist"
#define VERSION 1
#define BOOT_MAX 40
#define FILE_MAX_BYTES                                                                             \
	(sizeof(struct head) + INDEX_DIRS_MAX * sizeof(struct index_dir) + 2 * INDEX_TEXT_MAX)
#define NAME_MAX_BYTES (INDEX_STEM_MAX + 24)
#define DENTS_SIZE (32 * KIB)

struct head {
	char magic[8];
	uint32_t version, dirs;
	uint64_t text_n, setid_n;
	uint64_t dev, ino;
	int64_t clock;
	char boot[BOOT_MAX];
	uint8_t digest[SHA256_BYTES];
	uint64_t sum; /* over all bytes, with zero here */
};

_Static_assert(sizeof(struct head) == INDEX_HEAD_BYTES &&
		       offsetof(struct head, clock) == INDEX_HEAD_CLOCK &&
		       offsetof(struct head, boot) == INDEX_HEAD_BOOT &&
		       offsetof(struct head, digest) == INDEX_HEAD_DIGEST,
	       "as index_own.h says");

static void boot_id(char ret[static BOOT_MAX])
{
	_cleanup_(buf_done) struct buf b = BUF(256);
	struct err ignored = ERR_INIT;

	memset(ret, 0, BOOT_MAX);
	if (io_read_file("/proc/sys/kernel/random/boot_id", &b, &ignored) == 0)
		memcpy(ret, b.p, b.n < BOOT_MAX ? b.n : BOOT_MAX - 1);
}

/* Four sums side by side, each over every fourth word: as fast as memory. */
static uint64_t sum_of(const void *bytes, size_t len, uint64_t seed)
{
	uint64_t s[4] = { seed, ~seed, seed + len, 1 };
	const char *p = bytes;
	uint64_t r = 0, w[4];

	for (; len >= sizeof(w); p += sizeof(w), len -= sizeof(w)) {
		memcpy(w, p, sizeof(w));
		for (int i = 0; i < 4; i++) {
			s[i] = (s[i] ^ w[i]) * 0x9e3779b97f4a7c15ULL;
			s[i] ^= s[i] >> 29;
		}
	}
	memset(w, 0, sizeof(w));
	memcpy(w, p, len);
	for (int i = 0; i < 4; i++)
		r = (r ^ s[i] ^ w[i]) * 0xbf58476d1ce4e5b9ULL + (r >> 31);
	return r;
}

static uint64_t sum_file(const struct head *h, const void *rest, size_t len)
{
	struct head clean = *h;

	clean.sum = 0;
	return sum_of(rest, len, sum_of(&clean, sizeof(clean), 0));
}

void index_seal(char *bytes, size_t len)
{
	struct head h;

	bug_on(len < sizeof(h));
	memcpy(&h, bytes, sizeof(h));
	h.sum = sum_file(&h, bytes + sizeof(h), len - sizeof(h));
	memcpy(bytes, &h, sizeof(h));
}

/* ---- reading ---- */

static bool is_name(const char *s, size_t len)
{
	return len > 0 && len <= (size_t)4 * NAME_MAX && memchr(s, '/', len) == NULL &&
	       !str_eq(s, ".") && !str_eq(s, "..");
}

/* The names of one directory; `seen` counts the entries that hang on it. */
static bool is_dir_whole(const struct index *x, uint32_t dir, size_t *seen)
{
	const struct index_dir *d = &x->dirs[dir];
	const char *end = x->text + d->names + d->names_len, *p;
	struct index_item it;

	if (d->names > x->text_n || d->names_len > x->text_n - d->names || d->setid > x->setid_n ||
	    d->setid_len > x->setid_n - d->setid ||
	    (d->flags & ~(uint32_t)(INDEX_TRUSTED | INDEX_HAS_SETID)) ||
	    (d->names_len && end[-1] != '\0'))
		return false;
	for (size_t at = 0; at < d->names_len;) {
		/* The last byte is a NUL, so a name that begins before it ends in time. */
		if (d->names_len - at < 7 || !index_next(x, dir, &at, &it) ||
		    !is_name(it.name, it.len))
			return false;
		if (it.dir == INDEX_NONE)
			continue;
		if (it.dir <= dir || it.dir >= x->n || it.type != DT_DIR ||
		    x->dirs[it.dir].parent != dir || x->text + x->dirs[it.dir].name != it.name)
			return false;
		(*seen)++;
	}
	p = x->setid + d->setid;
	end = p + d->setid_len;
	if (d->setid_len && end[-1] != '\0')
		return false;
	for (; p < end; p += strlen(p) + 1)
		if (!is_name(p, strlen(p)))
			return false;
	return true;
}

/* Every entry but the root hangs on one name, whose entry comes before it. */
static bool is_whole(const struct index *x)
{
	size_t seen = 1;

	if (x->n == 0 || x->dirs[0].parent != INDEX_NONE || x->dirs[0].ino != x->ino)
		return false;
	for (uint32_t i = 0; i < x->n; i++)
		if (!is_dir_whole(x, i, &seen))
			return false;
	return seen == x->n;
}

bool index_parse(struct index *x, const void *bytes, size_t len, const struct index_rules *r)
{
	const char *p = bytes;
	struct head h;
	uint64_t want;

	if (len < sizeof(h))
		return false;
	memcpy(&h, p, sizeof(h));
	if (memcmp(h.magic, MAGIC, sizeof(h.magic)) != 0 || h.version != VERSION ||
	    h.dirs > INDEX_DIRS_MAX || h.text_n > INDEX_TEXT_MAX || h.setid_n > INDEX_TEXT_MAX)
		return false;
	want = sizeof(h) + h.dirs * sizeof(struct index_dir) + h.text_n + h.setid_n;
	if (len != want || h.sum != sum_file(&h, p + sizeof(h), len - sizeof(h)))
		return false;
	if (memcmp(h.digest, r->digest, sizeof(h.digest)) != 0)
		return false;
	*x = (struct index){ .n = h.dirs,
			     .text_n = h.text_n,
			     .setid_n = h.setid_n,
			     .dev = h.dev,
			     .ino = h.ino,
			     .clock = h.clock };
	p += sizeof(h);
	/* The head's size is a multiple of eight, and the bytes are a mapping or the allocator's. */
	x->dirs = (struct index_dir *)(uintptr_t)p;
	p += h.dirs * sizeof(struct index_dir);
	x->text = (char *)(uintptr_t)p;
	x->setid = (char *)(uintptr_t)(p + h.text_n);
	return is_whole(x);
}

int index_folder(const char *state_dir)
{
	_free_ char *path = mem_fmt("%s/" INDEX_FOLDER, state_dir);
	int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

void index_stem(const struct index *x, char ret[static INDEX_STEM_MAX])
{
	(void)snprintf(ret, INDEX_STEM_MAX, "%llx-%llx", (unsigned long long)x->dev,
		       (unsigned long long)x->ino);
}

static void name_of(const struct index *x, const struct index_rules *r,
		    char ret[static NAME_MAX_BYTES])
{
	char stem[INDEX_STEM_MAX];

	index_stem(x, stem);
	(void)snprintf(ret, NAME_MAX_BYTES, "%s-%02x%02x%02x%02x%02x%02x", stem, r->digest[0],
		       r->digest[1], r->digest[2], r->digest[3], r->digest[4], r->digest[5]);
}

bool index_is_ours(int fd, struct stat *ret)
{
	return fstat(fd, ret) == 0 && S_ISREG(ret->st_mode) && ret->st_uid == geteuid() &&
	       ret->st_nlink == 1 && (ret->st_mode & 077) == 0;
}

void index_unmap(struct index *x)
{
	if (x->map)
		(void)munmap(x->map, x->map_len);
	x->map = NULL;
}

static bool is_of_this_boot(const void *map)
{
	char boot[BOOT_MAX];
	struct head h;

	memcpy(&h, map, sizeof(h));
	boot_id(boot);
	return boot[0] && memcmp(h.boot, boot, BOOT_MAX) == 0;
}

static bool is_in_future(const struct index *x, int64_t now)
{
	for (size_t i = 0; i < x->n; i++)
		if (x->dirs[i].ctime_s > now / (int64_t)NS_PER_SEC + 1)
			return true;
	return false;
}

bool index_load(struct index *x, const char *state_dir, const struct index *now,
		const struct index_rules *r)
{
	_close_ int dir = index_folder(state_dir), fd = FD_NONE;
	char name[NAME_MAX_BYTES];
	struct stat st;
	void *map;

	if (dir < 0 || now->is_off)
		return false;
	name_of(now, r, name);
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || !index_is_ours(fd, &st) || (size_t)st.st_size < sizeof(struct head) ||
	    (size_t)st.st_size > FILE_MAX_BYTES)
		return false;
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	if (map == MAP_FAILED)
		return false;
	if (index_parse(x, map, (size_t)st.st_size, r) && is_of_this_boot(map) &&
	    x->dev == now->dev && x->ino == now->ino && index_has_one_clock(x, now) &&
	    !is_in_future(x, now->began)) {
		x->map = map;
		x->map_len = (size_t)st.st_size;
		x->was_loaded = true;
		return true;
	}
	(void)munmap(map, (size_t)st.st_size);
	*x = (struct index){ 0 };
	return false;
}

/* ---- set-id files ---- */

struct dent {
	uint64_t ino;
	int64_t off;
	uint16_t reclen;
	uint8_t type;
	char name[];
};

static void look_at_files(int fd, const char *dents, size_t got, struct buf *ret)
{
	for (size_t at = 0; at < got;) {
		const struct dent *e = (const void *)(dents + at);
		struct stat st;

		at += e->reclen;
		if ((e->type == DT_REG || e->type == DT_UNKNOWN) &&
		    fstatat(fd, e->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
		    st.st_mode & (S_ISUID | S_ISGID))
			buf_add(ret, e->name, strlen(e->name) + 1);
	}
}

/* The directory must be the one of the entry when it was looked through, else the next walk reads it. */
static bool list_setid(struct index *x, uint32_t dir, int root_fd, struct buf *names)
{
	_Alignas(8) char dents[DENTS_SIZE];
	_free_ char *path = index_path(x, dir, "");
	size_t len = strlen(path);
	_close_ int fd = FD_NONE;
	struct index_id id;
	long got;

	names->n = 0;
	if (len)
		path[len - 1] = '\0';
	fd = walk_open(root_fd, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
	if (fd < 0)
		return false;
	while ((got = syscall(SYS_getdents64, fd, dents, (unsigned)sizeof(dents))) > 0)
		look_at_files(fd, dents, (size_t)got, names);
	return got == 0 && !names->is_over && index_look(fd, "", &id) &&
	       index_is_same(x, dir, x, &id);
}

static void list_all_setid(struct index *x, int root_fd)
{
	_cleanup_(buf_done) struct buf names = BUF(MIB);

	for (uint32_t i = 0; i < x->n; i++) {
		struct index_dir *d = &x->dirs[i];

		if ((d->flags & (INDEX_TRUSTED | INDEX_HAS_SETID)) != INDEX_TRUSTED)
			continue;
		if (!list_setid(x, i, root_fd, &names) || x->setid_n + names.n > INDEX_TEXT_MAX) {
			d->flags = 0;
			continue;
		}
		d->setid = (uint32_t)x->setid_n;
		d->setid_len = (uint32_t)names.n;
		if (names.n)
			index_add_setid(x, names.p, names.n);
		d->flags |= INDEX_HAS_SETID;
	}
}

/* ---- writing ---- */

bool index_is_worth_saving(const struct index *x)
{
	if (x->is_off || x->n < INDEX_DIRS_MIN)
		return false;
	for (size_t i = 0; i < x->n; i++)
		if (x->dirs[i].flags & INDEX_FRESH)
			return true;
	return false;
}

static int write_to(int fd, const struct index *x, const struct index_rules *r)
{
	struct head h = { .magic = MAGIC,
			  .version = VERSION,
			  .dirs = (uint32_t)x->n,
			  .text_n = x->text_n,
			  .setid_n = x->setid_n,
			  .dev = x->dev,
			  .ino = x->ino,
			  .clock = x->clock };
	size_t dirs = x->n * sizeof(*x->dirs), len = sizeof(h) + dirs + x->text_n + x->setid_n;
	_free_ char *all = mem_grow(NULL, len, 1);
	char *p = all + sizeof(h);

	boot_id(h.boot);
	memcpy(h.digest, r->digest, sizeof(h.digest));
	memcpy(all, &h, sizeof(h));
	memcpy(p, x->dirs, dirs);
	if (x->text_n)
		memcpy(p + dirs, x->text, x->text_n);
	if (x->setid_n)
		memcpy(p + dirs + x->text_n, x->setid, x->setid_n);
	index_seal(all, len);
	return io_write_all(fd, all, len);
}

struct old_file {
	char name[NAME_MAX_BYTES];
	struct timespec used;
	uint64_t bytes;
};

static int by_age(const void *a, const void *b)
{
	const struct old_file *x = a, *y = b;

	if (x->used.tv_sec != y->used.tv_sec)
		return x->used.tv_sec > y->used.tv_sec ? -1 : 1;
	return x->used.tv_nsec > y->used.tv_nsec ? -1 : x->used.tv_nsec < y->used.tv_nsec;
}

/* What the folder holds stays within its bounds: the files that were written longest ago go. */
static void bound(int dir)
{
	_close_ int fd = walk_opendir(dir, ".");
	_free_ struct old_file *v = NULL;
	size_t n = 0, cap = 0;
	uint64_t bytes = 0;
	const struct dirent *de;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct stat st;

	if (d == NULL)
		return;
	(void)take_fd(fd); /* the stream's now */
	while ((de = readdir(d)) != NULL && n < 4096) {
		if (de->d_name[0] == '.' || strlen(de->d_name) >= NAME_MAX_BYTES ||
		    fstatat(dir, de->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		vec_reserve(v, n, cap);
		v[n] = (struct old_file){ .used = st.st_mtim, .bytes = (uint64_t)st.st_size };
		memcpy(v[n++].name, de->d_name, strlen(de->d_name) + 1);
	}
	(void)closedir(d);
	if (n > 0)
		qsort(v, n, sizeof(*v), by_age);
	for (size_t i = 0; i < n; i++) {
		bytes += v[i].bytes;
		/* A tree without its marks is read in full and gets new ones. */
		if (i >= INDEX_FILES_MAX || bytes > INDEX_BYTES_MAX)
			(void)unlinkat(dir, v[i].name, 0);
	}
}

int index_save(struct index *x, const char *state_dir, int root_fd, const struct index_rules *r)
{
	_close_ int dir = index_folder(state_dir), fd = FD_NONE;
	char name[NAME_MAX_BYTES], temp[REPLICA_TEMP_MAX];
	int rc;

	if (!index_is_worth_saving(x))
		return 0;
	if (dir < 0)
		return dir;
	list_all_setid(x, root_fd);
	for (size_t i = 0; i < x->n; i++)
		x->dirs[i].flags &= ~(uint32_t)INDEX_FRESH;
	name_of(x, r, name);
	rc = replica_temp(temp);
	if (rc < 0)
		return rc;
	fd = openat(dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	rc = write_to(fd, x, r);
	if (rc == 0 && renameat(dir, temp, dir, name) < 0)
		rc = -errno;
	if (rc < 0)
		(void)unlinkat(dir, temp, 0); /* a file of ours that nobody misses */
	else
		bound(dir);
	return rc;
}
