/* SPDX-License-Identifier: Apache-2.0 */
#include "base/path.h"
#include "base/test.h"
#include "tree/tree.h"

static struct tree_entry entry(const char *path, uint32_t parent, uint32_t mode)
{
	const char *slash = strrchr(path, '/');

	return (struct tree_entry){ .path = path,
				    .name = slash ? slash + 1 : path,
				    .parent = parent,
				    .link_of = TREE_NONE,
				    .mode = mode,
				    .ino = 7,
				    .size = 3,
				    .mtime = -5,
				    .ctime = 9 };
}

static struct tree_index sample(void)
{
	struct tree_index x = { .id = 4,
				.created = 5,
				.kind = TREE_START,
				.message = mem_str("why"),
				.root = mem_str("/w") };

	x.v = mem_new(5, sizeof(*x.v));
	x.v[x.n++] = entry("a", TREE_NONE, S_IFDIR | 0755);
	x.v[x.n++] = entry("a/f", 0, S_IFREG | 0644);
	x.v[x.n++] = entry("a/l", 0, S_IFLNK | 0777);
	x.v[x.n++] = entry("a-b", TREE_NONE, S_IFREG | 0600);
	x.v[1].xattrs = "user.x\0\1\0\0\0y";
	x.v[1].xattr_len = 12;
	x.v[1].flags = TREE_SPARSE;
	x.v[2].target = "f";
	x.v[2].target_len = 1;
	x.v[3].link_of = 1;
	return x;
}

static int decode(const struct buf *b, struct tree_index *ret)
{
	struct err e = ERR_INIT;

	return tree_decode(b->p, b->n, ret, &e);
}

TEST(round_trip)
{
	_cleanup_(tree_index_done) struct tree_index x = sample();
	_cleanup_(tree_index_done) struct tree_index y = { 0 };
	_cleanup_(buf_done) struct buf b = BUF(MIB);
	struct err e = ERR_INIT;

	CHECK_INT(tree_encode(&x, &b, &e), 0);
	CHECK_INT(decode(&b, &y), 0);
	CHECK_INT(y.n, 4);
	CHECK_INT(y.id, 4);
	CHECK_INT(y.kind, TREE_START);
	CHECK_STR(y.message, "why");
	CHECK_STR(y.root, "/w");
	CHECK_STR(y.v[1].path, "a/f");
	CHECK_STR(y.v[1].name, "f");
	CHECK_INT(y.v[1].xattr_len, 12);
	CHECK_INT(y.v[1].mtime, -5);
	CHECK_STR(y.v[2].target, "f");
	CHECK_INT(y.v[3].link_of, 1);
	CHECK(tree_find(&y, "a-b") == &y.v[3]);
	CHECK(tree_find(&y, "a/x") == NULL);
}

TEST(every_cut_and_flip_is_refused)
{
	_cleanup_(tree_index_done) struct tree_index x = sample();
	_cleanup_(buf_done) struct buf b = BUF(MIB);
	struct err e = ERR_INIT;
	size_t n;

	CHECK_INT(tree_encode(&x, &b, &e), 0);
	n = b.n;
	for (b.n = 0; b.n < n; b.n++) {
		struct tree_index y = { 0 };

		CHECK_INT(decode(&b, &y), -EBADMSG);
	}
	for (size_t i = 0; i < n; i++) {
		struct tree_index y = { 0 };

		b.p[i] ^= 0x20;
		CHECK_INT(decode(&b, &y), -EBADMSG);
		b.p[i] ^= 0x20;
	}
}

/* With a right checksum but a record that lies. */
static void check_refused(void (*spoil)(struct tree_index *x))
{
	_cleanup_(tree_index_done) struct tree_index x = sample();
	_cleanup_(tree_index_done) struct tree_index y = { 0 };
	_cleanup_(buf_done) struct buf b = BUF(MIB);
	struct err e = ERR_INIT;

	spoil(&x);
	CHECK_INT(tree_encode(&x, &b, &e), 0);
	CHECK_INT(decode(&b, &y), -EBADMSG);
}

static void up(struct tree_index *x)
{
	x->v[1].name = "..";
}

static void slash(struct tree_index *x)
{
	x->v[1].name = "x/y";
}

static void empty(struct tree_index *x)
{
	x->v[1].name = "";
}

static void in_a_file(struct tree_index *x)
{
	x->v[2].parent = 1;
}

static void in_itself(struct tree_index *x)
{
	x->v[1].parent = 1;
}

static void out_of_order(struct tree_index *x)
{
	x->v[1].name = "m";
}

static void twice(struct tree_index *x)
{
	x->v[2].name = "f";
}

static void link_ahead(struct tree_index *x)
{
	x->v[1].link_of = 3;
	x->v[3].link_of = TREE_NONE;
}

static void no_target(struct tree_index *x)
{
	x->v[2].target_len = 0;
}

static void bad_xattr(struct tree_index *x)
{
	x->v[1].xattr_len = 9;
}

static void bad_flag(struct tree_index *x)
{
	x->v[1].flags = 128;
}

static void bad_type(struct tree_index *x)
{
	x->v[1].mode = 0644;
}

TEST(lies_are_refused)
{
	check_refused(up);
	check_refused(slash);
	check_refused(empty);
	check_refused(in_a_file);
	check_refused(in_itself);
	check_refused(out_of_order);
	check_refused(twice);
	check_refused(link_ahead);
	check_refused(no_target);
	check_refused(bad_xattr);
	check_refused(bad_flag);
	check_refused(bad_type);
}

TEST(order)
{
	CHECK(path_cmp("a", "a/b") < 0);
	CHECK(path_cmp("a/b", "a-b") < 0);
	CHECK(path_cmp("a/b", "a/b") == 0);
	CHECK(path_cmp("b", "a/z") > 0);
	CHECK(path_cmp("a\xff", "ab") > 0);
}

TEST_MAIN()
