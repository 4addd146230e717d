/* SPDX-License-Identifier: Apache-2.0 */
/* tree/tree_test.c - checkpoints of real trees, against a model that is too simple to be wrong
 *
 * The model is the text of a tree: every name with type, mode, content or target, and which names are one file, made
 * with nothing but readdir and read. (A time alone is no difference.) After a restore it must be what it was at the checkpoint, byte for byte.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "base/io.h"
#include "base/path.h"
#include "base/test.h"
#include "tree/tree.h"

struct place {
	char base[128], work[160], store[160];
	int fd;
};

static struct place place_new(void)
{
	const char *tmp = getenv("TMPDIR");
	struct place p;

	(void)snprintf(p.base, sizeof(p.base), "%s/tree-test-XXXXXX",
		       tmp && strlen(tmp) < 80 ? tmp : "/tmp");
	bug_on(mkdtemp(p.base) == NULL);
	(void)snprintf(p.work, sizeof(p.work), "%s/work", p.base);
	(void)snprintf(p.store, sizeof(p.store), "%s/store", p.base);
	bug_on(mkdir(p.work, 0755) < 0);
	p.fd = open(p.work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return p;
}

static void place_done(struct place *p)
{
	fd_close(p->fd);
	(void)path_remove(AT_FDCWD, p->base);
}

static void put(const struct place *p, const char *rel, const char *text)
{
	int fd = openat(p->fd, rel, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	bug_on(fd < 0 || io_write_all(fd, text, strlen(text)) < 0);
	fd_close(fd);
}

/* ---- the model ---- */

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void model(int root, const char *rel, struct buf *out);

static void model_one(int root, const char *path, struct buf *out)
{
	_cleanup_(buf_done) struct buf b = BUF(4 * MIB);
	char target[4096] = "";
	struct err e = ERR_INIT;
	struct stat st;

	bug_on(fstatat(root, path, &st, AT_SYMLINK_NOFOLLOW) < 0);
	buf_printf(out, "%s %o ", path, st.st_mode);
	if (S_ISREG(st.st_mode)) {
		_close_ int fd = openat(root, path, O_RDONLY | O_CLOEXEC);
		char hex[SHA256_HEX_BYTES];

		bug_on(fd < 0 || io_read_fd(fd, &b, &e) < 0);
		sha256_hex(buf_cstr(&b), b.n, hex);
		buf_printf(out, "%s %u\n", hex, (unsigned)st.st_nlink);
	} else if (S_ISLNK(st.st_mode)) {
		bug_on(readlinkat(root, path, target, sizeof(target) - 1) < 0);
		buf_printf(out, "-> %s\n", target);
	} else {
		buf_puts(out, "\n");
	}
	if (S_ISDIR(st.st_mode))
		model(root, path, out);
}

static void model(int root, const char *rel, struct buf *out)
{
	struct dirent **v = NULL;
	_free_ char *at = mem_fmt("/proc/self/fd/%d/%s", root, rel);
	int n = scandir(at, &v, NULL, by_name);

	bug_on(n < 0);
	for (int i = 0; i < n; i++) {
		if (!str_eq(v[i]->d_name, ".") && !str_eq(v[i]->d_name, "..")) {
			_free_ char *path = rel[0] ? mem_fmt("%s/%s", rel, v[i]->d_name)
						   : mem_str(v[i]->d_name);

			model_one(root, path, out);
		}
		free(v[i]);
	}
	free(v);
}

static char *model_text(const struct place *p)
{
	struct buf b = BUF(64 * MIB);

	model(p->fd, "", &b);
	bug_on(b.is_over);
	return buf_take(&b);
}

/* ---- short words for what the tests do ---- */

static struct store *open_store(const struct place *p)
{
	struct store *s = NULL;
	struct err e = ERR_INIT;

	if (store_open(p->store, true, &s, &e) < 0)
		(void)fprintf(stderr, "%s\n", e.msg);
	bug_on(s == NULL);
	return s;
}

static const struct tree_options all = { .with_ignored = true };

static uint64_t save_with(const struct place *p, struct store *s, const struct tree_options *o,
			  struct tree_saved *sum, struct tree_index *x)
{
	struct tree_note note = {
		.root_fd = p->fd, .kind = TREE_MANUAL, .message = "", .root = p->work
	};
	struct err e = ERR_INIT;
	int r = tree_checkpoint(s, &note, o, sum, x, &e);

	if (r < 0)
		(void)fprintf(stderr, "checkpoint: %s\n", e.msg);
	CHECK_INT(r, 0);
	return sum->id;
}

static uint64_t save(const struct place *p, struct store *s)
{
	struct tree_saved sum;

	return save_with(p, s, &all, &sum, NULL);
}

static void on_conflict(void *arg, const char *path, const char *why)
{
	if (arg == NULL)
		(void)fprintf(stderr, "conflict %s: %s\n", path, why);
}

static struct restored go_back_with(const struct place *p, struct store *s, uint64_t id,
				    const struct tree_options *o)
{
	_cleanup_(tree_index_done) struct tree_index now = { 0 };
	_cleanup_(tree_index_done) struct tree_index target = { 0 };
	struct tree_saved sum;
	struct restored done = { 0 };
	struct err e = ERR_INIT;
	struct restore_job job = { .root_fd = p->fd,
				   .store = s,
				   .now = &now,
				   .target = &target,
				   .conflict = on_conflict };

	(void)save_with(p, s, o, &sum, &now);
	CHECK_INT(store_load(s, id, &target, &e), 0);
	CHECK_INT(tree_restore(&job, &done, &e), 0);
	return done;
}

static struct restored go_back(const struct place *p, struct store *s, uint64_t id)
{
	return go_back_with(p, s, id, &all);
}

/* ---- plain cases ---- */

TEST(round_trip_of_everything)
{
	_cleanup_(place_done) struct place p = place_new();
	struct store *s = open_store(&p);
	_free_ char *before = NULL;
	_free_ char *after = NULL;
	_free_ char *a = NULL;
	char value[8] = "";
	struct restored r;
	uint64_t id;

	put(&p, "a", "one\n");
	put(&p, "odd\n\xff name", "x");
	put(&p, "empty", "");
	bug_on(mkdirat(p.fd, "d", 0750) < 0 || mkdirat(p.fd, "d/e", 0700) < 0);
	put(&p, "d/e/f", "deep");
	bug_on(fchmodat(p.fd, "d/e/f", 01711, 0) < 0);
	bug_on(symlinkat("../nowhere", p.fd, "d/link") < 0);
	bug_on(linkat(p.fd, "a", p.fd, "d/hard", 0) < 0);
	bug_on(mkfifoat(p.fd, "d/fifo", 0600) < 0);
	a = mem_fmt("%s/a", p.work);
	(void)setxattr(a, "user.k", "v", 1, 0);
	bug_on(fchmodat(p.fd, "d/e", 0500, 0) < 0);
	before = model_text(&p);
	id = save(&p, s);
	bug_on(fchmodat(p.fd, "d/e", 0700, 0) < 0);
	bug_on(path_remove(p.fd, "d") < 0 || unlinkat(p.fd, "a", 0) < 0);
	bug_on(mkdirat(p.fd, "a", 0700) < 0);
	put(&p, "a/new", "n");
	put(&p, "empty", "no more");
	put(&p, "d", "a file now");
	r = go_back(&p, s, id);
	after = model_text(&p);
	CHECK_STR(after, before);
	CHECK_INT(r.conflicts, 0);
	if (getxattr(a, "user.k", value, sizeof(value)) < 0)
		CHECK(errno == ENOTSUP);
	else
		CHECK_STR(value, "v");
	store_close(s);
}

TEST(only_what_differs_is_written)
{
	_cleanup_(place_done) struct place p = place_new();
	struct store *s = open_store(&p);
	struct tree_saved sum;
	struct restored r;
	struct stat a, b;
	uint64_t id;

	put(&p, "same", "same");
	put(&p, "other", "1");
	id = save(&p, s);
	bug_on(fstatat(p.fd, "same", &a, 0) < 0);
	put(&p, "other", "2");
	r = go_back(&p, s, id);
	CHECK_INT(r.written, 1);
	CHECK_INT(r.removed, 0);
	bug_on(fstatat(p.fd, "same", &b, 0) < 0);
	CHECK(a.st_ino == b.st_ino && a.st_ctim.tv_nsec == b.st_ctim.tv_nsec);
	(void)usleep(50000);
	(void)save_with(&p, s, &all, &sum, NULL); /* settles what was just written */
	(void)save_with(&p, s, &all, &sum, NULL);
	CHECK_INT(sum.new_files, 0);
	CHECK(sum.is_same);
	store_close(s);
}

TEST(ignored_directories_stay_out_and_unharmed)
{
	_cleanup_(place_done) struct place p = place_new();
	struct store *s = open_store(&p);
	struct tree_options o = { 0 };
	_cleanup_(tree_index_done) struct tree_index x = { 0 };
	struct tree_saved sum;
	uint64_t id;

	put(&p, ".gitignore", "/out\ngone/\n");
	bug_on(mkdirat(p.fd, "out", 0755) < 0 || mkdirat(p.fd, "src", 0755) < 0);
	put(&p, "out/big", "b");
	put(&p, "src/f", "f");
	id = save_with(&p, s, &o, &sum, &x);
	CHECK_INT(sum.left_out, 1);
	CHECK(tree_find(&x, "out/big") == NULL);
	CHECK(tree_find(&x, "src/f") != NULL);
	/* What was saved once stays saved, whatever .gitignore says later. */
	put(&p, ".gitignore", "src\nout\ngone\n");
	put(&p, "src/f", "changed");
	put(&p, "out/more", "m");
	bug_on(mkdirat(p.fd, "gone", 0755) < 0);
	put(&p, "gone/x", "only copy");
	(void)go_back_with(&p, s, id, &o);
	CHECK(faccessat(p.fd, "out/more", F_OK, 0) == 0);
	CHECK(faccessat(p.fd, "gone/x", F_OK, 0) == 0);
	{
		_cleanup_(buf_done) struct buf b = BUF(KIB);
		struct err e = ERR_INIT;
		_free_ char *path = mem_fmt("%s/src/f", p.work);

		CHECK_INT(io_read_file(path, &b, &e), 0);
		CHECK_STR(buf_cstr(&b), "f");
	}
	store_close(s);
}

TEST(caps_leave_files_alone)
{
	_cleanup_(place_done) struct place p = place_new();
	struct store *s = open_store(&p);
	struct tree_options o = { .with_ignored = true, .max_file = 8192 };
	_free_ char *big = mem_new(100001, 1);
	struct tree_saved sum;
	struct stat st;
	uint64_t id;

	memset(big, 'x', 100000);
	put(&p, "big", big);
	put(&p, "small", "s");
	id = save_with(&p, s, &o, &sum, NULL);
	CHECK_INT(sum.unsaved, 1);
	put(&p, "big", big + 1);
	put(&p, "big2", big);
	(void)go_back_with(&p, s, id, &o);
	CHECK(fstatat(p.fd, "big", &st, 0) == 0 && st.st_size == 99999);
	CHECK(fstatat(p.fd, "big2", &st, 0) == 0);
	store_close(s);
}

TEST(sparse_and_large)
{
	_cleanup_(place_done) struct place p = place_new();
	struct store *s = open_store(&p);
	uint64_t size = 4 * GIB;
	int fd = openat(p.fd, "sparse", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	struct stat st;
	char c = 0;
	uint64_t id;

	bug_on(ftruncate(fd, (off_t)size) < 0 || pwrite(fd, "x", 1, 3 * (off_t)GIB) != 1);
	id = save(&p, s);
	bug_on(pwrite(fd, "y", 1, 0) != 1 || ftruncate(fd, 5) < 0);
	fd_close(fd);
	(void)go_back(&p, s, id);
	fd = openat(p.fd, "sparse", O_RDONLY | O_CLOEXEC);
	CHECK(fstat(fd, &st) == 0 && (uint64_t)st.st_size == size);
	CHECK(st.st_blocks * 512 < (off_t)(8 * MIB));
	CHECK(pread(fd, &c, 1, 3 * (off_t)GIB) == 1 && c == 'x');
	CHECK(pread(fd, &c, 1, 0) == 1 && c == 0);
	CHECK(store_disk(s) < 16 * MIB);
	fd_close(fd);
	store_close(s);
}

TEST(a_later_edit_is_a_conflict)
{
	_cleanup_(place_done) struct place p = place_new();
	struct store *s = open_store(&p);
	_cleanup_(tree_index_done) struct tree_index now = { 0 };
	_cleanup_(tree_index_done) struct tree_index target = { 0 };
	struct tree_saved sum;
	struct restored done;
	struct err e = ERR_INIT;
	struct restore_job job = { .root_fd = p.fd,
				   .store = s,
				   .now = &now,
				   .target = &target,
				   .conflict = on_conflict,
				   .arg = &done };
	_cleanup_(buf_done) struct buf b = BUF(KIB);
	_free_ char *path = mem_fmt("%s/f", p.work);
	uint64_t id;

	put(&p, "f", "old");
	id = save(&p, s);
	put(&p, "f", "new");
	put(&p, "g", "new");
	(void)save_with(&p, s, &all, &sum, &now);
	put(&p, "f", "host edit");
	put(&p, "g", "host edit");
	CHECK_INT(store_load(s, id, &target, &e), 0);
	CHECK_INT(tree_restore(&job, &done, &e), 0);
	CHECK_INT(done.conflicts, 2);
	CHECK_INT(io_read_file(path, &b, &e), 0);
	CHECK_STR(buf_cstr(&b), "host edit");
	store_close(s);
}

TEST(renames_are_found)
{
	_cleanup_(place_done) struct place p = place_new();
	struct store *s = open_store(&p);
	_cleanup_(tree_index_done) struct tree_index a = { 0 };
	_cleanup_(tree_index_done) struct tree_index b = { 0 };
	_cleanup_(changes_done) struct changes c = { 0 };
	struct tree_saved sum;

	put(&p, "from", "content");
	put(&p, "mode", "m");
	put(&p, "kind", "k");
	(void)save_with(&p, s, &all, &sum, &a);
	bug_on(renameat(p.fd, "from", p.fd, "to") < 0 || fchmodat(p.fd, "mode", 0755, 0) < 0);
	bug_on(unlinkat(p.fd, "kind", 0) < 0 || symlinkat("x", p.fd, "kind") < 0);
	put(&p, "new", "n");
	(void)save_with(&p, s, &all, &sum, &b);
	tree_compare(&a, &b, true, &c);
	CHECK_INT(c.n, 4);
	if (c.n == 4) {
		CHECK_INT(c.v[0].kind, CHANGE_TYPE);
		CHECK_INT(c.v[1].kind, CHANGE_MODE);
		CHECK_INT(c.v[2].kind, CHANGE_ADDED);
		CHECK_INT(c.v[3].kind, CHANGE_RENAMED);
		CHECK_STR(c.v[3].a->path, "from");
	}
	store_close(s);
}

TEST(pruning_keeps_what_is_needed)
{
	_cleanup_(place_done) struct place p = place_new();
	struct store *s = open_store(&p);
	_free_ char *big = mem_new(3000001, 1);
	_free_ char *before = NULL;
	_free_ char *after = NULL;
	struct err e = ERR_INIT;
	uint64_t first, second, freed = 0, disk;

	memset(big, 'x', 3000000);
	put(&p, "keep", "kept");
	put(&p, "big", big);
	for (int i = 0; i < 50; i++) {
		_free_ char *name = mem_fmt("s%d", i);

		big[1000 + i] = 0;
		put(&p, name, big + i);
		big[1000 + i] = 'x';
	}
	first = save(&p, s);
	for (int i = 0; i < 50; i++) {
		_free_ char *name = mem_fmt("s%d", i);

		bug_on(unlinkat(p.fd, name, 0) < 0);
	}
	put(&p, "big", "small now");
	before = model_text(&p);
	second = save(&p, s);
	disk = store_disk(s);
	CHECK_INT(store_remove(s, first, &e), 0);
	CHECK_INT(store_collect(s, &freed, &e), 0);
	CHECK(freed >= 3000000 && store_disk(s) + 2900000 < disk);
	put(&p, "keep", "no");
	put(&p, "big", "no");
	(void)go_back(&p, s, second);
	after = model_text(&p);
	CHECK_STR(after, before);
	CHECK_INT(store_load(s, first, &(struct tree_index){ 0 }, &e), -ENOENT);
	store_close(s);
}

TEST(deep_paths)
{
	_cleanup_(place_done) struct place p = place_new();
	struct store *s = open_store(&p);
	char name[201];
	int at = fcntl(p.fd, F_DUPFD_CLOEXEC, 3);
	struct tree_saved sum;
	_cleanup_(tree_index_done) struct tree_index x = { 0 };
	uint64_t id;

	memset(name, 'd', 200);
	name[200] = '\0';
	for (int i = 0; i < 60; i++) { /* 12,000 bytes: three times PATH_MAX */
		int next;

		bug_on(mkdirat(at, name, 0755) < 0);
		next = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		fd_close(at);
		at = next;
	}
	fd_close(openat(at, "f", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	id = save_with(&p, s, &all, &sum, &x);
	CHECK_INT(x.n, 61);
	bug_on(unlinkat(at, "f", 0) < 0);
	(void)go_back(&p, s, id);
	CHECK(faccessat(at, "f", F_OK, 0) == 0);
	fd_close(at);
	store_close(s);
}

/* Many names, many of them of one file. 100,000 when asked for, else a slice of that. */
TEST(many_files_and_a_farm_of_links)
{
	_cleanup_(place_done) struct place p = place_new();
	struct store *s = open_store(&p);
	unsigned n = getenv("TREE_FILES") ? 100000 : 3000;
	_cleanup_(tree_index_done) struct tree_index x = { 0 };
	struct tree_saved sum;
	struct restored done;
	struct stat a, b;
	uint64_t id;

	for (unsigned i = 0; i < n; i++) {
		_free_ char *dir = mem_fmt("d%u", i / 1000);
		_free_ char *name = mem_fmt("d%u/f%u", i / 1000, i);

		if (i % 1000 == 0)
			bug_on(mkdirat(p.fd, dir, 0755) < 0);
		if (i % 1000 % 3 == 1) {
			_free_ char *first = mem_fmt("d%u/f%u", i / 1000, i / 1000 * 1000);

			bug_on(linkat(p.fd, first, p.fd, name, 0) < 0);
		} else {
			put(&p, name, name);
		}
	}
	id = save_with(&p, s, &all, &sum, &x);
	CHECK_INT(sum.files, n);
	CHECK_INT(x.n, n + n / 1000);
	for (unsigned i = 0; i < n; i += 7) {
		_free_ char *name = mem_fmt("d%u/f%u", i / 1000, i);

		bug_on(unlinkat(p.fd, name, 0) < 0);
	}
	done = go_back(&p, s, id);
	CHECK_INT(done.conflicts, 0);
	CHECK(done.written >=
	      (n + 6) / 7); /* names of a file whose first name went are linked anew */
	bug_on(fstatat(p.fd, "d0/f0", &a, 0) < 0 || fstatat(p.fd, "d0/f1", &b, 0) < 0);
	CHECK(a.st_ino == b.st_ino);
	CHECK_INT(a.st_nlink, 334);
	store_close(s);
}

/* ---- random ---- */

static uint64_t seed = 88172645463325252U;

static unsigned dice(unsigned n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed >> 11) % n;
}

static void random_name(char *name, size_t size)
{
	static const char *const odd[] = { "a", "b", "c-d", "\xff\xfe", "new\nline", " ", "x.y" };
	size_t n = 0;

	for (unsigned depth = dice(3) + 1; depth > 0; depth--)
		n += (size_t)snprintf(name + n, size - n, "%s%s", odd[dice(ARRAY_LEN(odd))],
				      depth > 1 ? "/" : "");
}

/* One edit, as an agent would make it; most of them fail half of the time, which is fine. */
static void edit(const struct place *p)
{
	char a[256], b[256], text[64];
	struct stat st;
	int fd, failed = 0;

	random_name(a, sizeof(a));
	random_name(b, sizeof(b));
	switch (dice(9)) {
	case 0:
	case 1:
		(void)snprintf(text, sizeof(text), "%u", dice(50));
		fd = openat(p->fd, a, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
		if (fd >= 0)
			(void)io_write_all(fd, text, strlen(text));
		fd_close(fd);
		break;
	case 2:
		failed = mkdirat(p->fd, a, 0755);
		break;
	case 3:
		(void)path_remove(p->fd, a);
		break;
	case 4:
		failed = renameat(p->fd, a, p->fd, b);
		break;
	case 5:
		failed = linkat(p->fd, a, p->fd, b, 0);
		break;
	case 6:
		failed = symlinkat(b, p->fd, a);
		break;
	case 7: /* never through a link: it may lead anywhere */
		if (fstatat(p->fd, a, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISLNK(st.st_mode))
			failed = fchmodat(p->fd, a,
					  S_ISDIR(st.st_mode) ? 0700 | dice(64) : 0600 | dice(128),
					  0);
		break;
	default:
		fd = openat(p->fd, a, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
		if (fd >= 0)
			(void)io_write_all(fd, "+", 1);
		fd_close(fd);
	}
	(void)failed;
}

/* More contents than are put without looking at the packs that are there, and then read through the same store. */
TEST(a_pack_is_read_while_it_is_new)
{
	struct place p = place_new();
	struct store *s = open_store(&p);
	_free_ char *then = NULL, *now = NULL;
	struct restored r;
	uint64_t id;

	for (int i = 0; i < 100; i++) {
		_free_ char *name = mem_fmt("f%d", i), *text = mem_fmt("first %d", i);

		put(&p, name, text);
	}
	(void)save(&p, s);
	store_close(s);
	s = open_store(&p);
	for (int i = 0; i < 100; i++) {
		_free_ char *name = mem_fmt("f%d", i), *text = mem_fmt("the second content %d", i);

		put(&p, name, text);
	}
	then = model_text(&p);
	id = save(&p, s);
	for (int i = 0; i < 100; i++) {
		_free_ char *name = mem_fmt("f%d", i);

		put(&p, name, "third");
	}
	r = go_back(&p, s, id);
	now = model_text(&p);
	CHECK_INT(r.conflicts, 0);
	CHECK_STR(now, then);
	store_close(s);
	place_done(&p);
}

#define REMEMBER 6

TEST(random_sequences)
{
	const char *many = getenv("TREE_SEQUENCES");
	unsigned sequences = many ? 1000 : 40;

	for (unsigned i = 0; i < sequences && test_failures == 0; i++) {
		struct place p = place_new();
		struct store *s = open_store(&p);
		char *text[REMEMBER] = { 0 };
		uint64_t id[REMEMBER] = { 0 };
		size_t n = 0;

		for (unsigned step = 0; step < 24; step++) {
			for (unsigned k = dice(12); k > 0; k--)
				edit(&p);
			if (n < REMEMBER && dice(2)) {
				text[n] = model_text(&p);
				id[n++] = save(&p, s);
			} else if (n > 0) {
				size_t to = dice((unsigned)n);
				_free_ char *now = NULL;
				struct restored r = go_back(&p, s, id[to]);

				now = model_text(&p);
				CHECK_INT(r.conflicts, 0);
				CHECK_STR(now, text[to]);
			}
		}
		if (test_failures)
			(void)fprintf(stderr, "sequence %u\n", i);
		for (size_t k = 0; k < n; k++)
			free(text[k]);
		store_close(s);
		place_done(&p);
	}
}

TEST_MAIN()
