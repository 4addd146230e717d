/* SPDX-License-Identifier: Apache-2.0 */
/* core/packages_test.c - records and an /etc of the test's own */
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/md5.h"
#include "base/path.h"
#include "base/test.h"
#include "core/packages.h"

static void put(void *arg, const char *rel, const char *md5)
{
	buf_printf(arg, "%s=%.4s ", rel, md5);
}

#define SUM "0123456789abcdef0123456789abcdef"

TEST(status)
{
	static const char text[] =
		"Package: a\nStatus: install ok installed\nConffiles:\n /etc/a/one.conf " SUM "\n"
		" /etc/a/two.conf " SUM " obsolete\n /etc/../root/x " SUM "\n /usr/a " SUM "\n"
		" /etc/a/short 0123\n /etc/a/new newconffile\nDescription: x\n /etc/a/not " SUM "\n"
		"\n"
		"Package: b\nStatus: deinstall ok config-files\nConffiles:\n /etc/b.conf " SUM "\n"
		"\n"
		"Package: c\nStatus: install ok installed\nConffiles:\n /etc/c.conf " SUM;
	_cleanup_(buf_done) struct buf b = BUF(KIB), sums = BUF(KIB);

	packages_status(text, put, &b);
	CHECK_STR(buf_cstr(&b), "a/one.conf=0123 c.conf=0123 ");
	packages_sums(SUM "  usr/bin/x\n" SUM "  etc/d/e f\n" SUM "  etc/d.rc\nx  etc/y\n", put,
		      &sums);
	CHECK_STR(buf_cstr(&sums), "d.rc=0123 ");
}

TEST(names)
{
	static const char *const no[] = {
		"",         "../x",  "a/../x",  "a//b",        "shadow",
		"pam.d/x",  "ssh/y", "x/token", "x/db.Passwd", "a/id_rsa",
		"a/my.key", "a b",   "a/..",    "/a",          "sudoers"
	};
	static const char *const yes[] = { "maven/settings.xml", "chromium.d/default-flags",
					   "java-17-openjdk/jvm-amd64.cfg", "wgetrc" };

	for (size_t i = 0; i < ARRAY_LEN(no); i++)
		CHECK(!packages_may_show(no[i]));
	for (size_t i = 0; i < ARRAY_LEN(yes); i++)
		CHECK(packages_may_show(yes[i]));
	CHECK(packages_may_link("rmt", "/usr/sbin/rmt") && packages_may_link("a/b", "../c"));
	CHECK(!packages_may_link("rmt", "/home/me/x") && !packages_may_link("a/b", "../../root/x"));
	CHECK(!packages_may_link("a/b", "/usr/../root") && !packages_may_link("ssh/b", "/usr/x"));
}

/* ---- trees ---- */

struct system {
	char top[64];
	struct buf status;
};

static char *in(const struct system *s, const char *rel)
{
	return mem_fmt("%s/%s", s->top, rel);
}

static void put_text(const struct system *s, const char *rel, const char *text, unsigned mode)
{
	_free_ char *path = in(s, rel), *up = path_parent(path);
	_close_ int fd = FD_NONE;

	bug_on(path_make(up, 0755) < 0);
	(void)unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	bug_on(fd < 0 || io_write_all(fd, text, strlen(text)) < 0 || fchmod(fd, mode) < 0);
}

/* A conffile of a package, as the package brought it. */
static void conffile(struct system *s, const char *rel, const char *text, unsigned mode)
{
	_free_ char *path = mem_fmt("etc/%s", rel);
	char sum[MD5_HEX_BYTES];

	put_text(s, path, text, mode);
	md5_hex(text, strlen(text), sum);
	buf_printf(&s->status, " /etc/%s %s\n", rel, sum);
}

static char *tree_of(struct system *s)
{
	_free_ char *records = in(s, "dpkg"), *etc = in(s, "etc"), *state = in(s, "state");
	const struct packages at = { .records = records, .etc = etc, .owner = geteuid() };

	put_text(s, "dpkg/status", buf_cstr(&s->status), 0644);
	return packages_tree(&at, state, true);
}

static char *index_of(const char *tree)
{
	_free_ char *path = mem_fmt("%s/index", tree);
	struct buf b = BUF(MIB);
	struct err e = ERR_INIT;

	bug_on(io_read_file(path, &b, &e) < 0);
	return b.p ? buf_take(&b) : mem_str("");
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static void system_done(struct system *s)
{
	buf_done(&s->status);
	(void)nftw(s->top, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static struct system system_new(void)
{
	struct system s = { .top = "/tmp/packages-test-XXXXXX", .status = BUF(MIB) };

	bug_on(mkdtemp(s.top) == NULL || chmod(s.top, 0755) < 0);
	buf_puts(&s.status, "Package: p\nStatus: install ok installed\nConffiles:\n");
	return s;
}

TEST(only_what_is_the_packages_own)
{
	_cleanup_(system_done) struct system s = system_new();
	_free_ char *open_dir = NULL, *closed = NULL, *link = NULL, *out = NULL, *tree = NULL,
		    *again = NULL, *index = NULL;

	conffile(&s, "prog/good.conf", "a = 1\n", 0644);
	conffile(&s, "prog/run.sh", "#!/bin/sh\n", 0755);
	conffile(&s, "prog/edited.conf", "a = 1\n", 0644);
	put_text(&s, "etc/prog/edited.conf", "a = 2\n", 0644);
	conffile(&s, "prog/closed.conf", "a = 1\n", 0640);
	conffile(&s, "prog/writable.conf", "a = 1\n", 0666);
	conffile(&s, "prog/api-token", "a = 1\n", 0644);
	conffile(&s, "prog/text.conf", "key = ghp_0123456789abcdefghijklmnopqrstuvwxyz\n", 0644);
	conffile(&s, "shut/in.conf", "a = 1\n", 0644);
	conffile(&s, "loose/in.conf", "a = 1\n", 0644);
	conffile(&s, "prog/led.conf", "a = 1\n", 0644);
	conffile(&s, "prog/gone.conf", "a = 1\n", 0644);
	put_text(&s, "else/led.conf", "a = 1\n", 0644);
	closed = in(&s, "etc/shut");
	open_dir = in(&s, "etc/loose");
	link = in(&s, "etc/prog/led.conf");
	out = in(&s, "etc/prog/gone.conf");
	bug_on(chmod(closed, 0750) < 0 || chmod(open_dir, 0777) < 0);
	bug_on(unlink(link) < 0 || symlink("../../else/led.conf", link) < 0 || unlink(out) < 0);
	put_text(&s, "dpkg/info/p.list", "/etc/prog\n/etc/prog/led.conf\n/etc/prog/good.conf\n",
		 0644);
	tree = tree_of(&s);
	CHECK(tree != NULL);
	index = index_of(tree);
	CHECK_STR(index, "f 644 prog/good.conf\nf 755 prog/run.sh\n");
	/* What is edited later changes nothing, and is not looked for; other records are another tree. */
	put_text(&s, "etc/prog/good.conf", "a = 3\n", 0644);
	buf_puts(&s.status, "\nPackage: q\nStatus: install ok installed\n");
	again = tree_of(&s);
	CHECK(again && !str_eq(tree, again));
	free(index);
	index = index_of(again);
	CHECK_STR(index, "f 755 prog/run.sh\n");
}

TEST(no_records_no_tree)
{
	_cleanup_(system_done) struct system s = system_new();
	_free_ char *none = in(&s, "none"), *state = in(&s, "state");
	const struct packages at = { .records = none, .etc = "/etc" };

	CHECK(packages_tree(&at, state, true) == NULL);
}

TEST_MAIN()
