/* SPDX-License-Identifier: Apache-2.0 */
/* tree/overlay_test.c - many layers and the one that they are joined to must show the same, above any tree
 *
 * Random stacks of layers, made as the kernel's overlay would leave them: files, links, directories, opaque ones and marks of
 * what is gone. What they change in a tree, and what they show, is asked before and after.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "base/io.h"
#include "base/path.h"
#include "base/test.h"
#include "tree/overlay.h"

#define LAYERS 6
#define NAMES 5

static uint64_t seed = 88172645463325252U;

static unsigned dice(unsigned n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed % n);
}

static int open_dir(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	bug_on(fd < 0);
	return fd;
}

static void put_file(int at, const char *name)
{
	int fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	char text[32];

	(void)snprintf(text, sizeof(text), "%u", dice(1000));
	bug_on(fd < 0 || io_write_all(fd, text, strlen(text)) < 0);
	bug_on(fchmod(fd, dice(2) ? 0644 : 04711) < 0);
	fd_close(fd);
}

/* Names "a" to "e", so that layers meet. A tree below has no marks. */
static void fill(int at, int depth, bool is_layer)
{
	for (unsigned i = 0; i < NAMES; i++) {
		char name[2] = { (char)('a' + i), '\0' };
		unsigned what = dice(8);

		if (what == 0 && is_layer) {
			bug_on(mknodat(at, name, S_IFCHR, makedev(0, 0)) < 0);
		} else if (what == 1) {
			bug_on(symlinkat("somewhere", at, name) < 0);
		} else if (what <= 3) {
			put_file(at, name);
		} else if (what <= 5 && depth < 3) {
			int dir;

			bug_on(mkdirat(at, name, 0755) < 0);
			dir = open_dir(at, name);
			/* Where there are no such attributes, no directory is opaque. */
			if (is_layer && dice(3) == 0)
				(void)fsetxattr(dir, "user.overlay.opaque", "y", 1, 0);
			fill(dir, depth + 1, is_layer);
			bug_on(fchmod(dir, dice(2) ? 0755 : 01750) < 0);
			fd_close(dir);
		}
	}
}

static void tell(const struct overlay *o, struct buf *out)
{
	struct overlay_diff d = { 0 };
	struct err e = ERR_INIT;

	CHECK(overlay_compare(o, false, &d, &e) == 0);
	for (size_t i = 0; i < d.after.n; i++) {
		const struct tree_entry *en = &d.after.v[i];

		buf_printf(out, "%s %o %llu %s\n", en->path, en->mode,
			   S_ISREG(en->mode) ? (unsigned long long)en->size : 0,
			   en->target ? en->target : "");
	}
	for (size_t i = 0; i < d.changes.n; i++)
		buf_printf(out, "%d %s\n", (int)d.changes.v[i].kind,
			   d.changes.v[i].a ? d.changes.v[i].a->path : d.changes.v[i].b->path);
	overlay_diff_done(&d);
}

static void try_one(int top)
{
	_cleanup_(buf_done) struct buf many = BUF(MIB), one = BUF(MIB);
	struct overlay o = { 0 }, joined = { .n = 1 };
	struct err e = ERR_INIT;
	char name[8];

	bug_on(mkdirat(top, "base", 0755) < 0 || mkdirat(top, "to", 0755) < 0);
	joined.base = o.base = open_dir(top, "base");
	joined.layers[0] = open_dir(top, "to");
	fill(o.base, 0, false);
	for (unsigned n = 1 + dice(LAYERS); o.n < n;) {
		(void)snprintf(name, sizeof(name), "l%zu", o.n);
		bug_on(mkdirat(top, name, 0755) < 0);
		o.layers[o.n] = open_dir(top, name);
		fill(o.layers[o.n++], 0, true);
	}
	tell(&o, &many);
	CHECK(overlay_join(&o, joined.layers[0], &e) == 0);
	tell(&joined, &one);
	CHECK_STR(buf_cstr(&one), buf_cstr(&many));
	for (size_t i = 0; i < o.n; i++)
		fd_close(o.layers[i]);
	fd_close(joined.layers[0]);
	fd_close(o.base);
}

TEST(joined_layers_show_the_same)
{
	for (int i = 0; i < 60 && test_failures == 0; i++) {
		char path[] = "/tmp/overlay-test-XXXXXX";
		int top;

		bug_on(mkdtemp(path) == NULL);
		top = open_dir(AT_FDCWD, path);
		try_one(top);
		fd_close(top);
		(void)path_remove(AT_FDCWD, path);
	}
}

/* A file is not copied: it has one more name. */
TEST(nothing_is_copied)
{
	char path[] = "/tmp/overlay-test-XXXXXX";
	struct overlay o = { .base = FD_NONE, .n = 2 };
	struct err e = ERR_INIT;
	struct stat a = { 0 }, b = { 0 };
	int top, to;

	bug_on(mkdtemp(path) == NULL);
	top = open_dir(AT_FDCWD, path);
	bug_on(mkdirat(top, "x", 0755) < 0 || mkdirat(top, "y", 0755) < 0 ||
	       mkdirat(top, "to", 0755) < 0);
	o.layers[0] = open_dir(top, "x");
	o.layers[1] = open_dir(top, "y");
	to = open_dir(top, "to");
	put_file(o.layers[1], "f");
	bug_on(linkat(o.layers[1], "f", o.layers[1], "g", 0) < 0);
	CHECK(overlay_join(&o, to, &e) == 0);
	CHECK(fstatat(o.layers[1], "f", &a, 0) == 0 && fstatat(to, "g", &b, 0) == 0);
	CHECK(a.st_ino == b.st_ino && b.st_nlink == 4);
	/* What is there already is not replaced. */
	CHECK(overlay_join(&o, to, &e) < 0);
	fd_close(o.layers[0]);
	fd_close(o.layers[1]);
	fd_close(to);
	fd_close(top);
	(void)path_remove(AT_FDCWD, path);
}

TEST_MAIN()
