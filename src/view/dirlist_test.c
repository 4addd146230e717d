/* SPDX-License-Identifier: Apache-2.0 */
/* view/dirlist_test.c - a scan with a list finds what a scan without one finds, whatever happened to the tree, the list or
 * the clock in between; one case for each rule of index.h, and a model that makes random changes */
#include <dirent.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#include "base/num.h"
#include "view/index_own.h"
#include "view/match.h"
#include "view/testtree.h"

#define BASE_DIRS 80
#define HIDE ".env rules/sub/*.key *.pem"
#define PROTECT ".git .vscode .mcp.json"
/* Older than what may be trusted. */
static const struct timespec old_enough = { .tv_nsec = 30 * 1000 * 1000 };

struct bed {
	struct tree t, state;
	struct policy p;
	size_t taken; /* directories that the last scan did not have to read */
	bool was_loaded;
};

static void grow_old(void)
{
	(void)nanosleep(&old_enough, NULL);
}

static struct bed bed_at(const char *dir)
{
	struct bed b = { .state = tree_new() };
	const char *tmp = getenv("TMPDIR");
	_free_ char *saved = tmp ? mem_str(tmp) : NULL;

	if (dir)
		(void)setenv("TMPDIR", dir, 1);
	b.t = tree_new();
	if (dir && saved)
		(void)setenv("TMPDIR", saved, 1);
	else if (dir)
		(void)unsetenv("TMPDIR");
	policy_of(&b.p, HIDE, PROTECT);
	for (int i = 0; i < BASE_DIRS; i++) {
		_free_ char *name = mem_fmt("base%d/sub/file", i / 2);
		_free_ char *other = mem_fmt("base%d/f%d", i / 2, i);

		tree_file(&b.t, name, "x");
		tree_file(&b.t, other, "x");
	}
	return b;
}

static struct bed bed_new(void)
{
	return bed_at(NULL);
}

static void bed_done(struct bed *b)
{
	policy_gone(&b->p);
	tree_done(&b->t);
	tree_done(&b->state);
}

static char *text_of(const struct scan *s)
{
	struct buf b = BUF(16 * MIB);

	buf_printf(&b, "%llu dirs, %llu files\n", (unsigned long long)s->dirs,
		   (unsigned long long)s->files);
	for (size_t i = 0; i < s->n; i++)
		buf_printf(&b, "%d%d%d%d %s (%s) %llu\n", (int)s->v[i].kind, s->v[i].is_dir,
			   s->v[i].is_alias, s->v[i].is_link, s->v[i].rel, s->v[i].rule,
			   (unsigned long long)s->v[i].ino);
	return buf_take(&b);
}

static size_t count(const struct index *x, uint32_t mask, uint32_t flags)
{
	size_t n = 0;

	for (size_t i = 0; i < x->n; i++)
		n += (x->dirs[i].flags & mask) == flags;
	return n;
}

/* Both ways, and they agree. *ret is that with the list. */
static void scan_both(struct bed *b, struct scan *ret)
{
	_free_ char *with = NULL, *without = NULL;
	struct err e = ERR_INIT;
	struct scan s = { 0 };

	CHECK_INT(scan_run_made(b->t.fd, &b->p, NULL, b->state.path, ret, &e), 0);
	CHECK_INT(scan_run(b->t.fd, &b->p, &s, &e), 0);
	CHECK_STR(e.msg, "");
	with = text_of(ret);
	without = text_of(&s);
	CHECK_STR(with, without);
	scan_done(&s);
	b->taken = count(ret->index, INDEX_TRUSTED | INDEX_FRESH, INDEX_TRUSTED);
}

static void check(struct bed *b)
{
	struct scan s = { 0 };

	scan_both(b, &s);
	scan_done(&s);
}

/* A sandbox from start to end: marks, scan, list. */
static void session(struct bed *b)
{
	struct index_rules rules;
	struct scan s = { 0 };
	unsigned slot = 0;
	int fd;

	matcher_rules(&b->p, &rules);
	scan_both(b, &s);
	fd = index_live_claim(b->state.path, s.index, &slot);
	CHECK(fd >= 0);
	CHECK_INT(index_save(s.index, b->state.path, b->t.fd, &rules), 0);
	index_live_leave(fd, slot);
	scan_done(&s);
}

#define BED(b)                                                                                     \
	_cleanup_(bed_done) struct bed b = bed_new();                                              \
	grow_old();                                                                                \
	session(&(b));                                                                             \
	check(&(b));                                                                               \
	CHECK_INT((b).taken, 1 + BASE_DIRS)

/* ---- the file ---- */

/* The list's path, or NULL. */
static char *list_file(const struct bed *b)
{
	_free_ char *folder = mem_fmt("%s/index", b->state.path);
	DIR *d = opendir(folder);
	const struct dirent *de;
	char *path = NULL;

	while (d && path == NULL && (de = readdir(d)) != NULL)
		if (de->d_name[0] != '.' && !str_ends(de->d_name, ".live"))
			path = mem_fmt("%s/%s", folder, de->d_name);
	if (d)
		(void)closedir(d);
	return path;
}

static void read_list(const struct bed *b, struct buf *ret)
{
	_free_ char *path = list_file(b);
	struct err e = ERR_INIT;

	ret->n = 0;
	CHECK(path && io_read_file(path, ret, &e) == 0);
}

static void write_list(const struct bed *b, const char *p, size_t n)
{
	_free_ char *path = list_file(b);
	_close_ int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

	CHECK(fd >= 0 && io_write_all(fd, p, n) == 0);
}

TEST(an_unchanged_tree_is_not_read)
{
	BED(b);
	_free_ char *path = list_file(&b);
	struct stat before, after;

	CHECK(stat(path, &before) == 0);
	session(&b);
	CHECK(stat(path, &after) == 0);
	/* Nothing is written where nothing changed. */
	CHECK_INT(before.st_ino, after.st_ino);
	CHECK_INT(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
}

TEST(a_small_tree_has_no_list)
{
	_cleanup_(bed_done) struct bed b = bed_new();
	_free_ char *path = NULL;

	for (int i = 10; i < BASE_DIRS / 2; i++) {
		_free_ char *name = mem_fmt("base%d", i);

		CHECK_INT(path_remove(b.t.fd, name), 0);
	}
	grow_old();
	session(&b);
	path = list_file(&b);
	CHECK(path == NULL);
}

TEST(a_broken_file_is_no_list)
{
	_cleanup_(buf_done) struct buf whole = BUF(4 * MIB);
	BED(b);

	read_list(&b, &whole);
	for (size_t n = 0; n < whole.n; n += n < 200 ? 1 : 97) {
		write_list(&b, whole.p, n);
		check(&b);
		CHECK_INT(b.taken, 0);
	}
	for (size_t i = 0; i < whole.n; i += i < 200 ? 1 : 131) {
		whole.p[i] ^= 4;
		write_list(&b, whole.p, whole.n);
		check(&b);
		CHECK_INT(b.taken, 0);
		whole.p[i] ^= 4;
	}
	write_list(&b, whole.p, whole.n);
	check(&b);
	CHECK_INT(b.taken, 1 + BASE_DIRS);
}

/* Every byte of the entries, with a sum that is right: it is refused, or what it says does not lead out of the file. */
TEST(a_forged_file_leads_nowhere)
{
	_cleanup_(buf_done) struct buf whole = BUF(4 * MIB);
	struct index_rules rules;
	BED(b);

	matcher_rules(&b.p, &rules);
	read_list(&b, &whole);
	for (size_t i = 0; i < whole.n; i++) {
		_free_ char *copy = mem_grow(NULL, whole.n, 1);
		struct index x = { 0 };
		struct index_item it;
		size_t total = 0;

		memcpy(copy, whole.p, whole.n);
		copy[i] = (char)(copy[i] ^ (1 << (i % 8)));
		index_seal(copy, whole.n);
		if (!index_parse(&x, copy, whole.n, &rules))
			continue;
		for (uint32_t k = 0; k < x.n; k++)
			for (size_t at = 0; index_next(&x, k, &at, &it);)
				total += it.len;
		CHECK(total < whole.n);
	}
}

TEST(another_ones_file_is_no_list)
{
	BED(b);
	_free_ char *path = list_file(&b), *other = mem_fmt("%s/index/.other", b.state.path);

	CHECK_INT(chmod(path, 0620), 0);
	check(&b);
	CHECK_INT(b.taken, 0);
	CHECK_INT(chmod(path, 0600), 0);
	CHECK_INT(link(path, other), 0);
	check(&b);
	CHECK_INT(b.taken, 0);
	CHECK_INT(unlink(path), 0);
	CHECK_INT(symlink(other, path), 0);
	check(&b);
	CHECK_INT(b.taken, 0);
	CHECK_INT(unlink(path), 0);
	CHECK_INT(mkfifo(path, 0600), 0);
	check(&b);
	CHECK_INT(b.taken, 0);
}

/* The root's inode number given to another tree: the file is found by it, and does not fit. */
TEST(the_list_of_another_tree_is_no_list)
{
	_cleanup_(buf_done) struct buf whole = BUF(4 * MIB);
	BED(a);
	BED(b);
	_free_ char *path = list_file(&b);

	read_list(&a, &whole);
	write_list(&b, whole.p, whole.n);
	check(&b);
	CHECK_INT(b.taken, 0);
	CHECK(path != NULL);
}

TEST(other_rules_have_a_list_of_their_own)
{
	BED(b);

	tree_file(&b.t, "base3/sub/secret.txt", "x");
	grow_old();
	session(&b);
	items_add(&b.p.hide, "*.txt", LAYER_FLAGS);
	check(&b);
	CHECK_INT(b.taken, 0);
	session(&b);
	check(&b);
	CHECK_INT(b.taken, 1 + BASE_DIRS);
	/* The same rule in the other list is another rule. */
	policy_gone(&b.p);
	policy_of(&b.p, HIDE, PROTECT " *.txt");
	check(&b);
	CHECK_INT(b.taken, 0);
	policy_gone(&b.p);
	policy_of(&b.p, HIDE, PROTECT);
	check(&b);
	CHECK_INT(b.taken, 1 + BASE_DIRS);
}

TEST(another_clock_or_boot_is_no_list)
{
	_cleanup_(buf_done) struct buf whole = BUF(4 * MIB);
	static const int64_t steps[] = { 10, -10, 3600000, -3600000 };
	BED(b);

	read_list(&b, &whole);
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		int64_t was, moved;

		memcpy(&was, whole.p + INDEX_HEAD_CLOCK, sizeof(was));
		moved = was + steps[i] * (int64_t)NS_PER_MS;
		memcpy(whole.p + INDEX_HEAD_CLOCK, &moved, sizeof(moved));
		index_seal(whole.p, whole.n);
		write_list(&b, whole.p, whole.n);
		check(&b);
		CHECK_INT(b.taken, 0);
		memcpy(whole.p + INDEX_HEAD_CLOCK, &was, sizeof(was));
	}
	whole.p[INDEX_HEAD_BOOT] ^= 1;
	index_seal(whole.p, whole.n);
	write_list(&b, whole.p, whole.n);
	check(&b);
	CHECK_INT(b.taken, 0);
	whole.p[INDEX_HEAD_BOOT] ^= 1;
	index_seal(whole.p, whole.n);
	write_list(&b, whole.p, whole.n);
	check(&b);
	CHECK_INT(b.taken, 1 + BASE_DIRS);
}

/* A time that is yet to come: the clock was set back unseen. */
TEST(a_time_in_the_future_is_no_list)
{
	_cleanup_(buf_done) struct buf whole = BUF(4 * MIB);
	BED(b);
	struct index_dir d;

	read_list(&b, &whole);
	memcpy(&d, whole.p + INDEX_HEAD_BYTES + sizeof(d), sizeof(d));
	d.ctime_s += 1000;
	memcpy(whole.p + INDEX_HEAD_BYTES + sizeof(d), &d, sizeof(d));
	index_seal(whole.p, whole.n);
	write_list(&b, whole.p, whole.n);
	check(&b);
	CHECK_INT(b.taken, 0);
}

/* The clock was set while the sandbox ran: the sweep reads everything. */
TEST(a_clock_that_was_set_meanwhile)
{
	BED(b);
	struct scan s = { 0 };
	struct sweep out = { .dir_fd = FD_NONE };
	struct err e = ERR_INIT;

	scan_both(&b, &s);
	s.index->clock += 50 * (int64_t)NS_PER_MS;
	CHECK_INT(sweep_run(b.t.fd, FD_NONE, &b.p, &s, &out, &e), 0);
	CHECK_INT(count(out.index, INDEX_FRESH, INDEX_FRESH), 1 + BASE_DIRS);
	sweep_done(&out);
	s.index->clock -= 50 * (int64_t)NS_PER_MS;
	CHECK_INT(sweep_run(b.t.fd, FD_NONE, &b.p, &s, &out, &e), 0);
	CHECK_INT(count(out.index, INDEX_FRESH, INDEX_FRESH), 0);
	sweep_done(&out);
	scan_done(&s);
}

TEST(only_where_times_are_this_kernels)
{
	_close_ int proc = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct index x;

	index_init(&x, proc);
	CHECK(x.is_off);
	CHECK_INT(index_add(&x, INDEX_NONE, INDEX_NONE, NULL), INDEX_NONE);
	index_done(&x);
}

TEST(more_than_the_bound_is_read)
{
	_cleanup_(tree_done) struct tree t = tree_new();
	struct index x;

	index_init(&x, t.fd);
	for (uint32_t i = 0; i < INDEX_DIRS_MAX; i++)
		(void)index_add(&x, INDEX_NONE, INDEX_NONE, NULL);
	CHECK(!x.is_off);
	CHECK_INT(index_add(&x, INDEX_NONE, INDEX_NONE, NULL), INDEX_NONE);
	CHECK(x.is_off && x.n == 0);
	CHECK_INT(index_add_name(&x, DT_REG, "a", 1), INDEX_NONE);
	CHECK(!index_is_worth_saving(&x));
	index_done(&x);
}

TEST(the_folder_is_bounded)
{
	BED(b);
	_free_ char *folder = mem_fmt("%s/index", b.state.path);
	DIR *d;
	size_t n = 0;

	for (int i = 0; i < 3 * INDEX_FILES_MAX / 2; i++) {
		_free_ char *name = mem_fmt("index/%d-1-x", i);

		tree_file(&b.state, name, "x");
	}
	tree_file(&b.t, "base1/new/file", "x");
	grow_old();
	session(&b);
	d = opendir(folder);
	while (readdir(d) != NULL)
		n++;
	(void)closedir(d);
	CHECK_INT(n, INDEX_FILES_MAX + 2);
	check(&b);
	CHECK_INT(b.taken, 2 + BASE_DIRS);
}

/* ---- marks ---- */

TEST(a_keeper_that_died)
{
	BED(b);
	struct index x;
	unsigned one = 0, two = 0, three = 0;
	_free_ char *path = NULL;
	int a, c, joined;

	index_init(&x, b.t.fd);
	a = index_live_claim(b.state.path, &x, &one);
	c = index_live_claim(b.state.path, &x, &two);
	CHECK(a >= 0 && c >= 0 && one != two);
	/* Both live: what they do is seen by the times. */
	CHECK(index_live_check(b.state.path, &x));
	joined = index_live_join(b.state.path, &x, one);
	CHECK(joined >= 0);
	fd_close(a); /* the client ended, the keeper lives */
	CHECK(index_live_check(b.state.path, &x));
	index_live_leave(c, two);
	CHECK(index_live_check(b.state.path, &x));
	path = list_file(&b);
	CHECK(path != NULL);
	fd_close(joined); /* and now not in order */
	/* A mark that is not looked at yet is not given to another. */
	a = index_live_claim(b.state.path, &x, &three);
	CHECK(a >= 0 && three != one);
	check(&b);
	CHECK_INT(b.taken, 0);
	free(path);
	path = list_file(&b);
	CHECK(path == NULL);
	index_live_leave(a, three);
	session(&b);
	check(&b);
	CHECK_INT(b.taken, 1 + BASE_DIRS);
	index_done(&x);
}

TEST(too_many_sandboxes_leave_no_list)
{
	BED(b);
	struct index x;
	int fds[65];
	unsigned slot;

	index_init(&x, b.t.fd);
	for (size_t i = 0; i < 64; i++) {
		fds[i] = index_live_claim(b.state.path, &x, &slot);
		CHECK_INT(slot, i);
	}
	check(&b);
	CHECK_INT(b.taken, 1 + BASE_DIRS);
	CHECK_INT(index_live_claim(b.state.path, &x, &slot), -ENOSPC);
	check(&b);
	CHECK_INT(b.taken, 0);
	for (unsigned i = 0; i < 64; i++)
		index_live_leave(fds[i], i);
	index_done(&x);
}

/* ---- changes ---- */

static void plant_at_once(const char *dir)
{
	_cleanup_(bed_done) struct bed b = bed_at(dir);

	grow_old();
	for (int i = 0; i < 40; i++) {
		_free_ char *plain = mem_fmt("base%d/sub/new", i);
		_free_ char *bad = mem_fmt("base%d/sub/.mcp.json", i);

		tree_file(&b.t, plain, "x");
		session(&b);
		/* In the same tick of the clock; on tmpfs the time is the same then. */
		CHECK_INT(unlinkat(b.t.fd, plain, 0), 0);
		tree_file(&b.t, bad, "x");
		check(&b);
	}
}

/* On tmpfs a removal and a making right behind each other leave the time as it was. */
TEST(a_time_that_is_given_twice)
{
	_cleanup_(bed_done) struct bed b =
		bed_at(access("/dev/shm", W_OK) == 0 ? "/dev/shm" : NULL);
	_close_ int fd = openat(b.t.fd, "base4/sub", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; i < 500; i++) {
		struct index_id before, after;
		struct index x;
		uint32_t dir;

		tree_file(&b.t, "base4/sub/new", "x");
		index_init(&x, b.t.fd);
		CHECK(index_look(fd, "", &before));
		dir = index_add(&x, INDEX_NONE, INDEX_NONE, &before);
		CHECK_INT(unlinkat(b.t.fd, "base4/sub/new", 0), 0);
		tree_file(&b.t, "base4/sub/.mcp.json", "x");
		CHECK(index_look(fd, "", &after));
		CHECK(!index_is_same(&x, dir, &x, &after));
		CHECK_INT(unlinkat(b.t.fd, "base4/sub/.mcp.json", 0), 0);
		index_done(&x);
	}
}

TEST(what_changed_just_now_is_read)
{
	plant_at_once(NULL);
	if (access("/dev/shm", W_OK) == 0)
		plant_at_once("/dev/shm");
}

TEST(what_is_young_is_not_trusted)
{
	_cleanup_(bed_done) struct bed b = bed_new();
	struct scan s = { 0 };

	grow_old();
	tree_file(&b.t, "base7/sub/new", "x");
	scan_both(&b, &s);
	CHECK_INT(count(s.index, INDEX_TRUSTED, 0), 1);
	scan_done(&s);
}

/* statx() first, then the names: a change in between is found by the next look. */
TEST(a_change_while_it_is_read)
{
	_cleanup_(bed_done) struct bed b = bed_new();
	_close_ int fd = openat(b.t.fd, "base4/sub", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct index x;
	struct index_id id;
	uint32_t dir;

	grow_old();
	index_init(&x, b.t.fd);
	CHECK(index_look(fd, "", &id));
	dir = index_add(&x, INDEX_NONE, INDEX_NONE, &id);
	CHECK(index_is_same(&x, dir, &x, &id));
	tree_file(&b.t, "base4/sub/.mcp.json", "x");
	CHECK(index_look(fd, "", &id));
	CHECK(!index_is_same(&x, dir, &x, &id));
	index_done(&x);
}

TEST(a_moved_subtree_is_not_read_again)
{
	BED(b);

	tree_file(&b.t, "flows/sub/a.key", "x");
	for (int i = 0; i < 20; i++) {
		_free_ char *name = mem_fmt("flows/d%d/deep/.mcp.json", i);

		tree_file(&b.t, name, "x");
	}
	grow_old();
	session(&b);
	CHECK_INT(renameat(b.t.fd, "flows", b.t.fd, "rules"), 0);
	check(&b);
	/* The root and what was moved are read. */
	CHECK_INT(b.taken, BASE_DIRS + 41);
	grow_old();
	session(&b);
	CHECK_INT(renameat(b.t.fd, "rules", b.t.fd, "base5/.vscode"), 0);
	check(&b);
	CHECK(b.taken >= BASE_DIRS - 1);
}

TEST(exchanged_and_replaced_by_a_link)
{
	BED(b);

	tree_file(&b.t, "base8/sub/deep/.env", "x");
	tree_file(&b.t, "base9/sub/deep/.mcp.json", "x");
	grow_old();
	session(&b);
	CHECK_INT(syscall(SYS_renameat2, b.t.fd, "base8/sub", b.t.fd, "base9/sub", 2), 0);
	check(&b);
	CHECK(b.taken >= BASE_DIRS - 3);
	grow_old();
	session(&b);
	CHECK_INT(renameat(b.t.fd, "base8/sub", b.t.fd, "elsewhere"), 0);
	tree_link(&b.t, "../elsewhere", "base8/sub");
	check(&b);
	grow_old();
	session(&b);
	CHECK_INT(unlinkat(b.t.fd, "base8/sub", 0), 0);
	tree_link(&b.t, "/", "base8/sub");
	check(&b);
}

/* Times that somebody set are not what is looked at. */
TEST(times_set_back)
{
	BED(b);
	struct stat st;

	CHECK_INT(fstatat(b.t.fd, "base2", &st, 0), 0);
	tree_file(&b.t, "base2/.env", "x");
	CHECK_INT(utimensat(b.t.fd, "base2", (struct timespec[]){ st.st_atim, st.st_mtim }, 0), 0);
	check(&b);
	CHECK_INT(b.taken, BASE_DIRS);
}

/* A number that is given again: the old directory's names are not the new one's. */
TEST(an_inode_number_that_is_used_again)
{
	BED(b);

	for (int i = 0; i < 40; i++) {
		_free_ char *name = mem_fmt("base%d", i), *bad = mem_fmt("base%d/sub/.env", i);

		CHECK_INT(path_remove(b.t.fd, name), 0);
		tree_file(&b.t, bad, "x");
	}
	check(&b);
	CHECK_INT(b.taken, 0);
}

TEST(set_id_files_are_listed)
{
	BED(b);
	struct index_rules rules;
	struct index now, x = { 0 };

	tree_file(&b.t, "base6/tool", "x");
	tree_file(&b.t, "base6/sub/tool", "x");
	tree_file(&b.t, "base6/sub/new/plain", "x");
	CHECK_INT(fchmodat(b.t.fd, "base6/tool", 04755, 0), 0);
	CHECK_INT(fchmodat(b.t.fd, "base6/sub/tool", 02755, 0), 0);
	grow_old();
	session(&b);
	tree_file(&b.t, "base7/more", "x");
	grow_old();
	session(&b); /* the others are carried on */
	matcher_rules(&b.p, &rules);
	index_init(&now, b.t.fd);
	CHECK(index_load(&x, b.state.path, &now, &rules));
	CHECK(index_knows_setid(&x));
	CHECK_INT(x.setid_n, 10);
	if (x.setid_n == 10)
		CHECK(memcmp(x.setid, "tool\0tool", 10) == 0);
	index_done(&x);
	index_done(&now);
}

/* A mount over a directory, and one that goes again. In a mount namespace of its own, where that may be made. */
static int with_mounts(void)
{
	_cleanup_(bed_done) struct bed b = bed_new();
	_free_ char *at = tree_path(&b.t, "base3/sub"), *from = tree_path(&b.t, "base4/sub");
	_free_ char *bad = tree_path(&b.t, "base3/sub/.env");

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return 0;
	/* A descriptor from before shows the mounts of the old namespace. */
	fd_close(b.t.fd);
	b.t.fd = open(b.t.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	grow_old();
	session(&b);
	if (mount("none", at, "tmpfs", 0, NULL) < 0)
		return 0;
	CHECK_INT(close(open(bad, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), 0);
	check(&b);
	CHECK_INT(b.taken, BASE_DIRS);
	grow_old();
	session(&b);
	CHECK_INT(umount(at), 0);
	check(&b);
	/* The same inode of the same device, by another mount. */
	CHECK_INT(mount(from, at, NULL, MS_BIND, NULL), 0);
	check(&b);
	CHECK_INT(b.taken, BASE_DIRS);
	CHECK_INT(umount(at), 0);
	session(&b);
	/* The same directory, by another mount. */
	CHECK_INT(mount(at, at, NULL, MS_BIND, NULL), 0);
	check(&b);
	CHECK_INT(b.taken, BASE_DIRS);
	CHECK_INT(umount(at), 0);
	return test_failures > 0;
}

TEST(mounts)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(with_mounts());
	bug_on(pid < 0 || waitpid(pid, &status, 0) < 0);
	CHECK_INT(status, 0);
}

/* ---- the model ---- */

static const char *const words[] = { "a",     "b",     "sub",     "rules", ".vscode", ".git",
				     "hooks", "HEAD",  "objects", "refs",  ".env",    ".mcp.json",
				     "x.key", "k.pem", "config",  "c",     "d",       "e" };

static uint64_t next(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static char *some_path(uint64_t *seed, bool is_known)
{
	size_t depth = 1 + next(seed) % 3;
	struct buf b = BUF(4 * KIB);

	if (next(seed) % 2 || is_known)
		buf_printf(&b, "base%d", (int)(next(seed) % 12));
	for (size_t i = 0; i < depth; i++)
		buf_printf(&b, "%s%s", b.n ? "/" : "", words[next(seed) % ARRAY_LEN(words)]);
	return buf_take(&b);
}

/* Whatever fails changed nothing. */
static void change(const struct bed *b, uint64_t *seed)
{
	_free_ char *p = some_path(seed, false), *q = some_path(seed, false);
	_close_ int fd = FD_NONE;
	int r = 0;

	switch (next(seed) % 12) {
	case 0:
	case 1:
		r = path_mkdirs(b->t.fd, p, 0755);
		break;
	case 2:
	case 3:
		fd = openat(b->t.fd, p, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
		break;
	case 4:
		r = unlinkat(b->t.fd, p, next(seed) % 2 ? AT_REMOVEDIR : 0);
		break;
	case 5:
	case 6:
		r = renameat(b->t.fd, p, b->t.fd, q);
		break;
	case 7:
		r = (int)syscall(SYS_renameat2, b->t.fd, p, b->t.fd, q, 2);
		break;
	case 8:
		r = symlinkat(next(seed) % 2 ? "a" : q, b->t.fd, p);
		break;
	case 9:
		r = linkat(b->t.fd, p, b->t.fd, q, 0);
		break;
	case 10:
		r = fchmodat(b->t.fd, p, next(seed) % 2 ? 0755 : 0700, 0);
		break;
	case 11:
		r = utimensat(b->t.fd, p, (struct timespec[]){ { 1, 0 }, { 1, 0 } }, 0);
		break;
	}
	(void)r;
}

/* What may happen to the list. */
static void disturb(struct bed *b, uint64_t *seed)
{
	_cleanup_(buf_done) struct buf whole = BUF(4 * MIB);
	_free_ char *path = list_file(b);

	if (path == NULL)
		return;
	read_list(b, &whole);
	switch (next(seed) % 4) {
	case 0:
		write_list(b, whole.p, next(seed) % whole.n);
		break;
	case 1:
		whole.p[next(seed) % whole.n] ^= 16;
		write_list(b, whole.p, whole.n);
		break;
	case 2:
		whole.p[INDEX_HEAD_CLOCK + 4] ^= 1;
		index_seal(whole.p, whole.n);
		write_list(b, whole.p, whole.n);
		break;
	case 3:
		(void)unlink(path);
		break;
	}
}

static void model(const char *dir, uint64_t seed, uint64_t rounds)
{
	_cleanup_(bed_done) struct bed b = bed_at(dir);
	uint64_t start = seed, taken = 0;

	for (uint64_t i = 0; i < rounds && test_failures == 0; i++) {
		unsigned n = (unsigned)(next(&seed) % 8);

		for (unsigned k = 0; k < n; k++)
			change(&b, &seed);
		if (next(&seed) % 32 == 0)
			disturb(&b, &seed);
		if (next(&seed) % 3 == 0)
			grow_old();
		if (next(&seed) % 2)
			session(&b);
		else
			check(&b);
		taken += b.taken;
		if (test_failures)
			(void)fprintf(stderr, "seed %llu, round %llu\n", (unsigned long long)start,
				      (unsigned long long)i);
	}
	CHECK(taken > 20 * rounds); /* else nothing was proved */
}

TEST(random_changes)
{
	const char *text = getenv("VITRINE_MODEL_ROUNDS"), *from = getenv("VITRINE_MODEL_SEED");
	uint64_t rounds = 150, seed = 88172645463325252ULL;
	struct err e = ERR_INIT;

	CHECK(!text || num_parse(text, 1, 1000000, &rounds, &e) == 0);
	CHECK(!from || num_parse(from, 1, UINT64_MAX, &seed, &e) == 0);
	model(NULL, seed, rounds);
	if (access("/dev/shm", W_OK) == 0)
		model("/dev/shm", seed + 1, rounds);
}

TEST_MAIN()
