/* SPDX-License-Identifier: Apache-2.0 */
/* view/setid_test.c - files that had a set-ID bit before the start, looked at alone */
#include "view/setid.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>

#include "base/loop.h"
#include "base/test.h"
#include "view/index_own.h"
#include "view/testtree.h"

struct seen {
	struct buf text; /* paths, with a star when they are old */
};

static bool on_found(void *arg, const char *rel, mode_t bits, bool is_old)
{
	struct seen *s = arg;

	(void)bits;
	buf_printf(&s->text, "%s%s ", rel, is_old ? "*" : "");
	return !is_old;
}

static struct stat stat_of(const struct tree *t, const char *rel)
{
	struct stat st;

	bug_on(fstatat(t->fd, rel, &st, AT_SYMLINK_NOFOLLOW) < 0);
	return st;
}

static void file_with(const struct tree *t, const char *rel, mode_t mode)
{
	tree_file(t, rel, "0123456789");
	bug_on(fchmodat(t->fd, rel, mode, 0) < 0);
}

/* A list that names d/a and b, by their directories. */
static struct index *list_new(const struct tree *t)
{
	struct index *x = index_new(t->fd);

	(void)index_add(x, INDEX_NONE, INDEX_NONE, NULL);
	(void)index_add(x, 0, index_add_name(x, DT_DIR, "d", 1), NULL);
	index_add_setid(x, "b\0a", 4);
	x->dirs[0].setid_len = x->dirs[1].setid_len = x->dirs[1].setid = 2;
	return x;
}

/* Changes a file and leaves its bits on; the time is that of a start before it. */
static void store(const struct tree *t, const char *rel)
{
	_close_ int fd = openat(t->fd, rel, O_RDWR | O_CLOEXEC);
	char *p = mmap(NULL, 10, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	bug_on(p == MAP_FAILED);
	p[0] = 'x';
	bug_on(msync(p, 10, MS_SYNC) < 0 || munmap(p, 10) < 0);
}

static bool look(const struct tree *t, int64_t since, struct seen *seen)
{
	struct setid s = { .root_fd = t->fd, .since = since, .on_found = on_found, .arg = seen };
	struct index *list = list_new(t);
	bool is_whole = setid_look_listed(&s, list);

	CHECK_INT(s.failed, 0);
	index_free(list);
	return is_whole;
}

static int64_t now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * (int64_t)NS_PER_SEC + t.tv_nsec;
}

static void tick(void)
{
	(void)nanosleep(&(struct timespec){ .tv_nsec = 30000000 }, NULL);
}

TEST(only_the_changed_one_loses_its_bit)
{
	_cleanup_(tree_done) struct tree t = tree_new();
	struct seen seen = { .text = BUF(KIB) };
	int64_t since;

	file_with(&t, "d/a", 04755);
	file_with(&t, "b", 02755);
	file_with(&t, "unknown", 02755);
	tick();
	since = now();
	tick();
	store(&t, "b");
	CHECK(look(&t, since, &seen));
	/* In memory no time shows such a store: keep/setid.c takes the bits off then. */
	if (strstr(buf_cstr(&seen.text), "b* ") == NULL) {
		CHECK_STR(buf_cstr(&seen.text), "b d/a* ");
		CHECK_INT(stat_of(&t, "b").st_mode & 07777, 0755);
	}
	CHECK_INT(stat_of(&t, "d/a").st_mode & 07777, 04755);
	CHECK_INT(stat_of(&t, "unknown").st_mode & 07777, 02755);
	buf_done(&seen.text);
}

TEST(one_that_went_elsewhere_asks_for_a_look_at_all)
{
	_cleanup_(tree_done) struct tree t = tree_new();
	struct seen seen = { .text = BUF(KIB) };
	int64_t later = now() + (int64_t)NS_PER_SEC;

	file_with(&t, "d/a", 04755);
	file_with(&t, "b", 02755);
	CHECK(look(&t, later, &seen));
	bug_on(renameat(t.fd, "d/a", t.fd, "d/c") < 0);
	CHECK(!look(&t, later, &seen));
	tree_file(&t, "d/a", "another");
	CHECK(!look(&t, later, &seen));
	bug_on(unlinkat(t.fd, "d/a", 0) < 0);
	tree_link(&t, "c", "d/a");
	CHECK(!look(&t, later, &seen));
	buf_done(&seen.text);
}

/* A directory on the way that is a link leads nowhere. */
TEST(no_link_is_followed)
{
	_cleanup_(tree_done) struct tree t = tree_new();
	struct seen seen = { .text = BUF(KIB) };

	file_with(&t, "b", 0755);
	file_with(&t, "d/a", 02755);
	bug_on(renameat(t.fd, "d", t.fd, "e") < 0);
	tree_link(&t, "e", "d");
	CHECK(!look(&t, 0, &seen));
	CHECK_STR(buf_cstr(&seen.text), "");
	CHECK_INT(stat_of(&t, "e/a").st_mode & 07777, 02755);
	buf_done(&seen.text);
}

TEST_MAIN()
